//! Sets of paths: which paths a rule of the source matches, and how specific the front considers a route for them.
//!
//! Every set is one or two patterns, in which `*` matches any characters and `?` one character that is no slash; so
//! whether sets cover each other or overlap is a question about patterns. Of an expression only the beginning of its
//! paths is known. Paths are decoded here; [`encoded`] converts them to the form of the file.

use std::borrow::Cow;

use crate::expression::{EVERYTHING, Expression};

/// A set of paths. The path of a prefix or suffix has no closing slash, so that `/` is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Matcher {
    /// Only this path.
    Exact(String),
    /// A path and all below it, by whole segments.
    Prefix(String),
    /// All paths below a path that end with a suffix.
    Suffix {
        /// The path below which the paths are, without a closing slash.
        path: String,
        /// The suffix with which the paths end, such as `.jsp`.
        suffix: String,
    },
    /// A pattern with `*` and `?`, as mod_jk has them.
    Pattern(String),
    /// All paths in which an expression matches.
    Expression(Expression),
}

/// The intersection of two sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Common {
    /// No path is in both.
    Nothing,
    /// Exactly this set.
    Set(Matcher),
    /// Some paths that no [`Matcher`] can express.
    Unsaid,
}

/// How specific the front considers a route: first whether it is exact, then whether it is an expression, the number
/// of its slashes, and its length. The greater rank wins; of expressions, the first in the file.
pub(crate) type Rank = (bool, bool, usize, usize);

impl Matcher {
    /// The set of all paths.
    pub(crate) fn everything() -> Self {
        Self::Prefix(String::new())
    }

    /// The set of a path and all paths below it.
    pub(crate) fn prefix(path: &str) -> Self {
        Self::Prefix(path.trim_end_matches('/').to_owned())
    }

    /// The set of a pattern, as the simplest kind of matcher that means the same.
    pub(crate) fn pattern(text: &str) -> Self {
        let merged = with_single_stars(text);
        // Every path begins with a slash.
        let rooted = match merged.strip_prefix('*') {
            Some(after_star) if !after_star.starts_with('/') => format!("/*{after_star}"),
            _ => merged,
        };
        if rooted == "/*" || rooted == "*" {
            return Self::everything();
        }
        if !rooted.contains(['*', '?']) {
            return Self::Exact(rooted);
        }
        if let Some((path, suffix)) = rooted.rsplit_once("/*")
            && !path.contains(['*', '?'])
            && !suffix.is_empty()
            && !suffix.contains(['*', '?', '/'])
            // A route for the suffix would also match the path itself.
            && !path.ends_with(suffix)
        {
            return Self::Suffix {
                path: path.to_owned(),
                suffix: suffix.to_owned(),
            };
        }
        Self::Pattern(rooted)
    }

    /// Patterns whose union is the set. For an expression the union contains the set.
    fn globs(&self) -> Vec<String> {
        match self {
            Self::Exact(path) => vec![path.clone()],
            Self::Prefix(path) if path.is_empty() => vec!["*".to_owned()],
            Self::Prefix(path) => vec![path.clone(), format!("{path}/*")],
            Self::Suffix { path, suffix } => vec![format!("{path}/*{suffix}")],
            Self::Pattern(text) => vec![text.clone()],
            Self::Expression(_) => vec!["*".to_owned()],
        }
    }

