//! Checks whether the certificates of `[tls.NAME.acme]` can be ordered: whether a listener answers the challenges, one
//! profile orders for a name, and the directory for them can be written.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use catamaran_proxy::config::{ListenAddress, ListenerConfig};
use rustix::fs::{Access, access};

use crate::file::File;
use crate::file::tls::acme::Acme;
use crate::report::{Finding, Report};

pub(super) fn check(file: &File, sees_files: bool, report: &mut Report) {
    let mut owners: HashMap<&str, &str> = HashMap::new();
    for profile in &file.tls {
        let Some(acme) = &profile.acme else {
            continue;
        };
        for name in &acme.value.names {
            if let Some(other) = owners.insert(name, &profile.value.name) {
                let message =
                    format!("TLS profile `{other}` orders a certificate for `{name}`, too");
                let hint = "keep the name in one of them";
                report.push(Finding::fault(message, acme.place.clone()).hint(hint));
            }
        }
        check_challenges(file, &acme.place, report);
        if sees_files {
            check_directory(acme, report);
        }
    }
}

/// Whether the authority can ask for answers to challenges (RFC 8555, section 8.3: at port 80, in clear text).
fn check_challenges(file: &File, place: &Range<usize>, report: &mut Report) {
    let clear = file.listeners.iter().filter(|it| it.value.tls.is_none());
    let mut ports = clear.filter_map(|it| port(&it.value)).peekable();
    // A listener with a fault may be the one.
    if ports.peek().is_none() {
        if report.faults() == 0 {
            let message = "no listener in clear text answers the challenges of the authority";
            let hint = "add a [[listen]] with address = \"0.0.0.0:80\" and redirect_https = true";
            report.push(Finding::fault(message, place.clone()).hint(hint));
        }
    } else if !ports.any(|port| port == 80) {
        let message = "no listener in clear text has the port 80, which the authority asks";
        let hint = "listen there, or have what is before the front pass port 80 on to it";
        report.push(Finding::warning(message, place.clone()).hint(hint));
    }
}

fn port(listener: &ListenerConfig) -> Option<u16> {
    match &listener.address {
        ListenAddress::Tcp(address) => Some(address.port()),
        ListenAddress::Unix(_) => None,
    }
}

/// Whether the front could make the files of certificates.
fn check_directory(acme: &Acme, report: &mut Report) {
    let state_dir = &acme.value.state_dir;
    // A relative path ends in an empty one, which stands for the working directory.
    let nearest = match state_dir.ancestors().find(|it| it.exists()) {
        Some(existing) => existing,
        None => Path::new("."),
    };
    if !nearest.is_dir() {
        let message = format!(
            "`state_dir` is below {}, which is no directory",
            nearest.display()
        );
        let finding = Finding::fault(message, acme.place.clone());
        report.push(finding.hint("name a directory, which the front makes"));
    } else if access(nearest, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let message = format!(
            "this user cannot write to {}, so the front could not keep certificates in {}",
            nearest.display(),
            state_dir.display()
        );
        let hint = "run `check` as the user of the front; with systemd, StateDirectory makes /var/lib/catamaran";
        report.push(Finding::warning(message, acme.place.clone()).hint(hint));
    }
}
