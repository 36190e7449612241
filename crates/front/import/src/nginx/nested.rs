//! Moves nested locations out of their locations.
//!
//! nginx looks into a location of a prefix once that is the longest prefix that matches, and at the expressions of
//! the level above afterwards (`ngx_http_core_find_location`). So a longer prefix or an exact path that is nested
//! decides as it would next to its location, with the directives that it inherits, unless another location of the
//! level above also begins with that prefix. Nested expressions are asked before those of the level above, which no
//! order of one level expresses: such a location is not changed, and is closed.

use crate::directive::Directive;
use crate::nginx::files::MIME_TYPES;
use crate::nginx::location::modifier;

/// The directives of a server, with nested locations moved next to their locations; `None` if none can be moved.
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

/// The modifier of a location whose nested locations can be moved out; `None` for every other directive. `siblings`
/// are the directives of its level: nginx would choose another location whose path begins with this one before it
/// looks into this one.
fn sign<'d>(location: &'d Directive, siblings: &'d [Directive]) -> Option<&'d str> {
    let (sign, text) = prefix(location)?;
    let inside = location.inside();
    let below = |it: &'d Directive| {
        let (_, other) = modifier(&it.words).filter(|_| it.name == "location")?;
        (it.id != location.id && other.starts_with(text)).then_some(other)
    };
    let longer: Vec<&str> = siblings.iter().filter_map(below).collect();
    let mut nested = nested(location).peekable();
    let fits = nested.peek().is_some()
        && nested.all(|it| lies_inside(it, text, inside) && !is_below_any(it, &longer))
        && !inside.iter().any(stays);
    fits.then_some(sign)
}

/// Whether the path of a location, or of one inside it, lies below any of these.
fn is_below_any(location: &Directive, paths: &[&str]) -> bool {
    let own = modifier(&location.words).map_or("", |it| it.1);
    let mut all = paths.iter();
    all.any(|path| own.starts_with(path)) || nested(location).any(|it| is_below_any(it, paths))
}

/// The modifier and the path of a location that is a prefix.
fn prefix(location: &Directive) -> Option<(&str, &str)> {
    let found = modifier(&location.words).filter(|_| location.name == "location");
    found.filter(|(sign, text)| matches!(*sign, "" | "^~") && text.starts_with('/'))
}

fn nested(location: &Directive) -> impl Iterator<Item = &Directive> {
    location.inside().iter().filter(|it| it.name == "location")
}

/// Whether a location is a longer prefix than `outer`, or an exact path in it, and all its nested locations are, too.
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

/// Adds a location without its nested ones, and then these with the directives that they inherit. They also get the
/// modifier `^~` of the outer one.
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

/// Whether a location with this directive is not changed. A limit without directives limits nothing.
fn stays(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    let is_idle = name == "limit_except" && directive.inside().is_empty();
    STAYS.contains(&name) && !is_idle
}

/// Whether nested locations do not inherit a directive.
fn is_own(name: &str) -> bool {
    name.ends_with("_pass") || OWN.contains(&name)
}

/// Groups of directives: those of an inner level replace the whole group of the outer one.
const GROUPS: [&[&str]; 2] = [&["allow", "deny"], &["types", MIME_TYPES]];

/// Directives that nested locations do not inherit, because they are about requests of the location itself.
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

/// A location with one of these directives is not changed, because their effect on nested locations is unknown.
const STAYS: [&str; 4] = ["alias", "internal", "limit_except", "include"];
