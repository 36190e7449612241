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
    loop {
        let error = |line: usize, message: &str| SyntaxError {
            line,
            message: message.to_owned(),
        };
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
    let unfinished = words.first().map(|it| it.line);
    match unfinished.or_else(|| open.last().map(|it| it.line)) {
        Some(line) => Err(SyntaxError {
            line,
            message: "is not closed at the end of the file".to_owned(),
        }),
        None => Ok(top),
    }
}

fn add(open: &mut [Node], top: &mut Vec<Node>, node: Node) {
    match open.last_mut().and_then(|it| it.inner.as_mut()) {
        Some(inner) => inner.push(node),
        None => top.push(node),
    }
}

fn node(words: &mut Vec<Word>, inner: Option<Vec<Node>>) -> Option<Node> {
    let mut all = std::mem::take(words).into_iter();
    let first = all.next()?;
    let mut span = first.span.clone();
    let rest: Vec<String> = all
        .map(|word| {
            span.end = word.span.end;
            word.text
        })
        .collect();
    Some(Node {
        name: first.text,
        words: rest,
        inner,
        line: first.line,
        span,
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

    fn quoted(&mut self, quote: char) -> Token {
        let (start, line) = (self.at, self.line);
        let mut text = String::new();
        let mut escaped = false;
        for (at, sign) in self.text[start + 1..].char_indices() {
            self.line += usize::from(sign == '\n');
            if escaped {
                push_escaped(sign, &mut text);
                escaped = false;
            } else if sign == '\\' {
                escaped = true;
            } else if sign == quote {
                self.at = start + 1 + at + 1;
                let span = start..self.at;
                return Token::Word(Word { text, line, span });
            } else {
                text.push(sign);
            }
        }
        self.at = self.text.len();
        Token::Unclosed(line)
    }

    fn bare(&mut self) -> Token {
        let (start, line) = (self.at, self.line);
        let mut text = String::new();
        let mut escaped = false;
        let mut variable = false;
        let mut end = self.text.len();
        for (at, sign) in self.text[start..].char_indices() {
            // `${name}` is one word.
            let in_variable = variable;
            variable = match sign {
                '{' if text.ends_with('$') => true,
                '}' => false,
                _ => variable,
            };
            let is_part = in_variable || variable;
            if escaped {
                self.line += usize::from(sign == '\n');
                push_escaped(sign, &mut text);
                escaped = false;
            } else if sign == '\\' {
                escaped = true;
            } else if !is_part && (sign.is_whitespace() || matches!(sign, ';' | '{' | '}')) {
                // In nginx, too, a `{` within a word, as in `[0-9]{2}`, begins no block.
                end = start + at;
                break;
            } else {
                self.line += usize::from(sign == '\n');
                text.push(sign);
            }
        }
        if escaped {
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