    /// The text that every path of the set begins with: up to the first wildcard. Two sets have a path in common
    /// only if one of these begins with the other.
    pub(crate) fn start(&self) -> Cow<'_, str> {
        match self {
            Self::Exact(path) | Self::Prefix(path) => Cow::Borrowed(path),
            Self::Suffix { path, .. } => Cow::Owned(format!("{path}/")),
            Self::Pattern(text) => Cow::Borrowed(text.split(['*', '?']).next().unwrap_or_default()),
            Self::Expression(expression) => Cow::Borrowed(expression.start()),
        }
    }

    /// Whether the set is one path, or a path with all that lies below it.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Self::Exact(_) | Self::Prefix(_))
    }

    /// Whether the set is that of an expression.
    pub(crate) fn is_expression(&self) -> bool {
        matches!(self, Self::Expression(_))
    }

    /// Whether a path is in the set.
    pub(crate) fn has(&self, path: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == path,
            Self::Prefix(prefix) => match path.strip_prefix(prefix.as_str()) {
                Some(below) => below.is_empty() || below.starts_with('/') || prefix.is_empty(),
                None => false,
            },
            Self::Suffix {
                path: above,
                suffix,
            } => match path.strip_prefix(above.as_str()) {
                // The slash is no part of the suffix.
                Some(below) => {
                    let is_longer = below.len() > suffix.len();
                    is_longer && below.starts_with('/') && below.ends_with(suffix.as_str())
                }
                None => false,
            },
            Self::Pattern(text) => matches(text.as_bytes(), path.as_bytes()),
            Self::Expression(expression) => expression.has(path),
        }
    }

    /// Whether every path of `other` is in this set. May return `false` where the answer is yes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        if self == other || *self == Self::everything() {
            return true;
        }
        match (self, other) {
            (Self::Expression(mine), Self::Exact(path)) => return mine.has(path),
            (Self::Expression(mine), _) => return mine.text() == EVERYTHING,
            (Self::Prefix(path), Self::Expression(theirs)) => {
                return theirs.start().starts_with(&format!("{path}/"));
            }
            (_, Self::Expression(_)) => return false,
            _ => {}
        }
        // A pattern that matches the text of another one, with its wildcards as characters, covers it.
        let own_globs = self.globs();
        let is_covered = |glob: &String| {
            let mut own = own_globs.iter().map(String::as_bytes);
            own.any(|own_glob| matches(own_glob, glob.as_bytes()))
        };
        other.globs().iter().all(is_covered)
    }

    /// Whether any path is in both sets. Of an expression only the start is compared: for one, the result may be `true`
    /// where the answer is no.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(path), set) | (set, Self::Exact(path)) => set.has(path),
            (Self::Prefix(path), Self::Prefix(_)) => other.has(path) || self.covers(other),
            (Self::Expression(_), _) | (_, Self::Expression(_)) => {
                let (own_start, other_start) = (self.start(), other.start());
                own_start.starts_with(&*other_start) || other_start.starts_with(&*own_start)
            }
            _ => {
                let other_globs = other.globs();
                let meets_other = |own: &String| {
                    let mut others = other_globs.iter().map(String::as_bytes);
                    // The text must match the other pattern to its end.
                    others.any(|glob| meet(own.as_bytes(), glob, glob.len()))
                };
                self.globs().iter().any(meets_other)
            }
        }
    }

    /// Whether the set may contain the file `name` in a directory that the pattern `directory` (which ends with `/`)
    /// matches, without containing the directory itself. May return `true` where the answer is no.
    pub(crate) fn takes_file(&self, directory: &str, name: &str) -> bool {
        let file = format!("{directory}{name}");
        let glob = match self {
            Self::Expression(expression) => return expression.takes_file(name),
            // A prefix with the file below it contains the directory, too.
            Self::Exact(path) | Self::Prefix(path) => {
                return matches(file.as_bytes(), path.as_bytes());
            }
            // These sets have a single pattern.
            Self::Suffix { .. } | Self::Pattern(_) => self.globs().concat(),
        };
        match glob.strip_suffix('*') {
            // The last `*` matches any rest of the name. But the text before it must reach into the name: if it ends at
            // the directory, the set contains the directory, too.
            Some(start) => meet(start.as_bytes(), file.as_bytes(), directory.len() + 1),
            None => meet(glob.as_bytes(), file.as_bytes(), file.len()),
        }
    }

    /// The intersection of both sets.
    pub(crate) fn common(&self, other: &Self) -> Common {
        if self.covers(other) {
            return Common::Set(other.clone());
        }
        if other.covers(self) {
            return Common::Set(self.clone());
        }
        if !self.overlaps(other) {
            return Common::Nothing;
        }
        let set = match (self, other) {
            (Self::Prefix(below), Self::Suffix { path, suffix })
            | (Self::Suffix { path, suffix }, Self::Prefix(below)) => {
                suffix_below(below, path, suffix)
            }
            (
                Self::Suffix { path, suffix },
                Self::Suffix {
                    path: other_path,
                    suffix: other_suffix,
                },
                // They overlap, so the longer path begins with the other, and the longer suffix ends with the other.
            ) => Some(Self::Suffix {
                path: longer(path, other_path),
                suffix: longer(suffix, other_suffix),
            }),
            (Self::Pattern(text), Self::Suffix { path, suffix })
            | (Self::Suffix { path, suffix }, Self::Pattern(text)) => {
                pattern_with_suffix(text, path, suffix)
            }
            _ => None,
        };
        set.map_or(Common::Unsaid, Common::Set)
    }

    /// How specific the front considers a route for this set.
    pub(crate) fn rank(&self) -> Rank {
        let text = match self {
            Self::Exact(path) => path.clone(),
            Self::Prefix(path) => format!("{path}/*"),
            Self::Suffix { path, suffix } => format!("{path}/*{suffix}"),
            Self::Pattern(text) => text.clone(),
            Self::Expression(_) => String::new(),
        };
        let slashes = text.bytes().filter(|&byte| byte == b'/').count();
        let is_exact = matches!(self, Self::Exact(_));
        (is_exact, self.is_expression(), slashes, text.len())
    }

    /// The entry of a route's `exclude` that removes this set. For an exact path it also removes paths below it.
    /// `None` for an expression.
    pub(crate) fn exclusion(&self) -> Option<String> {
        Some(match self {
            Self::Expression(_) => return None,
            Self::Exact(path) | Self::Pattern(path) => encoded(path),
            Self::Prefix(path) if path.is_empty() => "/".to_owned(),
            Self::Prefix(path) => encoded(path),
            Self::Suffix { path, suffix } => format!("{}/*{}", encoded(path), encoded(suffix)),
        })
    }

    /// Whether a route can have this set as its paths.
    pub(crate) fn can_be_written(&self) -> bool {
        // The exclusion has the path with its escapes; a control character is found only in the decoded path.
        let has_control = |path: &str| path.bytes().any(|byte| byte.is_ascii_control());
        match self.exclusion() {
            Some(path) => can_be_written(&path) && !has_control(&self.shown()),
            // An expression is no path.
            None => true,
        }
    }

    /// Whether the set names several slashes in a row. The front merges slashes before it compares, so no path
    /// matches.
    pub(crate) fn names_slashes(&self) -> bool {
        self.shown().contains("//")
    }

    /// The set as a text, for messages and comparisons: a path, a pattern, or `~` and an expression.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Prefix(path) if path.is_empty() => "/".to_owned(),
            Self::Suffix { path, suffix } => format!("{path}/*{suffix}"),
            Self::Exact(path) | Self::Prefix(path) | Self::Pattern(path) => path.clone(),
            Self::Expression(expression) => format!("~ {}", expression.text()),
        }
    }
}

