//! The changes that a route makes in one exchange: to fields of the request and the response, and to rewritten paths
//! in the response.
//!
//! They are prepared once, from the request's head, for all attempts and for pages of the front. There are none if the
//! rules of the route change no response.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use catamaran_message::name::{COOKIE, SET_COOKIE};
use catamaran_message::{Authority, FieldName, Fields, RequestHead, pairs};
use catamaran_tls::Facts;
use catamaran_upstream::IpText;
use http::{Method, StatusCode};

use crate::config::template::{Blank, NamedValue, ResponseValue};
use crate::config::{Address, BackendConfig, FieldRule, Placeholder, Template};
use crate::exchange::compression::CompressionOffer;
use crate::exchange::fields::body::FieldScope;
use crate::exchange::fields::cookie_flags;
use crate::exchange::fields::cookies::CookieChanges;
use crate::exchange::fields::forwarded::{self, Identity, Sender};
use crate::exchange::fields::reverse::{ClientSite, Site};
use crate::exchange::grounds::Grounds;
use crate::path::captured::Captures;
use crate::path::{escape, is_unreserved};
use crate::request_id::RequestId;
use crate::site::rules::Rules;
use crate::worker::Worker;

/// A route's rules, as they apply to one exchange.
#[derive(Debug)]
pub(crate) struct Passage<'s> {
    pub(crate) rules: &'s Rules,
    /// The filled-in values of the response's fields whose templates have placeholders.
    filled: Box<[Vec<u8>]>,
    /// Of these the values that the response says, by their index: what the request says is filled in.
    of_response: Vec<(usize, Template)>,
    /// The changes of cookies.
    cookies: CookieChanges<'s>,
    /// The offer to compress the response; `None`: the route does not compress.
    pub(crate) compression: Option<CompressionOffer<'s>>,
    /// The host and port that the client asked for, as in `Host`.
    host: Bytes,
    secure: bool,
}

/// The values of placeholders in one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'r> {
    /// The host and port that the client asked for, as in `Host`.
    pub(crate) authority: &'r [u8],
    pub(crate) client: IpAddr,
    pub(crate) id: RequestId,
    pub(crate) secure: bool,
    /// The client's TLS; `None` if it uses none, or if it is not known.
    pub(crate) tls: Option<&'r Facts>,
    /// The worker, which knows the counts of the front; `None`: the response is a backend's, or no front runs.
    pub(crate) worker: Option<&'r Worker>,
    pub(crate) method: &'r Method,
    /// The normalised path, before it is rewritten.
    pub(crate) path: &'r [u8],
    /// The part of the path after the route's path; empty unless a redirect uses it.
    pub(crate) rest: &'r [u8],
    /// The request, as far as the front has not changed it.
    pub(crate) head: &'r RequestHead,
    /// The texts that the route's expression captured in the path.
    pub(crate) captured: &'r Captures,
}

impl<'s> Passage<'s> {
    /// Prepares the changes by `rules`. `host` is the host and port that the client asked for, as in `Host`.
    pub(crate) fn new(rules: &'s Rules, values: Values<'_>, host: Bytes) -> Self {
        let changes = || rules.response_fields().iter().map(|rule| &rule.change);
        let later = open_templates(changes()).enumerate();
        let of_response = later
            .filter(|(_, template)| template.names_response())
            .map(|(index, template)| (index, values.fill_all_but_response(template)));
        Self {
            of_response: of_response.collect(),
            filled: fill(changes(), values),
            cookies: CookieChanges::new(rules.cookies(), values),
            rules,
            compression: None,
            host,
            secure: values.secure,
        }
    }

    /// Changes paths and hosts in the fields of a response from the backend's to those that the client uses. A cache
    /// stores the result of this.
    #[inline(never)]
    pub(crate) fn turn_back(&self, headers: &mut Fields, backend: &BackendConfig) {
        let config = self.rules.config();
        let client = ClientSite {
            authority: &self.host,
            secure: self.secure,
        };
        if let Some(rules) = &config.reverse_urls {
            client.apply(rules, headers);
        }
        let rewrite = self.rules.rewrite.as_ref().filter(|it| it.reverse);
        let site = rewrite.map(|rewrite| {
            let of_route = config.forward_host.as_deref();
            let called = of_route.or_else(|| backend.sent_host());
            Site {
                rewrite,
                backend: &backend.address,
                called: called.map(|called| &called.authority),
                client,
            }
        });
        if let Some(site) = &site
            && config.reverse_urls.is_none()
        {
            site.turn_urls(headers);
        }
        self.cookies.turn_back(headers, site.as_ref());
    }

