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
    let mut translator = Translator {
        rest: pcre,
        text: String::new(),
        is_exact: true,
        groups: Vec::new(),
        depth: 0,
    };
    let read = match pcre.strip_prefix("(?i)") {
        Some(rest) => {
            translator.rest = rest;
            translator.whole(true)
        }
        None => translator.whole(ignores_case),
    };
    let compiled = read.and_then(|()| PathExpression::parse(&translator.text).ok());
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
    let HirKind::Concat(parts) = hir.kind() else {
        return String::new();
    };
    let text = match &parts[..] {
        [first, second, ..] if *first.kind() == HirKind::Look(Look::Start) => second.kind(),
        _ => return String::new(),
    };
    match text {
        HirKind::Literal(text) => String::from_utf8(text.0.to_vec()).unwrap_or_default(),
        _ => String::new(),
    }
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

/// Splits off the end of an expression that may match nothing, such as `.*`. Also returns whether the remaining part
/// must match at the end of the path.
fn needed(hir: &Hir) -> (Hir, bool) {
    let mut parts = match hir.kind() {
        HirKind::Concat(parts) => parts.clone(),
        _ => vec![hir.clone()],
    };
    let mut is_bound = false;
    while let Some(last) = parts.last() {
        let is_end = *last.kind() == HirKind::Look(Look::End);
        if !is_end && repeated_class(last).is_none() {
            break;
        }
        is_bound = is_end;
        parts.pop();
    }
    (Hir::concat(parts), is_bound)
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
        let is_plain = looks.all(|it| matches!(it, Look::Start | Look::End));
        let (before, is_bound) = needed(&hir);
        let suffixes = Extractor::new().kind(ExtractKind::Suffix).extract(&before);
        let Some(ends) = suffixes.literals().filter(|_| is_plain) else {
            return true;
        };
        ends.iter().any(|end| {
            let Ok(end) = std::str::from_utf8(end.as_bytes()) else {
                return true;
            };
            // The part after a slash may be the beginning of the name.
            let behind = end.match_indices('/').map(|(at, _)| &end[at + 1..]);
            let mut parts = behind.filter(|it| !it.is_empty());
            if is_bound {
                name.ends_with(end) || end.ends_with(name)
            } else {
                name.contains(end) || parts.any(|it| name.starts_with(it))
            }
        })
    }

    /// Whether a text has a placeholder of one of the expression's groups.
    pub(crate) fn is_named_in(&self, text: &str) -> bool {
        let names = self.groups.iter().filter_map(|it| it.name.clone());
        let mut all = (1..=self.groups.len())
            .map(|it| it.to_string())
            .chain(names);
        all.any(|it| text.contains(&format!("{{{it}}}")))
    }

    /// The front's placeholder for the source's `$1` or `$name`; `group` is without the `$`. `None` if there is no
    /// such group, or if the front might capture another text.
    pub(crate) fn placeholder(&self, group: &str) -> Option<String> {
        let named = |it: &Group| it.name.as_deref() == Some(group);
        let index = match group.parse::<usize>() {
            Ok(number) => number.checked_sub(1)?,
            Err(_) => self.groups.iter().position(named)?,
        };
        let found = self.groups.get(index).filter(|it| !it.is_unsure)?;
        let number = || (index + 1).to_string();
        let name = found.name.clone().filter(|it| !is_reserved(it));
        self.is_exact
            .then(|| format!("{{{}}}", name.unwrap_or_else(number)))
    }
}

impl Hash for Expression {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
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
        let (before, from, first) = (self.rest, self.text.len(), self.groups.len());
        let can_repeat = self.element()?;
        let element = &before[..before.len() - self.rest.len()];
        let Some(sign) = quantifier(self.rest) else {
            return Some(());
        };
        self.rest = &self.rest[sign.len()..];
        let is_lazy = self.skip("?");
        // A look-around writes nothing, so nothing is there to be repeated.
        if self.text.len() > from {
            self.text.push_str(sign);
            self.text.push_str(if is_lazy { "?" } else { "" });
        }
        self.is_exact &= !self.skip("+");
        if let Some(inner) = element.strip_prefix('(').filter(|_| sign != "?") {
            // PCRE and the crate `regex` repeat a group that may be empty by different rules.
            let inner = inner.strip_prefix("?:").unwrap_or(inner);
            let may_be_empty = inner.contains(['*', '?', '{', '|']);
            let unsure = &mut self.groups[if may_be_empty { 0 } else { first }..];
            unsure.iter_mut().for_each(|it| it.is_unsure = true);
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

    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
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
        for (opens, closes) in [("P<", '>'), ("<", '>'), ("'", '\'')] {
            if self.skip(opens) {
                let (name, rest) = self.rest.split_once(closes)?;
                let begins = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
                let is_name = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
                self.rest = rest;
                let is_good = begins && name.bytes().all(is_name);
                return self.capture(Some(name.to_owned())).filter(|()| is_good);
            }
        }
        let written = match () {
            () if self.skip(":") => "(?:",
            () if self.skip("i:") => "(?i:",
            () if self.skip(">") => {
                self.is_exact = false;
                "(?:"
            }
            () => return None,
        };
        self.text.push_str(written);
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
                return (!self.rest.starts_with('{')).then_some(false);
            }
            'Z' => {
                self.text.push_str("\\z");
                return Some(false);
            }
            '1'..='9' if !self.rest.starts_with(|it: char| it.is_ascii_digit()) => {
                self.text.push_str("(?:.*)");
                self.is_exact = false;
            }
            'x' => {
                let byte = self.code()?;
                self.byte(byte);
            }
            sign if sign.is_ascii_alphanumeric() => return None,
            sign => self.literal(sign),
        }
        Some(true)
    }

    /// Reads the two digits after `\x`.
    fn code(&mut self) -> Option<u8> {
        let (digits, rest) = self.rest.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
        self.rest = rest;
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
        let behind = self.rest.strip_prefix('-');
        let Some(rest) = behind.filter(|it| !it.starts_with(']')) else {
            return Some(());
        };
        self.rest = rest;
        self.text.push('-');
        let sign = self.next().filter(|it| *it != '[')?;
        let to = self.member(sign)?;
        (from <= to).then_some(())
    }

    /// Writes a member of a class; returns its byte.
    fn member(&mut self, sign: char) -> Option<u8> {
        let sign = match sign {
            '\\' => match self.next()? {
                'x' => {
                    let byte = self.code()?;
                    self.byte(byte);
                    return Some(byte);
                }
                sign if sign.is_ascii_alphanumeric() => return None,
                sign => sign,
            },
            sign => sign,
        };
        if "[]\\^-&~".contains(sign) {
            self.text.push('\\');
        }
        self.text.push(sign);
        u8::try_from(sign).ok().filter(u8::is_ascii)
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
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    let counts = !least.is_empty() && is_number(least) && is_number(most);
    counts.then(|| &text[..inner.len() + 2])
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
