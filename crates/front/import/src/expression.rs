//! Translates expressions of PCRE into those of the front's routes.
//!
//! Both match bytes of the decoded path, and no path that the front serves has a control character, so that `$` is the
//! end of the path in both. A part is translated where it means the same in the crate `regex`. A look-around, a
//! back-reference, an atomic group and a possessive form are replaced by something that matches more; an expression with
//! any other part becomes [`EVERYTHING`]. So a rule that closes paths may be written with every result, and a rule that
//! opens paths only with an exact one.

use std::hash::{Hash, Hasher};

use catamaran_proxy::config::PathExpression;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Dot, Hir, HirKind, Look};

/// An expression of the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    compiled: PathExpression,
    /// Whether it matches the same paths as the source's expression. If not, it matches more.
    pub(crate) is_exact: bool,
    /// The groups of the expression, in the order of their numbers.
    groups: Vec<Group>,
    /// A text that every path begins with in which the expression matches.
    start: String,
}

/// A group that captures.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    name: Option<String>,
    /// Whether the captured text may differ from that in the source, as for a group inside a repetition.
    is_unsure: bool,
}

/// Translates an expression of PCRE, as it is in the source without its quotes.
pub(crate) fn translated(pcre: &str, ignores_case: bool) -> Expression {
    let without_flag = pcre.strip_prefix("(?i)");
    let mut translator = Translator {
        rest: without_flag.unwrap_or(pcre),
        text: String::new(),
        is_exact: true,
        groups: Vec::new(),
        depth: 0,
    };
    let translation = translator.whole(ignores_case || without_flag.is_some());
    let compiled = translation.and_then(|()| PathExpression::parse(&translator.text).ok());
    match compiled {
        Some(compiled) => Expression {
            start: start_of(&parsed(compiled.as_str())),
            compiled,
            is_exact: translator.is_exact,
            groups: translator.groups,
        },
        None => Expression {
            start: "/".to_owned(),
            compiled: PathExpression::parse(EVERYTHING).expect("it is a short one"),
            is_exact: false,
            groups: Vec::new(),
        },
    }
}

/// An expression of PCRE that matches this text alone.
pub(crate) fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for sign in text.chars() {
        if sign.is_ascii_punctuation() && sign != '/' {
            escaped.push('\\');
        }
        escaped.push(sign);
    }
    escaped
}

/// The parts of an expression of the front.
fn parsed(text: &str) -> Hir {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(text).expect("it was compiled")
}

/// A text that every path begins with in which the expression matches.
fn start_of(hir: &Hir) -> String {
    if let HirKind::Concat(parts) = hir.kind()
        && let [first, second, ..] = &parts[..]
        && *first.kind() == HirKind::Look(Look::Start)
        && let HirKind::Literal(literal) = second.kind()
    {
        return String::from_utf8(literal.0.to_vec()).unwrap_or_default();
    }
    String::new()
}

/// Whether an expression matches every text. Line ends, which `.` does not match, are in no path.
pub(crate) fn takes_any(hir: &Hir) -> bool {
    repeated_class(hir).is_some_and(|it| *it == Hir::dot(Dot::AnyByteExceptLF))
}

/// For an expression such as `.*`: the class of characters that it repeats any number of times.
fn repeated_class(hir: &Hir) -> Option<&Hir> {
    match hir.kind() {
        HirKind::Capture(group) => repeated_class(&group.sub),
        HirKind::Repetition(it) if it.min == 0 && it.max.is_none() => {
            Some(&*it.sub).filter(|it| matches!(it.kind(), HirKind::Class(_)))
        }
        _ => None,
    }
}

/// An expression without its end, as far as that may match nothing, such as `.*`. Also returns whether the remaining
/// part must match at the end of the path.
fn without_optional_end(hir: &Hir) -> (Hir, bool) {
    let mut parts = match hir.kind() {
        HirKind::Concat(parts) => parts.clone(),
        _ => vec![hir.clone()],
    };
    let mut is_at_end = false;
    while let Some(last) = parts.last() {
        let is_anchor = *last.kind() == HirKind::Look(Look::End);
        if !is_anchor && repeated_class(last).is_none() {
            break;
        }
        // What stands before a repetition, as in `x.*$`, may match anywhere.
        is_at_end = is_anchor;
        parts.pop();
    }
    (Hir::concat(parts), is_at_end)
}

impl Expression {
    /// The text for the key `regex`.
    pub(crate) fn text(&self) -> &str {
        self.compiled.as_str()
    }

