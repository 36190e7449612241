//! Counts doubtful names: types that are participles, types that share a name, functions with tuples as parameters,
//! and variables that are bound twice.
//!
//! A type should be a noun of the field that can be searched for; a participle (`Asked`, `Found`) or the name of many
//! other types cannot. Instead of a tuple as a parameter, write a struct. Two values within a few lines should have
//! two names. `cargo xtask names` prints the figures and what they count. `tidy` fails if they exceed
//! [`PARTICIPLES_MAX`], [`TUPLE_PARAMETERS_MAX`] or [`REBOUND_MAX`]. Tests, benchmarks and examples are not counted.

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
    let sharing: usize = shared.iter().map(|(_, count)| count).sum();
    let tuples = &names.tuple_parameters;
    say(&format!(
        "{types} types: {} are participles ({:.1} %), {sharing} share their name ({:.1} %)",
        participles.len(),
        percent(participles.len(), types),
        percent(sharing, types),
    ));
    say(&format!(
        "{} functions: {} take a tuple ({:.2} %)",
        names.functions,
        tuples.len(),
        percent(tuples.len(), names.functions),
    ));
    say(&format!("{} names are bound twice", names.rebound.len()));
    let list = |title: &str, places: &[&Declaration]| {
        say(&format!("\n{title}:"));
        for place in places {
            say(&format!("  {} {}:{}", place.name, place.path, place.line));
        }
    };
    list("participles", &participles);
    say("\nnames that are shared most:");
    for (name, count) in shared.iter().take(SHARED_SHOWN) {
        say(&format!("  {count:3} {name}"));
    }
    list(
        "functions that take a tuple",
        &tuples.iter().collect::<Vec<_>>(),
    );
    list(
        "names that are bound twice",
        &names.rebound.iter().collect::<Vec<_>>(),
    );
    Ok(())
}

/// Finds counts that exceed their limits, and limits that are higher than their counts.
pub(super) fn check(sources: &[Source]) -> Vec<Problem> {
    let names = Names::of(sources);
    let tuples: Vec<_> = names.tuple_parameters.iter().collect();
    let rebound: Vec<_> = names.rebound.iter().collect();
    let mut problems = PARTICIPLES.check(&names.participles(), PARTICIPLES_MAX);
    problems.extend(TUPLES.check(&tuples, TUPLE_PARAMETERS_MAX));
    problems.extend(REBOUND.check(&rebound, REBOUND_MAX));
    problems
}

/// A limit on a count that may only be lowered.
struct Ratchet {
    /// The name of the constant that has the limit.
    limit: &'static str,
    /// The property that is counted, as a verb that follows a number.
    what: &'static str,
    advice: &'static str,
}

impl Ratchet {
    /// Reports each declaration if there are more than `max`. With fewer, the limit itself is to be lowered.
    fn check(&self, declarations: &[&Declaration], max: usize) -> Vec<Problem> {
        let Self {
            limit,
            what,
            advice,
        } = self;
        let count = declarations.len();
        if count < max {
            let problem = format!("only {count} {what}: lower {limit}");
            return vec![Problem::new(FILE, problem)];
        }
        if count == max {
            return Vec::new();
        }
        let problems = declarations.iter().map(|Declaration { name, path, line }| {
            let message = format!(
                "{name}: {count} {what}, {max} may: {advice} (`cargo xtask names` lists them)"
            );
            Problem::new(format_args!("{path}:{line}"), message)
        });
        problems.collect()
    }
}

/// A type, a function or a variable, with the place of its declaration.
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
    /// The functions that have a tuple pattern as a parameter.
    tuple_parameters: Vec<Declaration>,
    /// The variables whose name another `let` of the same block bound within [`REBOUND_LINES`], except for
    /// idioms.
    rebound: Vec<Declaration>,
}

impl Names {
    fn of(sources: &[Source]) -> Self {
        let mut names = Self::default();
        for source in sources.iter().filter(|source| is_counted(source)) {
            names.add(source);
        }
        names
    }

