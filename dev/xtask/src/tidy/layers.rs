//! The layers of modules, as ARCHITECTURE.md draws them: those of a crate, or those below one module.
//!
//! A drawing is a block of groups with arrows between them, `a ─► b, c ─► d`: a module may use those of groups
//! further right. So modules cannot form a circle, and each can be read without those to its left. The root (the
//! crate's, or the module that has the others) is above the drawing: it may use all its modules, and they use nothing
//! that it defines or re-exports. Every path that names a module below the root is an arrow, in whatever form it is
//! written: with `crate::`, with `super::`, or in braces. Tests may use any module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;

use super::Problem;
use super::source::{Source, Token};

/// Compares each drawing that the page has with the modules and their uses of each other; tests are left out.
pub(super) fn check(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<Problem>> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    let tests = test_modules(sources);
    let is_test = |source: &Source| tests.iter().any(|module| is_within(&source.path, module));
    let code: Vec<&Source> = sources.iter().filter(|source| !is_test(source)).collect();
    let mut problems = Vec::new();
    for drawing in &DRAWINGS {
        if let Some(layers) = drawn(&text, drawing) {
            problems.extend(drawing.compare(&layers, &code));
        }
    }
    Ok(problems)
}

/// A root whose modules are in layers.
struct Drawing {
    /// The name of the drawing in ARCHITECTURE.md.
    name: &'static str,
    /// The folder of the drawn modules.
    folder: &'static str,
}

/// The layer of each module, counted from the left, which is 0.
type Layers<'a> = BTreeMap<&'a str, usize>;

/// The layers of the code block below the sentence that begins with the drawing's name; none if there is no
/// such sentence.
fn drawn<'a>(text: &'a str, drawing: &Drawing) -> Option<Layers<'a>> {
    let sentence = format!("Modules of `{}`", drawing.name);
    let (_, section) = text.split_once(&sentence)?;
    let block = section.split("```").nth(1).unwrap_or_default();
    let groups = block.split(ARROW).enumerate();
    let modules =
        groups.flat_map(|(layer, group)| group.split(',').map(move |name| (name.trim(), layer)));
    Some(modules.filter(|(name, _)| !name.is_empty()).collect())
}

impl Drawing {
    const fn of(name: &'static str, folder: &'static str) -> Self {
        Self { name, folder }
    }

    /// Finds modules that the drawing or the folder lacks, and uses of a module that is not in a lower layer.
    fn compare(&self, layers: &Layers<'_>, sources: &[&Source]) -> Vec<Problem> {
        let folder = self.folder;
        let modules = sources.iter().filter_map(|source| self.module(source));
        let modules: BTreeSet<&str> = modules.collect();
        let mut problems = Vec::new();
        for name in layers.keys().filter(|name| !modules.contains(*name)) {
            let message = format!("the layers have a module that {folder} lacks: {name}");
            problems.push(Problem::new(FILE, message));
        }
        for name in modules.iter().filter(|name| !layers.contains_key(*name)) {
            let message = format!("the layers lack the module {name} of {folder}");
            problems.push(Problem::new(FILE, message));
        }
        for source in sources {
            let Some(from) = self.module(source) else {
                continue;
            };
            for UsedPath { segments, line } in used_paths(source) {
                let Some(to) = self.below_root(&segments).filter(|to| *to != from) else {
                    continue;
                };
                let message = match (layers.get(from), layers.get(to)) {
                    (Some(own), Some(used)) if own < used => continue,
                    (Some(_), Some(_)) => {
                        format!("`{from}` must not use `{to}`: see the layers in {FILE}")
                    }
                    // The missing layer is reported above.
                    _ if modules.contains(to) => continue,
                    _ => format!(
                        "`{from}` must not use `{to}` of the root `{}`: name its module, or move it into one",
                        self.name
                    ),
                };
                problems.push(Problem::new(
                    format_args!("{}:{line}", source.path),
                    message,
                ));
            }
        }
        problems
    }

    /// The module below the root that a file belongs to; none for the root itself.
    fn module<'a>(&self, source: &'a Source) -> Option<&'a str> {
        let path = source.path.strip_prefix(self.folder)?;
        let first = path.split('/').next()?;
        let name = first.strip_suffix(".rs").unwrap_or(first);
        (name != "lib").then_some(name)
    }

    /// The name below the root that a path of the crate leads to.
    fn below_root<'a>(&self, segments: &[&'a str]) -> Option<&'a str> {
        let (_, root) = self.folder.split_once(SRC)?;
        let root = root.split_terminator('/');
        let depth = root.clone().count();
        let is_below = root.eq(segments.iter().take(depth).copied());
        segments.get(depth).copied().filter(|_| is_below)
    }
}

