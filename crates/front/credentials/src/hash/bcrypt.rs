//! bcrypt hashes, by which `htpasswd -B` and most applications keep passwords.
//!
//! The crate `bcrypt` is this loop around `blowfish` too, but brings a second version of `base64`.

use base64ct::Base64Bcrypt;
use blowfish::Blowfish;
use zeroize::Zeroizing;

use super::{HashFault, HashParts, HashWork, decimal, decode};

/// Reads what stands behind `$2y$`: `COST$SALTDIGEST`.
pub(super) fn parse(rest: &str) -> Result<(HashWork, HashParts), HashFault> {
    let (digits, encoded) = rest.split_once('$').ok_or(HashFault::Malformed)?;
    let cost = decimal(digits)?;
    if cost > COST_MAX {
        return Err(HashFault::BcryptCost { cost });
    }
    if digits.len() != 2 || cost < COST_MIN || encoded.len() != SALT_CHARS + DIGEST_CHARS {
        return Err(HashFault::Malformed);
    }
    let (salt, digest) = encoded.as_bytes().split_at(SALT_CHARS);
    let parts = HashParts {
        salt: decode::<Base64Bcrypt>(salt, SALT_LEN)?,
        digest: decode::<Base64Bcrypt>(digest, DIGEST_LEN)?,
    };
    Ok((HashWork::Bcrypt { cost }, parts))
}

/// Hashes a password. Of one with more than 72 bytes only the first 72 count, as everywhere.
pub(super) fn digest(cost: u32, salt: &[u8], password: &[u8]) -> [u8; DIGEST_LEN] {
    // The key ends with a zero byte if there is room for it.
    let mut buffer = Zeroizing::new([0; KEY_LEN_MAX]);
    let copied = password.len().min(KEY_LEN_MAX);
    buffer[..copied].copy_from_slice(&password[..copied]);
    let key = &buffer[..(copied + 1).min(KEY_LEN_MAX)];
    let mut cipher = Blowfish::bc_init_state();
    cipher.salted_expand_key(salt, key);
    for _ in 0..1_u32 << cost {
        cipher.bc_expand_key(key);
        cipher.bc_expand_key(salt);
    }
    let mut bytes = [0; 24];
    for (block, output) in PLAINTEXT.iter().zip(bytes.chunks_exact_mut(8)) {
        let encrypted = (0..64).fold(*block, |block, _| cipher.bc_encrypt(block));
        output[..4].copy_from_slice(&encrypted[0].to_be_bytes());
        output[4..].copy_from_slice(&encrypted[1].to_be_bytes());
    }
    let mut digest = [0; DIGEST_LEN];
    digest.copy_from_slice(&bytes[..DIGEST_LEN]);
    digest
}

/// The highest cost: a hash takes about a second, 16 times as long as with 10, which is usual.
pub(super) const COST_MAX: u32 = 14;

/// The lowest cost that bcrypt has.
const COST_MIN: u32 = 4;

/// `OrpheanBeholderScryDoubt`, which is encrypted.
const PLAINTEXT: [[u32; 2]; 3] = [
    [0x4f72_7068, 0x6561_6e42],
    [0x6568_6f6c, 0x6465_7253],
    [0x6372_7944, 0x6f75_6274],
];

const KEY_LEN_MAX: usize = 72;
const SALT_LEN: usize = 16;
const SALT_CHARS: usize = 22;
/// The last of 24 bytes is dropped.
const DIGEST_LEN: usize = 23;
const DIGEST_CHARS: usize = 31;
