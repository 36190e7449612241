//! argon2id hashes (RFC 9106) in the PHC string format.

use argon2::{Algorithm, Argon2, Params, Version};
use base64ct::Base64Unpadded;

use super::{HashFault, HashParts, HashWork, decimal, decode};

/// Reads what stands behind `$argon2id$`: `v=19$m=KIB,t=PASSES,p=LANES$SALT$DIGEST`.
pub(super) fn parse(rest: &str) -> Result<(HashWork, HashParts), HashFault> {
    let fields: Vec<&str> = rest.split('$').collect();
    let [version_field, cost_fields, salt, digest] = fields[..] else {
        return Err(HashFault::Malformed);
    };
    let version = number(version_field, "v=")?;
    if version != u32::from(Version::V0x13) {
        return Err(HashFault::Argon2Version { version });
    }
    let costs: Vec<&str> = cost_fields.split(',').collect();
    let [m, t, p] = costs[..] else {
        return Err(HashFault::Malformed);
    };
    let kib = number(m, "m=")?;
    let passes = number(t, "t=")?;
    let lanes = number(p, "p=")?;
    if kib > KIB_MAX {
        return Err(HashFault::Argon2Memory { kib });
    }
    if passes > PASSES_MAX {
        return Err(HashFault::Argon2Passes { passes });
    }
    Params::new(kib, passes, lanes, None).map_err(|_| HashFault::Malformed)?;
    let parts = HashParts {
        salt: decode::<Base64Unpadded>(salt.as_bytes(), SALT_LEN_MAX)?,
        digest: decode::<Base64Unpadded>(digest.as_bytes(), DIGEST_LEN_MAX)?,
    };
    if parts.salt.len() < argon2::MIN_SALT_LEN || parts.digest.len() < DIGEST_LEN_MIN {
        return Err(HashFault::Malformed);
    }
    Ok((HashWork::Argon2id { kib, passes, lanes }, parts))
}

/// Hashes a password to `len` bytes. The costs are KiB, passes and lanes, which one thread computes one after the other.
/// If the memory cannot be had, nothing is returned, which no digest equals.
pub(super) fn digest(costs: [u32; 3], salt: &[u8], password: &[u8], len: usize) -> Vec<u8> {
    let [kib, passes, lanes] = costs;
    let params = Params::new(kib, passes, lanes, None).expect("parse has checked the costs");
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let mut digest = vec![0; len];
    match argon2.hash_password_into(password, salt, &mut digest) {
        Ok(()) => digest,
        Err(_) => Vec::new(),
    }
}

/// Reads a number behind its name.
fn number(field: &str, name: &str) -> Result<u32, HashFault> {
    let digits = field.strip_prefix(name).ok_or(HashFault::Malformed)?;
    decimal(digits)
}

/// The most memory: 64 MiB, the default of argon2-cffi and the second choice of RFC 9106, section 4.
pub(super) const KIB_MAX: u32 = 64 << 10;

/// The most passes over the memory.
pub(super) const PASSES_MAX: u32 = 10;

/// The most bytes of a salt in the PHC string format.
const SALT_LEN_MAX: usize = 48;

const DIGEST_LEN_MIN: usize = 16;
const DIGEST_LEN_MAX: usize = 64;
