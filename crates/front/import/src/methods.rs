//! Guards by method: requests with some methods get an answer instead of what their paths lead to.
//!
//! The front itself refuses TRACE and CONNECT, and treats HEAD as GET.

use crate::ledger::Place;
use crate::matcher::Matcher;
use crate::plan::{Action, Rule};

/// An answer that requests with some methods get in place of what their location does.
#[derive(Clone, Debug)]
pub(crate) struct MethodGuard {
    place: Place,
    methods: Vec<String>,
    /// Whether the answer is for all methods but these.
    is_for_others: bool,
    action: Action,
}

impl MethodGuard {
    /// The guard that answers requests with these methods, or with all others; `None` if routes cannot tell them apart.
    pub(crate) fn new(
        place: &Place,
        methods: Vec<String>,
        is_for_others: bool,
        action: Action,
    ) -> Option<Self> {
        let is_sayable =
            methods.iter().all(|it| is_method(it)) && can_be_written(&methods, is_for_others);
        is_sayable.then(|| Self {
            place: place.clone(),
            methods: written(methods),
            is_for_others,
            action,
        })
    }

    /// The same guard with another answer.
    pub(crate) fn answering(self, action: Action) -> Self {
        Self { action, ..self }
    }

    /// The rules, with the guard before each. `rest` answers requests for which no rule is left behind the guard;
    /// `None` if later rules answer them.
    pub(crate) fn before(&self, rules: Vec<Rule>, rest: Option<Rule>) -> Vec<Rule> {
        let has = |it: &String| self.methods.contains(it);
        let mut next = Vec::with_capacity(rules.len() * 2);
        for mut rule in rules {
            let mut limited = rule.methods.clone();
            limited.retain(has);
            if rule.methods.is_empty() {
                limited.clone_from(&self.methods);
            }
            if self.is_for_others {
                if !limited.is_empty() {
                    rule.methods = limited;
                    next.push(rule);
                }
                continue;
            }
            if !limited.is_empty() {
                let mut other = self.beside(&rule);
                other.methods = limited;
                next.push(other);
            }
            next.push(rule);
        }
        next.extend(rest.filter(|_| self.is_for_others));
        next
    }

    /// The guard's rule for all paths of `matcher`, after all other rules.
    pub(crate) fn of_rest(&self, matcher: Matcher) -> Rule {
        Rule::new(Some(&self.place), matcher, self.action.clone())
    }

    /// The guard's rule for the paths of another rule.
    pub(crate) fn beside(&self, rule: &Rule) -> Rule {
        Rule {
            action: self.action.clone(),
            place: Some(self.place.clone()),
            when: None,
            ..rule.clone()
        }
    }
}

/// Puts the guards of a server before all of its rules.
pub(crate) fn guard_all(rules: &mut Vec<Rule>, guards: &[MethodGuard]) {
    for guard in guards.iter().rev() {
        let rest = Some(guard.of_rest(Matcher::everything()));
        *rules = guard.before(std::mem::take(rules), rest);
    }
}

fn is_method(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(is_sign)
}

/// Whether routes can distinguish these methods from the others. They cannot distinguish GET from HEAD.
fn can_be_written(methods: &[String], is_for_others: bool) -> bool {
    let has = |name: &str| methods.iter().any(|it| it == name);
    let is_some = methods.iter().any(|it| !is_own(it));
    is_some && has("GET") <= has("HEAD") && (is_for_others || has("HEAD") <= has("GET"))
}

/// The methods in the form of a route's key.
fn written(mut methods: Vec<String>) -> Vec<String> {
    let has_get = methods.iter().any(|it| it == "GET");
    methods.retain(|it| !(is_own(it) || has_get && it == "HEAD"));
    methods.sort();
    methods.dedup();
    methods
}

/// Whether the front itself refuses the method.
fn is_own(method: &str) -> bool {
    matches!(method, "TRACE" | "CONNECT")
}
