//! Only `exchange/source.rs` may distinguish the variants of `Source`, and it names each of them.
//!
//! So code for a new variant does not compile until that file handles it everywhere. The compiler checks that a
//! `match` is complete. This check finds what the compiler accepts: a pattern in another file, and an arm `_` in that
//! file.

use super::Problem;
use super::source::{Source, Token};

/// Finds arms `_` in the file itself, and patterns of `Source` in the other files of its crate. Tests may have
/// both.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let (lines, message): (Vec<usize>, &str) = if source.path == FILE {
        (
            source.find(&["_", "=", ">"]).collect(),
            "names each source: an arm for the rest would take one that is added later",
        )
    } else if source.path.starts_with(CRATE) && !source.path.starts_with(BESIDE) {
        (
            patterns(&source.tokens).collect(),
            "must not look at which `Source` it is: ask by a function of exchange/source.rs",
        )
    } else {
        return Vec::new();
    };
    let lines = lines.into_iter().filter(|line| !source.is_test_line(*line));
    lines
        .map(|line| Problem::new(format_args!("{}:{line}", source.path), message))
        .collect()
}

/// The lines in which a pattern names a variant.
fn patterns(tokens: &[Token]) -> impl Iterator<Item = usize> {
    let named = (0..tokens.len()).filter(|at| is_named(tokens, *at));
    named
        .filter(|at| is_pattern(tokens, *at))
        .map(|at| tokens[at].line)
}

/// Whether `Source::Variant` stands at `at`.
fn is_named(tokens: &[Token], at: usize) -> bool {
    let is_variant = text(tokens, at + 3).starts_with(char::is_uppercase);
    text(tokens, at) == "Source"
        && text(tokens, at + 1) == ":"
        && text(tokens, at + 2) == ":"
        && is_variant
}

/// Whether the variant at `at` is in a pattern, and not an expression that makes a value.
fn is_pattern(tokens: &[Token], at: usize) -> bool {
    let mut after = at + 4;
    if ["(", "{"].contains(&text(tokens, after)) {
        after = closing(tokens, after) + 1;
    }
    match (text(tokens, after), text(tokens, after + 1)) {
        // `=` of `let`, `=>` of an arm, but not `==`.
        ("=", next) => next != "=",
        ("|" | "if", _) => true,
        _ => is_in_matches(tokens, at),
    }
}

/// The index of the bracket that closes the bracket at `open`.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// Whether the innermost brackets around `at` are those of `matches!`, and `at` is behind the first comma.
fn is_in_matches(tokens: &[Token], at: usize) -> bool {
    // Goes back to the open bracket, past brackets that are closed before `at`.
    let (mut depth, mut is_behind_comma) = (0_usize, false);
    for index in (0..at).rev() {
        match text(tokens, index) {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" if depth > 0 => depth -= 1,
            "(" => {
                // `!` is between the name and the bracket.
                let is_matches = index >= 2 && text(tokens, index - 2) == "matches";
                return is_behind_comma && is_matches;
            }
            "[" | "{" => return false,
            "," if depth == 0 => is_behind_comma = true,
            _ => {}
        }
    }
    false
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

const CRATE: &str = "crates/front/proxy/src/";
const FILE: &str = "crates/front/proxy/src/exchange/source.rs";
/// The folder of the modules that may match on the variants, besides the file itself.
const BESIDE: &str = "crates/front/proxy/src/exchange/source/";

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        let source = Source::parse(path, text).unwrap();
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pattern_elsewhere_is_refused() {
        for text in [
            "fn f() { if let Source::Backend(leased) = &source {} }",
            "fn f() { let Source::Backend(leased) = source else { return }; }",
            "fn f() { matches!(self.source, Source::Answer(_)) }",
            "fn f() { g(matches!(self.source, Source::File(_) | Source::Answer(_))) }",
            "fn f() { match source { Source::Backend(_) => 1, other => 2 } }",
            "fn f() { match source { crate::source::Source::File(it) if it.ok() => 1, _ => 2 } }",
        ] {
            let found = problems("crates/front/proxy/src/exchange/relay.rs", text);
            assert!(!found.is_empty(), "{text}");
            for problem in found {
                let start = "crates/front/proxy/src/exchange/relay.rs:1: must not look at which";
                assert!(problem.starts_with(start), "{problem}");
            }
        }
    }

    #[test]
    fn a_source_may_be_made_and_compared_anywhere() {
        for text in [
            "fn f() { let source = Source::Backend(leased); }",
            "fn f() { serve_own(down, Source::Answer(answer)).await; }",
            "fn f() { Some(Source::File(Box::new(file))) }",
            "fn f() { if source == Source::File(file) {} }",
            "use crate::exchange::source::{Source, SourceError};",
            "fn f() { matches!(AttributeSource::Header(name), AttributeSource::Header(_)) }",
            "fn f() { match e { SourceError::File(_) => 1 } }",
        ] {
            let found = problems("crates/front/proxy/src/exchange/relay.rs", text);
            assert_eq!(found, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn an_arm_for_the_rest_is_refused_in_its_file() {
        let arms = "fn f(&self) { match self { Self::File(_) => true, _ => false } }";
        assert_eq!(problems(FILE, arms).len(), 1);
        let arms = "fn f(&self) { match self { Self::File(_) | Self::Answer(_) => true } }";
        assert_eq!(problems(FILE, arms), Vec::<String>::new());
        let beside = format!("{BESIDE}tests.rs");
        let one = "fn f() { if let Source::Scripted(it) = source {} }";
        assert_eq!(problems(&beside, one), Vec::<String>::new());
    }
}
