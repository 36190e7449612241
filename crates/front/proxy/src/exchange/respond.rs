//! The front's own pages, which are sent when there is no response of a backend, or instead of one.
//!
//! A page says in general terms what happened and has the request's id. Only the log says which
//! backend failed and how. An operator may have another page sent with a status.

use bytes::Bytes;
use catamaran_message::Fields;
use catamaran_message::name::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, DATE, RETRY_AFTER, X_REQUEST_ID,
};
use http::{Method, StatusCode};

use crate::date;
use crate::request_id::RequestId;

/// The header fields of the response with such a page.
pub(crate) fn fields(status: StatusCode, id: RequestId) -> Fields {
    let mut fields = Fields::new();
    fields.reserve_lines(FIELDS_MAX, LINES_MAX);
    fields.append(CONTENT_TYPE, "text/html; charset=utf-8");
    fields.append(CACHE_CONTROL, "no-store");
    if let Some(date) = date::now() {
        fields.append(DATE, date);
    }
    fields.append(X_REQUEST_ID, id.digits());
    match status {
        StatusCode::SERVICE_UNAVAILABLE => {
            fields.append(RETRY_AFTER, "1");
        }
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NO_CONTENT => {
            fields.append(ALLOW, METHODS);
        }
        _ => {}
    }
    fields
}

/// The `Allow` field with these methods.
pub(crate) fn allow(methods: &[Method]) -> Fields {
    let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    Fields::from_iter([(ALLOW, names.join(", "))])
}

/// The front's page for `status`, as HTML with the request's id.
pub(crate) fn page(status: StatusCode, id: RequestId) -> Bytes {
    let phrase = status.canonical_reason().unwrap_or("Error").as_bytes();
    let code = status.as_str().as_bytes();
    let page = [
        b"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
        code,
        b" ",
        phrase,
        b"</title></head>\n<body><h1>",
        code,
        b" ",
        phrase,
        b"</h1>\n<p>",
        explain(status).as_bytes(),
        b"</p>\n<p>Request <code>",
        &id.digits(),
        b"</code></p></body></html>\n",
    ];
    page.concat().into()
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

/// How many fields there is room for at once: the four of every page, `Allow` or `Retry-After`, and some of the route.
const FIELDS_MAX: usize = 8;
/// How many bytes there is room for at once in the lines of these fields.
const LINES_MAX: usize = 512;

/// The methods in `Allow` of a 405, and of the answer to an OPTIONS that is not forwarded. CONNECT
/// and TRACE are refused.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
