//! The lines of files of users and of groups: their limits, and how all their faults are found at once.
//!
//! As httpd reads them: white space around a line is ignored, and so are empty lines and those that begin with `#`.
//! No fault contains bytes of the file, because a line may have a password that is not hashed.

use thiserror::Error;

use crate::hash::HashFault;

/// A line that cannot be used. The whole file is refused because of it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {fault}")]
pub struct FaultyLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub fault: LineFault,
}

/// What is wrong with a line of a file of users or groups.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LineFault {
    /// The line is longer than any that `htpasswd` or an administrator writes.
    #[error("the line has more than {max} bytes")]
    TooLong {
        /// The most bytes of a line.
        max: usize,
    },
    /// The line, or the name at its beginning, contains a control character.
    #[error("the line has a control character")]
    ControlCharacter,
    /// The line is not encoded in UTF-8, which the names of users must be.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// Nothing divides the name from the rest.
    #[error("the line has no colon after a name")]
    NoColon,
    /// The line begins with a colon.
    #[error("there is no name before the colon")]
    NoName,
    /// The name is longer than `htpasswd` would take.
    #[error("the name has more than {NAME_BYTES_MAX} bytes")]
    NameTooLong,
    /// The name of a group contains white space, which httpd takes for a part of it and a reader does not see.
    #[error("the name of the group has a space in it or before the colon")]
    SpaceInGroup,
    /// A member of a group is in quotes.
    #[error("a user in quotes is not supported")]
    Quote,
    /// The line ends with a backslash, by which httpd joins the next line to it.
    #[error("the line ends with a backslash")]
    Backslash,
    /// Another line has the same user.
    #[error("the user has a line already: line {first}")]
    Duplicate {
        /// The first line with this user.
        first: usize,
    },
    /// The user's hash cannot be used.
    #[error(transparent)]
    Hash(#[from] HashFault),
    /// The file has more users, or more members of groups, than are kept.
    #[error("the file has more than {max} users; it is not read further")]
    TooMany {
        /// The most users of a file.
        max: usize,
    },
    /// The file is too large.
    #[error("the file has more than {FILE_BYTES_MAX} bytes; it is not read")]
    TooLarge,
    /// This line has a fault too, after as many as anybody reads.
    #[error("this line has a fault too, after {FAULTS_MAX} others; the file is not read further")]
    More,
}

impl FaultyLine {
    /// What the administrator can do about the fault; empty if the message says it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.fault {
            LineFault::Hash(fault) => fault.hint(),
            LineFault::NoColon => "a user is `user:hash`, a group is `group: user user`",
            LineFault::Quote => "write the name without quotes; it can have no spaces",
            LineFault::Backslash => "httpd joins the next line to it, also to a comment",
            LineFault::Duplicate { .. } => "remove one of both",
            LineFault::TooLong { .. }
            | LineFault::ControlCharacter
            | LineFault::NotUtf8
            | LineFault::NoName
            | LineFault::NameTooLong
            | LineFault::SpaceInGroup
            | LineFault::TooMany { .. }
            | LineFault::TooLarge
            | LineFault::More => "",
        }
    }
}

