//! Tests of requests (`match_regex`) that a route cannot have, because there are too many or one is too large.

use std::collections::{BTreeSet, HashMap};

use catamaran_proxy::config::RequestTest;

use crate::ledger::{Ledger, Place, Weight};
use crate::plan::{Action, Plan, Rule};

/// Whether a route may have all of these tests.
pub(crate) fn can_be_written(tests: &[String]) -> bool {
    tests.len() <= TESTS_MAX && tests.iter().all(|it| RequestTest::parse(it).is_ok())
}

/// Closes rules with tests that no route can have. The closed rule has only those tests that a route can have, so it
/// may close more requests.
pub(crate) fn close(plan: &mut Plan, ledger: &mut Ledger) {
    let mut known: HashMap<String, bool> = HashMap::new();
    let mut is_valid = |test: &String| {
        let parsed = || RequestTest::parse(test).is_ok();
        *known.entry(test.clone()).or_insert_with(parsed)
    };
    let mut closed: BTreeSet<(Option<Place>, String)> = BTreeSet::new();
    let rules = plan.hosts.iter_mut().flat_map(|host| &mut host.rules);
    for rule in rules.filter(|it| !it.tests.is_empty()) {
        let names = values(rule);
        let count = rule.tests.len();
        rule.tests.retain(&mut is_valid);
        rule.tests.truncate(TESTS_MAX);
        if rule.tests.len() < count {
            rule.action = Action::Closed;
            closed.insert((rule.place.clone(), names));
        }
    }
    for (place, names) in closed {
        let text = format!(
            "no route can have its tests of {names}: they are more than {TESTS_MAX}, or one is too large; it is closed"
        );
        ledger.say(Weight::Risk, place, text);
    }
}

/// The names of the values that a rule tests, for a message. What they are compared with is left out, because it may
/// be a secret.
fn values(rule: &Rule) -> String {
    let value = |it: &String| it.split(' ').next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = rule.tests.iter().map(value).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// The highest number of tests of a route.
const TESTS_MAX: usize = 16;
