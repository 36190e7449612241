//! `host` of an upstream or backend: by what host the application is called.

use catamaran_front::config::{BackendConfig, SentHost};

use crate::report::Finding;
use crate::table::Table;

/// Puts the backend's own host in the place of `"backend"`, which may stand in its upstream. `has_url` is
/// whether its address is known.
pub(super) fn settle(table: &mut Table<'_>, backend: &mut BackendConfig, has_url: bool) {
    if backend.host != SentHost::Backend || !has_url {
        return;
    }
    match backend.own_host() {
        Some(host) => backend.host = SentHost::Named(host),
        None => {
            let message = "host = \"backend\", and a Unix socket has no host";
            let hint =
                "write the host that the application knows itself by, such as \"app.internal\"";
            table.push(Finding::fault(message, table.place_at("host")).hint(hint));
        }
    }
}
