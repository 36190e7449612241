//! Texts with placeholders, which are filled in for each request.

use catamaran_message::FieldName;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blank {
    Placeholder(Placeholder),
    /// The text of the group with this number in the route's expression.
    Capture(usize),
    /// A value to which clients give its name.
    Named(NamedValue),
    /// A value of the response.
    Response(ResponseValue),
}

/// A value of a response before the route changes it: `{response:NAME}`, `{response_cookie:NAME}` and `{backend}`. It is
/// empty if the response does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseValue {
    /// The field of this name; several lines are joined by `, `.
    Header(FieldName),
    /// The first cookie of this name that the response sets.
    Cookie(Box<str>),
    /// The text of the group with this number in the expression of a [`CookieReplacement`](super::CookieReplacement).
    Group(usize),
    /// The address of the backend that sent it; nothing if the front or its cache did. nginx: `$upstream_addr`.
    Backend,
}

/// A value of a request that clients name: `{header:NAME}`, `{query:NAME}` and `{cookie:NAME}`. It is empty if the request
/// does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamedValue {
    /// The field of this name; several lines are joined by `, `, those of `Cookie` by `; `.
    Header(FieldName),
    /// The first parameter of the query with this name, as the client encoded it.
    Query(Box<str>),
    /// The first cookie with this name.
    Cookie(Box<str>),
}

/// The placeholders that a [`Template`] may have.
#[derive(Clone, Copy, Debug)]
pub struct KnownNames {
    placeholders: &'static [Placeholder],
    /// Whether the template may have [`NamedValue`]s.
    has_values: bool,
    /// Whether the template may have [`ResponseValue`]s.
    has_response: bool,
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
    /// `{method}`: the method of the request.
    Method,
    /// `{path}`: the normalised path.
    Path,
    /// `{query}`: the query without its question mark; empty if there is none.
    Query,
    /// `{search}`: `?` and the query; empty if there is none.
    Search,
    /// `{and_query}`: `&` and the query; empty if there is none.
    AndQuery,
    /// `{path_query}`: the normalised path, and `?` with the query if there is one.
    PathQuery,
    /// `{url}`: the URL that the client asked for, with the normalised path.
    Url,
    /// `{rest}`: the part of the normalised path after the route's path. It is empty or begins with a
    /// slash. httpd: what `Redirect` appends.
    Rest,
    /// `{rest_query}`: `{rest}`, and `?` with the query if there is one.
    RestQuery,
    /// `{tls_version}`: the version of TLS, such as `TLSv1.3`; empty without TLS, as are the next three.
    TlsVersion,
    /// `{tls_cipher}`: the cipher suite as OpenSSL names it.
    TlsCipher,
    /// `{tls_name}`: the server name that the client asked for in its handshake (SNI).
    TlsName,
    /// `{tls_reused}`: `r` if the handshake resumed a session, else `.`. nginx: `$ssl_session_reused`.
    TlsReused,
    /// A count of the whole front; empty in requests to backends and their responses.
    Count(LiveCount),
}

