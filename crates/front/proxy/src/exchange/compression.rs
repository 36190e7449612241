//! Compresses a response on its way from the source to the client.
//!
//! [`CompressionOffer`] decides from the head of a response whether it is compressed, and adapts the head.
//! [`Compression`] then stands between the source and the relay: it takes the source's events and yields those of the
//! compressed body. Compressed bytes are flushed when the source asks for that or has nothing more for now, so that the
//! events of a stream reach the client as they are sent.
//!
//! A worker compresses one piece at a time, and at most one piece is kept for a client that does not read.

use std::task::{Context, Poll};

use bytes::Bytes;
use catamaran_coding::{AcceptedCodings, Coding, Encoder, EncoderFault, StreamCoding, code};
use catamaran_message::name::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MATCH,
    RANGE, VARY,
};
use catamaran_message::{Fields, Id, RequestHead, ResponseHead, Traits};
use catamaran_upstream::{Culprit, Event};
use http::Method;

use crate::config::CompressConfig;
use crate::counters::{Reason, WorkerCounters};
use crate::exchange::scene::Scene;
use crate::exchange::source_error::SourceError;
use crate::version;
use crate::worker::encoders::ReservedMemory;

/// How the response to a request may be compressed, as the request's head and the route decide.
#[derive(Debug)]
pub(crate) struct CompressionOffer<'s> {
    config: &'s CompressConfig,
    /// The unparsed lines of `Accept-Encoding`; none if the response must not be compressed.
    accepts: Vec<Bytes>,
    /// Whether the request is HEAD: the head of the response is adapted, and no body is sent.
    pub(crate) is_head: bool,
    /// The most bytes of memory that all encoders of the process may take.
    memory_max: u64,
}

impl<'s> CompressionOffer<'s> {
    /// Makes the offer from the request's head as the client sent it.
    pub(crate) fn new(config: &'s CompressConfig, memory_max: u64, head: &RequestHead) -> Self {
        // The request may forbid it as well (RFC 9111, section 5.2.1.6). HTTP/1.0 has no chunks.
        let is_allowed = version::has_chunks(head.version) && !forbids(&head.headers);
        let lines = head.headers.get_all(ACCEPT_ENCODING).filter(|_| is_allowed);
        Self {
            config,
            accepts: lines.map(|line| head.headers.share(line)).collect(),
            is_head: head.method == Method::HEAD,
            memory_max,
        }
    }

    /// The route's codings that the client accepts, the best first.
    fn accepted(&self) -> AcceptedCodings {
        let lines = self.accepts.iter().map(|line| &line[..]);
        AcceptedCodings::of(lines, &self.config.codings)
    }

    /// Whether the route compresses responses of this media type, so that they depend on the codings that the client
    /// accepts.
    pub(crate) fn covers(&self, content_type: &[u8]) -> bool {
        self.config.covers(content_type)
    }

    /// Begins to compress a response as it streams, and adapts its head. `None`: the response is sent as it is.
    pub(crate) fn begin(
        &self,
        head: &mut ResponseHead,
        scene: Scene<'_>,
    ) -> Option<Box<Compression>> {
        let coding = self.settle(head)?;
        let Some(memory) = self.reserve(coding.into(), scene) else {
            let reason = Reason::new(Culprit::Front, "compress-memory");
            scene.worker.count(reason);
            return None;
        };
        let encoder = match Encoder::new(coding) {
            Ok(encoder) => encoder,
            Err(fault) => {
                tracing::warn!(reason = "front:compress-memory", "{fault}");
                return None;
            }
        };
        let (coding, encoder) = (coding.into(), Some((encoder, memory)));
        let compression = Compression::new(coding, encoder, head.content_length);
        describe(head, coding);
        Some(Box::new(compression))
    }

    /// Compresses a whole body; `None` if the encoders would hold too much memory, or the encoder fails.
    pub(crate) fn code<T: AsRef<[u8]>>(
        &self,
        coding: Coding,
        pieces: impl IntoIterator<Item = T>,
        scene: Scene<'_>,
    ) -> Option<Bytes> {
        let _held = self.reserve(coding, scene)?;
        code(coding, pieces).ok()
    }

