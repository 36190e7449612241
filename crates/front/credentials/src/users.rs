//! The users of a file in `htpasswd`'s format: lines `user:hash`, as httpd's `AuthUserFile` and nginx's
//! `auth_basic_user_file` name them. What follows a second colon is ignored, as they do.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use subtle::Choice;
use thiserror::Error;

use crate::hash::{FINGERPRINT_LEN, HashWork, PasswordHash};
use crate::lines::{self, FaultyLine, LineFault};

/// The users of a file with the hashes of their passwords.
#[derive(Clone, Debug, Default)]
pub struct Users {
    by_name: HashMap<Box<str>, Arc<PasswordHash>>,
    /// A hash of the kind and cost that most users have, computed for names that no user has.
    decoy: Option<Arc<PasswordHash>>,
    warnings: Vec<UsersWarning>,
}

/// A risk of a file that can be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum UsersWarning {
    /// Users whose passwords are hashed by 1,000 rounds of MD5.
    #[error("line {first}: a $apr1$ hash is guessed fast; users with one: {count}")]
    Apr1 {
        /// The first line with such a hash.
        first: usize,
        /// The number of such users.
        count: usize,
    },
    /// Users whose hashes take other work than those of most users, and so than names that no user has: the time of an
    /// answer tells that they exist.
    #[error(
        "line {first}: the hash takes other work than those of most users, so the time of an answer tells that the user \
         exists; users with such a hash: {count}"
    )]
    MixedWork {
        /// The first line with such a hash.
        first: usize,
        /// The number of such users.
        count: usize,
    },
    /// No line of the file is a user.
    #[error("the file has no user, so nobody can sign in")]
    NoUsers,
}

/// The hash that decides whether a password is right: that of a user, or one in place of it if there is no such user.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// `None`: the file has no users.
    hash: Option<Arc<PasswordHash>>,
    is_user: bool,
}

impl Users {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// All lines with a fault, in their order. No user of such a file can sign in: one who was left out in silence
    /// would be hard to find.
    pub fn parse(file: &[u8]) -> Result<Self, Vec<FaultyLine>> {
        let mut users = Self::default();
        let mut first_lines: HashMap<&str, usize> = HashMap::new();
        let mut kinds: HashMap<HashWork, HashCount> = HashMap::new();
        lines::read(file, LINE_BYTES_MAX, |line, text| {
            let (name, rest) = lines::name_and_rest(text)?;
            let first = *first_lines.entry(name).or_insert(line);
            if first != line {
                return Err(LineFault::Duplicate { first });
            }
            if first_lines.len() > USERS_MAX {
                return Err(LineFault::TooMany { max: USERS_MAX });
            }
            let (encoded, _) = rest.split_once(':').unwrap_or((rest, ""));
            let hash = Arc::new(PasswordHash::parse(encoded)?);
            let kind = kinds.entry(hash.work).or_insert_with(|| HashCount {
                users: 0,
                first: Reverse(line),
                hash: Arc::clone(&hash),
            });
            kind.users += 1;
            users.by_name.insert(name.into(), hash);
            Ok(())
        })?;
        let usual = kinds.values().max_by_key(|kind| (kind.users, kind.first));
        users.warnings = warnings(&kinds, usual);
        users.decoy = usual.map(|kind| Arc::clone(&kind.hash));
        Ok(users)
    }

    /// The risks of the file.
    #[must_use]
    pub fn warnings(&self) -> &[UsersWarning] {
        &self.warnings
    }

    /// Whether the file has this user.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The hash for who claims to be the user `name`, which is compared byte by byte.
    #[must_use]
    pub fn candidate(&self, name: &str) -> Candidate {
        let own = self.by_name.get(name);
        Candidate {
            hash: own.or(self.decoy.as_ref()).map(Arc::clone),
            is_user: own.is_some(),
        }
    }

    /// The number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether the file has no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

impl UsersWarning {
    /// What the administrator can do about the risk.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Self::Apr1 { .. } => "set these passwords anew with `htpasswd -B FILE USER`",
            Self::MixedWork { .. } => {
                "set these passwords anew with the kind and cost of the others, or all with `htpasswd -B FILE USER`"
            }
            Self::NoUsers => "add one with `htpasswd -B FILE USER`",
        }
    }
}

impl Candidate {
    /// Whether the user exists and this is the password. Hashes in every case, so that the time does not tell which users
    /// exist, and may take a second: not for a thread with an event loop.
    #[must_use]
    pub fn verify(&self, password: &str) -> bool {
        let Some(hash) = &self.hash else {
            return false;
        };
        let is_user = Choice::from(u8::from(self.is_user));
        (hash.is_of(password.as_bytes()) & is_user).into()
    }

    /// What tells the hash of a user from all others. A hash in place of one tells nothing: another line of the file may
    /// have that of a user who was removed.
    pub(crate) fn fingerprint(&self) -> [u8; FINGERPRINT_LEN] {
        let hash = self.hash.as_ref().filter(|_| self.is_user);
        hash.map_or([0; FINGERPRINT_LEN], |hash| hash.fingerprint())
    }
}

/// The users whose hashes cause the same work.
struct HashCount {
    users: usize,
    /// The line of the first of them. Of two kinds with as many users the earlier counts as the usual one.
    first: Reverse<usize>,
    hash: Arc<PasswordHash>,
}

/// The risks of users with hashes of these kinds. `usual` is the kind that most users have; `None`: there are no users.
fn warnings(kinds: &HashMap<HashWork, HashCount>, usual: Option<&HashCount>) -> Vec<UsersWarning> {
    let Some(usual) = usual else {
        return vec![UsersWarning::NoUsers];
    };
    let apr1 = kinds.get(&HashWork::Apr1).map(|kind| UsersWarning::Apr1 {
        first: kind.first.0,
        count: kind.users,
    });
    let others = || kinds.values().filter(|kind| kind.first != usual.first);
    let first = others().map(|kind| kind.first.0).min();
    let mixed = first.map(|first| UsersWarning::MixedWork {
        first,
        count: others().map(|kind| kind.users).sum(),
    });
    apr1.into_iter().chain(mixed).collect()
}

/// The most users of a file.
const USERS_MAX: usize = 10_000;

/// The most bytes of a line: the longest name and hash, and a comment.
const LINE_BYTES_MAX: usize = 1024;

#[cfg(test)]
mod tests;
