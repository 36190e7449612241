//! `[[upstream.NAME.backend]]`: tunnels to a backend.

use catamaran_proxy::config::{BackendConfig, End, Protocol};

use super::Surroundings;
use super::backend::resolve;
use super::backend_tls::{self, TlsKeys};
use crate::report::Finding;
use crate::table::Table;
use crate::value::address::BackendUrl;

/// Where tunnels to an AJP backend go, by its `upgrade_url`, and whether they use TLS. `None`, with a fault, if the
/// backend takes tunnels at its `url`, or none at the URL.
pub(super) fn end(
    mut url: BackendUrl,
    table: &mut Table<'_>,
    tls: &TlsKeys,
    backend: &BackendConfig,
    surroundings: &Surroundings<'_>,
) -> Option<(End, bool)> {
    resolve("upgrade_url", Some(&mut url), table, surroundings.base);
    let place = table.place_of("upgrade_url");
    if backend.protocol == Protocol::Http {
        let message = "`upgrade_url` is for AJP; this backend takes tunnels at its `url`";
        table.push(Finding::fault(message, place).hint("remove it"));
        return None;
    }
    if url.protocol == Protocol::Ajp {
        let message = "`upgrade_url` is a URL of AJP, which has no tunnels";
        let hint = "write the URL of the container's HTTP connector, such as http://HOST:8080";
        table.push(Finding::fault(message, place).hint(hint));
        return None;
    }
    let mut end = End {
        address: url.address,
        tls: None,
    };
    if url.tls {
        end.tls = backend_tls::build(table, place, tls, &end.address, surroundings);
    }
    Some((end, url.tls))
}
