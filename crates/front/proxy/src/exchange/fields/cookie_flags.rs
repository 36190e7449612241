//! Attributes that a route adds to the cookies of its backends: `Secure`, `HttpOnly`, `SameSite`.
//!
//! An attribute that a cookie already has stays as it is, since the application knows its cookies.

use catamaran_message::Fields;
use catamaran_message::name::SET_COOKIE;

use crate::config::{CookieFlags, SameSite};

/// Adds the flags to each `Set-Cookie` that lacks them.
pub(super) fn add(headers: &mut Fields, flags: CookieFlags) {
    if flags == CookieFlags::default() {
        return;
    }
    headers.change(SET_COOKIE, |cookie| flagged(cookie, flags));
}

/// The cookie with its flags; `None` if it already has them all.
fn flagged(cookie: &[u8], flags: CookieFlags) -> Option<Vec<u8>> {
    let has = |name: &str| {
        let mut attributes = cookie.split(|&byte| byte == b';').skip(1);
        attributes.any(|attribute| {
            let end = attribute.iter().position(|&byte| byte == b'=');
            let (own, _) = attribute.split_at(end.unwrap_or(attribute.len()));
            own.trim_ascii().eq_ignore_ascii_case(name.as_bytes())
        })
    };
    let same_site = flags.same_site.map(|same_site| match same_site {
        SameSite::Lax => "SameSite=Lax",
        SameSite::Strict => "SameSite=Strict",
        SameSite::None => "SameSite=None",
    });
    let wanted = [
        ("Secure", flags.secure.then_some("Secure")),
        ("HttpOnly", flags.http_only.then_some("HttpOnly")),
        ("SameSite", same_site),
    ];
    let missing = wanted.into_iter().filter(|(name, _)| !has(name));
    let missing: Vec<&str> = missing.filter_map(|(_, text)| text).collect();
    if missing.is_empty() {
        return None;
    }
    let mut flagged = cookie.trim_ascii_end().to_vec();
    for text in missing {
        flagged.extend_from_slice(b"; ");
        flagged.extend_from_slice(text.as_bytes());
    }
    Some(flagged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_added() {
        let all = CookieFlags {
            secure: true,
            http_only: true,
            same_site: Some(SameSite::Lax),
        };
        let secure = CookieFlags {
            secure: true,
            ..CookieFlags::default()
        };
        for (flags, cookie, expected) in [
            (all, "a=b", "a=b; Secure; HttpOnly; SameSite=Lax"),
            (
                all,
                "a=b; Path=/; httponly",
                "a=b; Path=/; httponly; Secure; SameSite=Lax",
            ),
            (
                all,
                "a=b;SECURE ;SameSite=None",
                "a=b;SECURE ;SameSite=None; HttpOnly",
            ),
            (
                all,
                "Secure=HttpOnly",
                "Secure=HttpOnly; Secure; HttpOnly; SameSite=Lax",
            ),
            (
                all,
                "a=b; Secure; HttpOnly; SameSite=Strict",
                "a=b; Secure; HttpOnly; SameSite=Strict",
            ),
            (secure, "a=b; Max-Age=0", "a=b; Max-Age=0; Secure"),
            (secure, "a=b; Path=/Secure", "a=b; Path=/Secure; Secure"),
            (secure, "a=", "a=; Secure"),
            (CookieFlags::default(), "a=b", "a=b"),
        ] {
            let mut headers = Fields::new();
            headers.append(SET_COOKIE, "first=1; Secure; HttpOnly; SameSite=Lax");
            headers.append(SET_COOKIE, cookie);
            add(&mut headers, flags);
            let first = "first=1; Secure; HttpOnly; SameSite=Lax";
            let expected = [first, expected].map(|cookie| (SET_COOKIE, cookie));
            assert_eq!(headers, Fields::from_iter(expected));
        }
    }
}
