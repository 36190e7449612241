//! What is said of a file, and whether it comes true on the disk.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::client::Answered;
use super::request::Request;

/// A file that is said to be served if it is there.
pub(super) struct SaidFile<'e> {
    path: PathBuf,
    /// Whether it is said to stand for the directory.
    is_directory: bool,
    /// The path that the client sent, normalised.
    sent: &'e str,
    /// What is said to stand for a directory.
    index: Vec<&'e str>,
    /// What is said to stand in for a page that is missing.
    fallback: Option<&'e str>,
    /// Whether nobody else is asked without it.
    is_alone: bool,
}

/// What the disk makes of it.
enum OnDisk {
    File(PathBuf),
    /// The client is to ask with a slash at the end.
    Slash,
    Missing,
}

/// What became of the request.
pub(super) enum Became {
    /// As said, and nobody else is to have it.
    Answered(&'static str),
    /// There is no file: it goes on.
    GoesOn,
}

impl<'e> SaidFile<'e> {
    /// What an explanation says of a file; `None` if none is said to be looked for.
    pub(super) fn of(explained: &'e Value) -> Option<Self> {
        let rules = explained["then"].as_array().map_or(&[][..], Vec::as_slice);
        let rules = || rules.iter().filter_map(Value::as_str);
        let is_alone = explained["answer"]["reason"] == "file";
        let text = if is_alone {
            let text = explained["answer"]["text"].as_str()?;
            text.strip_suffix(", or 404 without it")?
        } else {
            rules()
                .find_map(|rule| rule.strip_suffix(" is served if it is there; else it goes on"))?
        };
        let directory = text.strip_prefix("the file that stands for the directory ");
        let path = match directory {
            Some(path) => path,
            None => text.strip_prefix("the file ")?,
        };
        let index = rules()
            .find_map(|rule| rule.strip_prefix("for a directory, the first that exists of "));
        let fallback = rules().find_map(|rule| {
            let (name, _) = rule.strip_prefix("without a file, ")?.split_once(", if ")?;
            Some(name)
        });
        Some(Self {
            path: PathBuf::from(path),
            is_directory: directory.is_some(),
            sent: explained["path"]["normal"].as_str()?,
            index: index.map_or_else(Vec::new, |names| names.split(", ").collect()),
            fallback,
            is_alone,
        })
    }

    /// Compares what was said with what was answered. `root` is the directory that is served.
    pub(super) fn compare(
        &self,
        root: &Path,
        request: &Request,
        answered: &Answered,
    ) -> Result<Became, &'static str> {
        match self.on_disk(root, request) {
            OnDisk::File(file) => {
                let status = if request.asks_for_part() { 206 } else { 200 };
                if answered.status != Some(status) {
                    return Err("another status than that of the file");
                }
                let length = file.metadata().map_or(0, |it| it.len());
                let is_known = status == 200 && !request.http2 && !request.takes_codings();
                if is_known && answered.length != Some(length) {
                    return Err("another file");
                }
                Ok(Became::Answered("file"))
            }
            OnDisk::Slash => {
                let location = answered.location.as_deref().unwrap_or_default();
                let rest = location.strip_prefix(&format!("{}/", self.sent)[..]);
                let leads = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('?'));
                if answered.status == Some(308) && (leads || request.http2) {
                    Ok(Became::Answered("directory"))
                } else {
                    Err("no redirect to the directory")
                }
            }
            OnDisk::Missing if !self.is_alone => Ok(Became::GoesOn),
            OnDisk::Missing => match answered.status {
                Some(404) => Ok(Became::Answered("no file")),
                _ => Err("another status than that of a missing file"),
            },
        }
    }

    fn on_disk(&self, root: &Path, request: &Request) -> OnDisk {
        if !self.is_directory && self.path.is_file() {
            return OnDisk::File(self.path.clone());
        }
        let names = self.index.iter();
        let mut names = names.map(|name| self.path.join(name));
        match names.find(|file| file.is_file()) {
            Some(_) if !self.sent.ends_with('/') => return OnDisk::Slash,
            Some(file) => return OnDisk::File(file),
            None => {}
        }
        let has_dot = self.path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            self.path != root && name.contains('.')
        });
        match self.fallback {
            Some(name) if request.takes_pages() && !has_dot => OnDisk::File(root.join(name)),
            _ => OnDisk::Missing,
        }
    }
}

/// Below the directory of a test: what is served of it.
pub(super) const ROOT: &str = "www";

/// Files below [`ROOT`].
pub(super) fn names() -> impl Iterator<Item = String> {
    let codings = ["app/x.gz", "app/x.br"].map(str::to_owned);
    let of_directories = DIRECTORIES
        .iter()
        .flat_map(|directory| NAMES.map(|name| format!("{directory}{name}")));
    of_directories.chain(codings)
}

/// Where routes with files lead, as a path or rewritten.
const DIRECTORIES: [&str; 10] = [
    "",
    "app/",
    "app/deep/",
    "shop/",
    "old/",
    "chat/",
    "static/",
    "adm@in/",
    "inner/",
    "x y/",
];

/// Some of what requests ask for.
const NAMES: [&str; 6] = [
    "index.html",
    "index.htm",
    "x",
    "x1.do",
    "page.jsp",
    "static/i.gif",
];
