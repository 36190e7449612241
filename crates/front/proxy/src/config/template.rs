//! Texts with placeholders, which are filled in for each request.

use thiserror::Error;

use super::expression::PathExpression;

/// A text such as `https://{host}{path_query}`, parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Box<[Part]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Box<[u8]>),
    Blank(Blank),
}

/// A place of a [`Template`] that is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blank {
    Placeholder(Placeholder),
    /// The text of the group with this number in the route's expression.
    Capture(usize),
}

/// A part of a request that a [`Template`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// `{host}`: the host that the client asked for, without its port.
    Host,
    /// `{authority}`: the host, and its port if the client named one.
    Authority,
    /// `{client_ip}`: the client's address; behind trusted proxies, the one that they report.
    ClientIp,
    /// `{request_id}`: the id of the request, as in the access log.
    RequestId,
    /// `{scheme}`: `http` or `https`, as the client used it.
    Scheme,
    /// `{path}`: the normalised path.
    Path,
    /// `{query}`: the query without its question mark; empty if there is none.
    Query,
    /// `{path_query}`: the normalised path, and `?` with the query if there is one.
    PathQuery,
    /// `{rest}`: the part of the normalised path after the route's path. It is empty or begins with a
    /// slash. httpd: what `Redirect` appends.
    Rest,
    /// `{rest_query}`: `{rest}`, and `?` with the query if there is one.
    RestQuery,
}

/// The reason why a text is not a template.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// A placeholder that does not exist, or is not permitted in this place.
    #[error("has the placeholder {{{name}}}, which is not known here; write one of {known}")]
    Unknown {
        /// The name of the placeholder.
        name: String,
        /// The placeholders that are permitted here.
        known: String,
    },
    /// A brace without its partner.
    #[error("has a `{{` or `}}` alone; write {{{{ or }}}} for a brace that stands for itself")]
    Brace,
}

impl Placeholder {
    /// The placeholders that are permitted in header fields.
    pub const OF_FIELDS: &[Self] = &[
        Self::Host,
        Self::Authority,
        Self::ClientIp,
        Self::RequestId,
        Self::Scheme,
    ];

    /// The placeholders that are permitted in the target of a redirect.
    pub const OF_REDIRECTS: &[Self] = &[
        Self::Host,
        Self::Authority,
        Self::Scheme,
        Self::Path,
        Self::Query,
        Self::PathQuery,
        Self::Rest,
        Self::RestQuery,
    ];

    /// The placeholders that are filled in within the text of an answer.
    pub const OF_TEXTS: &[Self] = &[
        Self::Host,
        Self::Authority,
        Self::ClientIp,
        Self::RequestId,
        Self::Scheme,
        Self::Path,
        Self::Query,
        Self::PathQuery,
    ];

    /// Whether the value is chosen by the client.
    fn is_of_client(self) -> bool {
        !matches!(self, Self::ClientIp | Self::RequestId | Self::Scheme)
    }

    /// Whether some placeholder has this name.
    pub(crate) fn is_name(name: &str) -> bool {
        let all = Self::OF_FIELDS.iter().chain(Self::OF_REDIRECTS);
        all.into_iter().any(|it| it.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Authority => "authority",
            Self::ClientIp => "client_ip",
            Self::RequestId => "request_id",
            Self::Scheme => "scheme",
            Self::Path => "path",
            Self::Query => "query",
            Self::PathQuery => "path_query",
            Self::Rest => "rest",
            Self::RestQuery => "rest_query",
        }
    }
}

impl Template {
    /// The whole text, if it has no placeholders; else `None`.
    pub(crate) fn plain(&self) -> Option<&[u8]> {
        match &*self.0 {
            [] => Some(b""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Parses a text that may have the placeholders `known`. `{{` and `}}` stand for braces.
    ///
    /// # Errors
    /// A brace has no partner, or a placeholder is not in `known`.
    pub fn parse(text: &str, known: &[Placeholder]) -> Result<Self, TemplateError> {
        Self::parse_with(text, known, None)
    }

    /// Parses a text that may also have the groups of an expression, such as `{1}` or `{id}`.
    ///
    /// # Errors
    /// As for [`Self::parse`]; a group that the expression does not have.
    pub fn parse_with(
        text: &str,
        known: &[Placeholder],
        expression: Option<&PathExpression>,
    ) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                plain.push_str(&from[..1]);
                rest = after;
                continue;
            }
            let inner = from.strip_prefix('{').ok_or(TemplateError::Brace)?;
            let (name, after) = inner.split_once('}').ok_or(TemplateError::Brace)?;
            let same_name = known.iter().find(|it| it.name() == name);
            let placeholder = same_name.map(|it| Blank::Placeholder(*it));
            let group = || Some(Blank::Capture(expression?.group(name)?));
            let known_place = placeholder.or_else(group);
            let blank = known_place.ok_or_else(|| TemplateError::Unknown {
                name: name.to_owned(),
                known: list(known, expression),
            })?;
            push_text(&mut parts, &mut plain);
            parts.push(Part::Blank(blank));
            rest = after;
        }
        plain.push_str(rest);
        push_text(&mut parts, &mut plain);
        Ok(Self(parts.into()))
    }

