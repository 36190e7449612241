//! One dialect of imports: a line per module, the standard library first, our own crate last.
//!
//! It is what rustfmt makes with `imports_granularity = "Module"` and `group_imports =
//! "StdExternalCrate"`. Both options need a nightly toolchain, so the stable one checks the result.

use super::Problem;
use super::source::{Source, Token};

/// Finds imports of several modules at once, and adjacent imports in another order.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut previous: Option<Import> = None;
    for import in imports(&source.tokens) {
        let mut report = |message: &str| {
            let place = format!("{}:{}", source.path, import.line);
            problems.push(Problem::new(place, message));
        };
        if import.nested {
            report("an import names things of one module: a line for each module");
        }
        // Code between two imports begins a new list.
        let adjacent = previous.filter(|previous| previous.end == import.start);
        if adjacent.is_some_and(|previous| previous.group > import.group) {
            report("imports come in this order: std, other crates, our own modules");
        }
        previous = Some(import);
    }
    problems
}

/// The position of an import in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Std,
    External,
    Own,
}

#[derive(Clone, Copy, Debug)]
struct Import {
    line: usize,
    /// The tokens of the import, including its visibility.
    start: usize,
    end: usize,
    group: Group,
    /// Whether braces in the import contain a path of more than one segment.
    nested: bool,
}

/// All imports of a file, in their order.
fn imports(tokens: &[Token]) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        // `use` is also the sign of captured lifetimes, `+ use<'a>`.
        let is_import = text(tokens, index) == "use" && text(tokens, index + 1) != "<";
        if !is_import {
            index += 1;
            continue;
        }
        let after = &tokens[index + 1..];
        let semicolon = after.iter().position(|token| token.text == ";");
        let path = &after[..semicolon.unwrap_or(after.len())];
        // The first token after `use`, the path and the semicolon.
        let end = index + path.len() + 2;
        imports.push(Import {
            line: tokens[index].line,
            start: start(tokens, index),
            end,
            group: group(path),
            nested: is_nested(path),
        });
        index = end;
    }
    imports
}

fn text(tokens: &[Token], at: usize) -> &str {
    tokens.get(at).map_or("", |token| &token.text)
}

/// The index of the first token of the item: a `pub` or `pub(…)` before `use` is part of the item.
fn start(tokens: &[Token], at: usize) -> usize {
    if at >= 1 && text(tokens, at - 1) == "pub" {
        return at - 1;
    }
    let restricted = at >= 4 && text(tokens, at - 1) == ")" && text(tokens, at - 4) == "pub";
    if restricted { at - 4 } else { at }
}

fn group(path: &[Token]) -> Group {
    let first = path.iter().find(|token| token.text != ":");
    match first.map_or("", |token| &token.text) {
        "std" | "core" | "alloc" => Group::Std,
        "crate" | "self" | "super" => Group::Own,
        _ => Group::External,
    }
}

fn is_nested(path: &[Token]) -> bool {
    let inside = path.iter().skip_while(|token| token.text != "{");
    inside.filter(|token| token.text == ":").count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let source = Source::parse("crates/a/src/b.rs", text).unwrap();
        let problems = check(&source).into_iter();
        problems.map(|problem| problem.place).collect()
    }

    #[test]
    fn imports_in_order_pass() {
        let text = "use std::{fmt, io};\n\nuse bytes::Bytes;\n\npub(crate) use self::a::{B, C};\n\
                    use crate::d;\n\nfn f() -> impl Fn() + use<> { use std::mem; }\n";
        assert_eq!(lines(text), Vec::<String>::new());
    }

    #[test]
    fn nested_braces_are_found() {
        assert_eq!(
            lines("use std::{fmt, io::Read};\n"),
            ["crates/a/src/b.rs:1"]
        );
        assert_eq!(
            lines("use a::b;\npub use crate::{c::{D}};\n"),
            ["crates/a/src/b.rs:2"]
        );
    }

    #[test]
    fn groups_out_of_order_are_found() {
        assert_eq!(
            lines("use crate::a;\nuse std::fmt;\n"),
            ["crates/a/src/b.rs:2"]
        );
        assert_eq!(
            lines("use bytes::Buf;\nmod a;\nuse std::fmt;\n"),
            Vec::<String>::new()
        );
        assert_eq!(
            lines("pub use self::a;\npub(super) use bytes::Buf;\n"),
            ["crates/a/src/b.rs:2"]
        );
    }
}