    /// Changes the fields of a response by the rules of the route, as far as `scope` permits. The filled-in values
    /// belong to this exchange, so this is done each time that a stored response is sent. `backend` is the address of
    /// the backend that sent it; `None`: the front did.
    pub(crate) fn edit(
        &self,
        headers: &mut Fields,
        status: StatusCode,
        scope: FieldScope,
        backend: Option<&Address>,
    ) {
        let whole = (!self.of_response.is_empty()).then(|| self.filled_by(headers, backend));
        self.cookies.flag(headers);
        cookie_flags::add(headers, self.rules.cookie_flags());
        let mut filled = whole.as_ref().unwrap_or(&self.filled).iter();
        for rule in self.rules.response_fields() {
            let value = value(&rule.change, &mut filled);
            if rule.takes(status) {
                apply(&rule.change, value, scope, headers);
            }
        }
    }

    /// The filled-in values for a response that has these fields before the route changes them.
    #[cold]
    fn filled_by(&self, headers: &Fields, backend: Option<&Address>) -> Box<[Vec<u8>]> {
        let mut filled = self.filled.clone();
        for (index, template) in &self.of_response {
            filled[*index] = template.fill(|blank, text| {
                if let Blank::Response(value) = blank {
                    write_response(value, headers, backend, text);
                }
            });
        }
        filled
    }
}

/// The URL that a client asked for, for the front's own answers.
#[derive(Debug)]
pub(crate) struct RequestedUrl {
    /// The host and port of the URL, as in `Host`.
    pub(crate) authority: Bytes,
    client: Identity,
}

impl RequestedUrl {
    pub(crate) fn new(sender: &Sender, local: SocketAddr, head: &RequestHead) -> Self {
        let asked = forwarded::asked_of_proxy(sender, head).or_else(|| head.authority.clone());
        let authority = match asked {
            Some(asked) => asked.to_bytes(),
            None => Bytes::from(local.to_string()),
        };
        Self {
            authority,
            client: sender.identity,
        }
    }

    pub(crate) fn values<'r>(&'r self, grounds: &Grounds<'r>, head: &'r RequestHead) -> Values<'r> {
        Values {
            authority: &self.authority,
            client: self.client.ip,
            id: grounds.id,
            secure: self.client.secure,
            tls: grounds.peer.tls_facts(),
            worker: grounds.worker,
            method: &head.method,
            path: &head.target.path,
            rest: b"",
            head,
            captured: Captures::NONE,
        }
    }
}

