//! `include`: reads the files that a file names, and merges them into one table.
//!
//! First all texts are collected, each after the file that includes it. Then each is parsed, and its
//! tables are added to those before it. Lists of tables such as `[[route]]` are appended; a table or
//! key that two files define is a fault that names both places.

pub(crate) mod pattern;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pattern::{FILES_MAX, IncludePattern};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::read_files::ReadFiles;
use crate::report::{Finding, Report};
use crate::syntax::shifted;
use crate::value::Values as _;
use crate::value::text::{FilePath, file_path};
use crate::variables::{self, Variables};

/// The name of the key, which stands at the top of a file.
pub(crate) const NAME: &str = "include";

/// How included files are found and read.
#[derive(Clone, Copy)]
pub(crate) struct Includes<'r> {
    /// The path of the file that was asked for.
    pub(crate) path: &'r Path,
    /// Reads the text of a file that has at most this many bytes.
    pub(crate) read: &'r dyn Fn(&Path, usize) -> io::Result<String>,
    /// The most bytes of all files together.
    pub(crate) bytes_max: usize,
    /// Where each file is recorded before it is read, and each pattern.
    pub(crate) record: &'r RefCell<ReadFiles>,
}

/// Reads the files that a text includes, and those that they include. Adds their texts to the report,
/// and returns them in the same order.
pub(crate) fn collect(
    text: &str,
    includes: Option<Includes<'_>>,
    variables: Variables<'_>,
    report: &mut Report,
) -> Vec<String> {
    let Some(includes) = includes else {
        refuse(text, report);
        return Vec::new();
    };
    let mut collector = Collector {
        read: includes.read,
        record: includes.record,
        variables,
        report,
        bytes_left: includes.bytes_max.saturating_sub(text.len()),
        open: vec![real(includes.path)],
        seen: HashMap::new(),
        texts: Vec::new(),
    };
    collector.of_text(includes.path, 0, text);
    collector.texts
}

/// Faults `include` if no files may be read; then no directory is searched, either.
fn refuse(text: &str, report: &mut Report) {
    if !text.contains(NAME) {
        return;
    }
    let root = DeTable::parse(text).ok();
    if let Some(value) = root.as_ref().and_then(|root| root.get_ref().get(NAME)) {
        let message = format!("`{NAME}` is not followed: files are not read from here");
        report.push(Finding::fault(message, value.span()));
    }
}

struct Collector<'c> {
    read: &'c dyn Fn(&Path, usize) -> io::Result<String>,
    record: &'c RefCell<ReadFiles>,
    variables: Variables<'c>,
    report: &'c mut Report,
    bytes_left: usize,
    /// The files that are being read, each included by the one before it, to find a file that
    /// includes itself.
    open: Vec<PathBuf>,
    /// The place at which each file was included first.
    seen: HashMap<PathBuf, usize>,
    texts: Vec<String>,
}

impl Collector<'_> {
    /// Reads the files that `include` of a text names. `start` is the offset of the first byte of the
    /// text.
    fn of_text(&mut self, path: &Path, start: usize, text: &str) {
        if !text.contains(NAME) {
            return;
        }
        // If the syntax is broken, what the parser takes for `include` may be a guess.
        let Ok(root) = DeTable::parse(text) else {
            return;
        };
        let Some(value) = root.get_ref().get(NAME) else {
            return;
        };
        let base = path.parent().unwrap_or_else(|| Path::new(""));
        let items = match value.get_ref().as_array() {
            Some(items) => items,
            None => std::slice::from_ref(value),
        };
        for item in items {
            let place = shifted(item.span(), start);
            match self.pattern(item, &place) {
                Ok(pattern) => self.of_pattern(&pattern, base, &place),
                Err(findings) => {
                    for finding in findings {
                        self.report.push(finding);
                    }
                }
            }
        }
    }

    /// The pattern of an `include`, with its variables expanded.
    fn pattern(
        &self,
        item: &Spanned<DeValue<'_>>,
        place: &Range<usize>,
    ) -> Result<String, Vec<Finding>> {
        if let Err(complaints) = PATTERN.read(item) {
            let messages = complaints.into_iter().map(|complaint| complaint.message);
            return Err(messages
                .map(|message| Finding::fault(format!("`{NAME}` {message}"), place.clone()))
                .collect());
        }
        // It is a text, or `PATTERN` would have refused it.
        let written = item.get_ref().as_str().unwrap_or_default();
        match variables::expand(written, self.variables) {
            Ok(expanded) => Ok(expanded.into_owned()),
            Err(fault) => Err(vec![fault.finding(place.clone())]),
        }
    }

    /// Reads the file of this name, or all files that match if it has wildcards. Relative names start from `base`.
    fn of_pattern(&mut self, pattern: &str, base: &Path, place: &Range<usize>) {
        let Some(wildcards) = IncludePattern::parse(pattern, base) else {
            self.of_file(&base.join(pattern), place);
            return;
        };
        let found = wildcards.files();
        self.record
            .borrow_mut()
            .note_pattern(wildcards, found.clone());
        match found {
            Ok(paths) => paths.iter().for_each(|path| self.of_file(path, place)),
            Err(reason) => self.fault(format!("cannot find files of `{pattern}`: {reason}"), place),
        }
    }

    /// Reads an included file and those that it includes. A file that is included twice or includes itself is a fault,
    /// and so are too many files.
    fn of_file(&mut self, path: &Path, place: &Range<usize>) {
        // Also if it is not read: what a link leads to may be changed.
        self.record.borrow_mut().note(path);
        let (shown, file) = (path.display(), real(path));
        if self.open.contains(&file) {
            let circle = self.open.iter().skip_while(|open| **open != file);
            let chain: Vec<_> = circle.map(|open| open.display().to_string()).collect();
            let message = format!(
                "{shown} includes itself: {} -> {}",
                chain.join(" -> "),
                file.display()
            );
            self.fault(message, place);
        } else if let Some(first) = self.seen.get(&file) {
            let first = self.report.spot(*first, place.start);
            self.fault(format!("{shown} is included already, at {first}"), place);
        } else if self.open.len() > DEPTH_MAX {
            let message = format!("{shown} is not read: files are included over {DEPTH_MAX} steps");
            self.fault(message, place);
        } else if self.texts.len() == FILES_MAX {
            self.fault(format!("more than {FILES_MAX} files are included"), place);
        } else {
            match (self.read)(path, self.bytes_left) {
                Ok(text) => self.add(path, file, text, place),
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    let message = format!("{shown} makes the configuration too large");
                    self.fault(format!("{message}: {error} that are left"), place);
                }
                Err(error) => self.fault(format!("cannot read {shown}: {error}"), place),
            }
        }
    }

    /// Adds the text of a file, before those of the files that it includes.
    fn add(&mut self, path: &Path, file: PathBuf, text: String, place: &Range<usize>) {
        self.bytes_left -= text.len();
        self.record.borrow_mut().note_content(path, text.as_bytes());
        let start = self.report.add(&path.display().to_string(), &text);
        // The files that it includes come after it, so its place is taken before they are read.
        self.texts.push(String::new());
        let number = self.texts.len() - 1;
        self.seen.insert(file.clone(), place.start);
        self.open.push(file);
        self.of_text(path, start, &text);
        self.open.pop();
        self.texts[number] = text;
    }

    fn fault(&mut self, message: String, place: &Range<usize>) {
        self.report.push(Finding::fault(message, place.clone()));
    }
}

