//! Guards by method: requests with some methods get an answer instead of what their paths lead to.
//!
//! The front itself refuses TRACE and CONNECT, and treats HEAD as GET.

use crate::ledger::Place;
use crate::matcher::Matcher;
use crate::plan::{Access, Action, Rule};

/// An answer that requests with some methods get in place of what their location does, or other access rules.
#[derive(Clone, Debug)]
pub(crate) struct MethodGuard {
    place: Place,
    methods: Vec<String>,
    /// Whether the answer is for all methods but these.
    is_for_others: bool,
    action: Action,
    /// The clients who get what the location does, in place of the answer; `None`: nobody.
    access: Option<Access>,
}

impl MethodGuard {
    /// The guard that answers requests with these methods, or with all others; `None` if routes cannot tell them apart.
    pub(crate) fn new(
        place: &Place,
        methods: Vec<String>,
        is_for_others: bool,
        action: Action,
    ) -> Option<Self> {
        let are_methods = methods.iter().all(|name| is_method(name));
        if !are_methods || !can_be_written(&methods) {
            return None;
        }
        Some(Self {
            place: place.clone(),
            methods: written(methods),
            is_for_others,
            action,
            access: None,
        })
    }

    /// The same guard with another answer.
    pub(crate) fn answering(self, action: Action) -> Self {
        Self { action, ..self }
    }

    /// The same guard, which lets these clients have what the location does, and no others.
    pub(crate) fn admitting(self, access: Access) -> Self {
        Self {
            access: Some(access),
            ..self
        }
    }

    /// The rules, with the guard before each. `rest` answers requests for which no rule is left behind the guard;
    /// `None` if later rules answer them.
    pub(crate) fn before(&self, rules: Vec<Rule>, rest: Option<Rule>) -> Vec<Rule> {
        let mut guarded = Vec::with_capacity(rules.len() * 2);
        for mut rule in rules {
            let common = common(&rule.methods, &self.methods);
            if self.is_for_others {
                // The rule keeps these methods; `rest` answers all others.
                if !common.is_empty() {
                    rule.methods = common;
                    guarded.push(rule);
                }
            } else {
                if !common.is_empty() {
                    guarded.push(Rule {
                        methods: common,
                        ..self.beside(&rule)
                    });
                }
                guarded.push(rule);
            }
        }
        if self.is_for_others {
            guarded.extend(rest);
        }
        guarded
    }

    /// The guard's rule for all paths of `matcher`, after all other rules.
    pub(crate) fn of_rest(&self, matcher: Matcher) -> Rule {
        Rule::new(Some(&self.place), matcher, self.action.clone())
    }

    /// The guard's rule for the paths of another rule.
    pub(crate) fn beside(&self, rule: &Rule) -> Rule {
        let mut guard = Rule {
            place: Some(self.place.clone()),
            when: None,
            ..rule.clone()
        };
        match &self.access {
            // The place may be closed whatever its access rules say.
            Some(_) if rule.settings.access == Access::Unsaid => {}
            Some(access) => guard.settings.access = access.clone(),
            None => guard.action = self.action.clone(),
        }
        guard
    }
}

/// Puts the guards of a server before all of its rules.
pub(crate) fn guard_all(rules: &mut Vec<Rule>, guards: &[MethodGuard]) {
    // Each guard is put before those that come after it.
    for guard in guards.iter().rev() {
        let rest = Some(guard.of_rest(Matcher::everything()));
        *rules = guard.before(std::mem::take(rules), rest);
    }
}

/// The methods that a rule for `methods` takes, without any for all of them, and that are among `names`.
pub(crate) fn common(methods: &[String], names: &[String]) -> Vec<String> {
    if methods.is_empty() {
        return names.to_vec();
    }
    let of_names = names.iter().filter(|name| takes(methods, name));
    let of_rule = methods.iter().filter(|method| takes(names, method));
    let mut common: Vec<String> = of_names.chain(of_rule).cloned().collect();
    common.sort();
    common.dedup();
    common
}

/// Whether one of these methods is this one; GET includes HEAD.
pub(crate) fn takes(methods: &[String], method: &str) -> bool {
    let mut names = methods.iter();
    names.any(|name| name == method || (name == "GET" && method == "HEAD"))
}

fn is_method(text: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.bytes().all(is_sign)
}

/// Whether routes can distinguish these methods from the others. For a route, GET includes HEAD.
fn can_be_written(methods: &[String]) -> bool {
    let has = |name: &str| methods.iter().any(|method| method == name);
    // The front refuses these for every route, so no route is for them.
    if methods.iter().all(|method| is_refused_by_front(method)) {
        return false;
    }
    // No route is for GET without HEAD, and none for HEAD stands beside one for GET with the same paths.
    has("GET") == has("HEAD")
}

/// The methods in the form of a route's key.
fn written(mut methods: Vec<String>) -> Vec<String> {
    let has_get = methods.iter().any(|method| method == "GET");
    methods.retain(|method| {
        let is_part_of_get = has_get && method == "HEAD";
        !is_refused_by_front(method) && !is_part_of_get
    });
    methods.sort();
    methods.dedup();
    methods
}

fn is_refused_by_front(method: &str) -> bool {
    matches!(method, "TRACE" | "CONNECT")
}