    /// The best compressed copy of a whole body. `copy_in` yields the copy in a coding, if it is kept or worth making.
    /// `None` if it is better to compress the body as it streams, or to send it as it is.
    pub(crate) fn choose(
        &self,
        mut copy_in: impl FnMut(Coding) -> Option<Bytes>,
    ) -> Option<(Coding, Bytes)> {
        for coding in self.accepted().iter() {
            if let Some(bytes) = copy_in(coding) {
                return Some((coding, bytes));
            }
            // The body can stream in this coding, which the client prefers to those that follow.
            if coding.streamed().is_some() {
                return None;
            }
        }
        None
    }

    /// Reserves the memory of an encoder; `None` if all encoders of the process would hold too much.
    pub(crate) fn reserve(&self, coding: Coding, scene: Scene<'_>) -> Option<ReservedMemory> {
        let memory = scene.worker.encoder_memory();
        memory.reserve(coding.memory(), self.memory_max)
    }

    /// Adapts the head of a 304 to the full response `plain`: adds to `Vary`, and makes the tag weak if that response
    /// would be compressed.
    pub(crate) fn mark_unmodified(
        &self,
        head: &mut ResponseHead,
        plain: &ResponseHead,
        is_kept: impl Fn(Coding) -> bool,
    ) {
        if !self.is_for(plain) {
            return;
        }
        vary(&mut head.headers, ACCEPT_ENCODING);
        let accepted = self.accepted();
        let mut codings = accepted.iter();
        let is_coded = codings.any(|coding| coding.streamed().is_some() || is_kept(coding));
        if is_coded && let Some(weak) = head.headers.get(ETAG).and_then(weakened) {
            head.headers.insert(ETAG, weak);
        }
    }

    /// Adds `Accept-Encoding` to `Vary` and returns `true`, if the response depends on the codings that the client
    /// accepts.
    pub(crate) fn mark_varying(&self, head: &mut ResponseHead) -> bool {
        let is_for = self.is_for(head);
        if is_for {
            vary(&mut head.headers, ACCEPT_ENCODING);
        }
        is_for
    }

    /// Chooses the coding in which the body is to stream; `None`: it is not compressed. For HEAD the head is adapted
    /// here.
    fn settle(&self, head: &mut ResponseHead) -> Option<StreamCoding> {
        if !self.mark_varying(head) {
            return None;
        }
        let coding = self.accepted().iter().find_map(Coding::streamed)?;
        if self.is_head {
            describe(head, coding.into());
            return None;
        }
        Some(coding)
    }

    /// Describes how responses would be compressed, for explanations.
    pub(crate) fn words(&self) -> String {
        let accepted = self.accepted();
        let streamed = accepted.iter().find_map(Coding::streamed);
        // The preferred coding, if only whole bodies are compressed in it. There is at most one, Brotli.
        let preferred = accepted.iter().next();
        let whole = preferred.filter(|coding| coding.streamed().is_none());
        let with = match (whole.map(Coding::token), streamed.map(StreamCoding::token)) {
            (Some(whole), Some(streamed)) => {
                format!("{whole} once the front keeps the body in it, else with {streamed},")
            }
            (Some(whole), None) => format!("{whole} once the front keeps the body in it,"),
            (None, Some(streamed)) => streamed.to_owned(),
            (None, None) => {
                let why = "the client takes no coding of `compress`";
                return format!("the response is not compressed: {why}");
            }
        };
        format!(
            "the response is compressed with {with} if its type is one of `compress_types` and it is coded in \
             no other way"
        )
    }

    /// Whether a response with this head is compressed for clients that accept a coding.
    fn is_for(&self, head: &ResponseHead) -> bool {
        let headers = &head.headers;
        let has_body = !matches!(head.status.as_u16(), 100..=199 | 204 | 205 | 206 | 304);
        let is_long = |length: u64| length >= self.config.min.max(1);
        has_body
            && head.content_length.is_none_or(is_long)
            && headers
                .get(CONTENT_TYPE)
                .is_some_and(|media_type| self.covers(media_type))
            && !headers.has(Traits::EXACT_BODY)
            && !forbids(headers)
    }
}

/// A response that is being compressed.
#[derive(Debug)]
pub(crate) struct Compression {
    coding: Coding,
    /// The encoder and its memory; `None` once the body has ended.
    encoder: Option<(Encoder, ReservedMemory)>,
    /// The bytes of the plain body that are still to come; `None` if the head has not announced the length.
    left: Option<u64>,
    /// Bytes taken from the source that are not yet compressed.
    waiting: Bytes,
    turn: Turn,
    /// Whether the encoder may hold bytes that need a flush.
    is_dirty: bool,
    /// The bytes of the plain body that were compressed so far.
    plain: u64,
    /// The bytes of the plain body that were compressed since other tasks could last run.
    in_turn: usize,
}

