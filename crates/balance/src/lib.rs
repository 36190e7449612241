//! Choosing a backend: pure decisions, no connections.
#![forbid(unsafe_code)]
