//! The lines of a watch: bytes in, events out.

use serde::Deserialize;

use super::ApiObject;
use super::error::{ApiError, ApiErrorKind};

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) resource_version: String,
}

/// What a line of a watch tells.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<T> {
    /// The object is new, or another one than before.
    Set(T),
    /// The object is gone.
    Gone(T),
    /// Nothing but a version, from which a watch may go on.
    Bookmark(Metadata),
}

/// The bytes of a line whose end has not come.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    rest: Vec<u8>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    r#type: &'a str,
}

#[derive(Deserialize)]
struct Line<T> {
    object: T,
}

/// The object of a bookmark, whose other fields are `null`.
#[derive(Deserialize)]
struct Bookmark {
    metadata: Metadata,
}

/// The object of an error.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

impl Lines {
    /// Takes bytes, and adds the events of all lines that they complete. What came before an error counts.
    pub(crate) fn feed<T: ApiObject>(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<Event<T>>,
    ) -> Result<(), ApiError> {
        let mut unread = bytes;
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let (line, next) = unread.split_at(end);
            unread = &next[1..];
            if self.rest.is_empty() {
                events.extend(event(line)?);
            } else {
                self.add(line)?;
                let line = std::mem::take(&mut self.rest);
                events.extend(event(&line)?);
            }
        }
        self.add(unread)
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        if self.rest.len() + bytes.len() > LINE_MAX {
            let text = format!("a line of a watch has more than {LINE_MAX} bytes");
            return Err(ApiError::new(ApiErrorKind::TooLarge, text));
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }
}

/// The event of a line; `None` for an empty one.
fn event<T: ApiObject>(line: &[u8]) -> Result<Option<Event<T>>, ApiError> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let kind: Kind<'_> = parsed(line)?;
    let event = match kind.r#type {
        "ADDED" | "MODIFIED" => Event::Set(object(line)?),
        "DELETED" => Event::Gone(object(line)?),
        "BOOKMARK" => Event::Bookmark(object::<Bookmark>(line)?.metadata),
        "ERROR" => return Err(error(&object(line)?)),
        other => {
            let text = format!("a watch has a line of type {}", shortened(other));
            return Err(ApiError::new(ApiErrorKind::Malformed, text));
        }
    };
    Ok(Some(event))
}

fn object<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, ApiError> {
    parsed::<Line<T>>(line).map(|line| line.object)
}

fn parsed<'l, T: Deserialize<'l>>(line: &'l [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(line).map_err(|error| {
        let text = format!("a line of a watch cannot be read: {error}");
        ApiError::new(ApiErrorKind::Malformed, text)
    })
}

fn error(status: &Status) -> ApiError {
    let Status { code, message } = status;
    let kind = match code {
        410 => ApiErrorKind::Expired,
        _ => ApiErrorKind::Status,
    };
    let text = format!(
        "the API server ends a watch with {code}: {}",
        shortened(message)
    );
    ApiError::new(kind, text)
}

/// The beginning of a text of the server, without control characters.
pub(crate) fn shortened(text: &str) -> String {
    let begin: String = text.trim().chars().take(TEXT_MAX).collect();
    format!("{begin:?}")
}

/// The most bytes of a line: an EndpointSlice with 1000 endpoints has less than 1 MiB.
const LINE_MAX: usize = 4 << 20;

const TEXT_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Thing {
        metadata: Metadata,
    }

    impl ApiObject for Thing {
        fn metadata(&self) -> &Metadata {
            &self.metadata
        }
    }

    /// Feeds bytes in pieces that end at these places; gives the events in words, the error's kind last.
    fn fed(bytes: &[u8], cuts: &[usize]) -> Vec<String> {
        let (mut lines, mut events) = (Lines::default(), Vec::<Event<Thing>>::new());
        let mut outcome = Ok(());
        let mut begin = 0;
        for end in cuts.iter().copied().chain([bytes.len()]) {
            outcome = outcome.and_then(|()| lines.feed(&bytes[begin..end], &mut events));
            begin = end;
        }
        let words = |event: Event<Thing>| match event {
            Event::Set(thing) => format!("set {}", thing.metadata().name),
            Event::Gone(thing) => format!("gone {}", thing.metadata.name),
            Event::Bookmark(metadata) => format!("at {}", metadata.resource_version),
        };
        let error = outcome.err().map(|error| error.kind.token().to_owned());
        events.into_iter().map(words).chain(error).collect()
    }

    const TRANSCRIPT: &str = concat!(
        r#"{"type":"ADDED","object":{"kind":"Thing","metadata":{"name":"é\n","resourceVersion":"3"},"a":[]}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","creationTimestamp":null},"a":null}}"#,
        "\n\n",
        r#"{"object":{"metadata":{"name":"b","resourceVersion":"8"}},"type":"MODIFIED"}"#,
        "\r\n",
        r#"{"type":"DELETED","object":{"metadata":{"name":"b","resourceVersion":"9"}}}"#,
        "\n",
        r#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"message":"too old","code":410}}"#,
        "\n",
    );

    #[test]
    fn a_transcript_is_the_same_wherever_it_is_cut() {
        let bytes = TRANSCRIPT.as_bytes();
        let expected = ["set é\n", "at 7", "set b", "gone b", "expired"];
        for cut in 0..=bytes.len() {
            assert_eq!(fed(bytes, &[cut]), expected, "cut at {cut}");
        }
        let every: Vec<usize> = (1..bytes.len()).collect();
        assert_eq!(fed(bytes, &every), expected, "byte by byte");
    }

    #[test]
    fn a_transcript_that_breaks_off_tells_whole_lines_alone() {
        let bytes = TRANSCRIPT.as_bytes();
        let all = fed(bytes, &[]);
        for end in 0..bytes.len() {
            let told = fed(&bytes[..end], &[]);
            let lines = bytes[..end].iter().filter(|byte| **byte == b'\n').count();
            // One of the lines is empty.
            let expected = lines - usize::from(lines > 2);
            assert_eq!(told, all[..expected], "until {end}");
        }
    }

    #[test]
    fn what_is_no_line_of_a_watch_is_an_error() {
        for (line, expected) in [
            ("x\n", "malformed"),
            ("{}\n", "malformed"),
            ("{\"type\":\"ADDED\"}\n", "malformed"),
            ("{\"type\":\"ADDED\",\"object\":7}\n", "malformed"),
            ("{\"type\":\"OTHER\",\"object\":{}}\n", "malformed"),
            ("{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n", "status"),
            ("\u{0}\n", "malformed"),
        ] {
            assert_eq!(fed(line.as_bytes(), &[]), [expected], "{line:?}");
        }
        let long = vec![b' '; LINE_MAX + 1];
        assert_eq!(fed(&long, &[LINE_MAX]), ["too-large"]);
        assert_eq!(shortened("a\u{1b}[31m"), r#""a\u{1b}[31m""#);
    }
}
