//! The reverse of `rewrite`: URLs and paths in fields of a response are changed from the backend's to
//! those that the client uses.
//!
//! `Location`, `Content-Location` and the URL in `Refresh` are changed if they are paths below the rewritten prefix, or
//! URLs with the authority of the backend, of `internal_hosts` or of the client's request; or by the rules of the
//! route (`reverse_url`) alone, if it has any. For [`CookieChanges`](super::cookies::CookieChanges), which reads
//! `Set-Cookie`, a `Path` is changed, and a `Domain` that is the backend's own name is removed. Bodies are not changed,
//! nor is any value that is not clearly one of these.

use bytes::Bytes;
use catamaran_message::name::{CONTENT_LOCATION, LOCATION, REFRESH};
use catamaran_message::{Authority, Fields, field};
use regex::bytes::Captures;

use crate::config::template::Blank;
use crate::config::{Address, PathExpression, Placeholder, Template, UrlPattern, UrlRule};
use crate::exchange::fields::passage::{host_of, scheme};
use crate::site::rewrite::PathRewrite;

/// The names by which the backend and the client know the site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) rewrite: &'a PathRewrite,
    pub(crate) backend: &'a Address,
    /// The host by which the front calls the backend; `None` if that is the one that the client asked
    /// for.
    pub(crate) called: Option<&'a Authority>,
    pub(crate) client: ClientSite<'a>,
}

/// The site as the client calls it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientSite<'a> {
    /// The host and port that the client asked for.
    pub(crate) authority: &'a [u8],
    pub(crate) secure: bool,
}

/// The owner of a URL's authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The backend, whose name the client cannot use.
    Backend,
    /// The site, by the name that the client used.
    Client,
    Foreign,
}

impl ClientSite<'_> {
    /// Changes the URLs in the fields of a response by the first of the rules that fits each of them.
    pub(crate) fn apply(&self, rules: &[UrlRule], headers: &mut Fields) {
        self.change_urls(headers, |url| {
            rules.iter().find_map(|rule| self.changed(rule, url))
        });
    }

    /// Replaces the URLs in the fields of a response by those that `change` returns; `None`: the URL stays.
    fn change_urls(&self, headers: &mut Fields, change: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        for name in [LOCATION, CONTENT_LOCATION] {
            headers.change(name, &change);
        }
        headers.change(REFRESH, |value| self.refresh(value, &change));
    }

    /// The value of `Refresh`, such as `7; url=/x`, with another URL; `None` if it stays. Of a URL of this site the path
    /// is written, as nginx does: browsers resolve it against the page.
    fn refresh(&self, value: &[u8], change: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        const NAME: &[u8] = b"url=";
        let mut places = value.windows(NAME.len());
        let name_start = places.position(|it| it.eq_ignore_ascii_case(NAME))?;
        let (before, url) = value.split_at(name_start + NAME.len());
        let turned = change(url)?;
        let path = turned.strip_prefix(&self.origin()[..]);
        let is_path = |path: &&[u8]| path.starts_with(b"/") && !names_host(path);
        Some([before, path.filter(is_path).unwrap_or(&turned)].concat())
    }

    /// The URL that a rule makes of another; `None` if it does not fit, or if what the backend sent would become a host.
    fn changed(&self, rule: &UrlRule, url: &[u8]) -> Option<Vec<u8>> {
        let turned = match &rule.from {
            UrlPattern::Prefix(prefix) => {
                let rest = url.strip_prefix(&self.fill(prefix, None)[..])?;
                [&self.fill(&rule.to, None)[..], rest].concat()
            }
            UrlPattern::Expression(_) if url.len() > PathExpression::PATH_MAX => return None,
            UrlPattern::Expression(expression) => {
                self.fill(&rule.to, Some(&expression.groups_in(url)?))
            }
        };
        if rule.to.beginning().starts_with(b"//") {
            return Some(turned);
        }
        // A URL stays one, with the host that the client knows.
        if turned.starts_with(b"/") && UrlParts::split(url).is_some() {
            return Some([self.origin(), turned].concat());
        }
        (!names_host(&turned)).then_some(turned)
    }

    /// Fills in a text of a rule. `groups` are those of its expression, in the URL that it fits.
    fn fill(&self, template: &Template, groups: Option<&Captures<'_>>) -> Vec<u8> {
        template.fill(|blank, text| match blank {
            Blank::Placeholder(Placeholder::Scheme) => text.extend_from_slice(scheme(self.secure)),
            Blank::Placeholder(Placeholder::Authority) => text.extend_from_slice(self.authority),
            Blank::Placeholder(Placeholder::Host) => {
                text.extend_from_slice(&host_of(self.authority));
            }
            Blank::Capture(group) => {
                if let Some(captured) = groups.and_then(|groups| groups.get(*group)) {
                    text.extend_from_slice(captured.as_bytes());
                }
            }
            // Rules cannot have such values.
            Blank::Placeholder(_) | Blank::Named(_) | Blank::Response(_) => {}
        })
    }

    /// The scheme, host and port by which the client calls the site.
    fn origin(&self) -> Vec<u8> {
        [scheme(self.secure), b"://", self.authority].concat()
    }
}

