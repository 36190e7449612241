//! Response heads: as received from a server, and as sent to a client.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::{BodyLength, FieldLines, field};

/// A response head as received, without what concerns one connection only: the hop-by-hop fields,
/// those that Connection names, Content-Length and Transfer-Encoding are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status, 100 to 999; 101 only if it was asked for, and then Upgrade is among the fields.
    pub status: StatusCode,
    /// The reason phrase. `None` if there was none, or one that says no more than the status.
    pub reason: Option<Bytes>,
    /// The end-to-end fields.
    pub headers: HeaderMap,
    /// Further fields of a response that is stored, sent as they are behind the others. A head that was received has
    /// none; whoever looks for fields or changes them calls [`Self::expand`] first.
    pub lines: FieldLines,
    /// The announced length. For a response to HEAD and for 304 it is the length that a GET would
    /// have got. `None` if the length is not known before the end, for 1xx and for 204.
    pub content_length: Option<u64>,
}

impl ResponseHead {
    /// Becomes empty; what is left is memory for the next head.
    pub fn clear(&mut self) {
        self.status = StatusCode::OK;
        self.reason = None;
        field::clear(&mut self.headers);
        if !self.lines.is_empty() {
            self.lines = FieldLines::default();
        }
        self.content_length = None;
    }

    /// Moves the fields that are lines into the map.
    #[inline]
    pub fn expand(&mut self) {
        if !self.lines.is_empty() {
            let lines = std::mem::take(&mut self.lines);
            lines.append_to(&mut self.headers);
        }
    }
}

/// A response head to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The final status, 200 to 999, or 101 if the connection becomes a tunnel.
    pub status: StatusCode,
    /// The reason phrase; `None` is the usual one of the status. One with a control byte is replaced
    /// by the usual one (HTTP/1.1) or refused (AJP13).
    pub reason: Option<&'a [u8]>,
    /// The fields. Those that concern one connection only are not written, nor is Content-Length:
    /// framing and reuse are the codec's.
    pub headers: &'a HeaderMap,
    /// Further fields, written after `headers` as they are: what a server adds to every response.
    pub extra: &'a [(&'a HeaderName, &'a HeaderValue)],
    /// How long the body is. A known length is announced and binding; for responses that have no
    /// body (to HEAD, 304) it is announced all the same.
    pub body: BodyLength,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_fields_behind_the_others() {
        let field = |name: &'static str| {
            HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("1"))])
        };
        let mut head = ResponseHead {
            headers: field("a"),
            lines: FieldLines::new(&field("b")),
            ..ResponseHead::default()
        };
        head.expand();
        assert!(head.lines.is_empty());
        let names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["a", "b"]);
        head.lines = FieldLines::new(&field("c"));
        head.clear();
        assert_eq!(head, ResponseHead::default());
    }
}
