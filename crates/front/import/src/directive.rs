//! A directive of httpd or of nginx, with its place in the ledger.

use crate::ledger::{Id, Ledger};

/// A directive, or a section or block with what stands in it.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub(crate) id: Id,
    /// Of httpd in lower case.
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    /// What stands in it; `None` of one that has no section or block.
    pub(crate) inner: Option<Vec<Self>>,
}

impl Directive {
    /// A word, or nothing.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// What stands in it.
    pub(crate) fn inside(&self) -> &[Self] {
        self.inner.as_deref().unwrap_or_default()
    }

    /// What stands in the place of an included file that is not there: it may have guards.
    pub(crate) fn missing(pattern: &str, id: Id, ledger: &mut Ledger) -> Self {
        let text = format!(
            "`{pattern}` names no file that is there; name its root by --root. It may have guards, so the \
             requests that it may be about are closed"
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

/// Marks directives and all that stands in them, which were decided on as a whole.
pub(crate) fn keep_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    reason: &str,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.kept_or_risk(directive.id, reason);
        keep_all(directive.inside(), reason, ledger);
    }
}

/// Drops directives and all that stands in them.
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

/// The name of what stands for a file that is not there. No directive in force has it.
pub(crate) const MISSING: &str = "include";
