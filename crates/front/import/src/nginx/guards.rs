//! Guards of a location or a server: answers that some of its requests get instead of what it does, by their method
//! or by one of their values.
//!
//! A guard becomes a rule before each rule that it protects, with the same paths, scheme and tests, so that the
//! front's order of routes cannot prefer the protected rule.

use crate::directive::Directive;
use crate::ledger::{Ledger, Place};
use crate::matcher::Matcher;
use crate::methods::MethodGuard;
use crate::nginx::answer::{TextType, answer};
use crate::nginx::methods;
use crate::nginx::request_tests::{Choices, Condition};
use crate::nginx::rewrite::redirect_of_one;
use crate::plan::{Action, Rule};
use crate::route_tests::can_be_written;

#[derive(Clone, Debug)]
pub(super) enum Guard {
    Method(MethodGuard),
    Value(ValueGuard),
}

/// An answer for requests that pass tests of their values.
#[derive(Clone, Debug)]
pub(super) struct ValueGuard {
    place: Place,
    /// Lists of tests; a request is answered if it passes all of one.
    any: Vec<Vec<String>>,
    /// The only path whose requests are answered; `None`: all paths.
    path: Option<String>,
    action: Action,
}

impl Guard {
    /// Reads an `if` that tests the method or a value, and only returns; `None` for any other `if`.
    pub(super) fn of_condition(
        directive: &Directive,
        choices: &Choices,
        text_type: TextType<'_>,
        ledger: &mut Ledger,
    ) -> Option<Self> {
        let of_method = methods::of_condition(directive, ledger).map(Self::Method);
        of_method.or_else(|| {
            let guard = ValueGuard::read(directive, choices, text_type, ledger)?;
            Some(Self::Value(guard))
        })
    }
}

impl Guard {
    /// Whether the guard is about one path alone. The front prefers its rule to those of all guards above it.
    pub(super) fn is_of_one_path(&self) -> bool {
        match self {
            Self::Method(_) => false,
            Self::Value(guard) => guard.path.is_some(),
        }
    }
}

impl ValueGuard {
    /// Reads an `if` with one `return`, or one `rewrite` that redirects, inside; `None` for any other, or if tests of
    /// routes cannot express it.
    fn read(
        directive: &Directive,
        choices: &Choices,
        text_type: TextType<'_>,
        ledger: &mut Ledger,
    ) -> Option<Self> {
        let [only] = directive.inside() else {
            return None;
        };
        let any = Condition::read(&directive.words)?.tests(choices)?;
        let are_writable = any.iter().all(|it| can_be_written(it));
        if !are_writable {
            return None;
        }
        let (path, action) = match only.name.as_str() {
            "return" => (None, answer(only, text_type, None, ledger)),
            "rewrite" => {
                let (path, action) = redirect_of_one(only)?;
                ledger.mapped(only.id);
                (Some(path), action)
            }
            _ => return None,
        };
        ledger.mapped(directive.id);
        Some(Self {
            place: ledger.place(directive.id).clone(),
            any,
            path,
            action,
        })
    }

    /// The rules of the guard for the requests of another rule.
    fn beside<'r>(&'r self, rule: &'r Rule) -> impl Iterator<Item = Rule> + 'r {
        let own_path = self.path.as_ref().map(|it| Matcher::Exact(it.clone()));
        let matcher = match own_path {
            Some(own) => rule.matcher.covers(&own).then_some(own),
            None => Some(rule.matcher.clone()),
        };
        let tests = matcher
            .into_iter()
            .flat_map(|it| self.any.iter().map(move |tests| (it.clone(), tests)));
        tests.map(|(matcher, tests)| {
            let mut own = Rule {
                matcher,
                action: self.action.clone(),
                place: Some(self.place.clone()),
                when: None,
                ..rule.clone()
            };
            own.add_tests(tests);
            own
        })
    }
}

/// The rules of a location with its guards, which come first. After each rule for some methods there is a rule with
/// the same paths for all methods; `own` is the location's rule.
pub(super) fn guarded(rules: Vec<Rule>, own: &Rule, guards: &[Guard]) -> Vec<Rule> {
    behind_guards(rules, guards, |guard| Some(guard.beside(own)))
}

/// The guards of a server, and how its rules are placed among them.
#[derive(Debug, Default)]
pub(super) struct OrderedGuards {
    pub(super) guards: Vec<Guard>,
    /// For each rule that precedes what the server or the location itself does, how many of the guards stand above it.
    pub(super) above: Vec<usize>,
}

impl OrderedGuards {
    /// Puts before each rule the guards that stand above it in the file. The first rules are those of `above`; all
    /// guards stand above the others. `rest` makes the rule for requests that a guard by method refuses and for whose
    /// methods no rule is left.
    pub(super) fn guard(&self, rules: Vec<Rule>, rest: impl Fn(&MethodGuard) -> Rule) -> Vec<Rule> {
        let mut unguarded = rules.into_iter();
        let mut guarded = Vec::new();
        // Neighbours below the same guards are guarded together.
        for counts in self.above.chunk_by(|one, two| one == two) {
            let together = unguarded.by_ref().take(counts.len()).collect();
            let guards = &self.guards[..counts[0]];
            // Later rules answer what these leave, so they need no `rest`.
            guarded.extend(behind_guards(together, guards, |_| None));
        }
        let others = unguarded.collect();
        let last = behind_guards(others, &self.guards, |guard| Some(rest(guard)));
        guarded.extend(last);
        guarded
    }
}

