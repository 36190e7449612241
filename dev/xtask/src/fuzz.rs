//! The fuzz targets: type-checked on stable by CI, run on nightly by hand.
//!
//! `dev/fuzz/` is outside of the workspace because libFuzzer needs nightly; type-checking it on stable shows when it
//! no longer compiles. A run stops at the first finding, which cargo-fuzz leaves in `dev/fuzz/artifacts`. New inputs
//! stay in `dev/fuzz/target/corpus`; those worth keeping are added by hand to `dev/fuzz/corpus/TARGET.txt`, one on
//! each line.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use catamaran_testkit::read_corpus;

use crate::step::{Steps, cargo, program};

/// Type-checks all targets on the stable toolchain.
pub(crate) fn check(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    let manifest = root.join("dev/fuzz/Cargo.toml");
    if !manifest.exists() {
        return Ok(());
    }
    steps.run("check the fuzz targets", || {
        // `--locked`: this lock file is apart from that of the workspace, so nothing else keeps it up to date.
        cargo(root, &["check", "--locked", "--quiet", "--manifest-path"])
            .args(&[&manifest.to_string_lossy()])
            .env("RUSTFLAGS", "--deny warnings")
            // Nothing is linked, so libFuzzer itself need not be compiled, nor a C++ compiler be
            // there.
            .env("CUSTOM_LIBFUZZER_PATH", "unused/liblibfuzzer.a")
            .finish()
    })
}

/// Checks that the lock file fits the manifests of the crates; it reads no sources.
pub(crate) fn check_lock(root: &Path) -> anyhow::Result<()> {
    let lock = cargo(root, &["metadata", "--locked", "--format-version", "1"]);
    let lock = lock
        .args(&["--manifest-path", "dev/fuzz/Cargo.toml"])
        .output();
    lock.map(drop).context(
        "cannot be used as it is; after a change of dependencies run \
         `cargo update --workspace --manifest-path dev/fuzz/Cargo.toml`",
    )
}

/// Runs every target for `seconds`.
pub(crate) fn run_all(steps: &mut Steps, root: &Path, seconds: u32) -> anyhow::Result<()> {
    if !program("cargo", &["+nightly", "fuzz", "--version"]).succeeds() {
        bail!(
            "this needs nightly and cargo-fuzz: rustup toolchain install nightly; cargo install cargo-fuzz"
        );
    }
    let limit = format!("-max_total_time={seconds}");
    for target in targets(root)? {
        steps.run(&format!("fuzz {target}"), || {
            let fuzz = root.join("dev/fuzz");
            // libFuzzer writes into the first corpus that it is given, which must not be the committed one.
            let found = fuzz.join("target/corpus").join(&target);
            fs::create_dir_all(&found)?;
            let committed = fuzz.join("target/committed").join(&target);
            fs::create_dir_all(&committed)?;
            for (name, input) in read_corpus(&corpus(root, &target))? {
                fs::write(committed.join(name), input)?;
            }
            program("cargo", &["+nightly", "fuzz", "run", "--fuzz-dir"])
                .args(&[&fuzz.to_string_lossy(), &target])
                .args(&[&found.to_string_lossy(), &committed.to_string_lossy()])
                .args(&["--", &limit])
                .finish()
        })?;
    }
    Ok(())
}

/// The committed corpus of a target.
pub(crate) fn corpus(root: &Path, target: &str) -> PathBuf {
    root.join("dev/fuzz/corpus").join(format!("{target}.txt"))
}

/// The names of the targets in `dev/fuzz/Cargo.toml`.
pub(crate) fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let manifest = root.join("dev/fuzz/Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let table: toml::Table = text.parse().context("dev/fuzz/Cargo.toml")?;
    let bins = table.get("bin").and_then(toml::Value::as_array);
    let names = bins
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_file_that_lacks_a_crate_is_found() {
        let root = tempfile::tempdir().unwrap();
        let package = |folder: &str, dependencies: &str| {
            let folder = root.path().join(folder);
            let text = format!(
                "[package]\nname = \"{}\"\n[workspace]\n[dependencies]\n{dependencies}",
                folder.file_name().unwrap().display()
            );
            fs::create_dir_all(folder.join("src")).unwrap();
            fs::write(folder.join("src/lib.rs"), "").unwrap();
            fs::write(folder.join("Cargo.toml"), text).unwrap();
        };
        package("leaf", "");
        package("dev/fuzz", "");
        let lock = ["generate-lockfile", "--offline", "--manifest-path"];
        let lock = cargo(root.path(), &lock).args(&["dev/fuzz/Cargo.toml"]);
        lock.finish().unwrap();
        check_lock(root.path()).unwrap();
        package("dev/fuzz", "leaf = { path = \"../../leaf\" }");
        let error = check_lock(root.path()).unwrap_err().to_string();
        assert!(error.contains("cargo update --workspace"), "{error}");
    }
}
