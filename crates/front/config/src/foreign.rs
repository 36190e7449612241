//! Says what a directive of another server is called in this file, for a key that this file does not
//! know.
//!
//! The directives are data in `foreign.txt`, whose head says how a row is read. The table is read when
//! the first unknown key is found.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What this file has in place of each directive of that name, of any server; empty if no server has such a directive.
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

/// What a directive of another server decides about requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nature {
    /// Which clients may do what.
    Access,
    /// What the response is: types, fields, filters, handlers, bodies.
    Content {
        /// Whether the directive only says how files are sent.
        of_files: bool,
    },
    /// What the application believes about its clients.
    Identity,
    /// By which addresses, and with which verification, connections are made.
    Transport,
    /// Nothing that matters: without the directive the same requests are answered in the same way.
    Harmless,
}

impl Nature {
    /// The nature of this name in a heading of the table.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "access" => Self::Access,
            "content" => Self::Content { of_files: false },
            "content of files" => Self::Content { of_files: true },
            "identity" => Self::Identity,
            "transport" => Self::Transport,
            "harmless" => Self::Harmless,
            _ => return None,
        })
    }
}

/// A directive of another server, by the name that the server has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignDirective {
    /// The name; with `*` at its end it stands for all names that begin so.
    pub name: &'static str,
    /// What the directive decides.
    pub nature: Nature,
}

/// All directives of `server` (`mod_jk`, `httpd` or `nginx`) that have a [`Nature`], in the table's order.
pub fn foreign_directives(server: &str) -> impl Iterator<Item = ForeignDirective> {
    let rows = INDEX.rows.iter().filter(move |row| row.server == server);
    rows.filter_map(|row| Some((row, row.nature?)))
        .flat_map(|(row, nature)| {
            let names = row.names.iter();
            names.map(move |name| ForeignDirective { name, nature })
        })
}

/// What this file has in place of a directive of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignAnswer {
    /// What the directive decides; `None`: the name is a parameter of directives.
    pub nature: Option<Nature>,
    /// Whether the directive can be dropped, because nothing is needed in its place.
    pub is_needless: bool,
    /// What to write instead of the directive, or why there is nothing to write.
    pub text: &'static str,
}

/// What this file has in place of a directive of `server` (`mod_jk`, `httpd` or `nginx`); `None` if the directive is
/// not known.
#[must_use]
pub fn foreign_answer(server: &str, name: &str) -> Option<ForeignAnswer> {
    let form = spelling(name);
    let exact = INDEX.spelled.get(&form).into_iter().flatten();
    let numbers = exact.chain(beginnings(&form)).map(|it| it.0);
    let row = numbers
        .map(|number| &INDEX.rows[number])
        .find(|row| row.server == server)?;
    Some(ForeignAnswer {
        nature: row.nature,
        is_needless: row.kind == DirectiveKind::NotNeeded,
        text: row.text,
    })
}

/// The rows whose name ends in `*` and stands for a name of this spelling: the number of each and the name; the longest
/// beginning comes first.
fn beginnings(form: &str) -> impl Iterator<Item = &'static (usize, &'static str)> {
    let starts = (1..=form.len()).rev().filter_map(|end| form.get(..end));
    starts.flat_map(|start| INDEX.starts.get(start).into_iter().flatten())
}

/// Whether `name` is exactly a directive of another server for which this file has something else than
/// the key or table `meant`.
pub(crate) fn is_other(name: &str, meant: &str) -> bool {
    let answers = answers_by(name, spelling, &INDEX.spelled);
    let quoted = format!("`{meant}`");
    !answers.is_empty() && !answers.iter().any(|answer| answer.contains(&quoted))
}

/// The answers of the rows that have a name with the same `form` as `name`.
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
    /// The names that end in `*`, by the spelling of what stands before it. Keys of this file are not looked up here:
    /// too many words begin so.
    starts: RowsByName,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let rows: Vec<Row> = rows().collect();
    let by = |form: fn(&str) -> String, begins: bool| {
        let mut known = RowsByName::new();
        for (number, row) in rows.iter().enumerate() {
            for name in &row.names {
                let start = name.strip_suffix('*');
                if start.is_some() == begins {
                    let form = form(start.unwrap_or(name));
                    known.entry(form).or_default().push((number, *name));
                }
            }
        }
        known
    };
    let (spelled, loose) = (by(spelling, false), by(letters, false));
    let starts = by(spelling, true);
    Index {
        rows,
        spelled,
        loose,
        starts,
    }
});

/// One row of the table: the directives of a server that have one answer.
struct Row {
    server: &'static str,
    nature: Option<Nature>,
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
    /// The answer for the directive that is spelled `name`, as a part of a hint.
    fn answer(&self, name: &str) -> String {
        let (server, text) = (self.server, self.text);
        match self.kind {
            DirectiveKind::Ours => format!("{server}'s `{name}` is here: {text}"),
            DirectiveKind::NotYet => format!("{server}'s `{name}` is not available yet: {text}"),
            DirectiveKind::NotNeeded => format!("{server}'s `{name}` is not needed: {text}"),
        }
    }
}

/// Reads the rows of the table. A heading such as `[nginx, NATURE]` holds for the rows below it.
fn rows() -> impl Iterator<Item = Row> {
    let mut server = "";
    let mut nature = None;
    TABLE.lines().filter_map(move |line| {
        if let Some(heading) = line.strip_prefix('[') {
            let heading = heading.trim_end_matches(']');
            let (name, what) = heading.split_once(", ").unwrap_or((heading, ""));
            server = name;
            nature = Nature::named(what);
            return None;
        }
        if line.starts_with('#') {
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
        // The text may contain signs too: the first of a line counts.
        let (names, kind, text) = parts.min_by_key(|(names, ..)| names.len())?;
        Some(Row {
            server,
            nature,
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
