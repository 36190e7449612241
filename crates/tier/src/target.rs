//! From a target's file and settings to the files and the command of one server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};

use minijinja::Value;

use crate::fault::{Fault, Faults, line};
use crate::file::{File, Kind, Param};
use crate::template::{Names, render};

/// A kind of server.
#[derive(Clone, Debug)]
pub struct Target {
    file: File,
    /// The name of the file, for faults.
    place: String,
    templates: BTreeMap<String, String>,
}

/// A package that a server needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Debian's name of it.
    pub package: String,
    /// A file that is there once it is installed.
    pub proof: PathBuf,
}

/// A value for each parameter of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(Names);

/// Where a server lives.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Its own directory, an absolute path.
    pub directory: &'a Path,
    /// An address for each of its ports, by name.
    pub ports: &'a [(&'a str, SocketAddr)],
}

/// What one server is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// To be written before it is started.
    pub files: Vec<ServerFile>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What prints the program's version; empty if nothing does.
    pub version: Vec<String>,
    /// What must be installed.
    pub needs: Vec<Need>,
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile {
    /// In the server's directory.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// The target of this project that is called `name`.
#[must_use]
pub fn builtin(name: &str) -> Option<Target> {
    let (_, text, templates) = BUILTIN.iter().find(|(known, ..)| *known == name)?;
    Some(Target::parse(&format!("{name}.toml"), text, templates).expect("a test parses each"))
}

impl Target {
    /// Reads a target's file, whose name is `place`, with the templates that it names: name and text.
    ///
    /// # Errors
    /// All that is wrong with it, each with its line: keys, types, defaults, missing templates.
    pub fn parse(place: &str, text: &str, templates: &[(&str, &str)]) -> Result<Self, Faults> {
        let file: File = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(1, |span| line(text, span.start));
            Fault::new(format!("{place}:{at}"), error.message())
        })?;
        let mut faults = Vec::new();
        for (name, param) in &file.param {
            let at = format!("{place}:{}", line(text, param.span().start));
            let given = default(param.get_ref());
            faults.extend(check(&at, name, param.get_ref(), &given).err());
        }
        for needed in file.file.iter().filter_map(|file| file.template.as_deref()) {
            if !templates.iter().any(|(name, _)| *name == needed) {
                faults.push(Fault::new(place, format!("there is no template {needed}")));
            }
        }
        for file in file
            .file
            .iter()
            .filter(|file| file.text.is_some() == file.template.is_some())
        {
            let what = format!("the file {} needs either `text` or `template`", file.path);
            faults.push(Fault::new(place, what));
        }
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let templates = templates.iter().map(own).collect();
        let place = place.to_owned();
        Faults(faults).or(Self {
            file,
            place,
            templates,
        })
    }

    /// How it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// A value for each parameter: those of `set`, and defaults.
    ///
    /// # Errors
    /// All unknown parameters, and all values that are not of their parameter's type.
    pub fn settings(&self, set: &[(&str, &str)]) -> Result<Settings, Faults> {
        let mut faults = Vec::new();
        let mut names = Names::new();
        for (name, param) in &self.file.param {
            let given = set.iter().rev().find(|(key, _)| key == name);
            let given =
                given.map_or_else(|| default(param.get_ref()), |(_, text)| (*text).to_owned());
            match check(&self.place, name, param.get_ref(), &given) {
                Ok(value) => drop(names.insert(name.clone(), value)),
                Err(fault) => faults.push(fault),
            }
        }
        for (name, _) in set
            .iter()
            .filter(|(name, _)| !self.file.param.contains_key(*name))
        {
            let known: Vec<&str> = self.file.param.keys().map(String::as_str).collect();
            let what = format!("no parameter `{name}`; there are {}", known.join(" "));
            faults.push(Fault::new(&self.place, what));
        }
        Faults(faults).or(Settings(names))
    }

    /// The server that these settings make at `place`.
    ///
    /// # Errors
    /// A port without an address, a template that names something unknown, a path that leads out of
    /// the directory: all of them.
    pub fn render(&self, settings: &Settings, place: &Place<'_>) -> Result<Server, Faults> {
        let mut faults = Vec::new();
        let names = self.names(settings, place, &mut faults);
        let (file, own) = (&self.file, self.place.as_str());
        let mut text = Rendering { names, own, faults };
        let command = file.command.iter().map(|word| text.inline(word)).collect();
        let version = file.version.iter().map(|word| text.inline(word)).collect();
        let mut files = Vec::new();
        for keys in &file.file {
            let path = PathBuf::from(text.inline(&keys.path));
            if !path
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
            {
                let what = format!("the path {} leads out of the directory", path.display());
                text.faults.push(Fault::new(own, what));
            }
            let template = keys
                .template
                .as_ref()
                .and_then(|name| self.templates.get_key_value(name));
            let body = match template {
                Some((name, body)) => text.file(name, body),
                None => text.inline(keys.text.as_deref().unwrap_or_default()),
            };
            files.push(ServerFile { path, text: body });
        }
        let mut needs = Vec::new();
        for need in &file.needs {
            let when = need.when.as_deref().map(|when| text.inline(when));
            if when.is_none_or(|when| when.eq_ignore_ascii_case("true")) {
                let (package, proof) = (need.package.clone(), PathBuf::from(&need.proof));
                needs.push(Need { package, proof });
            }
        }
        Faults(text.faults).or(Server {
            files,
            command,
            version,
            needs,
        })
    }

    /// What templates may name: parameters, `dir`, and each port as `ADDRESS:PORT`.
    fn names(&self, settings: &Settings, place: &Place<'_>, faults: &mut Vec<Fault>) -> Names {
        let mut names = settings.0.clone();
        names.insert(
            "dir".to_owned(),
            Value::from(place.directory.to_string_lossy()),
        );
        for port in &self.file.ports {
            match place.ports.iter().find(|(name, _)| name == port) {
                Some((_, address)) => {
                    names.insert(port.clone(), Value::from(address.to_string()));
                }
                None => {
                    faults.push(Fault::new(
                        &self.place,
                        format!("no address for port {port}"),
                    ));
                    // So that templates are not blamed for it.
                    names.insert(port.clone(), Value::from("127.0.0.1:0"));
                }
            }
        }
        names
    }
}