/// The path by which a file is recognised, whatever path leads to it.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Adds the tables of an included text to those before it. `start` is the offset of the first byte of
/// the text.
pub(crate) fn add<'t>(
    root: &mut DeTable<'t>,
    mut added: DeTable<'t>,
    start: usize,
    report: &mut Report,
) {
    added.remove(NAME);
    merge(root, move_table(added, start), "", report);
}

/// Adds the values of `source` to the table `target`: lists of tables are appended, tables are joined, and a value that
/// both have is a fault. `path` is the name of the table, for messages.
fn merge<'t>(target: &mut DeTable<'t>, source: DeTable<'t>, path: &str, report: &mut Report) {
    for (key, value) in source {
        let Some(existing) = target.get_mut(key.get_ref().as_ref()) else {
            target.insert(key, value);
            continue;
        };
        let name = match path {
            "" => key.get_ref().to_string(),
            _ => format!("{path}.{}", key.get_ref()),
        };
        let (first, place) = (existing.span().start, value.span());
        let are_lists = is_list(existing, report) && is_list(&value, report);
        let may_join = !(defines(existing, report) && defines(&value, report));
        match (existing.get_mut(), value.into_inner()) {
            (DeValue::Array(items), DeValue::Array(more)) if are_lists => {
                more.into_iter().for_each(|item| items.push(item));
            }
            (DeValue::Table(table), DeValue::Table(more)) if may_join => {
                merge(table, more, &name, report);
            }
            (_, repeated) => {
                let what = if repeated.is_table() {
                    format!("[{name}]")
                } else {
                    format!("`{name}`")
                };
                let message = format!(
                    "{what} is defined already, at {}",
                    report.spot(first, place.start)
                );
                let hint =
                    "keep one of the two; only lists such as [[route]] may go on in other files";
                report.push(Finding::fault(message, place).hint(hint));
            }
        }
    }
}

/// Whether a value is a list of tables that have headers such as `[[route]]`.
fn is_list(value: &Spanned<DeValue<'_>>, report: &Report) -> bool {
    let tables = |items: &[Spanned<DeValue<'_>>]| items.iter().all(|it| it.get_ref().is_table());
    let is_list = value
        .get_ref()
        .as_array()
        .is_some_and(|items| tables(items));
    is_list && report.text_at(value.span().start).starts_with("[[")
}

/// Whether a table has its own header or keys. Otherwise it exists only because its name is part of
/// the header of another one.
fn defines(value: &Spanned<DeValue<'_>>, report: &Report) -> bool {
    let Some(table) = value.get_ref().as_table() else {
        return true;
    };
    let own = |it: &Spanned<DeValue<'_>>| !it.get_ref().is_table() && !is_list(it, report);
    let text = report.text_at(value.span().start);
    text.starts_with(['[', '{']) || table.values().any(own)
}

/// Moves the places of all keys and values by this many bytes.
fn move_table<'t>(table: DeTable<'t>, by: usize) -> DeTable<'t> {
    let moved = |(key, value): (Spanned<_>, _)| {
        let place = shifted(key.span(), by);
        (Spanned::new(place, key.into_inner()), move_value(value, by))
    };
    table.into_iter().map(moved).collect()
}

/// Moves the place of a value, and those of all values in it, by this many bytes.
fn move_value<'t>(value: Spanned<DeValue<'t>>, by: usize) -> Spanned<DeValue<'t>> {
    let place = shifted(value.span(), by);
    let moved = match value.into_inner() {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| move_value(item, by)).collect())
        }
        DeValue::Table(table) => DeValue::Table(move_table(table, by)),
        scalar => scalar,
    };
    Spanned::new(place, moved)
}

static PATTERN: FilePath =
    file_path("a path or pattern such as \"conf.d/*.toml\", or a list of them");

/// How deep files may include each other.
const DEPTH_MAX: usize = 10;

#[cfg(test)]
mod tests;
