//! The image, unpacked by umoci, in a network namespace as the ordinary user that it names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::step::{program, say};

/// Finds the image in the folder `package`; `None` if none was made.
pub(super) fn find(package: &Path) -> anyhow::Result<Option<PathBuf>> {
    let version = env!("CARGO_PKG_VERSION");
    let archive = package.join(format!("catamaran-{version}-oci.tar"));
    Ok(archive.exists().then_some(archive))
}

/// Runs an application and a front before it, both from the image.
pub(super) fn serve(archive: &Path, folder: &Path) -> anyhow::Result<()> {
    let place = folder.join("image");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(place.join("layout"))?;
    let (archive, place) = (archive.to_string_lossy(), place.to_string_lossy());
    let version = env!("CARGO_PKG_VERSION");
    let script = format!(
        "set -e; cd \"$2\"; tar -xf \"$1\" -C layout; umoci unpack --image layout:catamaran:{version} bundle 2>&1"
    );
    program("sh", &["-c", &script, "sh", &archive, &place]).finish()?;
    let output = program(
        "unshare",
        &["--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
    )
    .args(&["sh", "-c", SERVE, "sh", &format!("{place}/bundle/rootfs")])
    .output()?;
    ensure!(
        output.contains("users 65532 65532"),
        "another user serves: {output}"
    );
    ensure!(output.contains("pages 404 200 347"), "it serves: {output}");
    say(output.trim());
    Ok(())
}

/// A script that first runs the image's default command, then an application and a front before it.
const SERVE: &str = "set -e
ip link set lo up
image() { chroot --userspec=65532:65532 \"$root\" /usr/bin/catamaran \"$@\" > /dev/null 2>&1 & }
ask() { curl --silent --retry 9 --retry-connrefused --output /dev/null --write-out \"$1\" \"$2\"; }
root=$1
image serve --config /etc/catamaran/catamaran.toml
status=$(ask '%{http_code}' http://127.0.0.1:8080/)
kill $!; wait $! || true
image app --ajp 127.0.0.1:8009
image serve --listen 127.0.0.1:8080 --upstream ajp://127.0.0.1:8009
echo \"pages $status $(ask '%{http_code} %{size_download}' http://127.0.0.1:8080/)\"
echo users $(ps -C catamaran -o uid=)
";
