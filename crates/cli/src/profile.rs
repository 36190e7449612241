//! How this binary was built: the profile of cargo, which says how fast the binary is.
//!
//! `release` compiles quickly; `dist` is what packages have and what figures are published of; `dev` is
//! for tests. `build.rs` finds the name.

#[cfg(test)]
mod folder;

/// The profile's name.
pub(crate) const NAME: &str = env!("CATAMARAN_PROFILE");

/// What `--version` says after the program's name.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("CATAMARAN_PROFILE"),
    " build)"
);

/// The name, unless it is that of builds whose figures may be compared with others.
pub(crate) fn if_slow() -> Option<&'static str> {
    (NAME != DIST).then_some(NAME)
}

/// The profile of packages.
const DIST: &str = "dist";
