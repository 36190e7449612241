//! Licence expressions, as far as crates use them: `AND`, `OR`, `WITH`, parentheses, and the old
//! `/` for `OR`. `AND` binds tighter than `OR` (SPDX specification, annex on licence expressions).

/// Whether `expression` can be satisfied by allowed licences; `None` if it cannot be read.
///
/// `X WITH exception` counts as allowed when `X` is: an exception only adds permissions.
pub(super) fn allowed(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = Words {
        words: spaced.split_whitespace().collect(),
        next: 0,
        is_allowed,
    };
    let value = words.any()?;
    words.peek().is_none().then_some(value)
}

struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
    is_allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Words<'a> {
    fn any(&mut self) -> Option<bool> {
        let mut value = self.all()?;
        while self.take("OR") {
            value |= self.all()?;
        }
        Some(value)
    }

    fn all(&mut self) -> Option<bool> {
        let mut value = self.one()?;
        while self.take("AND") {
            value &= self.one()?;
        }
        Some(value)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.any()?;
            return self.take(")").then_some(value);
        }
        let license = self.word()?;
        if self.take("WITH") {
            self.word()?;
        }
        Some((self.is_allowed)(license))
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.next += 1;
        (!["AND", "OR", "WITH", "(", ")"].contains(&word)).then_some(word)
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.next += usize::from(found);
        found
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_expressions_crates_use() {
        let cases = [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("GPL-3.0/MIT", Some(true)),
            ("GPL-3.0 AND MIT", Some(false)),
            ("(MIT OR GPL-3.0) AND Zlib", Some(true)),
            ("(MIT OR Zlib) AND GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT AND Zlib", Some(true)),
            ("MIT WITH LLVM-exception OR GPL-3.0", Some(true)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT Zlib", None),
        ];
        for (expression, expected) in cases {
            let found = allowed(expression, &|id| ["MIT", "Zlib"].contains(&id));
            assert_eq!(found, expected, "{expression}");
        }
    }
}