impl Values<'_> {
    /// The location of a redirect. `None` if it is the URL that the client asked for: the redirect would be a loop.
    pub(crate) fn redirect(&self, to: &Template) -> Option<Vec<u8>> {
        let mut location = to.fill(|blank, text| match blank {
            Blank::Placeholder(placeholder) => self.write(*placeholder, text),
            Blank::Capture(group) => self.captured.write_in_url(*group, text),
            // Targets of redirects cannot have such values.
            Blank::Named(_) | Blank::Response(_) => {}
        });
        if to.names_captures() && !to.beginning().starts_with(b"//") {
            // A location that begins with two slashes names a host (RFC 3986, section 4.2). A captured text must not
            // choose it, so one slash is left.
            let slashes = location.iter().take_while(|&&byte| byte == b'/').count();
            location.drain(1..slashes.max(1));
        }
        let origin = [scheme(self.secure), b"://", self.authority].concat();
        let target = location.strip_prefix(&origin[..]).unwrap_or(&location);
        let mut requested = Vec::new();
        self.write(Placeholder::PathQuery, &mut requested);
        if target == requested || target.is_empty() && requested == b"/" {
            return None;
        }
        Some(location)
    }

    /// Fills in the text of an answer. Quotes, angle brackets and backslashes of what the client sent are encoded, so that
    /// it stays within a string of JSON.
    pub(crate) fn fill_text(&self, template: &Template) -> Vec<u8> {
        template.fill(|blank, text| {
            let mut value = Vec::new();
            self.write_blank(blank, &mut value);
            for byte in value {
                match byte {
                    b'"' | b'\'' | b'<' | b'>' | b'\\' | b'`' => text.extend(escape(byte)),
                    byte => text.push(byte),
                }
            }
        })
    }

    /// Fills in all of a template but the values of the response.
    pub(super) fn fill_all_but_response(&self, template: &Template) -> Template {
        template.fill_request(|blank, text| self.write_blank(blank, text))
    }

    /// Fills in a template with these values, each percent-encoded as a part of a query.
    pub(crate) fn fill_encoded(&self, template: &Template) -> Vec<u8> {
        template.fill(|blank, text| {
            let mut value = Vec::new();
            self.write_blank(blank, &mut value);
            for byte in value {
                if is_unreserved(byte) {
                    text.push(byte);
                } else {
                    text.extend(escape(byte));
                }
            }
        })
    }

    /// Fills in a template with these values.
    pub(crate) fn fill(&self, template: &Template) -> Vec<u8> {
        template.fill(|blank, text| self.write_blank(blank, text))
    }

    fn write_blank(&self, blank: &Blank, text: &mut Vec<u8>) {
        match blank {
            Blank::Placeholder(placeholder) => self.write(*placeholder, text),
            Blank::Capture(group) => self.captured.write(*group, text),
            Blank::Named(value) => self.write_named(value, text),
            // It is filled in once the response is there.
            Blank::Response(_) => {}
        }
    }

    /// Writes a value that the template names: a field, a part of the query, or a cookie. Nothing if it is missing.
    fn write_named(&self, value: &NamedValue, text: &mut Vec<u8>) {
        let headers = &self.head.headers;
        match value {
            NamedValue::Header(name) => {
                let separator: &[u8] = match name {
                    FieldName::Known(COOKIE) => b"; ",
                    _ => b", ",
                };
                let lines: Vec<&[u8]> = headers.get_all(name).collect();
                text.extend(lines.join(separator));
            }
            NamedValue::Query(name) => {
                let query = self.head.target.query.as_deref().unwrap_or_default();
                let mut pairs = query.split(|&byte| byte == b'&');
                let first =
                    pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
                text.extend_from_slice(first.unwrap_or_default());
            }
            NamedValue::Cookie(name) => {
                let names = [name.to_string()];
                let value = pairs::cookies(headers, &names).next();
                text.extend_from_slice(value.map_or(&[][..], |(_, value)| value));
            }
        }
    }

    /// Writes the value of a placeholder.
    fn write(&self, placeholder: Placeholder, text: &mut Vec<u8>) {
        let query = self.head.target.query.as_deref();
        let with_query = |path: &[u8], text: &mut Vec<u8>| {
            text.extend_from_slice(path);
            if let Some(query) = query {
                text.push(b'?');
                text.extend_from_slice(query);
            }
        };
        match placeholder {
            Placeholder::Host => text.extend_from_slice(&host_of(self.authority)),
            Placeholder::Authority => text.extend_from_slice(self.authority),
            Placeholder::ClientIp => text.extend_from_slice(IpText::new(self.client).as_bytes()),
            Placeholder::RequestId => text.extend_from_slice(&self.id.digits()),
            Placeholder::Scheme => text.extend_from_slice(scheme(self.secure)),
            Placeholder::Method => text.extend_from_slice(self.method.as_str().as_bytes()),
            Placeholder::Path => text.extend_from_slice(self.path),
            Placeholder::Query => text.extend_from_slice(query.unwrap_or_default()),
            Placeholder::Search => with_query(b"", text),
            Placeholder::AndQuery => {
                if let Some(query) = query.filter(|query| !query.is_empty()) {
                    text.push(b'&');
                    text.extend_from_slice(query);
                }
            }
            Placeholder::PathQuery => with_query(self.path, text),
            Placeholder::Url => {
                text.extend_from_slice(scheme(self.secure));
                text.extend_from_slice(b"://");
                text.extend_from_slice(self.authority);
                with_query(self.path, text);
            }
            Placeholder::Rest => text.extend_from_slice(self.rest),
            Placeholder::RestQuery => with_query(self.rest, text),
            Placeholder::TlsVersion => self.write_tls(|tls| tls.version.name(), text),
            Placeholder::TlsCipher => self.write_tls(|tls| &tls.cipher, text),
            Placeholder::TlsName => {
                self.write_tls(|tls| tls.sni.as_deref().unwrap_or_default(), text);
            }
            Placeholder::TlsReused => {
                self.write_tls(|tls| if tls.resumed { "r" } else { "." }, text);
            }
            Placeholder::Count(which) => {
                let count = self.worker.map(|worker| worker.live_count(which));
                text.extend(count.into_iter().flat_map(|it| it.to_string().into_bytes()));
            }
        }
    }

    /// Writes a value of the client's TLS; nothing without TLS.
    fn write_tls(&self, value: impl FnOnce(&Facts) -> &str, text: &mut Vec<u8>) {
        if let Some(tls) = self.tls {
            text.extend_from_slice(value(tls).as_bytes());
        }
    }
}

