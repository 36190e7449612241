//! The front's own pages, which are sent when there is no response of a backend, or instead of one.
//!
//! A page says in general terms what happened and has the request's id. Only the log says which
//! backend failed and how. An operator may have another page sent with a status.

use std::sync::OnceLock;

use bytes::Bytes;
use catamaran_message::Fields;
use catamaran_message::name::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, DATE, RETRY_AFTER, X_REQUEST_ID,
};
use http::{Method, StatusCode};

use crate::date;
use crate::request_id::RequestId;

/// The parts of the page for a status that all requests share, made when the status is first answered.
#[derive(Debug)]
struct PageParts {
    /// The fields, without those of the request.
    fields: Fields,
    /// The body up to the request's id.
    beginning: Vec<u8>,
}

impl PageParts {
    /// The parts of the page for `status`.
    fn of(status: StatusCode) -> &'static Self {
        static PARTS: [OnceLock<PageParts>; STATUSES] = [const { OnceLock::new() }; STATUSES];
        // A status has three digits.
        let index = usize::from(status.as_u16()) % STATUSES;
        PARTS[index].get_or_init(|| Self::new(status))
    }

    fn new(status: StatusCode) -> Self {
        let mut fields = Fields::new();
        fields.append(CONTENT_TYPE, "text/html; charset=utf-8");
        fields.append(CACHE_CONTROL, "no-store");
        match status {
            StatusCode::SERVICE_UNAVAILABLE => fields.append(RETRY_AFTER, "1"),
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NO_CONTENT => {
                fields.append(ALLOW, METHODS);
            }
            _ => {}
        }
        let (code, explanation) = (status.as_str(), explain(status));
        let phrase = status.canonical_reason().unwrap_or("Error");
        let beginning = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{code} {phrase}</title></head>\n\
             <body><h1>{code} {phrase}</h1>\n<p>{explanation}</p>\n<p>Request <code>"
        );
        Self {
            fields,
            beginning: beginning.into(),
        }
    }
}

/// The header fields of the response with such a page.
pub(crate) fn fields(status: StatusCode, id: RequestId) -> Fields {
    let parts = PageParts::of(status);
    let mut fields = parts.fields.with_room(FIELDS_MAX, LINES_MAX);
    if let Some(date) = date::now() {
        fields.append(DATE, date);
    }
    fields.append(X_REQUEST_ID, id.digits());
    fields
}

/// The `Allow` field with these methods.
pub(crate) fn allow(methods: &[Method]) -> Fields {
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    Fields::from_iter([(ALLOW, names.join(", "))])
}

/// The front's page for `status`, as HTML with the request's id.
pub(crate) fn page(status: StatusCode, id: RequestId) -> Bytes {
    let beginning = &PageParts::of(status).beginning[..];
    [beginning, &id.digits(), PAGE_END].concat().into()
}

/// What a page says about its status.
fn explain(status: StatusCode) -> &'static str {
    match status {
        status if status.is_redirection() => "The page is at another address.",
        StatusCode::BAD_REQUEST => "The request is malformed.",
        StatusCode::FORBIDDEN => "Access is not allowed.",
        StatusCode::NOT_FOUND => "There is nothing at this address.",
        StatusCode::METHOD_NOT_ALLOWED => "This method is not supported.",
        StatusCode::REQUEST_TIMEOUT => "The request took too long to arrive.",
        StatusCode::PAYLOAD_TOO_LARGE => "The request's body is too large.",
        StatusCode::URI_TOO_LONG => "The requested address is too long.",
        StatusCode::EXPECTATION_FAILED => "The request's expectation cannot be met.",
        StatusCode::MISDIRECTED_REQUEST => "The request is not for this server.",
        StatusCode::TOO_MANY_REQUESTS => "There were too many requests. Try again later.",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "The request's head is too large.",
        StatusCode::NOT_IMPLEMENTED => "The request asks for something that is not supported.",
        StatusCode::BAD_GATEWAY => "The application gave no valid answer.",
        StatusCode::SERVICE_UNAVAILABLE => "The application is overloaded or down. Try again.",
        StatusCode::GATEWAY_TIMEOUT => "The application did not answer in time.",
        StatusCode::HTTP_VERSION_NOT_SUPPORTED => "This version of HTTP is not supported.",
        _ => "The request was not served.",
    }
}

/// The body after the request's id.
const PAGE_END: &[u8] = b"</code></p></body></html>\n";

/// One more than the largest status.
const STATUSES: usize = 1000;

/// How many fields may be added without moving the others: `Date`, `X-Request-Id`, `Retry-After`, and some of the route.
const FIELDS_MAX: usize = 6;

/// The bytes of their lines.
const LINES_MAX: usize = 256;

/// The methods in `Allow` of a 405, and of the answer to an OPTIONS that is not forwarded. CONNECT
/// and TRACE are refused.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
