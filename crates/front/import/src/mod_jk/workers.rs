//! `workers.properties`: converts workers into upstreams.

use std::collections::{BTreeMap, BTreeSet};

use crate::files::{Files, Text};
use crate::ledger::{Id, Ledger, Place};
use crate::plan::{Backend, Keys, Upstream};
use crate::read::properties;
use crate::toml_text::{quoted, quoted_list};

/// The properties of all workers of mod_jk.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    /// Values by the whole name of a property; of several lines with one name, the last.
    properties: BTreeMap<String, (String, Id)>,
    /// The workers in `worker.list`, which may be mounted.
    list: Vec<String>,
    /// For each worker in `list`, the line of `worker.list` that names it.
    listed: Vec<Id>,
    /// Mounts that workers declare by `mount`: pattern, worker, and line.
    pub(crate) mounts: Vec<(String, String, Id)>,
    /// Prefixes `worker.NAME` of workers that were converted, or are known to be needless.
    used: BTreeSet<String>,
}

/// The kind of a worker, by its property `type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ajp,
    Balancer,
    Status,
    /// A type that the importer does not convert.
    Other(String),
    /// A worker that `worker.list` does not name, so that mod_jk sends it no requests.
    Unlisted,
}

impl Workers {
    /// Adds the properties of a file.
    pub(crate) fn add(&mut self, text: &Text, ledger: &mut Ledger, files: &dyn Files) {
        for property in properties::parse(&text.text) {
            let place = Place {
                file: std::sync::Arc::clone(&text.name),
                line: property.line,
            };
            let short = property.name.rsplit('.').next().unwrap_or_default();
            let id = ledger.enter("mod_jk", short, &place);
            self.set(&property.name, &property.value, id, ledger, files);
        }
    }