/// Changes the fields of a request by the rules of its route, whose values [`fill`] has made.
pub(crate) fn edit_request(rules: &[FieldRule], filled: &[Vec<u8>], headers: &mut Fields) {
    let mut filled = filled.iter();
    for rule in rules {
        let value = value(rule, &mut filled);
        apply(rule, value, FieldScope::Served, headers);
    }
}

/// Of the filled-in values those that a cache's key must have, because nothing else in it tells them.
pub(crate) fn keyed(rules: &Rules, filled: Box<[Vec<u8>]>) -> Box<[Vec<u8>]> {
    let mut keyed = Vec::new();
    for (template, value) in open_templates(rules.request_fields()).zip(filled) {
        if template.needs_key() {
            keyed.push(value);
        }
    }
    keyed.into()
}

/// The filled-in values of the rules that have placeholders, in the order of the rules.
pub(crate) fn fill<'r>(
    rules: impl IntoIterator<Item = &'r FieldRule>,
    values: Values<'_>,
) -> Box<[Vec<u8>]> {
    let templates = open_templates(rules);
    templates.map(|template| values.fill(template)).collect()
}

/// The templates of rules that have placeholders.
fn open_templates<'r>(
    rules: impl IntoIterator<Item = &'r FieldRule>,
) -> impl Iterator<Item = &'r Template> {
    let templates = rules.into_iter().filter_map(FieldRule::template);
    templates.filter(|template| template.plain().is_none())
}

/// Writes a value of a response that has these fields and came from this backend.
fn write_response(
    value: &ResponseValue,
    headers: &Fields,
    backend: Option<&Address>,
    text: &mut Vec<u8>,
) {
    match value {
        ResponseValue::Header(name) => {
            let lines: Vec<&[u8]> = headers.get_all(name).collect();
            text.extend(lines.join(&b", "[..]));
        }
        ResponseValue::Cookie(name) => {
            let mut set = headers.get_all(SET_COOKIE).filter_map(|line| {
                let (own, value) = pairs::pieces(line).next()?;
                value.filter(|_| own == name.as_bytes())
            });
            text.extend_from_slice(set.next().unwrap_or_default().trim_ascii());
        }
        // Only rules for cookies have such a value, and they fill it in themselves.
        ResponseValue::Group(_) => {}
        ResponseValue::Backend => {
            text.extend(backend.iter().flat_map(|it| it.to_string().into_bytes()));
        }
    }
}

/// The value of a rule: its template's text, or else the next of the filled-in values.
fn value<'v>(rule: &'v FieldRule, filled: &mut impl Iterator<Item = &'v Vec<u8>>) -> &'v [u8] {
    let Some(template) = rule.template() else {
        return &[];
    };
    match template.plain() {
        Some(text) => text,
        None => filled.next().map_or(&[], |value| value),
    }
}

