//! Converts simple expressions: into paths that a route can have without `regex`, and into tests of hosts.
//!
//! Such an expression means the same as a few patterns together, in which `*` matches any characters.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::expression::{Expression, takes_any, translated};
use crate::matcher::Matcher;

/// Matchers that together contain exactly the paths of an expression; `None` if no matchers but the expression itself
/// do.
pub(crate) fn matchers(expression: &Expression) -> Option<Vec<Matcher>> {
    // A pattern that does not begin with a slash matches no path, as one half of `^/?app`.
    let begins_a_path = |it: &&String| {
        let rest = it.strip_prefix(START).unwrap_or_default();
        rest.is_empty() || rest.starts_with(['/', '*', END])
    };
    let texts = texts(expression)?;
    let mut globs: Vec<String> = texts
        .iter()
        .filter(begins_a_path)
        .map(|it| glob(it))
        .collect();
    globs.sort();
    globs.dedup();
    // Patterns are compared with the path without its parameters, so a pattern with `;` would never match.
    let is_said = !globs.is_empty() && !globs.iter().any(|it| it.contains(';'));
    is_said.then(|| joined(&globs))
}

/// An expression as texts with `*` for any characters, and signs for both ends; `None` if it cannot be written so.
fn texts(expression: &Expression) -> Option<Vec<String>> {
    if expression.text().starts_with("(?i)") {
        return None;
    }
    let all = alternatives(&without_last_repetition(expression.hir()))?;
    let texts: Vec<String> = all.iter().map(|it| outer_anchors(it)).collect();
    let is_plain = |it: &String| {
        let inner = it.trim_start_matches(START).trim_end_matches(END);
        it.is_ascii() && !inner.contains([START, END])
    };
    texts.iter().all(is_plain).then_some(texts)
}

/// The expression without an optional end, such as the `/*` of `^/app/*`: the part before it matches in the same
/// paths.
fn without_last_repetition(hir: Hir) -> Hir {
    let HirKind::Concat(parts) = hir.kind() else {
        return hir;
    };
    match parts.split_last() {
        Some((last, before)) if matches!(last.kind(), HirKind::Repetition(it) if it.min == 0) => {
            Hir::concat(before.to_vec())
        }
        _ => hir,
    }
}

/// The texts that a part of an expression matches.
fn alternatives(hir: &Hir) -> Option<Vec<String>> {
    let one = |text: &str| Some(vec![text.to_owned()]);
    let found = match hir.kind() {
        _ if takes_any(hir) => return one("*"),
        HirKind::Empty => return one(""),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            // A pattern cannot contain these signs as characters.
            return one(text).filter(|_| !text.contains(['*', '?']));
        }
        HirKind::Look(Look::Start) => return one(&START.to_string()),
        HirKind::Look(Look::End) => return one(&END.to_string()),
        HirKind::Look(_) => return None,
        HirKind::Class(class) => return members(class),
        HirKind::Capture(group) => return alternatives(&group.sub),
        HirKind::Repetition(it) if it.min == 0 && it.max == Some(1) => {
            let mut either = alternatives(&it.sub)?;
            either.push(String::new());
            either
        }
        HirKind::Repetition(_) => return None,
        HirKind::Concat(parts) => {
            let mut texts = vec![String::new()];
            for part in parts {
                let pieces = alternatives(part)?;
                let longer = |text: &String| {
                    let joined = pieces.iter().map(|piece| format!("{text}{piece}"));
                    joined.collect::<Vec<_>>()
                };
                texts = texts.iter().flat_map(longer).collect();
                if texts.len() > ALTERNATIVES_MAX {
                    return None;
                }
            }
            texts
        }
        HirKind::Alternation(branches) => {
            let all: Option<Vec<_>> = branches.iter().map(alternatives).collect();
            all?.concat()
        }
    };
    (found.len() <= ALTERNATIVES_MAX).then_some(found)
}

/// The characters of a class, if it has only a few; otherwise `None`.
fn members(class: &Class) -> Option<Vec<String>> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => class
            .iter()
            .map(|it| (it.start().into(), it.end().into()))
            .collect(),
        Class::Bytes(class) => class
            .iter()
            .map(|it| (it.start().into(), it.end().into()))
            .collect(),
    };
    let codes = || ranges.iter().flat_map(|it| it.0..=it.1);
    let is_sayable = |code: u32| {
        u8::try_from(code).is_ok_and(|it| it.is_ascii_graphic() && !b"*?".contains(&it))
    };
    let is_small = codes().take(MEMBERS_MAX + 1).count() <= MEMBERS_MAX;
    if !is_small || !codes().all(is_sayable) {
        return None;
    }
    let signs = codes().filter_map(char::from_u32);
    Some(signs.map(String::from).collect())
}

