//! The keys of a target's TOML file. Texts may be templates unless the key's comment says otherwise.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The target's name in experiments and templates; no template.
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) needs: Vec<NeedKeys>,
    /// The program to run and its arguments.
    pub(crate) command: Vec<String>,
    /// The command that prints the program's version.
    #[serde(default)]
    pub(crate) version: Vec<String>,
    /// Names of the addresses that the server listens on, each the scheme of its URL; no templates.
    pub(crate) ports: Vec<String>,
    /// The number of addresses for each name in `ports`; 1 by default.
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
    /// Words that make a run worthless if they are in a line of the server's output; no templates.
    #[serde(default)]
    pub(crate) alarms: Vec<String>,
    /// Words that, in a line of the server's output, mean that it has reached a maximum of its own; no templates.
    #[serde(default)]
    pub(crate) capped: Vec<String>,
    /// Parameters of other targets that this one accepts without effect, so that servers that are
    /// compared in an experiment can be given the same ones.
    #[serde(default)]
    pub(crate) ignores: Vec<String>,
    #[serde(default)]
    pub(crate) param: BTreeMap<String, Spanned<ParamKeys>>,
    #[serde(default)]
    pub(crate) file: Vec<FileKeys>,
}

/// A requirement: a Debian package with a file that proves it installed, or a program that the caller names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeedKeys {
    /// The name of a Debian package; no template.
    pub(crate) package: Option<String>,
    /// A file that exists once the package is installed; no template.
    pub(crate) proof: Option<String>,
    /// The name of a program whose path the caller gives, `{{ program.NAME }}` in templates; no template itself.
    pub(crate) program: Option<String>,
    /// A condition: the requirement counts only if this renders as `true`.
    pub(crate) when: Option<String>,
}

/// The test of whether the server serves: a port takes a connection and, with `get`, answers as expected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyKeys {
    /// The name of the port to test, the first by default; no template.
    pub(crate) port: Option<String>,
    /// The path to request over HTTP.
    pub(crate) get: Option<String>,
    /// The status that the response must have, 200 by default.
    pub(crate) status: Option<u16>,
    /// The length that the body must have, any by default.
    pub(crate) length: Option<String>,
    /// The time that the server has until it serves, 60 s by default; no template.
    pub(crate) within: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StopKeys {
    /// The signal that ends the server, TERM by default; no template.
    pub(crate) signal: Option<String>,
    /// The time that the server has to end before it is killed, 5 s by default; no template.
    pub(crate) patience: Option<String>,
}

/// An action on a running server: a signal, or a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionKeys {
    /// The signal that the process is sent; no template.
    pub(crate) signal: Option<String>,
    #[serde(default)]
    pub(crate) command: Vec<String>,
    /// Words that mean that the action is done, once they are in a new line of the server's output.
    pub(crate) done: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParamKeys {
    #[serde(rename = "type", default)]
    pub(crate) kind: Kind,
    /// The only values allowed, for a parameter that does not take every value of its type.
    #[serde(default)]
    pub(crate) values: Vec<String>,
    pub(crate) default: toml::Value,
    /// The effect of the parameter, for people who set it.
    pub(crate) meaning: String,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Any text is a value.
    #[default]
    Text,
    /// A whole number, at least 0.
    Count,
    /// A duration, such as `10s`.
    Duration,
    /// Backends, separated by spaces: `http://HOST:PORT`, `ajp://HOST:PORT`, `http+unix:/PATH`,
    /// `ajp+unix:/PATH`; empty for none.
    Urls,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileKeys {
    /// The path of the file below the server's directory.
    pub(crate) path: String,
    /// The contents of the file.
    pub(crate) text: Option<String>,
    /// The name of a template beside the target's file, instead of `text`; no template itself.
    pub(crate) template: Option<String>,
}
