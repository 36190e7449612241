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
        if let Some(message) = taken.beside(address, place, sees_files, report) {
            report.push(Finding::fault(message, place.clone()).hint("remove one of them"));
        }
        taken.add(address, place, sees_files);
    }
    if let Some(admin) = &file.admin {
        for address in &admin.value.addresses {
            if let Some(message) = taken.beside(address, &admin.place, sees_files, report) {
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
        if let Some(message) = taken.beside(&address, &mcmp.place, sees_files, report) {
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
    fn beside(
        &self,
        address: &ListenAddress,
        place: &Range<usize>,
        sees_files: bool,
        report: &Report,
    ) -> Option<String> {
        let spot = |first: &Range<usize>| report.spot(first.start, place.start);
        let already = |first: &&Range<usize>| format!("{} listens there already", spot(first));
        let address = match address {
            ListenAddress::Unix(path) => {
                return self.files.get(&resolved(path, sees_files)).map(already);
            }
            // With port 0, each gets a port of its own.
            ListenAddress::Tcp(address) if address.port() == 0 => return None,
            ListenAddress::Tcp(address) => address,
        };
        let port = (address.is_ipv6(), address.port());
        let same = self.sockets.get(address).map(already);
        let all = || {
            let (first, whole) = self.whole_ports.get(&port)?;
            Some(format!(
                "{} listens on {whole}, which includes this",
                spot(first)
            ))
        };
        let one = || {
            let (first, one) = self.ports.get(&port)?;
            let includes = address.ip().is_unspecified();
            includes.then(|| format!("{} listens on {one}, which this includes", spot(first)))
        };
        same.or_else(all).or_else(one)
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
fn resolved(path: &Path, sees_files: bool) -> PathBuf {
    let parent = path.parent().filter(|_| sees_files);
    let directory = parent.and_then(|it| it.canonicalize().ok());
    match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}
