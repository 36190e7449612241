//! The order of a file's items: what others call first, a module's private constants last.
//!
//! Clippy's `arbitrary_source_item_ordering` does not fit: it orders by the kind of an item and not by its
//! visibility, and public constants may stand next to what they belong to.

use super::Problem;
use super::source::{Source, Token};

/// Finds private constants that stand before the last type or function.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let items = items(&source.tokens);
    let last_other = items.iter().rposition(|item| item.kind == Kind::Other);
    let mut problems = Vec::new();
    for item in &items[..last_other.unwrap_or(0)] {
        if item.kind == Kind::PrivateConstant {
            let place = format!("{}:{}", source.path, item.line);
            let message = "private constants come after types and functions";
            problems.push(Problem::new(place, message));
        }
    }
    problems
}

/// A type, a function or a constant of the file itself, not of a module or function in it.
#[derive(Clone, Copy, Debug)]
struct Item {
    kind: Kind,
    line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PrivateConstant,
    Other,
}

/// The items of a file, without those inside of others. Statements of constants are passed over as a whole.
fn items(tokens: &[Token]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            "const" if is_private_constant(tokens, index) => {
                items.push(Item {
                    kind: Kind::PrivateConstant,
                    line: token.line,
                });
                index = end_of_statement(tokens, index);
            }
            "fn" | "struct" | "enum" | "union" | "trait" | "impl" => items.push(Item {
                kind: Kind::Other,
                line: token.line,
            }),
            _ => {}
        }
        index += 1;
    }
    items
}

/// Whether a private constant begins here. `const fn` is none, nor is `const _`, which asserts something about
/// the code above.
fn is_private_constant(tokens: &[Token], at: usize) -> bool {
    let next = tokens.get(at + 1).map(|token| token.text.as_str());
    let before = at.checked_sub(1).map(|before| tokens[before].text.as_str());
    !matches!(next, Some("fn" | "unsafe" | "async" | "extern" | "_"))
        && !matches!(before, Some("pub" | ")"))
}

/// The semicolon that ends what begins at `at`.
fn end_of_statement(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => return index,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let problems = check(&Source::parse("a.rs", text).unwrap());
        problems.into_iter().map(|problem| problem.place).collect()
    }

    #[test]
    fn private_constants_come_last() {
        assert_eq!(lines("const A: u8 = 1;\nfn a() {}\n"), ["a.rs:1"]);
        assert_eq!(
            lines("fn a() {}\nconst A: [u8; 1] = { [1; 1] };\nstruct B;\n"),
            ["a.rs:2"]
        );
        assert_eq!(lines("struct B;\nfn a() {}\nconst A: fn() = a;\n"), [""; 0]);
    }

    #[test]
    fn other_constants_stand_where_they_like() {
        for text in [
            "pub const A: u8 = 1;\nfn a() {}\n",
            "pub(crate) const A: u8 = 1;\nfn a() {}\n",
            "const _: () = assert!(true);\nfn a() {}\n",
            "const fn a() {}\nfn b() { const C: u8 = 1; }\n",
            "impl A { const B: u8 = 1; }\nfn a() {}\n",
            "const A: u8 = 1;\nmod tests { fn a() {} }\n",
        ] {
            assert_eq!(lines(text), [""; 0], "{text}");
        }
    }
}
