//! Replaces `${NAME}` in the texts of a file by the values of environment variables.
//!
//! Values are put into texts after the file was parsed, so no value can end a text or add a key. A text
//! that consists of one `${NAME}` alone may stand for a number, or for `true` or `false`, where the key
//! accepts no text. `$${` is a literal `${`. Lines of the file are shown as they are written. Messages
//! show the name of a variable and not its value if the name suggests a secret.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::ops::Range;

use catamaran_proxy::config::{HiddenValue, Secret};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::SECTIONS;
use crate::key::AnyKey;
use crate::report::{Finding, Report};

/// Returns the value of an environment variable, or `None` if it is not set.
pub(crate) type Variables<'v> = &'v dyn Fn(&str) -> Option<OsString>;

/// The texts after the replacement, by the offsets of the original ones.
#[derive(Debug, Default)]
pub(crate) struct ExpandedTexts {
    texts: HashMap<usize, String>,
    /// The offsets of texts whose variables could not be replaced.
    failed: HashSet<usize>,
    /// The values of all variables that were used, which must be hidden where texts made of them are
    /// shown.
    pub(crate) hidden: Vec<HiddenValue>,
}

impl ExpandedTexts {
    /// Whether the text at this place of the file could not be expanded. Its other faults are then not reported.
    pub(crate) fn failed_at(&self, place: &Range<usize>) -> bool {
        self.failed.contains(&place.start)
    }
}

/// Expands all texts in a table, in its sub-tables and in its lists that name variables.
pub(crate) fn expand_all(
    table: &DeTable<'_>,
    variables: Variables<'_>,
    report: &mut Report,
) -> ExpandedTexts {
    let values = RefCell::new(BTreeMap::new());
    // The values that are used are noted, so that no page and no message shows a secret.
    let look_up = |name: &str| {
        let value = variables(name);
        if let Some(text) = value.as_ref().and_then(|value| value.to_str()) {
            values.borrow_mut().insert(name.to_owned(), text.to_owned());
        }
        value
    };
    let mut expanded = ExpandedTexts::default();
    let mut waiting: Vec<&Spanned<DeValue<'_>>> = table.values().collect();
    while let Some(value) = waiting.pop() {
        match value.get_ref() {
            DeValue::String(text) => match expand(text, &look_up) {
                Ok(Cow::Borrowed(_)) => {}
                Ok(Cow::Owned(text)) => {
                    expanded.texts.insert(value.span().start, text);
                }
                Err(fault) => {
                    expanded.failed.insert(value.span().start);
                    report.push(fault.finding(value.span()));
                }
            },
            DeValue::Array(items) => waiting.extend(items.iter()),
            DeValue::Table(table) => waiting.extend(table.values()),
            _ => {}
        }
    }
    for (name, value) in values.into_inner() {
        if is_secret(&name) {
            report.hide(value.clone(), &name);
        }
        expanded.hidden.push(HiddenValue {
            value: Secret::new(value),
            name: format!("${{{name}}}"),
        });
    }
    expanded
}

/// Whether the name of a variable suggests that its value is secret. Such a value may have got into
/// another key by mistake.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words = [
        "SECRET",
        "PASS",
        "PWD",
        "TOKEN",
        "KEY",
        "CREDENTIAL",
        "AUTH",
    ];
    words.iter().any(|word| name.contains(word))
}

/// Replaces the texts in the table by the expanded ones. Names of keys and tables are left as they are.
pub(crate) fn put<'t>(table: &mut DeTable<'t>, expanded: &'t ExpandedTexts) {
    if !expanded.texts.is_empty() {
        let path = Vec::new();
        Walk { expanded, path }.table(table);
    }
}

/// Replaces the variables in one text; the fault says why that is not possible. `$${` stands for `${` itself.
pub(crate) fn expand<'t>(text: &'t str, variables: Variables<'_>) -> Result<Cow<'t, str>, Fault> {
    if !text.contains("${") {
        return Ok(Cow::Borrowed(text));
    }
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let (name, after_name) = after.split_once('}').ok_or(Fault::Open)?;
        expanded.push_str(&value(name, variables)?);
        rest = after_name;
    }
    expanded.push_str(rest);
    Ok(Cow::Owned(expanded))
}