    /// Whether the expression matches in a decoded path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.compiled.matches(path.as_bytes())
    }

    /// A text that every path begins with in which the expression matches.
    pub(crate) fn start(&self) -> &str {
        &self.start
    }

    /// The parts of the expression.
    pub(crate) fn hir(&self) -> Hir {
        parsed(self.text())
    }

    /// Whether the expression may match the path of a file `name` in some directory, but not the path of that directory
    /// itself (which ends with a slash). The directory is not known, so this may be `true` where no such directory
    /// exists; `false` is certain.
    pub(crate) fn takes_file(&self, name: &str) -> bool {
        let hir = self.hir();
        let mut looks = hir.properties().look_set().iter();
        // A word boundary may also match between the directory and the name.
        if !looks.all(|look| matches!(look, Look::Start | Look::End)) {
            return true;
        }
        let (needed, is_at_end) = without_optional_end(&hir);
        let suffixes = Extractor::new().kind(ExtractKind::Suffix).extract(&needed);
        // The texts with which each match of the needed part ends; they are not always known.
        let Some(ends) = suffixes.literals() else {
            return true;
        };
        ends.iter().any(|end| {
            let Ok(end) = std::str::from_utf8(end.as_bytes()) else {
                return true;
            };
            if is_at_end {
                return name.ends_with(end) || end.ends_with(name);
            }
            // The part after a slash may be the beginning of the name.
            let behind_slashes = end.match_indices('/').map(|(at, _)| &end[at + 1..]);
            let mut beginnings = behind_slashes.filter(|text| !text.is_empty());
            name.contains(end) || beginnings.any(|text| name.starts_with(text))
        })
    }

    /// Whether a text has a placeholder of one of the expression's groups.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        let has = |group: &str| text.contains(&format!("{{{group}}}"));
        let mut groups = self.groups.iter().enumerate();
        groups.any(|(index, group)| {
            has(&(index + 1).to_string()) || group.name.as_deref().is_some_and(has)
        })
    }

    /// The front's placeholder for the source's `$1` or `$name`; `group` is without the `$`. `None` if there is no
    /// such group, or if the front might capture another text.
    pub(crate) fn placeholder(&self, group: &str) -> Option<String> {
        let is_named = |known: &Group| known.name.as_deref() == Some(group);
        let index = match group.parse::<usize>() {
            // `$0` is no group.
            Ok(number) => number.checked_sub(1)?,
            Err(_) => self.groups.iter().position(is_named)?,
        };
        let found = self.groups.get(index)?;
        if found.is_unsure || !self.is_exact {
            return None;
        }
        Some(match &found.name {
            Some(name) if !is_reserved(name) => format!("{{{name}}}"),
            _ => format!("{{{}}}", index + 1),
        })
    }
}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

fn is_group_name(name: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(is_sign)
}

/// Whether the front reserves this name, so that no group may have it.
fn is_reserved(name: &str) -> bool {
    PathExpression::parse(&format!("(?<{name}>)")).is_err()
}

struct Translator<'t> {
    /// The part of the source's expression that is still to be read.
    rest: &'t str,
    /// What was written.
    text: String,
    is_exact: bool,
    groups: Vec<Group>,
    depth: usize,
}

