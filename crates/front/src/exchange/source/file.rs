//! A file as the source of a response.

use std::task::{Context, Poll};

use catamaran_files::{FileBody, FileBodyError, FilePiece, FileSending};
use catamaran_message::ResponseHead;
use catamaran_upstream::Event;

use crate::counters::WorkerCounters;
use crate::exchange::source::SourceEvent;

/// A file on its way to the client.
#[derive(Debug)]
pub(crate) struct FileSource<'a> {
    /// `None` once it was taken.
    head: Option<Box<ResponseHead>>,
    /// `None` for a HEAD.
    body: Option<FileBody>,
    /// Whether the kernel can send bytes of a file to the client.
    by_parts: bool,
    counters: &'a WorkerCounters,
}

impl<'a> FileSource<'a> {
    /// What was decided to be sent of a file, with its body.
    pub(crate) fn new(
        sending: FileSending,
        body: Option<FileBody>,
        by_parts: bool,
        counters: &'a WorkerCounters,
    ) -> Self {
        let head = ResponseHead {
            status: sending.status,
            reason: None,
            headers: sending.headers,
            content_length: Some(sending.length),
        };
        Self {
            head: Some(Box::new(head)),
            body,
            by_parts,
            counters,
        }
    }

    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, FileBodyError>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Ok(Event::Head(head)));
        }
        let Some(body) = &mut self.body else {
            return Poll::Ready(Ok(Event::End));
        };
        let piece = body.poll_next(cx);
        piece.map_ok(|piece| piece.map_or(Event::End, Event::Body))
    }

    /// As [`Self::poll_event`], with parts of the file if the client takes them.
    pub(super) fn poll_source_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<SourceEvent, FileBodyError>> {
        match &mut self.body {
            Some(body) if self.by_parts && self.head.is_none() => {
                let piece = body.poll_piece(cx);
                piece.map_ok(|piece| match piece {
                    Some(FilePiece::Part(part)) => SourceEvent::File(part),
                    Some(FilePiece::Bytes(bytes)) => SourceEvent::Plain(Event::Body(bytes)),
                    None => SourceEvent::Plain(Event::End),
                })
            }
            _ => self.poll_event(cx).map_ok(SourceEvent::Plain),
        }
    }
}

impl Drop for FileSource<'_> {
    fn drop(&mut self) {
        if let Some(body) = &self.body {
            self.counters.file_thread_reads(body.thread_reads());
        }
    }
}
