//! Decides whether a response may be stored, and on which terms it is then used (RFC 9111, section 3).

use catamaran_message::field::begins;
use catamaran_message::name::{CONTENT_TYPE, ETAG, IF_RANGE, LAST_MODIFIED, RANGE, SET_COOKIE};
use catamaran_message::{Field, Fields, Traits};
use http::{Method, StatusCode};

use crate::directives::Directives;
use crate::freshness::{self, FreshnessRules, LifetimeSource};
use crate::{Millis, media, tags, vary};

/// The kinds of credentials that a request has; its response may be meant for their owner only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Whether the request has the field `Authorization`.
    pub authorization: bool,
    /// Whether the request has a session, a client certificate or a user's name.
    pub session: bool,
}

impl Credentials {
    /// Whether the request has any credentials.
    #[must_use]
    pub fn any(self) -> bool {
        self.authorization || self.session
    }
}

/// How much of its response a request asks for. To a range or a condition a backend may answer with something
/// that is useless to others: a part, an error, or fields without a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestScope {
    /// The request asks for the whole response.
    #[default]
    Whole,
    /// The request has a condition, or asks for the difference to what the client has (RFC 3229).
    Condition,
    /// The request asks for a part.
    Range,
}

impl RequestScope {
    /// The scope by one field of a request. Names that begin with `If-` are conditions.
    #[must_use]
    pub fn of_field(field: Field<'_>) -> Self {
        let is_condition = || begins(field.name(), b"if-") || field.is("if") || field.is("a-im");
        match field.id() {
            Some(RANGE | IF_RANGE) => Self::Range,
            Some(id) if id.traits().has_any(Traits::CONDITION) => Self::Condition,
            // A condition that the front does not know, such as those of WebDAV.
            None if is_condition() => Self::Condition,
            _ => Self::Whole,
        }
    }

    /// The scope by all fields of a request: the most limited one.
    #[must_use]
    pub fn of(headers: &Fields) -> Self {
        headers.iter().map(Self::of_field).max().unwrap_or_default()
    }
}

/// Facts of a request that decide whether its response may be stored.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'r> {
    /// The request's method.
    pub method: &'r Method,
    /// The request's path.
    pub path: &'r [u8],
    /// Whether the request has a query.
    pub has_query: bool,
    /// Whether the request says `no-store`.
    pub no_store: bool,
    /// How much of the response the backend was asked for.
    pub scope: RequestScope,
    /// The credentials in the request; its response may be meant for their owner only.
    pub credentials: Credentials,
}

/// What happens to a response with `Set-Cookie`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SetCookie {
    /// The response is not stored; this is the default.
    #[default]
    Refuse,
    /// The response is stored without the cookie.
    Strip,
    /// The response is stored with the cookie, which all clients then get.
    Store,
}

/// Facts of a response that decide whether it may be stored.
#[derive(Clone, Copy, Debug)]
pub struct ResponseFacts<'r> {
    /// The response's status.
    pub status: StatusCode,
    /// The response's header fields.
    pub headers: &'r Fields,
    /// Whether the framing says where the response ends. If not, a response that was cut looks complete.
    pub is_framed: bool,
    /// When the response's head arrived.
    pub arrived: Millis,
}

/// The terms on which a stored response is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The seconds for which the response is fresh.
    pub lifetime: u32,
    /// Who decided the lifetime.
    pub source: LifetimeSource,
    /// The seconds for which the response is used stale while a new one is fetched.
    pub stale_while_revalidate: u32,
    /// The seconds for which the response is used stale if no fresh one can be fetched.
    pub stale_if_error: u32,
    /// Whether the response must be validated at each use.
    pub no_cache: bool,
    /// Whether the response must never be used stale.
    pub never_stale: bool,
    /// Whether requests with a session may get the response, too.
    pub for_sessions: bool,
    /// Whether requests with `Authorization` may get the response, too.
    pub for_authorization: bool,
}

