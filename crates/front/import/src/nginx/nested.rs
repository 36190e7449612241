//! Locations inside locations, put beside them.
//!
//! nginx looks among a prefix's own locations once the prefix is the longest one that matches, and among expressions of the
//! level above afterwards (`ngx_http_core_find_location`). So a longer prefix or an exact path inside a prefix decides as it
//! would beside it, with the directives that it inherits, unless another location of the level above lies below that
//! prefix, too. Expressions inside a location come before those above, which no
//! order of one level says: such a location stays as it is, and is closed.

use crate::directive::Directive;
use crate::nginx::files::MIME_TYPES;
use crate::nginx::location::modifier;

/// The directives of a server with nested locations beside those that they were in; `None` if there are none that can be.
pub(super) fn unnested(directives: &[Directive]) -> Option<Vec<Directive>> {
    if !directives.iter().any(|it| sign(it, directives).is_some()) {
        return None;
    }
    let mut all = Vec::with_capacity(directives.len());
    for directive in directives {
        match sign(directive, directives) {
            Some(sign) => pull_out(directive, sign, &mut all),
            None => all.push(directive.clone()),
        }
    }
    Some(all)
}

/// The sign of a location whose nested locations can be put beside it; `None` for every other directive. `siblings` are
/// the directives of its level: another location below its path would be chosen before nginx looks into it.
fn sign<'d>(location: &'d Directive, siblings: &[Directive]) -> Option<&'d str> {
    let (sign, text) = prefix(location)?;
    let inside = location.inside();
    let shadows = |it: &Directive| {
        let other = modifier(&it.words).filter(|_| it.name == "location");
        it.id != location.id && other.is_some_and(|(_, other)| other.starts_with(text))
    };
    let mut nested = nested(location).peekable();
    let fits = nested.peek().is_some()
        && nested.all(|it| lies_inside(it, text, inside))
        && !siblings.iter().any(shadows)
        && !inside.iter().any(|it| STAYS.contains(&it.name.as_str()));
    fits.then_some(sign)
}

/// The sign and the path of a location that is a prefix.
fn prefix(location: &Directive) -> Option<(&str, &str)> {
    let found = modifier(&location.words).filter(|_| location.name == "location");
    found.filter(|(sign, text)| matches!(*sign, "" | "^~") && text.starts_with('/'))
}

fn nested(location: &Directive) -> impl Iterator<Item = &Directive> {
    location.inside().iter().filter(|it| it.name == "location")
}

/// Whether a location is a longer prefix than `outer`, or an exact path in it, and so is all that it holds.
fn lies_inside(location: &Directive, outer: &str, siblings: &[Directive]) -> bool {
    let Some((sign_of_it, text)) = modifier(&location.words) else {
        return false;
    };
    let is_longer = text.starts_with(outer) && text != outer;
    let holds_none = nested(location).next().is_none();
    matches!(sign_of_it, "=" | "" | "^~")
        && is_longer
        && (holds_none || sign(location, siblings).is_some())
}

/// Adds a location without its nested ones, and these with what they inherit. The sign `^~` of the outer one counts.
fn pull_out(location: &Directive, sign_of_it: &str, all: &mut Vec<Directive>) {
    let siblings = location.inside();
    let own: Vec<&Directive> = siblings.iter().filter(|it| it.name != "location").collect();
    all.push(Directive {
        inner: Some(own.iter().copied().cloned().collect()),
        ..location.clone()
    });
    for inner in nested(location) {
        let Some((own_sign, text)) = modifier(&inner.words) else {
            continue;
        };
        let own_sign = if own_sign == "=" {
            own_sign
        } else {
            sign_of_it
        };
        let inherits = |it: &&&Directive| {
            let name = it.name.as_str();
            let group = GROUPS.iter().find(|group| group.contains(&name));
            let has = |it: &Directive| {
                it.name == name || group.is_some_and(|group| group.contains(&it.name.as_str()))
            };
            !is_own(name) && !inner.inside().iter().any(has)
        };
        let inherited = own.iter().filter(inherits).copied().cloned();
        let directives: Vec<Directive> = inner.inside().iter().cloned().chain(inherited).collect();
        let holds_more = sign(inner, siblings).is_some();
        let inner = Directive {
            words: vec![own_sign.to_owned(), text.to_owned()],
            inner: Some(directives),
            ..inner.clone()
        };
        if holds_more {
            pull_out(&inner, own_sign, all);
        } else {
            all.push(inner);
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
