//! `[upstream.NAME]`: a named group of backends with a policy.

use std::ops::Range;

use catamaran_front::config::{Address, BackendConfig, Policy, Protocol, UpstreamConfig};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::sticky::{self, Sticky};
use super::{Backend, Surroundings, backend};
use crate::key::{Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table, tables};
use crate::value::text::parse_name;
use crate::value::{Choices, Counts, OrOff, Percents};

/// An upstream, placed by its header. It is there even when its backends are at fault, so that the
/// routes that lead to it are not blamed as well.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) place: Range<usize>,
    pub(crate) policy: Policy,
    pub(crate) retries: u32,
    pub(crate) unwell_max: u8,
    pub(crate) sticky: Sticky,
    pub(crate) backends: Vec<Backend>,
}

/// Reads the tables.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<Upstream> {
    let Some((_, entries)) = table(SECTION.header, value, report) else {
        return Vec::new();
    };
    let mut upstreams = Vec::new();
    for (name, value) in entries {
        let key = name.get_ref();
        let known = SECTION.has(key) || backend::SECTION.has(key) || key == "backend";
        if known && !value.get_ref().is_table() {
            let message = "an upstream needs a name";
            let hint = "write [upstream.NAME] and [[upstream.NAME.backend]]";
            report.push(Finding::fault(message, name.span()).hint(hint));
        } else if let Some((place, entries)) = table(SECTION.header, value, report) {
            if let Err(error) = parse_name(name.get_ref()) {
                let message = format!("the name of an upstream {error}");
                report.push(Finding::fault(message, name.span()));
            }
            upstreams.push(one((name.get_ref(), place, entries), surroundings, report));
        }
    }
    upstreams
}

fn one(
    (name, place, entries): (&str, Range<usize>, &DeTable<'_>),
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Upstream {
    let mut table = Table::new(&SECTION, place.clone(), entries).except(&["backend", "sticky"]);
    let mut settings = UpstreamConfig::new(name, Vec::new());
    table.set(&POLICY, &mut settings.policy);
    table.set(&RETRIES, &mut settings.retries);
    if let Some(unwell_max) = table.take(&UNWELL_MAX) {
        settings.unwell_max = unwell_max.unwrap_or(100);
    }
    // Settings of the group: every backend starts from them.
    let unplaced = Address::Unix(std::path::PathBuf::new());
    let mut shared = BackendConfig::new(Protocol::Ajp, unplaced);
    backend::settings(&mut table, surroundings, &mut shared);
    let sticky = entries.get("sticky");
    let sticky = sticky.map(|value| sticky::read(value, surroundings, report));
    let lists = entries
        .get("backend")
        .map(|value| tables(backend::SECTION.header, value, report));
    if lists.is_none() {
        let message = format!("upstream `{name}` has no backend");
        let hint = format!("add [[upstream.{name}.backend]] with a `url`");
        table.push(Finding::fault(message, place.clone()).hint(hint));
    }
    let read = |(place, entries)| backend::read((place, entries), surroundings, &shared, report);
    let backends: Vec<Backend> = lists
        .unwrap_or_default()
        .into_iter()
        .filter_map(read)
        .collect();
    let ajp = |backend: &Backend| backend.value.protocol == Protocol::Ajp;
    if !backends.is_empty() && !backends.iter().any(ajp) {
        backend::ajp_keys_without_use(&mut table);
    }
    table.finish(report);
    Upstream {
        name: name.to_owned(),
        place,
        policy: settings.policy,
        retries: settings.retries,
        unwell_max: settings.unwell_max,
        sticky: sticky.unwrap_or_default(),
        backends,
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME]",
    intro: "A named group of backends that serve alike. The keys of a backend (next section, all but \
            `url`, `name`, `weight` and what places it among the others) may stand here too; they hold for every backend of the group \
            that does not say otherwise.",
    keys: backend::UPSTREAM_KEYS,
    later: &[("health", PROBE_ADVICE), ("probe", PROBE_ADVICE)],
};

const PROBE_ADVICE: &str = "backends are judged by the requests they fail; remove it";

pub(super) static POLICY: Key<Choices<Policy>> = Key {
    name: "policy",
    values: Choices(&[
        ("round-robin", Policy::RoundRobin),
        ("least-in-flight", Policy::LeastInFlight),
    ]),
    doc: Doc {
        preset: Preset::Value("\"round-robin\""),
        sample: "\"least-in-flight\"",
        effect: "How a backend is picked: in turn by weight, or the one with the fewest exchanges in \
                 flight per weight; among more than 32, the better of two random ones.",
        extremes: "In turn suits equal backends and equal requests. The fewest in flight suits \
                   requests of very different cost; a backend that fails fast attracts load.",
        elsewhere: "nginx `least_conn`; httpd `lbmethod`; mod_jk `method`",
    },
};

pub(super) static RETRIES: Key<Counts<u32>> = Key {
    name: "retries",
    values: Counts { min: 0, max: 20 },
    doc: Doc {
        preset: Preset::Value("2"),
        sample: "1",
        effect: "Further attempts after a failed one, on another backend where there is one, and \
                 only where a retry cannot run a request twice.",
        extremes: "0 lets every backend that goes away be seen by a client. High values multiply the \
                   load when all backends are failing.",
        elsewhere: "nginx `proxy_next_upstream_tries` less one; mod_jk `lb_retries`, `retries`",
    },
};

pub(super) static UNWELL_MAX: Key<OrOff<Percents>> = Key {
    name: "unwell_max",
    values: OrOff(Percents),
    doc: Doc {
        preset: Preset::Value("\"50%\""),
        sample: "\"off\"",
        effect: "How much of the upstream's weight may be left out when a backend is left out because \
                 it does not answer CPING. Beyond that it stays suspect: others are preferred. A \
                 backend that cannot be connected to is left out in any case.",
        extremes: "`\"0%\"` leaves nobody out for silence. Off, a network that is slow for all can \
                   leave all backends out, and requests are answered 503.",
        elsewhere: "Envoy `healthy_panic_threshold`",
    },
};
