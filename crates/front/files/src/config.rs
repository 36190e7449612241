//! The settings by which a directory is served.

use std::collections::BTreeMap;
use std::path::PathBuf;

use catamaran_coding::Coding;
use catamaran_message::{MediaPattern, essence};
use http::HeaderValue;

/// The settings by which a directory is served.
///
/// Each field is the key with the same name of `[[route]]` in `docs/reference.md`, which has its meaning, default
/// and the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesConfig {
    /// The directory that is served: the key `files`.
    pub root: PathBuf,
    /// Names of files that are served for a directory; the first that exists is.
    pub index: Vec<String>,
    /// The file that is served in the place of a missing page; `None`: such a page is answered 404.
    pub fallback: Option<String>,
    /// Where symbolic links below the directory may lead.
    pub links: Links,
    /// Patterns of names that are not served, besides the names that never are.
    pub hide: Vec<String>,
    /// How the `ETag` is made.
    pub etag: EtagRule,
    /// The value of `Cache-Control`; `None`: the field is not sent.
    pub cache_control: Option<HeaderValue>,
    /// The values of `Cache-Control` of files of some media types, which take precedence over `cache_control`; the first
    /// pattern that matches counts.
    pub cache_control_types: Vec<(MediaPattern, Option<HeaderValue>)>,
    /// The charset of texts; `None`: their media type has none.
    pub charset: Option<String>,
    /// Media types by extension, in lower case; they take precedence over the built-in ones.
    pub types: BTreeMap<String, HeaderValue>,
    /// Codings of files that may exist beside the plain ones, the preferred first.
    pub precompressed: Vec<Coding>,
}

impl FilesConfig {
    /// The settings for this directory, with defaults for the rest.
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
            cache_control_types: Vec::new(),
            charset: Some("utf-8".to_owned()),
            types: BTreeMap::new(),
            precompressed: vec![Coding::Brotli, Coding::Gzip],
        }
    }

    /// The value of `Cache-Control` of files with this value of `Content-Type`; `None`: the field is not sent.
    pub(crate) fn caching(&self, content_type: &HeaderValue) -> Option<&HeaderValue> {
        let name = essence(content_type.as_bytes());
        let mut of_types = self.cache_control_types.iter();
        match of_types.find(|(pattern, _)| pattern.matches(name)) {
            Some((_, value)) => value.as_ref(),
            None => self.cache_control.as_ref(),
        }
    }
}

/// Where symbolic links below the directory may lead. The directory itself may always be a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// Nowhere: a path with a link is treated as missing.
    Off,
    /// Anywhere inside the directory, by a relative path.
    Inside,
    /// Links may lead inside the directory, and inside these directories.
    Also(Vec<PathBuf>),
}

/// How the `ETag` of a file is made. A file whose time is 1970 always gets one of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagRule {
    /// The tag is made from the time of the file's last change, and from its size.
    Time,
    /// The tag is made from a digest of the file's bytes. For directories in which all files have the same
    /// time, as in container images.
    Content,
}
