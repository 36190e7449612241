//! The keys of `[[route]]` that say what a `status` is answered with.

use std::sync::Arc;

use bytes::Bytes;
use catamaran_proxy::config::RouteText;
use http::{HeaderValue, StatusCode};

use super::files::parse_media_type;
use crate::fill;
use crate::key::{ALL, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::text::TextError;
use crate::value::{Optional, Syntax};

/// The keys as written.
#[derive(Default)]
pub(super) struct RawText {
    text: Option<String>,
    text_type: Option<HeaderValue>,
}

/// Reads the text of a route that answers with `status`; `None`: the route does not answer with a status.
pub(super) fn read(table: &mut Table<'_>, status: Option<StatusCode>) -> Option<Arc<RouteText>> {
    let mut written = RawText::default();
    table.read(KEYS, &mut written);
    let has_text = table.has("text");
    if table.has("text_type") && !has_text {
        let message = "`text_type` has no use without `text`";
        let place = table.place_of("text_type");
        table.push(Finding::fault(message, place).hint("remove it"));
    }
    if !has_text {
        return None;
    }
    let fault = match status {
        None => Some("`text` has no use without `status`".to_owned()),
        Some(status @ (StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT)) => Some(format!(
            "`status` is {}, and such a response has no content",
            status.as_u16()
        )),
        Some(_) => None,
    };
    if let Some(message) = fault {
        let hint = "remove `text`, or answer with another `status`";
        table.push(Finding::fault(message, table.place_of("text")).hint(hint));
    }
    Some(Arc::new(RouteText {
        content: Bytes::from(written.text?),
        media_type: written
            .text_type
            .unwrap_or(HeaderValue::from_static(TYPE_DEFAULT)),
    }))
}

fn parse_text(text: &str) -> Result<String, TextError> {
    let fits = text.len() <= TEXT_MAX;
    fits.then(|| text.to_owned()).ok_or(TextError::Answer)
}

/// The most bytes of a text.
pub(crate) const TEXT_MAX: usize = 64 * 1024;

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
        effect: "The content of the answer with `status`, in place of the page for it. At most 64 KiB; it is sent as it is \
                 written, and braces mean nothing.",
        extremes: "204 and 205 have no content.",
        elsewhere: "nginx `return 200 \"text\"`; HAProxy `http-request return`; Caddy `respond`",
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
