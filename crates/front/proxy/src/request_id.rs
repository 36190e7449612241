//! Request ids, which connect an error page with its line in the log.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use catamaran_message::{Fields, NameRef};

/// A request id: 16 hexadecimal digits, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId(u64);

/// Generates the request ids of one worker.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(fastrand::u64(..)))
    }

    pub(crate) fn next(&self) -> RequestId {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        // Multiplying by an odd number permutes all 64-bit numbers: successive ids look different, and none comes
        // twice.
        RequestId(count.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl RequestId {
    /// How many digits an id has.
    pub(crate) const DIGITS: usize = 16;

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Formats the id as digits, for the log: this is quicker than a formatter.
    pub(crate) fn digits(self) -> [u8; Self::DIGITS] {
        let mut digits = [0; Self::DIGITS];
        let pairs = digits.as_chunks_mut().0.iter_mut();
        for (pair, byte) in pairs.zip(self.0.to_be_bytes()) {
            *pair = PAIRS[usize::from(byte)];
        }
        digits
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Returns the id that a trusted proxy sent in the field `name`, which stays. Otherwise removes the
/// field, because the front writes its own, and returns `None`.
pub(crate) fn take_given(headers: &mut Fields, name: NameRef<'_>, trusted: bool) -> Option<Bytes> {
    if trusted
        && let Some(id) = headers.only(name)
        && is_id(id)
    {
        return Some(headers.share(id));
    }
    headers.remove(name);
    None
}

/// Whether a text can be written to logs unchanged: short, and without spaces and quotes.
fn is_id(text: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'\\<>,;".contains(byte);
    (1..=ID_MAX).contains(&text.len()) && text.iter().all(plain)
}

/// The two hexadecimal digits of each byte.
static PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The longest id of a trusted proxy that is accepted, in bytes.
const ID_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use catamaran_message::name::X_REQUEST_ID;

    use super::*;

    fn given(sent: &[&str], trusted: bool) -> (Vec<Vec<u8>>, Option<Bytes>) {
        let name = X_REQUEST_ID;
        let mut headers: Fields = sent.iter().map(|value| (name, value)).collect();
        let given = take_given(&mut headers, name.into(), trusted);
        (headers.get_all(name).map(<[u8]>::to_vec).collect(), given)
    }

    #[test]
    fn only_a_trusted_proxy_gives_an_id() {
        let proxys = b"7f-a:b/c";
        assert_eq!(
            given(&["7f-a:b/c"], true),
            (vec![proxys.to_vec()], Some(Bytes::from_static(proxys)))
        );
        assert_eq!(given(&["7f-a:b/c"], false), (vec![], None));
        let long = "x".repeat(129);
        for odd in [&[][..], &[""], &["a b"], &["a\"b"], &["a", "b"], &[&long]] {
            assert_eq!(given(odd, true), (vec![], None), "{odd:?}");
        }
    }

    #[test]
    fn digits_are_those_that_are_displayed() {
        for number in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let id = RequestId(number);
            assert_eq!(id.digits(), id.to_string().as_bytes());
        }
    }
}
