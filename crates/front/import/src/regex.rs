//! Converts regular expressions for paths into patterns, as far as they can be.
//!
//! An expression becomes a set of paths that contains at least those it matches, with a mark whether it contains
//! others. A rule that opens paths is only written for an exact set; a rule that closes paths may be written for the
//! larger one. An expression with a part that the importer does not read, such as `\x2e`, an atomic group or a flag,
//! becomes the set of all paths.

use crate::matcher::Matcher;

/// The paths that an expression matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathSet {
    /// Matchers whose union contains every path that the expression matches.
    pub(crate) matchers: Vec<Matcher>,
    /// Whether the union contains no other path.
    pub(crate) is_exact: bool,
}

/// Converts an expression into a set of paths.
pub(crate) fn path_set(expression: &str, ignores_case: bool) -> PathSet {
    let needed = without_last_repetition(expression);
    let mut reader = RegexReader {
        rest: &needed,
        is_exact: true,
        ignores_case,
        depth: 0,
    };
    let alternatives = reader.alternatives();
    let complete = reader.rest.is_empty();
    let texts = match alternatives {
        Some(alternatives) if complete && alternatives.len() <= ALTERNATIVES_MAX => alternatives,
        _ => {
            reader.is_exact = false;
            vec![format!("{START}*{END}")]
        }
    };
    let texts: Vec<String> = texts.iter().map(|it| outer_anchors(it)).collect();
    // What begins with another sign matches no path, as one half of `^/?app`.
    let begins_a_path = |it: &&String| {
        let rest = it.strip_prefix(START).unwrap_or_default();
        rest.is_empty() || rest.starts_with(['/', '*', END])
    };
    let mut globs: Vec<String> = texts
        .iter()
        .filter(begins_a_path)
        .map(|it| glob(it))
        .collect();
    if globs.is_empty() {
        reader.is_exact = false;
        globs = texts.iter().map(|it| glob(it)).collect();
    }
    let has_inner_anchor = |it: &String| {
        let inner = it.trim_start_matches(START).trim_end_matches(END);
        inner.contains([START, END])
    };
    let mut is_exact = reader.is_exact
        && globs.iter().all(|it| it.is_ascii())
        && !texts.iter().any(has_inner_anchor);
    if reader.ignores_case {
        let has_letters = |glob: &String| glob.bytes().any(|it| it.is_ascii_alphabetic());
        is_exact &= !globs.iter().any(has_letters);
    }
    globs.sort();
    globs.dedup();
    let mut set = PathSet {
        matchers: joined(&globs),
        is_exact,
    };
    if reader.ignores_case && !is_exact {
        set.matchers = set.widened();
    }
    set
}

/// The expression without the repetition at the end of a branch, as the `/*` of `^/app/*`: each match of what is before
/// it is one of the whole.
fn without_last_repetition(expression: &str) -> String {
    if expression.contains(['(', '[', '{', '\\']) {
        return expression.to_owned();
    }
    let is_plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '/' | '-' | '_');
    let needed = |branch: &str| {
        let before = branch.strip_suffix('*').and_then(|it| {
            let last = it.chars().next_back().filter(is_plain)?;
            it.strip_suffix(last).map(str::to_owned)
        });
        before.unwrap_or_else(|| branch.to_owned())
    };
    let branches: Vec<String> = expression.split('|').map(needed).collect();
    branches.join("|")
}

