//! The codec as its callers see it: bytes in, events out, messages to bytes.
//!
//! Packets are built by `testkit`, which knows nothing of the crate, so that encoder and decoder
//! cannot agree on a mistake.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client_bad_input;
mod client_rules;
mod corpus;
mod golden;
mod properties;
mod server_bad_input;
mod server_rules;

use std::net::{IpAddr, Ipv4Addr};

use catamaran_testkit::ajp as raw;
use http::Version;

/// What requests say of the client unless a test says otherwise.
const FACTS: catamaran_ajp::Facts<'_> = catamaran_ajp::Facts {
    version: Version::HTTP_11,
    remote_ip: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)),
    server_name: b"localhost",
    server_port: 80,
    is_ssl: false,
    announce_chunked: false,
    attributes: &[],
};
