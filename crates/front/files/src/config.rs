//! How a directory is served.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catamaran_coding::Coding;
use http::HeaderValue;

/// How a directory is served.
///
/// Each field is the key of that name of `[[route]]` in `docs/reference.md`, which has its meaning, default and the
/// directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesConfig {
    /// The directory: the key `files`.
    pub root: PathBuf,
    /// Names of the files that stand for a directory, the first that exists.
    pub index: Vec<String>,
    /// The file that is served in the place of a missing page; `None`: such a page is answered 404.
    pub fallback: Option<String>,
    /// Where symbolic links may lead.
    pub links: Links,
    /// Patterns of names that are not served, besides those that never are.
    pub hide: Vec<String>,
    /// What the `ETag` is made of.
    pub etag: EtagRule,
    /// The value of `Cache-Control`; `None`: the field is not sent.
    pub cache_control: Option<HeaderValue>,
    /// The charset of texts; `None` says none.
    pub charset: Option<String>,
    /// Media types by extension, in lower case, before those that are known.
    pub types: BTreeMap<String, HeaderValue>,
    /// Codings of which files exist beside the plain ones, the preferred first.
    pub precompressed: Vec<Coding>,
}

impl FilesConfig {
    /// This directory with every default.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            index: vec!["index.html".to_owned()],
            fallback: None,
            links: Links::Inside,
            hide: Vec::new(),
            etag: EtagRule::Time,
            cache_control: None,
            charset: Some("utf-8".to_owned()),
            types: BTreeMap::new(),
            precompressed: vec![Coding::Brotli, Coding::Gzip],
        }
    }
}

/// Where symbolic links below the directory may lead. The directory itself may be one in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// Nowhere: a path with a link names nothing.
    Off,
    /// Anywhere inside the directory, by a relative path.
    Inside,
    /// Inside the directory, and inside these.
    Also(Vec<PathBuf>),
}

/// What the `ETag` of a file is made of. A file whose time is 1970 has one of its content in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagRule {
    /// The time of its last change, and its size.
    Time,
    /// A digest of its bytes: for directories in which all files have one time, as images of containers may.
    Content,
}
