//! The grammar of nginx: directives of several words, ended by `;` or by a block in
//! braces.

use std::ops::Range;

use super::httpd::SyntaxError;

/// A directive, with the directives in its block if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The directive's name.
    pub name: String,
    /// The words after the name, without quotes.
    pub words: Vec<String>,
    /// The directives in the block; `None` if the directive ends with a `;`.
    pub inner: Option<Vec<Self>>,
    /// The line where it begins, the first being 1.
    pub line: usize,
    /// The range of bytes in the text from its first word to its last.
    pub span: Range<usize>,
}

/// Parses a text into directives.
///
/// # Errors
/// A block or a directive is not closed, a brace closes nothing, or blocks are nested too
/// deeply.
pub fn parse(text: &str) -> Result<Vec<Node>, SyntaxError> {
    let mut tokens = Tokens {
        text,
        at: 0,
        line: 1,
    };
    let mut open: Vec<Node> = Vec::new();
    let mut top = Vec::new();
    let mut words: Vec<Word> = Vec::new();
    let error = |line: usize, message: &str| SyntaxError {
        line,
        message: message.to_owned(),
    };
    loop {
        match tokens.next() {
            Token::Word(word) => words.push(word),
            Token::Ends => {
                if let Some(node) = node(&mut words, None) {
                    add(&mut open, &mut top, node);
                }
            }
            Token::Opens => {
                if open.len() >= DEPTH_MAX {
                    return Err(error(tokens.line, "blocks lie deeper than 20 levels"));
                }
                match node(&mut words, Some(Vec::new())) {
                    Some(node) => open.push(node),
                    None => return Err(error(tokens.line, "a `{` without a name before it")),
                }
            }
            Token::Closes => {
                if let Some(word) = words.first() {
                    return Err(error(word.line, "a `;` is missing at its end"));
                }
                let Some(block) = open.pop() else {
                    return Err(error(tokens.line, "a `}` closes nothing"));
                };
                add(&mut open, &mut top, block);
            }
            Token::Unclosed(line) => return Err(error(line, "a quote is not closed")),
            Token::End => break,
        }
    }
    let open_directive = words.first().map(|word| word.line);
    let open_block = open.last().map(|block| block.line);
    match open_directive.or(open_block) {
        Some(line) => Err(error(line, "is not closed at the end of the file")),
        None => Ok(top),
    }
}

/// Adds a node to the innermost open block, or to the top level.
fn add(open: &mut [Node], top: &mut Vec<Node>, node: Node) {
    match open.last_mut().and_then(|block| block.inner.as_mut()) {
        Some(inner) => inner.push(node),
        None => top.push(node),
    }
}

/// Takes the words read so far as a directive; `None` if there are none.
fn node(words: &mut Vec<Word>, inner: Option<Vec<Node>>) -> Option<Node> {
    let end = words.last()?.span.end;
    let mut taken = words.drain(..);
    let name = taken.next()?;
    Some(Node {
        line: name.line,
        span: name.span.start..end,
        name: name.text,
        words: taken.map(|word| word.text).collect(),
        inner,
    })
}

struct Word {
    text: String,
    line: usize,
    span: Range<usize>,
}

enum Token {
    Word(Word),
    Ends,
    Opens,
    Closes,
    /// A quote that is not closed; the number is the line where it begins.
    Unclosed(usize),
    End,
}

