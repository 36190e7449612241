//! A stored response.
//!
//! The fields are kept in the form in which they are sent. A short body follows them in the same memory; a longer one
//! is kept elsewhere.

use bytes::Bytes;
use catamaran_message::name::{DATE, SET_COOKIE};
use catamaran_message::{Fields, Traits};
use http::StatusCode;

use crate::Millis;
use crate::storable::{SetCookie, Terms};
use crate::vary::{RequestFields, Selection};
use crate::verdict::StoredFacts;

/// A stored response, without a long body.
#[derive(Clone, Debug)]
pub struct ObjectHead {
    /// The response's status.
    pub status: StatusCode,
    /// The header fields. A short body follows them in the same memory.
    pub fields: Fields,
    /// The terms on which the response is used.
    pub terms: Terms,
    /// When the response was made, computed from its age.
    pub made: Millis,
    /// When the response was stored, or last found to be valid.
    pub validated: Millis,
    /// The number of purges at the time when the response began.
    pub began: u64,
    /// Details that most responses lack; `None`: there are none.
    pub details: Option<Box<ObjectDetails>>,
}

/// Details of a stored response that most responses lack.
#[derive(Clone, Debug, Default)]
pub struct ObjectDetails {
    /// The reason phrase, if it is not the usual one of the status.
    reason: Option<Bytes>,
    /// The requests that the response answers; `None`: all requests with its key.
    selection: Option<Selection>,
    /// The tags of the response, in the form of [`crate::tags::read`].
    tags: Box<[u8]>,
}

impl ObjectDetails {
    /// Makes the details of a response from an unusual reason phrase, the requests that it answers, and its tags.
    /// `None` if it has none of these.
    #[must_use]
    pub fn new(reason: Option<Bytes>, selection: Selection, tags: Box<[u8]>) -> Option<Box<Self>> {
        let selection = Some(selection).filter(|selection| !selection.names().is_empty());
        if reason.is_none() && selection.is_none() && tags.is_empty() {
            return None;
        }
        Some(Box::new(Self {
            reason,
            selection,
            tags,
        }))
    }

    /// Copies these details with other tags.
    #[must_use]
    pub fn with_tags(details: Option<&Self>, tags: Box<[u8]>) -> Option<Box<Self>> {
        let details = details.cloned().unwrap_or_default();
        Some(Box::new(Self { tags, ..details }))
    }
}

impl ObjectHead {
    /// The facts that decide how the response may be used.
    #[must_use]
    pub fn stored(&self, is_purged: bool) -> StoredFacts<'_> {
        StoredFacts {
            terms: &self.terms,
            made: self.made,
            validated: self.validated,
            is_purged,
        }
    }

    /// The reason phrase, if it is not the usual one of the status.
    #[must_use]
    pub fn reason(&self) -> Option<&Bytes> {
        self.details.as_ref()?.reason.as_ref()
    }

    /// The requests that the response answers; `None`: all requests with its key.
    #[must_use]
    pub fn selection(&self) -> Option<&Selection> {
        self.details.as_ref()?.selection.as_ref()
    }

    /// Whether the response may answer a request with these fields.
    #[must_use]
    pub fn answers(&self, request: &dyn RequestFields) -> bool {
        self.selection()
            .is_none_or(|selection| selection.matches(request))
    }

    /// The tags of the response, in the form of [`crate::tags::read`].
    #[must_use]
    pub fn tags(&self) -> &[u8] {
        self.details.as_ref().map_or(&[], |details| &details.tags)
    }

    /// The bytes of memory that the head takes beyond its own size, including a short body.
    #[must_use]
    pub fn weight(&self) -> usize {
        let details = self.details.as_ref().map_or(0, |details| {
            let reason = details.reason.as_ref().map_or(0, Bytes::len);
            let selection = details.selection.as_ref().map_or(0, Selection::weight);
            size_of::<ObjectDetails>() + reason + selection + details.tags.len()
        });
        self.fields.weight() + details
    }
}

/// Removes the fields that are not stored from a response, and adds `Date` if it is missing.
pub fn clean(headers: &mut Fields, set_cookie: SetCookie, date: Option<&[u8]>) {
    headers.remove_all(NOT_STORED);
    if set_cookie == SetCookie::Strip {
        headers.remove(SET_COOKIE);
    }
    if let Some(date) = date
        && !headers.contains(DATE)
    {
        headers.append(DATE, date);
    }
}

/// The fields that are not stored. Those for framing are among them: codecs remove them, but stored fields are
/// sent unchanged, so a field that was missed would do harm.
const NOT_STORED: Traits = Traits::NOT_STORED.with(Traits::OF_CONNECTION);

#[cfg(test)]
mod tests {
    use catamaran_message::Id;

    use super::*;

    #[test]
    fn these_are_not_stored() {
        let names = Id::all().filter(|id| id.traits().has_any(NOT_STORED));
        let mut names: Vec<&str> = names.map(Id::spelling).collect();
        names.sort_unstable();
        let expected = [
            "Age",
            "Cache-Tag",
            "Connection",
            "Content-Length",
            "Keep-Alive",
            "Proxy-Authenticate",
            "Proxy-Authentication-Info",
            "Proxy-Authorization",
            "Proxy-Connection",
            "Surrogate-Key",
            "TE",
            "Trailer",
            "Transfer-Encoding",
            "Upgrade",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn what_is_not_stored_is_removed() {
        let mut headers = Fields::new();
        let framing = ["content-length", "transfer-encoding", "connection", "te"];
        let others = ["age", "set-cookie", "cache-tag", "proxy-connection", "x"];
        for name in framing.into_iter().chain(others) {
            headers.insert(name, "1");
        }
        clean(&mut headers, SetCookie::Store, Some(b"now"));
        assert!(headers.contains("set-cookie"));
        assert_eq!(headers.text_of(DATE), Some("now"));
        clean(&mut headers, SetCookie::Strip, None);
        assert_eq!(headers, Fields::from_iter([("x", "1"), ("date", "now")]));
    }
}