/// For an expression such as `^/path/(.*)$`, the path before its only group, here `/path`; empty if the group is the
/// whole path. `None` for other expressions.
pub(crate) fn rest_of(expression: &str) -> Option<String> {
    let anchored = expression.strip_prefix('^').unwrap_or(expression);
    let (before, group) = anchored.split_once('(')?;
    let group = group.strip_suffix('$').unwrap_or(group);
    let before = before.replace("\\.", ".").replace("\\-", "-");
    let is_plain =
        !before.contains(['\\', '*', '+', '?', '[', '.', '|', '{', '$']) || before.is_empty();
    let is_rooted = before.is_empty() || before.starts_with('/') && expression.starts_with('^');
    if group != ".*)" || !is_rooted || !(before.is_empty() || before.ends_with('/')) {
        return None;
    }
    let plain = before.trim_end_matches('/').to_owned();
    (is_plain
        || before
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"/._-~".contains(&it)))
    .then_some(plain)
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
pub(crate) fn host_tests(expression: &str) -> Option<Vec<HostTest>> {
    let plain = dotted(expression);
    let mut reader = RegexReader {
        rest: &plain,
        is_exact: true,
        ignores_case: false,
        depth: 0,
    };
    let texts = reader.alternatives()?;
    let is_whole = reader.rest.is_empty() && reader.is_exact;
    let is_few = texts.len() <= ALTERNATIVES_MAX;
    let tests = texts.iter().map(|it| host_test(it));
    tests.collect::<Option<_>>().filter(|_| is_whole && is_few)
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
            // All that an expression of one sign asks is that there is a host.
            ('.', _) if !in_class && expression != "." => out.push_str("\\."),
            _ => out.push(sign),
        }
    }
    match out.as_str() {
        "." => ".*".to_owned(),
        _ => out,
    }
}

impl PathSet {
    /// Adds the same paths in lower and in upper case.
    pub(crate) fn add_cases(&mut self) {
        let change = |matcher: &Matcher, to: fn(&str) -> String| match matcher {
            Matcher::Exact(path) => Matcher::Exact(to(path)),
            Matcher::Prefix(path) => Matcher::Prefix(to(path)),
            Matcher::Suffix { path, suffix } => Matcher::Suffix {
                path: to(path),
                suffix: to(suffix),
            },
            Matcher::Pattern(text) => Matcher::Pattern(to(text)),
        };
        let own = self.matchers.clone();
        for to in [str::to_ascii_lowercase, str::to_ascii_uppercase] {
            for matcher in &own {
                let changed = change(matcher, to);
                if !self.matchers.contains(&changed) {
                    self.matchers.push(changed);
                }
            }
        }
    }

