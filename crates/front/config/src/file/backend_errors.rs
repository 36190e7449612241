//! `[[upstream.NAME.backend]]`: what its errors lead to.

use crate::key::{Doc, Key, Preset};
use crate::value::{Counts, OrOff, Switch};

pub(super) static EJECT_AFTER_5XX: Key<OrOff<Counts<u32>>> = Key {
    name: "eject_after_5xx",
    values: OrOff(Counts {
        min: 1,
        max: 10_000,
    }),
    doc: Doc {
        preset: Preset::Value("\"off\""),
        sample: "20",
        effect: "Leave the backend out when so many of its responses in a row have a status 5xx, as long as \
                 another backend of the upstream answers well and `unwell_max` allows it. It comes back as \
                 with `eject`: after a second at first, after up to half a minute when its next responses \
                 are 5xx again. A [upstream.NAME.probe] with kind = \"request\" finds the same without \
                 costing requests. Whatever it is, `catamaran status`, the page and the metrics count 5xx \
                 of each backend.",
        extremes: "Clients can put a backend out by asking for a page that fails: too low a number lets one \
                   broken page, or one client, take the sessions of others away from their backend.",
        elsewhere: "HAProxy `observe layer7`, `error-limit`; nginx `proxy_next_upstream http_500` with \
                    `max_fails`; httpd `failonstatus`; mod_jk `fail_on_status`",
    },
};

pub(super) static EJECT: Key<Switch> = Key {
    name: "eject",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Leave the backend out when it cannot be connected to or does not answer CPING (see \
                 `suspect_after` and `unwell_max`): for \
                 a second at first, for up to half a minute when it keeps coming and going. The \
                 front probes it by itself, one connection at a time. What fails after a request was \
                 sent only leads to such a probe, so that no request can put a backend out.",
        extremes: "With all backends left out, requests are answered 503 at once. Off, each request \
                   tries the dead backend first and waits as long as `connect_timeout`.",
        elsewhere: "nginx `max_fails`, `fail_timeout`; httpd `retry`; mod_jk `recover_time`",
    },
};
