//! Flags for making and using connections.

use std::net::{IpAddr, ToSocketAddrs as _};

use super::ValueKind::Needed;
use super::{Flag, FlagUse, switch_on};
use crate::getopt::Mode;
use crate::refusal::Refusal;
use crate::refusal::RunKind::Http2;
use crate::settings::Settings;

/// The settings of connections: keep-alive, pipelining, source addresses, buffers.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSettings {
    pub(crate) keep_alive: bool,
    pub(crate) pipeline: Option<u64>,
    pub(crate) streams: Option<u64>,
    pub(crate) requests_max: Option<u64>,
    pub(crate) sources: Vec<IpAddr>,
    /// A local address that cannot be resolved; ab finds that out only when the run begins.
    pub(crate) unknown_source: Option<String>,
    pub(crate) buffer: Option<usize>,
}

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        short: Some('k'),
        long: "keep-alive",
        aliases: &["keepalive"],
        help: "Use connections for more than one request",
        apply: |settings, _| switch_on(&mut settings.connection.keep_alive),
        ..Flag::OURS
    },
    Flag {
        long: "pipeline",
        value: Needed("N"),
        help: "Requests sent on a connection before the first answer is there; implies -k [default: 1]",
        conflicts: &[(Http2, "--pipeline: give --streams")],
        apply: |settings, given| {
            settings.connection.pipeline = Some(given.number("a number of requests")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "streams",
        value: Needed("N"),
        help: "With --http2: requests under way on a connection at once, as h2load's -m [default: 1]",
        apply: |settings, given| {
            settings.connection.streams = Some(given.number("a number of streams")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "requests-per-connection",
        value: Needed("N"),
        help: "Close a connection after so many; implies -k [default: never]",
        apply: |settings, given| {
            settings.connection.requests_max = Some(given.number("a number of requests")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('B'),
        long: "source",
        value: Needed("ADDRESS"),
        help: "Local addresses, given to the connections in turn; a comma between them; repeatable",
        apply: add_sources,
        ..Flag::OURS
    },
    Flag {
        short: Some('o'),
        long: "source-address",
        value: Needed("ADDRESS"),
        help: "As -B",
        apply: add_sources,
        ..Flag::OURS
    },
    Flag {
        short: Some('b'),
        long: "buffer",
        value: Needed("BYTES"),
        help: "Size of the socket's send and receive buffers",
        apply: |settings, given| {
            let count = match given.mode {
                Mode::Ab => given.count().unwrap_or(0),
                Mode::Ours => given.number("a number of bytes")?,
            };
            let bytes = usize::try_from(count).unwrap_or(usize::MAX);
            settings.connection.buffer = Some(bytes).filter(|&bytes| bytes > 0);
            Ok(())
        },
        ..Flag::OURS
    },
];

/// Adds the addresses of a list to the sources. A name that does not resolve is remembered, because ab refuses it late.
fn add_sources(settings: &mut Settings, given: &FlagUse<'_>) -> Result<(), Refusal> {
    for text in given.text().split(',').filter(|text| !text.is_empty()) {
        match source(text) {
            Some(address) => settings.connection.sources.push(address),
            None => settings.connection.unknown_source = Some(text.to_owned()),
        }
    }
    Ok(())
}

/// Parses an address, or resolves a name to its first address.
fn source(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let mut addresses = (text, 0).to_socket_addrs().ok()?;
    addresses.next().map(|address| address.ip())
}
