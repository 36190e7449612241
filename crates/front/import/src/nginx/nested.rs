//! Locations inside locations, put beside them.
//!
//! nginx looks among a prefix's own locations once the prefix is the longest one that matches, and among expressions of the
//! level above afterwards (`ngx_http_core_find_location`). So a prefix or an exact path inside a prefix decides as it
//! would beside it, with the directives that it inherits. Expressions inside a location come before those above, which no
//! order of one level says: such a location stays as it is, and is closed.

use crate::directive::Directive;
use crate::nginx::files::MIME_TYPES;
use crate::nginx::location::modifier;

/// The directives of a server with nested locations beside those that they were in; `None` if there are none that can be.
pub(super) fn unnested(directives: &[Directive]) -> Option<Vec<Directive>> {
    if !directives.iter().any(|it| holds(it).is_some()) {
        return None;
    }
    let mut all = Vec::with_capacity(directives.len());
    for directive in directives {
        match holds(directive) {
            Some(sign) => pull_out(directive, sign, &mut all),
            None => all.push(directive.clone()),
        }
    }
    Some(all)
}

/// The sign of a location whose nested locations can be put beside it; `None` for every other directive.
fn holds(location: &Directive) -> Option<&str> {
    let (sign, text) = modifier(&location.words)?;
    let is_prefix =
        location.name == "location" && matches!(sign, "" | "^~") && text.starts_with('/');
    let mut nested = location
        .inside()
        .iter()
        .filter(|it| it.name == "location")
        .peekable();
    let fits = is_prefix
        && nested.peek().is_some()
        && nested.all(|it| lies_inside(it, text))
        && !location
            .inside()
            .iter()
            .any(|it| STAYS.contains(&it.name.as_str()));
    fits.then_some(sign)
}

/// Whether a location is a prefix or an exact path inside the prefix `outer`, and so is all that it holds.
fn lies_inside(location: &Directive, outer: &str) -> bool {
    let Some((sign, text)) = modifier(&location.words) else {
        return false;
    };
    let mut nested = location
        .inside()
        .iter()
        .filter(|it| it.name == "location")
        .peekable();
    matches!(sign, "=" | "" | "^~")
        && text.starts_with(outer)
        && (nested.peek().is_none() || holds(location).is_some())
}

/// Adds a location without its nested ones, and these with what they inherit. The sign `^~` of the outer one counts.
fn pull_out(location: &Directive, sign: &str, all: &mut Vec<Directive>) {
    let (nested, own): (Vec<&Directive>, Vec<&Directive>) = location
        .inside()
        .iter()
        .partition(|it| it.name == "location");
    all.push(Directive {
        inner: Some(own.iter().copied().cloned().collect()),
        ..location.clone()
    });
    for location in nested {
        let Some((own_sign, text)) = modifier(&location.words) else {
            continue;
        };
        let own_sign = if own_sign == "=" { own_sign } else { sign };
        let inherits = |it: &&&Directive| {
            let name = it.name.as_str();
            let group = GROUPS.iter().find(|group| group.contains(&name));
            let has = |it: &Directive| {
                it.name == name || group.is_some_and(|group| group.contains(&it.name.as_str()))
            };
            !is_own(name) && !location.inside().iter().any(has)
        };
        let inherited = own.iter().filter(inherits).copied().cloned();
        let inner: Vec<Directive> = location.inside().iter().cloned().chain(inherited).collect();
        let location = Directive {
            words: vec![own_sign.to_owned(), text.to_owned()],
            inner: Some(inner),
            ..location.clone()
        };
        match holds(&location) {
            Some(_) => pull_out(&location, own_sign, all),
            None => all.push(location),
        }
    }
}

/// Whether nested locations do not inherit a directive.
fn is_own(name: &str) -> bool {
    name.ends_with("_pass") || OWN.contains(&name)
}

/// Directives of which those of an inner level replace all of an outer one.
const GROUPS: [&[&str]; 2] = [&["allow", "deny"], &["types", MIME_TYPES]];

/// Directives that nested locations do not inherit: what is done with requests of the location itself.
const OWN: [&str; 8] = [
    "return",
    "rewrite",
    "if",
    "set",
    "break",
    "try_files",
    "stub_status",
    "empty_gif",
];

/// Directives of a location whose effect on nested ones was not looked into.
const STAYS: [&str; 4] = ["alias", "internal", "limit_except", "include"];