/// The next step of a compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Work,
    /// Yield a flush before more is compressed.
    Flush,
    /// Yield a flush, and then let other tasks run.
    FlushAndRest,
    /// Let other tasks run.
    Rest,
    /// Pass the body on unchanged: the source yields it compressed.
    Pass,
}

impl Compression {
    fn new(
        coding: Coding,
        encoder: Option<(Encoder, ReservedMemory)>,
        length: Option<u64>,
    ) -> Self {
        Self {
            coding,
            encoder,
            left: length,
            waiting: Bytes::new(),
            turn: Turn::Work,
            is_dirty: false,
            plain: 0,
            in_turn: 0,
        }
    }

    /// A response whose source yields the compressed body. `plain` is the length of the uncompressed body.
    pub(crate) fn kept(coding: Coding, plain: u64) -> Self {
        Self {
            turn: Turn::Pass,
            plain,
            ..Self::new(coding, None, None)
        }
    }

    /// Counts the compressed response; `coded` is the length of its body.
    pub(crate) fn count(&self, counters: &WorkerCounters, coded: u64) {
        counters.compressed(self.coding, self.plain, coded);
    }

    /// The name of the coding, and the bytes of the plain body so far, for the log.
    pub(crate) fn figures(&self) -> (&'static str, u64) {
        (self.coding.token(), self.plain)
    }

    /// Whether the plain body was as long as its head has announced.
    pub(crate) fn is_whole(&self) -> bool {
        self.left.is_none_or(|left| left == 0)
    }

    /// The next event of the compressed response. `poll_source` yields the events of the uncompressed one.
    ///
    /// # Errors
    /// The rest of the response will not come.
    pub(crate) fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
        mut poll_source: impl FnMut(&mut Context<'_>) -> Poll<Result<Event, SourceError>>,
    ) -> Poll<Result<Event, SourceError>> {
        if self.turn == Turn::Pass {
            return poll_source(cx);
        }
        loop {
            if let Some(step) = self.poll_turn(cx) {
                return step.map(Ok);
            }
            if !self.waiting.is_empty() {
                let coded = self.code_piece().map_err(SourceError::Encoder)?;
                if !coded.is_empty() {
                    return Poll::Ready(Ok(Event::Body(coded)));
                }
                continue;
            }
            if self.encoder.is_none() {
                return Poll::Ready(Ok(Event::End));
            }
            let event = poll_source(cx)?;
            let is_pending = event.is_pending();
            let coded = match event {
                Poll::Ready(Event::Body(data)) => {
                    self.take(data);
                    continue;
                }
                // The next turn of the loop yields the end.
                Poll::Ready(Event::End) => self.finish(),
                Poll::Ready(Event::Flush) => {
                    self.turn = Turn::Flush;
                    self.flush()
                }
                // The client gets what the source has sent so far, and other tasks run while the source is waited for.
                Poll::Pending => {
                    self.in_turn = 0;
                    self.flush()
                }
                other => return other.map(Ok),
            };
            let coded = coded.map_err(SourceError::Encoder)?;
            if !coded.is_empty() {
                return Poll::Ready(Ok(Event::Body(coded)));
            }
            if is_pending {
                return Poll::Pending;
            }
        }
    }

    /// Takes the step that is due before more is compressed; `None`: none is due.
    #[inline]
    fn poll_turn(&mut self, cx: &Context<'_>) -> Option<Poll<Event>> {
        match self.turn {
            Turn::Work | Turn::Pass => None,
            Turn::Flush => {
                self.turn = Turn::Work;
                Some(Poll::Ready(Event::Flush))
            }
            Turn::FlushAndRest => {
                self.turn = Turn::Rest;
                Some(Poll::Ready(Event::Flush))
            }
            Turn::Rest => {
                self.turn = Turn::Work;
                cx.waker().wake_by_ref();
                Some(Poll::Pending)
            }
        }
    }

    /// Takes a piece of the plain body. Bytes beyond the announced length are dropped.
    fn take(&mut self, mut data: Bytes) {
        if let Some(left) = &mut self.left {
            data.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= data.len() as u64;
        }
        self.waiting = data;
    }