impl Terms {
    /// Whether a request with these credentials may get the response.
    #[must_use]
    pub fn admit(&self, credentials: Credentials) -> bool {
        (self.for_sessions || !credentials.session)
            && (self.for_authorization || !credentials.authorization)
    }
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request is not a GET.
    Method,
    /// The request asks for a part.
    Range,
    /// The request has a condition.
    Condition,
    /// The status is one that is never stored, because it means nothing to clients that did not ask for a part
    /// or with a condition.
    Status,
    /// The request says `no-store`.
    RequestNoStore,
    /// The response says `no-store`.
    NoStore,
    /// The response says `private`.
    Private,
    /// The response says `must-understand`, and its status is unknown to the front.
    NotUnderstood,
    /// The response's `Vary` names something that cannot be compared.
    Vary,
    /// The response has more tags than are kept, so a purge by one of the others would miss it.
    Tags,
    /// The response sets a cookie.
    SetCookie,
    /// The request has a session, and the response does not say that it is for others, too.
    Session,
    /// The request has `Authorization`, and the response does not say that it is for others, too.
    Authorization,
    /// The response's `Content-Type` does not match the extension in its path.
    TypeMismatch,
    /// The response's framing does not say where it ends.
    Unframed,
    /// The response has no lifetime, and could not be validated.
    NoFreshness,
}

impl Refusal {
    /// The refusal as a token, for logs and counters.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Range => "range",
            Self::Condition => "condition",
            Self::Status => "status",
            Self::RequestNoStore => "request-no-store",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::NotUnderstood => "not-understood",
            Self::Vary => "vary",
            Self::Tags => "tags",
            Self::SetCookie => "set-cookie",
            Self::Session => "session",
            Self::Authorization => "authorization",
            Self::TypeMismatch => "type-mismatch",
            Self::Unframed => "unframed",
            Self::NoFreshness => "no-freshness",
        }
    }
}

/// Decides whether a response is stored, and returns the terms on which it is used.
///
/// # Errors
/// Why the response is not stored.
pub fn judge(
    request: &RequestFacts<'_>,
    response: &ResponseFacts<'_>,
    rules: &FreshnessRules,
    set_cookie: SetCookie,
) -> Result<Terms, Refusal> {
    let ResponseFacts {
        status, headers, ..
    } = *response;
    if *request.method != Method::GET {
        return Err(Refusal::Method);
    }
    match request.scope {
        RequestScope::Whole => {}
        RequestScope::Condition => return Err(Refusal::Condition),
        RequestScope::Range => return Err(Refusal::Range),
    }
    if matches!(status.as_u16(), 100..=199 | 206 | 226 | 304 | 412 | 416) {
        return Err(Refusal::Status);
    }
    if request.no_store {
        return Err(Refusal::RequestNoStore);
    }
    let (directives, is_targeted) = freshness::directives(headers, rules);
    check_directives(&directives, status)?;
    if vary::names(headers).is_err() {
        return Err(Refusal::Vary);
    }
    if tags::read(headers).is_none() {
        return Err(Refusal::Tags);
    }
    let sets_cookie = headers.contains(SET_COOKIE);
    if sets_cookie && set_cookie == SetCookie::Refuse {
        return Err(Refusal::SetCookie);
    }
    let terms = terms(request, response, &directives, is_targeted, rules);
    if request.credentials.session && !terms.for_sessions {
        return Err(Refusal::Session);
    }
    if request.credentials.authorization && !terms.for_authorization {
        return Err(Refusal::Authorization);
    }
    let content_type = headers.get(CONTENT_TYPE);
    if status.is_success() && !media::fits(request.path, content_type) {
        return Err(Refusal::TypeMismatch);
    }
    if !response.is_framed {
        return Err(Refusal::Unframed);
    }
    if !is_of_use(&terms, status, headers) {
        return Err(Refusal::NoFreshness);
    }
    Ok(terms)
}

/// Checks the directives of a response that forbid storing it.
fn check_directives(directives: &Directives, status: StatusCode) -> Result<(), Refusal> {
    let is_known = status.canonical_reason().is_some();
    if directives.must_understand && !is_known {
        return Err(Refusal::NotUnderstood);
    }
    // With `must-understand`, `no-store` is for caches that do not know the status (RFC 9111, section 5.2.2.3).
    if directives.no_store && !directives.must_understand {
        return Err(Refusal::NoStore);
    }
    if directives.private {
        return Err(Refusal::Private);
    }
    Ok(())
}

