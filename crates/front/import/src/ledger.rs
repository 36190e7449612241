//! The ledger: every directive that was read, how it was converted, and the remarks for the operator.
//!
//! At the end each directive has one fate. A directive that no reader handled is looked up among those that
//! `catamaran check` knows; unless it is known to be needless, it is a risk. So no directive is lost silently.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::shown;

/// A line of a file of the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file's name, as it was given.
    pub file: Arc<str>,
    /// The line number, the first being 1.
    pub line: usize,
}

impl Place {
    pub(crate) fn new(file: &Arc<str>, line: usize) -> Self {
        Self {
            file: Arc::clone(file),
            line,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl Serialize for Place {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a directive was converted. If several apply, the last in this list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// The directive is not needed; the reason says why.
    Dropped,
    /// The written file does the same.
    Mapped,
    /// The old server still does what the directive says (`--keep`).
    Kept,
    /// The operator has to decide: there is a risk.
    Decided,
}

/// A directive of the source.
#[derive(Clone, Debug, Serialize)]
pub struct Directive {
    /// The directive's name.
    pub name: String,
    /// The line where the directive stands.
    pub place: Place,
    /// How the directive was converted.
    pub fate: Fate,
    /// Why the directive was dropped or kept, or needs a decision.
    pub reason: String,
}

/// How important a remark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The operator has to make a decision.
    Risk,
    /// The converted file behaves differently in a way worth knowing.
    Note,
}

/// A remark on the conversion, for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Remark {
    /// How important the remark is.
    pub weight: Weight,
    /// The line that the remark is about; `None`: the whole configuration.
    pub place: Option<Place>,
    /// The remark in words.
    pub text: String,
}

/// For each fate, the number of directives that had it. The four numbers add up to all directives read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// The number of directives with [`Fate::Mapped`].
    pub mapped: usize,
    /// The number of directives with [`Fate::Dropped`].
    pub dropped: usize,
    /// The number of directives with [`Fate::Decided`].
    pub decided: usize,
    /// The number of directives with [`Fate::Kept`].
    pub kept: usize,
}

impl Sums {
    /// The number of all directives read.
    #[must_use]
    pub fn total(&self) -> usize {
        self.mapped + self.dropped + self.decided + self.kept
    }
}

/// Identifies a directive of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(usize);

/// A directive whose fate may be undecided as yet.
#[derive(Debug)]
struct Entry {
    server: &'static str,
    name: String,
    place: Place,
    fate: Option<Fate>,
    reason: String,
}

/// A reader of the source that enters what it reads into the ledger.
pub(crate) trait LedgerKeeper {
    fn ledger(&mut self) -> &mut Ledger;

    /// Reads a server, or a place within it: directives that `read` handles count for it alone. It ends with `read`,
    /// however that returns; otherwise later servers would ask its verdicts.
    fn in_place<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.ledger().handled.push(HashSet::new());
        let result = read(self);
        self.ledger().handled.pop();
        result
    }
}

impl LedgerKeeper for Ledger {
    fn ledger(&mut self) -> &mut Ledger {
        self
    }
}

/// All directives read, and the remarks on them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    remarks: Vec<Remark>,
    /// The remarks as a set, so that none is added twice.
    said: HashSet<Remark>,
    /// The source's guards by client address, some of which may be left to the old server.
    pub(crate) address_guards: AddressGuards,
    /// Directives that use what a proxy before the source reports of the client, such as its scheme.
    pub(crate) claims: Vec<Id>,
    /// Variables without a value, each with the line and the text of the remark.
    unfilled: Vec<(String, Place, String)>,
    /// Whether an old server takes what cannot be converted (`--keep`).
    pub(crate) keeps: bool,
    /// The directives that readers handled: first those of the current server, then those of each place within it
    /// that is being read.
    handled: Vec<HashSet<Id>>,
}

/// Guards by client address, and which of them the written file contains.
#[derive(Debug, Default)]
pub(crate) struct AddressGuards {
    /// All guards by address that the source has.
    all: Vec<Id>,
    /// Guards that were written as `allow` or `deny` of a route.
    written: HashSet<Id>,
    /// Guards that were written at first, but were then left to the old server.
    void: HashSet<Id>,
    /// Whether any of the guards, and it is not known which, may have been left to the old server.
    is_none_sure: bool,
    /// The directives by which the old server learns clients' addresses behind the front; for messages.
    remedy: &'static str,
}

