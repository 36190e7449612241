//! The directives of other servers: what a key that this file does not know is called here, if it is
//! one of theirs.
//!
//! The directives are data, in `foreign.txt`, whose head says how a row is read. The table is read when
//! the first key is at fault.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What is here for each server's directive of that name; empty when there is none.
pub(crate) fn answers(name: &str) -> Vec<String> {
    let spelled = answers_by(name, spelling, &INDEX.spelled);
    if spelled.is_empty() {
        answers_by(name, letters, &INDEX.loose)
    } else {
        spelled
    }
}

/// What is here for a directive of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignAnswer {
    /// Whether nothing is needed in its place.
    pub is_needless: bool,
    /// What stands for it, or why nothing does.
    pub text: &'static str,
}

/// What is here for a directive of `server` (`mod_jk`, `httpd`, `nginx`); `None` if it is not known.
#[must_use]
pub fn foreign_answer(server: &str, name: &str) -> Option<ForeignAnswer> {
    let known = INDEX.spelled.get(&spelling(name))?;
    let rows = known.iter().map(|(row, _)| &INDEX.rows[*row]);
    let row = rows.into_iter().find(|row| row.server == server)?;
    Some(ForeignAnswer {
        is_needless: row.kind == DirectiveKind::NotNeeded,
        text: row.text,
    })
}

/// Whether a name is exactly a directive, and what is here for it is not the key or table `meant`.
pub(crate) fn is_other(name: &str, meant: &str) -> bool {
    let answers = answers_by(name, spelling, &INDEX.spelled);
    let quoted = format!("`{meant}`");
    !answers.is_empty() && !answers.iter().any(|answer| answer.contains(&quoted))
}

/// The answers of rows with a name that is the same in that form.
fn answers_by(name: &str, form: fn(&str) -> String, known: &RowsByName) -> Vec<String> {
    let matches = known.get(&form(name)).map(Vec::as_slice);
    let found = matches.unwrap_or_default().iter();
    found
        .map(|(row, name)| INDEX.rows[*row].answer(name))
        .collect()
}

/// Rows by a form of their names, with the name as the server has it.
type RowsByName = HashMap<String, Vec<(usize, &'static str)>>;

/// The table, read once: a file may have very many keys that are unknown.
struct Index {
    rows: Vec<Row>,
    spelled: RowsByName,
    loose: RowsByName,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let rows: Vec<Row> = rows().collect();
    let by = |form: fn(&str) -> String| {
        let mut known = RowsByName::new();
        for (number, row) in rows.iter().enumerate() {
            for name in &row.names {
                known.entry(form(name)).or_default().push((number, *name));
            }
        }
        known
    };
    let (spelled, loose) = (by(spelling), by(letters));
    Index {
        rows,
        spelled,
        loose,
    }
});

/// One row of the table.
struct Row {
    server: &'static str,
    names: Vec<&'static str>,
    kind: DirectiveKind,
    text: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DirectiveKind {
    Ours,
    NotYet,
    NotNeeded,
}

impl Row {
    fn answer(&self, name: &str) -> String {
        let (server, text) = (self.server, self.text);
        match self.kind {
            DirectiveKind::Ours => format!("{server}'s `{name}` is here: {text}"),
            DirectiveKind::NotYet => format!("{server}'s `{name}` is not available yet: {text}"),
            DirectiveKind::NotNeeded => format!("{server}'s `{name}` is not needed: {text}"),
        }
    }
}

fn rows() -> impl Iterator<Item = Row> {
    let mut server = "";
    TABLE.lines().filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[') {
            server = name.trim_end_matches(']');
            return None;
        }
        let kinds = [
            (" = ", DirectiveKind::Ours),
            (" ~ ", DirectiveKind::NotYet),
            (" - ", DirectiveKind::NotNeeded),
        ];
        let parts = kinds.iter().filter_map(|(sign, kind)| {
            let (names, text) = line.split_once(sign)?;
            Some((names, *kind, text))
        });
        let (names, kind, text) = parts.min_by_key(|(names, ..)| names.len())?;
        (!line.starts_with('#')).then(|| Row {
            server,
            names: names.split(' ').collect(),
            kind,
            text,
        })
    })
}

/// A name as one may write it in TOML.
fn spelling(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// A name without the signs that part its words.
fn letters(name: &str) -> String {
    spelling(name).replace(['_', '.'], "")
}

const TABLE: &str = include_str!("foreign.txt");

#[cfg(test)]
mod tests;