/// The terms on which a response is used if it is stored.
fn terms(
    request: &RequestFacts<'_>,
    response: &ResponseFacts<'_>,
    directives: &Directives,
    is_targeted: bool,
    rules: &FreshnessRules,
) -> Terms {
    let lifetime = freshness::lifetime(
        response.status,
        response.headers,
        directives,
        is_targeted,
        rules,
        !request.has_query && !request.credentials.any(),
        response.arrived,
    );
    let is_for_all = directives.public
        || directives.s_maxage.is_some()
        || is_targeted && directives.max_age.is_some();
    let forbids_stale =
        directives.must_revalidate || directives.proxy_revalidate || directives.no_cache;
    // `s-maxage` means `proxy-revalidate`, unless the same response names how stale it may be.
    let has_s_maxage = directives.s_maxage.is_some();
    let stale_for = |named: Option<u32>, by_rule: u32| match named {
        _ if forbids_stale => 0,
        Some(seconds) => seconds,
        None if has_s_maxage => 0,
        None => by_rule,
    };
    let while_revalidate = directives.stale_while_revalidate;
    let if_error = directives.stale_if_error;
    let names_stale = while_revalidate.is_some() || if_error.is_some();
    Terms {
        lifetime: lifetime.seconds,
        source: lifetime.source,
        stale_while_revalidate: stale_for(while_revalidate, rules.stale_while_revalidate),
        stale_if_error: stale_for(if_error, rules.stale_if_error),
        no_cache: directives.no_cache,
        never_stale: forbids_stale || has_s_maxage && !names_stale,
        for_sessions: is_for_all,
        for_authorization: is_for_all || directives.must_revalidate,
    }
}

