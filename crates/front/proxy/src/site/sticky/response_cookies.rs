//! Session cookies of responses: those with which a backend begins sessions, and the front's own.

use bytes::Bytes;
use catamaran_message::name::{CACHE_CONTROL, SET_COOKIE};
use catamaran_message::{Fields, pairs};
use http::StatusCode;

use super::own_cookie::values_of;
use crate::config::{StickyConfig, StickyCookie, UpstreamConfig};

/// The session cookies that responses of an upstream may have.
#[derive(Debug)]
pub(crate) struct ResponseCookies {
    /// Names of the cookies that hold session ids.
    sessions: Vec<String>,
    /// For each member, the `Set-Cookie` value of the front's own cookie: without `Secure`, then
    /// with it. Empty if the front has no own cookie.
    own: Box<[[Bytes; 2]]>,
}

impl ResponseCookies {
    pub(super) fn new(config: &StickyConfig, upstream: &UpstreamConfig) -> Self {
        let mut own = Vec::new();
        if let Some(cookie) = &config.set_cookie {
            for value in values_of(cookie, upstream) {
                own.push([field(cookie, &value, false), field(cookie, &value, true)]);
            }
        }
        Self {
            sessions: config.cookies.clone(),
            own: own.into(),
        }
    }

    /// The ids of the sessions that a response begins by its `Set-Cookie` fields.
    pub(crate) fn begun<'r>(&'r self, headers: &'r Fields) -> impl Iterator<Item = &'r [u8]> {
        let cookies = headers.get_all(SET_COOKIE).flat_map(|field| {
            let pair = field.split(|&byte| byte == b';').next();
            pairs::named(pair.unwrap_or_default(), &self.sessions)
        });
        // An empty value ends a session.
        cookies.map(|(_, id)| id).filter(|id| !id.is_empty())
    }

    /// The `Set-Cookie` value that names a member; `None`: the front has no own cookie. `secure`
    /// adds `Secure`.
    pub(crate) fn own(&self, member: usize, secure: bool) -> Option<&Bytes> {
        Some(&self.own.get(member)?[usize::from(secure)])
    }
}

fn field(config: &StickyCookie, value: &str, secure: bool) -> Bytes {
    let StickyCookie {
        name,
        path,
        same_site,
        ..
    } = config;
    let same_site = same_site.name();
    let end = if secure { "; Secure" } else { "" };
    format!("{name}={value}; Path={path}; HttpOnly; SameSite={same_site}{end}").into()
}

/// Whether a response may carry a cookie for one client; `false` if a shared cache could give it to
/// others.
pub(crate) fn may_carry_cookie(status: StatusCode, headers: &Fields) -> bool {
    let is_shared = |directive: &[u8]| {
        let mut parts = directive.split(|&byte| byte == b'=');
        let name = parts.next().unwrap_or_default().trim_ascii();
        name.eq_ignore_ascii_case(b"public") || name.eq_ignore_ascii_case(b"s-maxage")
    };
    status != StatusCode::NOT_MODIFIED && !headers.elements(CACHE_CONTROL).any(is_shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_for_shared_caches_get_no_cookie() {
        for (control, may) in [
            ("", true),
            ("private, max-age=5", true),
            ("no-store", true),
            ("max-age=5, public", false),
            ("Public", false),
            ("S-MaxAge = 5", false),
            ("max-age=5,s-maxage=7", false),
            ("x=public-key", true),
        ] {
            let mut headers = Fields::new();
            headers.append(CACHE_CONTROL, "max-age=1");
            headers.append(CACHE_CONTROL, control);
            assert_eq!(may_carry_cookie(StatusCode::OK, &headers), may, "{control}");
            assert!(!may_carry_cookie(StatusCode::NOT_MODIFIED, &headers));
        }
    }
}
