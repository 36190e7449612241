//! An image for containers: an OCI layout of one layer, in a tar that `skopeo`, `podman load` and `umoci` read, and a
//! Containerfile that makes the same image from the same layer.
//!
//! Source: the image specification of the Open Container Initiative, version 1.1.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};

use super::tree::{Tree, gzip, text};
use super::{Release, content};
use crate::step::program;

/// Packs the static `binary` into `out`; gives the archive, the layer and the Containerfile.
pub(super) fn pack(
    release: &Release<'_>,
    binary: &Path,
    out: &Path,
) -> anyhow::Result<[PathBuf; 3]> {
    let layer = layer(release, binary, out)?;
    let layout = Tree::empty(out.join("tree/oci"))?;
    let blobs = Blobs(&layout);
    let compressed = blobs.add_file(&layer.path, LAYER)?;
    let config = blobs.add(&config(release, &layer.contents), CONFIG)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [compressed],
    });
    let mut manifest = blobs.add(&manifest, MANIFEST)?;
    // `podman load` makes `localhost/catamaran:VERSION` of it.
    let name = format!("catamaran:{}", release.version);
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": name});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]});
    layout.write("index.json", &index.to_string())?;
    layout.write("oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    layout.set_modes()?;
    let archive = out.join(format!("catamaran-{}-oci.tar", release.version));
    layout.tar(&archive, release.epoch)?;
    let file = out.join("Containerfile");
    let layer_name = layer.path.file_name().and_then(|it| it.to_str());
    let layer_name = layer_name.context("a layer has a name of ours")?;
    fs::write(&file, containerfile(layer_name))?;
    Ok([archive, layer.path, file])
}

/// The image's files, compressed, and the sum of the tar before that.
struct Layer {
    path: PathBuf,
    contents: String,
}

fn layer(release: &Release<'_>, binary: &Path, out: &Path) -> anyhow::Result<Layer> {
    let tree = Tree::empty(out.join("tree/image"))?;
    tree.copy(binary, "usr/bin/catamaran")?;
    let configuration = content::CONFIGURATION.replace("127.0.0.1:8081", "0.0.0.0:8080");
    tree.write("etc/catamaran/catamaran.toml", &configuration)?;
    tree.write(
        "etc/passwd",
        &format!("catamaran:x:{USER}:{USER}::/:/sbin/nologin\n"),
    )?;
    tree.write("etc/group", &format!("catamaran:x:{USER}:\n"))?;
    // Whom https:// backends are verified by, unless the configuration names another authority.
    let authorities = Path::new(AUTHORITIES);
    tree.copy(authorities, AUTHORITIES.trim_start_matches('/'))?;
    tree.directory("tmp")?;
    tree.set_modes()?;
    tree.shell("chmod 1777 tmp")?;
    let archive = out.join(format!("catamaran-{}-oci-layer.tar", release.version));
    tree.tar(&archive, release.epoch)?;
    let contents = sum(&archive)?;
    let path = gzip(&archive)?;
    Ok(Layer { path, contents })
}

fn config(release: &Release<'_>, contents: &str) -> Value {
    json!({
        "created": release.time,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": {"8080/tcp": {}},
            "Entrypoint": [ENTRYPOINT],
            "Cmd": COMMAND,
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "catamaran",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{contents}")]},
        "history": [{"created": release.time, "created_by": "cargo xtask package"}],
    })
}

fn containerfile(layer: &str) -> String {
    let command = json!(COMMAND);
    format!(
        "# The image of catamaran-*-oci.tar, made by podman or docker from the same layer.\n\
         #   podman build --tag catamaran .\n\
         #   podman run --volume ./catamaran.toml:/etc/catamaran/catamaran.toml:ro --publish 8080:8080 catamaran\n\
         FROM scratch\n\
         ADD {layer} /\n\
         USER {USER}:{USER}\n\
         EXPOSE 8080\n\
         STOPSIGNAL SIGTERM\n\
         ENTRYPOINT [\"{ENTRYPOINT}\"]\n\
         CMD {command}\n"
    )
}

/// The part of a layout that is found by sums.
struct Blobs<'a>(&'a Tree);

impl Blobs<'_> {
    /// Adds a document; gives what refers to it.
    fn add(&self, document: &Value, kind: &str) -> anyhow::Result<Value> {
        self.0.write("new", &document.to_string())?;
        self.add_file(&self.0.path().join("new"), kind)
            .inspect(|_| {
                // It has another name below `blobs`.
                let _ = fs::remove_file(self.0.path().join("new"));
            })
    }

    fn add_file(&self, path: &Path, kind: &str) -> anyhow::Result<Value> {
        let sum = sum(path)?;
        let size = fs::metadata(path)?.len();
        self.0.copy(path, &format!("blobs/sha256/{sum}"))?;
        Ok(json!({"mediaType": kind, "digest": format!("sha256:{sum}"), "size": size}))
    }
}

/// SHA-256 in hexadecimal digits.
fn sum(path: &Path) -> anyhow::Result<String> {
    let said = program("sha256sum", &["--", text(path)?]).output()?;
    let sum = said.split_whitespace().next();
    Ok(sum.context("sha256sum says nothing")?.to_owned())
}

/// A user who is nobody elsewhere.
const USER: u32 = 65532;
const ENTRYPOINT: &str = "/usr/bin/catamaran";
const COMMAND: [&str; 3] = ["serve", "--config", "/etc/catamaran/catamaran.toml"];
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