/// A path that code uses, resolved from the root of its crate.
struct UsedPath<'a> {
    segments: Vec<&'a str>,
    line: usize,
}

/// The paths that code outside tests names by `crate` or `super`.
fn used_paths(source: &Source) -> Vec<UsedPath<'_>> {
    let tokens = &source.tokens;
    let file = file_segments(&source.path);
    let mut paths = Vec::new();
    let mut inner = Inner::default();
    for (index, token) in tokens.iter().enumerate() {
        inner.step(tokens, index);
        if source.is_test_line(token.line) || is_path(tokens, index) {
            continue;
        }
        let mut current_module = file.clone();
        current_module.extend(&inner.modules);
        let (base, after) = match token.text.as_str() {
            "crate" => (Vec::new(), index + 1),
            "super" => {
                let (climbed, after) = climb(tokens, index);
                current_module.truncate(current_module.len().saturating_sub(climbed));
                (current_module, after)
            }
            _ => continue,
        };
        follow(tokens, after, &base, &mut paths);
    }
    paths
}

/// The modules that lead from the root of a crate to a file.
fn file_segments(path: &str) -> Vec<&str> {
    let path = path.split_once(SRC).map_or("", |(_, path)| path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.split('/').filter(|it| *it != "lib").collect()
}

/// The modules that are declared inside a file, while its tokens are read.
#[derive(Debug, Default)]
struct Inner<'a> {
    /// For each open brace, the module that it opens, if any.
    braces: Vec<Option<&'a str>>,
    modules: Vec<&'a str>,
}

impl<'a> Inner<'a> {
    /// Notes a brace: one behind `mod NAME` begins an inner module.
    fn step(&mut self, tokens: &'a [Token], at: usize) {
        match text(tokens, at) {
            "{" => {
                let begins = at >= 2 && text(tokens, at - 2) == "mod";
                self.braces.push(begins.then(|| text(tokens, at - 1)));
            }
            "}" => drop(self.braces.pop()),
            _ => return,
        }
        self.modules = self.braces.iter().copied().flatten().collect();
    }
}

/// Whether the token continues a path that began before.
fn is_path(tokens: &[Token], at: usize) -> bool {
    at >= 2 && text(tokens, at - 1) == ":" && text(tokens, at - 2) == ":"
}

/// The number of `super` at `at`, and the index of the token behind them.
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

/// Adds the paths that begin with `base` and go on at `at`, by `::name` or by `::{…}`. Returns the index of the token
/// behind them.
fn follow<'a>(
    tokens: &'a [Token],
    at: usize,
    base: &[&'a str],
    paths: &mut Vec<UsedPath<'a>>,
) -> usize {
    let has_colons = text(tokens, at) == ":" && text(tokens, at + 1) == ":";
    let behind_colons = at + 2;
    match text(tokens, behind_colons) {
        // The end of the file, or generics such as `path::<T>`.
        "" | "<" => at,
        _ if !has_colons => at,
        "{" => {
            let mut index = behind_colons + 1;
            // An empty text is the end of the file.
            while !["}", ""].contains(&text(tokens, index)) {
                index = follow_name(tokens, index, base, paths);
                // Passes over what is behind the path, such as `as name`.
                while ![",", "}", ""].contains(&text(tokens, index)) {
                    index += 1;
                }
                index += usize::from(text(tokens, index) == ",");
            }
            index + 1
        }
        _ => follow_name(tokens, behind_colons, base, paths),
    }
}

/// Adds the path that begins with `base` and the name at `at`, or the longer paths that go on behind the name.
fn follow_name<'a>(
    tokens: &'a [Token],
    at: usize,
    base: &[&'a str],
    paths: &mut Vec<UsedPath<'a>>,
) -> usize {
    let mut segments = base.to_vec();
    let name = text(tokens, at);
    // `self` in braces stands for the module before them.
    if name != "self" {
        segments.push(name);
    }
    let count = paths.len();
    let end = follow(tokens, at + 1, &segments, paths);
    if paths.len() == count {
        let line = tokens.get(at).map_or(0, |token| token.line);
        paths.push(UsedPath { segments, line });
    }
    end
}

/// The files of modules that are declared under `#[cfg(test)]`, without `.rs`.
fn test_modules(sources: &[Source]) -> Vec<String> {
    let mut modules = Vec::new();
    for source in sources {
        let path = source.path.strip_suffix(".rs").unwrap_or_default();
        let folder = path.strip_suffix("/lib").unwrap_or(path);
        for window in source.tokens.windows(3) {
            if let [keyword, name, end] = window
                && keyword.text == "mod"
                && end.text == ";"
                && source.is_test_line(keyword.line)
            {
                modules.push(format!("{folder}/{}", name.text));
            }
        }
    }
    modules
}