/// Changes a field by a rule with this value. If all that was filled in is empty, the field is left out.
fn apply(rule: &FieldRule, value: &[u8], scope: FieldScope, headers: &mut Fields) {
    match rule {
        // Allowed on every response, whatever `scope` is: a page that replaces a backend's response has its cookies.
        FieldRule::Remove(name @ FieldName::Known(SET_COOKIE)) => drop(headers.remove(name)),
        _ if !scope.takes(rule.name()) => {}
        FieldRule::Add(_, template) if is_void(template, value) => {}
        FieldRule::Set(name, template) if is_void(template, value) => drop(headers.remove(name)),
        FieldRule::Set(name, _) => headers.insert(name, value),
        FieldRule::Add(name, _) => headers.append(name, value),
        FieldRule::Remove(name) => drop(headers.remove(name)),
    }
}

/// Whether a value is empty because of what was filled in.
fn is_void(template: &Template, value: &[u8]) -> bool {
    value.is_empty() && template.plain().is_none()
}

/// The host of an authority, without its port.
pub(crate) fn host_of(authority: &[u8]) -> Bytes {
    let authority = Bytes::copy_from_slice(authority);
    Authority::parse(&authority).map_or(authority, |parsed| parsed.host)
}

/// The name of a scheme.
pub(crate) fn scheme(secure: bool) -> &'static [u8] {
    if secure { b"https" } else { b"http" }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use catamaran_message::Traits;

    use super::*;
    use crate::config::{
        KnownNames, PathExpression, ResponseFieldRule, RouteConfig, RouteRules, RouteTarget,
    };
    use crate::request_id::RequestIds;

    /// The head of a request with this query and these fields.
    fn head_with(query: Option<&'static str>, fields: &[(&str, &str)]) -> RequestHead {
        let mut head = RequestHead::empty();
        head.target.query = query.map(|it| Bytes::from_static(it.as_bytes()));
        for (name, value) in fields {
            head.headers.append(*name, value);
        }
        head
    }

    fn values<'h>(head: &'h RequestHead) -> Values<'h> {
        Values {
            authority: b"h",
            client: [192, 0, 2, 1].into(),
            id: RequestIds::new().next(),
            secure: true,
            tls: None,
            worker: None,
            method: &Method::GET,
            path: b"/a%20b",
            rest: b"",
            head,
            captured: Captures::NONE,
        }
    }

    #[test]
    fn values_that_clients_name_are_what_they_sent() {
        let head = head_with(
            Some("a=1%0A&b=&ab=2&a=3&c"),
            &[
                ("X-One", "1"),
                ("x-one", "2"),
                ("Cookie", "a=1; B=2"),
                ("Cookie", "a=3"),
            ],
        );
        for (text, expected) in [
            ("{header:x-one}", "1, 2"),
            ("{header:cookie}", "a=1; B=2; a=3"),
            ("{header:X-None}", ""),
            ("{query:a}-{query:b}-{query:c}-{query:d}", "1%0A---"),
            ("{query:A}", ""),
            ("{cookie:a}{cookie:B}{cookie:b}", "12"),
            ("{method} {path}{search}", "GET /a%20b?a=1%0A&b=&ab=2&a=3&c"),
            ("?d{and_query}", "?d&a=1%0A&b=&ab=2&a=3&c"),
            ("{tls_version}{tls_cipher}{tls_name}{tls_reused}", ""),
        ] {
            let template = Template::parse(text, Placeholder::OF_FIELDS).unwrap();
            let filled = values(&head).fill(&template);
            assert_eq!(String::from_utf8_lossy(&filled), expected, "{text}");
        }
        let of_tls = Template::parse(
            "{tls_version} {tls_cipher} {tls_name} {tls_reused}",
            Placeholder::OF_FIELDS,
        );
        let facts = Facts::supposed("a.org");
        let over_tls = Values {
            tls: Some(&facts),
            ..values(&head)
        };
        let filled = over_tls.fill(&of_tls.unwrap());
        let expected = "TLSv1.3 TLS_AES_128_GCM_SHA256 a.org .";
        assert_eq!(String::from_utf8_lossy(&filled), expected);
        let text = Template::parse_text("{\"{header:X}\"} {header:}", Placeholder::OF_TEXTS);
        let marked = head_with(None, &[("X", "<\"\\'`")]);
        let filled = values(&marked).fill_text(&text);
        let expected = "{\"%3C%22%5C%27%60\"} {header:}";
        assert_eq!(String::from_utf8_lossy(&filled), expected);
    }

    #[test]
    fn values_of_the_response_are_those_before_the_route_changes_it() {
        let add = |name: &str, text: &str| ResponseFieldRule {
            change: FieldRule::Add(
                FieldName::parse(name.as_bytes()).unwrap(),
                Template::parse(text, Placeholder::OF_RESPONSES).unwrap(),
            ),
            statuses: Vec::new(),
        };
        let config = RouteRules {
            response_headers: vec![
                add("x-a", "<{response:a}> {method}"),
                add("x-both", "{response:x-a}{response:none}"),
                add("x-c", "{response_cookie:c}"),
                add("x-method", "{method}"),
                add("x-backend", "{backend}"),
            ],
            ..RouteRules::default()
        };
        let mut route = RouteConfig::new("/", RouteTarget::Upstream("app".to_owned()));
        route.rules = Some(std::sync::Arc::new(config));
        let rules = Rules::new(&route).unwrap();
        let head = head_with(None, &[]);
        let passage = Passage::new(&rules, values(&head), Bytes::new());
        let sent = [
            ("a", "1"),
            ("a", "2"),
            ("set-cookie", "cc=0"),
            ("set-cookie", "c = 3 ; Path=/"),
        ];
        let mut headers = Fields::from_iter(sent);
        let scope = FieldScope::new(StatusCode::OK, FieldScope::Served);
        let backend = Address::Tcp {
            host: "::1".to_owned(),
            port: 8080,
        };
        passage.edit(&mut headers, StatusCode::OK, scope, Some(&backend));
        for (name, expected) in [
            ("x-a", "<1, 2> GET"),
            ("x-c", "3"),
            ("x-method", "GET"),
            ("x-backend", "[::1]:8080"),
        ] {
            let lines: Vec<&[u8]> = headers.get_all(name).collect();
            assert_eq!(lines, [expected.as_bytes()], "{name}");
        }
        assert!(!headers.contains("x-both"));
        let parsed = Template::parse("{response:a}", Placeholder::OF_FIELDS);
        assert!(parsed.is_err(), "{parsed:?}");
    }

    #[test]
    fn a_field_into_which_nothing_is_filled_is_not_there() {
        let head = head_with(None, &[]);
        let name = FieldName::from_static;
        let template = |text| Template::parse(text, Placeholder::OF_FIELDS).unwrap();
        let rules = [
            FieldRule::Set(name("a"), template("{header:a}")),
            FieldRule::Add(name("b"), template("{query}")),
            FieldRule::Set(name("c"), template("")),
        ];
        let mut headers = Fields::from_iter([("a", "forged"), ("b", "1"), ("c", "2")]);
        let filled = fill(&rules, values(&head));
        edit_request(&rules, &filled, &mut headers);
        let mut lines = BytesMut::new();
        headers.write_lines(Traits::NONE, &mut lines);
        assert_eq!(lines, "b: 1\r\nc: \r\n");
    }

    #[test]
    fn placeholders_are_what_the_client_asked_for() {
        let head = head_with(Some(""), &[]);
        let id = RequestIds::new().next();
        let values = Values {
            authority: b"[::1]:8080",
            client: [192, 0, 2, 1].into(),
            id,
            secure: true,
            tls: None,
            worker: None,
            method: &Method::GET,
            path: b"/a%20b",
            rest: b"/b",
            head: &head,
            captured: Captures::NONE,
        };
        for (text, expected) in [
            ("https://{host}{path_query}", "https://[::1]/a%20b?"),
            ("{scheme}://{authority}{path}", "https://[::1]:8080/a%20b"),
            ("https://h/c{search}", "https://h/c?"),
            ("https://h/c?d{and_query}", "https://h/c?d"),
            ("https://h/c{rest}", "https://h/c/b"),
            ("https://h/c{rest_query}", "https://h/c/b?"),
        ] {
            let template = Template::parse(text, Placeholder::OF_REDIRECTS).unwrap();
            assert_eq!(values.fill(&template), expected.as_bytes());
        }
        let template = Template::parse("{client_ip} {request_id}", Placeholder::OF_FIELDS).unwrap();
        assert_eq!(values.fill(&template), format!("192.0.2.1 {id}").as_bytes());
    }

    /// What a client sent never becomes the host of a redirect, nor a second parameter, nor a second line.
    #[test]
    fn captured_texts_stay_in_their_place() {
        let expression = PathExpression::parse("^/a(.*)b(.*)$").unwrap();
        let captured = |path: &str| {
            let read = crate::path::normalise(&Bytes::copy_from_slice(path.as_bytes()));
            let mut normal = read.unwrap();
            normal.capture(|path| expression.captured(path));
            normal
        };
        for (text, path, expected) in [
            ("/n/{1}?q={2}", "/a1b2", "/n/1?q=2"),
            ("/{1}/{2}", "/ab/evil.test", "/evil.test"),
            ("/{1}", "/a/evil.testb", "/evil.test"),
            ("/{1}", "/a%5Cevil.testb", "/%5Cevil.test"),
            (
                "https://h.test{1}",
                "/a.evil.testb",
                "https://h.test/.evil.test",
            ),
            (
                "https://h.test{1}",
                "/a@evil.testb",
                "https://h.test/@evil.test",
            ),
            ("https://h.test{1}", "/a/xb", "https://h.test/x"),
            ("https://{host}{1}x", "/a:80b", "https://h/:80x"),
            ("https://h.test{1}", "/ab", "https://h.test/"),
            ("/n?q={1}", "/a%26x=1%23b", "/n?q=%26x%3D1%23"),
            ("/n{1}", "/a%3Fx%23yb", "/n%3Fx%23y"),
            ("/n/{1}", "/a%C3%A4%20b", "/n/%C3%A4%20"),
        ] {
            let path = captured(path);
            let head = head_with(None, &[]);
            let values = Values {
                authority: b"h",
                client: [192, 0, 2, 1].into(),
                id: RequestIds::new().next(),
                secure: true,
                tls: None,
                worker: None,
                method: &Method::GET,
                path: &path.forward,
                rest: b"",
                head: &head,
                captured: path.captured(),
            };
            let known = Placeholder::OF_REDIRECTS;
            let template = Template::parse_with(text, known, Some(&expression)).unwrap();
            let location = values.redirect(&template).expect("no loop");
            assert_eq!(String::from_utf8_lossy(&location), expected, "{text}");
        }
        let path = captured("/a%3B%2C%C3%A4b/x%20y");
        let template =
            Template::parse_with("<{1}{2}>", KnownNames::NONE, Some(&expression)).unwrap();
        let filled = template.fill(|blank, text| match blank {
            Blank::Capture(group) => path.captured().write(*group, text),
            Blank::Placeholder(_) | Blank::Named(_) | Blank::Response(_) => {}
        });
        assert_eq!(String::from_utf8_lossy(&filled), "<%3B%2C%C3%A4/x%20y>");
    }

    #[test]
    fn fields_are_set_added_and_removed() {
        let fields = [("a", "1"), ("a", "2"), ("b", "3"), ("c", "4")];
        let mut headers = Fields::from_iter(fields);
        let name = FieldName::from_static;
        let template = |text| Template::parse(text, Placeholder::OF_FIELDS).unwrap();
        let rules = [
            FieldRule::Set(name("a"), template("{host}")),
            FieldRule::Add(name("b"), template("6")),
            FieldRule::Remove(name("c")),
            FieldRule::Add(name("X-Own"), template("{scheme}")),
            FieldRule::Add(name("x-cache"), template("hit")),
        ];
        let filled = [b"h".to_vec(), b"http".to_vec()];
        edit_request(&rules, &filled, &mut headers);
        // Names are spelt as in the file, or as the RFCs have them.
        let mut lines = BytesMut::new();
        headers.write_lines(Traits::NONE, &mut lines);
        let expected = "a: h\r\nb: 3\r\nb: 6\r\nX-Own: http\r\nX-Cache: hit\r\n";
        assert_eq!(lines, expected);
    }
}
