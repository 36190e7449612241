//! Reduces a page or a log to its words: removes HTML, terminal colours, and other ends of lines.

use html5gum::{Token, Tokenizer};

/// `text` as lines of words: without tags and escape sequences, and each line ends with `
/// `.
pub(super) fn plain(text: &str) -> String {
    let text = if is_html(text) {
        of_html(text)
    } else {
        text.to_owned()
    };
    let text = anstream::adapter::strip_str(&text).to_string();
    text.replace("\r\n", "\n").replace(['\r', '\u{a0}'], " ")
}

/// Whether a text is HTML: it closes an element that pages have. ab's `<$Revision$>` is not one.
fn is_html(text: &str) -> bool {
    let mut closed = text.split("</").skip(1);
    closed.any(|rest| {
        let length = rest.find(|letter: char| !letter.is_ascii_alphanumeric());
        let name = rest[..length.unwrap_or(rest.len())].to_ascii_lowercase();
        INLINE.contains(&name.as_str()) || BREAKING.contains(&name.as_str())
    })
}

/// The text of an HTML page, without tags, scripts and styles; tags that begin a new line become line ends.
fn of_html(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The script or style that is open, whose text is left out.
    let mut hidden: Option<Vec<u8>> = None;
    for Ok(token) in Tokenizer::new(text) {
        match token {
            Token::StartTag(tag) => {
                let name = tag.name.to_vec();
                plain.push_str(gap(&name));
                if hidden.is_none() && matches!(&name[..], b"script" | b"style") {
                    hidden = Some(name);
                }
            }
            Token::EndTag(tag) => {
                let name = tag.name.to_vec();
                plain.push_str(gap(&name));
                if hidden.as_ref() == Some(&name) {
                    hidden = None;
                }
            }
            Token::String(words) if hidden.is_none() => {
                plain.push_str(&String::from_utf8_lossy(&words));
            }
            _ => {}
        }
    }
    plain
}

/// The text that replaces a tag between words: a space, a line end, or nothing.
fn gap(name: &[u8]) -> &'static str {
    match std::str::from_utf8(name) {
        Ok("td" | "th") => " ",
        Ok(name) if BREAKING.contains(&name) => "\n",
        _ => "",
    }
}

/// The elements that begin a new line, and those that contain lines.
const BREAKING: [&str; 25] = [
    "p",
    "br",
    "div",
    "pre",
    "tr",
    "li",
    "ol",
    "ul",
    "dl",
    "dd",
    "dt",
    "table",
    "tbody",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "section",
    "article",
    "blockquote",
    "body",
    "html",
    "title",
];
const INLINE: [&str; 9] = ["a", "b", "i", "em", "strong", "code", "span", "font", "td"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_entities_and_scripts() {
        let page = "<html><head><style>p { }</style><script>if (1 < 2) {}</script></head><body>\
                    <p>ab &lt;1.0&gt;&nbsp;of</p><pre>one\ntwo</pre><table><tr><td>a:</td><td>5</td></tr>\
                    <tr><td>b:</td><td><span class=\"n\">6</span></td></tr></table>end<br>of</body></html>";
        let words = plain(page);
        let lines: Vec<String> = words
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .filter(|line| !line.is_empty())
            .collect();
        assert_eq!(
            lines,
            ["ab <1.0> of", "one", "two", "a: 5", "b: 6", "end", "of"]
        );
    }

    #[test]
    fn what_is_no_page_stays_as_it_is() {
        let text = "Version 2.3 <$Revision: 655654 $>\n  50%    4 & 5\n";
        assert_eq!(plain(text), text);
        assert_eq!(plain("one\r\ntwo\r\n"), "one\ntwo\n");
        assert_eq!(plain("\u{1b}[1;32mone\u{1b}[0m \u{1b}[2Ktwo"), "one two");
    }
}