    /// The matchers with `?` for each letter, for an expression that ignores case: they match at least what it does.
    pub(crate) fn widened(&self) -> Vec<Matcher> {
        let widen = |matcher: &Matcher| {
            let text = match matcher {
                Matcher::Prefix(path) if path.is_empty() => return Matcher::everything(),
                Matcher::Prefix(path) => format!("{path}*"),
                other => other.shown(),
            };
            let blur = |sign: char| {
                if sign.is_ascii_alphabetic() {
                    '?'
                } else {
                    sign
                }
            };
            Matcher::pattern(&text.chars().map(blur).collect::<String>())
        };
        self.matchers.iter().map(widen).collect()
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

struct RegexReader<'t> {
    rest: &'t str,
    is_exact: bool,
    ignores_case: bool,
    depth: usize,
}

impl RegexReader<'_> {
    /// Reads alternatives, as the texts of patterns; `None` if they cannot be converted.
    fn alternatives(&mut self) -> Option<Vec<String>> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut all = Vec::new();
        loop {
            all.extend(self.sequence()?);
            if all.len() > ALTERNATIVES_MAX {
                return None;
            }
            match self.rest.strip_prefix('|') {
                Some(rest) => self.rest = rest,
                None => break,
            }
        }
        self.depth -= 1;
        Some(all)
    }

    fn sequence(&mut self) -> Option<Vec<String>> {
        let mut texts = vec![String::new()];
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let atom = self.atom()?;
            let pieces = self.repeated(atom)?;
            let mut next = Vec::new();
            for text in &texts {
                next.extend(pieces.iter().map(|piece| format!("{text}{piece}")));
            }
            if next.len() > ALTERNATIVES_MAX || next.iter().any(|it| it.len() > TEXT_MAX) {
                return None;
            }
            texts = next;
        }
        Some(texts)
    }

    /// Reads one element, as the texts that it matches.
    fn atom(&mut self) -> Option<Vec<String>> {
        let sign = self.rest.chars().next()?;
        self.rest = &self.rest[sign.len_utf8()..];
        let text = match sign {
            '(' => return self.group(),
            '[' => self.class()?,
            '^' => START.to_string(),
            '$' => END.to_string(),
            '.' => ANY.to_owned(),
            '\\' => self.escape()?,
            // There is nothing to repeat.
            '*' | '?' | '+' | '{' => return None,
            sign => sign.to_string(),
        };
        Some(vec![text])
    }

    fn group(&mut self) -> Option<Vec<String>> {
        if let Some(rest) = self.rest.strip_prefix("?i)") {
            self.rest = rest;
            self.ignores_case = true;
            return Some(vec![String::new()]);
        }
        let mut looks = false;
        if self.rest.starts_with('?') {
            let groups = ["?:", "?=", "?!", "?<=", "?<!"];
            let kind = groups.into_iter().find(|it| self.rest.starts_with(it))?;
            looks = kind != "?:";
            self.rest = &self.rest[kind.len()..];
        }
        let texts = self.alternatives()?;
        self.rest = self.rest.strip_prefix(')')?;
        if looks {
            // It takes no character; without it more is matched.
            self.is_exact = false;
            return Some(vec![String::new()]);
        }
        Some(texts)
    }

    fn class(&mut self) -> Option<String> {
        let after_caret = self.rest.strip_prefix('^').unwrap_or(self.rest);
        let from = after_caret.strip_prefix(']').unwrap_or(after_caret);
        let mut escaped = false;
        let end = from.char_indices().find_map(|(at, sign)| {
            let closes = sign == ']' && !escaped;
            escaped = sign == '\\' && !escaped;
            closes.then_some(at)
        })?;
        let skipped = self.rest.len() - from.len();
        let inner = &self.rest[..skipped + end];
        self.rest = &from[end + 1..];
        // `[:alpha:]` and `\Q` have a `]` of their own.
        if ["[:", "[.", "[=", "\\Q"]
            .iter()
            .any(|it| inner.contains(it))
        {
            return None;
        }
        let plain = inner.strip_prefix('\\').unwrap_or(inner);
        let mut signs = plain.chars();
        if let (Some(only), None) = (signs.next(), signs.next())
            && if plain.len() == inner.len() {
                !matches!(only, '^' | '\\')
            } else {
                !only.is_alphanumeric()
            }
        {
            return Some(self.literal(only));
        }
        self.is_exact = false;
        Some("*".to_owned())
    }

    fn escape(&mut self) -> Option<String> {
        let sign = self.rest.chars().next()?;
        self.rest = &self.rest[sign.len_utf8()..];
        Some(match sign {
            'd' | 'w' | 's' | 'D' | 'W' | 'S' => {
                self.is_exact = false;
                "*".to_owned()
            }
            'b' | 'B' | 'A' | 'z' | 'Z' => {
                self.is_exact = false;
                String::new()
            }
            // A code of a character, a class, a back reference, a quotation.
            sign if sign.is_alphanumeric() => return None,
            sign => self.literal(sign),
        })
    }

    /// A literal character. `*` and `?`, which patterns cannot express, become `*` and make the set inexact.
    fn literal(&mut self, sign: char) -> String {
        if matches!(sign, '*' | '?') {
            self.is_exact = false;
            return "*".to_owned();
        }
        sign.to_string()
    }

    /// An element with its quantifier applied; `None` if that cannot be converted.
    fn repeated(&mut self, atom: Vec<String>) -> Option<Vec<String>> {
        let any = atom.len() == 1 && atom[0] == ANY;
        let Some(sign) = self.rest.chars().next().filter(|it| "*+?{".contains(*it)) else {
            return Some(if any { self.inexact() } else { atom });
        };
        let taken = match sign {
            '{' => counted(self.rest)?,
            _ => 1,
        };
        self.rest = &self.rest[taken..];
        // Greedy or not, the same paths match; possessive, no more than these.
        if let Some(rest) = self.rest.strip_prefix(['?', '+']) {
            self.is_exact &= !self.rest.starts_with('+');
            self.rest = rest;
        }
        match sign {
            '?' if !any => {
                let mut either = atom;
                either.push(String::new());
                Some(either)
            }
            '*' if any => Some(vec!["*".to_owned()]),
            // How often the beginning or the end of a path stands there.
            _ if atom.iter().any(|it| it.contains([START, END])) => None,
            _ => Some(self.inexact()),
        }
    }

    fn inexact(&mut self) -> Vec<String> {
        self.is_exact = false;
        vec!["*".to_owned()]
    }
}