    /// Sets a property, with variables filled in.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &str,
        id: Id,
        ledger: &mut Ledger,
        files: &dyn Files,
    ) {
        let value = self.filled(value, files);
        if value.contains("$(") {
            ledger.risk(id, format!("`{value}` has a variable that is not set"));
        }
        let items = || value.split([',', ' ', '\t']).filter(|it| !it.is_empty());
        if name == "worker.list" {
            self.list.extend(items().map(str::to_owned));
            self.listed.resize(self.list.len(), id);
            return ledger.mapped(id);
        }
        let parts = name
            .strip_prefix("worker.")
            .and_then(|rest| rest.rsplit_once('.'));
        let Some((worker, key)) = parts else {
            let reason = match name {
                "worker.maintain" => "the front checks connections each second",
                _ => "it is a variable, or sets nothing for a worker",
            };
            ledger.dropped(id, reason);
            self.properties.insert(name.to_owned(), (value, id));
            return;
        };
        if key == "mount" {
            for pattern in items() {
                self.mounts
                    .push((pattern.to_owned(), worker.to_owned(), id));
            }
            return;
        }
        let members = matches!(key, "balance_workers" | "balanced_workers");
        let name = if members {
            format!("worker.{worker}.balance_workers")
        } else {
            name.to_owned()
        };
        let value = match self.properties.get(&name) {
            Some((known, before)) if members => {
                ledger.mapped(*before);
                format!("{known},{value}")
            }
            Some((_, before)) => {
                ledger.dropped(*before, "it is set again further down");
                value
            }
            None => value,
        };
        self.properties.insert(name, (value, id));
    }

    /// A value with its variables `$(name)` filled in, from properties and the environment.
    fn filled(&self, value: &str, files: &dyn Files) -> String {
        let mut text = value.to_owned();
        for _ in 0..VARIABLES_MAX {
            let Some(start) = text.find("$(") else { break };
            let Some(length) = text[start..].find(')') else {
                break;
            };
            let name = &text[start + 2..start + length];
            let known = self.properties.get(name).map(|it| it.0.clone());
            let Some(known) = known.or_else(|| files.variable(name)) else {
                break;
            };
            if text.len() + known.len() > VALUE_MAX {
                break;
            }
            text.replace_range(start..=start + length, &known);
        }
        text
    }

    /// A property of a worker: its own, or that of a worker it refers to (`reference`).
    fn property(&self, worker: &str, key: &str) -> Option<&(String, Id)> {
        let mut prefix = format!("worker.{worker}");
        for _ in 0..REFERENCES_MAX {
            if let Some(found) = self.properties.get(&format!("{prefix}.{key}")) {
                return Some(found);
            }
            let (reference, _) = self.properties.get(&format!("{prefix}.reference"))?;
            prefix.clone_from(reference);
        }
        None
    }

    /// All properties of a worker by their short names, including those of workers it refers to.
    fn of(&self, worker: &str) -> Vec<(String, String, Id)> {
        let mut found: Vec<(String, String, Id)> = Vec::new();
        let mut prefix = format!("worker.{worker}");
        for _ in 0..REFERENCES_MAX {
            let start = format!("{prefix}.");
            for (name, (value, id)) in self.properties.range(start.clone()..) {
                let Some(key) = name.strip_prefix(&start) else {
                    break;
                };
                if !found.iter().any(|it| it.0 == key) {
                    found.push((key.to_owned(), value.clone(), *id));
                }
            }
            let reference = self.properties.get(&format!("{prefix}.reference"));
            let Some((reference, _)) = reference else {
                break;
            };
            prefix.clone_from(reference);
        }
        found
    }

    /// The kind of a worker; `ajp13` if it has no `type`.
    pub(crate) fn kind(&self, worker: &str) -> Kind {
        let default = ["ajp13".to_owned()];
        let list = if self.list.is_empty() {
            &default[..]
        } else {
            &self.list
        };
        if !list.iter().any(|it| it == worker) {
            return Kind::Unlisted;
        }
        let kind = self
            .property(worker, "type")
            .map_or("ajp13", |it| it.0.as_str());
        match kind {
            "ajp13" | "ajp14" => Kind::Ajp,
            "lb" => Kind::Balancer,
            "status" => Kind::Status,
            other => Kind::Other(other.to_owned()),
        }
    }

    /// The message that `worker.list` does not name a worker, and which ones it names.
    pub(crate) fn unlisted(&self, worker: &str) -> String {
        let known = match &self.list[..] {
            [] => "no `worker.list` was read".to_owned(),
            list => format!("its list is `{}`", list.join(",")),
        };
        format!(
            "`workers.properties` has no worker `{worker}`; {known}: mod_jk serves nothing by this mount"
        )
    }

    /// Marks a worker, and those it refers to, as used.
    pub(crate) fn claim(&mut self, worker: &str, ledger: &mut Ledger) {
        let mut prefix = format!("worker.{worker}");
        for _ in 0..REFERENCES_MAX {
            if let Some((_, id)) = self.properties.get(&format!("{prefix}.type")) {
                ledger.mapped(*id);
            }
            self.used.insert(prefix.clone());
            let Some((reference, id)) = self.properties.get(&format!("{prefix}.reference")) else {
                break;
            };
            ledger.mapped(*id);
            prefix.clone_from(reference);
        }
    }

    /// The upstream that a mounted worker becomes.
    pub(crate) fn upstream(&mut self, worker: &str, ledger: &mut Ledger) -> Upstream {
        self.claim(worker, ledger);
        let mut upstream = Upstream {
            name: worker.to_owned(),
            ..Upstream::default()
        };
        match self.kind(worker) {
            Kind::Balancer => self.balancer(worker, &mut upstream, ledger),
            _ => {
                let backend = self.backend(worker, &mut upstream, ledger);
                upstream.backends.push(backend);
            }
        }
        hoist(&mut upstream);
        if !upstream.keys.contains_key("first_byte_timeout") {
            patient(&mut upstream, worker, ledger);
        }
        upstream
    }

    /// Adds the members of a balancer, and its properties, to an upstream.
    fn balancer(&mut self, worker: &str, upstream: &mut Upstream, ledger: &mut Ledger) {
        upstream.sticky = Some(Keys::from([("first".to_owned(), quoted("path"))]));
        for (key, value, id) in self.of(worker) {
            if key == "balance_workers" {
                ledger.mapped(id);
            } else {
                balancer_key(&key, &value, id, upstream, ledger);
            }
        }
        let members = self.property(worker, "balance_workers").cloned();
        let Some((members, id)) = members else {
            let text =
                format!("the balancer {worker} has no members; its requests are answered 503");
            ledger.say(crate::ledger::Weight::Risk, None, text);
            upstream.backends.push(nobody());
            return;
        };
        let mut seen = BTreeSet::new();
        for member in members.split([',', ' ', '\t']).filter(|it| !it.is_empty()) {
            if !seen.insert(member.to_owned()) {
                continue;
            }
            self.claim(member, ledger);
            if !self
                .properties
                .keys()
                .any(|it| it.starts_with(&format!("worker.{member}.")))
            {
                ledger.risk(
                    id,
                    format!("the member {member} is not defined; mod_jk asks localhost:8009"),
                );
            }
            let mut backend = self.backend(member, upstream, ledger);
            backend.keys.insert("name".to_owned(), quoted(member));
            upstream.backends.push(backend);
        }
        if upstream.backends.is_empty() {
            ledger.risk(id, format!("the balancer {worker} has no members"));
            upstream.backends.push(nobody());
        }
        same_routes(upstream, id, ledger);
    }

    /// The backend that a worker becomes.
    fn backend(&self, worker: &str, upstream: &mut Upstream, ledger: &mut Ledger) -> Backend {
        let mut backend = Backend::default();
        let (mut host, mut port) = ("localhost".to_owned(), "8009".to_owned());
        for (key, value, id) in self.of(worker) {
            match key.as_str() {
                "host" => {
                    ledger.mapped(id);
                    backend
                        .place
                        .get_or_insert_with(|| ledger.place(id).clone());
                    match value.rsplit_once(':') {
                        Some((name, digits)) if number(digits).is_some() && !name.contains(':') => {
                            (host, port) = (name.to_owned(), digits.to_owned());
                        }
                        _ => host = value,
                    }
                }
                "port" => {
                    ledger.mapped(id);
                    backend
                        .place
                        .get_or_insert_with(|| ledger.place(id).clone());
                    port = value;
                }
                _ => backend_key(&key, &value, id, &mut backend.keys, upstream, ledger),
            }
        }
        backend.url = url(&host, &port).unwrap_or_else(|| {
            let text = format!("the worker {worker} has no valid address: `{host}:{port}`");
            ledger.say(crate::ledger::Weight::Risk, backend.place.clone(), text);
            "ajp://placeholder-1.invalid:8009".to_owned()
        });
        backend
    }

    /// Drops the properties of workers to which no mount leads.
    pub(crate) fn finish(&self, ledger: &mut Ledger) {
        for (name, (_, id)) in &self.properties {
            let worker = name.rsplit_once('.').map_or("", |it| it.0);
            if worker.starts_with("worker.") && !self.used.contains(worker) {
                ledger.dropped(*id, "no request reaches this worker");
            }
        }
        for (worker, id) in self.list.iter().zip(&self.listed) {
            if !self.used.contains(&format!("worker.{worker}")) {
                let text = format!("no mount uses the worker {worker}, so no request reaches it");
                ledger.note(*id, text);
            }
        }
    }
}

