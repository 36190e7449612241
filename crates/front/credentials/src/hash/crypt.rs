//! Hashes of crypt(3): SHA-crypt, as `htpasswd -2` and `-5` and Linux make them, and the encoding of all of them.

use base64ct::{Base64ShaCrypt, Encoding as _};
use sha_crypt::Params;

use super::{HashFault, HashParts, HashWork, decimal};

/// Reads what stands behind `$5$`: `SALT$DIGEST`, or `rounds=N$SALT$DIGEST`.
pub(super) fn parse_sha256(rest: &str) -> Result<(HashWork, HashParts), HashFault> {
    let (rounds, rest) = rounds_and_rest(rest)?;
    let parts = parts(rest, SHA_SALT_LEN_MAX, &SHA256_ORDER)?;
    Ok((HashWork::Sha256 { rounds }, parts))
}

/// Reads what stands behind `$6$`, as [`parse_sha256`] does.
pub(super) fn parse_sha512(rest: &str) -> Result<(HashWork, HashParts), HashFault> {
    let (rounds, rest) = rounds_and_rest(rest)?;
    let parts = parts(rest, SHA_SALT_LEN_MAX, &SHA512_ORDER)?;
    Ok((HashWork::Sha512 { rounds }, parts))
}

/// Hashes a password for `$5$`.
pub(super) fn sha256(rounds: u32, salt: &[u8], password: &[u8]) -> [u8; 32] {
    sha_crypt::sha256_crypt(password, salt, params(rounds).expect(CHECKED))
}

/// Hashes a password for `$6$`.
pub(super) fn sha512(rounds: u32, salt: &[u8], password: &[u8]) -> [u8; 64] {
    sha_crypt::sha512_crypt(password, salt, params(rounds).expect(CHECKED))
}

/// Reads `SALT$DIGEST`. The bytes of the digest are written in the order that `order` gives: the byte that is written
/// first is that at `order[0]`.
pub(super) fn parts<const LEN: usize>(
    text: &str,
    salt_len_max: usize,
    order: &[u8; LEN],
) -> Result<HashParts, HashFault> {
    let (salt, encoded) = text.split_once('$').ok_or(HashFault::Malformed)?;
    let mut written = [0; LEN];
    let decoded = Base64ShaCrypt::decode(encoded, &mut written).map_or(0, <[u8]>::len);
    if decoded != LEN || !(1..=salt_len_max).contains(&salt.len()) {
        return Err(HashFault::Malformed);
    }
    let mut digest = vec![0; LEN];
    for (byte, place) in written.iter().zip(order) {
        digest[usize::from(*place)] = *byte;
    }
    Ok(HashParts {
        salt: salt.as_bytes().into(),
        digest: digest.into(),
    })
}

fn rounds_and_rest(rest: &str) -> Result<(u32, &str), HashFault> {
    let Some(with_rounds) = rest.strip_prefix("rounds=") else {
        return Ok((Params::RECOMMENDED_ROUNDS, rest));
    };
    let (digits, salt_and_digest) = with_rounds.split_once('$').ok_or(HashFault::Malformed)?;
    // The systems' crypt takes no leading zeros.
    if digits.starts_with('0') {
        return Err(HashFault::Malformed);
    }
    let rounds = decimal(digits)?;
    if rounds > ROUNDS_MAX {
        return Err(HashFault::Rounds { rounds });
    }
    params(rounds)?;
    Ok((rounds, salt_and_digest))
}

fn params(rounds: u32) -> Result<Params, HashFault> {
    Params::new(rounds).map_err(|_| HashFault::Malformed)
}

/// The most rounds. The longest password takes about as long as any with the highest cost of bcrypt.
pub(super) const ROUNDS_MAX: u32 = 500_000;

const CHECKED: &str = "parse has checked the rounds";

const SHA_SALT_LEN_MAX: usize = 16;

const SHA256_ORDER: [u8; 32] = [
    20, 10, 0, 11, 1, 21, 2, 22, 12, 23, 13, 3, 14, 4, 24, 5, 25, 15, 26, 16, 6, 17, 7, 27, 8, 28,
    18, 29, 19, 9, 30, 31,
];

const SHA512_ORDER: [u8; 64] = [
    42, 21, 0, 1, 43, 22, 23, 2, 44, 45, 24, 3, 4, 46, 25, 26, 5, 47, 48, 27, 6, 7, 49, 28, 29, 8,
    50, 51, 30, 9, 10, 52, 31, 32, 11, 53, 54, 33, 12, 13, 55, 34, 35, 14, 56, 57, 36, 15, 16, 58,
    37, 38, 17, 59, 60, 39, 18, 19, 61, 40, 41, 20, 62, 63,
];
