//! What the codec accepts, refuses and writes, seen through its public interface only.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod encoding;
mod exchanges;
/// The bodies of the fuzz targets.
#[path = "../../../../../dev/fuzz/bodies/http1.rs"]
mod invariants;
mod properties;
mod replay;
mod requests;
mod responses;
mod upgrades;
