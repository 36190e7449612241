//! The layers of a crate's modules, as ARCHITECTURE.md draws them.
//!
//! The drawing is a block of groups with arrows between them, `a ─► b, c ─► d`: a module may use those of
//! groups further right. So modules cannot form a circle, and each can be read without those to its left.
//! A path that names a module of the crate's root is an arrow, whether it begins with `crate::` or climbs
//! there by `super::`. Tests may use what they like.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use super::Problem;
use super::source::{Source, Token};

pub(super) fn check(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<Problem>> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    let sources: Vec<&Source> = sources
        .iter()
        .filter(|source| source.path.starts_with(PLACE))
        .collect();
    Ok(compare(&drawn(&text), &sources))
}

/// The layer of each module, the first one having the leftmost.
type Layers<'a> = BTreeMap<&'a str, usize>;

/// The layers of the code block below the sentence about them.
fn drawn(text: &str) -> Layers<'_> {
    let section = text.split_once(SENTENCE).map_or("", |(_, section)| section);
    let block = section.split("```").nth(1).unwrap_or_default();
    let groups = block.split(ARROW).enumerate();
    groups
        .flat_map(|(layer, group)| group.split(',').map(move |name| (name.trim(), layer)))
        .filter(|(name, _)| !name.is_empty())
        .collect()
}

fn compare(layers: &Layers<'_>, sources: &[&Source]) -> Vec<Problem> {
    let modules: BTreeSet<&str> = sources.iter().filter_map(|it| module(it)).collect();
    let mut problems = Vec::new();
    for name in layers.keys().filter(|name| !modules.contains(*name)) {
        let what = format!("the layers have a module that {PLACE} lacks: {name}");
        problems.push(Problem::new(FILE, what));
    }
    for name in modules.iter().filter(|name| !layers.contains_key(*name)) {
        let what = format!("the layers lack the module {name} of {PLACE}");
        problems.push(Problem::new(FILE, what));
    }
    for source in sources {
        let Some(from) = module(source) else {
            continue;
        };
        for (to, line) in arrows(source) {
            let allowed = match (layers.get(from), layers.get(to)) {
                (Some(from), Some(to)) => from < to,
                // Said above, or no module.
                _ => true,
            };
            if from != to && !allowed {
                let place = format_args!("{}:{line}", source.path);
                let what = format!("`{from}` must not use `{to}`: see the layers in {FILE}");
                problems.push(Problem::new(place, what));
            }
        }
    }
    problems
}

/// The module of the crate's root that a file belongs to; none for the root itself, which only names what
/// is public.
fn module(source: &Source) -> Option<&str> {
    let path = source.path.strip_prefix(PLACE)?;
    let first = path.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib").then_some(name)
}

/// Modules of the crate's root that code names, with lines. What is no module has no layer.
fn arrows(source: &Source) -> Vec<(&str, usize)> {
    let tokens = &source.tokens;
    let mut found = Vec::new();
    let mut inner = Inner::default();
    for (at, token) in tokens.iter().enumerate() {
        inner.step(tokens, at);
        if source.is_test_line(token.line) || is_path(tokens, at) {
            continue;
        }
        let after = match token.text.as_str() {
            "crate" => at + 1,
            "super" => {
                let (climbed, after) = climb(tokens, at);
                if climbed != depth(source) + inner.depth() {
                    continue;
                }
                after
            }
            _ => continue,
        };
        found.extend(named(tokens, after));
    }
    found
}

/// Modules inside a file.
#[derive(Debug, Default)]
struct Inner {
    /// For each open brace, whether a module begins with it.
    braces: Vec<bool>,
}

impl Inner {
    fn step(&mut self, tokens: &[Token], at: usize) {
        match text(tokens, at) {
            "{" => {
                let begins = at >= 2 && text(tokens, at - 2) == "mod";
                self.braces.push(begins);
            }
            "}" => drop(self.braces.pop()),
            _ => {}
        }
    }

    fn depth(&self) -> usize {
        self.braces.iter().filter(|begins| **begins).count()
    }
}

/// How many modules a file is below the crate's root.
fn depth(source: &Source) -> usize {
    source.path[PLACE.len()..].split('/').count()
}

/// Whether a path goes on here, which began before.
fn is_path(tokens: &[Token], at: usize) -> bool {
    at >= 2 && text(tokens, at - 1) == ":" && text(tokens, at - 2) == ":"
}

