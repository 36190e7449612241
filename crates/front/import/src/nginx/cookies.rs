//! Cookies of backends that a location changes: `proxy_cookie_domain`, `proxy_cookie_path` and `proxy_cookie_flags`.
//!
//! Of several directives of a name the first that fits a cookie changes it, as in the lists of the front. So behind one that
//! cannot be converted no other is: it would change cookies of the former.

use crate::directive::Directive;
use crate::expression::translated;
use crate::ledger::Ledger;
use crate::nginx::location::Scope;
use crate::nginx::variables::{expand, placeholder};
use crate::plan::Settings;
use crate::toml_text::{inline_table, quoted, quoted_list};

/// Converts the directives into keys of the route.
pub(crate) fn cookies(scope: Scope<'_>, settings: &mut Settings, ledger: &mut Ledger) {
    let domains = in_force(scope, "proxy_cookie_domain", ledger);
    let domain = |directive: &Directive| replacement(directive, scope, Part::Domain);
    insert_list("cookie_domain", domains, domain, settings, ledger);
    let flags = in_force(scope, "proxy_cookie_flags", ledger);
    let paths = in_force(scope, "proxy_cookie_path", ledger);
    // A directive such as `proxy_cookie_path / "/; Secure"` adds flags, and fits every cookie with a path.
    if let [first, others @ ..] = &paths[..]
        && flags.is_empty()
        && first.word(0) == "/"
        && let Some(("/", words)) = first.word(1).split_once(';')
        && let Some(changes) = FlagChanges::read(words.split(';').map(str::trim), |_| None)
    {
        changes.insert_for_all(settings);
        ledger.mapped(first.id);
        for other in others {
            ledger.dropped(other.id, "an earlier one fits every path");
        }
        return;
    }
    let path = |directive: &Directive| replacement(directive, scope, Part::Path);
    insert_list("cookie_path", paths, path, settings, ledger);
    if let [only] = &flags[..]
        && only.word(0) == "~"
        && let Some(changes) =
            FlagChanges::read(only.words[1..].iter().map(String::as_str), placeholder)
    {
        changes.insert_for_all(settings);
        return ledger.mapped(only.id);
    }
    insert_list("cookie", flags, flag_rule, settings, ledger);
}

/// The directives of this name that apply, in their order; none if one of them is `off`.
fn in_force<'d>(scope: Scope<'d>, name: &str, ledger: &mut Ledger) -> Vec<&'d Directive> {
    let level = scope.level(|it| it.name == name);
    if level.iter().any(|it| it.words == ["off"]) {
        level.iter().for_each(|it| ledger.mapped(it.id));
        return Vec::new();
    }
    level
}

/// Adds a list of tables to the route: those to which `table` converts the directives.
fn insert_list(
    key: &str,
    directives: Vec<&Directive>,
    table: impl Fn(&Directive) -> Option<String>,
    settings: &mut Settings,
    ledger: &mut Ledger,
) {
    let mut tables = Vec::new();
    let mut is_whole = true;
    for directive in directives {
        is_whole &= tables.len() < TABLES_MAX;
        match table(directive).filter(|_| is_whole) {
            Some(table) => {
                ledger.mapped(directive.id);
                tables.push(table);
            }
            None => {
                is_whole = false;
                let text = format!(
                    "`{}` was not converted, and cookies are as the application sends them",
                    directive.shown(ledger)
                );
                ledger.lost(directive.id, text);
            }
        }
    }
    if !tables.is_empty() {
        let list = format!("[{}]", tables.join(", "));
        settings.keys.insert(key.to_owned(), list);
    }
}

/// The part of a cookie that a directive replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Domain,
    Path,
}

/// The table for a `proxy_cookie_domain` or `proxy_cookie_path`; `None`: the front cannot do the same.
fn replacement(directive: &Directive, scope: Scope<'_>, part: Part) -> Option<String> {
    let [from, to] = &directive.words[..] else {
        return None;
    };
    // A dot before a domain means nothing.
    let bare = |text: &str| match part {
        Part::Domain => text.strip_prefix('.').unwrap_or(text).to_owned(),
        Part::Path => text.to_owned(),
    };
    let of_site = |name: &str| placeholder(name).filter(|it| OF_SITE.contains(&&**it));
    let (compared, to) = match from.strip_prefix('~') {
        Some(behind) => {
            let (pcre, ignores_case) = match (part, behind.strip_prefix('*')) {
                (Part::Domain, _) => (behind, true),
                (Part::Path, Some(pcre)) => (pcre, true),
                (Part::Path, None) => (behind, false),
            };
            let own = translated(pcre, ignores_case);
            if !own.is_exact {
                return None;
            }
            let known = |name: &str| own.placeholder(name).or_else(|| of_site(name));
            (("regex", own.text().to_owned()), expand(to, known)?)
        }
        None => {
            let of_location = |name: &str| scope.expression.and_then(|it| it.placeholder(name));
            let known = |name: &str| of_location(name).or_else(|| of_site(name));
            (
                ("from", expand(&bare(from), of_site)?),
                expand(&bare(to), known)?,
            )
        }
    };
    // Behind a semicolon is another attribute.
    let is_one = |text: &str| !text.contains(';') && !text.chars().any(char::is_control);
    let (key, text) = compared;
    if text.is_empty() || key == "from" && !is_one(&text) || !is_one(&to) {
        return None;
    }
    let pairs = [(key, text), ("to", to)].map(|(key, text)| (key.to_owned(), quoted(&text)));
    Some(inline_table(pairs.into_iter()))
}

