//! Reads the host of a request quickly: mostly it is the one of the request before.
//!
//! Reading a host looks at each of its bytes several times, which is a large part of the cost of a small head. So each
//! thread remembers one host. The result depends on the text alone.

use std::cell::RefCell;

use bytes::Bytes;

use crate::authority::Authority;
use crate::error::InvalidHost;

/// Reads `text`, the value of a Host field that is part of `head`, as [`Authority::decode`] does.
///
/// # Errors
/// [`InvalidHost`] if it is malformed.
pub fn read(text: &[u8], head: &Bytes) -> Result<Authority, InvalidHost> {
    recall_or(text, || Authority::decode(text, head))
}

/// Reads a host from a text that is no part of a head; the text is copied if necessary.
///
/// # Errors
/// [`InvalidHost`] if it is malformed.
pub fn read_apart(text: &[u8]) -> Result<Authority, InvalidHost> {
    recall_or(text, || Authority::parse(&Bytes::copy_from_slice(text)))
}

/// Returns the host that this thread remembers, if `text` is its text; else reads it.
fn recall_or(
    text: &[u8],
    read: impl FnOnce() -> Result<Authority, InvalidHost>,
) -> Result<Authority, InvalidHost> {
    MEMORY.with_borrow_mut(|memory| {
        if let Some(authority) = memory.recall(text) {
            return Ok(authority);
        }
        let authority = read()?;
        memory.note(text);
        Ok(authority)
    })
}

thread_local! {
    static MEMORY: RefCell<Memory> = const { RefCell::new(Memory { known: None, others: 0 }) };
}

/// The host that a thread remembers.
struct Memory {
    known: Option<KnownHost>,
    /// The number of requests in a row that asked for other hosts.
    others: u8,
}

struct KnownHost {
    text: Bytes,
    authority: Authority,
}

impl Memory {
    fn recall(&mut self, text: &[u8]) -> Option<Authority> {
        let known = self.known.as_ref().filter(|known| known.text == text)?;
        self.others = 0;
        Some(known.authority.clone())
    }

    /// Counts a request for another host than the known one. That host is remembered if none is known, or after
    /// [`OTHERS_MAX`] such requests in a row.
    fn note(&mut self, text: &[u8]) {
        self.others += 1;
        if self.known.is_some() && self.others < OTHERS_MAX {
            return;
        }
        // A copy: a slice would keep the whole head in memory.
        let text = Bytes::copy_from_slice(text);
        let known = Authority::parse(&text)
            .ok()
            .map(|authority| KnownHost { text, authority });
        *self = Self { known, others: 0 };
    }
}

/// After this number of requests in a row for other hosts, another one is remembered.
const OTHERS_MAX: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Authority, InvalidHost> {
        let head = Bytes::from(format!("Host: {text}\r\n"));
        super::read(&head[6..6 + text.len()], &head)
    }

    fn is_known(text: &str) -> bool {
        MEMORY.with_borrow_mut(|memory| memory.recall(text.as_bytes()).is_some())
    }

    #[test]
    fn what_is_remembered_is_what_is_read() {
        for text in ["a.test", "A.Test:81", "[::1]:80", "a.test.", "a.test:"] {
            let authority = Authority::parse(&Bytes::from(text)).unwrap();
            for _ in 0..2 * OTHERS_MAX {
                assert_eq!(read(text).as_ref(), Ok(&authority), "{text}");
            }
            assert!(is_known(text), "{text}");
            assert_eq!(read_apart(text.as_bytes()), read(text), "{text}");
        }
    }

    #[test]
    fn one_of_two_that_take_turns_is_remembered() {
        read("a.test").unwrap();
        for _ in 0..1000 {
            assert!(is_known("a.test"));
            read("a.test").unwrap();
            read("b.test").unwrap();
        }
    }

    #[test]
    fn a_bad_one_is_bad_each_time() {
        for text in ["a b", "a..b", "a:0", "", "\u{e9}"] {
            for _ in 0..=OTHERS_MAX {
                assert!(read(text).is_err(), "{text}");
                assert!(read_apart(text.as_bytes()).is_err(), "{text}");
            }
        }
    }
}