/// A count of the whole front, at this moment or since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveCount {
    /// `{connections_open}`: the connections of clients that are open.
    Open,
    /// `{connections_accepted}`: the connections that were accepted since the start.
    Accepted,
    /// `{connections_idle}`: those open connections that wait for a request.
    Idle,
    /// `{requests_received}`: the requests since the start.
    Requests,
    /// `{requests_in_flight}`: the requests in progress.
    InFlight,
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
    /// The placeholders that values of header fields may have.
    pub const OF_FIELDS: KnownNames = KnownNames {
        placeholders: &[
            Self::Host,
            Self::Authority,
            Self::ClientIp,
            Self::RequestId,
            Self::Scheme,
            Self::Method,
            Self::Path,
            Self::Query,
            Self::Search,
            Self::AndQuery,
            Self::PathQuery,
            Self::TlsVersion,
            Self::TlsCipher,
            Self::TlsName,
            Self::TlsReused,
            Self::Count(LiveCount::Open),
            Self::Count(LiveCount::Accepted),
            Self::Count(LiveCount::Idle),
            Self::Count(LiveCount::Requests),
            Self::Count(LiveCount::InFlight),
        ],
        has_values: true,
        has_response: false,
    };

    /// The placeholders that values of fields of responses may have.
    pub const OF_RESPONSES: KnownNames = KnownNames {
        has_response: true,
        ..Self::OF_FIELDS
    };

    /// The placeholders that the target of a redirect may have.
    pub const OF_REDIRECTS: KnownNames = KnownNames {
        placeholders: &[
            Self::Host,
            Self::Authority,
            Self::Scheme,
            Self::Path,
            Self::Query,
            Self::Search,
            Self::AndQuery,
            Self::PathQuery,
            Self::Rest,
            Self::RestQuery,
        ],
        has_values: false,
        has_response: false,
    };

    /// The placeholders that rules for URLs in responses, and for domains and paths of cookies, may have. All of them are
    /// in the key of a cache, which stores responses with these changes.
    pub const OF_STORED: KnownNames = KnownNames {
        placeholders: &[Self::Host, Self::Authority, Self::Scheme],
        has_values: false,
        has_response: false,
    };

    /// The placeholders that the address of a page to sign on may have.
    pub const OF_SIGN_IN: KnownNames = KnownNames {
        placeholders: &[
            Self::Url,
            Self::Host,
            Self::Authority,
            Self::Scheme,
            Self::Path,
            Self::Query,
            Self::PathQuery,
        ],
        has_values: false,
        has_response: false,
    };

    /// The placeholders that are filled in in the text of an answer.
    pub const OF_TEXTS: KnownNames = Self::OF_FIELDS;

    /// Whether the value is chosen by the client.
    fn is_of_client(self) -> bool {
        !matches!(
            self,
            Self::ClientIp
                | Self::RequestId
                | Self::Scheme
                | Self::TlsVersion
                | Self::TlsCipher
                | Self::TlsReused
                | Self::Count(_)
        )
    }

    /// Whether responses made with the value must not be shared between requests that differ in it, although nothing
    /// else in the cache's key tells it. Addresses and ids do not count: each client has others, so nothing could be
    /// shared.
    fn needs_key(self) -> bool {
        match self {
            Self::Host | Self::Authority | Self::Scheme | Self::Path | Self::Rest => false,
            // A stored response is one to GET.
            Self::ClientIp | Self::RequestId | Self::Method | Self::Count(_) => false,
            Self::Query | Self::Search | Self::AndQuery | Self::PathQuery => true,
            Self::RestQuery | Self::Url => true,
            Self::TlsVersion | Self::TlsCipher | Self::TlsName | Self::TlsReused => true,
        }
    }

    /// Whether some placeholder has this name.
    pub(crate) fn is_name(name: &str) -> bool {
        let all = [Self::OF_FIELDS, Self::OF_REDIRECTS, Self::OF_SIGN_IN];
        name == BACKEND || all.iter().any(|names| names.placeholder(name).is_some())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Authority => "authority",
            Self::ClientIp => "client_ip",
            Self::RequestId => "request_id",
            Self::Scheme => "scheme",
            Self::Method => "method",
            Self::Path => "path",
            Self::Query => "query",
            Self::Search => "search",
            Self::AndQuery => "and_query",
            Self::PathQuery => "path_query",
            Self::Url => "url",
            Self::Rest => "rest",
            Self::RestQuery => "rest_query",
            Self::TlsVersion => "tls_version",
            Self::TlsCipher => "tls_cipher",
            Self::TlsName => "tls_name",
            Self::TlsReused => "tls_reused",
            Self::Count(LiveCount::Open) => "connections_open",
            Self::Count(LiveCount::Accepted) => "connections_accepted",
            Self::Count(LiveCount::Idle) => "connections_idle",
            Self::Count(LiveCount::Requests) => "requests_received",
            Self::Count(LiveCount::InFlight) => "requests_in_flight",
        }
    }
}

impl KnownNames {
    /// Nothing but the groups of an expression.
    pub const NONE: Self = Self {
        placeholders: &[],
        has_values: false,
        has_response: false,
    };

    fn placeholder(self, name: &str) -> Option<Placeholder> {
        let mut all = self.placeholders.iter();
        all.find(|it| it.name() == name).copied()
    }