/// Reports members with the same route, and removes the route of the later ones. mod_jk refuses to start with such
/// a configuration.
fn same_routes(upstream: &mut Upstream, id: Id, ledger: &mut Ledger) {
    let mut seen = BTreeSet::new();
    for backend in &mut upstream.backends {
        let route = backend
            .keys
            .get("jvm_route")
            .or_else(|| backend.keys.get("name"));
        if let Some(route) = route.cloned()
            && !seen.insert(route.clone())
        {
            ledger.risk(id, format!("two members have the route {route}"));
            backend.keys.remove("jvm_route");
        }
    }
}

/// A stopped backend, for a balancer without members: no request reaches it.
fn nobody() -> Backend {
    Backend {
        url: "ajp://placeholder-1.invalid:8009".to_owned(),
        keys: Keys::from([("activation".to_owned(), quoted("stopped"))]),
        place: None,
    }
}

/// Sets timeouts of 24 hours for a worker without `reply_timeout`, for which mod_jk waits without limit.
fn patient(upstream: &mut Upstream, worker: &str, ledger: &mut Ledger) {
    for key in ["first_byte_timeout", "idle_body_timeout"] {
        upstream
            .keys
            .entry(key.to_owned())
            .or_insert_with(|| quoted("24h"));
    }
    let text = format!(
        "without `reply_timeout` mod_jk waits for ever for {worker}: \
         lower \"24h\" once the slowest pages are known"
    );
    ledger.say(crate::ledger::Weight::Note, None, text);
}