impl AddressGuards {
    /// Adds guards of the source.
    pub(crate) fn enter(&mut self, ids: impl IntoIterator<Item = Id>, remedy: &'static str) {
        self.all.extend(ids);
        self.remedy = remedy;
    }

    /// Notes that the written file has these guards.
    pub(crate) fn written(&mut self, ids: impl IntoIterator<Item = Id>) {
        self.written.extend(ids);
    }

    /// Notes that these guards are left to the old server.
    pub(crate) fn void(&mut self, ids: impl IntoIterator<Item = Id>) {
        self.void.extend(ids);
    }

    /// Notes that any of the guards may be left to the old server.
    pub(crate) fn void_all(&mut self) {
        self.is_none_sure = true;
    }

    /// The directives by which the old server finds clients' addresses behind the front, for messages.
    pub(crate) fn remedy(&self) -> &'static str {
        self.remedy
    }

    /// The guards that only the old server has.
    pub(crate) fn left(&self) -> Vec<Id> {
        let is_left =
            |it: &&Id| self.is_none_sure || self.void.contains(it) || !self.written.contains(it);
        self.all.iter().filter(is_left).copied().collect()
    }
}

impl Ledger {
    pub(crate) fn new(keeps: bool) -> Self {
        Self {
            keeps,
            ..Self::default()
        }
    }

    /// Adds a directive of `server`, by the name under which [`catamaran_config::foreign_answer`] knows
    /// it.
    pub(crate) fn enter(&mut self, server: &'static str, name: &str, place: &Place) -> Id {
        self.entries.push(Entry {
            server,
            name: shown::name(name),
            place: place.clone(),
            fate: None,
            reason: String::new(),
        });
        Id(self.entries.len() - 1)
    }

    /// Whether a reader handled a directive, for the place that is being read or for the whole server. Reporting a
    /// risk is not handling.
    pub(crate) fn is_handled(&self, id: Id) -> bool {
        let known = [self.handled.first(), self.handled.last()];
        known.iter().flatten().any(|it| it.contains(&id))
    }

    /// Notes that a reader handled a directive, for the place that is being read.
    pub(crate) fn handle(&mut self, id: Id) {
        if let Some(handled) = self.handled.last_mut() {
            handled.insert(id);
        }
    }