/// Each method returns `None` if it cannot translate what it reads.
impl Translator<'_> {
    fn whole(&mut self, ignores_case: bool) -> Option<()> {
        if ignores_case {
            self.text.push_str("(?i)");
        }
        self.alternatives()?;
        self.rest.is_empty().then_some(())
    }

    /// Reads to the end of the text, or to the parenthesis that closes the group.
    fn alternatives(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        while let Some(sign) = self.rest.chars().next().filter(|it| *it != ')') {
            if sign == '|' {
                self.rest = &self.rest[1..];
                self.text.push('|');
            } else {
                self.repeated()?;
            }
        }
        self.depth -= 1;
        Some(())
    }

    /// Reads one element with its quantifier.
    fn repeated(&mut self) -> Option<()> {
        let before = self.rest;
        let written_before = self.text.len();
        let groups_before = self.groups.len();
        let can_repeat = self.element()?;
        let element = &before[..before.len() - self.rest.len()];
        let Some(quantifier_text) = quantifier(self.rest) else {
            return Some(());
        };
        self.rest = &self.rest[quantifier_text.len()..];
        let is_lazy = self.skip("?");
        // A look-around writes nothing, so nothing is there to be repeated.
        if self.text.len() > written_before {
            self.text.push_str(quantifier_text);
            self.text.push_str(if is_lazy { "?" } else { "" });
        }
        // Without the `+` that makes it possessive, the expression matches more.
        self.is_exact &= !self.skip("+");
        if let Some(group) = element.strip_prefix('(')
            && quantifier_text != "?"
        {
            // PCRE and the crate `regex` repeat a group that may be empty by different rules.
            let inner = group.strip_prefix("?:").unwrap_or(group);
            let may_be_empty = inner.contains(['*', '?', '{', '|']);
            let first_unsure = if may_be_empty { 0 } else { groups_before };
            let unsure = self.groups[first_unsure..].iter_mut();
            unsure.for_each(|it| it.is_unsure = true);
        }
        // A second quantifier is an error, or makes the first one possessive or lazy.
        (can_repeat && quantifier(self.rest).is_none()).then_some(())
    }

    /// Reads one element; returns whether it may be repeated.
    fn element(&mut self) -> Option<bool> {
        let sign = self.next()?;
        match sign {
            '(' => self.group()?,
            '[' => self.class()?,
            '^' | '$' => {
                self.text.push(sign);
                return Some(false);
            }
            '.' => self.text.push('.'),
            '\\' => return self.escape(),
            '*' | '+' | '?' => return None,
            '{' if may_be_quantifier(self.rest) => return None,
            sign => self.literal(sign),
        }
        Some(true)
    }

    fn next(&mut self) -> Option<char> {
        let sign = self.rest.chars().next()?;
        self.rest = &self.rest[sign.len_utf8()..];
        Some(sign)
    }

    /// Skips a text if it comes next; returns whether it does.
    fn skip(&mut self, text: &str) -> bool {
        let behind = self.rest.strip_prefix(text);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// Writes a character that stands for itself. PCRE reads characters beyond ASCII byte by byte.
    fn literal(&mut self, sign: char) {
        if !sign.is_ascii() {
            let mut bytes = [0; 4];
            let encoded = sign.encode_utf8(&mut bytes);
            encoded.bytes().for_each(|it| self.byte(it));
            return;
        }
        if "\\.+*?()|[]{}^$".contains(sign) {
            self.text.push('\\');
        }
        self.text.push(sign);
    }

    fn byte(&mut self, byte: u8) {
        self.text.push_str(&format!("\\x{byte:02X}"));
    }

    /// Reads a group whose `(` was read.
    fn group(&mut self) -> Option<()> {
        if self.rest.starts_with('*') {
            return None;
        }
        if !self.skip("?") {
            return self.capture(None);
        }
        if ["=", "!", "<=", "<!"].iter().any(|it| self.skip(it)) {
            // A look-around matches no character; without it the expression matches more.
            let from = self.text.len();
            self.alternatives()?;
            self.text.truncate(from);
            self.is_exact = false;
            return self.skip(")").then_some(());
        }
        for (opening, closing) in [("P<", '>'), ("<", '>'), ("'", '\'')] {
            if self.skip(opening) {
                let (name, behind) = self.rest.split_once(closing)?;
                if !is_group_name(name) {
                    return None;
                }
                self.rest = behind;
                return self.capture(Some(name.to_owned()));
            }
        }
        if self.skip(":") {
            self.text.push_str("(?:");
        } else if self.skip("i:") {
            self.text.push_str("(?i:");
        } else if self.skip(">") {
            // An atomic group matches less.
            self.is_exact = false;
            self.text.push_str("(?:");
        } else {
            return None;
        }
        self.alternatives()?;
        self.text.push(')');
        self.skip(")").then_some(())
    }

    /// Reads a group that captures. If the front reserves its name, the group gets only a number.
    fn capture(&mut self, name: Option<String>) -> Option<()> {
        match name.as_deref().filter(|it| !is_reserved(it)) {
            Some(name) => self.text.push_str(&format!("(?<{name}>")),
            None => self.text.push('('),
        }
        self.groups.push(Group {
            name,
            is_unsure: false,
        });
        self.alternatives()?;
        self.text.push(')');
        self.skip(")").then_some(())
    }

    /// Reads what follows a `\` outside of a class; returns whether it may be repeated.
    fn escape(&mut self) -> Option<bool> {
        let sign = self.next()?;
        match sign {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => self.text.extend(['\\', sign]),
            'b' | 'B' | 'A' | 'z' => {
                self.text.extend(['\\', sign]);
                // In the crate `regex`, `\b{` begins another kind of boundary.
                return (!self.rest.starts_with('{')).then_some(false);
            }
            // PCRE's `\Z` also matches before a line end, which no path has.
            'Z' => {
                self.text.push_str("\\z");
                return Some(false);
            }
            // A back-reference; with a second digit it may be the code of a character.
            '1'..='9' if !self.rest.starts_with(|next: char| next.is_ascii_digit()) => {
                self.text.push_str("(?:.*)");
                self.is_exact = false;
            }
            'x' => {
                let byte = self.code()?;
                self.byte(byte);
            }
            // Any other letter or digit has a meaning in PCRE.
            sign if sign.is_ascii_alphanumeric() => return None,
            sign => self.literal(sign),
        }
        Some(true)
    }

    /// Reads the two digits after `\x`.
    fn code(&mut self) -> Option<u8> {
        let (digits, behind) = self.rest.split_at_checked(2)?;
        self.rest = behind;
        // The conversion alone would also accept a sign, as in `+1`.
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16);
        byte.ok().filter(|_| is_hex)
    }

    /// Reads a class whose `[` was read.
    fn class(&mut self) -> Option<()> {
        self.text.push('[');
        if self.skip("^") {
            self.text.push('^');
        }
        let mut is_first = true;
        loop {
            let sign = self.next()?;
            match sign {
                ']' if !is_first => break,
                '[' if self.rest.starts_with([':', '.', '=']) => {
                    self.posix()?;
                }
                '\\' if self.rest.starts_with(['d', 'D', 'w', 'W', 's', 'S']) => {
                    let kind = self.next()?;
                    self.text.extend(['\\', kind]);
                }
                // After a range, or after a class within the class, a `-` is a member.
                sign => {
                    let from = self.member(sign)?;
                    self.range(from)?;
                }
            }
            is_first = false;
        }
        self.text.push(']');
        Some(())
    }

    /// Reads the end of a range whose first member `from` was written; does nothing if there is no range.
    fn range(&mut self, from: u8) -> Option<()> {
        // Before the end of the class, `-` is a member.
        if !self.rest.starts_with('-') || self.rest.starts_with("-]") {
            return Some(());
        }
        self.rest = &self.rest[1..];
        self.text.push('-');
        let sign = self.next().filter(|it| *it != '[')?;
        let to = self.member(sign)?;
        (from <= to).then_some(())
    }

    /// Writes a member of a class that begins with `sign`; returns its byte.
    fn member(&mut self, sign: char) -> Option<u8> {
        let mut member = sign;
        if sign == '\\' {
            member = self.next()?;
            if member == 'x' {
                let byte = self.code()?;
                self.byte(byte);
                return Some(byte);
            }
            if member.is_ascii_alphanumeric() {
                return None;
            }
        }
        // Some of these signs are operators only in the crate `regex`, such as `&&` and `~~`.
        if "[]\\^-&~".contains(member) {
            self.text.push('\\');
        }
        self.text.push(member);
        u8::try_from(member).ok().filter(u8::is_ascii)
    }

    /// Reads a class such as `[:alpha:]` whose first `[` was read.
    fn posix(&mut self) -> Option<()> {
        let (name, rest) = self.rest.strip_prefix(':')?.split_once(":]")?;
        self.rest = rest;
        self.text.push_str(&format!("[:{name}:]"));
        POSIX.contains(&name).then_some(())
    }
}

