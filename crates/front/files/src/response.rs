//! Decides what a request for a file gets: the whole file, parts of it, or that the client's copy
//! is still valid.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{BufMut, Bytes, BytesMut};
use catamaran_message::Fields;
use catamaran_message::condition::{self, ConditionOutcome, Validators};
use catamaran_message::name::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, VARY,
};
use catamaran_message::range::{self, ByteRange, RangeSelection};
use http::{HeaderValue, Method, StatusCode};

use crate::config::FilesConfig;
use crate::found::{FileFacts, FoundFile};

/// The response to a request for a file.
#[derive(Debug)]
pub enum FileResponse {
    /// The file or parts of it are sent; for a HEAD, only their head.
    Send(FileSending),
    /// 304 (Not Modified), with these fields.
    NotModified(Fields),
    /// 412 (Precondition Failed), with these fields besides those of the error page.
    Failed(Fields),
    /// 416 (Range Not Satisfiable), with these fields besides those of the error page.
    Unsatisfiable(Fields),
}

/// A response that sends bytes of a file: its head, and the pieces of its body.
#[derive(Debug)]
pub struct FileSending {
    /// The status, 200 or 206.
    pub status: StatusCode,
    /// The header fields, without Content-Length.
    pub headers: Fields,
    /// The length of the body in bytes, also for a HEAD, whose body is not sent.
    pub length: u64,
    /// Whether the bytes are already compressed.
    pub is_compressed: bool,
    pub(crate) segments: VecDeque<Segment>,
}

/// A piece of a response's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Text(Bytes),
    /// `len` bytes of the file, beginning at the offset `from`.
    File {
        from: u64,
        len: u64,
    },
}

impl FileResponse {
    /// Decides the response to a GET or HEAD with these header fields.
    #[must_use]
    pub fn new(method: &Method, headers: &Fields, file: &FoundFile, config: &FilesConfig) -> Self {
        let version = file.version();
        let facts = &version.facts;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = since_epoch.unwrap_or_default().as_secs();
        let modified = modified_until(facts, now);
        let etag = file.entity_tag(config);
        let validators = Validators {
            etag: etag.map(HeaderValue::as_bytes),
            modified,
            is_modified_strong: modified.is_some_and(|time| time + STRONG_AFTER <= now),
        };
        let mut fields = Fields::new();
        if let Some(vary) = vary(file) {
            fields.insert(VARY, vary);
        }
        let outcome = condition::evaluate(method, headers, &validators);
        if outcome == ConditionOutcome::Failed {
            return Self::Failed(fields);
        }
        if let Some(etag) = etag {
            fields.insert(ETAG, etag);
        }
        if let Some(caching) = config.caching(file.media_type()) {
            fields.insert(CACHE_CONTROL, caching);
        }
        if outcome == ConditionOutcome::NotModified {
            return Self::NotModified(fields);
        }
        let parts = range::select(method, headers, &validators, facts.size, PARTS_MAX);
        if parts == RangeSelection::Unsatisfiable {
            // These describe the file, and the error page is sent instead.
            fields.remove(ETAG);
            fields.remove(CACHE_CONTROL);
            fields.insert(CONTENT_RANGE, range::unsatisfied(facts.size));
            return Self::Unsatisfiable(fields);
        }
        if modified.is_some()
            && let Some(date) = &version.date
        {
            fields.insert(LAST_MODIFIED, date);
        }
        fields.insert(ACCEPT_RANGES, "bytes");
        if let Some(coding) = file.coding() {
            fields.insert(CONTENT_ENCODING, coding.token());
        }
        Self::Send(sending(fields, file, parts))
    }
}

/// The time of the file's last change, in seconds since 1970. `None` if it says nothing (1970, as some image builders
/// set it), or is later than `now`: RFC 9110, section 8.8.2.1, forbids a Last-Modified that is later than Date.
fn modified_until(facts: &FileFacts, now: u64) -> Option<u64> {
    let seconds = u64::try_from(facts.modified.0).ok()?;
    (!facts.is_timeless() && seconds <= now).then_some(seconds)
}

/// The response that sends these parts of the file, with `headers` and those that the parts need.
fn sending(mut headers: Fields, file: &FoundFile, parts: RangeSelection) -> FileSending {
    let size = file.facts().size;
    let mut segments = VecDeque::new();
    let mut status = StatusCode::PARTIAL_CONTENT;
    match parts {
        RangeSelection::Parts(ranges) => {
            let boundary = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..));
            let media_type = format!("multipart/byteranges; boundary={boundary}");
            headers.insert(CONTENT_TYPE, media_type);
            segments = multipart(&ranges, file, boundary.as_bytes());
        }
        RangeSelection::Part(range) => {
            headers.insert(CONTENT_TYPE, file.media_type());
            headers.insert(CONTENT_RANGE, range.content_range(size));
            segments.push_back(of_range(&range));
        }
        RangeSelection::Whole | RangeSelection::Unsatisfiable => {
            status = StatusCode::OK;
            headers.insert(CONTENT_TYPE, file.media_type());
            segments.push_back(Segment::File { from: 0, len: size });
        }
    }
    FileSending {
        status,
        headers,
        length: segments.iter().map(Segment::len).sum(),
        is_compressed: file.is_compressed(),
        segments,
    }
}

/// Builds the body of several parts, as `multipart/byteranges` (RFC 9110, section 14.6).
fn multipart(ranges: &[ByteRange], file: &FoundFile, boundary: &[u8]) -> VecDeque<Segment> {
    let mut segments = VecDeque::with_capacity(2 * ranges.len() + 1);
    for range in ranges {
        let mut head = BytesMut::with_capacity(PART_HEAD);
        head.put_slice(b"\r\n--");
        head.put_slice(boundary);
        head.put_slice(b"\r\nContent-Type: ");
        head.put_slice(file.media_type().as_bytes());
        head.put_slice(b"\r\nContent-Range: ");
        head.put_slice(range.content_range(file.facts().size).as_bytes());
        head.put_slice(b"\r\n\r\n");
        segments.push_back(Segment::Text(head.freeze()));
        segments.push_back(of_range(range));
    }
    let end = [b"\r\n--", boundary, b"--\r\n"].concat();
    segments.push_back(Segment::Text(end.into()));
    segments
}

fn of_range(range: &ByteRange) -> Segment {
    Segment::File {
        from: range.first(),
        len: range.len(),
    }
}

impl Segment {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// Replaces a segment of the file by its bytes, taken from all bytes of the file.
    pub(crate) fn fill(&mut self, bytes: &Bytes) {
        if let Self::File { from, len } = *self {
            let end = from.saturating_add(len).min(bytes.len() as u64);
            let index = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
            *self = Self::Text(bytes.slice(index(from.min(end))..index(end)));
        }
    }
}

fn vary(file: &FoundFile) -> Option<&'static str> {
    Some(match (file.varies_by_coding, file.named.is_fallback) {
        (false, false) => return None,
        (true, false) => "Accept-Encoding",
        (false, true) => "Accept",
        (true, true) => "Accept, Accept-Encoding",
    })
}

/// The most ranges that are sent in one response; a request for more gets the whole file.
const PARTS_MAX: usize = 16;

/// The seconds after which a file can no longer change within the second of its time.
const STRONG_AFTER: u64 = 2;

/// The room for the head of a part, in bytes; more than is usually needed.
const PART_HEAD: usize = 192;

#[cfg(test)]
pub(crate) mod tests;