    /// The server that has the directive.
    pub(crate) fn server(&self, id: Id) -> &'static str {
        self.entries[id.0].server
    }

    /// The directive's name, as it was written.
    pub(crate) fn name(&self, id: Id) -> &str {
        &self.entries[id.0].name
    }

    pub(crate) fn place(&self, id: Id) -> &Place {
        &self.entries[id.0].place
    }

    pub(crate) fn mapped(&mut self, id: Id) {
        self.handle(id);
        self.give(id, Fate::Mapped, "");
    }

    pub(crate) fn dropped(&mut self, id: Id, reason: &str) {
        self.handle(id);
        self.give(id, Fate::Dropped, reason);
    }

    /// Drops the directive as needless. The judge still decides whether its place can stay open without it.
    pub(crate) fn needless(&mut self, id: Id, reason: &str) {
        self.give(id, Fate::Dropped, reason);
    }

    /// Reports a risk that opens nothing: the setting is lost, but no client can do more, and no application is
    /// deceived.
    pub(crate) fn lost(&mut self, id: Id, text: impl Into<String>) {
        self.handle(id);
        self.risk(id, text);
    }

    /// Reports a risk: the directive needs a decision.
    pub(crate) fn risk(&mut self, id: Id, text: impl Into<String>) {
        let text = text.into();
        self.give(id, Fate::Decided, &text);
        let place = Some(self.place(id).clone());
        self.say(Weight::Risk, place, text);
    }

    /// Reports a directive that cannot be converted: its requests go to the old server, or are answered 403.
    pub(crate) fn unmapped(&mut self, id: Id, text: &str) {
        self.handle(id);
        if !self.keeps {
            return self.risk(id, format!("{text}; its requests are answered 403"));
        }
        self.give(id, Fate::Kept, text);
        let place = Some(self.place(id).clone());
        let text = format!("{text}; its requests go to the old server");
        self.say(Weight::Note, place, text);
    }

    /// Notes that the old server goes on doing what the directive says; without an old server, reports a
    /// risk.
    pub(crate) fn kept_or_risk(&mut self, id: Id, text: &str) {
        self.handle(id);
        if self.keeps {
            self.give(id, Fate::Kept, text);
        } else {
            self.risk(id, text);
        }
    }

    /// Gives a directive the fate of the directive `whole` that it is a part of, whose remark is about both.
    pub(crate) fn part(&mut self, id: Id, whole: Id) {
        self.handle(id);
        let entry = &self.entries[whole.0];
        match entry.fate.unwrap_or(Fate::Decided) {
            Fate::Mapped => self.mapped(id),
            fate => {
                let reason = format!("it belongs to `{}` of {}", entry.name, entry.place);
                self.give(id, fate, &reason);
            }
        }
    }

    /// Notes that the place of a directive is closed, so that its setting is not in the written file. Only the fate
    /// [`Fate::Mapped`] says that it is there, so any other fate is left.
    pub(crate) fn closed(&mut self, id: Id) {
        let fate = if self.keeps {
            Fate::Kept
        } else {
            Fate::Decided
        };
        if self.entries[id.0].fate == Some(Fate::Mapped) {
            self.give(id, fate, "its place is closed");
        }
    }

    /// Whether the directive has no fate yet.
    pub(crate) fn is_open(&self, id: Id) -> bool {
        self.entries[id.0].fate.is_none()
    }

    /// Whether the written file does not do what the directive says.
    pub(crate) fn is_lost(&self, id: Id) -> bool {
        matches!(self.entries[id.0].fate, Some(Fate::Decided | Fate::Kept))
    }

    /// Whether the directive was dropped as needless.
    pub(crate) fn is_dropped(&self, id: Id) -> bool {
        self.entries[id.0].fate == Some(Fate::Dropped)
    }

    /// Drops the directive as needless, unless it has a fate already.
    pub(crate) fn dropped_if_open(&mut self, id: Id, reason: &str) {
        if self.entries[id.0].fate.is_none() {
            self.dropped(id, reason);
        }
    }

    /// Notes that a variable in a line has no value. This is a risk, unless the line's directive is dropped.
    pub(crate) fn unfilled(&mut self, variable: &str, place: Place, text: String) {
        self.unfilled.push((variable.to_owned(), place, text));
    }

    /// Reports each variable without a value once, at the first line where it matters.
    fn say_unfilled(&mut self) {
        let mut needed: HashMap<Place, bool> = HashMap::new();
        for entry in &self.entries {
            *needed.entry(entry.place.clone()).or_default() |= entry.fate != Some(Fate::Dropped);
        }
        let mut said = HashSet::new();
        for (variable, place, text) in std::mem::take(&mut self.unfilled) {
            // A line without an entry has no directive that was dropped.
            let is_needed = needed.get(&place).copied().unwrap_or(true);
            if is_needed && said.insert(variable) {
                self.say(Weight::Risk, Some(place), text);
            }
        }
    }

    /// Adds a note about a directive, without changing its fate.
    pub(crate) fn note(&mut self, id: Id, text: impl Into<String>) {
        let place = Some(self.place(id).clone());
        self.say(Weight::Note, place, text.into());
    }

    /// Adds a remark about a place, or with `None` about the whole configuration.
    pub(crate) fn say(&mut self, weight: Weight, place: Option<Place>, text: impl Into<String>) {
        let remark = Remark {
            weight,
            place,
            text: shown::message(&text.into()),
        };
        if self.said.insert(remark.clone()) {
            self.remarks.push(remark);
        }
    }

    /// Gives a directive a fate with its reason, unless it has the same or a heavier one.
    fn give(&mut self, id: Id, fate: Fate, reason: &str) {
        let entry = &mut self.entries[id.0];
        if entry.fate.is_none_or(|known| known < fate) {
            entry.fate = Some(fate);
            entry.reason = shown::message(reason);
        }
    }

    /// Gives every directive without a fate one, and returns all directives and remarks.
    pub(crate) fn finish(mut self) -> (Vec<Directive>, Vec<Remark>) {
        for index in 0..self.entries.len() {
            if self.entries[index].fate.is_none() {
                self.decide_unclaimed(Id(index));
            }
        }
        self.say_unfilled();
        self.decide_risks();
        let directive = |it: Entry| Directive {
            name: it.name,
            place: it.place,
            // `decide_unclaimed` has given a fate to each entry that had none.
            fate: it.fate.unwrap_or(Fate::Decided),
            reason: it.reason,
        };
        (
            self.entries.into_iter().map(directive).collect(),
            self.remarks,
        )
    }

    /// If a risk is about a line, and no directive of that line has the fate [`Fate::Decided`], gives it to the first
    /// one.
    fn decide_risks(&mut self) {
        let risks = self.remarks.iter().filter(|it| it.weight == Weight::Risk);
        let mut risky: HashMap<Place, String> = HashMap::new();
        for remark in risks {
            if let Some(place) = &remark.place {
                risky.insert(place.clone(), remark.text.clone());
            }
        }
        for entry in &self.entries {
            if entry.fate == Some(Fate::Decided) {
                risky.remove(&entry.place);
            }
        }
        for index in 0..self.entries.len() {
            if let Some(text) = risky.remove(&self.entries[index].place) {
                self.give(Id(index), Fate::Decided, &text);
            }
        }
    }

    /// Decides about a directive that no reader handled: it is dropped if it is known to be needless, otherwise a
    /// risk.
    fn decide_unclaimed(&mut self, id: Id) {
        let (server, name) = (self.entries[id.0].server, self.entries[id.0].name.clone());
        match catamaran_config::foreign_answer(server, &name) {
            Some(answer) if answer.is_needless => self.dropped(id, answer.text),
            Some(answer) => {
                let text = format!("`{name}` was not converted; in the front: {}", answer.text);
                self.risk(id, text);
            }
            None => self.risk(id, format!("`{name}` is not known and was not converted")),
        }
    }
}

