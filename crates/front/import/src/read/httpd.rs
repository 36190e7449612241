//! The grammar of httpd: lines with a name and words, sections around them, continued lines.

use std::ops::Range;

/// A directive, or a section with the directives inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name, as written, without `<`.
    pub name: String,
    /// The words after the name, without quotes.
    pub words: Vec<String>,
    /// Everything after the name, as written, with continued lines joined.
    pub raw: String,
    /// The directives inside the section; `None` for a directive.
    pub inner: Option<Vec<Self>>,
    /// The line where it begins, the first being 1.
    pub line: usize,
    /// The range of the directive's bytes in the text; for a section, of its first line.
    pub span: Range<usize>,
}

/// Why a text cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The line of the error, the first being 1.
    pub line: usize,
    /// What is wrong in that line.
    pub message: String,
}

/// Parses a text into directives and sections.
///
/// # Errors
/// A section is not closed, or closed without being open, or sections are nested too deeply.
pub fn parse(text: &str) -> Result<Vec<Node>, SyntaxError> {
    let mut open: Vec<Node> = Vec::new();
    let mut top = Vec::new();
    for line in logical_lines(text) {
        let content = line.text.trim();
        let error = |message: String| SyntaxError {
            line: line.number,
            message,
        };
        if let Some(name) = content.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim();
            let Some(section) = open.pop() else {
                return Err(error(format!(
                    "`</{name}>` closes a section that is not open"
                )));
            };
            if !section.name.eq_ignore_ascii_case(name) {
                let message = format!("`</{name}>` closes `<{}>`", section.name);
                return Err(error(message));
            }
            add(&mut open, &mut top, section);
            continue;
        }
        let node = node(content, &line);
        if node.inner.is_none() {
            add(&mut open, &mut top, node);
        } else if open.len() < DEPTH_MAX {
            open.push(node);
        } else {
            let message = format!("sections lie deeper than {DEPTH_MAX} levels");
            return Err(error(message));
        }
    }
    match open.pop() {
        Some(section) => Err(SyntaxError {
            line: section.line,
            message: format!("`<{}>` is not closed", section.name),
        }),
        None => Ok(top),
    }
}

/// Adds a node to the innermost open section, or to the top level.
fn add(open: &mut [Node], top: &mut Vec<Node>, node: Node) {
    match open.last_mut().and_then(|section| section.inner.as_mut()) {
        Some(inner) => inner.push(node),
        None => top.push(node),
    }
}

struct Line {
    text: String,
    number: usize,
    span: Range<usize>,
}

/// Splits a text into lines: joins continued ones, leaves out comments and empty ones.
fn logical_lines(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut is_continued = false;
    let mut start = 0;
    for (index, raw) in text.split('\n').enumerate() {
        let line = raw.strip_suffix('\r').unwrap_or(raw);
        let before_backslash = line.strip_suffix('\\');
        let content = before_backslash.unwrap_or(line);
        let end = start + line.len();
        match lines.last_mut() {
            Some(last) if is_continued => {
                last.text.push_str(content);
                last.span.end = end;
            }
            _ => lines.push(Line {
                text: content.to_owned(),
                number: index + 1,
                span: start..end,
            }),
        }
        is_continued = before_backslash.is_some();
        start += raw.len() + 1;
    }
    // Only a whole line is a comment: one that is continued includes its further lines.
    lines.retain(|line| {
        let text = line.text.trim();
        !text.is_empty() && !text.starts_with('#')
    });
    lines
}

/// The directive of a line with this content; for `<Section …>`, an empty section.
fn node(content: &str, line: &Line) -> Node {
    let in_brackets = content.strip_prefix('<');
    let text = match in_brackets {
        Some(inner) => inner.trim_end().trim_end_matches('>').trim(),
        None => content.trim(),
    };
    let name_end = text.find(|sign: char| sign.is_ascii_whitespace());
    let (name, arguments) = text.split_at(name_end.unwrap_or(text.len()));
    let raw = arguments.trim();
    Node {
        name: name.to_owned(),
        words: words(name, raw),
        raw: raw.to_owned(),
        inner: in_brackets.map(|_| Vec::new()),
        line: line.number,
        span: line.span.clone(),
    }
}

