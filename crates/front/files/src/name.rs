//! Turns a path into the name of a file, and refuses names that are never served.

use thiserror::Error;

use crate::config::FilesConfig;

/// The name of a file or of a directory, relative to the directory that is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    /// The decoded name, without slashes at both ends; empty for the directory itself.
    relative: Vec<u8>,
    is_directory: bool,
}

/// Why a path is not the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameFault {
    /// The path does not begin with a slash, or has an escaped slash, a backslash or NUL.
    #[error("the path has an escaped slash, a backslash or NUL, which no name has")]
    Separator,
    /// A segment has more than 255 bytes, or the path is too long for a system call.
    #[error("a name of the path is too long")]
    TooLong,
    /// A segment is a name that is never served, or matches `hide`.
    #[error("the name is hidden")]
    Hidden,
}

impl FileName {
    /// Decodes a normalised path to a name. Parameters (`;`) belong to the name.
    ///
    /// # Errors
    /// The path names nothing that may be served.
    pub fn new(path: &[u8], config: &FilesConfig) -> Result<Self, NameFault> {
        let encoded = path.strip_prefix(b"/").ok_or(NameFault::Separator)?;
        let is_directory = encoded.is_empty() || encoded.ends_with(b"/");
        let mut relative = Vec::with_capacity(encoded.len());
        for segment in encoded.split(|&byte| byte == b'/') {
            if segment.is_empty() {
                continue;
            }
            if !relative.is_empty() {
                relative.push(b'/');
            }
            let segment_start = relative.len();
            decode(segment, &mut relative)?;
            let name = &relative[segment_start..];
            if name.len() > NAME_MAX {
                return Err(NameFault::TooLong);
            }
            if is_hidden(name, &config.hide) {
                return Err(NameFault::Hidden);
            }
        }
        if relative.len() > PATH_MAX {
            return Err(NameFault::TooLong);
        }
        Ok(Self {
            relative,
            is_directory,
        })
    }

    /// The bytes of the name, relative to the directory that is served.
    #[must_use]
    pub fn relative(&self) -> &[u8] {
        &self.relative
    }

    /// Whether the path ends in a slash, so that it names a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Whether the name may be a page of an application with routes in the browser: its last segment
    /// has no dot.
    pub(crate) fn is_page(&self) -> bool {
        let last = self.relative.rsplit(|&byte| byte == b'/').next();
        !last.unwrap_or_default().contains(&b'.')
    }
}

/// Decodes one segment of a path and appends it to `name`. A percent sign that begins no escape stands for itself.
fn decode(segment: &[u8], name: &mut Vec<u8>) -> Result<(), NameFault> {
    let mut rest = segment;
    while let Some((&first, after_first)) = rest.split_first() {
        let (byte, after) = match unescape(rest) {
            Some((byte, after_escape)) => (byte, after_escape),
            None => (first, after_first),
        };
        if matches!(byte, b'/' | b'\\' | 0) {
            return Err(NameFault::Separator);
        }
        name.push(byte);
        rest = after;
    }
    Ok(())
}

/// The byte that an escape at the beginning of a text stands for, and the text after the escape; `None`: there is none.
fn unescape(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'%', high, low, after @ ..] => Some((hex(*high)? << 4 | hex(*low)?, after)),
        _ => None,
    }
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Whether a segment is a name that is never served, or that `hide` covers.
fn is_hidden(name: &[u8], hide: &[String]) -> bool {
    let is_dotted = name.starts_with(b".") && name != b".well-known";
    is_dotted
        || of_application(name)
        || hide.iter().any(|pattern| matches(pattern.as_bytes(), name))
}

/// Whether a servlet container would hide this name, too, or would run the file: a directory that is
/// served is often an exploded WAR.
fn of_application(name: &[u8]) -> bool {
    let is_private = |private: &&[u8]| name.eq_ignore_ascii_case(private);
    let is_source = |suffix: &&[u8]| {
        let start = name.len().checked_sub(suffix.len());
        start.is_some_and(|start| name[start..].eq_ignore_ascii_case(suffix))
    };
    PRIVATE.iter().any(is_private) || SOURCES.iter().any(is_source)
}

