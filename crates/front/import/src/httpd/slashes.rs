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
    let merge = site
        .find("mergeslashes")
        .filter(|it| it.word(0).eq_ignore_ascii_case("off"));
    if let Some(merge) = merge
        && rules.iter().any(|it| it.matcher.names_slashes())
    {
        ledger.unmapped(merge.id, MERGED);
        let all = rules.iter_mut();
        all.for_each(|it| it.settings.access = Access::Unsaid);
    }
    for name in ["allowencodedslashes", "mergeslashes"] {
        let all = site.all().filter(|it| it.name == name);
        all.for_each(|it| ledger.dropped_if_open(it.id, "the written routes treat slashes so"));
    }
    if allows_escaped(site) || gives_nothing(rules) {
        return;
    }
    let escaped = Matcher::Expression(translated(ESCAPED_SLASH, false));
    let mut rule = Rule::new(None, escaped, Action::Answer(404));
    if let Some(last) = rules.last() {
        rule.settings.response_fields = last.settings.response_fields.clone();
    }
    rules.insert(0, rule);
}

/// Whether a server takes paths with an escaped slash. A virtual host does not inherit `AllowEncodedSlashes`.
fn allows_escaped(site: Site<'_>) -> bool {
    let mut own = site.inner.iter().rev();
    let last = own.find(|it| it.name == "allowencodedslashes");
    last.is_some_and(|it| !it.word(0).eq_ignore_ascii_case("off"))
}

/// Whether all requests are redirected or answered by the server itself.
fn gives_nothing(rules: &[Rule]) -> bool {
    let is_last = |it: &&Rule| it.is_unconditional() && it.matcher == Matcher::everything();
    let end = rules.iter().position(|it| is_last(&it));
    let asked = &rules[..end.map_or(rules.len(), |it| it + 1)];
    asked
        .iter()
        .all(|it| it.action.place_use() == PlaceUse::default())
}