/// Splits the arguments of a directive into words, as the server does; `name` is the directive's.
fn words(name: &str, text: &str) -> Vec<String> {
    let is_of_rewrite =
        name.eq_ignore_ascii_case("RewriteRule") || name.eq_ignore_ascii_case("RewriteCond");
    let mut words = Vec::new();
    let mut unread = text.trim_start();
    while !unread.is_empty() {
        let (word, behind) = take_word(unread, is_of_rewrite);
        words.push(word);
        unread = behind.trim_start();
    }
    words
}

/// Takes the first word of a text. Returns it without its quotes, and the remaining text. A backslash escapes a
/// backslash, and in a quoted word also the quote (`ap_getword_conf`). mod_rewrite reads its words in another way
/// (`is_of_rewrite`): in words without quotes all backslashes stay, and one before white space makes that a part of
/// the word.
fn take_word(text: &str, is_of_rewrite: bool) -> (String, &str) {
    let quote = text.chars().next().filter(|it| matches!(it, '"' | '\''));
    let keeps_backslashes = is_of_rewrite && quote.is_none();
    let can_be_escaped = |sign: char| {
        let is_blank = sign.is_ascii_whitespace();
        sign == '\\' || quote == Some(sign) || keeps_backslashes && is_blank
    };
    let is_end = |sign: char| match quote {
        Some(quote) => sign == quote,
        None => sign.is_ascii_whitespace(),
    };
    let mut word = String::new();
    let mut signs = text.char_indices().peekable();
    signs.next_if(|(_, first)| quote == Some(*first));
    while let Some((at, sign)) = signs.next() {
        // Quotes and white space are single bytes.
        if is_end(sign) {
            return (word, &text[at + 1..]);
        }
        let escaped = signs.next_if(|(_, next)| sign == '\\' && can_be_escaped(*next));
        if let Some((_, escaped)) = escaped {
            if keeps_backslashes {
                word.push('\\');
            }
            word.push(escaped);
        } else {
            word.push(sign);
        }
    }
    (word, "")
}

const DEPTH_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslashes_of_bare_words_are_read_as_the_server_does() {
        let words = |line: &str| parse(line).unwrap().remove(0).words;
        assert_eq!(words(r"Alias a\\.b c\ d"), [r"a\.b", r"c\", "d"]);
        assert_eq!(words(r"RewriteRule ^/a\\.b\ c$ -"), [r"^/a\\.b\ c$", "-"]);
        assert_eq!(words(r#"Alias 'it\'s' "a\.b"c"#), ["it's", r"a\.b", "c"]);
    }

    #[test]
    fn sections_words_and_continued_lines() {
        let text = "ServerName a \\\n  b\n# c\n<VirtualHost *:80>\n  ProxyPass \"/a b\" 'x' \"q\\\"r\"\n\
                    <Location /x>\n</Location>\n</VirtualHost>\n";
        let nodes = parse(text).unwrap();
        assert_eq!((nodes[0].words.len(), nodes[0].line), (2, 1));
        let inner = nodes[1].inner.as_ref().unwrap();
        assert_eq!(nodes[1].words, ["*:80"]);
        assert_eq!(inner[0].words, ["/a b", "x", "q\"r"]);
        assert_eq!((inner[1].name.as_str(), inner[1].line), ("Location", 6));
        assert!(text[inner[0].span.clone()].contains("ProxyPass"));
    }

    #[test]
    fn expressions_keep_their_backslashes() {
        let nodes = parse("RewriteRule ^/a\\.b$ \"^\\d+\\\\x\"\n").unwrap();
        assert_eq!(nodes[0].words, ["^/a\\.b$", "^\\d+\\x"]);
    }

    #[test]
    fn what_is_not_closed_is_said_with_its_line() {
        for (text, line) in [
            ("\n<Location />\n", 2),
            ("</Location>", 1),
            ("<A>\n</B>", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
