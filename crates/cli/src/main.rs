//! The `catamaran` binary.

fn main() {}
