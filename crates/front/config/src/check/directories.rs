//! Checks whether the directories exist in which the front makes its sockets and its state file, and the
//! one in which another ACME client puts its challenges.

use std::ops::Range;
use std::path::Path;

use catamaran_proxy::config::ListenAddress;

use crate::file::File;
use crate::report::{Finding, Report};

/// Adds a finding for each directory that does not exist. The directory of the access log is checked where
/// `[log]` is read.
pub(super) fn check(file: &File, report: &mut Report) {
    for listener in &file.listeners {
        if let ListenAddress::Unix(path) = &listener.value.address
            && !is_made_by_systemd(path)
        {
            look(path, &listener.place, report);
        }
        if let Some(webroot) = &listener.value.acme_webroot
            && !webroot.is_dir()
        {
            let message = format!(
                "`acme_webroot` of this listener is no directory, so every challenge is answered 404: {}",
                webroot.display()
            );
            let hint = "create it, and name it to the client that gets certificates (certbot --webroot -w)";
            report.push(Finding::warning(message, listener.place.clone()).hint(hint));
        }
    }
    let Some(admin) = &file.admin else {
        return;
    };
    for address in &admin.value.addresses {
        if let ListenAddress::Unix(path) = address {
            look(path, &admin.place, report);
        }
    }
    if let Some(path) = &admin.value.state_file {
        look(path, &admin.state_place, report);
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let message = format!("`state_file` is no regular file: {}", path.display());
            let finding = Finding::fault(message, admin.state_place.clone());
            report.push(finding.hint("name a file, which the front makes"));
        }
    }
}

/// Adds a finding if the directory of this file does not exist. The front makes the file, but no directory
/// for it.
fn look(path: &Path, place: &Range<usize>, report: &mut Report) {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if directory.is_dir() {
        return;
    }
    let message = format!("there is no directory {}", directory.display());
    let finding = if is_made_by_systemd(path) {
        Finding::warning(message, place.clone()).hint(
            "a start fails without it: create it, or let systemd do so with RuntimeDirectory or \
         StateDirectory (docs/systemd.md)",
        )
    } else {
        Finding::fault(message, place.clone()).hint("create it, or write another path")
    };
    report.push(finding);
}

/// Whether systemd may make the directory when the unit starts, as its `RuntimeDirectory` or
/// `StateDirectory`.
fn is_made_by_systemd(path: &Path) -> bool {
    let parents = ["/run", "/var/run", "/var/lib"];
    parents.iter().any(|parent| path.starts_with(parent))
}
