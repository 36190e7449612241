//! Reads a file into a type for which serde derives `Deserialize`, where a key needs no more than a type.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use crate::report::{Finding, Report};
use crate::suggest::hint;
use crate::syntax::parsed;

/// Reads the report's first text as a `T`; `None` if it has a fault, which the report then has.
///
/// The report gets all faults of syntax. If there are none, it gets every unknown key, and at most one other fault,
/// because serde stops at its first error.
pub fn read<T: DeserializeOwned>(text: &str, report: &mut Report) -> Option<T> {
    let mut table = parsed(text, 0, report)?;
    loop {
        let error = match T::deserialize(Deserializer::from(table.clone())) {
            Ok(read) => return (report.faults() == 0).then_some(read),
            Err(error) => error,
        };
        let is_unknown = is_unknown_key(&error);
        if is_unknown || report.faults() == 0 {
            report.push(finding(&error));
        }
        if !is_unknown || !remove(table.get_mut(), &error.span()?) {
            return None;
        }
    }
}

/// An error of serde as a finding; for an unknown key, with the name that may have been meant or the names that there
/// are.
fn finding(error: &Error) -> Finding {
    let place = error.span().unwrap_or_default();
    if !is_unknown_key(error) {
        return Finding::fault(error.message(), place);
    }
    // The message has names between backquotes: first the unknown one, then those that are known.
    let mut names = error.message().split('`').skip(1).step_by(2);
    let name = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    let finding = Finding::fault(format!("there is no key `{name}` here"), place);
    finding.hint(hint(name, &known))
}

fn is_unknown_key(error: &Error) -> bool {
    error.message().starts_with("unknown field ")
}

/// Removes the key at a place of the table, and says whether it was there.
fn remove(table: &mut DeTable<'_>, place: &Range<usize>) -> bool {
    let found = table.keys().find(|key| key.span() == *place);
    match found.map(|key| key.get_ref().to_string()) {
        Some(name) => table.remove(name.as_str()).is_some(),
        None => table
            .iter_mut()
            .any(|(_, value)| remove_in(value.get_mut(), place)),
    }
}

fn remove_in(value: &mut DeValue<'_>, place: &Range<usize>) -> bool {
    match value {
        DeValue::Table(table) => remove(table, place),
        DeValue::Array(items) => items
            .iter_mut()
            .any(|item| remove_in(item.get_mut(), place)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Whole {
        part: Vec<Part>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        rounds: u8,
    }

    fn said(text: &str) -> String {
        let mut report = Report::new("x.toml", text);
        let read: Option<Whole> = read(text, &mut report);
        assert_eq!(read.is_some(), report.faults() == 0);
        assert_eq!(
            read.map_or(0, |it| it.part.len() + usize::from(it.part[0].rounds)),
            0
        );
        report.finish();
        report.to_string()
    }

    #[test]
    fn unknown_keys_are_found_or_else_the_first_other_fault() {
        assert_eq!(
            said("[[part]]\nroundz = 1\nrounds = 2\n[[part]]\nrounds = 3\n[part.more]\n"),
            "x.toml:2:1: fault: there is no key `roundz` here; did you mean `rounds`?
    2 | roundz = 1
      | ^^^^^^
x.toml:6:7: fault: there is no key `more` here; there are rounds
    6 | [part.more]
      |       ^^^^
"
        );
        let said = said("[[part]]\nrounds = 'two'\n[[part]]\n");
        let fault = "x.toml:2:10: fault: invalid type: string \"two\", expected u8\n";
        assert!(said.starts_with(fault), "{said}");
        assert_eq!(said.matches("fault: ").count(), 1, "{said}");
    }

    #[test]
    fn all_faults_of_syntax_are_found() {
        let said = said("part = \nother = two\n");
        assert_eq!(said.matches("fault: syntax: ").count(), 2, "{said}");
    }
}