/// Texts being rendered; a text that is at fault becomes empty.
struct Rendering<'a> {
    names: Names,
    /// The target's file.
    own: &'a str,
    faults: Vec<Fault>,
}

impl Rendering<'_> {
    /// A text of the target's file.
    fn inline(&mut self, text: &str) -> String {
        render(self.own, text, &self.names).unwrap_or_else(|Fault { what, .. }| {
            let what = format!("{what}, in {text}");
            self.faults.push(Fault::new(self.own, what));
            String::new()
        })
    }

    /// The template `name`.
    fn file(&mut self, name: &str, text: &str) -> String {
        render(name, text, &self.names).unwrap_or_else(|fault| {
            self.faults.push(fault);
            String::new()
        })
    }
}

fn default(param: &Param) -> String {
    match &param.default {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The value for templates that `text` is for a parameter.
fn check(place: &str, name: &str, param: &Param, text: &str) -> Result<Value, Fault> {
    let wrong = |what: String| Err(Fault::new(place, format!("{name} = {text}: {what}")));
    if !param.values.is_empty() && !param.values.iter().any(|value| value == text) {
        return wrong(format!("it is one of {}", param.values.join(" ")));
    }
    match param.kind {
        Kind::Text => Ok(Value::from(text)),
        Kind::Count => match text.parse::<u64>() {
            Ok(count) => Ok(Value::from(count)),
            Err(_) => wrong("it is a whole number from 0".to_owned()),
        },
        Kind::Duration => match catamaran_units::parse_duration(text) {
            Ok(_) => Ok(Value::from(text)),
            Err(error) => wrong(error.to_string()),
        },
    }
}

/// Name, file, templates.
type Builtin = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const BUILTIN: &[Builtin] = &[
    (
        "httpd",
        include_str!("../targets/httpd.toml"),
        &[("httpd.conf.j2", include_str!("../targets/httpd.conf.j2"))],
    ),
    (
        "nginx",
        include_str!("../targets/nginx.toml"),
        &[("nginx.conf.j2", include_str!("../targets/nginx.conf.j2"))],
    ),
];

#[cfg(test)]
mod tests;
