//! Reads one table of a file, key by key.
//!
//! A table collects its faults and adds them to the report when it is finished; unknown keys are found then. A
//! missing or wrong key leaves its field as it was, so reading goes on and all faults of a file are found at once.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::key::{Group, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::suggest::nearest;
use crate::value::Complaint;

/// One table of a file, while it is read. Call [`Table::finish`] at the end, or its findings are lost.
pub struct Table<'f> {
    section: &'static Section,
    place: Range<usize>,
    entries: &'f DeTable<'f>,
    findings: Vec<Finding>,
    /// Names of sub-tables that are read elsewhere.
    tables: &'static [&'static str],
    /// Whether a key is read by other code. For groups of keys that are too many to be listed.
    is_elsewhere: fn(&str) -> bool,
}

impl<'f> Table<'f> {
    /// Begins to read a table that `section` describes; `place` is that of its header.
    pub fn new(section: &'static Section, place: Range<usize>, entries: &'f DeTable<'f>) -> Self {
        Self {
            section,
            place,
            entries,
            findings: Vec::new(),
            tables: &[],
            is_elsewhere: |_| false,
        }
    }

    /// The value of a key that the section has; `None` if it is not written.
    fn find(&self, name: &str) -> Option<&'f Spanned<DeValue<'f>>> {
        debug_assert!(
            self.knows(name),
            "{} has no key {name}",
            self.section.header
        );
        self.entries.get(name)
    }

    /// Names the keys that are tables of their own and are read elsewhere, so that they do not count as unknown.
    pub fn except(mut self, tables: &'static [&'static str]) -> Self {
        self.tables = tables;
        self
    }

    /// As [`Table::except`], by a function, where a list would be long.
    pub fn except_those(mut self, is_elsewhere: fn(&str) -> bool) -> Self {
        self.is_elsewhere = is_elsewhere;
        self
    }

    /// The place of the table's header.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// The place of the value of the key `name`, or of the header if the key is not written.
    pub fn place_of(&self, name: &str) -> Range<usize> {
        self.find(name).map_or_else(|| self.place(), Spanned::span)
    }

    /// Whether the value of the key `name` is an empty list.
    pub fn is_empty_list(&self, name: &str) -> bool {
        let value = self.find(name);
        value.is_some_and(|it| it.get_ref().as_array().is_some_and(|it| it.is_empty()))
    }

    /// Whether an unknown key of the table looks like a misspelt one of `names`.
    pub fn has_slip_of(&self, names: &[&str]) -> bool {
        let is_slip =
            |name: &str| !self.section.has(name) && nearest(name, names.iter().copied()).is_some();
        self.entries.keys().any(|name| is_slip(name.get_ref()))
    }

    /// Whether the key or table `name` is written, with a valid value or not.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Reads those of `keys` that are written into their fields of `into`.
    ///
    /// A required key that is missing is a fault. A wrong value is a fault as well, and leaves its field as it was.
    pub fn read<T: 'static>(
        &mut self,
        keys: impl IntoIterator<Item = &'static Key<T>>,
        into: &mut T,
    ) {
        for key in keys {
            match self.find(key.name) {
                Some(value) => {
                    if let Err(complaints) = key.value.read_into(value, into) {
                        self.complain(key.name, complaints);
                    }
                }
                None if key.preset == Preset::Required => {
                    self.lacks(key.name, key.sample);
                }
                None => {}
            }
        }
    }

    /// The keys of certain groups that are written, with a valid value or not, each with the place of its value.
    pub fn written<T: 'static>(
        &self,
        keys: &'static [Key<T>],
        groups: impl Fn(Group) -> bool,
    ) -> Vec<(&'static str, Range<usize>)> {
        let keys = keys.iter().filter(|key| groups(key.group));
        keys.filter_map(|key| Some((key.name, self.find(key.name)?.span())))
            .collect()
    }

    fn complain(&mut self, name: &str, complaints: Vec<Complaint>) {
        let fault = |complaint: Complaint| {
            let message = format!("`{name}` {}", complaint.message);
            Finding::fault(message, complaint.span)
        };
        self.findings.extend(complaints.into_iter().map(fault));
    }

    fn lacks(&mut self, name: &str, sample: &str) {
        let message = format!("{} lacks `{name}`", self.section.header);
        let hint = format!("write {name} = {sample}");
        self.push(Finding::fault(message, self.place()).hint(hint));
    }

    /// Adds a finding.
    pub fn push(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Whether the table has no findings so far.
    pub fn is_good(&self) -> bool {
        self.findings.is_empty()
    }

    /// Whether the key `name` is written and its value has no findings so far.
    pub fn is_good_at(&self, name: &str) -> bool {
        let place = self.place_of(name);
        let is_there =
            |finding: &Finding| (finding.span.as_ref()).is_some_and(|it| place.contains(&it.start));
        self.has(name) && !self.findings.iter().any(is_there)
    }

    /// Adds a fault for each unknown key, and moves all findings to the report.
    pub fn finish(mut self, report: &mut Report) {
        let unknown: Vec<_> = self
            .entries
            .iter()
            .filter(|(name, _)| !self.knows(name.get_ref()))
            .collect();
        for (name, _) in unknown {
            self.findings
                .push(self.unknown(name.get_ref(), name.span(), report));
        }
        self.findings
            .into_iter()
            .for_each(|finding| report.push(finding));
    }

    /// Whether the table may have a key or a sub-table of that name.
    fn knows(&self, name: &str) -> bool {
        self.section.has(name) || self.tables.contains(&name) || (self.is_elsewhere)(name)
    }

    fn unknown(&self, name: &str, place: Range<usize>, report: &Report) -> Finding {
        let header = self.section.header;
        if let Some((_, advice)) = self.section.later.iter().find(|(later, _)| *later == name) {
            return Finding::fault(format!("`{name}` is not available yet"), place).hint(*advice);
        }
        let finding = Finding::fault(format!("{header} has no key `{name}`"), place);
        let names = self
            .section
            .keys()
            .map(|key| key.name)
            .chain(self.tables.iter().copied());
        finding.hint(report.hint_of_unknown(name, nearest(name, names)))
    }
}

/// The tables of a list such as `[[listen]]`, each with its place. Anything else is reported as a fault.
pub fn tables<'f>(
    header: &str,
    value: &'f Spanned<DeValue<'f>>,
    report: &mut Report,
) -> Vec<(Range<usize>, &'f DeTable<'f>)> {
    let Some(items) = value.get_ref().as_array() else {
        let finding = Finding::fault("this must be a list of tables", value.span());
        report.push(finding.hint(format!(
            "write {header} with two brackets, and its keys below"
        )));
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| table(header, item, report))
        .collect()
}

/// The header of a list of tables below a name, such as `[[upstream.tomcat.backend]]`. A name that would need quotes
/// is shown as `NAME`.
pub fn list_header(kind: &str, name: &str, list: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let shown_name = if name.bytes().all(is_bare) {
        name
    } else {
        "NAME"
    };
    format!("[[{kind}.{shown_name}.{list}]]")
}

/// The table that `value` is, such as `[server]`, with its place. Anything else is reported as a fault.
pub fn table<'f>(
    header: &str,
    value: &'f Spanned<DeValue<'f>>,
    report: &mut Report,
) -> Option<(Range<usize>, &'f DeTable<'f>)> {
    if let Some(entries) = value.get_ref().as_table() {
        return Some((value.span(), entries));
    }
    let finding = Finding::fault("this must be a table", value.span());
    report.push(finding.hint(format!("write {header}, and its keys below")));
    None
}
