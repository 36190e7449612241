//! Signs that look like others: quotes of word processors, spaces that do not break, long dashes.
//!
//! They come from pages and mails that a file was copied from. A parser says of them that something else
//! is missing, so they are looked for where a text is at fault.

use std::fmt;

/// A sign that stands for a plainer one, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OddSign {
    /// The offset of its first byte.
    pub(crate) at: usize,
    pub(crate) sign: char,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    DoubleQuote,
    SingleQuote,
    Space,
    /// One without a width.
    Nothing,
    Dash,
}

impl OddSign {
    /// The first in a line of TOML, outside quotes and comments.
    pub(crate) fn in_line(line: &str) -> Option<Self> {
        let mut quote = None;
        let mut escaped = false;
        for (at, sign) in line.char_indices() {
            match quote {
                Some(open) => {
                    if sign == open && !escaped {
                        quote = None;
                    }
                    escaped = open == '"' && sign == '\\' && !escaped;
                }
                None if sign == '#' => return None,
                None if sign == '"' || sign == '\'' => quote = Some(sign),
                None => {
                    if let Some(kind) = Kind::of(sign) {
                        return Some(Self { at, sign, kind });
                    }
                }
            }
        }
        None
    }

    /// A line of the same length with plain signs in their places, where that keeps its meaning; else blanks.
    pub(crate) fn plain_line(line: &str) -> String {
        let mut plain = line.to_owned();
        while let Some(odd) = Self::in_line(&plain) {
            let blanks = " ".repeat(odd.sign.len_utf8() - 1);
            let instead = match odd.kind {
                // Blanks outside the quotes.
                Kind::DoubleQuote | Kind::SingleQuote => format!("{blanks}\""),
                Kind::Space | Kind::Nothing => format!("{blanks} "),
                Kind::Dash => return " ".repeat(line.len()),
            };
            let after = odd.at + odd.sign.len_utf8();
            plain.replace_range(odd.at..after, &instead);
            if matches!(odd.kind, Kind::DoubleQuote | Kind::SingleQuote) {
                // What closes them stands inside quotes now.
                let Some(at) = plain[after..].find(|it| Kind::of(it) == Some(odd.kind)) else {
                    return " ".repeat(line.len());
                };
                let closing = plain[after + at..].chars().next().map_or(1, char::len_utf8);
                let instead = format!("\"{}", " ".repeat(closing - 1));
                plain.replace_range(after + at..after + at + closing, &instead);
            }
        }
        plain
    }

    /// The first in a value that was refused.
    pub(crate) fn in_value(value: &str) -> Option<Self> {
        let mut signs = value.char_indices();
        signs.find_map(|(at, sign)| {
            Some(Self {
                at,
                sign,
                kind: Kind::of(sign)?,
            })
        })
    }

    /// What to do about it.
    pub(crate) fn hint(self) -> &'static str {
        match self.kind {
            Kind::DoubleQuote => "write a straight quote, \"",
            Kind::SingleQuote => "write a straight quote, ' or \"",
            Kind::Space => "write a plain space",
            Kind::Nothing => "remove it",
            Kind::Dash => "write a hyphen, -",
        }
    }
}

impl OddSign {
    /// The same, of a sign inside a text's own quotes.
    pub(crate) fn hint_in_value(self) -> &'static str {
        match self.kind {
            Kind::DoubleQuote | Kind::SingleQuote => "remove it",
            Kind::Space => "remove it, or write a plain space",
            Kind::Nothing | Kind::Dash => self.hint(),
        }
    }
}

/// With its number: two of them may look alike, and some do not show at all.
impl fmt::Display for OddSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, number) = (self.sign, u32::from(self.sign));
        match self.kind {
            Kind::DoubleQuote | Kind::SingleQuote => {
                write!(f, "a curly quote, {sign} (U+{number:04X})")
            }
            Kind::Space => write!(f, "a space that does not break (U+{number:04X})"),
            Kind::Nothing => write!(f, "a sign without a width (U+{number:04X})"),
            Kind::Dash => write!(f, "a long dash, {sign} (U+{number:04X})"),
        }
    }
}

impl Kind {
    fn of(sign: char) -> Option<Self> {
        Some(match sign {
            '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '\u{2033}' | '\u{ff02}' => {
                Self::DoubleQuote
            }
            '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{b4}' | '\u{ff07}' => Self::SingleQuote,
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
                Self::Space
            }
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => Self::Nothing,
            '\u{2010}'..='\u{2015}' | '\u{2212}' => Self::Dash,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_mended_in_its_length() {
        for (line, expected) in [
            (
                "url = \u{201c}x\u{201d} # \u{201c}",
                "url =   \"x\"   # \u{201c}",
            ),
            (
                "a = [\u{201c}x\u{201d}, \u{201e}y\u{201c}]",
                "a = [  \"x\"  ,   \"y\"  ]",
            ),
            ("url =\u{a0}\"x\"", "url =  \"x\""),
            ("a\u{2013}b = 1", "         "),
            ("url = \u{201c}x", "          "),
        ] {
            let plain = OddSign::plain_line(line);
            assert_eq!(
                (plain.as_str(), plain.len()),
                (expected, line.len()),
                "{line}"
            );
        }
    }

    #[test]
    fn odd_signs_are_found_outside_quotes_and_comments() {
        for (line, expected) in [
            ("url = \u{201c}x\u{201d}", Some((6, '\u{201c}'))),
            ("url =\u{a0}\"x\"", Some((5, '\u{a0}'))),
            ("a\u{2013}b = 1", Some((1, '\u{2013}'))),
            ("\u{feff}[server]", Some((0, '\u{feff}'))),
            ("via = \"\u{201c}\" # \u{a0}", None),
            ("via = \"a\\\"\u{a0}\"", None),
            ("via = 'a\\'\u{a0}", Some((10, '\u{a0}'))),
            ("via = \"plain\"", None),
        ] {
            let found = OddSign::in_line(line).map(|it| (it.at, it.sign));
            assert_eq!(found, expected, "{line:?}");
        }
    }
}
