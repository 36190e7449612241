//! The settings of traces.

use catamaran_upstream::config::Address;

/// How requests are traced, and where spans are sent. Each field holds the key of `[trace]` that has the field's
/// name; docs/reference.md has the meaning, unit and default of each key.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceConfig {
    /// The address of a collector that takes OTLP over HTTP in clear text.
    pub address: Address,
    /// The name of the service in spans.
    pub name: String,
    /// The part of traces that begin here of which spans are sent, from 0 to 1.
    pub sample: f64,
    /// How many traces a second are recorded because a client that is no trusted proxy asked for it.
    pub strangers_per_second: u32,
}

impl TraceConfig {
    /// The settings for a collector at this address, with every default.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self {
            address,
            name: "catamaran".to_owned(),
            sample: 0.01,
            strangers_per_second: 10,
        }
    }
}