/// Moves keys with the same value in all backends to the upstream.
pub(crate) fn hoist(upstream: &mut Upstream) {
    let Some(first) = upstream.backends.first().map(|it| it.keys.clone()) else {
        return;
    };
    for (key, value) in first {
        let shared = upstream
            .backends
            .iter()
            .all(|it| it.keys.get(&key) == Some(&value));
        if shared && !OF_ONE.contains(&key.as_str()) {
            upstream
                .backends
                .iter_mut()
                .for_each(|it| drop(it.keys.remove(&key)));
            upstream.keys.insert(key, value);
        }
    }
}

/// The AJP URL of a host and port; `None` if they are not valid.
pub(crate) fn url(host: &str, port: &str) -> Option<String> {
    let port = number(port).filter(|it| (1..=65535).contains(it))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let host = if bare.contains(':') {
        format!("[{bare}]")
    } else {
        bare.to_owned()
    };
    let text = format!("ajp://{host}:{port}");
    catamaran_config::parse_upstream_url(&text)
        .is_ok()
        .then_some(text)
}

/// A number as mod_jk reads it: digits, perhaps followed by `k` or `m`. Further characters are ignored.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    let value: u64 = digits.parse().ok()?;
    Some(match text[digits.len()..].chars().next() {
        Some('k' | 'K') => value.saturating_mul(1 << 10),
        Some('m' | 'M') => value.saturating_mul(1 << 20),
        _ => value,
    })
}

fn is_true(text: &str) -> bool {
    text.starts_with(['1', 't', 'T', 'y', 'Y']) || text.eq_ignore_ascii_case("on")
}

/// `value` times `unit` milliseconds as a duration of the file, at most a day; `None` for zero.
pub(crate) fn duration(value: u64, unit: u64) -> Option<String> {
    let milliseconds = value.saturating_mul(unit).min(86_400_000);
    match milliseconds {
        0 => None,
        it if it % 1000 == 0 => Some(quoted(&format!("{}s", it / 1000))),
        it => Some(quoted(&format!("{it}ms"))),
    }
}

/// Converts a property of a balancer.
fn balancer_key(key: &str, value: &str, id: Id, upstream: &mut Upstream, ledger: &mut Ledger) {
    let mut sticky = |key: &str, text: String| {
        if let Some(keys) = &mut upstream.sticky {
            keys.insert(key.to_owned(), text);
        }
    };
    match key {
        "sticky_session" if !is_true(value) => upstream.sticky = None,
        "sticky_session" | "type" | "reference" => {}
        "sticky_session_force" => sticky("force", is_true(value).to_string()),
        "session_cookie" => sticky("cookies", quoted(value)),
        "session_path" => sticky("parameters", quoted(value.trim_start_matches(';'))),
        "set_session_cookie" if is_true(value) => sticky("set_cookie", quoted("ROUTEID")),
        "session_cookie_path" => sticky("cookie_path", quoted(value)),
        "method" => match value.chars().next() {
            Some('B' | 'b') => {
                upstream
                    .keys
                    .insert("policy".to_owned(), quoted("least-in-flight"));
            }
            Some('T' | 't') => {
                upstream.keys.insert("policy".to_owned(), quoted("traffic"));
            }
            Some('R' | 'r') => {}
            _ => ledger.note(
                id,
                "`method` S and N count sessions; here requests count (round-robin)",
            ),
        },
        "retries" | "lb_retries" => retries(value, id, upstream, ledger),
        "recovery_options" => recovery_options(value, upstream),
        "secret" => drop(upstream.keys.insert("secret".to_owned(), value.to_owned())),
        _ => return unclaimed(key, id, ledger),
    }
    ledger.mapped(id);
}

