//! The operator's own pages, which are sent instead of the front's pages and of backends' error responses.
//!
//! If a page's file could not be read, the front's own text is sent, and that is counted. The pages are in memory: no
//! file is read while requests are served.

use bytes::Bytes;
use catamaran_message::name::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ALLOW, CONTENT_TYPE, RETRY_AFTER, SET_COOKIE, VARY, WWW_AUTHENTICATE,
};
use catamaran_message::{Fields, Id, ResponseHead};
use catamaran_upstream::Culprit;
use http::StatusCode;

use crate::config::{ErrorPages, Page};
use crate::counters::Reason;
use crate::exchange::respond;
use crate::request_id::RequestId;

/// The error pages that apply to one exchange, and the id that the front's own pages show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages<'s> {
    pages: Option<&'s ErrorPages>,
    id: RequestId,
}

impl<'s> Pages<'s> {
    pub(crate) fn new(pages: Option<&'s ErrorPages>, id: RequestId) -> Self {
        Self { pages, id }
    }

    /// Uses the route's pages instead, if it has any.
    pub(crate) fn prefer(&mut self, of_route: Option<&'s ErrorPages>) {
        self.pages = of_route.or(self.pages);
    }

    /// These pages, if any backend response may have to be replaced (`replace_errors`), else `None`.
    pub(crate) fn replacing(self) -> Option<Self> {
        let has_replaced = self.pages.is_some_and(|pages| !pages.replaced.is_empty());
        has_replaced.then_some(self)
    }

    /// The fields and the body of an answer with `status`, which is given for `reason`, if there is one. Calls
    /// `count` if a page's file could not be read.
    pub(crate) fn answer(
        &self,
        status: StatusCode,
        reason: Option<Reason>,
        count: impl FnOnce(Reason),
    ) -> (Fields, Bytes) {
        let is_maintenance = reason.is_some_and(|reason| reason.token() == MAINTENANCE);
        let page = self.pages.and_then(|pages| match &pages.maintenance {
            Some(page) if is_maintenance => Some(&**page),
            _ => pages.page(status),
        });
        let (mut fields, body) = self.content(page, status, count);
        if is_maintenance {
            fields.insert(RETRY_AFTER, MAINTENANCE_RETRY_AFTER);
        }
        (fields, body)
    }

    /// Replaces a backend's response by a page, if `replace_errors` has its status: changes the head, and returns the
    /// page's body. `None`: the response stays.
    pub(crate) fn replace(
        &self,
        head: &mut ResponseHead,
        count: impl FnOnce(Reason),
    ) -> Option<Bytes> {
        if !self.pages?.replaces(head.status) {
            return None;
        }
        let (mut fields, body) = self.answer(head.status, None, count);
        for name in KEPT {
            fields.remove(name);
            for value in head.headers.get_all(name) {
                fields.append(name, value);
            }
        }
        head.headers = fields;
        head.content_length = Some(body.len() as u64);
        head.reason = None;
        Some(body)
    }

    /// The fields and the body of `page`; of the front's own page if there is none, or if its file could not be read.
    fn content(
        &self,
        page: Option<&Page>,
        status: StatusCode,
        count: impl FnOnce(Reason),
    ) -> (Fields, Bytes) {
        let mut fields = respond::fields(status, self.id);
        if let Some(page) = page {
            if let Some(body) = &page.body {
                fields.insert(CONTENT_TYPE, page.content_type);
                return (fields, body.clone());
            }
            count(Reason::new(Culprit::Front, "error-page-missing"));
        }
        (fields, respond::page(status, self.id))
    }
}

/// The fields that a replaced response keeps: those that the client needs to go on, and those that let a script read
/// the status at all. All others describe the body that is replaced, or the backend.
const KEPT: [Id; 8] = [
    WWW_AUTHENTICATE,
    RETRY_AFTER,
    ALLOW,
    SET_COOKIE,
    ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_ALLOW_CREDENTIALS,
    ACCESS_CONTROL_EXPOSE_HEADERS,
    // Belongs to the fields above; the page is not stored anyway.
    VARY,
];

/// The token of the reason while operators have stopped every backend.
pub(crate) const MAINTENANCE: &str = "maintenance";