/// Whether a pattern matches the whole name: `*` matches any bytes, `?` one byte.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut next, mut position) = (0, 0);
    // The place after the last star in the pattern, and the end in the name of what that star matches so far.
    let mut star: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(next) {
            Some(b'*') => {
                next += 1;
                star = Some((next, position));
            }
            Some(&byte) if byte == b'?' || byte == name[position] => {
                next += 1;
                position += 1;
            }
            // Tries again from the last star, which then matches one byte more.
            _ => match &mut star {
                Some((after_star, end)) => {
                    *end += 1;
                    (next, position) = (*after_star, *end);
                }
                None => return false,
            },
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}

/// Directories of a WAR that are never served.
const PRIVATE: &[&[u8]] = &[b"WEB-INF", b"META-INF"];

/// Suffixes of files that a servlet container compiles and runs.
const SOURCES: &[&[u8]] = &[b".jsp", b".jspx", b".jspf", b".tag"];

/// The longest segment in bytes that file systems allow.
const NAME_MAX: usize = 255;

/// The longest path in bytes that a system call accepts, less its closing NUL and the longest suffix of
/// a coding.
const PATH_MAX: usize = 4096 - 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, hide: &[&str]) -> Result<Vec<u8>, NameFault> {
        let mut config = FilesConfig::new("/srv");
        config.hide = hide.iter().map(|it| (*it).to_owned()).collect();
        FileName::new(path.as_bytes(), &config).map(|name| name.relative)
    }

    #[test]
    fn a_path_names_a_file_once_decoded() {
        for (path, relative) in [
            ("/", ""),
            ("/a/b.html", "a/b.html"),
            ("/a/", "a"),
            ("/a%20b%25", "a b%"),
            ("/a;b=c", "a;b=c"),
            ("/a%3Bb", "a;b"),
            ("/100%", "100%"),
            ("/%zz", "%zz"),
            ("/.well-known/x", ".well-known/x"),
        ] {
            assert_eq!(name(path, &[]), Ok(relative.into()), "{path}");
        }
        assert_eq!(name("/%ff%c3%a9", &[]), Ok(b"\xff\xc3\xa9".to_vec()));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for path in ["*", "", "a", "/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00"] {
            assert_eq!(name(path, &[]), Err(NameFault::Separator), "{path}");
        }
        let long = "a".repeat(255);
        assert!(name(&format!("/{long}"), &[]).is_ok());
        assert_eq!(name(&format!("/{long}a"), &[]), Err(NameFault::TooLong));
        let deep = format!("/{long}").repeat(17);
        assert_eq!(name(&deep, &[]), Err(NameFault::TooLong));
    }

    #[test]
    fn what_a_container_hides_is_hidden() {
        for path in [
            "/.git/config",
            "/a/.secret",
            "/..",
            "/../x",
            "/.",
            "/.well-known2",
            "/.well-known/.x",
            "/WEB-INF/web.xml",
            "/a/web-inf/x",
            "/%57EB-INF/x",
            "/META-INF/MANIFEST.MF",
            "/a.jsp",
            "/a.JSP",
            "/a.jspx",
            "/inc/a.jspf",
            "/a.tag",
            "/.jsp",
        ] {
            assert_eq!(name(path, &[]), Err(NameFault::Hidden), "{path}");
        }
        for path in ["/a.jsp.txt", "/WEB-INFO/x", "/jsp", "/a.jsp%20"] {
            assert!(name(path, &[]).is_ok(), "{path}");
        }
    }

    #[test]
    fn patterns_hide_further_names() {
        let hide = ["*.map", "private", "?~", "a*b*c"];
        for path in [
            "/x.map",
            "/private/x",
            "/x/private",
            "/x~",
            "/abc",
            "/a-b-b-c",
        ] {
            assert_eq!(name(path, &hide), Err(NameFault::Hidden), "{path}");
        }
        for path in ["/x.maps", "/privates", "/xx~", "/ab", "/map"] {
            assert!(name(path, &hide).is_ok(), "{path}");
        }
    }

    #[test]
    fn a_page_has_no_dot_in_its_last_name() {
        let config = FilesConfig::new("/srv");
        for (path, is_page) in [("/a.b/c", true), ("/", true), ("/a/b.js", false)] {
            let name = FileName::new(path.as_bytes(), &config).unwrap();
            assert_eq!(name.is_page(), is_page, "{path}");
        }
    }
}
