//! Stateless session tickets, with keys that can be shared and passed on.
//!
//! All workers of a process use the same keys, a reload keeps them, and an upgrade passes them to
//! the next process. Tickets are sealed with AES-256-GCM. Their associated data is a digest of the
//! trust in clients, so that a session that began under other trust is not resumed.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;

/// The keys of tickets: the next, the current and the previous.
pub struct TicketKeys {
    keys: RwLock<[Key; 3]>,
}

/// A key: 16 bytes of name, then 32 bytes of secret.
#[derive(Clone)]
struct Key {
    bytes: [u8; KEY_LEN],
    sealing: Arc<LessSafeKey>,
}

impl TicketKeys {
    /// Generates new keys; `None` if the system has no random bytes.
    #[must_use]
    pub fn generate() -> Option<Arc<Self>> {
        let keys = [Key::generate()?, Key::generate()?, Key::generate()?];
        Some(Arc::new(Self {
            keys: RwLock::new(keys),
        }))
    }

    /// Reads keys that another process [exported](Self::export); `None` if the length is wrong.
    #[must_use]
    pub fn import(bytes: &[u8]) -> Option<Arc<Self>> {
        let bytes: &[u8; TICKET_KEYS_LEN] = bytes.try_into().ok()?;
        let (keys, _) = bytes.as_chunks::<KEY_LEN>();
        let keys = [Key::new(keys[0])?, Key::new(keys[1])?, Key::new(keys[2])?];
        Some(Arc::new(Self {
            keys: RwLock::new(keys),
        }))
    }

    /// Reads keys from a file: three lines of 96 hexadecimal digits each; the first one encrypts tickets. Empty
    /// lines and those that begin with `#` are ignored.
    ///
    /// # Errors
    /// What is wrong with the file, as a phrase that follows its name.
    pub fn from_file(text: &[u8]) -> Result<Arc<Self>, String> {
        let text = std::str::from_utf8(text).map_err(|_| "is not a text".to_owned())?;
        let mut keys = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some(key) = parse(line).and_then(Key::new) else {
                let digits = 2 * KEY_LEN;
                return Err(format!(
                    "has no key of {digits} hexadecimal digits in line {number}"
                ));
            };
            keys.push(key);
        }
        let [first, second, third] = <[Key; 3]>::try_from(keys)
            .map_err(|keys| format!("has {} keys, and needs three", keys.len()))?;
        if first.name() == second.name()
            || second.name() == third.name()
            || first.name() == third.name()
        {
            return Err("has one key twice".to_owned());
        }
        // The current key is the second, and the first one of the file encrypts.
        Ok(Arc::new(Self {
            keys: RwLock::new([second, first, third]),
        }))
    }

    /// Replaces the keys by those of `others`, for all profiles that share this set.
    pub fn replace(&self, others: &Self) {
        let others = others
            .keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = others;
    }

    /// The keys as bytes, for another process that has to accept and issue the same tickets.
    #[must_use]
    pub fn export(&self) -> Vec<u8> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().flat_map(|key| key.bytes).collect()
    }

    /// Makes the next key the current one, and generates a new next key. Without random bytes the keys stay.
    pub fn rotate(&self) {
        let Some(fresh) = Key::generate() else { return };
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let [next, current, _] = &*keys;
        *keys = [fresh, next.clone(), current.clone()];
    }

    fn current(&self) -> Key {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys[CURRENT].clone()
    }

    fn named(&self, name: &[u8]) -> Option<Key> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().find(|key| key.name() == name).cloned()
    }
}

/// The bytes of a line of hexadecimal digits; `None` if it is malformed.
fn parse(line: &str) -> Option<[u8; KEY_LEN]> {
    let digits = line.as_bytes();
    if digits.len() != 2 * KEY_LEN {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut bytes = [0; KEY_LEN];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
    }
    Some(bytes)
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys")
    }
}

impl Key {
    /// A random key; `None` if the system has no random bytes.
    fn generate() -> Option<Self> {
        let mut bytes = [0; KEY_LEN];
        rand::fill(&mut bytes).ok()?;
        Self::new(bytes)
    }

    /// A key of these bytes: first its name, then the key of AES-256-GCM, whose length is always right.
    fn new(bytes: [u8; KEY_LEN]) -> Option<Self> {
        let sealing = UnboundKey::new(&AES_256_GCM, &bytes[NAME_LEN..]).ok()?;
        Some(Self {
            bytes,
            sealing: Arc::new(LessSafeKey::new(sealing)),
        })
    }

    fn name(&self) -> &[u8] {
        &self.bytes[..NAME_LEN]
    }
}

/// Issues and opens the tickets of one profile.
pub(crate) struct Ticketer {
    pub(crate) keys: Arc<TicketKeys>,
    /// A digest of the settings for client certificates.
    pub(crate) trust: [u8; 32],
    /// How often the current key changes; a ticket is valid for at most twice this time.
    pub(crate) rotation: Duration,
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticketer")
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        let seconds = self.rotation.as_secs().saturating_mul(2);
        u32::try_from(seconds)
            .unwrap_or(LIFETIME_MAX)
            .min(LIFETIME_MAX)
    }

    /// Returns a ticket: the name of the key, the nonce, and the encrypted session.
    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let key = self.keys.current();
        let mut nonce_bytes = [0; NONCE_LEN];
        rand::fill(&mut nonce_bytes).ok()?;
        let nonce = Nonce::assume_unique_for_key(nonce_bytes);
        let mut sealed = plain.to_vec();
        let aad = Aad::from(self.trust);
        key.sealing
            .seal_in_place_append_tag(nonce, aad, &mut sealed)
            .ok()?;
        Some([key.name(), &nonce_bytes, &sealed].concat())
    }

    /// Opens a ticket; `None` if its key is not kept, or if it was changed or issued under other trust. The client
    /// then makes a full handshake.
    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, after_name) = ticket.split_at_checked(NAME_LEN)?;
        let (nonce_bytes, sealed) = after_name.split_at_checked(NONCE_LEN)?;
        let key = self.keys.named(name)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce_bytes).ok()?;
        let mut opened = sealed.to_vec();
        let aad = Aad::from(self.trust);
        let plain = key.sealing.open_in_place(nonce, aad, &mut opened).ok()?;
        let len = plain.len();
        opened.truncate(len);
        Some(opened)
    }
}