/// The quantifier at the beginning of a text, without the sign that makes it lazy or possessive; `None` if there is
/// none.
fn quantifier(text: &str) -> Option<&str> {
    if text.starts_with(['*', '+', '?']) {
        return text.get(..1);
    }
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let (minimum, maximum) = inner.split_once(',').unwrap_or((inner, ""));
    let has_digits = |count: &str| count.bytes().all(|byte| byte.is_ascii_digit());
    if minimum.is_empty() || !has_digits(minimum) || !has_digits(maximum) {
        return None;
    }
    let length = "{".len() + inner.len() + "}".len();
    Some(&text[..length])
}

/// Whether some release of PCRE takes the text after a `{` for a quantifier: later ones accept `{,2}` and spaces.
fn may_be_quantifier(text: &str) -> bool {
    let is_sign = |it: char| it.is_ascii_digit() || matches!(it, ',' | ' ' | '\t');
    text.split_once('}').is_some_and(|(inner, _)| {
        inner.chars().all(is_sign) && inner.contains(|it: char| it.is_ascii_digit())
    })
}

/// The expression that matches a path with an escaped slash (`%2F`), in the form of paths that the front compares.
pub(crate) const ESCAPED_SLASH: &str = "\\x00";

/// The expression that matches every path.
pub(crate) const EVERYTHING: &str = "^/";

/// The classes of POSIX, which mean the same in both.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The most groups inside each other.
const DEPTH_MAX: usize = 50;

#[cfg(test)]
mod tests;
