//! Renders a target with settings: makes the files and the command of one server.

use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use std::time::Duration;

use catamaran_toml_file::report::{Finding, Report};
use minijinja::Value;

use super::{Place, Settings, Target, check};
use crate::file::{ActionKeys, FileKeys, NeedKeys};
use crate::server::{Action, Need, Ready, Server, ServerFile, Signal, Stop, Way};
use crate::template::{Names, render};

impl Target {
    /// The port names of a server with these settings, each as often as the target has copies.
    ///
    /// # Errors
    /// The number of copies cannot be rendered.
    pub fn ports(&self, settings: &Settings) -> Result<Vec<String>, Report> {
        let mut renderer = TargetRenderer::new(self, settings.0.clone());
        let copies = match &self.file.copies {
            Some(text) => renderer.number(text, "copies"),
            None => 1,
        };
        let mut ports = Vec::new();
        for port in &self.file.ports {
            ports.extend(std::iter::repeat_n(port.clone(), copies as usize));
        }
        renderer.report.or(ports)
    }

    /// Renders the server with these settings at `place`: its files and its commands.
    ///
    /// # Errors
    /// The report has all faults: ports without an address, templates that name something unknown,
    /// paths that lead out of the directory.
    pub fn render(&self, settings: &Settings, place: &Place<'_>) -> Result<Server, Report> {
        let mut renderer = TargetRenderer::new(self, settings.0.clone());
        renderer.add_names(place);
        let keys = &self.file;
        let files = keys.file.iter();
        let server = Server {
            files: files.map(|file| renderer.server_file(file)).collect(),
            command: renderer.words(&keys.command),
            version: renderer.words(&keys.version),
            needs: keys
                .needs
                .iter()
                .filter_map(|need| renderer.need(need, place))
                .collect(),
            ready: renderer.ready(),
            stop: self.stop(),
            reload: keys.reload.as_ref().map(|action| renderer.action(action)),
            upgrade: keys.upgrade.as_ref().map(|action| renderer.action(action)),
            alarms: keys.alarms.clone(),
            capped: keys.capped.clone(),
        };
        renderer.report.or(server)
    }

    fn stop(&self) -> Stop {
        let keys = &self.file.stop;
        Stop {
            signal: signal(keys.signal.as_deref()),
            patience: duration(keys.patience.as_deref(), PATIENCE),
        }
    }
}

/// Renders the texts of one target and collects the faults; a text with a fault becomes empty.
struct TargetRenderer<'a> {
    target: &'a Target,
    names: Names,
    report: Report,
}

impl<'a> TargetRenderer<'a> {
    fn new(target: &'a Target, names: Names) -> Self {
        Self {
            target,
            names,
            report: target.report(),
        }
    }

    /// Adds the names that templates have besides parameters: `dir`, each port as the
    /// `ADDRESS:PORT` of its first copy, `all.PORT` as the list of all copies, and `program.NAME`.
    fn add_names(&mut self, place: &Place<'_>) {
        let directory = place.directory.to_string_lossy();
        self.name("dir", Value::from(directory));
        let mut all = BTreeMap::new();
        for port in &self.target.file.ports {
            let of_port = place.ports.iter().filter(|(name, _)| name == port);
            let mut addresses: Vec<String> =
                of_port.map(|(_, address)| address.to_string()).collect();
            if addresses.is_empty() {
                self.fault(format!("no address for port {port}"));
                // A port without an address is one fault; the placeholder keeps templates from reporting more.
                addresses.push("127.0.0.1:0".to_owned());
            }
            self.name(port, Value::from(addresses[0].as_str()));
            all.insert(port.as_str(), Value::from(addresses));
        }
        self.name("all", Value::from(all));
        let mut programs: BTreeMap<String, String> = BTreeMap::new();
        for (name, path) in place.programs {
            programs.insert(name.clone(), path.display().to_string());
        }
        self.name("program", Value::from(programs));
    }

    fn name(&mut self, name: &str, value: Value) {
        self.names.insert(name.to_owned(), value);
    }

    fn fault(&mut self, what: String) {
        self.report.push(Finding::absence(what));
    }

