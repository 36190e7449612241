//! The settings that the two sides of a connection send each other (RFC 9113, section 6.5).

use bytes::{BufMut, BytesMut};

use crate::error::Fault;
use crate::frame::{self, MAX_31_BITS, PAYLOAD_MAX};

/// This side's settings of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most streams that a client may have open at a time. Default 100. Without effect in the client role.
    pub streams_max: u32,
    /// The window of one stream: how many body bytes the peer may send before they are credited. Default 65,535, which
    /// every peer assumes.
    pub window: u32,
    /// The window of the connection: how many body bytes of all streams together the peer may send before they are
    /// credited. Default 65,535; a smaller value counts as 65,535.
    pub connection_window: u32,
    /// Whether clients may open tunnels by extended CONNECT (RFC 8441). Without effect in the client role.
    pub takes_tunnels: bool,
    /// The number of streams reset by this side that are remembered, so that frames that were on their way to them are
    /// no fault. Default 128.
    pub resets_remembered: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            streams_max: 100,
            window: DEFAULT_WINDOW,
            connection_window: DEFAULT_WINDOW,
            takes_tunnels: false,
            resets_remembered: 128,
        }
    }
}

impl Config {
    /// Writes the settings, and a WINDOW_UPDATE if the window of the connection is larger than the default.
    pub(crate) fn write(&self, is_server: bool, head_max: usize, out: &mut BytesMut) {
        let head_max = u32::try_from(head_max).unwrap_or(u32::MAX);
        let mut settings = vec![
            (INITIAL_WINDOW_SIZE, self.window),
            (MAX_HEADER_LIST_SIZE, head_max),
        ];
        if is_server {
            settings.push((MAX_CONCURRENT_STREAMS, self.streams_max));
            settings.push((NO_RFC7540_PRIORITIES, 1));
        } else {
            settings.push((ENABLE_PUSH, 0));
        }
        if self.takes_tunnels {
            settings.push((ENABLE_CONNECT_PROTOCOL, 1));
        }
        let mut payload = Vec::with_capacity(settings.len() * SETTING_LEN);
        for (id, value) in settings {
            payload.put_u16(id);
            payload.put_u32(value);
        }
        frame::write(frame::SETTINGS, 0, 0, &payload, out);
        let widened = self.connection_window.saturating_sub(DEFAULT_WINDOW);
        if widened > 0 {
            frame::write_window_update(0, widened, out);
        }
    }
}

/// The settings that the peer has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerSettings {
    pub(crate) table_max: u32,
    /// The number of streams that the peer allows this side to have open.
    pub(crate) streams_max: u32,
    pub(crate) window: u32,
    pub(crate) payload_max: usize,
    pub(crate) takes_tunnels: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            table_max: 4096,
            streams_max: STREAMS_MAX_AT_FIRST,
            window: DEFAULT_WINDOW,
            payload_max: PAYLOAD_MAX,
            takes_tunnels: false,
        }
    }
}

impl PeerSettings {
    /// Reads the payload of a SETTINGS frame; unknown settings are ignored. Returns the smallest table size for HPACK
    /// that the frame names.
    pub(crate) fn read(&mut self, payload: &[u8], of_server: bool) -> Result<u32, Fault> {
        let (settings, rest) = payload.as_chunks::<SETTING_LEN>();
        if !rest.is_empty() {
            return Err(Fault::FrameSize);
        }
        let mut least_table = u32::MAX;
        for &[i0, i1, v0, v1, v2, v3] in settings {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            match u16::from_be_bytes([i0, i1]) {
                HEADER_TABLE_SIZE => {
                    self.table_max = value;
                    least_table = least_table.min(value);
                }
                // A server must send 0, a client 0 or 1 (section 6.5.2).
                ENABLE_PUSH if value > u32::from(!of_server) => return Err(Fault::Protocol),
                MAX_CONCURRENT_STREAMS => self.streams_max = value,
                INITIAL_WINDOW_SIZE if value > MAX_31_BITS => return Err(Fault::FlowControl),
                INITIAL_WINDOW_SIZE => self.window = value,
                MAX_FRAME_SIZE if !PAYLOADS_MAX.contains(&value) => return Err(Fault::Protocol),
                MAX_FRAME_SIZE => self.payload_max = value as usize,
                ENABLE_CONNECT_PROTOCOL if value > 1 => return Err(Fault::Protocol),
                ENABLE_CONNECT_PROTOCOL => self.takes_tunnels = value == 1,
                _ => {}
            }
        }
        Ok(least_table.min(self.table_max))
    }
}

/// The initial window of a connection and of its streams.
pub(crate) const DEFAULT_WINDOW: u32 = 65_535;

/// The number of streams allowed until the peer's settings have arrived: peers should not allow fewer (RFC 9113,
/// section 6.5.2).
const STREAMS_MAX_AT_FIRST: u32 = 100;

const SETTING_LEN: usize = 6;
const PAYLOADS_MAX: std::ops::RangeInclusive<u32> = 16_384..=16_777_215;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441, section 3).
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218, section 2.1).
const NO_RFC7540_PRIORITIES: u16 = 9;
