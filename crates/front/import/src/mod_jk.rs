//! mod_jk: workers, which become upstreams, and mounts, which become rules.

pub(crate) mod mounts;
pub(crate) mod workers;
