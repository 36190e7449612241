//! Tells the binary by which of cargo's profiles it is built, in `CATAMARAN_PROFILE`.
//!
//! Cargo tells build scripts `debug` or `release` (`PROFILE`) and leaves out profiles of a workspace,
//! such as `dist`, so the name is read from the path of the script's own folder. Where that path has
//! another shape than today's, the name is the one that cargo tells.

#[path = "src/profile/folder.rs"]
mod folder;

use std::env;
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let profile = env::var_os("PROFILE").unwrap_or_default();
    let told = profile.to_string_lossy();
    let name = folder::profile(&out).unwrap_or_else(|| folder::named(&told));
    println!("cargo::rustc-env=CATAMARAN_PROFILE={name}");
    // Each profile has a folder and a run of this script of its own.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/profile/folder.rs");
}
