//! Closes the paths of rules that restrict access and name a `;`.
//!
//! The front removes `;parameters` before it compares a path. So such a rule would match no request, and later rules
//! would open its paths.

use crate::ledger::{Ledger, Weight};
use crate::matcher::Matcher;
use crate::plan::{Access, Action, Plan, Rule};

/// Adds, before all rules of a host, rules that close such paths in the form that the front compares.
pub(crate) fn close(plan: &mut Plan, ledger: &mut Ledger) {
    for host in &mut plan.hosts {
        let mut wide: Vec<Rule> = Vec::new();
        for rule in host.rules.iter().filter(|it| keeps_out(it)) {
            let Some(matcher) = without(&rule.matcher) else {
                continue;
            };
            if wide.iter().any(|it| it.matcher.covers(&matcher)) {
                continue;
            }
            let (named, closed) = (rule.matcher.shown(), matcher.shown());
            let text = format!(
                "the front compares paths without `;parameters`, so `{named}` takes none: `{closed}` is closed"
            );
            ledger.say(Weight::Risk, rule.place.clone(), text);
            wide.push(Rule::new(rule.place.as_ref(), matcher, Action::Closed));
        }
        host.rules.splice(0..0, wide);
    }
}

/// Whether a rule does not serve all requests of its paths.
fn keeps_out(rule: &Rule) -> bool {
    let refuses = match &rule.action {
        Action::Closed | Action::Files => true,
        Action::Answer(status) => *status >= 400,
        Action::Text(text) => text.status >= 400,
        _ => false,
    };
    let asks = rule.settings.keys.contains_key("client_certificate");
    refuses || asks || rule.settings.access != Access::Open
}

/// The form, without parameters, of the paths of a set that all contain a `;`; `None` if they need not. Expressions
/// are left out: for them the front does this itself (`refuse_parameters`).
fn without(matcher: &Matcher) -> Option<Matcher> {
    let shown = matcher.shown();
    let (before, behind) = shown.split_once(';')?;
    match matcher {
        Matcher::Expression(_) => None,
        Matcher::Exact(_) if !behind.contains('/') => Some(Matcher::Exact(before.to_owned())),
        Matcher::Exact(_) | Matcher::Prefix(_) => Some(Matcher::prefix(before)),
        Matcher::Suffix { .. } | Matcher::Pattern(_) => {
            Some(Matcher::pattern(&format!("{before}*")))
        }
    }
}
