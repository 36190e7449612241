//! `restart`: for how many rounds servers run, and that no server outlives one that it is connected to.

use std::collections::BTreeSet;

use toml::Spanned;

use super::check::check_server;
use super::file::{Restart, ServerKeys};
use super::read::FileReader;
use super::template::Addresses;
use super::{CellServer, Experiment, link};

impl Experiment {
    /// The lifetimes of a cell's servers in rounds, each once, without those of one round or less; `usize::MAX`: never
    /// started anew.
    pub(crate) fn lifetimes(&self, cell: usize) -> BTreeSet<usize> {
        let servers = self.servers_of(cell).into_iter();
        servers
            .map(|server| server.rounds)
            .filter(|rounds| *rounds > 1)
            .collect()
    }

    /// Whether a cell reads the memory of our own program. `of` restricts that to one server; `None`: any server whose
    /// memory is read.
    pub(crate) fn reads_memory_of_ours(&self, cell: usize, of: Option<&str>) -> bool {
        let is_read = |server: &CellServer| match of {
            Some(name) => server.name == name,
            None => self.measure.memory.contains(&server.name),
        };
        let is_ours = |server: &CellServer| {
            let target = catamaran_tier::builtin(&server.target);
            target.is_some_and(|target| target.needs_program(OWN))
        };
        let mut servers = self.servers_of(cell).into_iter();
        servers.any(|server| is_read(&server) && is_ours(&server))
    }

    /// The servers of a cell, rendered with made-up addresses. The check of the file has shown that they can be made.
    pub(crate) fn servers_of(&self, cell: usize) -> Vec<CellServer> {
        let levels = &self.cells[cell];
        let mut addresses = Addresses::new();
        let mut servers = Vec::new();
        for number in 0..self.servers() {
            match check_server(self, levels, number, &mut addresses) {
                Ok(prepared) => servers.extend(prepared.map(|prepared| prepared.server)),
                // Later servers may name the address of this one.
                Err(_) => break,
            }
        }
        servers
    }
}

impl FileReader<'_> {
    /// Checks that no server runs on when another one is started anew behind it: its connections would be broken, and
    /// the errors until it notices would be measured.
    pub(super) fn check_restarts(&mut self, servers: &[Spanned<ServerKeys>]) {
        for (number, server) in servers.iter().enumerate() {
            let ahead = server.get_ref();
            for behind in servers[..number].iter().map(Spanned::get_ref) {
                if !is_connected(ahead, behind) || goes_first(ahead.restart, behind.restart) {
                    continue;
                }
                let (name, other) = (&ahead.name, &behind.name);
                let what = format!(
                    "`{name}` goes on when `{other}`, which it is connected to, is started anew: give `{other}` \
                     the same `restart`"
                );
                self.fault(server, what);
            }
        }
    }
}

/// Whether the server `ahead` connects to `behind`: directly, by an address in its settings, or because `behind` is its
/// link.
fn is_connected(ahead: &ServerKeys, behind: &ServerKeys) -> bool {
    let address = format!("server.{}.", behind.name);
    let mut templates = ahead.set.values();
    let has_address = templates.any(|template| template.to_string().contains(&address));
    let is_linked = ahead.link.is_some() && link::name(ahead) == behind.name;
    is_linked || (has_address && !link::hides(ahead, behind))
}

/// Whether the server ahead is started anew whenever the one behind it is.
fn goes_first(ahead: Restart, behind: Restart) -> bool {
    match (ahead, behind) {
        (Restart::Round, _) | (_, Restart::Never) => true,
        (Restart::Rounds(ahead), Restart::Rounds(behind)) => behind % ahead == 0,
        (Restart::Rounds(_), Restart::Round) => false,
        (Restart::Never, Restart::Round | Restart::Rounds(_)) => false,
    }
}

/// The name of our own program among the programs that targets need.
pub(crate) const OWN: &str = "catamaran";