    /// Parses a text in which the placeholders `known` are filled in, and all other braces stand for themselves.
    #[must_use]
    pub fn parse_text(text: &str, known: &[Placeholder]) -> Self {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            let named = |it: &Placeholder| {
                let after = from[1..].strip_prefix(it.name())?.strip_prefix('}')?;
                Some((*it, after))
            };
            match known.iter().find_map(named) {
                Some((placeholder, after)) => {
                    push_text(&mut parts, &mut plain);
                    parts.push(Part::Blank(Blank::Placeholder(placeholder)));
                    rest = after;
                }
                None => {
                    plain.push('{');
                    rest = &from[1..];
                }
            }
        }
        plain.push_str(rest);
        push_text(&mut parts, &mut plain);
        Self(parts.into())
    }

    /// The number of places that are filled in.
    #[must_use]
    pub fn blanks(&self) -> usize {
        let is_blank = |part: &&Part| matches!(part, Part::Blank(_));
        self.0.iter().filter(is_blank).count()
    }

    /// Whether the template has a place whose text the client chooses.
    #[must_use]
    pub fn shows_client(&self) -> bool {
        self.0.iter().any(|part| match part {
            Part::Text(_) => false,
            Part::Blank(Blank::Placeholder(it)) => it.is_of_client(),
            Part::Blank(Blank::Capture(_)) => true,
        })
    }

    /// Fills in the template: `write` appends the value of each place.
    pub(crate) fn fill(&self, mut write: impl FnMut(Blank, &mut Vec<u8>)) -> Vec<u8> {
        let mut text = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.extend_from_slice(plain),
                Part::Blank(blank) => write(*blank, &mut text),
            }
        }
        text
    }

    /// Whether the template has `{rest}` or `{rest_query}`.
    #[must_use]
    pub fn names_rest(&self) -> bool {
        let both = [Placeholder::Rest, Placeholder::RestQuery];
        let rest = both.map(|it| Part::Blank(Blank::Placeholder(it)));
        self.0.iter().any(|part| rest.contains(part))
    }

    /// Whether the template has a group of an expression.
    pub(crate) fn names_captures(&self) -> bool {
        let is_capture = |part: &Part| matches!(part, Part::Blank(Blank::Capture(_)));
        self.0.iter().any(is_capture)
    }

    /// Whether the text begins with a group of an expression.
    #[must_use]
    pub fn begins_with_capture(&self) -> bool {
        matches!(self.0.first(), Some(Part::Blank(Blank::Capture(_))))
    }

    /// Whether a group of an expression stands directly behind a `://`, where a host begins.
    #[must_use]
    pub fn has_captured_host(&self) -> bool {
        self.0.windows(2).any(|pair| match pair {
            [Part::Text(text), Part::Blank(Blank::Capture(_))] => text.ends_with(b"://"),
            _ => false,
        })
    }

    /// The text with `x` in each place that is filled in.
    #[must_use]
    pub fn sample(&self) -> String {
        let text = self.fill(|_, text| text.push(b'x'));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The text before the first placeholder.
    #[must_use]
    pub fn beginning(&self) -> &[u8] {
        match self.0.first() {
            Some(Part::Text(text)) => text,
            _ => b"",
        }
    }
}

/// Appends the text that precedes a place or the end, and empties it.
fn push_text(parts: &mut Vec<Part>, text: &mut String) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text).into_bytes().into()));
    }
}

fn list(known: &[Placeholder], expression: Option<&PathExpression>) -> String {
    let fixed = known.iter().map(|it| it.name().to_owned());
    let groups = expression.into_iter().flat_map(PathExpression::groups);
    let names = fixed.chain(groups).map(|it| format!("{{{it}}}"));
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, TemplateError> {
        let template = Template::parse(text, Placeholder::OF_REDIRECTS)?;
        let name = |it: Blank, out: &mut Vec<u8>| {
            let Blank::Placeholder(it) = it else { return };
            out.extend_from_slice(format!("<{}>", it.name()).as_bytes());
        };
        Ok(String::from_utf8(template.fill(name)).unwrap())
    }

    #[test]
    fn braces_of_a_text_stand_for_themselves() {
        for (text, expected) in [
            ("", ""),
            (
                "{\"a\":{\"b\":\"{client_ip}\"}}",
                "{\"a\":{\"b\":\"<client_ip>\"}}",
            ),
            ("{{host}} {hots} {host", "{<host>} {hots} {host"),
            ("{rest}", "{rest}"),
        ] {
            let template = Template::parse_text(text, Placeholder::OF_TEXTS);
            let name = |it: Blank, out: &mut Vec<u8>| {
                let Blank::Placeholder(it) = it else { return };
                out.extend_from_slice(format!("<{}>", it.name()).as_bytes());
            };
            assert_eq!(template.fill(name), expected.as_bytes(), "{text}");
        }
        let shows = |text| Template::parse_text(text, Placeholder::OF_TEXTS).shows_client();
        assert!(shows("{path}") && !shows("{request_id} {client_ip} {scheme} {none}"));
    }

    #[test]
    fn placeholders_are_filled_in() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("https://{host}{path_query}", "https://<host><path_query>"),
            ("{path}?x={query}", "<path>?x=<query>"),
            ("{{{scheme}}}", "{<scheme>}"),
        ] {
            assert_eq!(filled(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_placeholder_is_refused() {
        for text in ["{", "}", "a}b", "{host", "{{host}", "{host}}"] {
            assert_eq!(filled(text), Err(TemplateError::Brace), "{text}");
        }
        for text in ["{}", "{hots}", "{client_ip}", "{ host}"] {
            let error = filled(text).unwrap_err();
            assert!(matches!(error, TemplateError::Unknown { .. }), "{text}");
            assert!(error.to_string().contains("{host}, {authority}"), "{error}");
        }
    }
}