    /// Compresses a piece of the bytes that wait. After [`TURN_MAX`] bytes the next steps yield a flush and let other
    /// tasks run. Without an encoder, which has ended then, the piece is dropped.
    fn code_piece(&mut self) -> Result<Bytes, EncoderFault> {
        let piece = self.waiting.split_to(self.waiting.len().min(PIECE_MAX));
        self.in_turn += piece.len();
        if self.in_turn >= TURN_MAX {
            self.in_turn = 0;
            self.turn = Turn::FlushAndRest;
        }
        self.plain += piece.len() as u64;
        self.is_dirty = true;
        match &mut self.encoder {
            Some((encoder, _)) => encoder.write(&piece),
            None => Ok(Bytes::new()),
        }
    }

    /// The bytes that the encoder holds back, if it may hold any.
    fn flush(&mut self) -> Result<Bytes, EncoderFault> {
        let is_dirty = std::mem::take(&mut self.is_dirty);
        match &mut self.encoder {
            Some((encoder, _)) if is_dirty => encoder.flush(),
            _ => Ok(Bytes::new()),
        }
    }

    /// Ends the compressed body. If the plain body is too short, the encoder's end is left out, so that no client takes
    /// the body as complete.
    fn finish(&mut self) -> Result<Bytes, EncoderFault> {
        match self.encoder.take() {
            Some((encoder, _)) if self.is_whole() => encoder.finish(),
            _ => Ok(Bytes::new()),
        }
    }
}

/// Adapts a head to the compressed response.
pub(crate) fn describe(head: &mut ResponseHead, coding: Coding) {
    head.content_length = None;
    let headers = &mut head.headers;
    headers.insert(CONTENT_ENCODING, coding.token());
    // The body is compressed anew for each response, and its bytes may differ, so parts do not fit together.
    headers.remove(ACCEPT_RANGES);
    if let Some(weak) = headers.get(ETAG).and_then(weakened) {
        headers.insert(ETAG, weak);
    }
}

/// The weak form of a strong tag, since the compressed response means the same but has other bytes. `None`: the tag is
/// weak already.
fn weakened(tag: &[u8]) -> Option<Vec<u8>> {
    tag.starts_with(b"\"").then(|| [b"W/", tag].concat())
}

/// Restores the tags of `If-Match` that [`weakened`] changed, so that the backend gets its own: `If-Match` compares
/// weak tags with none (RFC 9110, section 13.1.1).
///
/// A backend's own weak tag may become strong, too, which matches nothing either. A request for a part keeps its tags:
/// a part of the compressed bytes does not fit another form.
pub(crate) fn strengthen(headers: &mut Fields) {
    if headers.contains(RANGE) {
        return;
    }
    headers.change(IF_MATCH, |line| {
        let mut parts: Vec<&[u8]> = line.split(|&byte| byte == b'"').collect();
        // Every other part is within quotes. The part before such a one ends in `W/` if the tag is weak.
        let last = parts.len() - 1;
        for before_tag in parts[..last].iter_mut().step_by(2) {
            let part = *before_tag;
            *before_tag = part.strip_suffix(b"W/").unwrap_or(part);
        }
        Some(parts.join(&b'"'))
    });
}

/// Adds the name of a field to `Vary`, unless it is there.
pub(crate) fn vary(headers: &mut Fields, name: Id) {
    let name = name.spelling();
    // `*` stands for all fields.
    let is_covered = headers
        .elements(VARY)
        .any(|listed| listed == b"*" || listed.eq_ignore_ascii_case(name.as_bytes()));
    if !is_covered {
        // In the same line: some clients and caches read only one line.
        headers.add_element(VARY, name);
    }
}

/// Whether `no-transform` forbids that anybody on the way changes the body (RFC 9110, section 7.7).
fn forbids(headers: &Fields) -> bool {
    let mut directives = headers.elements(CACHE_CONTROL);
    directives.any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// The most bytes that are compressed at a time.
const PIECE_MAX: usize = 16 * 1024;

/// The bytes after which other tasks run: about a millisecond. An encoder's state is a few hundred KiB, which other
/// tasks displace from the processor's caches; loading it again takes as long as compressing 16 KiB.
const TURN_MAX: usize = 128 * 1024;

#[cfg(test)]
mod tests;
