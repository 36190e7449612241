//! The conditions that a location tests before it handles a request: `if` and `limit_except`.

use crate::condition::Port;
use crate::directive::{Directive, drop_all, part_all};
use crate::ledger::Ledger;
use crate::methods::MethodGuard;
use crate::nginx::answer::TextType;
use crate::nginx::certificates::refusal;
use crate::nginx::files::missing;
use crate::nginx::guards::{Guard, OrderedGuards};
use crate::nginx::location::{Scope, inner_rewrite};
use crate::nginx::methods;
use crate::nginx::request_tests::{Choices, only_sets, sets_known};
use crate::nginx::rewrite;
use crate::plan::{Action, Rule};

/// The conditions of a location that could be converted.
#[derive(Default)]
pub(super) struct Conditions {
    /// The answers to requests of one scheme.
    pub(super) rules: Vec<Rule>,
    /// The other conditions, and where the rules stand among them.
    pub(super) guards: OrderedGuards,
    /// Those of `limit_except`, which come before all others.
    pub(super) limits: Vec<Guard>,
    /// Whether the location has a directive on requests that is not converted.
    pub(super) is_strange: bool,
}

/// What is needed to read the conditions of a location.
#[derive(Clone, Copy)]
pub(super) struct ConditionContext<'s> {
    /// The path of the location; `None` if it is an expression or a named location.
    pub(super) path: Option<&'s str>,
    pub(super) ports: &'s [Port],
    pub(super) choices: &'s Choices,
}

impl Conditions {
    /// Reads the conditions of a location, and marks their directives as mapped, dropped or not converted.
    pub(super) fn read(
        scope: Scope<'_>,
        context: ConditionContext<'_>,
        ledger: &mut Ledger,
    ) -> Self {
        let inner = scope.blocks.first().copied().unwrap_or_default();
        claim(scope, inner, context.choices, ledger);
        let text_type = TextType::of(scope, context.path);
        let mut read = Self::default();
        for (index, directive) in inner.iter().enumerate() {
            let has_returned = inner[..index].iter().any(|it| it.name == "return");
            let is_known = match directive.name.as_str() {
                "if" if has_returned => {
                    let text = "it stands behind a `return`, which answers before it is asked";
                    drop_all([directive], text, ledger);
                    true
                }
                "if" | "limit_except" if is_void(directive, inner) => {
                    ledger.dropped(directive.id, "nothing stands in it");
                    true
                }
                // The route asks for the certificate.
                "if" if refusal(scope).is_some_and(|it| it.id == directive.id) => {
                    directive
                        .inside()
                        .iter()
                        .for_each(|it| ledger.mapped(it.id));
                    true
                }
                "if" if sets_known(directive, context.choices) => {
                    let all = [directive].into_iter().chain(directive.inside());
                    all.for_each(|it| ledger.mapped(it.id));
                    true
                }
                // Beside `try_files` it does more: no files are tried if its condition holds.
                "if" if only_sets(directive) && scope.own("try_files").is_none() => {
                    rewrite::lose_sets(directive, ledger);
                    true
                }
                "if" => read.add(directive, context, text_type, ledger) && !read.stops_files(scope),
                "limit_except" => {
                    let guard = methods::of_limit(directive, scope, ledger).map(Guard::Method);
                    let is_known = guard.is_some();
                    read.limits.extend(guard);
                    is_known
                }
                // A nested location that could not be moved out.
                "location" => false,
                "rewrite" => {
                    let redirects = rewrite::redirect_of_all(inner).is_some();
                    redirects || inner_rewrite(inner, context.path).is_some()
                }
                "try_files" => missing(Some(directive)).is_some(),
                _ => true,
            };
            if !is_known {
                let text = format!("`{}` in a location was not converted", directive.name);
                ledger.unmapped(directive.id, &text);
                part_all(directive.inside(), directive.id, ledger);
                read.is_strange = true;
            }
        }
        if read.has_path_below_guards() {
            // The other conditions would have to be asked first.
            for directive in inner.iter().filter(|it| it.name == "if") {
                let text =
                    "the redirect of one path stands beside other conditions of its location";
                ledger.unmapped(directive.id, text);
            }
            read.is_strange = true;
        }
        read.limits.extend(limit_of_status(scope, ledger));
        if scope.own("internal").is_some() {
            // nginx answers 404 for an internal location before it tests any condition.
            return Self {
                is_strange: read.is_strange,
                ..Self::default()
            };
        }
        read
    }

