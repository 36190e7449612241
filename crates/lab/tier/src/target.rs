//! A target, which is a kind of server: its file, and settings of its parameters.

mod check;
mod render;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use catamaran_toml_file::derived;
use catamaran_toml_file::report::{Finding, Report};
use catamaran_toml_file::suggest::hint;

use crate::file::{File, Kind, ParamKeys};
use crate::needs;
use crate::server::Need;
use crate::template::Names;

/// A kind of server, such as nginx, as its file describes it.
#[derive(Clone, Debug)]
pub struct Target {
    file: File,
    /// The name of the file, for messages about faults.
    place: String,
    text: String,
    templates: BTreeMap<String, String>,
}

/// A parameter of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    /// The parameter's name.
    pub name: &'a str,
    /// The effect of the parameter, for people.
    pub meaning: &'a str,
    /// The value that the parameter has if it is not set.
    pub default: String,
    /// The only values allowed; empty: all values of its type.
    pub values: &'a [String],
    /// The type of the parameter's values.
    pub kind: Kind,
}

/// The settings of a server: a value for each parameter of its target.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(Names);

/// Paths of programs that are in no Debian package, by name: `{{ program.NAME }}` in templates.
pub type Programs = BTreeMap<String, PathBuf>;

/// The directory, ports and programs that a server is rendered for.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The server's own directory, an absolute path.
    pub directory: &'a Path,
    /// The addresses of the server's ports with their names; a target with copies has several of one name.
    pub ports: &'a [(String, SocketAddr)],
    /// Paths of programs that are in no Debian package.
    pub programs: &'a Programs,
}

impl Target {
    /// Reads the text of a target's file. `place` is the file's name; `templates` are those that it
    /// may name, each with its text.
    ///
    /// # Errors
    /// The file is not valid; the report has all faults with their lines: keys, types, defaults, missing templates.
    pub fn parse(place: &str, text: &str, templates: &[(&str, &str)]) -> Result<Self, Report> {
        let mut report = Report::new(place, text);
        let Some(file) = derived::read::<File>(text, &mut report) else {
            report.finish();
            return Err(report);
        };
        for (name, param) in &file.param {
            let value = default(param.get_ref());
            if let Err(what) = check::value(name, param.get_ref(), &value) {
                report.push(Finding::fault(what, param.span()));
            }
        }
        for needed in file.file.iter().filter_map(|file| file.template.as_deref()) {
            if !templates.iter().any(|(name, _)| *name == needed) {
                report.push(Finding::absence(format!("there is no template {needed}")));
            }
        }
        check::keys(&file, &mut report);
        let templates = templates.iter();
        report.or(Self {
            file,
            place: place.to_owned(),
            text: text.to_owned(),
            templates: templates
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect(),
        })
    }

    /// Reads the target's file at `path`, and the templates beside it that it names.
    ///
    /// # Errors
    /// A file cannot be read; else the same as of [`Target::parse`].
    pub fn load(path: &Path) -> Result<Self, Report> {
        let read = |path: &Path| {
            let fault = |error: std::io::Error| {
                Report::absence(&path.display().to_string(), error.to_string())
            };
            std::fs::read_to_string(path).map_err(fault)
        };
        let place = path.display().to_string();
        let text = read(path)?;
        // The file is read once before it is parsed, for the names of its templates. Faults are left to `parse`.
        let Ok(file) = toml::from_str::<File>(&text) else {
            return Self::parse(&place, &text, &[]);
        };
        let mut templates = Vec::new();
        for name in file.file.into_iter().filter_map(|file| file.template) {
            let body = read(&path.with_file_name(&name))?;
            templates.push((name, body));
        }
        let borrowed: Vec<(&str, &str)> = templates
            .iter()
            .map(|(name, body)| (name.as_str(), body.as_str()))
            .collect();
        Self::parse(&place, &text, &borrowed)
    }

    /// The target's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// The names of the target's ports; each is the scheme of its URL.
    #[must_use]
    pub fn port_names(&self) -> &[String] {
        &self.file.ports
    }

    /// Whether the process that is started is a Java virtual machine.
    #[must_use]
    pub fn jvm(&self) -> bool {
        self.file.jvm
    }

    /// Whether the target requires the program `name`, which is in no Debian package.
    #[must_use]
    pub fn needs_program(&self, name: &str) -> bool {
        let mut needs = self.file.needs.iter();
        needs.any(|need| need.program.as_deref() == Some(name))
    }

    /// The target's parameters, in the order of names.
    pub fn params(&self) -> impl Iterator<Item = Param<'_>> {
        self.file.param.iter().map(|(name, keys)| {
            let keys = keys.get_ref();
            Param {
                name,
                meaning: &keys.meaning,
                default: default(keys),
                values: &keys.values,
                kind: keys.kind,
            }
        })
    }

    /// Whether `name` may be set: it is a parameter of the target, or one that the target ignores.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        self.file.param.contains_key(name) || self.ignores(name)
    }

    /// Settings with a value for each parameter: that of `set`, or else the default.
    ///
    /// # Errors
    /// The report has all unknown parameters, and all values that are not of their parameter's type.
    pub fn settings(&self, set: &[(&str, &str)]) -> Result<Settings, Report> {
        let mut report = self.report();
        let mut names = Names::new();
        for (name, param) in &self.file.param {
            // Of several values, the last one counts.
            let text = match set.iter().rev().find(|(key, _)| key == name) {
                Some((_, text)) => (*text).to_owned(),
                None => default(param.get_ref()),
            };
            match check::value(name, param.get_ref(), &text) {
                Ok(value) => {
                    names.insert(name.clone(), value);
                }
                Err(what) => report.push(Finding::absence(what)),
            }
        }
        for (name, _) in set.iter().filter(|(name, _)| !self.accepts(name)) {
            let known: Vec<&str> = self.file.param.keys().map(String::as_str).collect();
            let fault = Finding::absence(format!("no parameter `{name}`"));
            report.push(fault.hint(hint(name, &known)));
        }
        report.or(Settings(names))
    }

    /// The Debian packages that the target may require, whatever its settings.
    pub(crate) fn packages(&self) -> impl Iterator<Item = Need> {
        let keys = self.file.needs.iter();
        keys.filter_map(|keys| Some(needs::package(keys.package.as_ref()?, keys.proof.as_ref()?)))
    }

    /// A report on the target's file, for faults in settings and templates.
    fn report(&self) -> Report {
        Report::new(&self.place, &self.text)
    }

    fn ignores(&self, name: &str) -> bool {
        self.file.ignores.iter().any(|ignored| ignored == name)
    }
}

impl Settings {
    /// Each parameter with its value as text, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, String)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_string()))
    }
}

/// The default value as text.
fn default(param: &ParamKeys) -> String {
    match &param.default {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
