//! Doors that were found, one in each file of `doors/`: the configuration, the request that shows the door, and the
//! source's response. `open.txt` names doors that are known and not closed yet: they are tried and reported, but do
//! not fail a run.
//!
//! ```text
//! # refused: a sentence on it
//! # server nginx
//! # from 127.0.0.1 to a
//! # GET /admin
//! # Host: a.org
//! # right 403
//! server { … }
//! #### inc0.conf
//! …
//! ```

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::ask::Ask;
use crate::duel::{Duel, Finding, Tally};
use crate::stage::{Addresses, Kind};
use crate::tree::{Conf, MAIN};

/// A door of the corpus.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) kind: Kind,
    pub(crate) ask: Option<Ask>,
    /// The source's response, as one line.
    pub(crate) right: String,
    pub(crate) conf: Conf,
}

impl Case {
    /// The case of a finding; the title says by which seed it was found and what the import responds.
    pub(crate) fn of(kind: Kind, seed: u64, finding: &Finding) -> Self {
        Self {
            title: format!(
                "{}: seed {seed}; the import: {}",
                finding.door.name(),
                finding.ours.lines().next().unwrap_or_default()
            ),
            kind,
            ask: finding.ask.clone(),
            right: finding.theirs.clone(),
            conf: finding.conf.clone(),
        }
    }

    /// The file of the case: a head of comments, then the configuration and the files that it includes.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("# {}\n# server {}\n", self.title, self.kind.name());
        if let Some(ask) = &self.ask {
            for line in ask.lines().lines() {
                text += &format!("# {line}\n");
            }
        }
        text += &format!("# right {}\n", self.right);
        for (name, content) in &self.conf.0 {
            if name != MAIN {
                text += &format!("{OTHER}{name}\n");
            }
            text += content;
        }
        text
    }

    /// Reads what [`Case::text`] wrote. The last comment of the head is the right response; those before it are the
    /// request.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let head: Vec<&str> = text
            .lines()
            .map_while(|line| line.strip_prefix("# "))
            .collect();
        let [title, server, ask @ .., right] = head.as_slice() else {
            anyhow::bail!("a door has a head of three lines at least");
        };
        let body = text.split_inclusive('\n').skip(head.len());
        let mut files = vec![(MAIN.to_owned(), String::new())];
        for line in body {
            match line.strip_prefix(OTHER) {
                Some(name) => files.push((name.trim().to_owned(), String::new())),
                None => files.last_mut().expect("the main file").1 += line,
            }
        }
        let kind = server.strip_prefix("server ").and_then(Kind::parse);
        Ok(Self {
            title: (*title).to_owned(),
            kind: kind.context("no `server`")?,
            ask: if ask.is_empty() {
                None
            } else {
                Some(Ask::parse(ask)?)
            },
            right: right.strip_prefix("right ").unwrap_or_default().to_owned(),
            conf: Conf(files),
        })
    }
}

/// The results of trying the doors of the folder.
#[derive(Default)]
pub(crate) struct Tried {
    pub(crate) count: usize,
    /// Doors that are open and that `open.txt` does not name.
    pub(crate) open_again: Vec<(String, Finding)>,
    /// Doors that are open as `open.txt` says.
    pub(crate) open_still: Vec<String>,
    /// Doors that are closed although `open.txt` names them.
    pub(crate) mended: Vec<String>,
}

/// Tries the doors of the folder that are of these kinds.
pub(crate) fn run(folder: &Path, kinds: &[Kind], addresses: &Addresses) -> anyhow::Result<Tried> {
    let open = fs::read_to_string(folder.join(OPEN)).context(OPEN)?;
    let open: Vec<&str> = open.lines().collect();
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|it| it.map(|it| it.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_, _>>()?;
    names.retain(|it| it != OPEN);
    names.sort();
    let mut tried = Tried::default();
    for name in names {
        let case = fs::read_to_string(folder.join(&name))?;
        let case = Case::parse(&case).with_context(|| name.clone())?;
        if !kinds.contains(&case.kind) {
            continue;
        }
        tried.count += 1;
        let is_named = open.contains(&name.as_str());
        match found_again(&case, addresses).with_context(|| name.clone())? {
            None if is_named => tried.mended.push(name),
            None => {}
            Some(_) if is_named => tried.open_still.push(name),
            Some(finding) => tried.open_again.push((name, finding)),
        }
    }
    Ok(tried)
}

/// Tries a case; `None` if its door is closed.
fn found_again(case: &Case, addresses: &Addresses) -> anyhow::Result<Option<Finding>> {
    let duel = Duel {
        kind: case.kind,
        addresses,
    };
    let asks: Vec<Ask> = case.ask.iter().cloned().collect();
    let mut tally = Tally::default();
    let findings = duel.compare(&case.conf, &case.conf, &asks, &mut tally)?;
    ensure!(tally.refused == 0, "its own server refuses it");
    Ok(findings.into_iter().next())
}

/// The file that names doors which are known and not closed yet.
const OPEN: &str = "open.txt";

const OTHER: &str = "#### ";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Body, HTTP_1_0};

    #[test]
    fn what_is_written_is_read() {
        let ask = Ask {
            client: 2,
            listener: 1,
            version: HTTP_1_0,
            ..Ask::get("/admin", "a.org")
        };
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let case = Case {
            title: "refused: seed 1".to_owned(),
            kind: Kind::Nginx,
            ask: Some(ask),
            right: "403".to_owned(),
            conf: Conf(vec![file(MAIN, "a;\n"), file("inc.conf", "b;\n")]),
        };
        assert_eq!(Case::parse(&case.text()).unwrap(), case);
        for is_chunked in [false, true] {
            let body = Body {
                length: 1025,
                is_chunked,
            };
            let ask = case.ask.clone().map(|it| Ask {
                body: Some(body),
                ..it
            });
            let case = Case {
                title: case.title.clone(),
                right: case.right.clone(),
                conf: case.conf.clone(),
                ask,
                ..case
            };
            assert_eq!(Case::parse(&case.text()).unwrap(), case);
        }
        let case = Case { ask: None, ..case };
        assert_eq!(Case::parse(&case.text()).unwrap(), case);
    }
}