struct Tokens<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl Tokens<'_> {
    fn next(&mut self) -> Token {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return Token::End;
        };
        let single = match first {
            ';' => Token::Ends,
            '{' => Token::Opens,
            '}' => Token::Closes,
            '"' | '\'' => return self.quoted(first),
            _ => return self.bare(),
        };
        self.at += 1;
        single
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            match rest.chars().next() {
                Some('#') => {
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                Some(sign) if sign.is_whitespace() => {
                    self.line += usize::from(sign == '\n');
                    self.at += sign.len_utf8();
                }
                _ => return,
            }
        }
    }

    /// Reads a word in quotes.
    fn quoted(&mut self, quote: char) -> Token {
        let (start, line) = (self.at, self.line);
        let text_start = start + quote.len_utf8();
        let mut text = String::new();
        let mut is_escaped = false;
        for (at, sign) in self.text[text_start..].char_indices() {
            self.line += usize::from(sign == '\n');
            if is_escaped {
                push_escaped(sign, &mut text);
                is_escaped = false;
            } else if sign == '\\' {
                is_escaped = true;
            } else if sign == quote {
                self.at = text_start + at + quote.len_utf8();
                let span = start..self.at;
                return Token::Word(Word { text, line, span });
            } else {
                text.push(sign);
            }
        }
        self.at = self.text.len();
        Token::Unclosed(line)
    }

    /// Reads a word without quotes, up to a blank, `;`, or a brace.
    fn bare(&mut self) -> Token {
        let (start, line) = (self.at, self.line);
        let mut text = String::new();
        let mut is_escaped = false;
        let mut in_braces = false;
        let mut end = self.text.len();
        for (at, sign) in self.text[start..].char_indices() {
            // `${name}` is one word, with both of its braces.
            let was_in_braces = in_braces;
            in_braces = match sign {
                '{' if text.ends_with('$') => true,
                '}' => false,
                _ => in_braces,
            };
            let is_of_variable = was_in_braces || in_braces;
            let is_end = sign.is_whitespace() || matches!(sign, ';' | '{' | '}');
            if is_escaped {
                self.line += usize::from(sign == '\n');
                push_escaped(sign, &mut text);
                is_escaped = false;
            } else if sign == '\\' {
                is_escaped = true;
            } else if is_end && !is_of_variable {
                // As in nginx, a `{` begins a block also behind a word: `[0-9]{2}` needs quotes.
                end = start + at;
                break;
            } else {
                self.line += usize::from(sign == '\n');
                text.push(sign);
            }
        }
        if is_escaped {
            text.push('\\');
        }
        self.at = end;
        let span = start..end;
        Token::Word(Word { text, line, span })
    }
}

/// Appends the meaning of a backslash and this sign after it (`ngx_conf_read_token`).
fn push_escaped(sign: char, text: &mut String) {
    match sign {
        '"' | '\'' | '\\' => text.push(sign),
        't' => text.push('\t'),
        'r' => text.push('\r'),
        'n' => text.push('\n'),
        _ => text.extend(['\\', sign]),
    }
}

const DEPTH_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_words_and_quotes() {
        let text = "http {\n  # c\n  server { listen 80; server_name a \"b c\"; }\n\
                    \n  location ~ \\.jsp$ { proxy_pass http://${x}/y; }\n}\n";
        let nodes = parse(text).unwrap();
        let inner = nodes[0].inner.as_ref().unwrap();
        let server = inner[0].inner.as_ref().unwrap();
        assert_eq!(server[1].words, ["a", "b c"]);
        assert_eq!((server[1].line, inner[1].line), (3, 5));
        assert_eq!(inner[1].words, ["~", "\\.jsp$"]);
        let escaped = parse(r#"return 200 a\n\t\"\\\d "b\n\'\x";"#).unwrap();
        assert_eq!(
            escaped[0].words,
            ["200", "a\n\t\"\\\\d", "b\n'\\x"],
            "as nginx reads them"
        );
        let pass = &inner[1].inner.as_ref().unwrap()[0];
        assert_eq!(pass.words, ["http://${x}/y"]);
        assert_eq!(&text[pass.span.clone()], "proxy_pass http://${x}/y");
    }

    #[test]
    fn what_is_not_closed_is_said_with_its_line() {
        for (text, line) in [
            ("a;\nb {\n", 2),
            ("}", 1),
            ("\na b", 2),
            ("a \"b", 1),
            ("x {\n listen 80\n}", 2),
            ("{", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