    /// Adds the types and functions of a file, and the variables that are bound twice within a few lines.
    fn add(&mut self, source: &Source) {
        let tokens = &source.tokens;
        // For each open bracket, the variables bound in it, with the line of their last `let`.
        let mut blocks: Vec<BTreeMap<&str, usize>> = vec![BTreeMap::new()];
        for (at, token) in tokens.iter().enumerate() {
            match token.text.as_str() {
                "(" | "[" | "{" => blocks.push(BTreeMap::new()),
                ")" | "]" | "}" if blocks.len() > 1 => drop(blocks.pop()),
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
                // An associated type is named by its trait.
                "type" if blocks.len() > 1 => {}
                "struct" | "enum" | "union" | "trait" | "type" if begins_upper(name) => {
                    self.types.push(declaration());
                }
                "let" => {
                    let Some((variable, value)) = variable(tokens, at + 1) else {
                        continue;
                    };
                    let block = blocks.last_mut().expect("the first is not popped");
                    let is_near = match block.insert(variable, token.line) {
                        Some(earlier_line) => token.line - earlier_line <= REBOUND_LINES,
                        None => false,
                    };
                    if is_near && !is_same_value(&tokens[value..], variable) {
                        self.rebound.push(Declaration {
                            name: variable.to_owned(),
                            ..declaration()
                        });
                    }
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

    /// Names that several types share, with the number of these types; the most frequent first.
    fn shared(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for declaration in &self.types {
            *counts.entry(&declaration.name).or_default() += 1;
        }
        let mut shared: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 1).collect();
        shared.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        shared
    }
}

/// Whether a file is code of the product, whose names are counted.
fn is_counted(source: &Source) -> bool {
    let is_beside = ["/benches/", "/examples/"]
        .iter()
        .any(|folder| source.path.contains(folder));
    !is_beside
        && !source.is_test()
        && !["e2e", "nights", "testkit", "fuzz"].contains(&source.folder())
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
    let mut index = at;
    let mut generics_depth = 0_usize;
    while text(index) != "(" || generics_depth > 0 {
        match text(index) {
            "" => return false,
            "<" => generics_depth += 1,
            _ if generics_depth == 0 => return false,
            // In generics, `->` belongs to a closure's type.
            ">" if text(index - 1) != "-" => generics_depth -= 1,
            _ => {}
        }
        index += 1;
    }
    let mut depth = 1_usize;
    // Whether a parameter's pattern begins at the next token.
    let mut is_start = true;
    while depth > 0 {
        index += 1;
        match text(index) {
            "" => return false,
            "(" if depth == 1 && is_start => return true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        let stays_start = is_start && ["mut", "&"].contains(&text(index));
        is_start = depth == 1 && (stays_start || text(index) == ",");
    }
    false
}

/// The variable of a `let` whose pattern begins at `at`, and where its value begins; `None` if it is no plain name.
fn variable(tokens: &[Token], at: usize) -> Option<(&str, usize)> {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let name_at = if text(at) == "mut" { at + 1 } else { at };
    let name = text(name_at);
    if name == "_" || !begins_lower(name) || ![":", "="].contains(&text(name_at + 1)) {
        return None;
    }
    // A type may be between the name and its value. A `;` first means that there is no value.
    let mut after_name = name_at + 1..tokens.len();
    let end = after_name.find(|index| ["=", ";"].contains(&text(*index)))?;
    (text(end) == "=").then_some((name, end + 1))
}

/// Whether `value` is only a form of `name`: the same value unwrapped, borrowed or cloned.
fn is_same_value(value: &[Token], name: &str) -> bool {
    let end = value.iter().position(|token| token.text == ";");
    let texts: Vec<&str> = value[..end.unwrap_or(0)]
        .iter()
        .map(|token| token.text.as_str())
        .collect();
    let is_name = |text: &str| text == name;
    match &texts[..] {
        [only] | [only, "?"] | ["&", only] | ["&", "mut", only] => is_name(only),
        ["Arc" | "Rc", ":", ":", "clone", "(", "&", only, ")"] => is_name(only),
        [only, ".", method, "(", inner @ .., ")"]
        | [only, ".", method, "(", inner @ .., ")", "?"] => {
            is_name(only) && UNWRAPPING.contains(method) && is_balanced(inner)
        }
        _ => false,
    }
}

/// Whether each closing bracket in `texts` has its opening bracket in `texts`, too.
fn is_balanced(texts: &[&str]) -> bool {
    let mut depth = 0_i32;
    texts.iter().all(|text| {
        match *text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth >= 0
    })
}

/// Whether the last word of a name is a participle.
fn is_participle(name: &str) -> bool {
    let begin = name.rfind(|letter: char| letter.is_ascii_uppercase());
    let word = &name[begin.unwrap_or(0)..];
    if NOUNS.contains(&word) {
        return false;
    }
    // Before the ending there are at least two letters: `Red` and `Ring` are no participles.
    let has_ending = |ending: &str| word.len() > ending.len() + 1 && word.ends_with(ending);
    has_ending("ed") || has_ending("ing") || IRREGULAR.contains(&word)
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// The accepted number of types that are participles. This limit and the next two may only be lowered.
const PARTICIPLES_MAX: usize = 35;

/// The accepted number of functions that take a tuple.
const TUPLE_PARAMETERS_MAX: usize = 2;

/// The accepted number of names that are bound twice.
const REBOUND_MAX: usize = 45;

const PARTICIPLES: Ratchet = Ratchet {
    limit: "PARTICIPLES_MAX",
    what: "types are participles",
    advice: "a type has the name of a thing",
};

const TUPLES: Ratchet = Ratchet {
    limit: "TUPLE_PARAMETERS_MAX",
    what: "functions take a tuple",
    advice: "what needs more arguments takes a struct",
};

const REBOUND: Ratchet = Ratchet {
    limit: "REBOUND_MAX",
    what: "names are bound twice",
    advice: "two values have two names",
};

/// Two `let` of one name that are at most this many lines apart are counted.
const REBOUND_LINES: usize = 5;

/// Methods whose result may keep the name of the value.
const UNWRAPPING: [&str; 8] = [
    "clone",
    "map_err",
    "ok_or",
    "ok_or_else",
    "transpose",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
];

const FILE: &str = "dev/xtask/src/tidy/names.rs";

const SHARED_SHOWN: usize = 40;

/// Irregular participles.
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

/// Nouns that end like participles.
const NOUNS: [&str; 27] = [
    "Coding",
    "Cping",
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
                    fn q(Point { x, y }: Point, (r)) {}\nfn s(t: &mut (u8, u8)) {}\n";
        assert_eq!(tuples(text), ["a", "d", "h", "q"]);
        assert_eq!(names(text).functions, 6);
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
        let names = names("fn a((b, c): (u8, u8)) {}\n");
        let found: Vec<_> = names.tuple_parameters.iter().collect();
        assert_eq!(TUPLES.check(&found, 1), []);
        let more = TUPLES.check(&found, 0);
        assert_eq!(more[0].place, "crates/a/src/b.rs:1");
        assert!(
            more[0]
                .what
                .starts_with("a: 1 functions take a tuple, 0 may")
        );
        assert!(TUPLES.check(&found, 2)[0].what.contains("lower"));
    }

    #[test]
    fn names_of_two_values_are_counted() {
        let text = "fn a() { let b = c(); let b: u8 = b.map(|b| b); { let b = 1; } }\n\
                    fn d() { let e = f(); let e = e.map_err(|g| g(e))?; let e = e?; let e = Arc::clone(&e); }\n\
                    fn h() { let Some(i) = i else { return }; let i = i; let (j, i) = k; let mut i = l; }\n\
                    fn m() { let n = 1;\n\n\n\n\n\nlet n = 2; let _ = 3; let _ = 4; }\n";
        let names = names(text);
        let found: Vec<_> = names.rebound.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(found, ["b", "i"]);
    }
}
