//! A directory of files, and requests for them with the expected responses. They apply to any server of files and to
//! any protocol.

mod cases;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::http::Response;

/// A directory to serve, and next to it a directory that must not be served.
#[derive(Debug)]
pub struct FileTree {
    top: TempDir,
}

impl Default for FileTree {
    fn default() -> Self {
        Self::new()
    }
}

impl FileTree {
    /// Makes the files of [`FileCase::ALL`]: links, names of all kinds, a FIFO.
    ///
    /// # Panics
    /// A file cannot be written.
    #[must_use]
    pub fn new() -> Self {
        let tree = Self {
            top: tempfile::tempdir().expect("a directory"),
        };
        tree.fill().expect("files can be written");
        tree
    }

    fn fill(&self) -> io::Result<()> {
        let (root, outside) = (self.root(), self.top.path().join("outside"));
        for directory in ["dir", "dir2", "empty", ".well-known", "WEB-INF"] {
            fs::create_dir_all(root.join(directory))?;
        }
        fs::create_dir(&outside)?;
        fs::write(outside.join("secret.txt"), OUTSIDE)?;
        for (name, bytes) in FILES {
            fs::write(root.join(name), pattern(*bytes))?;
        }
        for (link, to) in [
            ("link-in", "page.html"),
            ("link-out", "../outside/secret.txt"),
            ("link-dir-out", "../outside"),
            ("loop", "loop"),
        ] {
            std::os::unix::fs::symlink(to, root.join(link))?;
        }
        std::os::unix::fs::symlink(outside.join("secret.txt"), root.join("link-abs"))?;
        let mode = Mode::from_raw_mode(0o644);
        mknodat(CWD, root.join("fifo"), FileType::Fifo, mode, 0)?;
        for entry in fs::read_dir(&root)? {
            let path = entry?.path();
            if path.is_file() {
                set_time(&path)?;
            }
        }
        Ok(())
    }

    /// The directory to serve.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.top.path().join("www")
    }
}

fn set_time(path: &Path) -> io::Result<()> {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED);
    fs::File::options().write(true).open(path)?.set_modified(at)
}

/// The first `bytes` bytes of the content of every file.
#[must_use]
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| b'a' + (at % 23) as u8).collect()
}

/// A request for a file, and the expected response.
#[derive(Debug)]
pub struct FileCase {
    /// The case's name in comparisons. Its first letters tell the subject (`inm`, `ims`, `r`, `c`, `p`, `t`).
    pub name: &'static str,
    /// The method of the request.
    pub method: &'static str,
    /// The path of the request, as it is sent.
    pub path: &'static str,
    /// The header fields of the request. `{etag}`, `{gz}` (the tag of the gzip coding) and `{date}` stand for
    /// validators of the file.
    fields: &'static [(&'static str, &'static str)],
    status: u16,
    /// Header fields of the response with the beginning of their value; an empty value means that the field is
    /// absent.
    headers: &'static [(&'static str, &'static str)],
    body: FileBody,
}

/// The expected body.
#[derive(Clone, Copy, Debug)]
enum FileBody {
    /// A page that the server makes itself.
    Page,
    Nothing,
    /// The bytes of the file from the first number to before the second.
    Bytes(usize, usize),
    /// Several ranges of the file as one multipart body.
    Parts(&'static [(usize, usize)], usize),
}

impl FileCase {
    /// All cases.
    pub const ALL: &'static [Self] = cases::CASES;

    /// The header fields of the request, with the placeholders of validators.
    #[must_use]
    pub fn asked(&self) -> &'static [(&'static str, &'static str)] {
        self.fields
    }

    /// A case for a HEAD request of the same path.
    #[must_use]
    pub fn head(&self) -> Self {
        Self {
            method: "HEAD",
            fields: &[],
            headers: &[],
            ..*self
        }
    }

