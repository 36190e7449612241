//! The files of users and groups of sign-ons: reads and checks them, and replaces what is in use when they change.
//!
//! A reload reads the files anew. If they change meanwhile, they are read again, and take effect if they have no fault;
//! else what was read before stays in force. A sign-on whose files were never read lets nobody pass.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use catamaran_credentials::{FILE_BYTES_MAX, FaultyLine, Groups, Users};

use crate::config::UsersAuth;
use crate::local_file::{LocalFile, Stamp, stamp};

/// A fault or a risk of the files of a sign-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersFault {
    /// The key to which it belongs.
    pub key: UsersKey,
    /// What is wrong, with the file and the line.
    pub message: String,
    /// What the administrator can do about it; empty if the message says it.
    pub hint: String,
}

/// A key of `[auth.NAME]` that is checked against the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsersKey {
    /// `users_file`.
    UsersFile,
    /// `groups_file`.
    GroupsFile,
    /// `users`.
    Users,
    /// `groups`.
    Groups,
}

/// Why the files of a sign-on cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sign-on {name:?}: {}", messages(.faults))]
pub struct UsersError {
    /// The name of the sign-on.
    pub name: String,
    /// Everything that is wrong.
    pub faults: Vec<UsersFault>,
}

/// The users of a sign-on, which can be replaced while they are in use.
#[derive(Debug)]
pub(crate) struct LiveUsers {
    pub(crate) name: String,
    pub(crate) config: UsersAuth,
    /// `None`: the files were not read.
    current: ArcSwapOption<ReadUsers>,
    /// The stamps of the files, taken before they were first read.
    pub(crate) read_of: Vec<Stamp>,
    /// Why changed files cannot be used; `None` if they are in use, or nothing has changed.
    refused: ArcSwapOption<String>,
}

/// The users of a file, and who of them may pass.
#[derive(Debug)]
pub(crate) struct ReadUsers {
    pub(crate) users: Users,
    /// `None`: all may.
    permitted: Option<HashSet<Box<str>>>,
}

/// The content of the files with its risks.
struct ReadFiles {
    users: ReadUsers,
    warnings: Vec<UsersFault>,
}

/// Reads the files of a sign-on and checks them. `Ok` contains warnings, with which they can be used.
///
/// # Errors
/// Everything that is wrong with them.
pub fn check(config: &UsersAuth) -> Result<Vec<UsersFault>, Vec<UsersFault>> {
    read(config).map(|files| files.warnings)
}

impl LiveUsers {
    /// The users of a sign-on, whose files are not read yet.
    pub(crate) fn unread(name: &str, config: &UsersAuth) -> Self {
        Self {
            name: name.to_owned(),
            config: config.clone(),
            current: ArcSwapOption::empty(),
            read_of: stamps(config),
            refused: ArcSwapOption::empty(),
        }
    }

    /// Reads the files, and uses what is in them from now on. Returns the risks. If they have faults, what was read before
    /// stays in use.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn renew(&self) -> Result<Vec<UsersFault>, UsersError> {
        let files = read(&self.config).map_err(|faults| UsersError {
            name: self.name.clone(),
            faults,
        });
        let refused = files.as_ref().err();
        let message = refused.map(|error| Arc::new(messages(&error.faults)));
        self.refused.store(message);
        let ReadFiles { users, warnings } = files?;
        self.current.store(Some(Arc::new(users)));
        Ok(warnings)
    }

    /// The users as the files had them when they were read; `None`: they were not.
    pub(crate) fn current(&self) -> Option<Arc<ReadUsers>> {
        self.current.load_full()
    }

    /// Whether the files have changed and cannot be used.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load().is_some()
    }
}

impl ReadUsers {
    /// Whether a user with the right password may pass.
    pub(crate) fn permits(&self, user: &str) -> bool {
        self.permitted.as_ref().is_none_or(|it| it.contains(user))
    }
}

/// The stamps of the files of a sign-on as they are now.
pub(crate) fn stamps(config: &UsersAuth) -> Vec<Stamp> {
    let paths = std::iter::once(&config.users_file).chain(&config.groups_file);
    paths.map(|path| stamp(path)).collect()
}

fn messages(faults: &[UsersFault]) -> String {
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    messages.join("; ")
}

