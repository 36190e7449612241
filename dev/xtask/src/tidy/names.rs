//! Names, counted: types that are participles, types that share a name, functions that take tuples.
//!
//! A type is a noun of the field that can be searched for; one that is a participle (`Asked`, `Found`) or has the
//! name of many others cannot. A function that takes a tuple to stay below a number of arguments wants a struct.
//! `cargo xtask names` prints the figures and what they count. They are indicators, not aims: `tidy` refuses one
//! tuple more than [`TUPLE_PARAMETERS_MAX`], and nothing else of it. Tests, benchmarks and examples are not counted.

use std::collections::BTreeMap;
use std::path::Path;

use super::Problem;
use super::source::{self, Source, Token};
use crate::step::say;

/// Prints what is counted.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let names = Names::of(&source::load(root)?);
    let types = names.types.len();
    let (participles, shared) = (names.participles(), names.shared());
    let tuples = &names.tuple_parameters;
    say(&format!(
        "{types} types: {} are participles ({:.1} %), {} share their name ({:.1} %)",
        participles.len(),
        percent(participles.len(), types),
        shared.iter().map(|(_, count)| count).sum::<usize>(),
        percent(shared.iter().map(|(_, count)| count).sum(), types),
    ));
    say(&format!(
        "{} functions: {} take a tuple ({:.2} %)",
        names.functions,
        tuples.len(),
        percent(tuples.len(), names.functions),
    ));
    say("\nparticiples:");
    for it in participles {
        say(&format!("  {} {}:{}", it.name, it.path, it.line));
    }
    say("\nnames that are shared most:");
    for (name, count) in shared.iter().take(SHARED_SHOWN) {
        say(&format!("  {count:3} {name}"));
    }
    say("\nfunctions that take a tuple:");
    for it in tuples {
        say(&format!("  {} {}:{}", it.name, it.path, it.line));
    }
    Ok(())
}

/// One tuple more than there may be, and a limit that is higher than it need be.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    check_tuples(&Names::of(sources).tuple_parameters, TUPLE_PARAMETERS_MAX)
}

fn check_tuples(found: &[Declaration], max: usize) -> Vec<Problem> {
    let count = found.len();
    if count < max {
        let what = format!("only {count} functions take a tuple: lower TUPLE_PARAMETERS_MAX");
        return vec![Problem::new(FILE, what)];
    }
    if count == max {
        return Vec::new();
    }
    let what = format!(
        "{count} functions take a tuple, {max} may: what needs more arguments takes a struct \
         (`cargo xtask names` lists them)"
    );
    let places = found.iter();
    places
        .map(|it| {
            Problem::new(
                format_args!("{}:{}", it.path, it.line),
                format!("{}: {what}", it.name),
            )
        })
        .collect()
}

/// A type or a function, and where it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declaration {
    name: String,
    path: String,
    line: usize,
}

#[derive(Debug, Default)]
struct Names {
    types: Vec<Declaration>,
    functions: usize,
    /// Functions with a parameter whose pattern is a tuple.
    tuple_parameters: Vec<Declaration>,
}

impl Names {
    fn of(sources: &[Source]) -> Self {
        let mut names = Self::default();
        for source in sources.iter().filter(|source| is_counted(source)) {
            names.add(source);
        }
        names
    }

    fn add(&mut self, source: &Source) {
        let tokens = &source.tokens;
        let mut depth = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let Some(name) = tokens.get(at + 1).map(|token| &token.text) else {
                continue;
            };
            if source.is_test_line(token.line) {
                continue;
            }
            let declaration = || Declaration {
                name: name.clone(),
                path: source.path.clone(),
                line: token.line,
            };
            match token.text.as_str() {
                // An associated type is none of ours.
                "type" if depth > 0 => {}
                "struct" | "enum" | "union" | "trait" | "type" if begins_upper(name) => {
                    self.types.push(declaration());
                }
                "fn" if begins_lower(name) => {
                    self.functions += 1;
                    if takes_tuple(tokens, at + 2) {
                        self.tuple_parameters.push(declaration());
                    }
                }
                _ => {}
            }
        }
    }

    fn participles(&self) -> Vec<&Declaration> {
        let types = self.types.iter();
        types.filter(|it| is_participle(&it.name)).collect()
    }

    /// Names of more than one type, with how many there are; the most frequent first.
    fn shared(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for it in &self.types {
            *counts.entry(&it.name).or_default() += 1;
        }
        let mut shared: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
        shared.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        shared
    }
}

/// Whether it is code of the product.
fn is_counted(source: &Source) -> bool {
    let is_beside = ["/benches/", "/examples/"]
        .iter()
        .any(|folder| source.path.contains(folder));
    !is_beside && !source.is_test() && !["e2e", "testkit", "fuzz"].contains(&source.folder())
}

fn begins_upper(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_uppercase())
}

fn begins_lower(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
}