/// Whether a file belongs to a module or to one below it.
fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

const DRAWINGS: [Drawing; 5] = [
    Drawing::of("proxy", "crates/front/proxy/src/"),
    Drawing::of("exchange", "crates/front/proxy/src/exchange/"),
    Drawing::of("upstream", "crates/front/upstream/src/"),
    Drawing::of("import", "crates/front/import/src/"),
    Drawing::of("lab", "crates/lab/lab/src/"),
];
const FILE: &str = "ARCHITECTURE.md";
const ARROW: &str = "─►";
const SRC: &str = "/src/";

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "a ─► z\n## Crates\n```\ncli ─► proxy\n```\nModules of `proxy`: each …\n\
                           ```\nreload ─► exchange, explain\n  ─► site\n```\n\
                           Modules of `exchange`:\n```\nretry ─► relay ─► stage\n```\n";

    /// The problems of a drawing when one file has `text` and the others, one for each of `modules`, nothing.
    fn problems(drawing: &Drawing, modules: &[&str], file: &str, text: &str) -> Vec<String> {
        let place = |name: &str| format!("{}{name}", drawing.folder);
        let mut files = vec![(place(file), text)];
        files.extend(
            modules
                .iter()
                .map(|name| (place(&format!("{name}.rs")), "")),
        );
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(path, text).unwrap())
            .collect();
        let layers = drawn(DRAWING, drawing).unwrap();
        let found = drawing.compare(&layers, &sources.iter().collect::<Vec<_>>());
        found.iter().map(ToString::to_string).collect()
    }

    fn front(file: &str, text: &str) -> Vec<String> {
        problems(
            &DRAWINGS[0],
            &["reload", "exchange", "explain", "site"],
            file,
            text,
        )
    }

    fn exchange(file: &str, text: &str) -> Vec<String> {
        problems(&DRAWINGS[1], &["retry", "relay", "stage"], file, text)
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
            assert_eq!(front(file, text), Vec::<String>::new(), "{file}: {text}");
        }
        for (file, text) in [
            (
                "relay.rs",
                "use super::stage::Stage; use super::super::site::Site;",
            ),
            (
                "relay/error.rs",
                "use super::Relay; use crate::exchange::stage; use crate::site::retry;",
            ),
            (
                "relay.rs",
                "use crate::{exchange::{stage, relay::a}, site};",
            ),
        ] {
            assert_eq!(exchange(file, text), Vec::<String>::new(), "{file}: {text}");
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
            ("site.rs", "use crate::Front;"),
        ] {
            assert_refused(&front(file, text), file, text);
        }
        for (file, text) in [
            ("stage.rs", "use super::relay::Relay;"),
            (
                "stage.rs",
                "use crate::{site, exchange::{stage::a, retry}};",
            ),
            ("stage/a.rs", "use super::super::retry;"),
            ("stage.rs", "use super::Exchange;"),
            ("stage.rs", "use super::*;"),
        ] {
            assert_refused(&exchange(file, text), file, text);
        }
    }

    fn assert_refused(found: &[String], file: &str, text: &str) {
        assert!(!found.is_empty(), "{file}: {text}");
        for problem in found {
            assert!(problem.contains(&format!("{file}:1: `")), "{problem}");
            assert!(problem.contains("must not use `"), "{problem}");
        }
    }

    #[test]
    fn a_planted_circle_is_refused() {
        let there = exchange("retry.rs", "use super::relay::Relay;");
        assert_eq!(there, Vec::<String>::new());
        let and_back = exchange("relay.rs", "use super::retry::Retry;");
        assert_eq!(
            and_back,
            [
                "crates/front/proxy/src/exchange/relay.rs:1: `relay` must not use `retry`: see the layers in \
              ARCHITECTURE.md"
            ]
        );
    }

    #[test]
    fn the_drawing_has_every_module_and_no_other() {
        assert_eq!(
            front("cache/fill.rs", "use crate::reload::f;"),
            ["ARCHITECTURE.md: the layers lack the module cache of crates/front/proxy/src/"]
        );
        let found = problems(&DRAWINGS[0], &["exchange"], "lib.rs", "");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(|it| it.contains("lacks: ")), "{found:?}");
    }

    #[test]
    fn what_only_tests_declare_is_no_module() {
        let text = "mod pool;\n#[cfg(test)]\nmod simulation;\n";
        let root = Source::parse("crates/front/upstream/src/lib.rs", text).unwrap();
        let found = test_modules(&[root]);
        assert_eq!(found, ["crates/front/upstream/src/simulation"]);
        assert!(is_within(
            "crates/front/upstream/src/simulation/a.rs",
            &found[0]
        ));
        assert!(!is_within(
            "crates/front/upstream/src/simulations.rs",
            &found[0]
        ));
    }
}
