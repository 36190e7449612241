//! `[upstream.NAME.probe]`: how backends are probed while they are up.

use std::time::Duration;

use catamaran_proxy::config::{ProbeConfig, ProbeKind, ProbeRequest};
use http::Method;
use toml::Spanned;
use toml::de::DeValue;

use crate::fill;
use crate::key::{ALL, Group, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::text::{parse_host_field, parse_statuses, parse_target};
use crate::value::{Choices, Counts, Durations, OneOrMore, Optional, Syntax};

/// What a probe asks a backend: the value of `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Off,
    Connect,
    Cping,
    Request,
}

/// The values of the keys of `[upstream.NAME.probe]`, before they are checked against each other.
struct RawProbe {
    kind: Kind,
    request: ProbeRequest,
    probe: ProbeConfig,
}

/// Reads `[upstream.NAME.probe]`; `None` if backends are not to be probed.
pub(crate) fn read(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Option<ProbeConfig> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawProbe {
        kind: Kind::Off,
        request: ProbeRequest::default(),
        probe: ProbeConfig::new(ProbeKind::Connect),
    };
    table.read(KEYS, &mut written);
    let RawProbe {
        kind,
        request,
        mut probe,
    } = written;
    if table.is_good_at("kind") && kind != Kind::Request {
        for (name, place) in table.written(KEYS, |group| group == REQUEST) {
            let message = format!("`{name}` has no effect without kind = \"request\"");
            let hint = "write kind = \"request\", or remove it";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
    if request.body.is_some() && request.method == Method::HEAD {
        let message = "an answer to HEAD has no body, so `body` is never found";
        table.push(Finding::fault(message, table.place_of("body")).hint("write method = \"GET\""));
    }
    table.finish(report);
    probe.kind = match kind {
        Kind::Off => return None,
        Kind::Connect => ProbeKind::Connect,
        Kind::Cping => ProbeKind::Cping,
        Kind::Request => ProbeKind::Request(Box::new(request)),
    };
    Some(probe)
}

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME.probe]",
    intro: "How the backends of the upstream are probed while they are up, so that one that fails is \
            left out before requests find out. One process makes one probe of a backend at a time, on \
            a connection of its own that has no part in `connections_max`. Without this table only \
            failed and unanswered requests lead to probes. A backend that cannot be connected to is \
            left out at once, whatever is written here. While a backend is out it is probed each \
            second at first, and in a back-off of up to 30 s if it was out lately.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

/// Keys about a probe's request, which have no effect if the probe sends none.
const REQUEST: Group = Group("request");

static KEYS: &[Key<RawProbe>] = &[
    Key {
        name: "kind",
        group: ALL,
        value: fill!(
            Choices(&[
                ("off", Kind::Off),
                ("connect", Kind::Connect),
                ("cping", Kind::Cping),
                ("request", Kind::Request),
            ]),
            RawProbe.kind
        ),
        preset: Preset::Required,
        sample: "\"request\"",
        effect: "What a probe asks. `connect`: whether it can be connected to, and never CPING. \
                 `cping`: CPING over AJP; an HTTP backend is connected to. `request`: a request over the backend's own \
                 protocol, AJP included, and its answer is looked at; it is made, too, when a failed \
                 request is verified. An AJP backend of which nothing is heard is asked CPING beside \
                 it, so a slow probe does not put off what silence leads to. Stopped and draining \
                 backends are probed like the others.",
        extremes: "A process that is stopped still accepts connections, and a hung application still \
                   answers CPING; only `request` finds those, and a wrong `secret`: `catamaran activate \
                   --wait` needs it. A request that begins sessions fills the \
                   container with them.",
        elsewhere: "httpd `hcmethod`; HAProxy `check`, `option httpchk`; mod_jk `ping_mode` I",
    },
    Key {
        name: "method",
        group: REQUEST,
        value: fill!(
            Choices(&[("GET", Method::GET), ("HEAD", Method::HEAD)]),
            RawProbe.request.method
        ),
        preset: Preset::Value("\"GET\""),
        sample: "\"HEAD\"",
        effect: "The method of the request.",
        extremes: "HEAD has no body to look at.",
        elsewhere: "httpd `hcmethod`; HAProxy `http-check send meth`",
    },
    Key {
        name: "path",
        group: REQUEST,
        value: fill!(
            Syntax {
                what: "a path such as \"/app/health\", with or without a query",
                parse: parse_target,
            },
            RawProbe.request.target
        ),
        preset: Preset::Value("\"/\""),
        sample: "\"/app/health\"",
        effect: "What is asked for: a path, with or without a query.",
        extremes: "A path that another application serves says nothing about yours. One that is costly \
                   is a load of its own.",
        elsewhere: "httpd `hcuri`; HAProxy `http-check send uri`",
    },
    Key {
        name: "host",
        group: REQUEST,
        value: fill!(
            Optional(Syntax {
                what: "a host such as \"www.example.org\"",
                parse: parse_host_field,
            }),
            RawProbe.request.host
        ),
        preset: Preset::Unset("the backend's address"),
        sample: "\"www.example.org\"",
        effect: "The request's `Host`.",
        extremes: "A container with virtual hosts answers another application for another name.",
        elsewhere: "HAProxy `http-check send hdr host`",
    },
    Key {
        name: "status",
        group: REQUEST,
        value: fill!(
            OneOrMore(Syntax {
                what: "a status or a range such as \"200-399\"",
                parse: parse_statuses,
            }),
            RawProbe.request.statuses
        ),
        preset: Preset::Value("\"200-399\""),
        sample: "[\"200\", \"401\"]",
        effect: "The statuses that are good answers.",
        extremes: "With redirects among them, an application that sends everybody to a login page is \
                   well.",
        elsewhere: "httpd `hcexpr`; HAProxy `http-check expect status`",
    },
    Key {
        name: "body",
        group: REQUEST,
        value: fill!(
            Optional(Syntax {
                what: "a text",
                parse: crate::value::text::parse_probe_body,
            }),
            RawProbe.request.body
        ),
        preset: Preset::Unset("the body is not looked at"),
        sample: "\"ready\"",
        effect: "A text that must be found in the first 64 KiB of the answer's body, byte for byte.",
        extremes: "A compressed body does not have it.",
        elsewhere: "httpd `hcexpr` with `hc('body')`; HAProxy `http-check expect string`",
    },
    Key {
        name: "interval",
        group: ALL,
        value: fill!(
            Durations(Duration::from_millis(100)..=Duration::from_secs(3600)),
            RawProbe.probe.interval
        ),
        preset: Preset::Value("\"5s\""),
        sample: "\"10s\"",
        effect: "From one probe of a backend that is up to the next, a tenth more or less. The first \
                 is made within one interval from the start.",
        extremes: "A failure is noticed after `interval` times `down`. Short intervals are a load on \
                   the backend.",
        elsewhere: "httpd `hcinterval`; HAProxy `inter`; nginx `health_check interval`",
    },
    Key {
        name: "timeout",
        group: ALL,
        value: fill!(
            Durations(Duration::from_millis(10)..=Duration::from_secs(60)),
            RawProbe.probe.timeout
        ),
        preset: Preset::Value("\"2s\""),
        sample: "\"4s\"",
        effect: "How long a probe may take, connecting included. For connecting `connect_timeout` holds, \
                 too; for CPING `ping_timeout`.",
        extremes: "Shorter than a long garbage collection, it puts out a backend that only paused.",
        elsewhere: "HAProxy `timeout check`",
    },
    Key {
        name: "up",
        group: ALL,
        value: fill!(Counts(1..=100), RawProbe.probe.up),
        preset: Preset::Value("2"),
        sample: "3",
        effect: "So many probes in a row must be answered before a backend that is out comes back.",
        extremes: "With 1, a backend that answers now and then comes and goes.",
        elsewhere: "httpd `hcpasses`; HAProxy `rise`; nginx `passes`",
    },
    Key {
        name: "down",
        group: ALL,
        value: fill!(Counts(1..=100), RawProbe.probe.down),
        preset: Preset::Value("3"),
        sample: "2",
        effect: "So many probes in a row must fail before a backend is left out. A refused connection \
                 leaves it out at once.",
        extremes: "With 1, a single lost packet leaves a backend out.",
        elsewhere: "httpd `hcfails`; HAProxy `fall`; nginx `fails`",
    },
];