/// Converts `retries` of a balancer.
fn retries(value: &str, id: Id, upstream: &mut Upstream, ledger: &mut Ledger) {
    match number(value) {
        Some(tries) => {
            let further = tries.saturating_sub(1).min(20).to_string();
            upstream.keys.insert("retries".to_owned(), further);
            ledger.mapped(id);
        }
        None => ledger.risk(id, format!("`{value}` is no number")),
    }
}

/// Sets `retry_sent`: which requests are repeated that a member may have received. With bit 1 none are, but with bits
/// 8 and 16 HEAD and GET are. Without bit 1 mod_jk repeats every request; the front repeats only idempotent ones.
fn recovery_options(value: &str, upstream: &mut Upstream) {
    let options = number(value).unwrap_or(0);
    if options & 1 != 0 {
        let again = if options & (8 | 16) == 8 | 16 {
            "safe"
        } else {
            "none"
        };
        upstream.keys.insert("retry_sent".to_owned(), quoted(again));
    }
}

/// Converts a property of an AJP worker.
fn backend_key(
    key: &str,
    value: &str,
    id: Id,
    keys: &mut Keys,
    upstream: &mut Upstream,
    ledger: &mut Ledger,
) {
    if time_key(key, value, keys) {
        return ledger.mapped(id);
    }
    let mut set = |key: &str, value: String| drop(keys.insert(key.to_owned(), value));
    let digits = number(value);
    match key {
        "type" | "reference" => {}
        "ping_mode" => ping_mode(value, keys, upstream),
        "busy_limit" => {
            if let Some(most @ 1..) = digits {
                set("connections_max", most.min(65535).to_string());
            }
        }
        "connection_pool_size" | "cachesize" => {
            let text = "it counts per process of httpd; `connections_max` is 200 over the whole front, Tomcat's \
                        maxThreads by default";
            ledger.note(id, text);
        }
        "max_packet_size" => {
            let size = digits.unwrap_or(8192).div_ceil(1024).clamp(8, 64);
            set("packet_size", quoted(&format!("{size}KiB")));
        }
        "secret" => set("secret", value.to_owned()),
        "lbfactor" => set("weight", digits.unwrap_or(1).clamp(1, 1000).to_string()),
        "route" | "jvm_route" => set("jvm_route", quoted(value)),
        "domain" => set("domain", quoted(value)),
        "redirect" => set("fallback", quoted(value)),
        "distance" => set("distance", digits.unwrap_or(0).min(1000).to_string()),
        "activation" => match value.chars().next().map(|it| it.to_ascii_uppercase()) {
            Some('D') => set("activation", quoted("drain")),
            Some('S') => set("activation", quoted("stopped")),
            _ => {}
        },
        "disabled" if is_true(value) => set("activation", quoted("drain")),
        "stopped" if is_true(value) => set("activation", quoted("stopped")),
        "disabled" | "stopped" => {}
        "retries" => return retries(value, id, upstream, ledger),
        "recovery_options" => recovery_options(value, upstream),
        "fail_on_status" => return fail_on_status(value, id, upstream, ledger),
        _ => return unclaimed(key, id, ledger),
    }
    ledger.mapped(id);
}

/// Converts a property that is a time; returns `false` if the property is no time.
fn time_key(key: &str, value: &str, keys: &mut Keys) -> bool {
    let seconds = matches!(
        key,
        "socket_timeout" | "connection_pool_timeout" | "cache_timeout"
    );
    let time = number(value).and_then(|it| duration(it, if seconds { 1000 } else { 1 }));
    let ours: &[&str] = match key {
        "socket_timeout" | "reply_timeout" => &["first_byte_timeout", "idle_body_timeout"],
        "socket_connect_timeout" => &["connect_timeout"],
        "connect_timeout" | "prepost_timeout" | "ping_timeout" => &["ping_timeout"],
        "connection_pool_timeout" | "cache_timeout" => &["idle_timeout"],
        "connection_acquire_timeout" => &["queue_timeout"],
        _ => return false,
    };
    let Some(time) = time else { return true };
    for ours in ours {
        // `reply_timeout` has precedence over `socket_timeout`, in whatever order they are.
        if key != "socket_timeout" || !keys.contains_key(*ours) {
            keys.insert((*ours).to_owned(), time.clone());
        }
    }
    match key {
        "connect_timeout" => drop(keys.insert("ping_fresh".to_owned(), "true".to_owned())),
        "prepost_timeout" => drop(keys.insert("ping_after_idle".to_owned(), quoted("0s"))),
        _ => {}
    }
    true
}