impl Site<'_> {
    /// Changes the URLs and paths in the fields of a response to those that the client uses.
    pub(crate) fn turn_urls(&self, headers: &mut Fields) {
        self.client.change_urls(headers, |text| self.url(text));
    }

    /// The URL or path for the client; `None` if it does not change.
    fn url(&self, text: &[u8]) -> Option<Vec<u8>> {
        let Some(url) = UrlParts::split(text) else {
            if text.starts_with(b"/") {
                return self.path(text);
            }
            return None;
        };
        let owner = self.owner(url.authority);
        if owner == Owner::Foreign {
            return None;
        }
        // A URL may end with its authority.
        let path = match url.path {
            [b'/', ..] => self.path(url.path)?,
            _ => self.path(&[b"/", url.path].concat())?,
        };
        Some(if owner == Owner::Client {
            [url.beginning, url.authority, &path].concat()
        } else if url.beginning == b"//" {
            // Such a URL has the scheme of the page.
            [b"//", self.client.authority, &path].concat()
        } else {
            [self.client.origin(), path].concat()
        })
    }

    /// The path for the client, with the query and fragment of `text`; `None` if it does not change.
    fn path(&self, text: &[u8]) -> Option<Vec<u8>> {
        let end = text.iter().position(|byte| matches!(byte, b'?' | b'#'));
        let (path, query_and_fragment) = text.split_at(end.unwrap_or(text.len()));
        let mut client_path = self.rewrite.back(path)?;
        client_path.extend_from_slice(query_and_fragment);
        Some(client_path)
    }

    /// Whose the host and port of a URL are: the backend's, the site's as the client calls it, or another site's.
    fn owner(&self, text: &[u8]) -> Owner {
        let Ok(authority) = Authority::parse(&Bytes::copy_from_slice(text)) else {
            return Owner::Foreign;
        };
        if text.eq_ignore_ascii_case(self.client.authority) {
            return Owner::Client;
        }
        // A URL without a port counts as one of the backend, whatever the port of the backend is.
        let backend_port = self.backend_port(&authority.host);
        let is_backend = match authority.port {
            None => backend_port.is_some(),
            port => port == backend_port,
        };
        let is_called = self.called.is_some_and(|called| {
            let is_port = authority.port.is_none() || authority.port == called.port;
            called.host == authority.host && is_port
        });
        if is_backend || is_called || self.rewrite.is_internal(&authority.host) {
            Owner::Backend
        } else {
            Owner::Foreign
        }
    }

    /// The backend's port, if `host` is its name.
    fn backend_port(&self, host: &[u8]) -> Option<u16> {
        let Address::Tcp { host: own, port } = self.backend else {
            return None;
        };
        // The configuration has an IPv6 address without brackets.
        let bare = host.strip_prefix(b"[").unwrap_or(host);
        let bare = bare.strip_suffix(b"]").unwrap_or(bare);
        own.as_bytes().eq_ignore_ascii_case(bare).then_some(*port)
    }

    /// The cookie's path for the client. A closing slash stays only if there was one: without it a
    /// cookie is for the path itself, too.
    pub(super) fn cookie_path(&self, path: &[u8]) -> Option<Vec<u8>> {
        let mut back = self.rewrite.back(path)?;
        if path == b"/" && back.len() > 1 && back.ends_with(b"/") {
            back.pop();
        }
        Some(back)
    }

    /// Whether the domain of a cookie is one of the backend's names, which is not the host that the client asked for.
    pub(super) fn is_own_domain(&self, domain: &[u8]) -> bool {
        let host = domain
            .strip_prefix(b".")
            .unwrap_or(domain)
            .to_ascii_lowercase();
        let asked = Authority::parse(&Bytes::copy_from_slice(self.client.authority));
        if asked.is_ok_and(|asked| asked.host[..] == host[..]) {
            return false;
        }
        self.called
            .is_some_and(|called| called.host[..] == host[..])
            || self.backend_port(&host).is_some()
            || self.rewrite.is_internal(&host)
    }
}

