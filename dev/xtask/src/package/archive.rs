//! The static binary in a tar, with what belongs beside it: unit, configuration, man pages, completions, documents.

use std::path::{Path, PathBuf};

use super::tree::{Tree, gzip, text};
use super::{Release, content};
use crate::step::program;

/// Packs `binary` into `out`; gives the archive.
pub(super) fn pack(release: &Release<'_>, binary: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("catamaran-{}-x86_64-linux-musl", release.version);
    let above = Tree::empty(out.join("tree/static"))?;
    let tree = Tree::empty(above.path().join(&name))?;
    tree.copy(binary, "bin/catamaran")?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT", "SECURITY.md"] {
        tree.copy(&release.source.join(file), file)?;
    }
    let unit = release.source.join("docs/examples/catamaran.service");
    tree.copy(&unit, "catamaran.service")?;
    tree.write("catamaran.toml", content::CONFIGURATION)?;
    content::man_pages(&tree, "man/man1", binary)?;
    for (shell, path) in COMPLETIONS {
        let completions = program(text(binary)?, &["completions", shell]).output()?;
        tree.write(path, &completions)?;
    }
    content::documents(&tree, "doc", release.source)?;
    above.set_modes()?;
    let archive = out.join(format!("{name}.tar"));
    above.tar(&archive, release.epoch)?;
    gzip(&archive)
}

const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "completions/catamaran.bash"),
    ("zsh", "completions/_catamaran"),
    ("fish", "completions/catamaran.fish"),
];
