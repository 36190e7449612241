//! Tests that drive the built binary against real servers.
