//! Locations whose requests another location answers, with a part of their path: `rewrite … last`.
//!
//! nginx chooses a location anew for the new path, which the importer does if there is only one other location.

use crate::directive::Directive;
use crate::expression::translated;
use crate::ledger::Ledger;
use crate::matcher::Matcher;
use crate::nginx::location::modifier;
use crate::plan::{Action, Rule};

/// A location such as `~ ^/static/[0-9]+/(.*)$` that only rewrites its paths to `/$1`.
pub(super) struct Leap<'d> {
    location: &'d Directive,
    rewrite: &'d Directive,
    /// The `location /` that gets the new paths.
    pub(super) target: &'d Directive,
    /// The expression before the group, with its first slash and without `^`.
    before: &'d str,
}

impl<'d> Leap<'d> {
    /// Reads a location of the server with the directives `siblings` in a block with those of `outer`; `None` if it does
    /// anything else, or if there are other locations than `/` that may get the new paths.
    pub(super) fn read(
        location: &'d Directive,
        siblings: &'d [Directive],
        outer: &[Directive],
    ) -> Option<Self> {
        let [rewrite] = location.inside() else {
            return None;
        };
        let (sign, text) = modifier(&location.words)?;
        let is_leap = rewrite.name == "rewrite"
            && matches!(rewrite.word(2), "" | "last")
            && rewrite.word(1) == "/$1"
            && sign == "~"
            && text.trim_end_matches('$') == rewrite.word(0).trim_end_matches('$');
        let before = text
            .strip_prefix('^')?
            .trim_end_matches('$')
            .strip_suffix("(.*)")?;
        // Without groups and alternatives, so that the expression may stand before another text.
        let is_plain = before.starts_with('/') && !before.contains(['(', ')', '|']);
        // Requests reach a named location only where it is named.
        let is_other = |it: &&Directive| {
            it.name == "location" && it.id != location.id && !it.word(0).starts_with('@')
        };
        let others = siblings.iter().filter(is_other);
        let [target] = others.collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_whole = target.words == ["/"];
        let merges = |it: &Directive| it.name != "merge_slashes";
        let merges_all = siblings.iter().chain(outer).all(merges);
        // nginx has the old path in one of them, and the new one in the others; the front has it the other way round.
        let names_path = [siblings, outer].into_iter().any(names_path);
        (is_leap && is_plain && is_whole && merges_all && !names_path).then_some(Self {
            location,
            rewrite,
            target,
            before,
        })
    }

    /// The rules of the target for the paths of this location; `None` if the front cannot express one of them.
    pub(super) fn rules(&self, reached: Vec<Rule>, ledger: &mut Ledger) -> Option<Vec<Rule>> {
        let expression = |text: String| {
            let expression = translated(&text, false);
            expression
                .is_exact
                .then_some(Matcher::Expression(expression))
        };
        let all = expression(format!("^{}(.*)$", self.before))?;
        let root = expression(format!("^{}$", self.before))?;
        let again = expression(format!("^{}{}", self.before, &self.before[1..]))?;
        let place = ledger.place(self.location.id).clone();
        // nginx would rewrite them once more.
        let mut rules = vec![Rule::new(Some(&place), again, Action::Closed)];
        for mut rule in reached {
            rule.matcher = match &rule.matcher {
                it if *it == Matcher::everything() => all.clone(),
                Matcher::Exact(path) if path == "/" => root.clone(),
                _ => return None,
            };
            match &mut rule.action {
                Action::Forward { rewrite, .. } if rewrite.is_none() => {
                    *rewrite = Some("/{1}".to_owned());
                }
                Action::Redirect { to, .. } if !to.contains("{path") => {}
                Action::Answer(_) | Action::Closed => {}
                _ => return None,
            }
            rules.push(rule);
        }
        ledger.mapped(self.location.id);
        ledger.mapped(self.rewrite.id);
        let text = "paths that its expression matches twice are closed; nginx rewrites them twice";
        ledger.note(self.location.id, text);
        Some(rules)
    }
}

/// Whether a directive outside other locations than `/` has a variable with the path of the request.
fn names_path(directives: &[Directive]) -> bool {
    directives.iter().any(|it| {
        let is_elsewhere = it.name == "location" && it.words != ["/"];
        let has_path = |word: &String| PATHS.iter().any(|path| word.contains(path));
        !is_elsewhere
            && !matches!(it.name.as_str(), "server" | "log_format")
            && (it.words.iter().any(has_path) || names_path(it.inside()))
    })
}

/// Variables with the path of a request, as words name them.
const PATHS: [&str; 6] = [
    "$request_uri",
    "${request_uri",
    "$uri",
    "${uri",
    "$document_uri",
    "${document_uri",
];
