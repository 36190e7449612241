//! A client's cookie jar (RFC 6265), reduced to one client of one server.
//!
//! Cookies are kept by name and path, and sent to paths below theirs until they expire. Since a
//! client has one server, Domain is ignored; Secure is ignored too, so that a server can be tested
//! without its TLS.

use std::time::{Duration, SystemTime};

use crate::plan::{Header, Request};

/// The cookies of one client.
#[derive(Debug, Default)]
pub(super) struct Jar {
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: String,
    /// The time of expiry on the run's clock; `None`: it never expires.
    expires: Option<u64>,
}

impl Jar {
    /// Stores the cookie of a Set-Cookie field in the response to a request for `path`.
    pub(super) fn set(&mut self, field: &[u8], path: &str, now: u64) {
        let mut parts = field.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let Some((name, value)) = parts.next().and_then(pair) else {
            return;
        };
        if name.is_empty() || field.len() > COOKIE_BYTES_MAX || field.iter().any(is_control) {
            return;
        }
        let mut cookie = Cookie {
            name: name.to_vec(),
            value: value.to_vec(),
            path: default_path(path).to_owned(),
            expires: None,
        };
        // Max-Age precedes Expires (RFC 6265, section 5.3).
        let mut has_max_age = false;
        for (attribute, bytes) in parts.filter_map(pair) {
            let text = String::from_utf8_lossy(bytes);
            if attribute.eq_ignore_ascii_case(b"path") && text.starts_with('/') {
                cookie.path = text.into_owned();
            } else if attribute.eq_ignore_ascii_case(b"max-age") {
                if let Ok(seconds) = text.parse::<i64>() {
                    let age = Duration::from_secs(seconds.max(0).unsigned_abs());
                    cookie.expires = Some(crate::clock::after(now, Some(age)));
                    has_max_age = true;
                }
            } else if attribute.eq_ignore_ascii_case(b"expires")
                && !has_max_age
                && let Ok(date) = httpdate::parse_http_date(&text)
            {
                let left = date.duration_since(SystemTime::now()).unwrap_or_default();
                cookie.expires = Some(crate::clock::after(now, Some(left)));
            }
        }
        self.store(cookie, now);
    }

    /// Replaces the cookie of the same name and path; one that has expired only removes it.
    fn store(&mut self, cookie: Cookie, now: u64) {
        self.cookies
            .retain(|known| (&known.name, &known.path) != (&cookie.name, &cookie.path));
        if cookie.is_alive(now) && self.cookies.len() < COOKIES_MAX {
            self.cookies.push(cookie);
        }
    }

    /// Adds the cookies for `path` to the request's Cookie field, where they replace those of the same name.
    pub(super) fn add_to(&mut self, request: &mut Request, path: &str, now: u64) {
        self.cookies.retain(|cookie| cookie.is_alive(now));
        let cookies = self.cookies.iter();
        let sent: Vec<&Cookie> = cookies.filter(|cookie| cookie.is_for(path)).collect();
        if sent.is_empty() {
            return;
        }
        let is_cookie = |header: &Header| header.name.eq_ignore_ascii_case("cookie");
        let index = request.headers.iter().position(is_cookie);
        let own_value = match index {
            Some(index) => std::mem::take(&mut request.headers[index].value),
            None => Vec::new(),
        };
        let mut pairs: Vec<Vec<u8>> = Vec::new();
        for part in own_value.split(|byte| *byte == b';') {
            let own = part.trim_ascii();
            let name = pair(own).map(|(name, _)| name);
            let is_replaced = sent.iter().any(|cookie| Some(&cookie.name[..]) == name);
            if !own.is_empty() && !is_replaced {
                pairs.push(own.to_vec());
            }
        }
        for cookie in sent {
            pairs.push([&cookie.name[..], b"=", &cookie.value].concat());
        }
        let value = pairs.join(&b"; "[..]);
        match index {
            Some(index) => request.headers[index].value = value,
            None => request.headers.push(Header {
                name: "Cookie".to_owned(),
                value,
            }),
        }
    }
}

impl Cookie {
    fn is_alive(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| expires > now)
    }

    /// Whether the cookie is sent with a request for `path` (RFC 6265, section 5.1.4).
    fn is_for(&self, path: &str) -> bool {
        match path.strip_prefix(self.path.as_str()) {
            Some(rest) => rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/'),
            None => false,
        }
    }
}

/// The default path of a cookie: the directory of the request's path (RFC 6265, section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}

/// The name and the value of a text such as `name=value`; `None` if it has no `=`.
fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some((text[..equals].trim_ascii(), text[equals + 1..].trim_ascii()))
}

fn is_control(byte: &u8) -> bool {
    *byte < b' ' || *byte == 0x7F
}

/// The most cookies in a jar: RFC 6265, section 6.1, asks for at least 50.
const COOKIES_MAX: usize = 100;

/// The most bytes of a cookie: the same section asks for at least 4096 of name, value and attributes.
const COOKIE_BYTES_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HttpVersion;

    const SECOND: u64 = 1_000_000_000;

    fn sent(jar: &mut Jar, own: Option<&str>, path: &str, now: u64) -> Option<String> {
        let mut request = Request::get(path, HttpVersion::Http11);
        if let Some(own) = own {
            request = request.header("Cookie", own);
        }
        jar.add_to(&mut request, path, now);
        let header = request.headers.into_iter().next()?;
        Some(String::from_utf8(header.value).unwrap())
    }

    #[test]
    fn cookies_come_back_to_their_paths_until_they_expire() {
        let mut jar = Jar::default();
        jar.set(b"sid=1; Path=/app; HttpOnly", "/login", 0);
        jar.set(b"here=2", "/app/page", 0);
        jar.set(
            b"short=3; path=/; max-age=5; expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "/",
            0,
        );
        assert_eq!(
            sent(&mut jar, None, "/app/x", 1).unwrap(),
            "sid=1; here=2; short=3"
        );
        assert_eq!(sent(&mut jar, None, "/apple", 1).unwrap(), "short=3");
        assert_eq!(sent(&mut jar, None, "/", 6 * SECOND), None);
        jar.set(b"sid=4; Path=/app", "/", 0);
        let own = Some("theme=dark; sid=0");
        assert_eq!(
            sent(&mut jar, own, "/app", 9).unwrap(),
            "theme=dark; here=2; sid=4"
        );
        jar.set(
            b"sid=; Path=/app; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "/",
            9,
        );
        assert_eq!(
            sent(&mut jar, own, "/app", 9).unwrap(),
            "theme=dark; sid=0; here=2"
        );
    }

    #[test]
    fn hostile_fields_are_bounded() {
        let mut jar = Jar::default();
        for field in [&b""[..], b"=x", b"novalue", b"a=b\x01", &[b'a'; 9000]] {
            jar.set(field, "/", 0);
        }
        assert_eq!(sent(&mut jar, None, "/", 1), None);
        for number in 0..1000 {
            jar.set(format!("c{number}=1").as_bytes(), "", 0);
        }
        assert_eq!(jar.cookies.len(), COOKIES_MAX);
    }
}
