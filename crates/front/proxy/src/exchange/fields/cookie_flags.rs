//! Attributes that a route adds to the cookies of its backends: `Secure`, `HttpOnly`, `SameSite`.
//!
//! An attribute that a cookie already has stays as it is, since the application knows its cookies.

use catamaran_message::name::SET_COOKIE;
use catamaran_message::{Fields, pairs};

use crate::config::CookieFlags;

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
        let mut attributes = pairs::pieces(cookie).skip(1);
        attributes.any(|(own, _)| own.eq_ignore_ascii_case(name.as_bytes()))
    };
    let mut missing = String::new();
    if flags.secure && !has("Secure") {
        missing.push_str("; Secure");
    }
    if flags.http_only && !has("HttpOnly") {
        missing.push_str("; HttpOnly");
    }
    if let Some(same_site) = flags.same_site.filter(|_| !has("SameSite")) {
        missing.extend(["; SameSite=", same_site.name()]);
    }
    (!missing.is_empty()).then(|| [cookie.trim_ascii_end(), missing.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SameSite;

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
