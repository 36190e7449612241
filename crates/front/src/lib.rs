//! The front hull: listeners, routes, the exchange, relay and access log.
pub mod config;