/// Whether a parameter of the function whose generics or parameters begin at `at` is a tuple, taken apart.
fn takes_tuple(tokens: &[Token], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut at = at;
    if text(at) == "<" {
        let mut depth = 0_usize;
        loop {
            match text(at) {
                "<" => depth += 1,
                ">" if text(at - 1) != "-" => depth -= 1,
                "" => return false,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    if text(at) != "(" {
        return false;
    }
    let (mut depth, mut is_start) = (1_usize, true);
    while depth > 0 {
        at += 1;
        match text(at) {
            "" => return false,
            "(" if depth == 1 && is_start => return true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        is_start = depth == 1 && [",", "mut", "&"].contains(&text(at));
    }
    false
}

/// Whether the last word of a name is a participle.
fn is_participle(name: &str) -> bool {
    let begin = name.rfind(|letter: char| letter.is_ascii_uppercase());
    let word = &name[begin.unwrap_or(0)..];
    let ends = |end: &str| word.len() > end.len() + 1 && word.ends_with(end);
    if NOUNS.contains(&word) {
        return false;
    }
    ends("ed") || ends("ing") || IRREGULAR.contains(&word)
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// So many functions take a tuple. The number may only fall.
const TUPLE_PARAMETERS_MAX: usize = 85;

const FILE: &str = "dev/xtask/src/tidy/names.rs";

const SHARED_SHOWN: usize = 40;

/// Participles without the usual ends.
const IRREGULAR: [&str; 40] = [
    "Begun",
    "Bound",
    "Broken",
    "Brought",
    "Built",
    "Caught",
    "Chosen",
    "Cut",
    "Done",
    "Drawn",
    "Found",
    "Given",
    "Gone",
    "Heard",
    "Held",
    "Hidden",
    "Kept",
    "Known",
    "Laid",
    "Left",
    "Lent",
    "Lost",
    "Made",
    "Meant",
    "Met",
    "Paid",
    "Read",
    "Said",
    "Seen",
    "Sent",
    "Shown",
    "Sought",
    "Spent",
    "Spoken",
    "Taken",
    "Thrown",
    "Told",
    "Understood",
    "Unread",
    "Written",
];

/// Nouns with the ends of participles.
const NOUNS: [&str; 26] = [
    "Coding",
    "Drawing",
    "Encoding",
    "Ending",
    "Feed",
    "Finding",
    "Framing",
    "Heading",
    "Listing",
    "Mapping",
    "Meaning",
    "Memcached",
    "Need",
    "Opening",
    "Padding",
    "Ping",
    "Reading",
    "Ring",
    "Routing",
    "Seed",
    "Setting",
    "Speed",
    "String",
    "Timing",
    "Uring",
    "Warning",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Names {
        Names::of(&[Source::parse("crates/a/src/b.rs", text).unwrap()])
    }

    fn tuples(text: &str) -> Vec<String> {
        let found = names(text).tuple_parameters.into_iter();
        found.map(|it| it.name).collect()
    }

    #[test]
    fn participles_are_told_from_nouns() {
        for (name, expected) in [
            ("Asked", true),
            ("Found", true),
            ("LabPrinted", true),
            ("Standing", true),
            ("PreparedRequest", false),
            ("Setting", false),
            ("Warning", false),
            ("Memcached", false),
            ("Bed", false),
            ("Route", false),
        ] {
            assert_eq!(is_participle(name), expected, "{name}");
        }
    }

    #[test]
    fn tuples_that_are_taken_apart_are_counted() {
        let text = "fn a((b, c): (u8, u8)) {}\nfn d(e: u8, (f, g): (u8, u8)) {}\n\
                    fn h<F: Fn(u8) -> u8>(&mut self, &(i, j): &(u8, u8)) {}\n\
                    fn k(l: (u8, u8), m: impl Fn((u8, u8))) { let n = |(o, p)| o; }\n\
                    fn q(Point { x, y }: Point, (r)) {}\n";
        assert_eq!(tuples(text), ["a", "d", "h", "q"]);
        assert_eq!(names(text).functions, 5);
    }

    #[test]
    fn tests_and_associated_types_are_not_counted() {
        let text = "struct A;\ntype B = A;\nimpl C for A { type D = u8; }\n\
                    #[cfg(test)]\nmod tests { struct E; fn f((g, h): (u8, u8)) {} }\n";
        let names = names(text);
        let found: Vec<_> = names.types.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(found, ["A", "B"]);
        assert_eq!(names.tuple_parameters, []);
    }

    #[test]
    fn a_name_of_two_types_is_shared() {
        let names = names("mod a { struct A; }\nmod b { struct A; enum B {} }\n");
        assert_eq!(names.shared(), [("A", 2)]);
    }

    #[test]
    fn one_tuple_more_is_refused_and_one_less_lowers_the_limit() {
        let found = names("fn a((b, c): (u8, u8)) {}\n").tuple_parameters;
        assert_eq!(check_tuples(&found, 1), []);
        let more = check_tuples(&found, 0);
        assert_eq!(more[0].place, "crates/a/src/b.rs:1");
        assert!(
            more[0]
                .what
                .starts_with("a: 1 functions take a tuple, 0 may")
        );
        assert!(check_tuples(&found, 2)[0].what.contains("lower"));
    }
}
