//! Apache's form of MD5-crypt, which `htpasswd` makes if no kind is asked for (apr_md5.c, `apr_md5_encode`).

use md5::{Digest as _, Md5};

use super::{HashFault, HashParts, HashWork, crypt};

/// Reads what stands behind `$apr1$`: `SALT$DIGEST`.
pub(super) fn parse(rest: &str) -> Result<(HashWork, HashParts), HashFault> {
    let parts = crypt::parts(rest, SALT_LEN_MAX, &ORDER)?;
    Ok((HashWork::Apr1, parts))
}

/// Hashes a password.
pub(super) fn digest(salt: &[u8], password: &[u8]) -> [u8; LEN] {
    let inner = Md5::new()
        .chain_update(password)
        .chain_update(salt)
        .chain_update(password)
        .finalize();
    let mut outer = Md5::new()
        .chain_update(password)
        .chain_update("$apr1$")
        .chain_update(salt);
    for piece in password.chunks(LEN) {
        outer.update(&inner[..piece.len()]);
    }
    let mut bits = password.len();
    while bits != 0 {
        let zero_or_first = if bits & 1 == 1 { &[0] } else { &password[..1] };
        outer.update(zero_or_first);
        bits >>= 1;
    }
    let mut digest: [u8; LEN] = outer.finalize().into();
    for round in 0..ROUNDS {
        let is_odd = round % 2 == 1;
        let mut md5 = Md5::new();
        md5.update(if is_odd { password } else { &digest[..] });
        if round % 3 != 0 {
            md5.update(salt);
        }
        if round % 7 != 0 {
            md5.update(password);
        }
        md5.update(if is_odd { &digest[..] } else { password });
        digest = md5.finalize().into();
    }
    digest
}

const LEN: usize = 16;
const SALT_LEN_MAX: usize = 8;
const ROUNDS: u32 = 1000;

const ORDER: [u8; LEN] = [12, 6, 0, 13, 7, 1, 14, 8, 2, 15, 9, 3, 5, 10, 4, 11];
