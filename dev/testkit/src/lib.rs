//! Tools for tests, used by the other crates only as a dev-dependency.
//!
//! Everything here works on exact bytes and real sockets, blocks its thread, and ends at a
//! [`Deadline`]: a test that would hang fails instead, and says what it was waiting for. Nothing sleeps and no port
//! number is fixed. No HTTP library is used, because a test of a proxy has to see the bytes as they are.
//!
//! - [`Peer`]: a server that plays a [`Script`] on each connection and records what it received;
//! - [`HttpClient`]: sends the bytes it is given and reads exactly one response at a time;
//! - [`Process`]: a child with captured output that cannot outlive the test binary; [`catamaran()`] starts one of the
//!   built binary, [`binary()`] says where that is, and [`write_script()`] makes another program;
//! - [`Pattern`] and [`Sha256`]: bodies of any length without holding them;
//! - [`Cases`]: the cases of a test that are kept in one file, with the expected results;
//! - [`replay_corpus`]: the corpora of the fuzz targets, in a test;
//! - [`DnsServer`]: a DNS server whose records a test changes;
//! - [`ajp`]: AJP13 packets byte by byte, and the table of what a container does with bad ones;
//! - [`timely()`]: attempts at what a busy machine spoils;
//! - [`Wakes`]: a waker that counts;
//! - [`replace_file()`]: a change of a file that a server watches;
//! - [`without_override()`]: runs code as root to which the permissions of files apply;
//! - [`address`]: addresses nobody else uses;
//! - [`files`]: a directory of files, and requests for them with the expected responses;
//! - `tls`, with the feature of that name: certificates, and an end of TLS without a socket; `KubernetesApi`, an API
//!   server of Kubernetes whose EndpointSlices a test changes.
//!
//! ```
//! use catamaran_testkit::{HttpClient, Peer, Script};
//!
//! let script = Script::new()
//!     .expect_until(b"\r\n\r\n")
//!     .send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
//! let peer = Peer::start(script);
//! let mut client = HttpClient::connect(peer.address())?;
//! client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")?;
//! assert_eq!(client.receive()?.body, b"hi");
//! assert!(peer.received(0).starts_with(b"GET / "));
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod address;
pub mod ajp;
mod binary;
mod body;
mod cases;
mod corpus;
mod deadline;
pub mod dns;
pub mod files;
mod http;
pub mod http2;
#[cfg(feature = "tls")]
mod kubernetes;
mod peer;
mod privileges;
mod process;
mod replace;
mod timely;
#[cfg(feature = "tls")]
pub mod tls;
mod wakes;

pub use address::Address;
pub use binary::{binary, catamaran, write_script};
pub use body::{Pattern, Sha256, sha256_hex};
pub use cases::{Case, Cases};
pub use corpus::{read_corpus, replay_corpus};
pub use deadline::{Deadline, Expired};
pub use dns::{DnsAnswer, DnsRecord, DnsServer};
pub use http::{Failure, HttpClient, Response};
#[cfg(feature = "tls")]
pub use kubernetes::{KubernetesApi, PodEndpoint};
pub use peer::{Outcome, Peer, Script};
pub use privileges::without_override;
pub use process::{Process, Signal, signal_process};
pub use replace::replace_file;
pub use timely::timely;
pub use wakes::Wakes;