/// The length in bytes of what [`TicketKeys::export`] returns.
pub const TICKET_KEYS_LEN: usize = 3 * KEY_LEN;

/// The index of the current key among the three.
const CURRENT: usize = 1;

const NAME_LEN: usize = 16;
const KEY_LEN: usize = NAME_LEN + 32;

/// The longest lifetime of a ticket in seconds: seven days (RFC 8446, section 4.6.1).
const LIFETIME_MAX: u32 = 7 * 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn ticketer(keys: &Arc<TicketKeys>, trust: u8) -> Ticketer {
        Ticketer {
            keys: Arc::clone(keys),
            trust: [trust; 32],
            rotation: Duration::from_secs(60),
        }
    }

    #[test]
    fn a_ticket_outlives_one_rotation_not_two() {
        let keys = TicketKeys::generate().unwrap();
        let ticketer = ticketer(&keys, 0);
        let ticket = ticketer.encrypt(b"session").unwrap();
        assert_eq!(ticketer.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        keys.rotate();
        assert!(ticketer.decrypt(&ticket).is_some());
        keys.rotate();
        assert_eq!(ticketer.decrypt(&ticket), None);
        assert_eq!(ticketer.lifetime(), 120);
    }

    #[test]
    fn another_process_opens_tickets_and_rotates_to_the_same_key() {
        let keys = TicketKeys::generate().unwrap();
        let other = TicketKeys::import(&keys.export()).unwrap();
        let ticket = ticketer(&keys, 0).encrypt(b"session").unwrap();
        assert!(ticketer(&other, 0).decrypt(&ticket).is_some());
        keys.rotate();
        other.rotate();
        let ticket = ticketer(&keys, 0).encrypt(b"session").unwrap();
        assert!(ticketer(&other, 0).decrypt(&ticket).is_some());
        assert!(TicketKeys::import(&[0; 3]).is_none());
    }

    fn line(byte: u8) -> String {
        format!("{byte:02x}").repeat(KEY_LEN) + "\n"
    }

    #[test]
    fn of_a_file_the_first_key_seals_and_all_open() {
        let keys =
            |lines: [u8; 3]| TicketKeys::from_file(lines.map(line).concat().as_bytes()).unwrap();
        let first = keys([1, 2, 3]);
        let ticket = ticketer(&first, 0).encrypt(b"session").unwrap();
        assert_eq!(ticket[..NAME_LEN], [1; NAME_LEN]);
        for (other, opens) in [
            ([1, 2, 3], true),
            ([3, 1, 2], true),
            ([2, 3, 1], true),
            ([2, 3, 4], false),
        ] {
            let opened = ticketer(&keys(other), 0).decrypt(&ticket);
            assert_eq!(opened.is_some(), opens, "{other:?}");
        }
        let shared = ticketer(&first, 0);
        first.replace(&keys([4, 1, 2]));
        assert!(shared.decrypt(&ticket).is_some());
        assert_eq!(shared.encrypt(b"").unwrap()[..NAME_LEN], [4; NAME_LEN]);
    }

    #[test]
    fn what_is_wrong_with_a_file_of_keys_is_said() {
        let file = |text: &str| TicketKeys::from_file(text.as_bytes()).map(|_| ());
        let (a, b, c) = (line(1), line(2), line(3));
        assert_eq!(file(&format!("# of the fleet\n\n{a}{b}  {c}")), Ok(()));
        for (text, said) in [
            (String::new(), "has 0 keys, and needs three"),
            (format!("{a}{b}"), "has 2 keys, and needs three"),
            (
                format!("{a}{b}{c}{}", line(4)),
                "has 4 keys, and needs three",
            ),
            (format!("{a}{b}{b}"), "has one key twice"),
            (
                format!("{a}{b}x{c}"),
                "has no key of 96 hexadecimal digits in line 3",
            ),
            (
                format!("{a}\n{}", &b[2..]),
                "has no key of 96 hexadecimal digits in line 3",
            ),
        ] {
            assert_eq!(file(&text), Err(said.to_owned()), "{text}");
        }
        assert!(TicketKeys::from_file(&[0xff; 96]).is_err());
    }

    #[test]
    fn a_ticket_is_worth_nothing_under_other_trust_or_when_changed() {
        let keys = TicketKeys::generate().unwrap();
        let ticket = ticketer(&keys, 1).encrypt(b"session").unwrap();
        assert_eq!(ticketer(&keys, 2).decrypt(&ticket), None);
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(ticketer(&keys, 1).decrypt(&changed), None, "byte {at}");
            assert_eq!(
                ticketer(&keys, 1).decrypt(&ticket[..at]),
                None,
                "cut at {at}"
            );
        }
    }
}
