//! A Rust source file as tokens, with its test code marked.
//!
//! Checks look at tokens, not at text, so that words in comments and strings are ignored.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Context;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A source file, with its tokens.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(super) tokens: Vec<Token>,
    /// The lines of items under `#[cfg(test)]`.
    test_lines: Vec<RangeInclusive<usize>>,
}

/// An identifier, punctuation character or bracket; literals are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
}

impl Source {
    /// Reads the tokens of `text`.
    pub(crate) fn parse(path: &str, text: &str) -> anyhow::Result<Self> {
        let stream: TokenStream = text
            .parse()
            .map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let test_lines = test_items(&tokens);
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens,
            test_lines,
        })
    }

    /// The folder of the crate: below `dev/`, below `crates/`, or below one of its groups.
    pub(crate) fn folder(&self) -> &str {
        let mut parts = self.path.split('/');
        let (place, first) = (parts.next(), parts.next().unwrap_or_default());
        let second = parts.next().unwrap_or_default();
        let is_group = !["src", "tests", "examples", "benches", "build.rs"].contains(&second);
        match place {
            Some("crates") if is_group => second,
            _ => first,
        }
    }

    /// Whether the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        parts
            .iter()
            .any(|part| ["tests", "tests.rs", "benches"].contains(part))
    }

    /// Whether `line` is test code.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test() || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    /// The lines with a sequence of tokens whose texts are `pattern`.
    pub(super) fn find<'a>(&'a self, pattern: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        self.tokens
            .windows(pattern.len())
            .filter(move |window| {
                window
                    .iter()
                    .zip(pattern)
                    .all(|(token, text)| token.text == *text)
            })
            .map(|window| window[0].line)
    }
}

/// Loads all `.rs` files below `crates/` and `dev/`, in the order of their paths.
pub(super) fn load(root: &Path) -> anyhow::Result<Vec<Source>> {
    let mut paths = Vec::new();
    for folder in ["crates", "dev"] {
        let folder = root.join(folder);
        if folder.exists() {
            walk(&folder, &mut paths)?;
        }
    }
    paths.sort();
    let sources = paths.iter().map(|path| {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let relative = path.strip_prefix(root).unwrap_or(path);
        Source::parse(&relative.to_string_lossy(), &text)
    });
    sources.collect()
}

/// Adds the `.rs` files below a folder, except those of folders named `target`.
fn walk(folder: &Path, paths: &mut Vec<std::path::PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                walk(&path, paths)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

/// Adds the tokens of a stream in their order, with brackets as tokens. Literals are left out.
fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let mut push = |text: String, line| tokens.push(Token { text, line });
        match tree {
            TokenTree::Ident(ident) => push(ident.to_string(), line),
            TokenTree::Punct(punct) => push(punct.as_char().to_string(), line),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.to_owned(), line);
                flatten(group.stream(), tokens);
                let text = close.to_owned();
                let line = group.span_close().end().line;
                tokens.push(Token { text, line });
            }
        }
    }
}

/// The lines of every item behind `#[cfg(test)]`: up to the `;` or the closing brace that ends it.
fn test_items(tokens: &[Token]) -> Vec<RangeInclusive<usize>> {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut items = Vec::new();
    for start in 0..tokens.len().saturating_sub(ATTRIBUTE.len()) {
        let mut pairs = tokens[start..].iter().zip(ATTRIBUTE);
        if !pairs.all(|(token, text)| token.text == text) {
            continue;
        }
        let mut depth = 0_usize;
        for token in &tokens[start + ATTRIBUTE.len()..] {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && ["}", ";"].contains(&token.text.as_str()) {
                items.push(tokens[start].line..=token.line);
                break;
            }
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_leave_out_comments_and_strings() {
        let source = Source::parse("a.rs", "// unsafe\nfn f() { g(\"unsafe\"); }").unwrap();
        assert_eq!(source.find(&["unsafe"]).count(), 0);
        assert_eq!(source.find(&["g", "("]).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn marks_the_items_under_cfg_test() {
        let text = "fn a() {}\n#[cfg(test)]\nimpl A {\n fn b() {}\n}\nfn c() {}\n\
                    #[cfg(test)]\nmod tests;\nfn d() {}\n";
        let source = Source::parse("src/a.rs", text).unwrap();
        let marked: Vec<usize> = (1..=9).filter(|line| source.is_test_line(*line)).collect();
        assert_eq!(marked, [2, 3, 4, 5, 7, 8]);
    }

    #[test]
    fn knows_test_files_by_their_place() {
        for (path, expected) in [
            ("crates/wire/ajp/src/wire.rs", false),
            ("crates/wire/ajp/src/wire/tests.rs", true),
            ("crates/wire/ajp/tests/it/main.rs", true),
            ("dev/testkit/src/lib.rs", false),
        ] {
            let source = Source::parse(path, "").unwrap();
            assert_eq!(source.is_test(), expected, "{path}");
        }
    }

    #[test]
    fn knows_the_crate_by_its_folder() {
        for (path, expected) in [
            ("crates/wire/ajp/src/wire.rs", "ajp"),
            ("crates/front/proxy/tests/it/main.rs", "proxy"),
            ("crates/cli/build.rs", "cli"),
            ("crates/connector/examples/axum.rs", "connector"),
            ("dev/fuzz/bodies/ajp/entropy.rs", "fuzz"),
        ] {
            let source = Source::parse(path, "").unwrap();
            assert_eq!(source.folder(), expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_rust_is_an_error() {
        assert!(Source::parse("a.rs", "fn (").is_err());
    }
}
