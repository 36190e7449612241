//! Finds and installs what servers require: Debian packages, and programs that the caller names.
//!
//! Installing never leaves a service running, so that no run meets a server that it did not start itself.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::geteuid;

use crate::builtin::{builtin, builtin_names};
use crate::server::Need;

/// A failure to install packages.
#[derive(Debug, thiserror::Error)]
#[error("these Debian packages are needed, please install them: {}\n{said}", packages.join(" "))]
pub struct InstallFault {
    /// The names of the packages.
    pub packages: Vec<String>,
    /// The output of apt-get, or why it could not be run.
    pub said: String,
}

/// The requirement of the Debian package `package`, which is installed if the file `proof` exists.
#[must_use]
pub fn package(package: &str, proof: &str) -> Need {
    Need {
        package: Some(package.to_owned()),
        proof: PathBuf::from(proof),
    }
}

/// All packages that this project's targets may require, whatever their settings.
#[must_use]
pub fn of_targets() -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for target in builtin_names().filter_map(builtin) {
        for need in target.packages() {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

/// The requirements among `needs` that are not installed.
#[must_use]
pub fn missing(needs: &[Need]) -> Vec<Need> {
    let missing = needs.iter().filter(|need| !need.proof.exists());
    missing.cloned().collect()
}

/// Installs Debian packages by apt-get, as root or by sudo.
///
/// # Errors
/// There is no permission, no network, or no such package; the fault has apt-get's message.
pub fn install(packages: &[String]) -> Result<(), InstallFault> {
    let fault = |said: String| InstallFault {
        packages: packages.to_vec(),
        said,
    };
    let mut command = if geteuid().is_root() {
        Command::new("sh")
    } else {
        // Without a password, sudo fails instead of asking for it.
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "sh"]);
        sudo
    };
    // The second `sh` is the script's name ($0), so that the packages are its arguments.
    let result: io::Result<_> = command.args(["-c", INSTALL, "sh"]).args(packages).output();
    let output = result.map_err(|error| fault(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let bytes = [output.stdout, output.stderr].concat();
    Err(fault(String::from_utf8_lossy(&bytes).trim().to_owned()))
}

/// A message with what is missing and what to do.
pub(crate) fn message(missing: &[Need]) -> String {
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|need| need.package.as_deref())
        .collect();
    let mut lines = Vec::new();
    if !packages.is_empty() {
        let packages = packages.join(" ");
        lines.push(format!(
            "not installed: {packages}; `apt-get install {packages}` does it"
        ));
    }
    for need in missing.iter().filter(|need| need.package.is_none()) {
        let proof = need.proof.display().to_string();
        // `TargetRenderer::need` leaves the path empty if the caller has not named the program.
        lines.push(match proof.as_str() {
            "" => "the path of a program is not given".to_owned(),
            path => format!("there is no {path}"),
        });
    }
    lines.join("\n")
}

/// Forbids package scripts to start services, as Debian provides for (policy-rc.d exit 101), then
/// installs the packages given as arguments.
const INSTALL: &str = r#"
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -q -q update
apt-get -q -q install -y --no-install-recommends "$@"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_missing() {
        let there = package("there", "/");
        let none = package("none", "/no/such");
        let found = missing(&[there, none.clone()]);
        assert_eq!(found, [none]);
        let told = message(&found);
        assert_eq!(told, "not installed: none; `apt-get install none` does it");
    }

    #[test]
    fn each_package_of_a_target_is_known_once() {
        let needs = of_targets();
        let names: Vec<_> = needs
            .iter()
            .filter_map(|need| need.package.as_deref())
            .collect();
        for package in [
            "nginx",
            "apache2-bin",
            "libapache2-mod-jk",
            "memcached",
            "tomcat10-common",
        ] {
            let found = names.iter().filter(|name| **name == package).count();
            assert_eq!(found, 1, "{package}");
        }
    }
}