/// The part of a prefix whose paths end with a suffix. The suffix counts below `path`, which lies above the prefix.
/// `None` if no matcher expresses that part.
fn suffix_below(prefix: &str, path: &str, suffix: &str) -> Option<Matcher> {
    // A prefix such as `/a.jsp` has itself in the part, but a suffix is only for paths below `/a.jsp`.
    let has_itself = prefix.ends_with(suffix);
    (prefix.starts_with(path) && !has_itself).then(|| Matcher::Suffix {
        path: prefix.to_owned(),
        suffix: suffix.to_owned(),
    })
}

/// The part of a pattern whose paths end with a suffix that counts below `path`; `None` unless the pattern has one
/// wildcard, at its end.
fn pattern_with_suffix(pattern: &str, path: &str, suffix: &str) -> Option<Matcher> {
    let start = pattern.strip_suffix('*')?;
    if start.contains(['*', '?']) || !start.starts_with(path) {
        return None;
    }
    if let Some(below) = start.strip_suffix('/')
        && below.starts_with(path)
    {
        return Some(Matcher::Suffix {
            path: below.to_owned(),
            suffix: suffix.to_owned(),
        });
    }
    is_apart(start, suffix).then(|| Matcher::Pattern(format!("{pattern}{suffix}")))
}

fn longer(one: &str, other: &str) -> String {
    if one.len() > other.len() { one } else { other }.to_owned()
}