/// The value of a variable. A name has letters, digits and `_`, and does not begin with a digit.
fn value(name: &str, variables: Variables<'_>) -> Result<String, Fault> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_good) || name.as_bytes()[0].is_ascii_digit() {
        return Err(Fault::Name);
    }
    let value = variables(name).ok_or_else(|| Fault::Unset(name.to_owned()))?;
    value
        .into_string()
        .map_err(|_| Fault::NotUtf8(name.to_owned()))
}

/// Why a text could not be expanded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// There is a `${` without a `}`.
    #[error("`${{` lacks its closing brace")]
    Open,
    /// The name is not valid for a variable.
    #[error("what stands between `${{` and `}}` is no name of a variable")]
    Name,
    /// The variable is not set.
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    /// The value of the variable is not UTF-8.
    #[error("the value of the environment variable `{0}` is not UTF-8")]
    NotUtf8(String),
}

impl Fault {
    pub(crate) fn finding(&self, place: Range<usize>) -> Finding {
        let hint = match self {
            Self::Open | Self::Name => {
                "write ${NAME}, of letters, digits and `_`; for a literal ${ write $${"
            }
            Self::Unset(_) => "set it where the front is started; for a literal ${ write $${",
            Self::NotUtf8(_) => "set it to a text",
        };
        Finding::fault(self.to_string(), place).hint(hint)
    }
}

struct Walk<'t> {
    expanded: &'t ExpandedTexts,
    /// The names of the tables around the current value.
    path: Vec<String>,
}

impl<'t> Walk<'t> {
    /// Replaces the texts in a table and in all that is in it.
    fn table(&mut self, table: &mut DeTable<'t>) {
        for (name, value) in table.iter_mut() {
            let name = name.get_ref();
            if value.get_ref().is_str() {
                self.text(value, |walk| walk.key(name));
            } else {
                self.path.push(name.to_string());
                self.value(value);
                self.path.pop();
            }
        }
    }

    /// Replaces the texts in a value. Texts in lists stay texts, whatever they consist of.
    fn value(&mut self, value: &mut Spanned<DeValue<'t>>) {
        match value.get_mut() {
            DeValue::String(_) => self.text(value, |_| None),
            DeValue::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            DeValue::Table(table) => self.table(table),
            _ => {}
        }
    }

    /// Replaces a text by the expanded one. If it consists of one `${NAME}`, and `key`, the key that has it, takes no
    /// texts, it becomes a number, `true` or `false`.
    fn text(&self, value: &mut Spanned<DeValue<'t>>, key: impl Fn(&Self) -> Option<AnyKey>) {
        let place = value.span();
        let Some(text) = self.expanded.texts.get(&place.start) else {
            return;
        };
        let written = value.get_ref().as_str().unwrap_or_default();
        let is_one_name = written.starts_with("${") && written.find('}') == Some(written.len() - 1);
        let new_text = Spanned::new(place.clone(), DeValue::String(Cow::Borrowed(text)));
        let mut other = None;
        if is_one_name
            && let Some(key) = key(self)
            && !key.kind.takes(&new_text)
        {
            other = other_kind(text, place, key);
        }
        *value = other.unwrap_or(new_text);
    }

    /// The description of the key `name` in the table that `path` leads to.
    fn key(&self, name: &str) -> Option<AnyKey> {
        let is_at_path = |header: &str| {
            let parts: Vec<&str> = header.trim_matches(['[', ']']).split('.').collect();
            // `NAME` in a header stands for any name.
            let is_same = |(part, name): (&&str, &String)| *part == "NAME" || part == name;
            parts.len() == self.path.len() && parts.iter().zip(&self.path).all(is_same)
        };
        let section = SECTIONS.iter().find(|section| is_at_path(section.header))?;
        section.keys().find(|key| key.name == name)
    }
}

/// The number, `true` or `false` that a text spells; `None` if it spells none or the key does not
/// accept it.
fn other_kind<'t>(text: &'t str, place: Range<usize>, key: AnyKey) -> Option<Spanned<DeValue<'t>>> {
    let value = DeValue::parse(text).ok()?.into_inner();
    let fits = matches!(value, DeValue::Integer(_) | DeValue::Boolean(_));
    let spelled = Spanned::new(place, value);
    (fits && key.kind.takes(&spelled)).then_some(spelled)
}

#[cfg(test)]
mod tests;
