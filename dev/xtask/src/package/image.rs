//! An image for containers, by umoci: an OCI layout of one layer, in a tar that `skopeo`, `podman load` and `umoci` read,
//! and a Containerfile that makes the same image from the same layer.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::archive::{gzip, tar};
use super::{Release, text};
use crate::needs;
use crate::step::program;

/// Packs the static binary in `stage` into `out`; returns the paths of the archive, the layer and the
/// Containerfile.
pub(super) fn pack(
    release: &Release<'_>,
    stage: &Path,
    out: &Path,
) -> anyhow::Result<[PathBuf; 3]> {
    needs::install(&[needs::umoci()])?;
    let layer = layer(release, stage, out)?;
    let layout = stage.join("oci");
    // `podman load` makes `localhost/catamaran:VERSION` of it.
    let image = format!("{}:catamaran:{}", text(&layout)?, release.version);
    let arguments = ["-c", MAKE, "sh", text(&layout)?, &image, text(&layer)?];
    program("sh", &arguments)
        .args(&[&release.time, release.version])
        .finish()?;
    let archive = out.join(format!("catamaran-{}-oci.tar", release.version));
    let words = ["--mode=u=rwX,go=rX", "blobs", "index.json", "oci-layout"];
    tar(&layout, &words, &archive, release.epoch)?;
    let compressed_layer = gzip(&layer)?;
    let file_name = compressed_layer.file_name().and_then(|name| name.to_str());
    let layer_name = file_name.context("a layer has a name of ours")?;
    let containerfile_path = out.join("Containerfile");
    fs::write(&containerfile_path, containerfile(layer_name))?;
    Ok([archive, compressed_layer, containerfile_path])
}

/// The image's files in a tar.
fn layer(release: &Release<'_>, stage: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let root = stage.join("image");
    let (source, root_text) = (text(release.source)?, text(&root)?);
    let binary = stage.join("release/catamaran");
    program("sh", &["-c", FILL, "sh", source, text(&binary)?, root_text]).finish()?;
    let layer = out.join(format!("catamaran-{}-oci-layer.tar", release.version));
    tar(&root, &["etc", "tmp", "usr"], &layer, release.epoch)?;
    Ok(layer)
}

fn containerfile(layer: &str) -> String {
    format!(
        "# The image of catamaran-*-oci.tar, made by podman or docker from the same layer.\n\
         #   podman build --tag catamaran .\n\
         #   podman run --volume ./catamaran.toml:/etc/catamaran/catamaran.toml:ro --publish 8080:8080 catamaran\n\
         FROM scratch\n\
         ADD {layer} /\n\
         USER 65532:65532\n\
         EXPOSE 8080\n\
         STOPSIGNAL SIGTERM\n\
         ENTRYPOINT [\"/usr/bin/catamaran\"]\n\
         CMD [\"serve\",\"--config\",\"/etc/catamaran/catamaran.toml\"]\n"
    )
}

/// Fills the directory $3 with files of the checkout $1 and the binary $2. The user 65532 exists in no other image or
/// host. The certificates are the authorities by which https:// backends are verified unless the configuration names
/// others.
const FILL: &str = "set -e; cd \"$1\"; rm -rf \"$3\"; umask 022; mkdir -p \"$3/etc/catamaran\"
install -D -m 755 \"$2\" \"$3/usr/bin/catamaran\"
sed 's/127.0.0.1:8081/0.0.0.0:8080/' crates/cli/debian/catamaran.toml > \"$3/etc/catamaran/catamaran.toml\"
echo 'catamaran:x:65532:65532::/:/sbin/nologin' > \"$3/etc/passwd\"
echo 'catamaran:x:65532:' > \"$3/etc/group\"
cd /; install -D -m 644 /etc/ssl/certs/ca-certificates.crt \"$3/etc/ssl/certs/ca-certificates.crt\"
install -d -m 1777 \"$3/tmp\"";

/// Makes the layout $1 with the image $2 of the layer $3 at the time $4, of version $5.
const MAKE: &str = "set -e; rm -rf \"$1\"; umoci init --layout \"$1\"; umoci new --image \"$2\"
umoci raw add-layer --image \"$2\" --history.created \"$4\" --history.created_by 'cargo xtask package' \"$3\"
umoci config --image \"$2\" --no-history --created \"$4\" --architecture amd64 --os linux \\
    --config.user 65532:65532 --config.exposedports 8080/tcp --config.stopsignal SIGTERM \\
    --config.entrypoint /usr/bin/catamaran \\
    --config.cmd serve --config.cmd=--config --config.cmd /etc/catamaran/catamaran.toml \\
    --config.label org.opencontainers.image.title=catamaran \\
    --config.label \"org.opencontainers.image.version=$5\" \\
    --config.label 'org.opencontainers.image.licenses=MIT OR Apache-2.0'
umoci gc --layout \"$1\"";