/// Whether browsers read a host at the beginning of a text: behind two slashes, of which each may be a backslash, and
/// between which they drop tabs and line ends (WHATWG URL, section 4.4).
fn names_host(text: &[u8]) -> bool {
    let mut read = text.iter().filter(|byte| !byte.is_ascii_control());
    let is_slash = |byte: Option<&u8>| matches!(byte, Some(b'/' | b'\\'));
    is_slash(read.next()) && is_slash(read.next())
}

/// The parts of a URL with an authority.
struct UrlParts<'t> {
    /// The text before the authority: `http://`, `https://` or `//`.
    beginning: &'t [u8],
    authority: &'t [u8],
    /// The path, query and fragment.
    path: &'t [u8],
}

impl<'t> UrlParts<'t> {
    /// Splits a URL. `None` if there is no authority, or the scheme is neither `http` nor `https`.
    fn split(text: &'t [u8]) -> Option<Self> {
        let mut beginnings = [&b"http://"[..], b"https://", b"//"].into_iter();
        let found = beginnings.find(|beginning| field::begins(text, beginning))?;
        let (beginning, after) = text.split_at(found.len());
        let ends = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
        let end = after.iter().position(ends).unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        Some(Self {
            beginning,
            authority,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Rewrite, RouteConfig, RouteRules, RouteTarget};
    use crate::exchange::fields::cookies::CookieChanges;
    use crate::site::rules::Rules;

    const CLIENT: ClientSite<'static> = ClientSite {
        authority: b"www.example.org",
        secure: true,
    };

    /// The lines of the field `name` that a client of `https://www.example.org` gets, if its route
    /// rewrites `from` to `to`.
    fn turned(from: &str, to: &str, name: &'static str, value: &str) -> Vec<String> {
        let rules = RouteRules {
            rewrite: Some(Rewrite {
                to: to.to_owned(),
                reverse: true,
                internal_hosts: vec!["app.internal".to_owned()],
            }),
            ..RouteRules::default()
        };
        let mut route = RouteConfig::new(from, RouteTarget::Upstream("app".to_owned()));
        route.rules = Some(std::sync::Arc::new(rules));
        let rules = Rules::new(&route).unwrap();
        let backend = Address::Tcp {
            host: "10.1.0.11".to_owned(),
            port: 8080,
        };
        let called = Authority::parse(&Bytes::from_static(b"called.test:81")).unwrap();
        let mut headers = Fields::new();
        headers.append(name, value);
        let site = Site {
            rewrite: rules.rewrite.as_ref().unwrap(),
            backend: &backend,
            called: Some(&called),
            client: CLIENT,
        };
        site.turn_urls(&mut headers);
        CookieChanges::default().turn_back(&mut headers, Some(&site));
        let values = headers.get_all(name);
        values
            .map(|it| String::from_utf8_lossy(it).into_owned())
            .collect()
    }

    fn check_url(from: &str, to: &str, sent: &str, expected: &str) {
        for name in ["location", "content-location"] {
            let turned = turned(from, to, name, sent);
            assert_eq!(turned, [expected], "{from} {to} {sent}");
        }
    }

    #[test]
    fn paths_are_turned_back() {
        for (sent, expected) in [
            ("/app/x?a=/app#app", "/shop/x?a=/app#app"),
            ("/apple", "/apple"),
            ("/other", "/other"),
            ("x/y", "x/y"),
            ("?x", "?x"),
            ("mailto:a@app", "mailto:a@app"),
            ("/app/../../etc", "/app/../../etc"),
            ("/app/\\evil.test", "/app/\\evil.test"),
            ("/app/\t/evil.test", "/app/\t/evil.test"),
            ("/app/x?next=C:\\y", "/shop/x?next=C:\\y"),
        ] {
            check_url("/shop", "/app", sent, expected);
        }
        check_url("/shop", "/", "/x", "/shop/x");
        let login = "/login.jsp;jsessionid=1.a";
        check_url("/", "/app", &format!("/app{login}"), login);
        // At the root each of these would lead to another host.
        for evil in ["/app/\\evil.test", "/app/\t/evil.test", "/app\\/evil.test"] {
            check_url("/", "/app", evil, evil);
            let url = format!("http://10.1.0.11:8080{evil}");
            check_url("/", "/app", &url, &url);
            let cookie = format!("a=b; Path={evil}");
            let kept = turned("/", "/app", "set-cookie", &cookie);
            assert_eq!(kept, [cookie]);
        }
        let other = turned("/shop", "/app", "link", "</app/x>");
        assert_eq!(other, ["</app/x>"]);
    }

    #[test]
    fn urls_are_turned_back() {
        let client = "https://www.example.org";
        for (sent, expected) in [
            (format!("{client}/app/"), format!("{client}/shop/")),
            (
                "http://WWW.example.org/app".to_owned(),
                "http://WWW.example.org/shop".to_owned(),
            ),
            (
                "http://10.1.0.11:8080/app/x".to_owned(),
                format!("{client}/shop/x"),
            ),
            (
                "//10.1.0.11:8080/app".to_owned(),
                "//www.example.org/shop".to_owned(),
            ),
            (
                "http://app.internal:9/app/x".to_owned(),
                format!("{client}/shop/x"),
            ),
            (
                "http://called.test:81/app/x".to_owned(),
                format!("{client}/shop/x"),
            ),
            (
                "http://called.test/app/x".to_owned(),
                format!("{client}/shop/x"),
            ),
        ] {
            check_url("/shop", "/app", &sent, &expected);
        }
        for foreign in [
            "http://10.1.0.11:8081/app",
            "http://called.test:82/app",
            "https://other.example/app",
            "http://10.1.0.11:8080/manager",
            "http://user@www.example.org/app",
        ] {
            check_url("/shop", "/app", foreign, foreign);
        }
        let ends = [("", ""), ("?q", "?q")];
        for (sent, expected) in ends {
            let sent = format!("http://10.1.0.11:8080{sent}");
            check_url("/shop", "/", &sent, &format!("{client}/shop/{expected}"));
        }
    }

    #[test]
    fn the_url_of_a_refresh_is_turned_back_to_a_path() {
        for (sent, expected) in [
            ("7; url=http://10.1.0.11:8080/app/x", "7; url=/shop/x"),
            ("7;URL=/app/x?url=/app", "7;URL=/shop/x?url=/app"),
            (
                "0; url=http://called.test/app//evil.test",
                "0; url=/shop/evil.test",
            ),
            (
                "7; url=https://other.example/app",
                "7; url=https://other.example/app",
            ),
            ("7", "7"),
        ] {
            assert_eq!(
                turned("/shop", "/app", "refresh", sent),
                [expected],
                "{sent}"
            );
        }
    }

    fn rule(from: &str, to: &str) -> UrlRule {
        let template = |text: &str, expression: Option<&PathExpression>| {
            Template::parse_with(text, Placeholder::OF_STORED, expression).unwrap()
        };
        match from.strip_prefix('~') {
            Some(text) => {
                let expression = PathExpression::parse(text).unwrap();
                let to = template(to, Some(&expression));
                let from = UrlPattern::Expression(expression);
                UrlRule { from, to }
            }
            None => UrlRule {
                from: UrlPattern::Prefix(template(from, None)),
                to: template(to, None),
            },
        }
    }

    /// Checks what rules, written one behind the other, make of the URL in `Location` and `Refresh`.
    #[track_caller]
    fn check_rules(rules: &[(&str, &str)], sent: &str, location: &str, refresh: &str) {
        let rules: Vec<UrlRule> = rules.iter().map(|(from, to)| rule(from, to)).collect();
        let refreshing = format!("7; url={sent}");
        let mut headers = Fields::from_iter([("location", sent), ("refresh", &refreshing)]);
        CLIENT.apply(&rules, &mut headers);
        let only = |name: &'static str| {
            let value = headers.get_all(name).next().unwrap();
            String::from_utf8_lossy(value).into_owned()
        };
        assert_eq!(only("location"), location);
        assert_eq!(only("refresh"), format!("7; url={refresh}"));
    }

