//! `[[upstream.NAME.backend]]`: tunnels to a backend.

use catamaran_front::config::{BackendConfig, End, Protocol};

use super::Surroundings;
use super::backend_tls::{self, TlsKeys};
use crate::key::{Doc, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::address::{BackendUrl, UrlError, backend_from, parse_upstream_url};
use crate::value::{Counts, Parsed};

/// Reads where a backend that speaks AJP takes tunnels, and whether that is over TLS.
pub(super) fn read(
    table: &mut Table<'_>,
    tls: &TlsKeys,
    backend: &BackendConfig,
    surroundings: &Surroundings<'_>,
) -> Option<(End, bool)> {
    let mut url = table.take(&UPGRADE_URL)?;
    let place = table.place_of(&UPGRADE_URL);
    if let Err(error) = backend_from(surroundings.base, &mut url) {
        let message = format!("`{}` {error}", UPGRADE_URL.name);
        table.push(Finding::fault(message, place.clone()));
    }
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

pub(super) static UPGRADE_URL: Key<Parsed<BackendUrl, UrlError>> = Key {
    name: "upgrade_url",
    values: Parsed {
        what: "a URL: \"http://HOST:PORT\", \"https://HOST:PORT\" or \"http+unix:/PATH\"",
        parse: parse_upstream_url,
    },
    doc: Doc {
        preset: Preset::Unset("requests for a tunnel are answered 501"),
        sample: "\"http://127.0.0.1:8080\"",
        effect: "Where an AJP backend takes requests for a tunnel (`upgrade` of a route): the HTTP \
                 connector of the same container. AJP cannot carry them. The backend is chosen as for \
                 any request, so sessions stay.",
        extremes: "The URL of another container: it does not know the session.",
        elsewhere: "httpd: `ProxyPass ws://` beside `ProxyPass ajp://`",
    },
};

pub(super) static TUNNELS_MAX: Key<Counts<usize>> = Key {
    name: "tunnels_max",
    values: Counts {
        min: 0,
        max: 1_000_000,
    },
    doc: Doc {
        preset: Preset::Value("1000"),
        sample: "10000",
        effect: "Tunnels to this backend that may be open, over all workers. They do not count for \
                 `connections_max`, since a container needs no thread for one that is silent. One more \
                 is answered 503 (`tunnels-max`).",
        extremes: "Each takes two descriptors of the front and one of the container, whose own limit \
                   (Tomcat: `maxConnections`, 8192) counts them all.",
        elsewhere: "nginx `max_conns` counts them as connections",
    },
};
