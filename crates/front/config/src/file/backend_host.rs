//! `host` of an upstream or backend: by what host the application is called.

use catamaran_front::config::{BackendConfig, SentHost};

use crate::key::{Doc, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::Parsed;
use crate::value::text::{TextError, parse_sent_host};

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
            table.push(Finding::fault(message, table.place_of(&HOST)).hint(hint));
        }
    }
}

pub(super) static HOST: Key<Parsed<SentHost, TextError>> = Key {
    name: "host",
    values: Parsed {
        what: "\"client\", \"backend\" or a host such as \"app.internal\"",
        parse: parse_sent_host,
    },
    doc: Doc {
        preset: Preset::Value("\"client\""),
        sample: "\"backend\"",
        effect: "By what host the backend is called, in `Host` and over AJP as the server's name and port. \
                 `\"client\"`: as the client called this front. `\"backend\"`: by the host of the backend's \
                 `url`, over HTTP with its port unless that is 80, or 443 of `https://`. Else by this host, \
                 with a port if it has one. `X-Forwarded-Host` says in any case what the client asked for. \
                 The name in a TLS handshake is `server_name`, or the host of the `url`.",
        extremes: "An application that is called by another host writes that one into its redirects, \
                   cookies and links: give its routes a `rewrite`, if only from `/` to `/`, so that \
                   responses are turned back.",
        elsewhere: "httpd `ProxyPreserveHost` (off is `\"backend\"`); nginx `proxy_set_header Host \
                    $proxy_host`, its default",
    },
};
