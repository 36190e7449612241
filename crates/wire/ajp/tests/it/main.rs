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

use catamaran_testkit::ajp as raw;

/// What requests say of the client unless a test says otherwise.
const FACTS: catamaran_ajp::Facts<'_> = catamaran_ajp::Facts {
    protocol: "HTTP/1.1",
    remote_addr: b"127.0.0.1",
    remote_host: None,
    server_name: b"localhost",
    server_port: 80,
    is_ssl: false,
    announce_chunked: false,
    attributes: &[],
};