/// A test on a host name, in lower case and without its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostTest {
    Is(String),
    Starts(String),
    Ends(String),
    Has(String),
}

/// The tests that an expression for hosts makes; `None` if it cannot be converted. An unescaped `.` counts as a dot:
/// no host that the source names differs only by another character there.
pub(crate) fn host_tests(text: &str) -> Option<Vec<HostTest>> {
    let of_any_case = text.strip_prefix("(?i)").unwrap_or(text);
    let expression = translated(&dotted(of_any_case), false);
    let texts = texts(&expression).filter(|_| expression.is_exact)?;
    texts.iter().map(|it| host_test(it)).collect()
}

fn host_test(text: &str) -> Option<HostTest> {
    let ends = |text: &str| (text.starts_with(START), text.ends_with(END));
    let (starts_there, ends_there) = ends(text);
    let unanchored = text.trim_start_matches(START).trim_end_matches(END);
    let starts_there = starts_there && !unanchored.starts_with('*');
    let ends_there = ends_there && !unanchored.ends_with('*');
    let inner = unanchored.trim_matches('*').to_ascii_lowercase();
    let is_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b'_');
    if !inner.bytes().all(is_name) {
        return None;
    }
    Some(match (starts_there, ends_there) {
        (true, true) => HostTest::Is(inner),
        (true, false) => HostTest::Starts(inner),
        (false, true) => HostTest::Ends(inner),
        (false, false) => HostTest::Has(inner),
    })
}

/// An expression for hosts with `\.` for each lone `.`, and `.*` for `.+`.
fn dotted(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len());
    let mut signs = expression.chars().peekable();
    let mut in_class = false;
    while let Some(sign) = signs.next() {
        in_class = match sign {
            '[' => true,
            ']' => false,
            _ => in_class,
        };
        match (sign, signs.peek()) {
            ('\\', Some(&next)) => {
                out.extend([sign, next]);
                signs.next();
            }
            ('.', Some('+')) if !in_class => {
                out.push_str(".*");
                signs.next();
            }
            ('.', Some('*' | '?' | '{')) => out.push('.'),
            // An expression of a single `.` only requires that there is a host.
            ('.', _) if !in_class && expression != "." => out.push_str("\\."),
            _ => out.push(sign),
        }
    }
    match out.as_str() {
        "." => ".*".to_owned(),
        _ => out,
    }
}

/// Converts patterns into matchers; `/a` and `/a/*` together become a prefix.
fn joined(globs: &[String]) -> Vec<Matcher> {
    let mut matchers = Vec::new();
    for glob in globs {
        let below = format!("{glob}/*");
        if !glob.contains(['*', '?']) && globs.contains(&below) {
            matchers.push(Matcher::prefix(glob));
            continue;
        }
        if let Some(above) = glob.strip_suffix("/*")
            && globs.iter().any(|it| it == above)
            && !above.contains(['*', '?'])
        {
            continue;
        }
        let matcher = Matcher::pattern(glob);
        if !matchers.contains(&matcher) {
            matchers.push(matcher);
        }
    }
    matchers
}

/// Removes redundant anchors: `^^` becomes `^`, and wildcards after `$` are dropped.
fn outer_anchors(text: &str) -> String {
    let inner = text.trim_start_matches(START);
    let last = inner
        .find(END)
        .filter(|at| inner[*at..].trim_matches(['*', END]).is_empty());
    let end = last.map_or(inner.len(), |at| at + END.len_utf8());
    let start = (inner != text).then_some(START);
    start.into_iter().chain(inner[..end].chars()).collect()
}

/// A pattern for the whole path: where there is no anchor, `*` is added before or behind.
fn glob(text: &str) -> String {
    let (start, text) = match text.strip_prefix(START) {
        Some(rest) => ("", rest),
        None => ("*", text),
    };
    let (text, end) = match text.strip_suffix(END) {
        Some(rest) => (rest, ""),
        None => (text, "*"),
    };
    let text = format!("{start}{}{end}", text.replace([START, END], ""));
    let mut plain = String::new();
    for sign in text.chars() {
        if sign != '*' || !plain.ends_with('*') {
            plain.push(sign);
        }
    }
    if plain.starts_with(['/', '*']) {
        plain
    } else {
        format!("/{plain}")
    }
}

/// Stand for `^` and `$` within a text.
const START: char = '\u{1}';
const END: char = '\u{2}';

/// The highest number of alternatives of one expression, and of characters in a class.
const ALTERNATIVES_MAX: usize = 64;
const MEMBERS_MAX: usize = 4;

#[cfg(test)]
mod tests;