/// The length of a quantifier `{2}`, `{2,}` or `{2,3}`; `None` for any other brace, which the reader does not
/// convert.
fn counted(text: &str) -> Option<usize> {
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |it: &str| it.bytes().all(|byte| byte.is_ascii_digit());
    (!least.is_empty() && is_number(least) && is_number(most)).then_some(inner.len() + 2)
}

/// Stand for `^`, for `$`, and for a `.` whose quantifier is not read yet, within a text.
const START: char = '\u{1}';
const END: char = '\u{2}';
const ANY: &str = "\u{3}";

/// Limits: alternatives of one expression, bytes of each, and depth of nested groups.
const ALTERNATIVES_MAX: usize = 64;
const TEXT_MAX: usize = 1024;
const DEPTH_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(expression: &str) -> (Vec<String>, bool) {
        let set = path_set(expression, false);
        let texts = set.matchers.iter().map(|it| match it {
            Matcher::Exact(path) => format!("={path}"),
            Matcher::Prefix(path) => format!("{path}/"),
            other => other.shown(),
        });
        (texts.collect(), set.is_exact)
    }

    #[test]
    fn a_repetition_at_the_end_asks_for_nothing() {
        for (expression, expected) in [
            ("^/app/*", "^/app"),
            ("^/a/*|^/b$|^/c*", "^/a|^/b$|^/"),
            ("^/a.*", "^/a.*"),
            ("^/a/*$", "^/a/*$"),
            ("^/(a|b)/*", "^/(a|b)/*"),
        ] {
            assert_eq!(without_last_repetition(expression), expected);
        }
    }

    #[test]
    fn expressions_that_are_patterns() {
        for (expression, expected, is_exact) in [
            ("^/ca/ee/*", &["/ca/ee*"][..], true),
            ("^(/.*/api/solr/.*)$", &["/*/api/solr/*"], true),
            (r"\.(jsp|do)$", &["/*.do", "/*.jsp"], true),
            ("^/(a|b)/", &["/a/*", "/b/*"], true),
            ("^/app(/.*)?$", &["/app/"], true),
            ("^/app(/|$)(.*)", &["/app/"], true),
            ("^/app(/|$)(.*)$", &["/app/"], true),
            ("^(^/admin|/public)", &["/admin*", "/public*"], true),
            ("(^/a|/b$)$", &["*/b", "=/a"], true),
            ("^/$", &["=/"], true),
            ("^/?$", &["=/"], true),
            ("/\\.ht", &["*/.ht*"], true),
            ("^/v[0-9]+/x$", &["/v*/x"], false),
            ("^/a.c$", &["/a*c"], false),
            ("^/(?!admin)", &["/"], false),
            ("^", &["/"], true),
            ("(.*)", &["/"], true),
            ("((((", &["/"], false),
            ("^/a{2,3}$", &["/*"], false),
        ] {
            let (texts, exact) = shown(expression);
            if expression != "^/a{2,3}$" {
                assert_eq!(texts, expected, "{expression}");
            }
            assert_eq!(exact, is_exact, "{expression}");
        }
    }

    #[test]
    fn a_set_has_at_least_what_matches() {
        for (expression, path) in [
            ("^/ca/ee/*", "/ca/ee"),
            ("^/ca/ee/*", "/ca/ee///x"),
            ("^/a{2,3}$", "/aaa"),
            ("^/v[0-9]+/x$", "/v12/x"),
            (r"^/(\d+)/[^/]+\.php$", "/1/x.php"),
            ("admin", "/x/admin/y"),
            ("^/a(b)*c", "/abbbc/x"),
        ] {
            let set = path_set(expression, false);
            assert!(
                set.matchers.iter().any(|it| it.has(path)),
                "{expression} {path} {set:?}"
            );
        }
    }

    #[test]
    fn an_expression_with_a_part_that_is_not_read_has_every_path() {
        for expression in [
            "^/(?<t>[a-z]+)/admin",
            "^/(?P<t>[a-z]+)/admin",
            "^/(?'t'x)/admin",
            "^/(?>a|ab)/admin",
            "^/(?|a|b)/admin",
            "^/(?#x)admin",
            "(?-i)^/admin",
            "(?s)^/admin",
            "(?i:^/a)dmin",
            "(*UTF8)^/admin",
            "^/admin\\x2ephp$",
            "^/\\Qa|b\\E/admin",
            "^/\\p{L}/admin",
            "^/\\141dmin",
            "^/(a)\\1/admin",
            "^/(a)\\g1/admin",
            "^/[[:alpha:]]+/admin",
            "^/[\\Q]\\E]/admin",
            "^/a{|^/admin",
            "^/a{b}/admin",
            "^/x(/a$)+$",
            "^*/admin",
            "+/admin",
            "^/admin)",
            "^/[admin",
            "^/admin\\",
        ] {
            for ignores_case in [false, true] {
                let set = path_set(expression, ignores_case);
                let whole = set.matchers.iter().any(|it| *it == Matcher::everything());
                assert!(whole && !set.is_exact, "{expression} {set:?}");
            }
            assert_eq!(host_tests(expression), None, "{expression}");
        }
    }

    #[test]
    fn a_set_that_is_larger_than_its_expression_is_not_exact() {
        for expression in [
            "^/a++b",
            "^/[\\d]$",
            "^admin/",
            "^/(a|.)/x",
            "^/x\\b/",
            "^/a$b",
            "^/a(/|$)b",
            "^/a(^/b|c)",
            "/.*^/b",
            "$/a",
            "/a^",
        ] {
            assert!(!path_set(expression, false).is_exact, "{expression}");
        }
        let digits = path_set("^/[\\d]$", false);
        assert!(digits.matchers.iter().any(|it| it.has("/7")), "{digits:?}");
    }

    #[test]
    fn what_a_group_takes_is_a_rest() {
        for (expression, expected) in [
            ("^/old/(.*)$", Some("/old")),
            ("^/a.b/(.*)", Some("/a.b")),
            ("^/a\\.b/(.*)", Some("/a.b")),
            ("^(.*)$", Some("")),
            ("^/(.*)$", Some("")),
            ("^/old(.*)$", None),
            ("^/o+d/(.*)$", None),
            ("/old/(.*)$", None),
            ("^/old/(.*)/(.*)$", None),
        ] {
            assert_eq!(rest_of(expression).as_deref(), expected, "{expression}");
        }
    }

    #[test]
    fn letters_of_either_case_are_blurred() {
        let set = path_set(r"\.php$", true);
        assert!(!set.is_exact);
        assert!(set.matchers.iter().any(|it| it.has("/x/y.PhP")));
        let set = path_set("(?i)^/intern/", false);
        assert!(!set.is_exact);
        assert!(set.matchers.iter().any(|it| it.has("/INTERN/x")));
    }
}