    /// What is filled in for a name in braces; `None` if it is not known here.
    fn blank(self, text: &str) -> Option<Blank> {
        if let Some(placeholder) = self.placeholder(text) {
            return Some(Blank::Placeholder(placeholder));
        }
        if text == BACKEND && self.has_response {
            return Some(Blank::Response(ResponseValue::Backend));
        }
        if !self.has_values {
            return None;
        }
        let (kind, name) = text.split_once(':')?;
        // A cookie's name is a token, as that of a field is (RFC 6265, section 4.1.1).
        let token = FieldName::parse(name.as_bytes());
        Some(match kind {
            "header" => Blank::Named(NamedValue::Header(token?)),
            "query" if is_parameter(name) => Blank::Named(NamedValue::Query(name.into())),
            "cookie" if token.is_some() => Blank::Named(NamedValue::Cookie(name.into())),
            "response" if self.has_response => Blank::Response(ResponseValue::Header(token?)),
            "response_cookie" if self.has_response && token.is_some() => {
                Blank::Response(ResponseValue::Cookie(name.into()))
            }
            _ => return None,
        })
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
    pub fn parse(text: &str, known: KnownNames) -> Result<Self, TemplateError> {
        Self::parse_with(text, known, None)
    }

    /// Parses a text that may also have the groups of an expression, such as `{1}` or `{id}`.
    ///
    /// # Errors
    /// As for [`Self::parse`]; a group that the expression does not have.
    pub fn parse_with(
        text: &str,
        known: KnownNames,
        expression: Option<&PathExpression>,
    ) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        for piece in pieces(text)? {
            let name = match piece {
                Piece::Text(plain) => {
                    parts.push(Part::Text(plain.into_bytes().into()));
                    continue;
                }
                Piece::Name(name) => name,
            };
            let group = || Some(Blank::Capture(expression?.group(name)?));
            let blank = known.blank(name).or_else(group);
            let unknown = || TemplateError::Unknown {
                name: name.to_owned(),
                known: list(known, expression),
            };
            parts.push(Part::Blank(blank.ok_or_else(unknown)?));
        }
        Ok(Self(parts.into()))
    }

    /// Parses the new domain or path of cookies, which may also have the groups of an expression: of the rule's `own`, or,
    /// if it has none, of the route's.
    ///
    /// # Errors
    /// As for [`Self::parse_with`].
    pub fn parse_replacement(
        text: &str,
        own: Option<&PathExpression>,
        of_route: Option<&PathExpression>,
    ) -> Result<Self, TemplateError> {
        let mut template = Self::parse_with(text, Placeholder::OF_STORED, own.or(of_route))?;
        if own.is_some() {
            for part in &mut template.0 {
                if let Part::Blank(Blank::Capture(group)) = *part {
                    *part = Part::Blank(Blank::Response(ResponseValue::Group(group)));
                }
            }
        }
        Ok(template)
    }

