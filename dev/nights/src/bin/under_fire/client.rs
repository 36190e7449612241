//! An HTTP/2 client that sends what it is told, and notes the results of its requests.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_testkit::http2::{END_HEADERS, END_STREAM, block, frame, kind, opening, status};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::pause;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With this status, and a complete response.
    Answered(u16),
    /// The server says that it has not processed the request: it may be sent again.
    Refused,
    Lost,
}

/// One connection. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Connection {
    frames: Sender<Vec<u8>>,
    heard: Arc<Mutex<Heard>>,
    reader: AbortHandle,
}

/// What the server has sent.
#[derive(Debug, Default)]
struct Heard {
    statuses: HashMap<u32, u16>,
    ended: HashMap<u32, Ended>,
    /// The last request that the server processes, if it has sent GOAWAY.
    last: Option<u32>,
    is_closed: bool,
}

impl Connection {
    /// Connects, with `window` as the window of each stream.
    pub(crate) async fn open(address: SocketAddr, window: u32) -> std::io::Result<Self> {
        let connecting = timeout(PATIENCE, TcpStream::connect(address));
        let socket = connecting.await.map_err(std::io::Error::other)??;
        socket.set_nodelay(true)?;
        let (reader, mut writer) = socket.into_split();
        writer.write_all(&opening(window)).await?;
        let (frames, to_send) = channel(FRAMES_MAX);
        tokio::spawn(write(writer, to_send));
        let heard = Arc::new(Mutex::new(Heard::default()));
        let listening = tokio::spawn(listen(reader, frames.clone(), Arc::clone(&heard)));
        Ok(Self {
            frames,
            heard,
            reader: listening.abort_handle(),
        })
    }

    /// Sends frames. Whether the server takes them is known only from what it sends.
    pub(crate) async fn send(&self, bytes: &[u8]) {
        timeout(PATIENCE, self.frames.send(bytes.to_vec()))
            .await
            .ok();
    }

    /// Whether further requests would be processed.
    pub(crate) fn is_open(&self) -> bool {
        let heard = self.heard();
        !heard.is_closed && heard.last.is_none()
    }

    /// How a request ended; `None` if it has not.
    pub(crate) fn ended(&self, stream: u32) -> Option<Ended> {
        let heard = self.heard();
        match heard.ended.get(&stream) {
            Some(ended) => Some(*ended),
            None if heard.last.is_some_and(|last| stream > last) => Some(Ended::Refused),
            None if heard.is_closed => Some(Ended::Lost),
            None => None,
        }
    }

    /// Waits until a request ends; [`Ended::Lost`] if it does not within `limit`.
    pub(crate) async fn wait(&self, stream: u32, limit: Duration) -> Ended {
        let ended = async {
            loop {
                match self.ended(stream) {
                    Some(ended) => return ended,
                    None => pause(Duration::from_millis(5)).await,
                }
            }
        };
        timeout(limit, ended).await.unwrap_or(Ended::Lost)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Writes frames as far as the server takes them.
async fn write(mut writer: OwnedWriteHalf, mut frames: Receiver<Vec<u8>>) {
    while let Some(frames) = frames.recv().await {
        if writer.write_all(&frames).await.is_err() {
            return;
        }
    }
}

/// Notes what the server sends, and acknowledges SETTINGS and PING.
async fn listen(mut reader: OwnedReadHalf, frames: Sender<Vec<u8>>, heard: Arc<Mutex<Heard>>) {
    let mut input = Vec::new();
    while let Ok(1..) = reader.read_buf(&mut input).await {
        let mut replies = Vec::new();
        while let Some((head, behind)) = input.split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = behind.get(..length) else {
                break;
            };
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.frame(*head, payload, &mut replies);
            drop(heard);
            input.drain(..9 + length);
        }
        if !replies.is_empty() {
            frames.send(replies).await.ok();
        }
    }
    heard
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .is_closed = true;
}

impl Heard {
    /// Notes a frame; a reply to it is added to `replies`.
    fn frame(&mut self, head: [u8; 9], payload: &[u8], replies: &mut Vec<u8>) {
        let [_, _, _, kind, flags, stream @ ..] = head;
        // The highest bit of a stream's number is reserved.
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        let first_word = payload
            .first_chunk()
            .map_or(0, |bytes| u32::from_be_bytes(*bytes));
        match kind {
            kind::HEADERS => {
                self.statuses.insert(stream, status(payload).unwrap_or(0));
            }
            kind::RST_STREAM if first_word == REFUSED_STREAM => {
                self.ended.entry(stream).or_insert(Ended::Refused);
            }
            kind::RST_STREAM => {
                self.ended.entry(stream).or_insert(Ended::Lost);
            }
            kind::GOAWAY => self.last = Some(first_word & 0x7fff_ffff),
            // In these frames, the bit of END_STREAM is that of ACK.
            kind::PING if flags & END_STREAM == 0 => {
                replies.extend(frame(kind::PING, END_STREAM, 0, payload));
            }
            kind::SETTINGS if flags & END_STREAM == 0 => {
                replies.extend(frame(kind::SETTINGS, END_STREAM, 0, &[]));
            }
            _ => {}
        }
        if matches!(kind, kind::HEADERS | kind::DATA) && flags & END_STREAM != 0 {
            let status = self.statuses.get(&stream).copied().unwrap_or(0);
            self.ended.entry(stream).or_insert(Ended::Answered(status));
        }
    }
}

/// A request without a body.
pub(crate) fn request(stream: u32, method: &str, scheme: &str, path: &str) -> Vec<u8> {
    let fields = [
        (&b":method"[..], method.as_bytes()),
        (b":scheme", scheme.as_bytes()),
        (b":authority", b"localhost"),
        (b":path", path.as_bytes()),
    ];
    let flags = END_HEADERS | END_STREAM;
    frame(kind::HEADERS, flags, stream, &block(&fields))
}

/// Sends one request on a connection of its own.
pub(crate) async fn ask(address: SocketAddr, scheme: &str) -> Ended {
    let Ok(connection) = Connection::open(address, 65_535).await else {
        return Ended::Lost;
    };
    connection.send(&request(1, "GET", scheme, "/")).await;
    connection.wait(1, PATIENCE).await
}

/// How long an honest client waits.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How many writes may wait.
const FRAMES_MAX: usize = 1024;

const REFUSED_STREAM: u32 = 7;
