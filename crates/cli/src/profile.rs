//! The cargo profile with which this binary was built, which determines how fast it is.
//!
//! `release` compiles quickly; `dist` is for packages and for published figures; `dev` is for tests.
//! `build.rs` finds out the name.

#[cfg(test)]
mod folder;

/// The name of the profile.
pub(crate) const NAME: &str = env!("CATAMARAN_PROFILE");

/// What `--version` prints after the program's name.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("CATAMARAN_PROFILE"),
    " build)"
);

/// The name of the profile, unless it is [`DIST`], whose figures may be compared with others.
pub(crate) fn if_slow() -> Option<&'static str> {
    (NAME != DIST).then_some(NAME)
}

/// The profile of packages.
const DIST: &str = "dist";
