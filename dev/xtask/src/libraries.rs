//! Checks the crates that others may use as libraries: packs them as they would be published, and builds the
//! application of docs/connector.md from the packages.
//!
//! No part of `ci`: Cargo asks the registry, and the application's own dependencies are built.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::step::{Steps, cargo, program, say};
use crate::test::target_directory;

/// Packs the crates, publishes them as a dry run, and builds the application.
pub(crate) fn run(steps: &mut Steps, root: &Path) -> anyhow::Result<()> {
    let folder = target_directory(root)?.join("libraries");
    let target = folder.to_str().context("target is not UTF-8")?;
    let packages: Vec<&str> = NAMES.iter().flat_map(|name| ["--package", name]).collect();
    steps.run("publish dry", || {
        // `--no-verify`: the packages are built below, as part of the application.
        let publish = ["publish", "--dry-run", "--no-verify", "--allow-dirty"];
        cargo(root, &publish)
            .args(&["--target-dir", target])
            .args(&packages)
            .finish()
    })?;
    let unpacked = steps.run("pack", || {
        let pack = ["package", "--no-verify", "--allow-dirty", "--quiet"];
        cargo(root, &pack)
            .args(&["--target-dir", target])
            .args(&packages)
            .finish()?;
        unpack(&folder)
    })?;
    let application = write_application(root, &folder, &unpacked)?;
    steps.run("build the application of docs/connector.md", || {
        cargo(&application, &["check", "--quiet"])
            .env("CARGO_TARGET_DIR", folder.join("application-target"))
            .finish()
    })
}

/// Unpacks the packages, checks that each has the files it must have, and returns their directories.
fn unpack(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let place = folder.join("unpacked");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    let mut unpacked = Vec::new();
    for name in NAMES {
        let crate_name = format!("{name}-{VERSION}");
        let archive = folder.join(format!("package/{crate_name}.crate"));
        let size = fs::metadata(&archive)
            .with_context(|| archive.display().to_string())?
            .len();
        program("tar", &["--extract", "--gzip", "--file"])
            .args(&[&archive.to_string_lossy()])
            .args(&["--directory", &place.to_string_lossy()])
            .finish()?;
        let directory = place.join(&crate_name);
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "src/lib.rs"] {
            let metadata = fs::metadata(directory.join(file));
            let has_file = metadata.is_ok_and(|metadata| metadata.len() > 0);
            ensure!(has_file, "{crate_name}.crate has no {file}");
        }
        say(&format!("{:>4} KiB  {crate_name}", size / 1024));
        unpacked.push(directory);
    }
    Ok(unpacked)
}

/// A new project as the page describes it, with packed crates in place of a clone and of the registry.
fn write_application(root: &Path, folder: &Path, unpacked: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let page = fs::read_to_string(root.join(PAGE))?;
    let [manifest, program] = blocks(&page).with_context(|| format!("{PAGE} has no example"))?;
    let connector = unpacked.last().context("the connector is packed")?;
    let clone = "../catamaran/crates/connector";
    ensure!(manifest.contains(clone), "{PAGE} names no path {clone}");
    let mut manifest = manifest.replace(clone, &connector.to_string_lossy());
    manifest.insert_str(
        0,
        "[package]\nname = \"application\"\nedition = \"2024\"\n\n",
    );
    manifest.push_str("\n[workspace]\n\n[patch.crates-io]\n");
    for (name, directory) in NAMES.iter().zip(unpacked) {
        manifest.push_str(&format!("{name} = {{ path = {directory:?} }}\n"));
    }
    let application = folder.join("application");
    fs::create_dir_all(application.join("src"))?;
    fs::write(application.join("Cargo.toml"), manifest)?;
    fs::write(application.join("src/main.rs"), program)?;
    // The dependencies have the versions that the tests use.
    fs::copy(root.join("Cargo.lock"), application.join("Cargo.lock"))?;
    Ok(application)
}

/// The first two code blocks below the heading: the manifest and the program.
fn blocks(page: &str) -> Option<[String; 2]> {
    let (_, section) = page.split_once(HEADING)?;
    let block = |kind: &str| {
        let (_, rest) = section.split_once(&format!("```{kind}\n"))?;
        Some(rest.split_once("```")?.0.to_owned())
    };
    Some([block("toml")?, block("rust")?])
}

/// The crates in the order in which they depend on each other; the connector is last.
const NAMES: [&str; 6] = [
    "catamaran-message",
    "catamaran-ajp",
    "catamaran-http1",
    "catamaran-tls",
    "catamaran-transport",
    "catamaran-connector",
];
const VERSION: &str = env!("CARGO_PKG_VERSION");
const PAGE: &str = "docs/connector.md";
const HEADING: &str = "\n## An axum application over AJP\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_manifest_and_a_program() {
        let page = include_str!("../../../docs/connector.md");
        let [manifest, program] = blocks(page).unwrap();
        assert!(manifest.starts_with("[dependencies]\n"), "{manifest}");
        assert!(program.contains("fn main()"), "{program}");
    }
}
