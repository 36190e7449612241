//! Checks whether all listeners of a file can listen at the same time.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use catamaran_proxy::config::ListenAddress;

use crate::file::File;
use crate::report::{Finding, Report};

/// Faults each address that cannot be used beside those before it; the addresses of the admin listener and of
/// `[mcmp]` are compared with all others.
///
/// With `sees_files`, two paths of sockets are the same if their directories are the same on this machine.
pub(super) fn check(file: &File, sees_files: bool, report: &mut Report) {
    let mut taken = ListenerAddresses::default();
    for listener in &file.listeners {
        let (address, place) = (&listener.value.address, &listener.place);
        if let Some(message) = taken.conflict(address, place, sees_files, report) {
            report.push(Finding::fault(message, place.clone()).hint("remove one of them"));
        }
        taken.add(address, place, sees_files);
    }
    if let Some(admin) = &file.admin {
        for address in &admin.value.addresses {
            if let Some(message) = taken.conflict(address, &admin.place, sees_files, report) {
                let hint = "give the admin listener an address of its own";
                report.push(Finding::fault(message, admin.place.clone()).hint(hint));
            }
            taken.add(address, &admin.place, sees_files);
        }
    }
    if let Some(mcmp) = &file.mcmp
        && let Some(source) = &mcmp.value
    {
        let address = ListenAddress::Tcp(source.listen);
        if let Some(message) = taken.conflict(&address, &mcmp.place, sees_files, report) {
            let hint = "give [mcmp] an address of its own";
            report.push(Finding::fault(message, mcmp.place.clone()).hint(hint));
        }
    }
}

/// The addresses that listeners take, each with the place of the first listener that has it.
#[derive(Default)]
struct ListenerAddresses<'f> {
    sockets: HashMap<SocketAddr, &'f Range<usize>>,
    files: HashMap<PathBuf, &'f Range<usize>>,
    /// The first address for each port, by whether it is of IPv6: a listener on `[::]` takes only the addresses
    /// of IPv6.
    ports: HashMap<(bool, u16), (&'f Range<usize>, SocketAddr)>,
    /// The ports that a listener takes on all addresses.
    whole_ports: HashMap<(bool, u16), (&'f Range<usize>, SocketAddr)>,
}

impl<'f> ListenerAddresses<'f> {
    /// The message if `address` cannot be bound beside the earlier ones; `None` if it can.
    fn conflict(
        &self,
        address: &ListenAddress,
        place: &Range<usize>,
        sees_files: bool,
        report: &Report,
    ) -> Option<String> {
        let spot_of = |first: &Range<usize>| report.spot(first.start, place.start);
        let socket = match address {
            ListenAddress::Unix(path) => {
                let first = self.files.get(&resolved(path, sees_files))?;
                return Some(format!("{} listens there already", spot_of(first)));
            }
            ListenAddress::Tcp(socket) => socket,
        };
        // With port 0, each gets a port of its own.
        if socket.port() == 0 {
            return None;
        }
        if let Some(first) = self.sockets.get(socket) {
            return Some(format!("{} listens there already", spot_of(first)));
        }
        let port = (socket.is_ipv6(), socket.port());
        if let Some((first, wildcard)) = self.whole_ports.get(&port) {
            let spot = spot_of(first);
            return Some(format!("{spot} listens on {wildcard}, which includes this"));
        }
        if !socket.ip().is_unspecified() {
            return None;
        }
        let (first, included) = self.ports.get(&port)?;
        let spot = spot_of(first);
        Some(format!("{spot} listens on {included}, which this includes"))
    }

    /// Adds an address that a listener takes.
    fn add(&mut self, address: &ListenAddress, place: &'f Range<usize>, sees_files: bool) {
        match address {
            ListenAddress::Unix(path) => {
                let path = resolved(path, sees_files);
                self.files.entry(path).or_insert(place);
            }
            ListenAddress::Tcp(address) => {
                let port = (address.is_ipv6(), address.port());
                self.sockets.entry(*address).or_insert(place);
                self.ports.entry(port).or_insert((place, *address));
                if address.ip().is_unspecified() {
                    self.whole_ports.entry(port).or_insert((place, *address));
                }
            }
        }
    }
}

/// The path of a socket with the links in its directory resolved, since `/var/run` is usually a link to `/run`.
///
/// Without `sees_files`, or if the directory does not exist, this is the path itself.
fn resolved(path: &Path, sees_files: bool) -> PathBuf {
    if sees_files
        && let (Some(directory), Some(name)) = (path.parent(), path.file_name())
        && let Ok(directory) = directory.canonicalize()
    {
        return directory.join(name);
    }
    path.to_owned()
}
