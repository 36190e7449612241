//! Judges places of the source, such as a location: what each directive that applies there and that no reader has
//! converted does to the place.
//!
//! A rule may lead to a backend or to files only with the [`Admission`] of a [`JudgedPlace`], which only
//! [`PlaceUse::judge`] makes. So a directive closes its place if no reader converts it, or if no table knows it.

use catamaran_config::{Nature, foreign_answer};

use crate::directive::{Directive, MISSING};
use crate::ledger::{Id, Ledger};
use crate::shown;

/// What a place does with requests. It decides which directives matter there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceUse {
    /// Whether requests are passed on to backends.
    pub(crate) forwards: bool,
    /// Whether files are sent.
    pub(crate) serves: bool,
    /// Whether requests are left to files that the front does not serve.
    pub(crate) leaves: bool,
}

/// The result of judging all directives of a place.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct JudgedPlace {
    closes: bool,
}

/// The proof that a rule may lead to a backend or to files. The default proves nothing, so such a rule is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission(bool);

impl PlaceUse {
    /// The union of what two actions do.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            forwards: self.forwards || other.forwards,
            serves: self.serves || other.serves,
            leaves: self.leaves || other.leaves,
        }
    }

    /// Judges a place by the directives that apply there, its own and inherited ones. Reports to the ledger those
    /// that close it; the ledger knows which directives readers have handled since the place began.
    pub(crate) fn judge<'d>(
        self,
        directives: impl IntoIterator<Item = &'d Directive>,
        ledger: &mut Ledger,
    ) -> JudgedPlace {
        let mut closes = false;
        for directive in directives {
            if ledger.is_handled(directive.id) {
                continue;
            }
            let server = ledger.server(directive.id);
            let Some(text) = self.closing_reason(server, &directive.name) else {
                continue;
            };
            closes = true;
            // A missing file was reported by `Directive::missing`.
            if directive.name != MISSING {
                let name = ledger.name(directive.id);
                // The words of an unknown directive are not shown, because one may be a secret.
                let shown = match foreign_answer(server, &directive.name) {
                    Some(_) => shown::words([name, directive.word(0), directive.word(1)]),
                    None => name.to_owned(),
                };
                let text = format!("`{}` {text}", shown.trim_end());
                ledger.unmapped(directive.id, &text);
            }
        }
        JudgedPlace { closes }
    }

    /// Why a directive of this name that was not converted closes the place; `None` if the place can stay open.
    fn closing_reason(self, server: &str, name: &str) -> Option<String> {
        let Some(answer) = foreign_answer(server, name) else {
            return Some("is unknown to the importer and may restrict access".to_owned());
        };
        let Some(nature) = answer.nature else {
            return Some("is no directive".to_owned());
        };
        let any_use = self.serves || self.forwards || self.leaves;
        let effect = match nature {
            Nature::Access => "restricts access",
            Nature::Content { of_files: true } if self.serves => "changes how files are sent",
            Nature::Content { of_files: false } if any_use => "changes responses",
            Nature::Identity if self.forwards => "sets what applications are told",
            Nature::Transport if self.forwards && !answer.is_needless => {
                "says how backends are reached and verified"
            }
            // The place does nothing that the directive is about, or the directive does no harm anywhere.
            Nature::Content { .. } | Nature::Identity | Nature::Transport | Nature::Harmless => {
                return None;
            }
        };
        Some(format!(
            "{effect}, and was not converted; in the front: {}",
            answer.text
        ))
    }
}

/// Whether the effect of any of these directives on a place depends on what the place does ([`PlaceUse`]).
pub(crate) fn depends(directives: &[Directive], ledger: &Ledger) -> bool {
    directives.iter().any(|directive| {
        let answer = foreign_answer(ledger.server(directive.id), &directive.name);
        match answer.and_then(|it| it.nature) {
            // They close each place, or none.
            None | Some(Nature::Access | Nature::Harmless) => false,
            Some(Nature::Content { .. } | Nature::Identity | Nature::Transport) => {
                !ledger.is_handled(directive.id)
            }
        }
    })
}

/// Whether a directive that possibly applies closes what it is about: it may be an access rule, change responses, or
/// change what the application believes. Directives that only forward requests do not.
pub(crate) fn may_close(server: &str, name: &str) -> bool {
    match foreign_answer(server, name).and_then(|it| it.nature) {
        None | Some(Nature::Access | Nature::Identity) => true,
        Some(Nature::Content { .. }) => !name.starts_with("proxypass"),
        Some(Nature::Transport | Nature::Harmless) => false,
    }
}

/// Reports a response field that was not converted, if clients can do no more without it. Other fields are left to
/// the judge.
pub(crate) fn lose_field(name: &str, id: Id, text: String, ledger: &mut Ledger) {
    if can_be_lost(name) {
        ledger.lost(id, text);
    }
}

/// Whether clients can do no more without this response field.
pub(crate) fn can_be_lost(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_of_source = lower.starts_with("x-") && !GUARDING.split(' ').any(|it| it == lower);
    let allows = ALLOWING.iter().any(|prefix| lower.starts_with(prefix));
    is_of_source || allows || HELPFUL.split(' ').any(|it| it == lower)
}

impl JudgedPlace {
    /// Whether the place is closed.
    pub(crate) fn closes(self) -> bool {
        self.closes
    }

    /// The admission for the rules of the place, which must be closed if the place is.
    pub(crate) fn admission(self) -> Admission {
        Admission(true)
    }
}

impl Admission {
    /// Whether a place was judged for the rule.
    pub(crate) fn is_given(self) -> bool {
        self.0
    }
}

/// Fields without which a response is cached for a shorter time, or describes itself less, separated by blanks.
const HELPFUL: &str = "\
    accept-ranges age allow alt-svc cache-control content-language date etag expires last-modified link location p3p \
    pragma server server-timing sourcemap tk vary via warning";

/// Prefixes of fields that allow clients something.
const ALLOWING: &[&str] = &["access-control-", "timing-allow-"];

/// Fields that begin with `X-` and forbid clients something, or that servers act on; all others are the source's own.
const GUARDING: &str = "\
    x-accel-redirect x-content-security-policy x-content-type-options x-download-options x-frame-options \
    x-permitted-cross-domain-policies x-sendfile x-webkit-csp x-xss-protection";
