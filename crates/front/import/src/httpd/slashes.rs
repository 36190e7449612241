//! Slashes that httpd treats differently from the front: escaped slashes, and several in a row.

use crate::expression::{ESCAPED_SLASH, translated};
use crate::httpd::files::Site;
use crate::judge::PlaceUse;
use crate::ledger::Ledger;
use crate::matcher::{MERGED, Matcher};
use crate::plan::{Access, Action, Rule};

/// Adds what httpd does with slashes to a server's rules: paths with an escaped slash are answered 404 unless
/// `AllowEncodedSlashes` allows them. If `MergeSlashes` is off and a rule names several slashes in a row, the server
/// is closed.
pub(super) fn guard(site: Site<'_>, rules: &mut Vec<Rule>, ledger: &mut Ledger) {
    if let Some(merge) = site.find("mergeslashes")
        && merge.word(0).eq_ignore_ascii_case("off")
        && rules.iter().any(|rule| rule.matcher.names_slashes())
    {
        ledger.unmapped(merge.id, MERGED);
        for rule in rules.iter_mut() {
            rule.settings.access = Access::Unsaid;
        }
    }
    for directive in site.all() {
        if matches!(
            directive.name.as_str(),
            "allowencodedslashes" | "mergeslashes"
        ) {
            ledger.dropped_if_open(directive.id, "the written routes treat slashes so");
        }
    }
    // Escaped slashes matter only where a path leads to a backend or to a file.
    if allows_escaped(site) || answers_all_itself(rules) {
        return;
    }
    let escaped = Matcher::Expression(translated(ESCAPED_SLASH, false));
    let mut refusal = Rule::new(None, escaped, Action::Answer(404));
    // httpd adds the fields of the whole server to this answer, too; the last rule has no others.
    if let Some(last) = rules.last() {
        refusal.settings.response_fields = last.settings.response_fields.clone();
    }
    rules.insert(0, refusal);
}

/// Whether a server takes paths with an escaped slash. A virtual host does not inherit `AllowEncodedSlashes`.
fn allows_escaped(site: Site<'_>) -> bool {
    let mut from_last = site.inner.iter().rev();
    match from_last.find(|it| it.name == "allowencodedslashes") {
        Some(last) => !last.word(0).eq_ignore_ascii_case("off"),
        None => false,
    }
}

/// Whether all requests are redirected or answered by the server itself.
fn answers_all_itself(rules: &[Rule]) -> bool {
    for rule in rules {
        if rule.action.place_use() != PlaceUse::default() {
            return false;
        }
        // No request reaches the rules behind this one.
        if rule.is_unconditional() && rule.matcher == Matcher::everything() {
            return true;
        }
    }
    true
}