    /// The header fields of the request, with validators in place of the placeholders. `head` must send a HEAD
    /// request with the fields that it gets; the validators are taken from its response.
    pub fn fields(
        &self,
        mut head: impl FnMut(&[(&'static str, String)]) -> Response,
    ) -> Vec<(&'static str, String)> {
        let gzip = [("accept-encoding", "gzip".to_owned())];
        let validators = [
            ("{etag}", &[][..], "etag"),
            ("{gz}", &gzip, "etag"),
            ("{date}", &[], "last-modified"),
        ];
        let mut fields = Vec::new();
        for (name, value) in self.fields {
            let mut value = (*value).to_owned();
            for (placeholder, request_fields, field) in validators {
                if value.contains(placeholder) {
                    let answer = head(request_fields);
                    value = value.replace(placeholder, answer.header(field).unwrap_or_default());
                }
            }
            fields.push((*name, value));
        }
        fields
    }

    /// Checks that a response is the expected one.
    ///
    /// # Errors
    /// The difference, in words.
    pub fn judge(&self, answer: &Response) -> Result<(), String> {
        if answer.status != self.status {
            return Err(format!("{} instead of {}", answer.status, self.status));
        }
        for (name, expected) in self.headers {
            let value = answer.header(name);
            let is_right = if expected.is_empty() {
                value.is_none()
            } else {
                value.is_some_and(|value| value.starts_with(expected))
            };
            if !is_right {
                return Err(format!("{name} is {value:?} instead of {expected:?}"));
            }
        }
        if answer.header("date").is_none() {
            return Err("it has no Date".to_owned());
        }
        let expected = match self.body {
            FileBody::Page => {
                return if answer.body.starts_with(b"<!doctype html>") {
                    Ok(())
                } else {
                    Err("it is no page".to_owned())
                };
            }
            FileBody::Nothing => Vec::new(),
            FileBody::Bytes(from, to) => pattern(to).split_off(from),
            FileBody::Parts(parts, size) => multipart(answer, parts, size),
        };
        if answer.body == expected {
            Ok(())
        } else {
            Err(format!(
                "{} bytes, {:?}",
                answer.body.len(),
                String::from_utf8_lossy(&answer.body)
            ))
        }
    }
}

/// The expected multipart body; its boundary is taken from the response.
fn multipart(answer: &Response, parts: &[(usize, usize)], size: usize) -> Vec<u8> {
    let media_type = answer.header("content-type").unwrap_or_default();
    let boundary = media_type.split("boundary=").nth(1).unwrap_or_default();
    let mut body = Vec::new();
    for (from, to) in parts {
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Range: bytes {from}-{}/{size}\r\n\r\n",
            to - 1
        );
        body.extend_from_slice(head.as_bytes());
        body.extend(pattern(*to).split_off(*from));
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    body
}

/// The content of the file outside of the served directory. No response may contain it.
pub const OUTSIDE: &str = "OUTSIDE";

/// The time at which every file was last changed, in seconds since 1970.
const MODIFIED: u64 = 1_700_000_000;

/// The names of files, with their lengths.
const FILES: &[(&str, usize)] = &[
    ("page.html", 1456),
    ("big.bin", 100_000),
    ("empty.txt", 0),
    ("app.js", 1000),
    ("app.js.gz", 200),
    ("app.js.br", 150),
    ("only.css", 1000),
    ("only.css.gz", 200),
    ("gone.js.gz", 200),
    ("index.html", 300),
    ("dir2/index.html", 400),
    ("dir/x.txt", 100),
    (".secret", 10),
    ("dir/.secret", 10),
    (".well-known/security.txt", 20),
    ("WEB-INF/web.xml", 20),
    ("a b.txt", 11),
    ("\u{e9}.txt", 12),
    ("100%.txt", 13),
    ("a+b.txt", 14),
    ("a;b.txt", 15),
    ("x.mjs", 5),
    ("x.wasm", 5),
    ("x.woff2", 5),
    ("x.svg", 5),
    ("x.json", 5),
    ("x.webmanifest", 5),
    ("x.xml", 5),
    ("x.txt", 5),
    ("x.avif", 5),
    ("noext", 5),
    ("x.unknownext", 5),
];
