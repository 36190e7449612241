//! The grammar of `workers.properties` and `uriworkermap.properties`: a name and a value on each line.

/// A line that sets a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The name, without blanks around it.
    pub name: String,
    /// The value, without blanks around it; empty if there is none.
    pub value: String,
    /// The line number, the first being 1.
    pub line: usize,
    /// The range of the line's bytes in the text, without surrounding blanks.
    pub span: std::ops::Range<usize>,
}

/// Parses all properties of a text. No text is refused: a line without a separator is a name without a
/// value.
#[must_use]
pub fn parse(text: &str) -> Vec<Property> {
    let mut found = Vec::new();
    let mut start = 0;
    for (index, line) in text.split('\n').enumerate() {
        // mod_jk takes everything after a `#` for a comment, also within a line.
        let content = line.split('#').next().unwrap_or_default();
        let shown = content.trim();
        if !shown.is_empty() {
            let from = start + content.len() - content.trim_start().len();
            let (name, value) = split(shown);
            found.push(Property {
                name: name.to_owned(),
                value: value.to_owned(),
                line: index + 1,
                span: from..from + shown.len(),
            });
        }
        start += line.len() + 1;
    }
    found
}

/// Splits a line at the first `=`, or else at the first `:` or blank.
fn split(line: &str) -> (&str, &str) {
    let parts = line
        .split_once('=')
        .or_else(|| line.split_once(':'))
        .or_else(|| line.split_once([' ', '\t']))
        .unwrap_or((line, ""));
    (parts.0.trim(), parts.1.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_names_and_values() {
        let text = "# c\nworker.list = a,b # all\r\n\nps=/\nworker.a.host\n worker.a.port : 8009\n";
        let found = parse(text);
        let shown: Vec<_> = found
            .iter()
            .map(|it| (it.name.as_str(), it.value.as_str(), it.line))
            .collect();
        assert_eq!(
            shown,
            [
                ("worker.list", "a,b", 2),
                ("ps", "/", 4),
                ("worker.a.host", "", 5),
                ("worker.a.port", "8009", 6),
            ]
        );
        for it in &found {
            assert!(text[it.span.clone()].starts_with(&it.name), "{it:?}");
        }
    }
}
