//! An environment without servers and without root's capabilities, for tests that must do without.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::{env, fs};

use crate::needs;
use crate::step::program;

/// The environment in which servers are hidden. Only root can hide them; for other users, tests run without it.
#[derive(Debug)]
pub(super) struct Bare {
    hidden: Option<Hidden>,
}

/// The servers that are hidden, and the program that stands in for each of them.
#[derive(Debug)]
struct Hidden {
    stand_in: PathBuf,
    servers: Vec<PathBuf>,
}

impl Bare {
    /// Finds the programs to hide, and writes the program that takes their place.
    pub(super) fn prepare() -> anyhow::Result<Self> {
        // Without the right to mount, programs stay visible.
        if !program("unshare", &["--mount", "true"]).succeeds() {
            return Ok(Self { hidden: None });
        }
        let stand_in = env::temp_dir().join(format!("catamaran-no-server-{}", std::process::id()));
        fs::write(&stand_in, STAND_IN)?;
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755))?;
        let proofs = needs::of_tests().into_iter().map(|need| need.proof);
        let is_program = |path: &PathBuf| match fs::metadata(path) {
            Ok(metadata) => metadata.is_file() && metadata.permissions().mode() & 0o111 != 0,
            Err(_) => false,
        };
        Ok(Self {
            hidden: Some(Hidden {
                stand_in,
                servers: proofs.filter(is_program).collect(),
            }),
        })
    }

    /// Wraps the command `words` so that it runs in this environment.
    pub(super) fn wrap(&self, words: Vec<OsString>) -> Vec<OsString> {
        let Some(hidden) = &self.hidden else {
            return words;
        };
        let mut all: Vec<OsString> = ["unshare", "--mount", "sh", "-c", HIDE]
            .map(OsString::from)
            .into();
        all.push(hidden.stand_in.clone().into());
        all.push(hidden.servers.len().to_string().into());
        all.extend(hidden.servers.iter().map(OsString::from));
        all.extend(words);
        all
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.stand_in);
    }
}

/// Mounts `$0` over each of the next `$1` arguments, and runs the remaining ones as a command. The command keeps one
/// capability, CAP_IPC_LOCK: rings of io_uring need locked memory, whose limit counts all processes of a user.
const HIDE: &str = r#"
set -e
count=$1
shift
while [ "$count" -gt 0 ]; do
    mount --bind "$0" "$1"
    shift
    count=$((count - 1))
done
exec setpriv --bounding-set=-all,+ipc_lock --inh-caps=-all "$@"
"#;

const STAND_IN: &str = r#"#!/bin/sh
echo "$0 is hidden: this test needs a server, which must be said in NEEDY (dev/xtask/src/test/programs.rs)" >&2
exit 1
"#;
