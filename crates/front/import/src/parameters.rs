//! Closes the paths of rules that restrict access and name a `;`.
//!
//! The front removes `;parameters` before it compares a path. So such a rule would match no request, and later rules
//! would open its paths.

use crate::expression::{literal, translated};
use crate::ledger::{Ledger, Weight};
use crate::matcher::Matcher;
use crate::plan::{Access, Action, Plan, Rule};

/// Adds, before all rules of a host, rules that close such paths in the form that the front compares.
pub(crate) fn close(plan: &mut Plan, ledger: &mut Ledger) {
    for host in &mut plan.hosts {
        let mut closing_rules: Vec<Rule> = Vec::new();
        for rule in host.rules.iter().filter(|rule| keeps_out(rule)) {
            let Some(matcher) = without_parameters(&rule.matcher) else {
                continue;
            };
            if closing_rules
                .iter()
                .any(|other| other.matcher.covers(&matcher))
            {
                continue;
            }
            let (named, closed) = (rule.matcher.shown(), matcher.shown());
            let text = format!(
                "the front compares paths without `;parameters`, so `{named}` takes none: `{closed}` is closed"
            );
            ledger.say(Weight::Risk, rule.place.clone(), text);
            closing_rules.push(Rule::new(rule.place.as_ref(), matcher, Action::Closed));
        }
        closing_rules.extend(beside_prefixes(&host.rules, ledger));
        host.rules.splice(0..0, closing_rules);
    }
}

/// Rules that close the paths of earlier prefixes with parameters at their end, such as `/app;x`, about which an
/// expression that names a `;` decides in the source: a prefix takes whole segments there.
fn beside_prefixes(rules: &[Rule], ledger: &mut Ledger) -> Vec<Rule> {
    let names_parameters = |rule: &Rule| match &rule.matcher {
        Matcher::Expression(expression) => keeps_out(rule) && expression.text().contains(';'),
        _ => false,
    };
    let Some(guard) = rules.iter().rposition(names_parameters) else {
        return Vec::new();
    };
    let mut closing_rules: Vec<Rule> = Vec::new();
    for rule in &rules[..guard] {
        let is_open = !rule.yields && !rule.is_closed();
        let Matcher::Prefix(path) = &rule.matcher else {
            continue;
        };
        if path.is_empty() || !is_open {
            continue;
        }
        let matcher = Matcher::Expression(translated(&format!("^{};", literal(path)), false));
        if closing_rules.iter().all(|other| other.matcher != matcher) {
            let text = format!(
                "a later rule decides about parameters, as in `{path};x`: such paths are closed"
            );
            ledger.say(Weight::Risk, rule.place.clone(), text);
            closing_rules.push(Rule::new(rule.place.as_ref(), matcher, Action::Closed));
        }
    }
    closing_rules
}

/// Whether a rule refuses requests, or some clients. [`Action::Files`] counts: the old server may restrict its files.
fn keeps_out(rule: &Rule) -> bool {
    let refuses = match &rule.action {
        Action::Closed | Action::Files => true,
        Action::Answer(status) => *status >= 400,
        Action::Text(text) => text.status >= 400,
        _ => false,
    };
    let wants_certificate = rule.settings.keys.contains_key("client_certificate");
    let is_guarded = rule.settings.access != Access::Open || rule.settings.sign_on.is_some();
    refuses || wants_certificate || is_guarded
}

/// A set that contains all paths of `matcher` after the front has removed their parameters. `None` if `matcher` has no
/// `;`, or is an expression, for which the front itself refuses parameters (`refuse_parameters`).
fn without_parameters(matcher: &Matcher) -> Option<Matcher> {
    let text = matcher.shown();
    let (before, behind) = text.split_once(';')?;
    match matcher {
        Matcher::Expression(_) => None,
        Matcher::Exact(_) if !behind.contains('/') => Some(Matcher::Exact(before.to_owned())),
        // The front compares `/a;x/b` as `/a/b`. The prefix `/a` contains that path, and more.
        Matcher::Exact(_) | Matcher::Prefix(_) => Some(Matcher::prefix(before)),
        Matcher::Suffix { .. } | Matcher::Pattern(_) => {
            Some(Matcher::pattern(&format!("{before}*")))
        }
    }
}
