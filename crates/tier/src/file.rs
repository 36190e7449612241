//! The keys of a target's file, as TOML has them. Texts may be templates unless said otherwise.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// How experiments and templates call it; no template.
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) needs: Vec<NeedKeys>,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// What prints the program's version.
    #[serde(default)]
    pub(crate) version: Vec<String>,
    /// Names of the addresses that it listens on; no templates.
    pub(crate) ports: Vec<String>,
    #[serde(default)]
    pub(crate) param: BTreeMap<String, Spanned<Param>>,
    #[serde(default)]
    pub(crate) file: Vec<FileKeys>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NeedKeys {
    /// A Debian package; no template.
    pub(crate) package: String,
    /// A file that is there once it is installed; no template.
    pub(crate) proof: String,
    /// Needed only if this renders as `true`.
    pub(crate) when: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Param {
    #[serde(rename = "type", default)]
    pub(crate) kind: Kind,
    /// The only values, if it is not a type's.
    #[serde(default)]
    pub(crate) values: Vec<String>,
    pub(crate) default: toml::Value,
    /// What it changes, for people.
    #[expect(dead_code, reason = "shown by `lab list`")]
    pub(crate) meaning: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Text,
    /// A whole number from 0.
    Count,
    /// Such as `10s`.
    Duration,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileKeys {
    /// Below the server's directory.
    pub(crate) path: String,
    /// What is in it.
    pub(crate) text: Option<String>,
    /// Or the name of a template beside the target's file; no template itself.
    pub(crate) template: Option<String>,
}