/// The value of `Retry-After` during maintenance, in seconds.
const MAINTENANCE_RETRY_AFTER: &str = "60";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::request_id::RequestIds;

    fn page(body: Option<&'static str>) -> Arc<Page> {
        Arc::new(Page {
            file: "page.txt".into(),
            content_type: "text/plain",
            body: body.map(|text| Bytes::from_static(text.as_bytes())),
        })
    }

    fn pages() -> ErrorPages {
        ErrorPages {
            pages: vec![
                (404..=404, page(Some("not here"))),
                (503..=503, page(None)),
                (500..=599, page(Some("broken"))),
            ],
            replaced: vec![500..=599, 404..=404],
            maintenance: None,
        }
    }

    fn never(reason: Reason) {
        panic!("{reason}");
    }

    #[test]
    fn the_first_page_that_has_the_status_is_sent() {
        let of = pages();
        let pages = Pages::new(Some(&of), RequestIds::new().next());
        for (status, expected) in [(404, "not here"), (500, "broken"), (599, "broken")] {
            let status = StatusCode::from_u16(status).unwrap();
            let (fields, body) = pages.answer(status, None, never);
            assert_eq!(
                (&body[..], fields.text_of(CONTENT_TYPE).unwrap()),
                (expected.as_bytes(), "text/plain")
            );
        }
        for status in [StatusCode::BAD_REQUEST, StatusCode::METHOD_NOT_ALLOWED] {
            let (fields, body) = pages.answer(status, None, never);
            assert!(body.starts_with(b"<!doctype html>"), "{status}");
            assert!(
                fields
                    .get(CONTENT_TYPE)
                    .is_some_and(|it| it.starts_with(b"text/html"))
            );
        }
    }

    #[test]
    fn a_page_that_is_missing_is_counted_and_the_text_is_ours() {
        let of = pages();
        let pages = Pages::new(Some(&of), RequestIds::new().next());
        let mut counted = None;
        let (fields, body) = pages.answer(StatusCode::SERVICE_UNAVAILABLE, None, |reason| {
            counted = Some(reason);
        });
        assert_eq!(counted.unwrap().to_string(), "front:error-page-missing");
        assert!(body.starts_with(b"<!doctype html>") && fields.text_of(RETRY_AFTER) == Some("1"));
    }

    #[test]
    fn maintenance_has_a_page_of_its_own_or_that_of_503() {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let stopped = Some(Reason::new(Culprit::Front, MAINTENANCE));
        let of = ErrorPages {
            maintenance: Some(page(Some("back soon"))),
            ..pages()
        };
        let id = RequestIds::new().next();
        let (fields, body) = Pages::new(Some(&of), id).answer(status, stopped, never);
        assert_eq!(
            (&body[..], fields.text_of(RETRY_AFTER).unwrap()),
            (&b"back soon"[..], "60")
        );
        let of = ErrorPages {
            pages: vec![(503..=503, page(Some("later")))],
            ..ErrorPages::default()
        };
        assert_eq!(
            &Pages::new(Some(&of), id).answer(status, stopped, never).1[..],
            b"later"
        );
        let (_, body) = Pages::new(None, id).answer(status, stopped, never);
        assert!(body.starts_with(b"<!doctype html>"));
    }

    #[test]
    fn a_replaced_response_keeps_what_the_client_needs() {
        let of = pages();
        let pages = Pages::new(Some(&of), RequestIds::new().next());
        let mut head = ResponseHead {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            reason: Some(Bytes::from_static(b"NullPointerException")),
            content_length: Some(9999),
            ..ResponseHead::default()
        };
        for (name, value) in [
            ("content-type", "text/html"),
            ("content-encoding", "gzip"),
            ("etag", "\"x\""),
            ("x-powered-by", "Servlet"),
            ("retry-after", "7"),
            ("www-authenticate", "Basic realm=a"),
            ("www-authenticate", "Negotiate"),
            ("access-control-allow-origin", "https://a"),
            ("set-cookie", "a=b"),
        ] {
            head.headers.append(name, value);
        }
        assert_eq!(
            pages.replace(&mut head, never).as_deref(),
            Some(&b"broken"[..])
        );
        let names = ["content-encoding", "etag", "x-powered-by", "allow"];
        assert!(
            names.iter().all(|name| !head.headers.contains(*name)),
            "{head:?}"
        );
        assert_eq!(head.headers.text_of("retry-after"), Some("7"));
        assert_eq!(head.headers.text_of("content-type"), Some("text/plain"));
        assert_eq!(head.headers.get_all("www-authenticate").count(), 2);
        assert_eq!(head.headers.text_of("set-cookie"), Some("a=b"));
        assert_eq!(
            head.headers.text_of("access-control-allow-origin"),
            Some("https://a")
        );
        assert_eq!((head.content_length, head.reason), (Some(6), None));
        // Neither 503's second nor 405's methods are the front's to say for a backend.
        let mut head = ResponseHead {
            status: StatusCode::NOT_FOUND,
            ..ResponseHead::default()
        };
        assert!(pages.replace(&mut head, never).is_some());
        head.status = StatusCode::FORBIDDEN;
        assert!(pages.replace(&mut head, never).is_none());
        let mut head = ResponseHead {
            status: StatusCode::SERVICE_UNAVAILABLE,
            ..ResponseHead::default()
        };
        assert!(pages.replace(&mut head, drop).is_some());
        assert!(!head.headers.contains(RETRY_AFTER));
    }
}