    /// Parses a text in which the placeholders `known` are filled in, and all other braces stand for themselves.
    #[must_use]
    pub fn parse_text(text: &str, known: KnownNames) -> Self {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after_brace)) = rest.split_once('{') {
            plain.push_str(before);
            if let Some((name, after)) = after_brace.split_once('}')
                && let Some(blank) = known.blank(name)
            {
                push_text(&mut parts, &mut plain);
                parts.push(Part::Blank(blank));
                rest = after;
            } else {
                plain.push('{');
                rest = after_brace;
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
            Part::Blank(Blank::Capture(_) | Blank::Named(_) | Blank::Response(_)) => true,
        })
    }

    /// Fills in the template: `write` appends the value of each place.
    pub(crate) fn fill(&self, mut write: impl FnMut(&Blank, &mut Vec<u8>)) -> Vec<u8> {
        let mut text = Vec::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.extend_from_slice(plain),
                Part::Blank(blank) => write(blank, &mut text),
            }
        }
        text
    }

    /// Whether the template has a value of the response.
    pub(crate) fn names_response(&self) -> bool {
        let is_one = |part: &Part| matches!(part, Part::Blank(Blank::Response(_)));
        self.0.iter().any(is_one)
    }

    /// The template in which all but the values of the response are filled in: `write` appends the value of each place.
    pub(crate) fn fill_request(&self, mut write: impl FnMut(&Blank, &mut Vec<u8>)) -> Self {
        let part = |part: &Part| match part {
            Part::Text(_) | Part::Blank(Blank::Response(_)) => part.clone(),
            Part::Blank(blank) => {
                let mut text = Vec::new();
                write(blank, &mut text);
                Part::Text(text.into())
            }
        };
        Self(self.0.iter().map(part).collect())
    }

    /// Whether the template has `{rest}` or `{rest_query}`.
    #[must_use]
    pub fn names_rest(&self) -> bool {
        let both = [Placeholder::Rest, Placeholder::RestQuery];
        let parts = both.map(|it| Part::Blank(Blank::Placeholder(it)));
        self.0.iter().any(|part| parts.contains(part))
    }

    /// Whether the template has a value by which requests differ and which nothing else in a cache's key tells, so that
    /// requests with other values must not share a stored response.
    pub(crate) fn needs_key(&self) -> bool {
        self.0.iter().any(|part| match part {
            Part::Text(_) => false,
            Part::Blank(Blank::Named(_)) => true,
            // A capture is a part of the path, which is in the key. Requests have no value of the response.
            Part::Blank(Blank::Capture(_) | Blank::Response(_)) => false,
            Part::Blank(Blank::Placeholder(placeholder)) => placeholder.needs_key(),
        })
    }

    /// Whether the template has a placeholder for a capture group of the route's expression, such as `{1}` or `{id}`.
    pub(crate) fn names_captures(&self) -> bool {
        let is_capture = |part: &Part| matches!(part, Part::Blank(Blank::Capture(_)));
        self.0.iter().any(is_capture)
    }

    /// Whether the template begins with a placeholder for a capture group.
    #[must_use]
    pub fn begins_with_capture(&self) -> bool {
        matches!(self.0.first(), Some(Part::Blank(Blank::Capture(_))))
    }

    /// Whether a placeholder for a capture group stands directly behind a `://`, where a host begins.
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

/// A piece of a text with placeholders.
pub(super) enum Piece<'t> {
    /// A text that stands for itself; never empty.
    Text(String),
    /// The name in a pair of braces.
    Name(&'t str),
}

/// Splits a text at its placeholders. `{{` and `}}` stand for braces.
///
/// # Errors
/// [`TemplateError::Brace`].
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, TemplateError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(brace) = rest.find(['{', '}']) {
        let (before, from_brace) = rest.split_at(brace);
        plain.push_str(before);
        if from_brace.starts_with("{{") || from_brace.starts_with("}}") {
            plain.push_str(&from_brace[..1]);
            rest = &from_brace[2..];
            continue;
        }
        let inner = from_brace.strip_prefix('{').ok_or(TemplateError::Brace)?;
        let (name, after) = inner.split_once('}').ok_or(TemplateError::Brace)?;
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(Piece::Name(name));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// Appends the text that precedes a place or the end, and empties it.
fn push_text(parts: &mut Vec<Part>, text: &mut String) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text).into_bytes().into()));
    }
}

/// Whether a text can be the name of a parameter: none of its characters ends a name.
fn is_parameter(name: &str) -> bool {
    let is_end = |byte: u8| !byte.is_ascii_graphic() || b"&=#{".contains(&byte);
    !name.is_empty() && !name.bytes().any(is_end)
}

/// The names that a template may have, as they are listed in messages.
fn list(known: KnownNames, expression: Option<&PathExpression>) -> String {
    let fixed = known.placeholders.iter().map(|it| it.name());
    let kinds = ["header:NAME", "query:NAME", "cookie:NAME"];
    let values = kinds.into_iter().filter(|_| known.has_values);
    let of_response = ["response:NAME", "response_cookie:NAME", BACKEND];
    let responses = of_response.into_iter().filter(|_| known.has_response);
    let groups = expression.into_iter().flat_map(PathExpression::groups);
    let names = fixed
        .chain(values)
        .chain(responses)
        .map(str::to_owned)
        .chain(groups);
    let shown = names.map(|it| format!("{{{it}}}"));
    shown.collect::<Vec<_>>().join(", ")
}

/// The name of [`ResponseValue::Backend`].
const BACKEND: &str = "backend";

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, TemplateError> {
        let template = Template::parse(text, Placeholder::OF_REDIRECTS)?;
        let name = |it: &Blank, out: &mut Vec<u8>| {
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
            let name = |it: &Blank, out: &mut Vec<u8>| {
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