/// Whether no beginning of the suffix is the end of `start`, a text without wildcards. Then a path that begins with
/// one and ends with the other has the whole suffix behind `start`.
fn is_apart(start: &str, suffix: &str) -> bool {
    let mut ends = suffix.char_indices().map(|(at, sign)| at + sign.len_utf8());
    !ends.any(|end| start.ends_with(&suffix[..end]))
}

/// A pattern with one `*` in place of several in a row, which mean the same.
pub(crate) fn with_single_stars(pattern: &str) -> String {
    let mut merged = String::with_capacity(pattern.len());
    for sign in pattern.chars() {
        if sign != '*' || !merged.ends_with('*') {
            merged.push(sign);
        }
    }
    merged
}

/// A decoded path in the form of the file, with `%` escapes for all but `*`, `?` and plain characters.
pub(crate) fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'*' | b'?' => text.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) => {
                text.push(char::from(byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Whether the file can express a path: it is normalised, short enough, and has no control characters.
pub(crate) fn can_be_written(path: &str) -> bool {
    let inner = path.trim_start_matches('/').trim_end_matches('/');
    path.starts_with(['/', '*'])
        && path.len() <= PATTERN_MAX
        && !path.bytes().any(|byte| byte.is_ascii_control())
        && !path.contains("//")
        && (inner.is_empty() || !inner.split('/').any(|it| matches!(it, "" | "." | "..")))
}

/// Whether a pattern matches the whole text. The time is at most the product of both lengths.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    #[cfg(test)]
    tests::COMPARISONS.with(|it| it.set(it.get() + 1));
    let (mut in_pattern, mut in_text) = (0, 0);
    // Behind the last `*`: the position in the pattern, and that in the text up to which the `*` matches.
    let mut last_star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        match pattern.get(in_pattern) {
            Some(b'*') => {
                in_pattern += 1;
                last_star = Some((in_pattern, in_text));
            }
            // The text may be a pattern itself. Then its `*` may stand for a slash, and its `?` matches only `?`.
            Some(b'?') if !matches!(text[in_text], b'/' | b'*') => {
                in_pattern += 1;
                in_text += 1;
            }
            Some(&byte) if byte == text[in_text] && byte != b'?' => {
                in_pattern += 1;
                in_text += 1;
            }
            // The last `*` matches one byte more, and all behind it is compared again.
            _ => {
                let Some((behind_star, star_end)) = last_star else {
                    return false;
                };
                last_star = Some((behind_star, star_end + 1));
                in_pattern = behind_star;
                in_text = star_end + 1;
            }
        }
    }
    pattern[in_pattern..].iter().all(|&byte| byte == b'*')
}

/// Whether some text matches the pattern `one`, and matches at least the first `least` bytes of the pattern `two`.
fn meet(one: &[u8], two: &[u8], least: usize) -> bool {
    #[cfg(test)]
    tests::COMPARISONS.with(|it| it.set(it.get() + 1));
    let width = two.len() + 1;
    // Whether the parts of both patterns from these positions on can match the same text: a table, filled from the end.
    let mut meets = vec![false; (one.len() + 1) * width];
    let index = |in_one: usize, in_two: usize| in_one * width + in_two;
    for in_one in (0..=one.len()).rev() {
        for in_two in (0..=two.len()).rev() {
            let without_first_of_one = index(in_one + 1, in_two);
            let without_first_of_two = index(in_one, in_two + 1);
            meets[index(in_one, in_two)] = match (one.get(in_one), two.get(in_two)) {
                // `one` has matched its whole text, and enough of `two` is matched.
                (None, _) if in_two >= least => true,
                // A `*` matches nothing, or one more sign of the other pattern.
                (Some(b'*'), _) if meets[without_first_of_one] => true,
                (_, Some(b'*')) if meets[without_first_of_two] => true,
                (Some(b'*'), Some(_)) => meets[without_first_of_two],
                (Some(_), Some(b'*')) => meets[without_first_of_one],
                (Some(&sign), Some(&other)) => {
                    let is_same = sign == other
                        || (sign == b'?' && other != b'/')
                        || (other == b'?' && sign != b'/');
                    is_same && meets[index(in_one + 1, in_two + 1)]
                }
                _ => false,
            };
        }
    }
    meets[0]
}

/// The remark on a server that is closed because it distinguishes several slashes in a row from one.
pub(crate) const MERGED: &str =
    "a rule here is about several slashes in a row, and the front takes them for one";

/// The bytes of paths that need no escape besides letters and digits: RFC 3986, section 3.3, without `;`.
const PLAIN: &[u8] = b"-._~!$&'()+,=:@/";

/// The most bytes that a path pattern of the file may have.
const PATTERN_MAX: usize = 1024;

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::expression::translated;

    thread_local! {
        /// Counts the patterns compared, as a measure of work in tests.
        pub(crate) static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn patterns_take_their_plainest_form() {
        for (text, expected) in [
            ("/*", Matcher::everything()),
            ("*", Matcher::everything()),
            ("/app", Matcher::Exact("/app".into())),
            ("/app/*", Matcher::Pattern("/app/*".into())),
            ("*.jsp", suffix("", ".jsp")),
            ("/*.jsp", suffix("", ".jsp")),
            ("/app/*.do", suffix("/app", ".do")),
            ("/a**b", Matcher::Pattern("/a*b".into())),
        ] {
            assert_eq!(Matcher::pattern(text), expected, "{text}");
        }
    }

    fn suffix(path: &str, suffix: &str) -> Matcher {
        Matcher::Suffix {
            path: path.into(),
            suffix: suffix.into(),
        }
    }

    #[test]
    fn what_two_sets_have_in_common() {
        let (app, deep) = (Matcher::prefix("/app"), Matcher::prefix("/app/x"));
        assert_eq!(app.common(&deep), Common::Set(deep.clone()));
        assert_eq!(app.common(&Matcher::prefix("/apple")), Common::Nothing);
        assert_eq!(
            app.common(&suffix("", ".jsp")),
            Common::Set(suffix("/app", ".jsp"))
        );
        assert_eq!(
            suffix("/app", ".jsp").common(&suffix("", ".jsp")),
            Common::Set(suffix("/app", ".jsp"))
        );
        let pattern = Matcher::pattern("/a*/x?.do");
        assert_eq!(app.common(&pattern), Common::Unsaid);
    }

    pub(crate) fn any_matcher() -> impl Strategy<Value = Matcher> {
        prop_oneof![
            "(/[ab]){1,3}".prop_map(Matcher::Exact),
            "(/[ab]){0,2}".prop_map(Matcher::Prefix),
            ("(/[ab]){0,2}", "[.][ab]").prop_map(|(path, suffix)| Matcher::Suffix { path, suffix }),
            "/[ab/*?]{0,5}".prop_map(|text| Matcher::pattern(&text)),
            prop::sample::select(vec!["^/a", "^/a/b", "b$", "^/(a|b)/[^/]*$", r"\.a$", "^"])
                .prop_map(|text| Matcher::Expression(translated(text, false))),
        ]
    }

    #[test]
    fn a_file_of_a_long_name_is_compared_once() {
        for (matcher, is_taken) in [("/a*", true), ("/*a", true), ("/b*", false), ("/*b", false)] {
            COMPARISONS.set(0);
            let matcher = Matcher::pattern(matcher);
            assert_eq!(
                matcher.takes_file("/", &"a".repeat(4_000)),
                is_taken,
                "{matcher:?}"
            );
            assert_eq!(COMPARISONS.get(), 1, "{matcher:?}");
        }
    }

    proptest! {
        #[test]
        fn sets_relate_as_their_members_do(
            one in any_matcher(), two in any_matcher(), path in "/[ab./]{0,7}",
        ) {
            let both = one.has(&path) && two.has(&path);
            prop_assert!(!both || one.overlaps(&two));
            prop_assert!(!one.has(&path) || path.starts_with(&*one.start()));
            prop_assert!(!one.covers(&two) || !two.has(&path) || one.has(&path));
            match one.common(&two) {
                Common::Set(set) => prop_assert_eq!(set.has(&path), both, "{:?}", set),
                Common::Nothing => prop_assert!(!both),
                Common::Unsaid => {}
            }
        }
    }
}
