//! Connections to backends: dialling, pools, leases, and one exchange over AJP13 or HTTP/1.1.
//!
//! A [`Backend`] is one address with its pools, one for each worker, and a cap on all of them.
//! [`Backend::lease`] returns a connection that is still quiet, or dials, or waits in a bounded
//! queue. A [`Lease`] carries one exchange, whichever protocol the backend speaks: the caller sends
//! the request and receives [`Event`]s. [`Backend::share`] says whether the backend may be picked:
//! a backend that cannot be connected to is left out, and probed until it is back. Other crates
//! choose backends and talk to clients.
//!
//! The main invariant: a connection returns to its pool only through [`Lease::finish`], and only if
//! both messages ended exactly where the framing said, the peer allowed reuse and no byte is left
//! over. Dropping a lease closes the connection, so cancelling at any await is safe.
//!
//! ```no_run
//! use std::future::poll_fn;
//! use catamaran_upstream::config::{Address, BackendConfig, Protocol};
//! use catamaran_upstream::{Backend, BodyLength, ClientFacts, Event, Request, Reuse};
//! use tokio::time::Instant;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let address = Address::Tcp { host: "127.0.0.1".into(), port: 8009 };
//! let backend = Backend::new("app", BackendConfig::new(Protocol::Ajp, address), 1);
//! let settings = backend.settings();
//! let mut lease = backend.lease(&settings, 0, Reuse::Any, Instant::now()).await?;
//! lease.send_request(&Request {
//!     method: &http::Method::GET,
//!     path: b"/",
//!     query: None,
//!     host: b"localhost",
//!     headers: &catamaran_message::Fields::new(),
//!     body: BodyLength::Known(0),
//! }, &ClientFacts::local(), &settings)?;
//! loop {
//!     match poll_fn(|cx| lease.poll_event(cx)).await? {
//!         Event::Head(head) => assert!(head.status.is_success()),
//!         Event::End => break,
//!         _ => {}
//!     }
//! }
//! lease.finish(Instant::now());
//! # Ok(()) }
//! ```

mod backend;
mod cap;
mod client_facts;
pub mod config;
mod connection;
mod dial;
mod error;
mod figures;
mod health;
mod idle_closures;
mod keeper;
mod names;
mod pool;
mod preview;
mod probe;
mod settings;
#[cfg(test)]
mod simulation;
mod tunnel;
mod wire;

pub use backend::{Backend, BackendCounts, Group, Lease, Leasing, LeftBehind};
pub use catamaran_ajp::{Attribute, IpText};
pub use catamaran_balance::health::Cause;
pub use catamaran_message::{BodyLength, Request};
pub use catamaran_stats::buckets::{BucketSums, Buckets};
pub use client_facts::ClientFacts;
pub use error::{Culprit, Error, LeaseError, PingFailure, RequestError, Tried};
pub use figures::{FailureReason, Figures, FiguresSnapshot, FiguresTotals, LastFailure, Rates};
pub use keeper::BackendState;
pub use names::{HeldName, Resolution, remember};
pub use pool::Reuse;
pub use preview::{Preview, preview, preview_upgrade};
pub use probe::{LastProbe, ProbeQuestion, examine};
pub use settings::Settings;
pub use tunnel::Tunnel;
pub use wire::Event;