/// The rules with these guards before each, in the order of the guards. `rest` makes the rule for requests that a guard
/// by method refuses and for whose methods no rule is left; `None` if later rules answer them.
fn behind_guards(
    rules: Vec<Rule>,
    guards: &[Guard],
    rest: impl Fn(&MethodGuard) -> Option<Rule>,
) -> Vec<Rule> {
    let are_values =
        |one: &Guard, two: &Guard| matches!((one, two), (Guard::Value(_), Guard::Value(_)));
    let runs: Vec<&[Guard]> = guards.chunk_by(are_values).collect();
    let mut guarded = rules;
    // Each run is put before those that come after it.
    for run in runs.into_iter().rev() {
        guarded = match run {
            [Guard::Method(guard)] => guard.before(guarded, rest(guard)),
            by_values => before_all(by_values, guarded),
        };
    }
    guarded
}

/// The rules, with the rules of these guards by values before each, in the order of the guards.
fn before_all(guards: &[Guard], rules: Vec<Rule>) -> Vec<Rule> {
    let mut guarded = Vec::with_capacity(rules.len() * (guards.len() + 1));
    'rules: for rule in rules {
        // The fewest tests of a rule of the guards so far.
        let mut fewest_before = usize::MAX;
        for guard in guards {
            let Guard::Value(guard) = guard else {
                continue;
            };
            let mut own: Vec<Rule> = guard.beside(&rule).collect();
            let fewest = own.iter().map(|it| it.tests.len()).min();
            close_preferred(&mut own, fewest_before);
            guarded.append(&mut own);
            // All requests of the rule pass the tests of this guard, so nothing behind it is reached.
            if guard.path.is_none() && fewest == Some(rule.tests.len()) {
                continue 'rules;
            }
            fewest_before = fewest_before.min(fewest.unwrap_or(usize::MAX));
        }
        guarded.push(rule);
    }
    guarded
}

/// Closes the rules that the front would prefer to one of an earlier guard, which has `fewest_before` tests: the front
/// prefers the rule with more tests. A rule that refuses requests may stay.
fn close_preferred(rules: &mut [Rule], fewest_before: usize) {
    for rule in rules {
        let refuses = matches!(rule.action, Action::Answer(400..));
        if rule.tests.len() > fewest_before && !refuses {
            rule.action = Action::Closed;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A guard by the methods PUT and POST (`1` and `2`, for others than these with `true`), or by a test of this number.
    #[derive(Clone, Debug)]
    enum Kind {
        Methods(u8, bool),
        Tests(Vec<u8>),
    }

    fn kinds() -> impl Strategy<Value = Vec<Kind>> {
        let kind = prop_oneof![
            (1..=3_u8, any::<bool>()).prop_map(|(bits, others)| Kind::Methods(bits, others)),
            prop::collection::vec(0..4_u8, 1..3).prop_map(Kind::Tests),
        ];
        prop::collection::vec(kind, 0..5)
    }

    fn methods(bits: u8) -> Vec<String> {
        let names = ["POST", "PUT"].into_iter().enumerate();
        let own = names.filter(|(at, _)| bits & (1 << at) != 0);
        own.map(|(_, name)| name.to_owned()).collect()
    }

    fn guard(kind: &Kind, status: u16, place: &Place) -> Guard {
        let action = Action::Answer(status);
        match kind {
            Kind::Methods(bits, is_for_others) => {
                let guard = MethodGuard::new(place, methods(*bits), *is_for_others, action);
                Guard::Method(guard.expect("these methods can be told apart"))
            }
            Kind::Tests(numbers) => Guard::Value(ValueGuard {
                place: place.clone(),
                any: numbers.iter().map(|it| vec![it.to_string()]).collect(),
                path: None,
                action,
            }),
        }
    }

    /// The status of the route that the front prefers: one for some methods first, then more tests, then the earlier.
    fn status(rules: &[Rule], method: &str, passed: u8) -> Option<u16> {
        let takes = |rule: &&Rule| {
            let is_method = rule.methods.is_empty() || rule.methods.iter().any(|it| it == method);
            let passes = |test: &String| passed & (1 << test.parse::<u8>().unwrap_or(7)) != 0;
            is_method && rule.tests.iter().all(passes)
        };
        let rank = |rule: &&Rule| (rule.methods.is_empty(), std::cmp::Reverse(rule.tests.len()));
        let found = rules.iter().filter(takes).min_by_key(rank);
        found.and_then(|rule| match rule.action {
            Action::Answer(status) => Some(status),
            _ => None,
        })
    }

    proptest! {
        #[test]
        fn guards_answer_in_the_order_of_the_file(
            kinds in kinds(), method in "PUT|POST|GET", passed in 0..16_u8,
        ) {
            let place = Place { file: "a".into(), line: 1 };
            let numbered = kinds.iter().zip(201..);
            let guards: Vec<Guard> = numbered.map(|(it, status)| guard(it, status, &place)).collect();
            let own = Rule::new(None, Matcher::everything(), Action::Answer(200));
            let rules = guarded(vec![own.clone()], &own, &guards);
            let holds = |kind: &Kind| match kind {
                Kind::Methods(bits, is_for_others) => methods(*bits).contains(&method) != *is_for_others,
                Kind::Tests(numbers) => numbers.iter().any(|it| passed & (1 << it) != 0),
            };
            let first = kinds.iter().zip(201..).find(|(kind, _)| holds(kind));
            let expected = first.map_or(200, |(_, status)| status);
            prop_assert_eq!(status(&rules, &method, passed), Some(expected));
        }
    }
}