/// Calls `take` with the number and the text of each line that is neither empty nor a comment.
///
/// # Errors
/// The faults of the lines, in their order, whether found here or by `take`.
pub(crate) fn read<'f>(
    file: &'f [u8],
    line_bytes_max: usize,
    mut take: impl FnMut(usize, &'f str) -> Result<(), LineFault>,
) -> Result<(), Vec<FaultyLine>> {
    if let Some(beginning) = file.get(..FILE_BYTES_MAX)
        && file.len() > FILE_BYTES_MAX
    {
        let line = 1 + beginning.iter().filter(|byte| **byte == b'\n').count();
        let fault = LineFault::TooLarge;
        return Err(vec![FaultyLine { line, fault }]);
    }
    let mut faults = Vec::new();
    for (line, bytes) in (1..).zip(file.split(|byte| *byte == b'\n')) {
        let bytes = bytes.trim_ascii();
        let text = if bytes.ends_with(b"\\") {
            Err(LineFault::Backslash)
        } else if bytes.is_empty() || bytes.starts_with(b"#") {
            continue;
        } else {
            text_of(bytes, line_bytes_max)
        };
        let Err(found) = text.and_then(|text| take(line, text)) else {
            continue;
        };
        let fault = if faults.len() < FAULTS_MAX {
            found
        } else {
            LineFault::More
        };
        faults.push(FaultyLine { line, fault });
        if matches!(fault, LineFault::TooMany { .. } | LineFault::More) {
            break;
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        Err(faults)
    }
}

fn text_of(bytes: &[u8], max: usize) -> Result<&str, LineFault> {
    if bytes.len() > max {
        return Err(LineFault::TooLong { max });
    }
    let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if bytes.iter().any(is_control) {
        return Err(LineFault::ControlCharacter);
    }
    std::str::from_utf8(bytes).map_err(|_| LineFault::NotUtf8)
}

/// Divides a line into the name before its first colon and the rest.
///
/// # Errors
/// There is no name, or it is no name that a client could send.
pub(crate) fn name_and_rest(line: &str) -> Result<(&str, &str), LineFault> {
    let (name, rest) = line.split_once(':').ok_or(LineFault::NoColon)?;
    if name.is_empty() {
        return Err(LineFault::NoName);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(LineFault::NameTooLong);
    }
    if name.contains(char::is_control) {
        return Err(LineFault::ControlCharacter);
    }
    Ok((name, rest))
}

/// The most bytes of a file. 10,000 users have about 1 MiB.
pub const FILE_BYTES_MAX: usize = 4 << 20;

/// The most bytes of a user's or a group's name, which is `htpasswd`'s limit.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The most faults of one file that are told apart.
const FAULTS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// What a line is, with its number.
    type Numbered<T> = (usize, T);

    /// The lines that are taken, or the faults. A line `bad` has a fault of its own.
    fn check(file: &[u8]) -> Result<Vec<Numbered<&str>>, Vec<Numbered<LineFault>>> {
        let mut taken = Vec::new();
        let result = read(file, 20, |line, text| match text {
            "bad" => Err(LineFault::Quote),
            "end" => Err(LineFault::TooMany { max: 1 }),
            _ => {
                taken.push((line, text));
                Ok(())
            }
        });
        let faults =
            |faults: Vec<FaultyLine>| faults.iter().map(|it| (it.line, it.fault)).collect();
        result.map(|()| taken).map_err(faults)
    }

    #[test]
    fn comments_and_white_space_are_passed_over() {
        let file = b"a:1\r\n\n  # c:2\n \t d:\t3 \n#e\r\nf:4";
        assert_eq!(check(file), Ok(vec![(1, "a:1"), (4, "d:\t3"), (6, "f:4")]));
        assert_eq!(check(b""), Ok(vec![]));
    }

    #[test]
    fn all_faults_come_at_once() {
        let file = b"a\0b\nok\nbad\nx\x7f\n\xff\n123456789012345678901\n\x0b#\n";
        let expected = vec![
            (1, LineFault::ControlCharacter),
            (3, LineFault::Quote),
            (4, LineFault::ControlCharacter),
            (5, LineFault::NotUtf8),
            (6, LineFault::TooLong { max: 20 }),
            (7, LineFault::ControlCharacter),
        ];
        assert_eq!(check(file), Err(expected));
    }

    #[test]
    fn no_line_joins_the_next() {
        let file = b"# old \\\na:1\nb:2\\\r\nc\\d:3\n\\ \n";
        let expected = [1, 3, 5].map(|line| (line, LineFault::Backslash));
        assert_eq!(check(file), Err(expected.to_vec()));
    }

    #[test]
    fn reading_ends() {
        let expected = vec![(1, LineFault::Quote), (2, LineFault::TooMany { max: 1 })];
        assert_eq!(check(b"bad\nend\nbad\n"), Err(expected));
        let faults = check(&b"bad\n".repeat(FAULTS_MAX)).unwrap_err();
        assert!(faults.iter().all(|(_, fault)| *fault == LineFault::Quote));
        let more = check(&b"bad\n".repeat(FAULTS_MAX * 9)).unwrap_err();
        assert_eq!(more[..FAULTS_MAX], faults);
        assert_eq!(more[FAULTS_MAX..], [(FAULTS_MAX + 1, LineFault::More)]);
        let mut large = vec![b'#'; FILE_BYTES_MAX];
        large[9] = b'\n';
        assert_eq!(check(&large), Ok(vec![]));
        large.push(b'#');
        assert_eq!(check(&large), Err(vec![(2, LineFault::TooLarge)]));
    }

    #[test]
    fn names_end_at_the_first_colon() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        for (line, expected) in [
            ("ann:b:c", Ok(("ann", "b:c"))),
            ("ann e:", Ok(("ann e", ""))),
            ("ann", Err(LineFault::NoColon)),
            (":b", Err(LineFault::NoName)),
            ("a\tb:c", Err(LineFault::ControlCharacter)),
            ("a\u{85}b:c", Err(LineFault::ControlCharacter)),
            (&format!("{longest}:"), Ok((longest.as_str(), ""))),
            (&format!("{longest}n:"), Err(LineFault::NameTooLong)),
        ] {
            assert_eq!(name_and_rest(line), expected, "{line}");
        }
    }
}