    /// Whether a redirect of one path stands below other conditions, to which the front would prefer it.
    fn has_path_below_guards(&self) -> bool {
        let is_of_path = |it: &Guard| it.is_of_one_path();
        let mut below = self.guards.guards.iter().skip(1);
        let is_first_alone = self.rules.is_empty() && self.limits.is_empty();
        below.any(is_of_path) || (self.guards.guards.iter().any(is_of_path) && !is_first_alone)
    }

    /// Whether the last guard redirects one path, and makes nginx try no files for all others.
    fn stops_files(&self, scope: Scope<'_>) -> bool {
        let last = self.guards.guards.last();
        last.is_some_and(Guard::is_of_one_path) && scope.own("try_files").is_some()
    }

    /// Adds an `if`; returns `false` if it cannot be converted.
    fn add(
        &mut self,
        directive: &Directive,
        context: ConditionContext<'_>,
        text_type: TextType<'_>,
        ledger: &mut Ledger,
    ) -> bool {
        if let Some(guard) = Guard::of_condition(directive, context.choices, text_type, ledger) {
            self.guards.guards.push(guard);
            return true;
        }
        let Some(rules) = rewrite::of_location(directive, context.ports, ledger) else {
            return false;
        };
        self.rules.extend(rules);
        // The guards so far stand above the new rules.
        let count = self.guards.guards.len();
        self.guards.above.resize(self.rules.len(), count);
        true
    }
}

/// The methods that nginx takes where its counters are shown.
fn limit_of_status(scope: Scope<'_>, ledger: &Ledger) -> Option<Guard> {
    let status = scope.own("stub_status")?;
    let methods = ["GET", "HEAD"].map(str::to_owned).to_vec();
    let place = ledger.place(status.id);
    MethodGuard::new(place, methods, true, Action::Answer(405)).map(Guard::Method)
}

/// Marks as mapped the directives that give variables one of a few values in this location, which `choices` has read.
pub(super) fn claim(scope: Scope<'_>, inner: &[Directive], choices: &Choices, ledger: &mut Ledger) {
    if choices.contains_key("invalid_referer") {
        let referers = scope.level(|it| it.name == "valid_referers");
        referers.iter().for_each(|it| ledger.mapped(it.id));
    }
    for set in inner.iter().filter(|it| it.name == "set") {
        if choices.contains_key(set.word(0).trim_start_matches('$')) {
            ledger.mapped(set.id);
        }
    }
}

/// Whether an `if` has no effect because its block is empty. With an expression it has one, because it captures, and
/// with `try_files` beside it, because no files are tried if its condition holds.
fn is_void(directive: &Directive, siblings: &[Directive]) -> bool {
    let is_empty = directive.inner.as_ref().is_some_and(Vec::is_empty);
    let takes = directive.words.iter().any(|it| it.contains('~'));
    is_empty && !takes && !siblings.iter().any(|it| it.name == "try_files")
}

/// Whether a location has an `if` whose condition may test a regular expression (a word with `~`). In nginx, such an
/// `if` replaces what the location's own expression captured, even if its own expression has no groups: `$1` then
/// does not refer to the location's expression.
pub(super) fn replaces_captures(inner: &[Directive]) -> bool {
    let asks = |it: &Directive| it.name == "if" && it.words.iter().any(|it| it.contains('~'));
    inner.iter().any(asks)
}
