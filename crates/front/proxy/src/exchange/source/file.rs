//! A file as the source of a response.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use catamaran_files::{FileBody, FileBodyError, FilePart, FilePiece, FileSending};
use catamaran_message::ResponseHead;
use catamaran_upstream::Event;

use crate::counters::WorkerCounters;

/// A file that is being sent to the client.
#[derive(Debug)]
pub(crate) struct FileSource<'a> {
    /// The head of the response; `None` once it was taken.
    head: Option<Box<ResponseHead>>,
    /// The body of the response; `None` for a HEAD.
    body: Option<FileBody>,
    /// Whether parts of the file are passed to the kernel, which sends them, instead of being read.
    pub(super) by_parts: bool,
    /// The part of the file that the kernel is to send next.
    pub(super) part: Option<FilePart>,
    pub(super) is_compressed: bool,
    counters: &'a WorkerCounters,
}

impl<'a> FileSource<'a> {
    /// A source of the response `sending` with this body.
    pub(crate) fn new(
        sending: FileSending,
        body: Option<FileBody>,
        by_parts: bool,
        counters: &'a WorkerCounters,
    ) -> Self {
        let head = ResponseHead {
            status: sending.status,
            headers: sending.headers,
            content_length: Some(sending.length),
            ..ResponseHead::default()
        };
        Self {
            head: Some(Box::new(head)),
            body,
            by_parts,
            part: None,
            is_compressed: sending.is_compressed,
            counters,
        }
    }

    /// The next event of the response. A part of the file that the kernel is to send is kept in `part`, and an empty
    /// piece of the body stands for it.
    pub(super) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Event, FileBodyError>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Ok(Event::Head(head)));
        }
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(Event::End));
        };
        if !self.by_parts {
            let piece = body.poll_next(cx);
            return piece.map_ok(|piece| piece.map_or(Event::End, Event::Body));
        }
        Poll::Ready(Ok(match ready!(body.poll_piece(cx))? {
            Some(FilePiece::Bytes(bytes)) => Event::Body(bytes),
            Some(FilePiece::Part(part)) => {
                self.part = Some(part);
                Event::Body(Bytes::new())
            }
            None => Event::End,
        }))
    }
}

impl Drop for FileSource<'_> {
    fn drop(&mut self) {
        if let Some(body) = &self.body {
            self.counters.file_thread_reads(body.thread_reads());
        }
    }
}