/// Converts `ping_mode`: when mod_jk sends CPING.
fn ping_mode(value: &str, keys: &mut Keys, upstream: &mut Upstream) {
    let has = |mode: char| {
        let mut modes = value.chars().map(|it| it.to_ascii_uppercase());
        modes.any(|it| it == 'A' || it == mode)
    };
    if has('C') {
        keys.insert("ping_fresh".to_owned(), "true".to_owned());
    }
    if has('P') {
        keys.insert("ping_after_idle".to_owned(), quoted("0s"));
    }
    if has('I') {
        upstream.probe.insert("kind".to_owned(), quoted("cping"));
    }
}

/// Converts `fail_on_status`: statuses that count as failures.
fn fail_on_status(value: &str, id: Id, upstream: &mut Upstream, ledger: &mut Ledger) {
    let items = value.split([',', ' ']).map(|it| it.trim_start_matches('-'));
    let codes: Vec<&str> = items
        .filter(|it| number(it).is_some_and(|it| (400..600).contains(&it)))
        .collect();
    if codes.contains(&"404") {
        return ledger.risk(
            id,
            "`fail_on_status` 404 would send each page that is not there to every member",
        );
    }
    if !codes.is_empty() {
        upstream
            .keys
            .insert("retry_status".to_owned(), quoted_list(codes));
    }
    ledger.mapped(id);
}

/// Reports a property that mod_jk does not know, with the name that was probably meant. Properties without a similar
/// name are left to the ledger.
fn unclaimed(key: &str, id: Id, ledger: &mut Ledger) {
    if catamaran_config::foreign_answer("mod_jk", key).is_some() {
        return;
    }
    let similar = |known: &&&str| strsim::jaro_winkler(known, key);
    let closest = KNOWN
        .iter()
        .max_by(|a, b| similar(a).total_cmp(&similar(b)));
    let nearest = closest.filter(|it| similar(it) > 0.85);
    let meant = nearest
        .map(|it| format!("; was `{it}` meant?"))
        .unwrap_or_default();
    let text = format!("mod_jk knows no `{key}`, so it did nothing{meant}");
    if meant.is_empty() {
        ledger.dropped(id, &text);
        ledger.note(id, text);
    } else {
        ledger.risk(id, text);
    }
}

const VARIABLES_MAX: usize = 100;
const VALUE_MAX: usize = 64 << 10;
const REFERENCES_MAX: usize = 20;

/// Keys that belong to a single backend, which [`hoist`] does not move.
const OF_ONE: &[&str] = &[
    "name",
    "weight",
    "jvm_route",
    "domain",
    "fallback",
    "distance",
    "activation",
    "upgrade_url",
];

const KNOWN: &[&str] = &[
    "host",
    "port",
    "type",
    "reference",
    "lbfactor",
    "route",
    "domain",
    "redirect",
    "distance",
    "activation",
    "socket_timeout",
    "socket_connect_timeout",
    "socket_keepalive",
    "ping_mode",
    "ping_timeout",
    "connect_timeout",
    "prepost_timeout",
    "reply_timeout",
    "retries",
    "recovery_options",
    "secret",
    "connection_pool_size",
    "connection_pool_minsize",
    "connection_pool_timeout",
    "max_packet_size",
    "fail_on_status",
    "balance_workers",
    "sticky_session",
    "sticky_session_force",
    "method",
    "lock",
    "recover_time",
    "session_cookie",
    "session_path",
    "max_reply_timeouts",
    "busy_limit",
];
