//! Records how a server was made, in words that are the same on each machine and in each run.

use std::path::Path;

use catamaran_tier::{Process, Programs, Settings, Space};

use crate::experiment::{CellServer, OWN};
use crate::run::ServerRecord;

/// Replaces paths of this machine by stable words: `RUN` for the directory of a run, `catamaran`
/// for our own program, the file names of other programs, `~` for the home directory.
#[derive(Debug)]
pub(super) struct StableWords(Vec<(String, String)>);

impl StableWords {
    /// The words for servers in `space` that are started with `programs`.
    pub(super) fn of(space: &Space, programs: &Programs) -> Self {
        let home = std::env::home_dir().unwrap_or_default();
        Self::new(space.directory(), programs, &home)
    }

    fn new(run: &Path, programs: &Programs, home: &Path) -> Self {
        let mut words = vec![(text_of(run), "RUN".to_owned())];
        for (name, path) in programs {
            if name == OWN {
                words.push((text_of(path), OWN.to_owned()));
            } else if let Some(file) = path.file_name()
                && !path.starts_with(home)
            {
                words.push((text_of(path), file.display().to_string()));
            }
        }
        // The longest path first, since a program may be in a directory that is replaced, too.
        words.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        // A home directory of `/` would replace every path.
        if home.parent().is_some() {
            words.push((format!("{}/", home.display()), "~/".to_owned()));
        }
        words.retain(|(path, _)| !path.is_empty());
        Self(words)
    }

    /// Replaces the paths in `text` by the stable words.
    pub(super) fn text(&self, text: &str) -> String {
        let mut replaced = text.to_owned();
        for (path, word) in &self.0 {
            replaced = replaced.replace(path, word);
        }
        replaced
    }

    /// The record of a server: its version, command and settings.
    pub(super) fn record(
        &self,
        server: &CellServer,
        process: &Process,
        settings: &Settings,
    ) -> ServerRecord {
        let files = process.files().iter();
        let command = process.command().iter();
        ServerRecord {
            name: server.name.clone(),
            target: server.target.clone(),
            version: process.version(),
            command: command.map(|word| self.text(word)).collect(),
            settings: settings
                .iter()
                .map(|(name, value)| (name.to_owned(), self.text(&value)))
                .collect(),
            files: files
                .filter(|file| file.text.len() <= FILE_SHOWN_MAX)
                .map(|file| {
                    let name = self.text(&file.path.display().to_string());
                    (name, self.text(&file.text))
                })
                .collect(),
        }
    }
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// The largest file in a record, in bytes; longer ones are pages that are served.
const FILE_SHOWN_MAX: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn stable(run: &str) -> StableWords {
        let programs = [
            (OWN, "/srv/build/catamaran"),
            ("nginx_ajp", "/srv/modules/nginx_ajp.so"),
            ("tomcat-7", "/home/ann/.cache/catamaran/containers/tomcat-7"),
        ];
        let programs = programs.map(|(name, path)| (name.to_owned(), path.into()));
        StableWords::new(
            Path::new(run),
            &Programs::from(programs),
            Path::new("/home/ann"),
        )
    }

    #[test]
    fn a_record_has_no_path_of_the_machine() {
        let texts = [
            (
                "/srv/build/catamaran serve --config /tmp/catamaran-E7nPFk/web/front.toml",
                "catamaran serve --config RUN/web/front.toml",
            ),
            (
                "load_module /srv/modules/nginx_ajp.so;\npid /tmp/catamaran-E7nPFk/web/nginx.pid;",
                "load_module nginx_ajp.so;\npid RUN/web/nginx.pid;",
            ),
            (
                "/home/ann/.cache/catamaran/containers/tomcat-7/*",
                "~/.cache/catamaran/containers/tomcat-7/*",
            ),
            (
                "/usr/sbin/nginx -c nginx.conf",
                "/usr/sbin/nginx -c nginx.conf",
            ),
        ];
        for (text, recorded) in texts {
            assert_eq!(stable("/tmp/catamaran-E7nPFk").text(text), recorded);
            let other = text.replace("E7nPFk", "Qn3fz0");
            assert_eq!(stable("/tmp/catamaran-Qn3fz0").text(&other), recorded);
        }
    }

    #[test]
    fn no_home_replaces_nothing() {
        let run = Path::new("/tmp/catamaran-E7nPFk");
        for home in ["", "/"] {
            let stable = StableWords::new(run, &Programs::new(), Path::new(home));
            assert_eq!(
                stable.text("/usr/bin/java /root/x"),
                "/usr/bin/java /root/x"
            );
        }
    }
}
