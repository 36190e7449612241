//! The reverse of `rewrite`: URLs and paths in fields of a response are changed from the backend's to
//! those that the client uses.
//!
//! `Location` and `Content-Location` are changed if they are paths below the rewritten prefix, or
//! URLs with the authority of the backend, of `internal_hosts` or of the client's request. For
//! [`CookieChanges`](super::cookies::CookieChanges), which reads `Set-Cookie`, a `Path` is changed, and a `Domain` that is
//! the backend's own name is removed. Bodies are not changed, nor is any value that is not clearly one of these.

use bytes::Bytes;
use catamaran_message::name::{CONTENT_LOCATION, LOCATION};
use catamaran_message::{Authority, Fields, field};

use crate::config::Address;
use crate::exchange::fields::passage::scheme;
use crate::site::rewrite::PathRewrite;

/// The names by which the backend and the client know the site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) rewrite: &'a PathRewrite,
    pub(crate) backend: &'a Address,
    /// The host by which the front calls the backend; `None` if that is the one that the client asked
    /// for.
    pub(crate) called: Option<&'a Authority>,
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

/// Changes the URLs and paths in `Location` and `Content-Location` to those that the client uses.
pub(crate) fn turn_back(headers: &mut Fields, site: &Site<'_>) {
    for name in [LOCATION, CONTENT_LOCATION] {
        headers.change(name, |text| site.url(text));
    }
}

impl Site<'_> {
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
            [b"//", self.authority, &path].concat()
        } else {
            [scheme(self.secure), b"://", self.authority, &path].concat()
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
        if text.eq_ignore_ascii_case(self.authority) {
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
        let asked = Authority::parse(&Bytes::copy_from_slice(self.authority));
        if asked.is_ok_and(|asked| asked.host[..] == host[..]) {
            return false;
        }
        self.called
            .is_some_and(|called| called.host[..] == host[..])
            || self.backend_port(&host).is_some()
            || self.rewrite.is_internal(&host)
    }
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
            authority: b"www.example.org",
            secure: true,
        };
        turn_back(&mut headers, &site);
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
