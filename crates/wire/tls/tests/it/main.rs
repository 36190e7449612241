//! Tests of the crate from outside.

mod corpus;
mod faults;
mod handshake;

use catamaran_testkit::tls::{Authority, Pair};

fn authority(name: &str) -> Authority {
    Authority::new(name).expect("a key")
}

fn plain(issuer: &Authority, names: &[&str]) -> Pair {
    issuer.sign(names, |_| {}).expect("names and a key")
}