/// Counts the directives of each fate.
pub(crate) fn sums(directives: &[Directive]) -> Sums {
    let of = |fate: Fate| directives.iter().filter(|it| it.fate == fate).count();
    Sums {
        mapped: of(Fate::Mapped),
        dropped: of(Fate::Dropped),
        decided: of(Fate::Decided),
        kept: of(Fate::Kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            file: "a.conf".into(),
            line: 7,
        }
    }

    #[test]
    fn each_directive_has_the_heaviest_of_its_fates() {
        let mut ledger = Ledger::new(false);
        let one = ledger.enter("httpd", "ProxyPass", &place());
        ledger.mapped(one);
        ledger.risk(one, "half of it is missing");
        ledger.dropped(one, "not needed");
        let two = ledger.enter("httpd", "ServerTokens", &place());
        ledger.dropped(two, "not needed");
        let (directives, remarks) = ledger.finish();
        let fates: Vec<Fate> = directives.iter().map(|it| it.fate).collect();
        assert_eq!(fates, [Fate::Decided, Fate::Dropped]);
        assert_eq!(remarks.len(), 1);
        assert_eq!(sums(&directives).total(), 2);
    }

    #[test]
    fn what_nobody_claims_is_a_risk_with_its_line() {
        let mut ledger = Ledger::new(true);
        ledger.enter("httpd", "FrobnicateAll", &place());
        let (directives, remarks) = ledger.finish();
        assert_eq!(directives[0].fate, Fate::Decided);
        assert_eq!(remarks[0].place, Some(place()));
        assert!(remarks[0].text.contains("FrobnicateAll"), "{remarks:?}");
    }

    #[test]
    fn what_is_known_to_be_needless_is_dropped() {
        let mut ledger = Ledger::new(false);
        ledger.enter("mod_jk", "JkShmFile", &place());
        let (directives, remarks) = ledger.finish();
        assert_eq!((directives[0].fate, remarks.len()), (Fate::Dropped, 0));
        assert!(!directives[0].reason.is_empty());
    }
}
