//! The engine of `catamaran bench`: drives load over HTTP/1.x and AJP13 and measures what comes
//! back.
//!
//! A [`Plan`](plan::Plan) says what to do, [`start`] does it on threads of its own, and
//! [`Running::finish`] gives the [`Report`](report::Report). [`render`] makes text of it. There is
//! no printing here, and no code in common with `upstream`: an instrument must not share its subject's bugs.

mod acknowledged;
mod board;
mod client;
mod clock;
pub mod document;
pub mod gate;
pub mod knee;
mod pace;
pub mod plan;
mod prepare;
mod record;
pub mod render;
pub mod report;
mod run;
mod stop;
mod stream;
pub mod timeline;
mod tls;
pub mod versus;
mod worker;

pub use catamaran_stats::{Bound, Histogram};
pub use run::{Progress, Running, Stopper, start};
