//! Hashes of passwords, as they stand in a file: which kinds are taken, and what work each causes.
//!
//! The work of a hash is limited when it is read, because anybody may cause it by sending a password.

mod apr1;
mod argon2id;
mod bcrypt;
mod crypt;

use std::fmt;

use base64ct::Encoding;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};
use thiserror::Error;

/// A hash of a password.
#[derive(Clone)]
pub(crate) struct PasswordHash {
    pub(crate) work: HashWork,
    parts: HashParts,
    fingerprint: [u8; FINGERPRINT_LEN],
}

/// The kind of a hash and its costs: what decides how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HashWork {
    /// Provos and Mazières 1999, `$2y$`: 2 to the power of `cost` rounds.
    Bcrypt { cost: u32 },
    /// RFC 9106, `$argon2id$`.
    Argon2id { kib: u32, passes: u32, lanes: u32 },
    /// SHA-crypt with SHA-256, `$5$`.
    Sha256 { rounds: u32 },
    /// SHA-crypt with SHA-512, `$6$`.
    Sha512 { rounds: u32 },
    /// Apache's form of MD5-crypt, `$apr1$`: 1,000 rounds of MD5.
    Apr1,
}

/// Why a hash cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum HashFault {
    /// Nothing stands behind the name.
    #[error("the user has no hash")]
    Missing,
    /// `{SHA}`, `{SSHA}`, `{PLAIN}`: one round of SHA-1, or no hash at all.
    #[error("a hash in braces, such as {{SHA}}, is not taken: it is guessed too fast")]
    Braces,
    /// The form of a DES hash, of which only 8 characters of a password count.
    #[error("a DES hash is not taken: it is guessed too fast")]
    Des,
    /// Not the form of any hash.
    #[error("this is no hash; a plain password is not taken")]
    Plain,
    /// A hash of another kind.
    #[error("the kind of the hash is not $2y$ (or $2a$, $2b$), $argon2id$, $6$, $5$ or $apr1$")]
    UnknownKind,
    /// The hash begins with a known kind and cannot be read.
    #[error("the hash is malformed or was cut")]
    Malformed,
    /// A bcrypt hash with too high a cost.
    #[error(
        "the cost of the bcrypt hash is {cost}; at most {} is taken",
        bcrypt::COST_MAX
    )]
    BcryptCost {
        /// The cost in the file.
        cost: u32,
    },
    /// Not version 19, which is the only one since 2016.
    #[error("the version of the argon2id hash is {version}; only 19 is taken")]
    Argon2Version {
        /// The version in the file.
        version: u32,
    },
    /// An argon2id hash that needs too much memory.
    #[error(
        "the argon2id hash takes {kib} KiB of memory; at most {} is taken",
        argon2id::KIB_MAX
    )]
    Argon2Memory {
        /// The memory in the file.
        kib: u32,
    },
    /// An argon2id hash with too many passes over its memory.
    #[error(
        "the argon2id hash has {passes} passes; at most {} are taken",
        argon2id::PASSES_MAX
    )]
    Argon2Passes {
        /// The passes in the file.
        passes: u32,
    },
    /// A hash of SHA-crypt with too many rounds.
    #[error(
        "the hash has {rounds} rounds; at most {} are taken",
        crypt::ROUNDS_MAX
    )]
    Rounds {
        /// The rounds in the file.
        rounds: u32,
    },
}

/// What a hash in a file consists of.
#[derive(Clone)]
struct HashParts {
    salt: Box<[u8]>,
    digest: Box<[u8]>,
}

impl PasswordHash {
    /// Reads a hash as it stands in a file behind the name and a colon.
    pub(crate) fn parse(text: &str) -> Result<Self, HashFault> {
        let kind_and_rest = text.strip_prefix('$').and_then(|text| text.split_once('$'));
        let Some((kind, rest)) = kind_and_rest else {
            return Err(other_kind(text));
        };
        let (work, parts) = match kind {
            "2a" | "2b" | "2y" => bcrypt::parse(rest)?,
            "argon2id" => argon2id::parse(rest)?,
            "5" => crypt::parse_sha256(rest)?,
            "6" => crypt::parse_sha512(rest)?,
            "apr1" => apr1::parse(rest)?,
            _ => return Err(HashFault::UnknownKind),
        };
        let mut fingerprint = [0; FINGERPRINT_LEN];
        fingerprint.copy_from_slice(&Sha256::digest(text)[..FINGERPRINT_LEN]);
        Ok(Self {
            work,
            parts,
            fingerprint,
        })
    }

    /// Whether this is the hash of the password. Takes as long if it is not.
    pub(crate) fn is_of(&self, password: &[u8]) -> Choice {
        let HashParts { salt, digest } = &self.parts;
        match self.work {
            HashWork::Bcrypt { cost } => bcrypt::digest(cost, salt, password).ct_eq(digest),
            HashWork::Argon2id { kib, passes, lanes } => {
                argon2id::digest([kib, passes, lanes], salt, password, digest.len()).ct_eq(digest)
            }
            HashWork::Sha256 { rounds } => crypt::sha256(rounds, salt, password).ct_eq(digest),
            HashWork::Sha512 { rounds } => crypt::sha512(rounds, salt, password).ct_eq(digest),
            HashWork::Apr1 => apr1::digest(salt, password).ct_eq(digest),
        }
    }

    /// A digest of the hash's text, which names the hash where its length matters.
    pub(crate) fn fingerprint(&self) -> [u8; FINGERPRINT_LEN] {
        self.fingerprint
    }
}

/// Without salt and digest, from which the password could be guessed.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PasswordHash").field(&self.work).finish()
    }
}

impl HashFault {
    /// What the administrator can do about the fault.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Missing
            | Self::Braces
            | Self::Des
            | Self::Plain
            | Self::UnknownKind
            | Self::Malformed
            | Self::Argon2Version { .. } => "set the password anew with `htpasswd -B FILE USER`",
            Self::BcryptCost { .. }
            | Self::Argon2Memory { .. }
            | Self::Argon2Passes { .. }
            | Self::Rounds { .. } => {
                "set the password anew at a lower cost, for example with `htpasswd -B -C 10 FILE USER`"
            }
        }
    }
}

/// The fault of a text that is no `$kind$rest`.
fn other_kind(text: &str) -> HashFault {
    let is_crypt64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/');
    match text.as_bytes() {
        [] => HashFault::Missing,
        [b'{', ..] => HashFault::Braces,
        [b'$', ..] => HashFault::UnknownKind,
        des if des.len() == DES_LEN && des.iter().copied().all(is_crypt64) => HashFault::Des,
        _ => HashFault::Plain,
    }
}

/// Reads a number of decimal digits.
fn decimal(text: &str) -> Result<u32, HashFault> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_digits);
    number.ok_or(HashFault::Malformed)
}

/// Decodes base64, strictly, to at most `max` bytes.
fn decode<E: Encoding>(text: &[u8], max: usize) -> Result<Box<[u8]>, HashFault> {
    let mut buffer = vec![0; max];
    let bytes = E::decode(text, &mut buffer).map_err(|_| HashFault::Malformed)?;
    Ok(bytes.into())
}

/// The bytes of a fingerprint: enough that no two hashes of a file have the same.
pub(crate) const FINGERPRINT_LEN: usize = 16;

/// The characters of a DES hash, which has no `$`.
const DES_LEN: usize = 13;

#[cfg(test)]
mod tests;
