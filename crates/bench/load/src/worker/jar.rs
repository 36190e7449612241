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
        let mut has_age = false;
        for (name, value) in parts.filter_map(pair) {
            let value = String::from_utf8_lossy(value);
            if name.eq_ignore_ascii_case(b"path") && value.starts_with('/') {
                cookie.path = value.into_owned();
            } else if name.eq_ignore_ascii_case(b"max-age") {
                if let Ok(seconds) = value.parse::<i64>() {
                    let age = Duration::from_secs(seconds.max(0).unsigned_abs());
                    cookie.expires = Some(crate::clock::after(now, Some(age)));
                    has_age = true;
                }
            } else if name.eq_ignore_ascii_case(b"expires")
                && !has_age
                && let Ok(date) = httpdate::parse_http_date(&value)
            {
                let left = date.duration_since(SystemTime::now()).unwrap_or_default();
                cookie.expires = Some(crate::clock::after(now, Some(left)));
            }
        }
        self.store(cookie, now);
    }

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
        let sent: Vec<&Cookie> = self.cookies.iter().filter(|it| it.is_for(path)).collect();
        if sent.is_empty() {
            return;
        }
        let is_cookie = |header: &Header| header.name.eq_ignore_ascii_case("cookie");
        let place = request.headers.iter().position(is_cookie);
        let taken = place.map(|place| std::mem::take(&mut request.headers[place].value));
        let own_value = taken.unwrap_or_default();
        let own = own_value
            .split(|byte| *byte == b';')
            .map(<[u8]>::trim_ascii);
        let is_new = |text: &&[u8]| {
            let name = pair(text).map(|(name, _)| name);
            !text.is_empty() && !sent.iter().any(|cookie| Some(&cookie.name[..]) == name)
        };
        let mut pairs: Vec<Vec<u8>> = own.filter(is_new).map(<[u8]>::to_vec).collect();
        pairs.extend(
            sent.iter()
                .map(|it| [&it.name[..], b"=", &it.value].concat()),
        );
        let value = pairs.join(&b"; "[..]);
        match place {
            Some(place) => request.headers[place].value = value,
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
        let rest = path.strip_prefix(self.path.as_str());
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        })
    }
}

/// The default path of a cookie: the directory of the request's path (RFC 6265, section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(end) => &path[..end],
    }
}

fn pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'=')?;
    Some((text[..at].trim_ascii(), text[at + 1..].trim_ascii()))
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