    #[test]
    fn the_first_rule_that_fits_changes_a_url() {
        let client = "https://www.example.org";
        let rules = [
            ("http://b:8081/one/", "/1/"),
            ("http://b:8081/", "/all/"),
            ("/own/", "/other/"),
            ("http://{host}/", "https://{host}/"),
            ("~^(.+)/regex_w_([^/]+)", "{1}/{2}/end"),
            ("~(?i)re+gexp?", "/replaced"),
        ];
        for (sent, path) in [
            ("http://b:8081/one/x?q#f", "/1/x?q#f"),
            ("http://b:8081/two", "/all/two"),
            ("http://www.example.org/x", "/x"),
            ("https://c/ReeegEX/x", "/replaced"),
        ] {
            check_rules(&rules, sent, &format!("{client}{path}"), path);
        }
        for (sent, turned) in [
            ("/own/x", "/other/x"),
            ("/regexp", "/replaced"),
            ("http://c/a/regex_w_b/c", "http://c/a/b/end"),
            ("http://b:8082/one/x", "http://b:8082/one/x"),
            ("x", "x"),
        ] {
            check_rules(&rules, sent, turned, turned);
        }
        check_rules(&[], "/app/x", "/app/x", "/app/x");
        let secure = [("http://", "{scheme}://")];
        check_rules(&secure, "http://c/x", "https://c/x", "https://c/x");
        let moved = [("http://b", "//cdn.test")];
        check_rules(&moved, "http://b/x", "//cdn.test/x", "//cdn.test/x");
    }