/// Whether a stored response could answer any later request.
fn is_of_use(terms: &Terms, status: StatusCode, headers: &Fields) -> bool {
    let lasts = terms.lifetime > 0 || terms.stale_while_revalidate > 0 || terms.stale_if_error > 0;
    let validates = headers.contains(ETAG) || headers.contains(LAST_MODIFIED);
    if terms.source == LifetimeSource::Unknown {
        freshness::is_heuristic(status) && validates
    } else if terms.no_cache {
        validates
    } else {
        lasts || validates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = 784_111_777_000;

    fn judged(
        request: RequestFacts<'_>,
        status: u16,
        fields: &[(&'static str, &'static str)],
        set_cookie: SetCookie,
    ) -> Result<Terms, Refusal> {
        let headers = Fields::from_iter(fields.iter().copied());
        let response = ResponseFacts {
            status: StatusCode::from_u16(status).unwrap(),
            headers: &headers,
            is_framed: true,
            arrived: NOW,
        };
        judge(&request, &response, &FreshnessRules::default(), set_cookie)
    }

    const PLAIN: RequestFacts<'static> = RequestFacts {
        method: &Method::GET,
        path: b"/",
        has_query: false,
        no_store: false,
        scope: RequestScope::Whole,
        credentials: Credentials {
            authorization: false,
            session: false,
        },
    };

    fn refused(status: u16, fields: &[(&'static str, &'static str)]) -> Option<Refusal> {
        judged(PLAIN, status, fields, SetCookie::Refuse).err()
    }

    #[test]
    fn what_says_so_is_not_stored() {
        let fresh = ("cache-control", "max-age=60");
        for (status, fields, expected) in [
            (200, vec![fresh], None),
            (299, vec![fresh], None),
            (500, vec![fresh], None),
            (200, vec![], Some(Refusal::NoFreshness)),
            (200, vec![("etag", "\"a\"")], None),
            (302, vec![("etag", "\"a\"")], Some(Refusal::NoFreshness)),
            (
                200,
                vec![("cache-control", "no-cache")],
                Some(Refusal::NoFreshness),
            ),
            (
                200,
                vec![("cache-control", "no-cache"), ("etag", "\"a\"")],
                None,
            ),
            (206, vec![fresh], Some(Refusal::Status)),
            (304, vec![fresh], Some(Refusal::Status)),
            (
                200,
                vec![("cache-control", "no-store, max-age=1")],
                Some(Refusal::NoStore),
            ),
            (
                200,
                vec![("cache-control", "private=\"x\", max-age=1")],
                Some(Refusal::Private),
            ),
            (
                200,
                vec![("cache-control", "no-store, must-understand, max-age=1")],
                None,
            ),
            (
                299,
                vec![("cache-control", "must-understand, max-age=1")],
                Some(Refusal::NotUnderstood),
            ),
            (200, vec![fresh, ("vary", "*")], Some(Refusal::Vary)),
            (
                200,
                vec![fresh, ("set-cookie", "a=b")],
                Some(Refusal::SetCookie),
            ),
            (
                200,
                vec![
                    ("cdn-cache-control", "max-age=9"),
                    ("cache-control", "no-store"),
                ],
                None,
            ),
            (
                200,
                vec![("cdn-cache-control", "no-store"), fresh],
                Some(Refusal::NoStore),
            ),
        ] {
            assert_eq!(refused(status, &fields), expected, "{status} {fields:?}");
        }
        let cookie = [fresh, ("set-cookie", "a=b")];
        assert!(judged(PLAIN, 200, &cookie, SetCookie::Strip).is_ok());
    }

    #[test]
    fn a_response_for_one_user_is_not_stored_for_others() {
        let session = Credentials {
            session: true,
            ..Credentials::default()
        };
        let authorization = Credentials {
            authorization: true,
            ..Credentials::default()
        };
        for (line, for_session, for_authorization) in [
            ("max-age=60", false, false),
            ("max-age=60, public", true, true),
            ("s-maxage=60", true, true),
            ("max-age=60, must-revalidate", false, true),
        ] {
            for (credentials, expected) in
                [(session, for_session), (authorization, for_authorization)]
            {
                let request = RequestFacts {
                    credentials,
                    ..PLAIN
                };
                let stored = judged(request, 200, &[("cache-control", line)], SetCookie::Refuse);
                assert_eq!(stored.is_ok(), expected, "{line} {credentials:?}");
                let terms = judged(PLAIN, 200, &[("cache-control", line)], SetCookie::Refuse);
                assert_eq!(terms.unwrap().admit(credentials), expected, "{line}");
            }
        }
    }

    #[test]
    fn requests_and_kinds_are_looked_at() {
        let fresh = [("cache-control", "max-age=60")];
        let with = |request| judged(request, 200, &fresh, SetCookie::Refuse).err();
        let head = RequestFacts {
            method: &Method::HEAD,
            ..PLAIN
        };
        let no_store = RequestFacts {
            no_store: true,
            ..PLAIN
        };
        for (name, expected) in [
            ("range", Some(Refusal::Range)),
            ("if-range", Some(Refusal::Range)),
            ("if-none-match", Some(Refusal::Condition)),
            ("If-Schedule-Tag-Match", Some(Refusal::Condition)),
            ("IF", Some(Refusal::Condition)),
            ("A-IM", Some(Refusal::Condition)),
            ("iffy", None),
            ("accept", None),
        ] {
            let headers = Fields::from_iter([(name, "x")]);
            let request = RequestFacts {
                scope: RequestScope::of(&headers),
                ..PLAIN
            };
            assert_eq!(with(request), expected, "{headers:?}");
        }
        let script = RequestFacts {
            path: b"/account/x.js",
            ..PLAIN
        };
        assert_eq!(with(head), Some(Refusal::Method));
        assert_eq!(with(no_store), Some(Refusal::RequestNoStore));
        assert_eq!(with(script), Some(Refusal::TypeMismatch));
        let query = RequestFacts {
            has_query: true,
            ..PLAIN
        };
        let estimated = [("last-modified", "Sun, 06 Nov 1994 08:32:57 GMT")];
        let of = |request| judged(request, 200, &estimated, SetCookie::Refuse).unwrap();
        assert_eq!(of(PLAIN).source, LifetimeSource::Heuristic);
        assert_eq!(of(query).source, LifetimeSource::Unknown);
    }

    #[test]
    fn stale_use_is_forbidden_or_named() {
        let of = |line| judged(PLAIN, 200, &[("cache-control", line)], SetCookie::Refuse).unwrap();
        let named = of("max-age=1, stale-while-revalidate=5, stale-if-error=7");
        assert_eq!((named.stale_while_revalidate, named.stale_if_error), (5, 7));
        assert!(!named.never_stale);
        let forbidden = of("max-age=1, stale-if-error=7, must-revalidate");
        assert_eq!((forbidden.stale_if_error, forbidden.never_stale), (0, true));
        assert!(of("s-maxage=1").never_stale);
        assert!(!of("s-maxage=1, stale-if-error=7").never_stale);
    }
}
