//! Archives with the same bytes for the same files, and the tar of the static binary with what belongs beside it.

use std::path::{Path, PathBuf};

use super::{Release, content, text};
use crate::step::program;

/// Packs the directory `stage` into `out`, and returns the path of the archive.
pub(super) fn pack(release: &Release<'_>, stage: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("catamaran-{}-x86_64-linux-musl", release.version);
    let built = stage.join("release");
    content::write(&built)?;
    let above = stage.join("tar");
    let (source, above_text) = (text(release.source)?, text(&above)?);
    let arguments = ["-c", FILL, "sh", source, text(&built)?, above_text, &name];
    program("sh", &arguments).finish()?;
    let archive = out.join(format!("{name}.tar"));
    let mode = "--mode=u=rwX,go=rX";
    tar(&above, &[mode, &name], &archive, release.epoch)?;
    gzip(&archive)
}

/// Packs the entries `words` of `folder` as an uncompressed tar: names sorted, owned by root, all with one
/// time.
pub(super) fn tar(
    folder: &Path,
    words: &[&str],
    archive: &Path,
    epoch: &str,
) -> anyhow::Result<()> {
    let time = format!("--mtime=@{epoch}");
    let same = [
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        &time,
    ];
    program(
        "tar",
        &["--create", "--format=ustar", "--file", text(archive)?],
    )
    .args(&same)
    .args(&["--directory", text(folder)?])
    .args(words)
    .finish()
}

/// Compresses `archive`, and returns the path of the compressed file.
pub(super) fn gzip(archive: &Path) -> anyhow::Result<PathBuf> {
    program("gzip", &["--force", "--best", "--no-name", text(archive)?]).finish()?;
    let mut path = archive.as_os_str().to_owned();
    path.push(".gz");
    Ok(path.into())
}

/// A script that fills the directory $4 in $3 with files of the checkout $1 and with the binary $2.
const FILL: &str =
    "set -e; cd \"$1\"; rm -rf \"$3\"; top=$3/$4; mkdir -p \"$top/bin\" \"$top/man\" \"$top/doc\"
cp README.md LICENSE-APACHE LICENSE-MIT SECURITY.md docs/examples/catamaran.service \"$top\"
cp crates/cli/debian/catamaran.toml \"$top\"
cp -r CHANGELOG.md docs/*.md docs/examples \"$top/doc\"
cp \"$2/catamaran\" \"$top/bin\"
cp -r \"$2/man\" \"$top/man/man1\"
cp -r \"$2/completions\" \"$top\"";
