//! A directive of httpd or of nginx, with its place in the ledger.
//!
//! A place of the source, such as a location, is closed if a directive in it cannot be converted: the front then
//! answers 403 for its paths, or passes them to the old server.

use crate::ledger::{Id, Ledger};
use crate::shown;

/// A directive of the source, or a section or block with the directives inside it.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub(crate) id: Id,
    /// The name; that of an httpd directive is in lower case.
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    /// The directives inside the section or block; `None` if the directive has none.
    pub(crate) inner: Option<Vec<Self>>,
}

impl Directive {
    /// The word at this index, or the empty text if there is none.
    pub(crate) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    /// The directive with its words, for a message.
    pub(crate) fn shown(&self, ledger: &Ledger) -> String {
        let words = self.words.iter().map(String::as_str);
        shown::words([ledger.name(self.id)].into_iter().chain(words))
    }

    /// The directives inside the section or block; empty if there is none.
    pub(crate) fn inside(&self) -> &[Self] {
        self.inner.as_deref().unwrap_or_default()
    }

    /// Makes a directive for an included file that does not exist. The file may contain access rules, so the place in
    /// which it is included is closed.
    pub(crate) fn missing(pattern: &str, id: Id, ledger: &mut Ledger) -> Self {
        let text = format!(
            "no file on this machine matches `{pattern}` (--root says below which directory the source's files are). It \
             may restrict access, so all requests that it may be about are closed"
        );
        ledger.risk(id, text);
        Self {
            id,
            name: MISSING.to_owned(),
            words: Vec::new(),
            inner: None,
        }
    }
}

/// Records in the ledger that these directives, and all inside them, are parts of a section that was not converted:
/// the old server still does what they say, or they are a risk if there is none.
pub(crate) fn keep_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    reason: &str,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.kept_or_risk(directive.id, reason);
        part_all(directive.inside(), directive.id, ledger);
    }
}

/// Records in the ledger that these directives, and all inside them, are parts of the directive `whole`, whose entry
/// in the report also counts for them.
pub(crate) fn part_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    whole: Id,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.part(directive.id, whole);
        part_all(directive.inside(), whole, ledger);
    }
}

/// Records in the ledger that these directives, and all inside them, have no effect, because their place is closed.
pub(crate) fn close_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.closed(directive.id);
        close_all(directive.inside(), ledger);
    }
}

/// Records in the ledger that these directives, and all inside them, are not needed, for this reason.
pub(crate) fn drop_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    reason: &str,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.dropped(directive.id, reason);
        drop_all(directive.inside(), reason, ledger);
    }
}

/// The name of the directive for an included file that does not exist. No table knows it, so it closes its place.
pub(crate) const MISSING: &str = "missing include";
