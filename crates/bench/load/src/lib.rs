//! The engine of `catamaran bench`: drives load over HTTP/1.x, HTTP/2, AJP13 and memcached's protocols
//! and measures what comes back.
//!
//! A [`Plan`](plan::Plan) describes a run, [`start`] runs it on threads of its own, and
//! [`RunHandle::finish`] returns the [`Report`](report::Report). [`render`] makes text of it. This
//! crate prints nothing, and shares no code with `upstream`: an instrument must not have the faults
//! of what it measures.

mod acknowledged;
mod board;
mod client;
mod clock;
pub mod document;
pub mod gate;
mod http2;
pub mod knee;
mod memcached;
mod pace;
pub mod plan;
mod prepare;
mod record;
pub mod render;
pub mod report;
mod run;
mod stop;
mod stream;
mod template;
pub mod timeline;
mod tls;
pub mod versus;
mod worker;

pub use catamaran_memcache::Dialect;
pub use catamaran_stats::{Histogram, LatencyFloor};
pub use run::{Progress, RunHandle, Stopper, start};
