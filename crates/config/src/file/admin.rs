//! `[admin]`: the listener for health and metrics.

use std::net::SocketAddr;

use toml::Spanned;
use toml::de::DeValue;

use super::Placed;
use crate::check::exposed_admin;
use crate::key::{Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::Parsed;
use crate::value::address::{AdminAddressError, parse_admin_address};

/// Reads the table.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    report: &mut Report,
) -> Option<Placed<SocketAddr>> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place, entries);
    let address = table.require(&ADDRESS);
    if let Some(message) = address.as_ref().and_then(exposed_admin) {
        table.push(Finding::warning(message, table.place_of(&ADDRESS)));
    }
    let place = table.place_of(&ADDRESS);
    table.finish(report);
    address.map(|value| Placed { value, place })
}

pub(crate) static SECTION: Section = Section {
    header: "[admin]",
    intro: "Where the front tells of itself: `/healthz` is 200 as long as the process lives, `/readyz` \
            as long as requests can be served (503 from the beginning of a drain, and while every \
            backend is left out), `/metrics` has the counters for Prometheus, listed in \
            [metrics.md](metrics.md). Without the table nothing is served. It has a thread of its \
            own and takes effect at a start, not at a reload.",
    keys: &[&ADDRESS],
    later: &[],
};

static ADDRESS: Key<Parsed<SocketAddr, AdminAddressError>> = Key {
    name: "address",
    values: Parsed {
        what: "an address and port such as \"127.0.0.1:9090\"",
        parse: parse_admin_address,
    },
    doc: Doc {
        preset: Preset::Required,
        sample: "\"127.0.0.1:9090\"",
        effect: "Where the pages are served, without TLS and to whoever asks.",
        extremes: "An address that others can reach shows them how much is served and what backends \
                   are called.",
        elsewhere: "nginx `stub_status`; httpd `mod_status`; mod_jk `worker.NAME.type=status`; HAProxy \
                    `stats`",
    },
};