    #[test]
    fn what_a_backend_sends_becomes_no_host_by_a_rule() {
        let rules = [("http://b", "/"), ("/app", "/"), ("~^/x(.*)$", "{1}")];
        let evil = "https://www.example.org//evil.test";
        check_rules(&rules, "http://b/evil.test", evil, evil);
        for kept in [
            "/app/evil.test",
            "/app\\evil.test",
            "/app\t/evil.test",
            "/x//evil.test",
        ] {
            check_rules(&rules, kept, kept, kept);
        }
        let long = format!("/x/{}", "y".repeat(PathExpression::PATH_MAX));
        check_rules(&[("~^/x(.*)$", "/y{1}")], &long, &long, &long);
    }

    #[test]
    fn cookies_are_turned_back() {
        for (from, to, sent, expected) in [
            (
                "/",
                "/app",
                "JSESSIONID=1.a; Path=/app; HttpOnly",
                "JSESSIONID=1.a; Path=/; HttpOnly",
            ),
            ("/shop", "/app", "a=b;path=\"/app/x\"", "a=b; Path=/shop/x"),
            ("/shop", "/", "a=b; Path=/", "a=b; Path=/shop"),
            ("/shop", "/app", "a=b; Path=/", "a=b; Path=/"),
            ("/shop", "/app", "Path=/app; Secure", "Path=/app; Secure"),
            ("/shop", "/app", "a=b; Path", "a=b; Path"),
            (
                "/shop",
                "/app",
                "a=b; Domain=.app.internal; Path=/app",
                "a=b; Path=/shop",
            ),
            ("/shop", "/app", "a=b; domain=10.1.0.11", "a=b"),
            (
                "/shop",
                "/app",
                "a=b; Domain=example.org",
                "a=b; Domain=example.org",
            ),
        ] {
            assert_eq!(
                turned(from, to, "set-cookie", sent),
                [expected],
                "{from} {to} {sent}"
            );
        }
    }
}
