//! Request variables that make a module of httpd leave requests to other modules: `no-jk` and `no-proxy`.

use crate::directive::Directive;
use crate::httpd::expressions::{self, PathSet};
use crate::httpd::files::Site;
use crate::ledger::Ledger;
use crate::matcher::Matcher;
use crate::plan::{Action, Rule};

/// Rules for the paths whose requests a module leaves to others because this variable is set outside of sections: they
/// have [`Action::Files`], or are closed if it is not known for which requests the variable is set.
pub(super) fn declining(site: Site<'_>, variable: &str, ledger: &mut Ledger) -> Vec<Rule> {
    let mut rules = Vec::new();
    for directive in site.all().filter(|it| sets(it, variable)) {
        let set = paths(directive);
        let is_unset = directive.words.iter().any(|it| it.starts_with('!'));
        let action = if set.is_exact && !is_unset {
            ledger.mapped(directive.id);
            Action::Files
        } else {
            let text = format!(
                "routes cannot say for which requests it sets `{variable}`, which keeps a module from them"
            );
            ledger.unmapped(directive.id, &text);
            Action::Closed
        };
        let place = ledger.place(directive.id);
        let matchers = set.matchers.into_iter();
        rules.extend(matchers.map(|it| Rule::new(Some(place), it, action.clone())));
    }
    rules
}

/// Whether a directive sets or unsets this variable of a request.
pub(super) fn sets(directive: &Directive, variable: &str) -> bool {
    let name = directive.name.as_str();
    let is_setter = name.starts_with("setenv") || name.starts_with("browsermatch");
    is_setter && directive.words.iter().any(|it| is_of(it, variable))
}

/// Whether a word such as `no-jk`, `no-jk=1` or `!no-jk` is about this variable.
pub(super) fn is_of(word: &str, variable: &str) -> bool {
    let bare = word.trim_start_matches('!');
    let name = bare.split(['=', ':']).next().unwrap_or_default();
    name.eq_ignore_ascii_case(variable)
}

/// The paths for which a directive sets variables: those of a `SetEnvIf Request_URI`, or all if it tests anything
/// else.
fn paths(directive: &Directive) -> PathSet {
    let asks_path = directive.name.starts_with("setenvif")
        && directive.word(0).eq_ignore_ascii_case("request_uri");
    if asks_path {
        return expressions::paths(directive.word(1), directive.name == "setenvifnocase");
    }
    PathSet {
        matchers: vec![Matcher::everything()],
        is_exact: false,
    }
}
