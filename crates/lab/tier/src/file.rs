//! The keys of a target's file, as TOML has them. Texts may be templates unless said otherwise.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The name in experiments and templates; no template.
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) needs: Vec<NeedKeys>,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// The command that prints the program's version.
    #[serde(default)]
    pub(crate) version: Vec<String>,
    /// Names of the addresses that it listens on, each the scheme of its URL; no templates.
    pub(crate) ports: Vec<String>,
    /// The number of addresses that each of its ports has; 1 by default.
    pub(crate) copies: Option<String>,
    #[serde(default)]
    pub(crate) ready: ReadyKeys,
    #[serde(default)]
    pub(crate) stop: StopKeys,
    pub(crate) reload: Option<ActionKeys>,
    pub(crate) upgrade: Option<ActionKeys>,
    /// Whether the process that is started is a Java virtual machine.
    #[serde(default)]
    pub(crate) jvm: bool,
    /// Words that, in a line of its output, make a run with it worthless; no templates.
    #[serde(default)]
    pub(crate) alarms: Vec<String>,
    /// Words that, in a line of its output, mean that a maximum of its own is reached; no
    /// templates.
    #[serde(default)]
    pub(crate) capped: Vec<String>,
    /// Parameters of other targets that mean nothing here, and may be set all the same: servers that
    /// take each other's place in an experiment are given the same ones.
    #[serde(default)]
    pub(crate) ignores: Vec<String>,
    #[serde(default)]
    pub(crate) param: BTreeMap<String, Spanned<ParamKeys>>,
    #[serde(default)]
    pub(crate) file: Vec<FileKeys>,
}

/// A Debian package with its proof, or a program that the caller names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeedKeys {
    /// A Debian package; no template.
    pub(crate) package: Option<String>,
    /// A file that is there once it is installed; no template.
    pub(crate) proof: Option<String>,
    /// `{{ program.NAME }}` in templates; no template.
    pub(crate) program: Option<String>,
    /// Needed only if this renders as `true`.
    pub(crate) when: Option<String>,
}

/// When it serves: once a port takes a connection and, with `get`, answers as expected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyKeys {
    /// Which port, the first by default; no template.
    pub(crate) port: Option<String>,
    /// The path to ask for.
    pub(crate) get: Option<String>,
    /// The status to expect, 200 by default.
    pub(crate) status: Option<u16>,
    /// The length of the body to expect, any by default.
    pub(crate) length: Option<String>,
    /// The time that the server has until it serves, 60 s by default; no template.
    pub(crate) within: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopKeys {
    /// TERM by default; no template.
    pub(crate) signal: Option<String>,
    /// The time that it has before it is killed, 5 s by default; no template.
    pub(crate) patience: Option<String>,
}

/// An action on a running server: a signal, or a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionKeys {
    /// The signal to the process that was started; no template.
    pub(crate) signal: Option<String>,
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// Words that, in a new line of its output, mean that the action is done.
    pub(crate) done: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParamKeys {
    #[serde(rename = "type", default)]
    pub(crate) kind: Kind,
    /// The only values, if it is not a type's.
    #[serde(default)]
    pub(crate) values: Vec<String>,
    pub(crate) default: toml::Value,
    /// The effect of the parameter, for people.
    pub(crate) meaning: String,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any text.
    #[default]
    Text,
    /// A whole number from 0.
    Count,
    /// Such as `10s`.
    Duration,
    /// Backends with spaces between: `http://HOST:PORT`, `ajp://HOST:PORT`, `http+unix:/PATH`,
    /// `ajp+unix:/PATH`; empty for none.
    Urls,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileKeys {
    /// Below the server's directory.
    pub(crate) path: String,
    /// The contents.
    pub(crate) text: Option<String>,
    /// Or the name of a template beside the target's file; no template itself.
    pub(crate) template: Option<String>,
}
