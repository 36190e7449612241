//! Says what a directive of another server is called in this file, for a key that this file does not
//! know.
//!
//! The directives are data in `foreign.txt`, whose head says how a row is read. The table is read when
//! the first unknown key is found.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What this file has for each server's directive of that name; empty if no server has such a
/// directive.
///
/// If no directive is spelled like this, names that differ only in `_`, `-` and `.` count.
pub(crate) fn answers(name: &str) -> Vec<String> {
    let spelled = answers_by(name, spelling, &INDEX.spelled);
    if spelled.is_empty() {
        answers_by(name, letters, &INDEX.loose)
    } else {
        spelled
    }
}

/// What this file has for a directive of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignAnswer {
    /// Whether the directive can be dropped, because nothing is needed in its place.
    pub is_needless: bool,
    /// What to write in its place, or why there is nothing.
    pub text: &'static str,
}

/// What this file has for a directive of `server` (`mod_jk`, `httpd` or `nginx`); `None` if the
/// directive is not known.
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

/// Whether `name` is exactly a directive of another server for which this file has something else than
/// the key or table `meant`.
pub(crate) fn is_other(name: &str, meant: &str) -> bool {
    let answers = answers_by(name, spelling, &INDEX.spelled);
    let quoted = format!("`{meant}`");
    !answers.is_empty() && !answers.iter().any(|answer| answer.contains(&quoted))
}

/// The answers of the rows that have a name whose form is that of `name`.
fn answers_by(name: &str, form: fn(&str) -> String, known: &RowsByName) -> Vec<String> {
    let matches = known.get(&form(name)).map(Vec::as_slice);
    let found = matches.unwrap_or_default().iter();
    found
        .map(|(row, name)| INDEX.rows[*row].answer(name))
        .collect()
}

/// The numbers of rows by a form of their names, each with the name as the server spells it.
type RowsByName = HashMap<String, Vec<(usize, &'static str)>>;

/// The table with its indexes. It is built only once, because a file may have very many unknown keys.
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

/// One row of the table: the directives of a server that have one answer.
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

/// A name in the spelling of TOML keys: in lower case, with `_` for `-`.
fn spelling(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// A name without the characters that separate its words.
fn letters(name: &str) -> String {
    spelling(name).replace(['_', '.'], "")
}

const TABLE: &str = include_str!("foreign.txt");

#[cfg(test)]
mod tests;
