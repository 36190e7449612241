//! The metrics of members that an upstream's source named.

use catamaran_discover::Refusal;

use crate::admin::exposition::{Exposition, Family, Kind};
use crate::admin::metrics::families::UPSTREAM;
use crate::control::discovered::MembersView;

/// Every family of this module, in the order of `docs/metrics.md`.
pub(super) static OF_MEMBERS: [&Family; 10] = [
    &MEMBERS,
    &AGE,
    &ANSWERS,
    &REFUSED,
    &MESSAGES,
    &REFUSED_MESSAGES,
    &WATCH_AGE,
    &OBJECTS,
    &RELISTS,
    &ERRORS,
];

static MEMBERS: Family = Family {
    name: "catamaran_members",
    kind: Kind::Gauge,
    help: "Members of an upstream that its source named, by how they stand.",
    labels: &[
        UPSTREAM,
        ("from", "the kind of its source, such as `file`"),
        (
            "state",
            "`active`; `drain`: its source says that it drains; `leaving`: its source no longer names it",
        ),
    ],
};

static AGE: Family = Family {
    name: "catamaran_members_age_seconds",
    kind: Kind::Gauge,
    help: "How long ago a source gave its last good answer. A file answers when it is changed: its age alone is \
           no trouble. There is no sample before the first good answer.",
    labels: &[UPSTREAM, ("from", "the kind of its source")],
};

static ANSWERS: Family = Family {
    name: "catamaran_members_answers_total",
    kind: Kind::Counter,
    help: "Answers of a source. After one that failed or was empty the last list stays.",
    labels: &[
        UPSTREAM,
        ("from", "the kind of its source"),
        ("result", "`good` or `failed`"),
    ],
};

static REFUSED: Family = Family {
    name: "catamaran_members_refused_total",
    kind: Kind::Counter,
    help: "What a source named and is no member, counted at each answer.",
    labels: &[
        UPSTREAM,
        ("from", "the kind of its source"),
        (
            "reason",
            "`loopback`, `link-local`, `no-host`: such an address is no host's; `own`: the front listens there; \
             `api-server`: the API server that was asked; `name-twice`, `address-twice`, `name-taken`: another \
             one has it; `members-max`: there are as many as may be",
        ),
    ],
};

static MESSAGES: Family = Family {
    name: "catamaran_mcmp_messages_total",
    kind: Kind::Counter,
    help: "Messages of mod_cluster's nodes that were understood, by their command; only those that occurred.",
    labels: &[
        UPSTREAM,
        ("command", "such as `config`, `enable-app` or `status`"),
    ],
};

static REFUSED_MESSAGES: Family = Family {
    name: "catamaran_mcmp_refused_total",
    kind: Kind::Counter,
    help: "What of nodes was refused; only what occurred.",
    labels: &[
        UPSTREAM,
        (
            "reason",
            "`peer`: not among `peers`; `garbage`: no HTTP/1.1, or too much; `syntax`: no message; `forged`: about \
             a node that another address announced; `network`: a host outside `members`; `unknown-node`: of a \
             node that has not announced itself; `too-many` nodes or contexts; `flood`: too many messages; \
             `connections-max`; `idle`",
        ),
    ],
};

static WATCH_AGE: Family = Family {
    name: "catamaran_kubernetes_watch_age_seconds",
    kind: Kind::Gauge,
    help: "How long ago the API server of Kubernetes last told which pods there are: by a list, or by a watch that it \
           accepted or a line of it. A watch without news lasts 240 s, so more than 300 s is trouble. There is no \
           sample before the first list.",
    labels: &[UPSTREAM],
};

static OBJECTS: Family = Family {
    name: "catamaran_kubernetes_objects",
    kind: Kind::Gauge,
    help: "EndpointSlices of an upstream's Service in Kubernetes.",
    labels: &[UPSTREAM],
};

static RELISTS: Family = Family {
    name: "catamaran_kubernetes_relists_total",
    kind: Kind::Counter,
    help: "How often all EndpointSlices were listed again, because a watch could not go on.",
    labels: &[UPSTREAM],
};

static ERRORS: Family = Family {
    name: "catamaran_kubernetes_errors_total",
    kind: Kind::Counter,
    help: "How often the API server of Kubernetes was asked in vain, or its answer made no members.",
    labels: &[
        UPSTREAM,
        (
            "reason",
            "`file`: token or authorities cannot be read; `connect`: no connection, or no trust; `cut`: it broke off \
             or was silent; `unauthorized` (401); `forbidden` (403); `expired` (410), after which all is listed \
             again; `status`: another one; `too-large`, `malformed`: an answer or a line; `unclear`: the Service \
             lacks the port, or its protocol",
        ),
    ],
};

/// Writes the samples of all upstreams whose members are discovered.
pub(super) fn render(page: &mut Exposition, views: &[MembersView]) {
    let mut members = page.family(&MEMBERS);
    for view in views {
        for (state, count) in [
            ("active", view.active),
            ("drain", view.draining),
            ("leaving", view.leaving),
        ] {
            members.sample(&[&view.upstream, view.source, state], count);
        }
    }
    let mut age = page.family(&AGE);
    for view in views {
        if let Some(since) = view.age {
            age.sample(&[&view.upstream, view.source], since.as_secs());
        }
    }
    let mut answers = page.family(&ANSWERS);
    for view in views {
        for (result, count) in [("good", view.counts.good), ("failed", view.counts.failed)] {
            answers.sample(&[&view.upstream, view.source, result], count);
        }
    }
    let mut messages = page.family(&MESSAGES);
    for view in views {
        for (command, count) in &view.counts.messages {
            messages.sample(&[&view.upstream, command], count);
        }
    }
    let mut refused_messages = page.family(&REFUSED_MESSAGES);
    for view in views {
        for (reason, count) in &view.counts.refused_messages {
            refused_messages.sample(&[&view.upstream, reason], count);
        }
    }
    let mut refused = page.family(&REFUSED);
    for view in views {
        for (refusal, count) in Refusal::ALL.iter().zip(view.counts.refused) {
            refused.sample(&[&view.upstream, view.source, refusal.token()], count);
        }
    }
    render_kubernetes(page, views);
}

/// Writes the samples of upstreams whose members are pods.
fn render_kubernetes(page: &mut Exposition, views: &[MembersView]) {
    let watches = || {
        views
            .iter()
            .filter_map(|view| Some((&view.upstream, view.watch.as_ref()?)))
    };
    let mut ages = page.family(&WATCH_AGE);
    for (upstream, watch) in watches() {
        if let Some(age) = watch.age() {
            ages.sample(&[upstream], age.as_secs());
        }
    }
    let mut objects = page.family(&OBJECTS);
    for (upstream, watch) in watches() {
        objects.sample(&[upstream], watch.objects());
    }
    let mut relists = page.family(&RELISTS);
    for (upstream, watch) in watches() {
        relists.sample(&[upstream], watch.relists());
    }
    let mut errors = page.family(&ERRORS);
    for (upstream, watch) in watches() {
        for (reason, count) in watch.errors() {
            errors.sample(&[upstream, reason], count);
        }
    }
}
