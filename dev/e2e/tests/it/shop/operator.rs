//! An operator who types what `docs/sessions.md` prints.

use std::collections::BTreeSet;
use std::path::Path;

use catamaran_e2e::catamaran;
use catamaran_testkit::{Deadline, Process};
use serde_json::Value;

/// Knows the commands of the document, and which of them were not typed yet.
pub(super) struct Operator {
    /// Address of the admin socket.
    admin: String,
    left: BTreeSet<String>,
    documented: BTreeSet<String>,
}

impl Operator {
    /// For the front whose admin socket is here.
    pub(super) fn at(socket: &Path) -> Self {
        let documented = documented();
        assert!(documented.len() > 8, "{documented:?}");
        Self {
            admin: format!("unix:{}", socket.display()),
            left: documented.clone(),
            documented,
        }
    }

    /// Starts a command of the document.
    pub(super) fn begin(&mut self, command: &str) -> Process {
        assert!(
            self.documented.contains(command),
            "docs/sessions.md has no {command:?}"
        );
        self.left.remove(command);
        self.start(command)
    }

    /// Types a command of the document, which must succeed; gives what it said.
    pub(super) fn types(&mut self, command: &str) -> String {
        let process = self.begin(command);
        done(command, process)
    }

    /// Types a command that the document has not, or not with these values.
    pub(super) fn types_also(&self, command: &str) -> String {
        done(command, self.start(command))
    }

    /// What the front says of a backend of `tomcat`.
    pub(super) fn asks(&self, backend: &str) -> Value {
        let said = self.types_also("catamaran status --json");
        let status: Value = serde_json::from_str(&said).unwrap();
        let backends = status["upstreams"][0]["backends"].as_array().unwrap();
        let mut backends = backends.iter();
        let found = backends.find(|one| one["name"] == backend);
        found
            .unwrap_or_else(|| panic!("{backend} in {said}"))
            .clone()
    }

    /// Every command of the document was typed.
    pub(super) fn is_through(&self) {
        assert!(self.left.is_empty(), "never typed: {:?}", self.left);
    }

    fn start(&self, command: &str) -> Process {
        let words = command.split(' ').skip(1).chain(["--admin", &self.admin]);
        catamaran(&words.collect::<Vec<_>>()).unwrap()
    }
}

/// Waits for the end of a command that must succeed.
pub(super) fn done(command: &str, mut process: Process) -> String {
    let status = process.wait(Deadline::default()).unwrap();
    let said = process.stdout() + &process.stderr();
    assert_eq!(status.code(), Some(0), "{command}: {said}");
    said
}

/// The configuration at the document's beginning.
pub(super) fn configuration() -> &'static str {
    let (_, rest) = DOCUMENT.split_once("```toml\n").unwrap();
    rest.split_once("```").unwrap().0
}

/// What the document says of taking a backend out of service: lines of blocks, and cells of tables.
fn documented() -> BTreeSet<String> {
    let heading = "\n## Taking a backend out of service\n";
    let (_, section) = DOCUMENT.split_once(heading).unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let pieces = section.lines().flat_map(|line| line.split('`'));
    let commands = pieces.filter(|piece| piece.starts_with("catamaran "));
    commands.map(str::to_owned).collect()
}

const DOCUMENT: &str = include_str!("../../../../../docs/sessions.md");