    fn words(&mut self, words: &[String]) -> Vec<String> {
        words.iter().map(|word| self.inline(word)).collect()
    }

    /// Renders a text of the target's file; empty after a fault.
    fn inline(&mut self, text: &str) -> String {
        render(&self.target.place, text, &self.names).unwrap_or_else(|fault| {
            self.fault(format!("{}, in {text}", fault.what));
            String::new()
        })
    }

    /// Renders a text of the target's file that must be a number.
    fn number(&mut self, text: &str, key: &str) -> u64 {
        let rendered = self.inline(text);
        rendered.trim().parse().unwrap_or_else(|_| {
            // An empty text may have had a fault, which is reported already.
            if !rendered.is_empty() {
                self.fault(format!("{key} = {rendered}: it is a whole number from 0"));
            }
            0
        })
    }

    /// Renders a file of the server. A path that leads out of its directory is a fault.
    fn server_file(&mut self, keys: &FileKeys) -> ServerFile {
        let path = PathBuf::from(self.inline(&keys.path));
        let mut parts = path.components();
        if !parts.all(|part| matches!(part, Component::Normal(_))) {
            let path = path.display();
            self.fault(format!("the path {path} leads out of the directory"));
        }
        let template = keys.template.as_ref();
        let template = template.and_then(|name| self.target.templates.get_key_value(name));
        let text = match template {
            Some((name, body)) => self.template(name, body),
            None => self.inline(keys.text.as_deref().unwrap_or_default()),
        };
        ServerFile { path, text }
    }

    /// Renders a template beside the target's file; empty after a fault, which is reported at its line.
    fn template(&mut self, name: &str, body: &str) -> String {
        render(name, body, &self.names).unwrap_or_else(|fault| {
            let start = self.report.add(name, body);
            let line = fault.line(body);
            let range = start + line.start..start + line.end;
            self.report.push(Finding::fault(fault.what, range));
            String::new()
        })
    }

    /// Renders a requirement; `None` if its condition is not `true`. A program that the caller has not named has an
    /// empty path, so that it counts as missing.
    fn need(&mut self, keys: &NeedKeys, place: &Place<'_>) -> Option<Need> {
        if let Some(condition) = &keys.when
            && !self.inline(condition).eq_ignore_ascii_case("true")
        {
            return None;
        }
        Some(match &keys.program {
            Some(program) => Need {
                package: None,
                proof: place.programs.get(program).cloned().unwrap_or_default(),
            },
            None => Need {
                package: keys.package.clone(),
                proof: PathBuf::from(keys.proof.as_deref().unwrap_or_default()),
            },
        })
    }

    /// Renders the test of whether the server serves; keys that the file leaves out have their defaults.
    fn ready(&mut self) -> Ready {
        let keys = &self.target.file.ready;
        let first = self.target.file.ports.first();
        Ready {
            port: keys.port.as_ref().or(first).cloned().unwrap_or_default(),
            get: keys.get.as_deref().map(|path| self.inline(path)),
            status: keys.status.unwrap_or(200),
            length: keys
                .length
                .as_deref()
                .map(|text| self.number(text, "ready.length")),
            within: duration(keys.within.as_deref(), WITHIN),
        }
    }

    fn action(&mut self, keys: &ActionKeys) -> Action {
        let way = match &keys.signal {
            Some(name) => Way::Signal(signal(Some(name))),
            None => Way::Command(self.words(&keys.command)),
        };
        let done = self.inline(&keys.done);
        Action { way, done }
    }
}

/// The signal called `name`, which was checked when the file was read; TERM if `None`.
fn signal(name: Option<&str>) -> Signal {
    name.and_then(Signal::named).unwrap_or(Signal::Term)
}

/// The duration `text`, which was checked when the file was read; `default` if `None`.
fn duration(text: Option<&str>, default: Duration) -> Duration {
    text.and_then(|text| check::duration(text).ok())
        .unwrap_or(default)
}

/// The time that a server has until it serves, by default: Java on a busy machine takes longest.
const WITHIN: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(5);
