//! The header fields of requests and responses that are counted: few, those of a browser and of an
//! application, and very many.

use std::sync::LazyLock;
use std::time::SystemTime;

use catamaran_tier::BROWSER_FIELDS;

/// The fields of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestHead {
    /// The fields that a load generator sends.
    Bare,
    /// The fields that Firefox sends, with a session of the first backend.
    Browser,
    /// This many fields of 600 bytes each, which shows whether costs grow in proportion.
    Long { fields: usize },
}

/// The fields of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseHead {
    /// The fields that every response has.
    Bare,
    /// An application's page with a session.
    Application,
    /// An application's page that a cache may store.
    Stored,
}

impl RequestHead {
    /// All fields of the request, `Host` first.
    pub(super) fn fields(self) -> Vec<String> {
        let mut fields = vec![HOST.to_owned()];
        match self {
            Self::Bare => fields.extend(BARE_REQUEST.map(str::to_owned)),
            Self::Browser => fields.extend(BROWSER_FIELDS.map(str::to_owned)),
            Self::Long { fields: count } => fields.extend(long(count - 1)),
        }
        fields
    }
}

impl ResponseHead {
    pub(super) const ALL: [Self; 3] = [Self::Bare, Self::Application, Self::Stored];

    /// All fields of the response; the first three are in each.
    pub(super) fn fields(self) -> impl Iterator<Item = &'static str> {
        let more = match self {
            Self::Bare => &[][..],
            Self::Application => APPLICATION,
            Self::Stored => STORED,
        };
        let bare = [CONTENT_TYPE, CONTENT_LENGTH, &**DATE];
        bare.into_iter().chain(more.iter().copied())
    }
}

fn long(count: usize) -> Vec<String> {
    let field = |number| format!("X-Field-{number}: {}", "v".repeat(600));
    (1..=count).map(field).collect()
}

const HOST: &str = "Host: www.example.org";

const BARE_REQUEST: [&str; 2] = ["User-Agent: catamaran-bench/0.1.0", "Accept: */*"];

const CONTENT_TYPE: &str = "Content-Type: text/html; charset=utf-8";
const CONTENT_LENGTH: &str = "Content-Length: 347";

/// The present time: a response with an older Date would already be stale in the cache.
static DATE: LazyLock<String> =
    LazyLock::new(|| format!("Date: {}", httpdate::fmt_http_date(SystemTime::now())));

const APPLICATION: &[&str] = &[
    "Cache-Control: private, max-age=0, must-revalidate",
    "Set-Cookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF; Path=/shop; HttpOnly; SameSite=Lax",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
    "Content-Security-Policy: default-src 'self'; img-src 'self' data: https:; script-src 'self' 'nonce-abc123'",
    "Vary: Accept-Encoding, Origin",
    "Content-Language: en-US",
    "Expires: 0",
    "Pragma: no-cache",
    "Referrer-Policy: strict-origin-when-cross-origin",
];

/// Response fields that allow storing: `public`, so that a request with a session's cookie also gets the
/// response from the cache.
const STORED: &[&str] = &[
    "Cache-Control: public, max-age=31536000",
    "ETag: \"0123456789abcdef\"",
    "Last-Modified: Sat, 28 Nov 2026 15:00:00 GMT",
    "X-Content-Type-Options: nosniff",
    "X-Frame-Options: DENY",
    "Content-Security-Policy: default-src 'self'; img-src 'self' data: https:; script-src 'self' 'nonce-abc123'",
    "Vary: Accept-Encoding, Origin",
    "Content-Language: en-US",
    "Permissions-Policy: geolocation=(), camera=()",
    "Referrer-Policy: strict-origin-when-cross-origin",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_have_the_fields_that_rows_name() {
        assert_eq!(RequestHead::Bare.fields().len(), 3);
        assert_eq!(RequestHead::Browser.fields().len(), 15);
        assert_eq!(ResponseHead::Bare.fields().count(), 3);
        assert_eq!(ResponseHead::Application.fields().count(), 13);
        assert_eq!(ResponseHead::Stored.fields().count(), 13);
        let long = RequestHead::Long { fields: 100 }.fields();
        let bytes: usize = long.iter().map(String::len).sum();
        assert_eq!((long.len(), bytes >> 10), (100, 59));
    }
}
