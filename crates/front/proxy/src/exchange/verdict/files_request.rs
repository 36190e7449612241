//! A request that a file may answer.

use std::sync::Arc;

use bytes::Bytes;
use catamaran_coding::AcceptedCodings;
use catamaran_files::{Directory, FileName, FileQuery, NameFault};
use catamaran_message::RequestHead;
use catamaran_message::name::{ACCEPT, ACCEPT_ENCODING};

use super::Forward;

/// A GET or HEAD request that a file may answer.
#[derive(Debug)]
pub(crate) struct FilesRequest<'s> {
    pub(crate) directory: &'s Arc<Directory>,
    /// The query for the file, or the reason why no file can have such a name.
    pub(crate) query: Result<FileQuery, NameFault>,
    /// The path of the file to look up: the path as it would be forwarded.
    pub(crate) path: Bytes,
    /// The path that the client sent, normalised and not rewritten.
    sent: Bytes,
    /// The query that the client sent.
    sent_query: Option<Bytes>,
    pub(crate) without_file: WithoutFile<'s>,
}

/// What happens to a request for a file if the file does not exist.
#[derive(Debug)]
pub(crate) enum WithoutFile<'s> {
    /// The request is answered 404.
    NotFound(Box<RequestHead>),
    /// The request goes to an upstream.
    Forward(Forward<'s>),
}

impl<'s> FilesRequest<'s> {
    /// Makes the query for a file from the head as the client sent it, before a cache changes the head. `sent` is the
    /// path in the client's request.
    pub(super) fn new(
        directory: &'s Arc<Directory>,
        sent: Bytes,
        path: Bytes,
        without_file: WithoutFile<'s>,
    ) -> Box<Self> {
        let head = without_file.head();
        let config = directory.config();
        let is_alone = matches!(without_file, WithoutFile::NotFound(_));
        let query = FileName::new(&path, config).map(|name| {
            let accepted = head.headers.get_all(ACCEPT_ENCODING);
            FileQuery {
                name,
                codings: AcceptedCodings::of(accepted, &config.precompressed),
                ends_in_slash: sent.ends_with(b"/"),
                wants_page: is_alone && wants_page(head),
            }
        });
        let sent_query = head.target.query.clone();
        Box::new(Self {
            directory,
            query,
            path,
            sent,
            sent_query,
            without_file,
        })
    }

    /// The request's head.
    pub(crate) fn head(&self) -> &RequestHead {
        self.without_file.head()
    }

    /// The location to which a request for a directory is redirected: the path that the client sent, a slash, and the
    /// query. It begins with a single slash, so it is on this host.
    pub(crate) fn directory_location(&self) -> Vec<u8> {
        let mut location = [&self.sent[..], b"/"].concat();
        if let Some(query) = &self.sent_query {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        location
    }
}

impl WithoutFile<'_> {
    fn head(&self) -> &RequestHead {
        match self {
            Self::NotFound(head) => head,
            Self::Forward(forward) => &forward.outgoing.head,
        }
    }
}

/// Whether a browser asks for a page, rather than for an image, script or style of one.
pub(crate) fn wants_page(head: &RequestHead) -> bool {
    head.headers.elements(ACCEPT).any(|element| {
        let mut parts = element.split(|&byte| byte == b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        name.eq_ignore_ascii_case(b"text/html")
    })
}
