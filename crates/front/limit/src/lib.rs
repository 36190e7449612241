//! Limits of requests by key: how many a client may send in a time, and how many it may have in flight.
//!
//! A [`Quota`] is the arithmetic of one limit. The [`Table`] has the debt of each key to each limit: the part of its
//! burst, or the places in flight, that it has used up. Its memory is fixed when it is made. [`Sketch`] knows which
//! keys were refused most. Nothing here reads a clock: times are arguments, in nanoseconds since a moment that the
//! caller chooses.
#![forbid(unsafe_code)]

mod network;
mod quota;
mod sketch;
mod table;

pub use network::Network;
pub use quota::{Judgement, Quota};
pub use sketch::{RefusedKey, Sketch};
pub use table::{ASKS_MAX, Ask, Outcome, Table};
