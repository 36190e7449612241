//! The keys of `[[route]]` that say what a `status` is answered with.

use std::sync::Arc;

use catamaran_proxy::config::{Placeholder, RouteText, Template};
use http::{HeaderValue, StatusCode};

use super::files::parse_media_type;
use crate::fill;
use crate::key::{ALL, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::text::TextError;
use crate::value::{Optional, Syntax};

/// The values of the keys about an answer's text.
#[derive(Default)]
pub(super) struct RawText {
    text: Option<String>,
    text_type: Option<HeaderValue>,
}

/// Reads the text of a route that answers with `status`; `None`: the route does not answer with a status.
pub(super) fn read(table: &mut Table<'_>, status: Option<StatusCode>) -> Option<Arc<RouteText>> {
    let mut written = RawText::default();
    table.read(KEYS, &mut written);
    if !table.has("text") {
        if table.has("text_type") {
            let message = "`text_type` has no use without `text`";
            table.push(Finding::fault(message, table.place_of("text_type")).hint("remove it"));
        }
        return None;
    }
    let contradiction = match status {
        None => Some("`text` has no use without `status`".to_owned()),
        Some(StatusCode::PARTIAL_CONTENT) => {
            Some("`status` is 206, and `text` is not a part of something".to_owned())
        }
        Some(status @ (StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT)) => Some(format!(
            "`status` is {}, and such a response has no content",
            status.as_u16()
        )),
        Some(_) => None,
    };
    if let Some(message) = contradiction {
        let hint = "remove `text`, or answer with another `status`";
        table.push(Finding::fault(message, table.place_of("text")).hint(hint));
    }
    let text = RouteText {
        content: Template::parse_text(&written.text?, Placeholder::OF_TEXTS),
        media_type: written
            .text_type
            .unwrap_or(HeaderValue::from_static(TYPE_DEFAULT)),
    };
    if text.content.blanks() > BLANKS_MAX {
        let message = format!("`text` has more than {BLANKS_MAX} placeholders");
        table.push(Finding::fault(message, table.place_of("text")).hint("write fewer of them"));
    }
    let media_type = String::from_utf8_lossy(text.media_type.as_bytes());
    if text.content.shows_client() && !is_inert_type(&media_type) {
        let message = "`text` shows what the client sent, and browsers would run scripts in it";
        let hint = "answer with the `text_type` text/plain or application/json, or name only {client_ip}, {request_id} \
                    and {scheme}";
        table.push(Finding::fault(message, table.place_of("text")).hint(hint));
    }
    Some(Arc::new(text))
}

/// Whether browsers never run scripts in content of this type, so that a text of a route may show what clients sent.
#[must_use]
pub fn is_inert_type(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim();
    INERT_TYPES.iter().any(|it| it.eq_ignore_ascii_case(name))
}

fn parse_text(text: &str) -> Result<String, TextError> {
    let fits = text.len() <= TEXT_MAX;
    fits.then(|| text.to_owned()).ok_or(TextError::Answer)
}

/// The most bytes of a text of a route.
pub const TEXT_MAX: usize = 64 * 1024;

/// The most placeholders of a text, or of the value of a field. Each may become as long as the request's head.
pub(super) const BLANKS_MAX: usize = 16;

const INERT_TYPES: [&str; 4] = [
    "text/plain",
    "text/csv",
    "application/json",
    "application/octet-stream",
];

const TYPE_DEFAULT: &str = "text/plain; charset=utf-8";

pub(super) static KEYS: &[Key<RawText>] = &[
    Key {
        name: "text",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a text such as \"ok\"",
                parse: parse_text,
            }),
            RawText.text
        ),
        preset: Preset::Unset("the page for the status is sent"),
        sample: "'{\"status\": \"up\"}'",
        effect: "The content of the answer with `status`, in place of the page for it, of at most 64 KiB. `{host}`, \
                 `{authority}`, `{scheme}`, `{method}`, `{client_ip}`, `{request_id}`, `{path}`, `{query}`, `{search}`, `{and_query}`, \
                 `{path_query}`, `{header:NAME}`, `{query:NAME}`, `{cookie:NAME}`, `{tls_version}`, `{tls_cipher}`, \
                 `{tls_name}`, `{tls_reused}` and the counts of `[route.request_headers]` are filled in, quotes, backslashes and angle \
                 brackets percent-encoded; all other braces stand for themselves, as those of JSON.",
        extremes: "204 and 205 have no content. What the client sent is not shown in `text/html`, in which browsers would run \
                   it.",
        elsewhere: "nginx `return 200 \"text\"`, `stub_status`; HAProxy `http-request return`; Caddy `respond`",
    },
    Key {
        name: "text_type",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a media type such as \"application/json\"",
                parse: parse_media_type,
            }),
            RawText.text_type
        ),
        preset: Preset::Value("\"text/plain; charset=utf-8\""),
        sample: "\"application/json\"",
        effect: "The `Content-Type` of `text`.",
        extremes: "Browsers show `text/html` as a page, and run its scripts.",
        elsewhere: "nginx `default_type`",
    },
];