/// The table for a `proxy_cookie_flags`; `None`: the front cannot do the same.
fn flag_rule(directive: &Directive) -> Option<String> {
    let (name, words) = directive.words.split_first()?;
    let changes = FlagChanges::read(words.iter().map(String::as_str), placeholder)?;
    let test = match name.strip_prefix('~') {
        Some("") => None,
        Some(pcre) => {
            let expression = translated(pcre, true);
            if !expression.is_exact {
                return None;
            }
            Some(("regex", expression.text().to_owned()))
        }
        None if name.is_empty() => return None,
        None => Some(("name", expand(name, placeholder)?)),
    };
    Some(changes.table(test))
}

/// What a directive does to flags of cookies.
#[derive(Debug, Default)]
struct FlagChanges {
    flags: Vec<String>,
    remove: Vec<String>,
}

impl FlagChanges {
    /// Reads the words of a directive, whose variables have the placeholders that `variable` returns. `None` if there are no
    /// words, if one is not known, or if two contradict each other.
    fn read<'w>(
        words: impl Iterator<Item = &'w str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let mut changes = Self::default();
        let mut known: Vec<&str> = Vec::new();
        for word in words.filter(|it| !it.is_empty()) {
            if word.contains('$') {
                changes.flags.push(expand(word, &variable)?);
                continue;
            }
            let mut all = FLAGS.iter();
            let (_, flag, is_set) = all.find(|it| it.0.eq_ignore_ascii_case(word))?;
            let name = flag.split('=').next().unwrap_or(flag);
            if known.contains(&name) {
                return None;
            }
            known.push(name);
            let list = if *is_set {
                &mut changes.flags
            } else {
                &mut changes.remove
            };
            list.push((*flag).to_owned());
        }
        (!changes.flags.is_empty() || !changes.remove.is_empty()).then_some(changes)
    }

    /// The table for the cookies of which this `test`, a key with its text, holds; `None`: for all.
    fn table(&self, test: Option<(&str, String)>) -> String {
        let test = test.map(|(key, text)| (key, quoted(&text)));
        let all = [("flags", &self.flags), ("remove", &self.remove)];
        let written = all.into_iter().filter(|(_, list)| !list.is_empty());
        let lists = written.map(|(key, list)| (key, quoted_list(list)));
        let pairs = test.into_iter().chain(lists);
        inline_table(pairs.map(|(key, value)| (key.to_owned(), value)))
    }

    /// Makes the changes to all cookies. The shorter key serves if they only add what a cookie may have already.
    fn insert_for_all(&self, settings: &mut Settings) {
        let only_adds = |flag: &String| matches!(flag.as_str(), "Secure" | "HttpOnly");
        let (key, value) = if !self.flags.iter().all(only_adds) || !self.remove.is_empty() {
            ("cookie", format!("[{}]", self.table(None)))
        } else {
            ("cookie_flags", quoted_list(&self.flags))
        };
        settings.keys.insert(key.to_owned(), value);
    }
}

/// The placeholders that domains and paths of cookies may have.
const OF_SITE: [&str; 3] = ["{host}", "{authority}", "{scheme}"];

/// The most tables of a list that a route may have.
const TABLES_MAX: usize = 32;

/// The words of `proxy_cookie_flags`: the flag that each is about, and whether it sets or removes it.
const FLAGS: [(&str, &str, bool); 8] = [
    ("secure", "Secure", true),
    ("httponly", "HttpOnly", true),
    ("samesite=strict", "SameSite=Strict", true),
    ("samesite=lax", "SameSite=Lax", true),
    ("samesite=none", "SameSite=None", true),
    ("nosecure", "Secure", false),
    ("nohttponly", "HttpOnly", false),
    ("nosamesite", "SameSite", false),
];