/// How often `super` stands at `at`, and where the path goes on.
fn climb(tokens: &[Token], mut at: usize) -> (usize, usize) {
    let mut count = 0;
    while text(tokens, at) == "super" {
        count += 1;
        at += 1;
        if text(tokens, at + 2) != "super" {
            break;
        }
        at += 2;
    }
    (count, at)
}

/// The names that follow `::` at `at`: one, or the first ones of each path in braces.
fn named(tokens: &[Token], at: usize) -> Vec<(&str, usize)> {
    if text(tokens, at) != ":" || text(tokens, at + 1) != ":" {
        return Vec::new();
    }
    let first = at + 2;
    if text(tokens, first) != "{" {
        return tokens
            .get(first)
            .map(|token| (token.text.as_str(), token.line))
            .into_iter()
            .collect();
    }
    let mut names = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(first) {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && ["{", ","].contains(&text(tokens, at)) {
            names.extend(tokens.get(at + 1).map(|it| (it.text.as_str(), it.line)));
        }
    }
    names
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

/// The crate whose modules are in layers.
const PLACE: &str = "crates/front/front/src/";
const FILE: &str = "ARCHITECTURE.md";
const SENTENCE: &str = "Modules of `front`:";
const ARROW: &str = "─►";

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "a ─► z\n## Crates\n```\ncli ─► front\n```\nModules of `front`: each …\n\
                           ```\nreload ─► exchange, explain\n  ─► site\n```\n";

    fn problems(file: &str, text: &str) -> Vec<String> {
        let place = |name: &str| format!("{PLACE}{name}");
        let mut files = vec![(place(file), text)];
        for name in [
            "reload.rs",
            "exchange.rs",
            "explain.rs",
            "site.rs",
            "lib.rs",
        ] {
            if file != name {
                files.push((place(name), ""));
            }
        }
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(path, text).unwrap())
            .collect();
        let found = compare(&drawn(DRAWING), &sources.iter().collect::<Vec<_>>());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_to_the_right_pass() {
        for (file, text) in [
            ("reload.rs", "use crate::site::Site;\nuse crate::exchange;"),
            ("exchange/relay.rs", "use crate::site::{self, Site};"),
            (
                "exchange/relay.rs",
                "use super::Exchange; use crate::exchange::id;",
            ),
            ("exchange/relay.rs", "fn f() { super::super::site::f(); }"),
            (
                "site.rs",
                "pub(crate) mod a; use self::a::exchange; use http::exchange;",
            ),
            (
                "site.rs",
                "#[cfg(test)]\nmod tests { use crate::reload::f; }",
            ),
            ("site/tests.rs", "use crate::reload::f;"),
            ("lib.rs", "mod site; pub use crate::reload::f;"),
        ] {
            assert_eq!(problems(file, text), Vec::<String>::new(), "{file}: {text}");
        }
    }

    #[test]
    fn a_planted_arrow_is_refused() {
        for (file, text) in [
            ("site.rs", "use crate::exchange::Exchange;"),
            ("site/route.rs", "pub(crate) use crate::exchange;"),
            ("site/route.rs", "fn f() { crate::exchange::serve(); }"),
            (
                "site/route.rs",
                "fn f() -> Option<super::super::exchange::Id> {}",
            ),
            ("site.rs", "mod inner { use super::super::exchange::f; }"),
            (
                "site.rs",
                "use crate::{exchange::f, reload};\nuse crate::site;",
            ),
            ("explain.rs", "use crate::exchange::verdict;"),
        ] {
            let found = problems(file, text);
            let place = format!("{PLACE}{file}:1: `");
            assert!(!found.is_empty(), "{file}: {text}");
            for problem in found {
                assert!(problem.starts_with(&place), "{problem}");
                assert!(problem.contains("must not use `"), "{problem}");
            }
        }
    }

    #[test]
    fn the_drawing_has_every_module_and_no_other() {
        let found = problems("cache/fill.rs", "use crate::reload::f;");
        assert_eq!(
            found,
            ["ARCHITECTURE.md: the layers lack the module cache of crates/front/front/src/"]
        );
        let exchange = Source::parse("crates/front/front/src/exchange.rs", "").unwrap();
        let found = compare(&drawn(DRAWING), &[&exchange]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found.iter().all(|it| it.what.contains("lacks: ")),
            "{found:?}"
        );
    }
}
