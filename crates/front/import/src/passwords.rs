//! Sign-ons by password: users in a file of `htpasswd`, which the front reads as its own sign-on does.

use std::path::Path;

use catamaran_credentials::{FaultyLine, Groups, Users, challenge};

use crate::files::Files;
use crate::plan::{Keys, SignOn};
use crate::toml_text::{inline_table, quoted, quoted_list};

/// Whom a place of the source asks for a user and a password, and by which files.
#[derive(Clone, Debug, Default)]
pub(crate) struct PasswordSignOn<'a> {
    pub(crate) realm: &'a str,
    pub(crate) users_file: &'a str,
    /// The file of groups; `None` if no group is named.
    pub(crate) groups_file: Option<&'a str>,
    /// The users who may pass, besides members of `groups`. If both are empty, all may.
    pub(crate) users: &'a [String],
    pub(crate) groups: &'a [String],
    /// The request fields in which applications are told the user.
    pub(crate) fields: Vec<String>,
    /// Whether applications get the client's `Authorization`.
    pub(crate) passes_credentials: bool,
    /// Whether the source takes white space around a line of the users' file for a part of it.
    pub(crate) keeps_white_space: bool,
}

impl PasswordSignOn<'_> {
    /// The sign-on of the front that lets in the same users with the same passwords.
    ///
    /// # Errors
    /// Why the front has none, with the line of the file that it would refuse.
    pub(crate) fn read(&self, files: &dyn Files) -> Result<SignOn, String> {
        challenge(self.realm).map_err(|fault| format!("its realm: {fault}"))?;
        let text = file(self.users_file, files)?;
        Users::parse(&text).map_err(|faults| refused(self.users_file, &faults))?;
        if let Some(line) = unknown_to_source(&text) {
            return Err(format!(
                "`{}` has in line {line} an argon2 hash, which the source does not know: that user cannot sign on there",
                self.users_file
            ));
        }
        if let Some(line) = line_of(&text, |it| it.trim_ascii_start().starts_with(b"/")) {
            return Err(format!(
                "`{}` has in line {line} a user like the subject of a certificate, whose password is known to all",
                self.users_file
            ));
        }
        if self.keeps_white_space
            && let Some(line) = line_of(&text, has_white_space_around)
        {
            return Err(format!(
                "`{}` has in line {line} white space around the user, which the source takes for a part of the line",
                self.users_file
            ));
        }
        let mut keys = Keys::from([
            ("realm".to_owned(), quoted(self.realm)),
            (
                "users_file".to_owned(),
                quoted(&files.located(Path::new(self.users_file))),
            ),
        ]);
        if let Some(path) = self.groups_file {
            Groups::parse(&file(path, files)?).map_err(|faults| refused(path, &faults))?;
            let located = files.located(Path::new(path));
            keys.insert("groups_file".to_owned(), quoted(&located));
        }
        for (key, names) in [("users", self.users), ("groups", self.groups)] {
            if !names.is_empty() {
                keys.insert(key.to_owned(), quoted_list(names));
            }
        }
        if self.passes_credentials {
            keys.insert("pass_credentials".to_owned(), "true".to_owned());
        }
        if !self.fields.is_empty() {
            let pairs = self.fields.iter().map(|it| (it.clone(), quoted("user")));
            keys.insert("fields".to_owned(), inline_table(pairs));
        }
        Ok(SignOn {
            name: self.realm.to_owned(),
            upstream: None,
            keys,
        })
    }
}

/// The bytes of a file that a sign-on names.
///
/// # Errors
/// The front cannot be told this path, or the file is not here.
fn file(path: &str, files: &dyn Files) -> Result<Vec<u8>, String> {
    if path.contains(['$', '%']) {
        return Err(format!("its file `{path}` depends on the request"));
    }
    if !path.starts_with('/') {
        return Err(format!("it is not known where its file `{path}` is"));
    }
    let text = files.read(Path::new(path));
    text.map_err(|error| format!("its file `{path}` cannot be read here: {error}"))
}

/// What the front refuses of a file: the first line, and how many others.
fn refused(path: &str, faults: &[FaultyLine]) -> String {
    let Some(first) = faults.first() else {
        return format!("the front does not take `{path}`");
    };
    let others = match faults.len() - 1 {
        0 => String::new(),
        count => format!(", and {count} more lines"),
    };
    let hint = match first.hint() {
        "" => String::new(),
        hint => format!(" ({hint})"),
    };
    format!(
        "the front does not take line {} of `{path}`{others}: {}{hint}",
        first.line, first.fault
    )
}

/// The first line with a hash that the front takes and neither httpd nor nginx does: they ask `crypt` of the system.
fn unknown_to_source(text: &[u8]) -> Option<usize> {
    line_of(text, |line| {
        let hash = line.splitn(2, |it| *it == b':').nth(1);
        hash.is_some_and(|it| it.starts_with(b"$argon2"))
    })
}

/// The number of the first such line.
fn line_of(text: &[u8], is_such: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let mut lines = text.split(|it| *it == b'\n');
    lines.position(is_such).map(|at| at + 1)
}

/// Whether a line that is not empty has white space at its beginning or end; that it ends with CR and LF does not count.
fn has_white_space_around(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let trimmed = line.trim_ascii();
    !trimmed.is_empty() && trimmed.len() != line.len()
}

/// Why a place is closed where some clients need not sign on.
pub(crate) const EITHER: &str = "a route has all its clients sign on, or none: for addresses that need not, write a [[listen]] of \
    their own, and for it routes with `allow` and without `auth`";

/// How the front's sign-on differs from the source's.
pub(crate) const DIFFERENCES: &str = "an address that sends more than ten wrong passwords a minute gets 429 (`failures` of \
    [auth.NAME]), and a user who may not pass 401; passwords are asked for in UTF-8";
