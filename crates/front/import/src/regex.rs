//! Converts simple expressions: into paths that a route can have without `regex`, and into tests of hosts.
//!
//! Such an expression means the same as a few patterns together, in which `*` matches any characters.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use crate::expression::{Expression, takes_any, translated};
use crate::matcher::{Matcher, with_single_stars};

/// Matchers that together contain exactly the paths of an expression; `None` if no matchers but the expression itself
/// do.
pub(crate) fn matchers(expression: &Expression) -> Option<Vec<Matcher>> {
    // An anchored text that does not begin with a slash matches no path, as one half of `^/?app`.
    let begins_a_path = |text: &&String| match text.strip_prefix(START) {
        Some(anchored) => anchored.is_empty() || anchored.starts_with(['/', '*', END]),
        None => true,
    };
    let texts = texts(expression)?;
    let mut globs: Vec<String> = texts
        .iter()
        .filter(begins_a_path)
        .map(|text| glob(text))
        .collect();
    globs.sort();
    globs.dedup();
    // Patterns are compared with the path without its parameters, so a pattern with `;` would never match.
    if globs.is_empty() || globs.iter().any(|glob| glob.contains(';')) {
        return None;
    }
    Some(joined(&globs))
}

/// An expression as texts with `*` for any characters, [`START`] and [`END`]; `None` if it cannot be written so.
fn texts(expression: &Expression) -> Option<Vec<String>> {
    if expression.text().starts_with("(?i)") {
        return None;
    }
    let alternatives = alternatives(&without_last_repetition(expression.hir()))?;
    let texts: Vec<String> = alternatives.iter().map(|it| outer_anchors(it)).collect();
    let is_sayable = |text: &String| {
        let inner = text.trim_start_matches(START).trim_end_matches(END);
        text.is_ascii() && !inner.contains([START, END])
    };
    texts.iter().all(is_sayable).then_some(texts)
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

/// The texts that a part of an expression matches; `None` if they are too many, or if it cannot be written so.
fn alternatives(hir: &Hir) -> Option<Vec<String>> {
    let single = |text: &str| Some(vec![text.to_owned()]);
    let texts = match hir.kind() {
        _ if takes_any(hir) => return single("*"),
        HirKind::Empty => return single(""),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            // A pattern cannot contain these signs as characters.
            return single(text).filter(|_| !text.contains(['*', '?']));
        }
        HirKind::Look(Look::Start) => return single(&START.to_string()),
        HirKind::Look(Look::End) => return single(&END.to_string()),
        HirKind::Class(class) => return members(class),
        HirKind::Capture(group) => return alternatives(&group.sub),
        HirKind::Repetition(repetition) if repetition.min == 0 && repetition.max == Some(1) => {
            let mut with_empty = alternatives(&repetition.sub)?;
            with_empty.push(String::new());
            with_empty
        }
        HirKind::Look(_) | HirKind::Repetition(_) => return None,
        HirKind::Concat(parts) => concatenated(parts)?,
        HirKind::Alternation(branches) => {
            let texts: Option<Vec<_>> = branches.iter().map(alternatives).collect();
            texts?.concat()
        }
    };
    (texts.len() <= ALTERNATIVES_MAX).then_some(texts)
}

/// Each text of the first part followed by each of the second, and so on. Gives up before the texts become too many.
fn concatenated(parts: &[Hir]) -> Option<Vec<String>> {
    let mut texts = vec![String::new()];
    for part in parts {
        let pieces = alternatives(part)?;
        let mut longer = Vec::with_capacity(texts.len() * pieces.len());
        for text in &texts {
            longer.extend(pieces.iter().map(|piece| format!("{text}{piece}")));
        }
        if longer.len() > ALTERNATIVES_MAX {
            return None;
        }
        texts = longer;
    }
    Some(texts)
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
    let codes = ranges.into_iter().flat_map(|(first, last)| first..=last);
    let mut texts = Vec::with_capacity(MEMBERS_MAX);
    for code in codes {
        let sign = u8::try_from(code).ok()?;
        // A pattern cannot contain `*` and `?` as characters.
        if texts.len() == MEMBERS_MAX || !sign.is_ascii_graphic() || b"*?".contains(&sign) {
            return None;
        }
        texts.push(char::from(sign).to_string());
    }
    Some(texts)
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

/// The test that one of [`texts`] makes of a host; `None` if the text has a `*` in its middle, or no host has it.
fn host_test(text: &str) -> Option<HostTest> {
    let unanchored = text.trim_start_matches(START).trim_end_matches(END);
    // `^.*` and `.*$` are no anchors.
    let has_start = text.starts_with(START) && !unanchored.starts_with('*');
    let has_end = text.ends_with(END) && !unanchored.ends_with('*');
    let inner = unanchored.trim_matches('*').to_ascii_lowercase();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if !inner.bytes().all(is_name) {
        return None;
    }
    Some(match (has_start, has_end) {
        (true, true) => HostTest::Is(inner),
        (true, false) => HostTest::Starts(inner),
        (false, true) => HostTest::Ends(inner),
        (false, false) => HostTest::Has(inner),
    })
}

/// An expression for hosts with `\.` for each lone `.`, and `.*` for `.+`, because [`texts`] knows no `+`.
fn dotted(expression: &str) -> String {
    // A single `.` only requires that there is a host.
    if expression == "." {
        return ".*".to_owned();
    }
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
            ('.', _) if !in_class => out.push_str("\\."),
            _ => out.push(sign),
        }
    }
    out
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
        // The prefix of the path above contains these paths.
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
    let mut inner = text.trim_start_matches(START);
    let has_start = inner != text;
    if let Some(at) = inner.find(END)
        && inner[at..].trim_matches(['*', END]).is_empty()
    {
        inner = &inner[..at + END.len_utf8()];
    }
    if has_start {
        format!("{START}{inner}")
    } else {
        inner.to_owned()
    }
}

/// A pattern for the whole path: where there is no anchor, `*` is added before or behind.
fn glob(text: &str) -> String {
    let before = if text.starts_with(START) { "" } else { "*" };
    let behind = if text.ends_with(END) { "" } else { "*" };
    let unanchored = text.replace([START, END], "");
    let pattern = with_single_stars(&format!("{before}{unanchored}{behind}"));
    if pattern.starts_with(['/', '*']) {
        pattern
    } else {
        format!("/{pattern}")
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
