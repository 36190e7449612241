//! `restart` of servers that are connected to each other.

use toml::Spanned;

use super::file::{Restart, ServerKeys};
use super::link;
use super::read::Reading;

impl Reading<'_> {
    /// That no server goes on when one that it is connected to is started anew: its connections would lead
    /// nowhere, and what it answers until it has noticed would be measured.
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

/// Whether one has an address of the other.
fn is_connected(ahead: &ServerKeys, behind: &ServerKeys) -> bool {
    let address = format!("server.{}.", behind.name);
    let is_told = || {
        ahead
            .set
            .values()
            .any(|it| it.to_string().contains(&address))
    };
    let is_linked = ahead.link.is_some() && link::name(ahead) == behind.name;
    is_linked || (is_told() && !link::hides(ahead, behind))
}

/// Whether the one ahead is started anew whenever the one behind is.
fn goes_first(ahead: Restart, behind: Restart) -> bool {
    match (ahead, behind) {
        (Restart::Round, _) | (_, Restart::Never) => true,
        (Restart::Rounds(ahead), Restart::Rounds(behind)) => behind % ahead == 0,
        _ => false,
    }
}
