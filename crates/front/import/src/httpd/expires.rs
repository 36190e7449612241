//! `ExpiresActive`, `ExpiresByType` and `ExpiresDefault` of mod_expires: how long files are fresh.

use crate::directive::Directive;
use crate::freshness::Freshness;
use crate::ledger::Ledger;
use crate::plan::{Action, Rule};

/// What mod_expires says of the files of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Expiry {
    is_active: bool,
    freshness: Freshness,
}

impl Expiry {
    /// Adds the directives of a block, which override those of outer ones. A time that cannot be converted is reported,
    /// and its files have no `Cache-Control`.
    pub(super) fn add(&mut self, block: &[Directive], ledger: &mut Ledger) {
        for directive in block {
            match directive.name.as_str() {
                "expiresactive" => {
                    self.is_active = directive.word(0).eq_ignore_ascii_case("on");
                    ledger.mapped(directive.id);
                    if self.is_active {
                        ledger.note(directive.id, FILES_ALONE);
                    }
                }
                "expiresdefault" => {
                    self.freshness.others = value(directive, &directive.words, ledger);
                }
                "expiresbytype" => {
                    let value = value(
                        directive,
                        directive.words.get(1..).unwrap_or_default(),
                        ledger,
                    );
                    if !self.freshness.set(directive.word(0), value) {
                        ledger.lost(directive.id, "the importer does not know this media type");
                    }
                }
                _ => {}
            }
        }
    }

    /// Gives a rule that serves the directory the `Cache-Control` of its files.
    pub(super) fn over(&self, rule: &mut Rule) {
        let Action::Serve(serve) = &mut rule.action else {
            return;
        };
        if self.is_active {
            self.freshness.write(&mut serve.keys);
        } else {
            Freshness::default().write(&mut serve.keys);
        }
    }
}

/// The value of `Cache-Control` for the time that these words of a directive state; reports one that cannot be
/// converted.
fn value(directive: &Directive, words: &[String], ledger: &mut Ledger) -> Option<String> {
    match seconds(&words.join(" ")) {
        Some(seconds) => {
            ledger.mapped(directive.id);
            Some(format!("max-age={seconds}"))
        }
        None => {
            let text = "files have a time from the request on (`access`), and none from their last change on";
            ledger.lost(directive.id, text);
            None
        }
    }
}

/// The seconds from the request on that a text such as `access plus 1 month 2 days`, or `A3600`, states; `None` for any
/// other.
fn seconds(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix('A').filter(|it| is_number(it)) {
        return digits.parse().ok();
    }
    let lower = text.to_ascii_lowercase();
    let mut words: Vec<&str> = lower.split_whitespace().collect();
    if words.is_empty() || !matches!(words.remove(0), "access" | "now") {
        return None;
    }
    if words.first() == Some(&"plus") {
        words.remove(0);
    }
    let mut total: u64 = 0;
    for pair in words.chunks(2) {
        let [count, unit] = pair else { return None };
        let count: u64 = count.parse().ok().filter(|_| is_number(count))?;
        let unit = match unit.strip_suffix('s').unwrap_or(unit) {
            "second" => 1,
            "minute" => 60,
            "hour" => 3_600,
            "day" => 86_400,
            "week" => 604_800,
            // A month has 30 days in httpd, and a year 365.
            "month" => 2_592_000,
            "year" => 31_536_000,
            _ => return None,
        };
        total = total.saturating_add(count.saturating_mul(unit));
    }
    (!words.is_empty()).then_some(total)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

const FILES_ALONE: &str =
    "httpd says how long responses of applications are fresh as well, the front of files alone";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_from_the_request_on() {
        for (text, expected) in [
            ("access plus 1 month", Some(2_592_000)),
            ("Access Plus 1 year 2 days", Some(31_708_800)),
            ("now 30 minutes", Some(1_800)),
            ("access plus 0 seconds", Some(0)),
            ("A3600", Some(3_600)),
            ("M3600", None),
            ("modification plus 1 week", None),
            ("access plus 1 fortnight", None),
            ("access plus month", None),
            ("access", None),
            ("A", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }
}
