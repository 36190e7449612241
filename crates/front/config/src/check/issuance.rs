//! Checks whether the certificates of `[tls.NAME.acme]` can be ordered: whether a listener answers the challenges, one
//! profile orders for a name, the directory for them can be written, and the program for dns-01 can be run.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use catamaran_proxy::config::{AcmeChallenge, ListenAddress, ListenerConfig};
use rustix::fs::{Access, access};

use crate::file::File;
use crate::file::tls::Profile;
use crate::file::tls::acme::{Acme, ChallengeChoice};
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
        check_challenges(file, profile, acme, report);
        if sees_files {
            check_directory(acme, report);
            check_hook(acme, report);
        }
    }
}

/// Whether the authority can ask for answers to challenges: in clear text at port 80, or over TLS at port 443.
fn check_challenges(file: &File, profile: &Profile, acme: &Acme, report: &mut Report) {
    // The authority looks up wildcards in the DNS.
    if acme.value.names.iter().all(|name| name.starts_with("*.")) {
        return;
    }
    let challenges = acme
        .challenge
        .challenges(&profile.value, file.has_clear_listener());
    let place = acme.place.clone();
    let Some(first) = challenges.first() else {
        // A listener with a fault may be the one.
        if report.faults() == 0 {
            report.push(unanswered(acme.challenge, place));
        }
        return;
    };
    let (listeners, port, which) = match first {
        AcmeChallenge::Http01 => (None, 80, "in clear text"),
        AcmeChallenge::TlsAlpn01 => (Some(&profile.value.name), 443, "of this profile"),
        AcmeChallenge::Dns01 => return,
    };
    let mut asked = file
        .listeners
        .iter()
        .filter(|it| it.value.tls.as_ref() == listeners);
    if !asked.any(|it| port_of(&it.value) == Some(port)) {
        let message = format!("no listener {which} has the port {port}, which the authority asks");
        let hint =
            format!("listen there, or have what is before the front pass port {port} on to it");
        report.push(Finding::warning(message, place).hint(hint));
    }
}

/// The fault that the front cannot answer the challenge that is chosen.
fn unanswered(choice: ChallengeChoice, place: Range<usize>) -> Finding {
    if choice == ChallengeChoice::Only(AcmeChallenge::TlsAlpn01) {
        let message = "the authority has no certificate, which this profile asks clients for";
        let hint =
            "write challenge = \"http-01\", or let a profile without `client_certificate` order";
        return Finding::fault(message, place).hint(hint);
    }
    let message = "no listener in clear text answers the challenges of the authority";
    let hint = "add a [[listen]] with address = \"0.0.0.0:80\" and redirect_https = true";
    Finding::fault(message, place).hint(hint)
}

fn port_of(listener: &ListenerConfig) -> Option<u16> {
    match &listener.address {
        ListenAddress::Tcp(address) => Some(address.port()),
        ListenAddress::Unix(_) => None,
    }
}

/// Whether the front could run the program for dns-01.
fn check_hook(acme: &Acme, report: &mut Report) {
    let Some(program) = acme.value.dns_hook.first().map(Path::new) else {
        return;
    };
    if !program.is_file() || access(program, Access::EXEC_OK).is_err() {
        let message = format!(
            "this user cannot run {}, the program of `dns_hook`",
            program.display()
        );
        let hint = "name a program that is there, and run `check` as the user of the front";
        report.push(Finding::warning(message, acme.place.clone()).hint(hint));
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
