//! The list of all crates in the binary, with licences and sums, in CycloneDX's JSON: what scanners of
//! vulnerabilities and licences read.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{Release, text};
use crate::step::program;
use crate::tools;

/// Writes the list into `out`, and returns its path.
pub(super) fn write(release: &Release<'_>, out: &Path) -> anyhow::Result<PathBuf> {
    let tool = tools::CYCLONEDX.program(release.root)?;
    // The tool writes a file next to each manifest of the workspace, so it gets a copy.
    let copy = out.join("tree/manifests");
    let script = "rm -rf \"$2\" && mkdir -p \"$2\" && cd \"$1\" \
                  && tar --create --exclude=./target --exclude=./.git --exclude=./docs . | tar --extract --directory \"$2\"";
    program(
        "sh",
        &["-c", script, "sh", text(release.source)?, text(&copy)?],
    )
    .finish()?;
    let manifest = copy.join("crates/cli/Cargo.toml");
    program(text(&tool)?, &["cyclonedx", "--format", "json", "--quiet"])
        .args(&["--manifest-path", text(&manifest)?])
        .args(&["--override-filename", "sbom"])
        // If this variable is set, the tool writes no random serial number.
        .env("SOURCE_DATE_EPOCH", release.epoch)
        .finish()?;
    let written = copy.join("crates/cli/sbom.json");
    let list = fs::read_to_string(&written).with_context(|| written.display().to_string())?;
    let file = out.join(format!("catamaran-{}.cdx.json", release.version));
    fs::write(&file, list.replace(text(&copy)?, "/catamaran"))?;
    Ok(file)
}
