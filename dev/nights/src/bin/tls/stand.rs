//! The fronts and the application behind them, in a network namespace and cgroups of their own.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::binary;
use catamaran_tier::{Launch, Process, Programs, Space, builtin};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};

/// The targets that are compared, ours first.
pub(crate) const FRONTS: [&str; 3] = ["front", "nginx", "haproxy"];

/// The key of a front's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// P-256.
    Ecdsa,
    /// 2,048 bits.
    Rsa,
}

/// The servers that are measured, all running.
pub(crate) struct Stand {
    pub(crate) space: Space,
    /// By the index in [`FRONTS`], and then in [`KEYS`].
    fronts: Vec<[Process; 2]>,
    app: Process,
    programs: Programs,
}

impl Stand {
    /// Makes the certificates, and starts the application and each front with each certificate.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let space = Space::isolated(&format!("catamaran-tls-{}", std::process::id()))?;
        for key in KEYS {
            let pair = KeyPair::generate_for(match key {
                Key::Ecdsa => &PKCS_ECDSA_P256_SHA256,
                Key::Rsa => &PKCS_RSA_SHA256,
            })?;
            let params = CertificateParams::new(vec!["localhost".to_owned()])?;
            let chain = params.self_signed(&pair)?.pem();
            let path = space.directory().join(key.file());
            fs::write(path, chain + &pair.serialize_pem())?;
        }
        let programs = Programs::from([("catamaran".to_owned(), binary()?)]);
        let app = start(&space, &programs, ("app", "app"), LOAD_CORE, &[])?;
        let mut stand = Self {
            space,
            fronts: Vec::new(),
            app,
            programs,
        };
        for front in FRONTS {
            let [ecdsa, rsa] = KEYS.map(|key| stand.front(&format!("{front}-{key:?}"), front, key));
            stand.fronts.push([ecdsa?, rsa?]);
        }
        Ok(stand)
    }

    /// Starts another process of a front.
    pub(crate) fn front(&self, name: &str, target: &str, key: Key) -> anyhow::Result<Process> {
        let certificate = self.certificate(key).display().to_string();
        let set = [
            ("backend", self.app.url("http")),
            ("certificate", certificate),
            ("keep_alive_timeout", "10m".to_owned()),
            ("ready_path", "/".to_owned()),
        ];
        start(
            &self.space,
            &self.programs,
            (name, target),
            FRONT_CORE,
            &set,
        )
    }

    /// The file with a certificate and its key.
    pub(crate) fn certificate(&self, key: Key) -> PathBuf {
        self.space.directory().join(key.file())
    }

    /// The running front with this index in [`FRONTS`].
    pub(crate) fn running(&self, front: usize, key: Key) -> &Process {
        &self.fronts[front][usize::from(key == Key::Rsa)]
    }
}

impl Key {
    fn file(self) -> &'static str {
        match self {
            Self::Ecdsa => "ecdsa.pem",
            Self::Rsa => "rsa.pem",
        }
    }
}

/// Starts `target` as the process `name` on a core, with the settings `set`.
fn start(
    space: &Space,
    programs: &Programs,
    (name, target): (&str, &str),
    core: usize,
    set: &[(&str, String)],
) -> anyhow::Result<Process> {
    let target = builtin(target).with_context(|| format!("there is no target {target}"))?;
    let set: Vec<(&str, &str)> = set
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let settings = target.settings(&set)?;
    Ok(space.start(&Launch {
        name,
        target: &target,
        settings: &settings,
        programs,
        core: Some(core),
        limit: None,
    })?)
}

/// The CPU time that a front has used so far.
pub(crate) fn cpu(front: &Process) -> anyhow::Result<Duration> {
    let group = front.group().context("a space with groups")?;
    Ok(group.cpu()?.total())
}

const KEYS: [Key; 2] = [Key::Ecdsa, Key::Rsa];
const FRONT_CORE: usize = 0;
/// The core of the application and of all clients.
pub(crate) const LOAD_CORE: usize = 1;