/// Reads the files of a sign-on.
fn read(config: &UsersAuth) -> Result<ReadFiles, Vec<UsersFault>> {
    let mut faults = Vec::new();
    let mut warnings = Vec::new();
    let path = &config.users_file;
    let read_users = parsed(path, UsersKey::UsersFile, Users::parse, &mut faults);
    let read_groups = match &config.groups_file {
        Some(path) => parsed(path, UsersKey::GroupsFile, Groups::parse, &mut faults),
        None => Some((Groups::default(), false)),
    };
    let (Some((users, is_public)), Some((groups, _))) = (read_users, read_groups) else {
        return Err(faults);
    };
    let mut warn = |key, message: String, hint: &str| {
        warnings.push(UsersFault {
            key,
            message,
            hint: hint.to_owned(),
        });
    };
    if is_public {
        let message = format!(
            "{} can be read by every user of the machine",
            path.display()
        );
        let hint = "the hashes in it can be guessed; chmod 640 it, with the group of the front";
        warn(UsersKey::UsersFile, message, hint);
    }
    for warning in users.warnings() {
        let message = format!("{}: {warning}", path.display());
        warn(UsersKey::UsersFile, message, warning.hint());
    }
    for user in config.users.iter().filter(|user| !users.contains(user)) {
        let message = format!("{} has no user {user:?}", path.display());
        warn(
            UsersKey::Users,
            message,
            "add the user with `htpasswd -B FILE USER`",
        );
    }
    for group in &config.groups {
        if groups.members(group).next().is_none() {
            let message = format!("the group {group:?} has no members, so it lets nobody pass");
            warn(UsersKey::Groups, message, "add a line `group: user user`");
        }
    }
    Ok(ReadFiles {
        users: ReadUsers {
            permitted: permitted(config, &groups),
            users,
        },
        warnings,
    })
}

/// Who may pass; `None`: all users.
fn permitted(config: &UsersAuth, groups: &Groups) -> Option<HashSet<Box<str>>> {
    if config.users.is_empty() && config.groups.is_empty() {
        return None;
    }
    let members = config.groups.iter().flat_map(|group| groups.members(group));
    let named = config.users.iter().map(String::as_str);
    Some(named.chain(members).map(Box::from).collect())
}

/// Reads a file, and says whether all users of the machine may do so; `None`, with its faults: it cannot be used.
fn parsed<T>(
    path: &Path,
    key: UsersKey,
    parse: fn(&[u8]) -> Result<T, Vec<FaultyLine>>,
    faults: &mut Vec<UsersFault>,
) -> Option<(T, bool)> {
    let mut push = |message: String, hint: &str| {
        faults.push(UsersFault {
            key,
            message,
            hint: hint.to_owned(),
        });
    };
    let file = match LocalFile::read(path, FILE_MAX) {
        Ok(file) => file,
        Err(error) => {
            let message = format!("cannot read {}: {error}", path.display());
            push(
                message,
                "name a file that the user of this process may read",
            );
            return None;
        }
    };
    match parse(&file.bytes) {
        Ok(parsed) => Some((parsed, file.is_public())),
        Err(lines) => {
            for line in lines {
                push(format!("{}, {line}", path.display()), line.hint());
            }
            None
        }
    }
}

/// The largest file that is read, in MiB.
const FILE_MAX: u64 = (FILE_BYTES_MAX >> 20) as u64;

#[cfg(test)]
mod tests {
    use catamaran_limit::Quota;

    use super::*;
    use crate::config::Challenge;

    fn config(folder: &Path) -> UsersAuth {
        UsersAuth {
            users_file: folder.join("users"),
            groups_file: None,
            users: Vec::new(),
            groups: Vec::new(),
            challenge: Challenge::new("x").unwrap(),
            failures: Quota::rate(10, std::time::Duration::from_secs(60), 10),
            pass_credentials: false,
            fields: Vec::new(),
        }
    }

    fn messages_of(faults: &[UsersFault], folder: &Path) -> Vec<String> {
        let folder = format!("{}/", folder.display());
        let messages = faults
            .iter()
            .map(|fault| fault.message.replace(&folder, ""));
        messages.collect()
    }

    #[test]
    fn files_are_used_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let config = UsersAuth {
            groups_file: Some(path.join("groups")),
            users: vec!["bob".to_owned()],
            groups: vec!["admins".to_owned(), "none".to_owned()],
            ..config(path)
        };
        let live = LiveUsers::unread("staff", &config);
        assert!(live.current().is_none());
        let error = live.renew().unwrap_err();
        assert_eq!(error.faults.len(), 2, "{error}");
        assert!(live.current().is_none());
        std::fs::write(path.join("users"), format!("ann:{HASH}\ncat:{HASH}\n")).unwrap();
        std::fs::write(path.join("groups"), "admins: ann\n").unwrap();
        let warnings = live.renew().unwrap();
        let expected = [
            "users can be read by every user of the machine",
            "users has no user \"bob\"",
            "the group \"none\" has no members, so it lets nobody pass",
        ];
        assert_eq!(messages_of(&warnings, path), expected);
        let read = live.current().unwrap();
        assert!(read.permits("ann") && !read.permits("cat"));
        std::fs::write(path.join("users"), format!("ann:{HASH}\nbob\ncat:plain\n")).unwrap();
        let faults = live.renew().unwrap_err().faults;
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(
            messages_of(&faults, path)[1].starts_with("users, line 3: "),
            "{faults:?}"
        );
        assert!(live.is_refused() && live.current().unwrap().permits("ann"));
    }

    /// Made by: htpasswd -nbBC 4 ann secret
    const HASH: &str = "$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.";
}
