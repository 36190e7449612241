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
            let short = property.name.rsplit('.').next().unwrap_or_default();
            let place = Place::new(&text.name, property.line);
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
        let filled = self.filled(value, files);
        if filled.contains("$(") {
            ledger.risk(id, format!("`{filled}` has a variable that is not set"));
        }
        if name == "worker.list" {
            self.list.extend(items(&filled).map(str::to_owned));
            self.listed.resize(self.list.len(), id);
            return ledger.mapped(id);
        }
        let worker_and_key = match name.strip_prefix("worker.") {
            Some(of_worker) => of_worker.rsplit_once('.'),
            None => None,
        };
        let Some((worker, key)) = worker_and_key else {
            let reason = match name {
                "worker.maintain" => "the front checks connections each second",
                _ => "it is a variable, or sets nothing for a worker",
            };
            ledger.dropped(id, reason);
            self.properties.insert(name.to_owned(), (filled, id));
            return;
        };
        match key {
            "mount" => {
                for pattern in items(&filled) {
                    self.mounts
                        .push((pattern.to_owned(), worker.to_owned(), id));
                }
            }
            "balance_workers" | "balanced_workers" => self.add_members(worker, filled, id, ledger),
            _ => {
                let before = self.properties.insert(name.to_owned(), (filled, id));
                if let Some((_, earlier_id)) = before {
                    ledger.dropped(earlier_id, "it is set again further down");
                }
            }
        }
    }

    /// Adds members to a balancer. Those of several lines count together.
    fn add_members(&mut self, balancer: &str, members: String, id: Id, ledger: &mut Ledger) {
        let name = format!("worker.{balancer}.balance_workers");
        let mut all_members = members;
        if let Some((earlier, earlier_id)) = self.properties.get(&name) {
            ledger.mapped(*earlier_id);
            all_members = format!("{earlier},{all_members}");
        }
        self.properties.insert(name, (all_members, id));
    }

    /// A value with its variables `$(name)` filled in, from properties and the environment.
    fn filled(&self, value: &str, files: &dyn Files) -> String {
        let mut text = value.to_owned();
        for _ in 0..VARIABLES_MAX {
            let Some(start) = text.find("$(") else { break };
            let Some(length) = text[start..].find(')') else {
                break;
            };
            let end = start + length;
            let name = &text[start + "$(".len()..end];
            let property = match self.properties.get(name) {
                Some((value, _)) => Some(value.clone()),
                None => files.variable(name),
            };
            let Some(filling) = property else { break };
            if text.len() + filling.len() > VALUE_MAX {
                break;
            }
            text.replace_range(start..=end, &filling);
        }
        text
    }

    /// The prefix `worker.NAME` of a worker, and those of the workers it refers to (`reference`), one after the other.
    fn prefixes(&self, worker: &str) -> Vec<String> {
        let mut prefixes = vec![format!("worker.{worker}")];
        let mut name = format!("worker.{worker}.reference");
        // Workers may refer to each other.
        while prefixes.len() < REFERENCES_MAX
            && let Some((reference, _)) = self.properties.get(&name)
        {
            prefixes.push(reference.clone());
            name = format!("{reference}.reference");
        }
        prefixes
    }

    /// A property of a worker: its own, or that of a worker it refers to.
    fn property(&self, worker: &str, key: &str) -> Option<&(String, Id)> {
        let prefixes = self.prefixes(worker);
        let mut names = prefixes.iter().map(|prefix| format!("{prefix}.{key}"));
        names.find_map(|name| self.properties.get(&name))
    }

    /// All properties of a worker by their short names, including those of workers it refers to.
    fn of(&self, worker: &str) -> Vec<(String, String, Id)> {
        let mut found: Vec<(String, String, Id)> = Vec::new();
        for prefix in self.prefixes(worker) {
            let start = format!("{prefix}.");
            for (name, (value, id)) in self.properties.range(start.clone()..) {
                let Some(key) = name.strip_prefix(&start) else {
                    break;
                };
                // The worker's own property replaces that of a worker it refers to.
                if !found.iter().any(|(known, ..)| known == key) {
                    found.push((key.to_owned(), value.clone(), *id));
                }
            }
        }
        found
    }

    /// The kind of a worker; `ajp13` if it has no `type`.
    pub(crate) fn kind(&self, worker: &str) -> Kind {
        // Without a list, mod_jk has one worker of this name.
        let is_listed = match &self.list[..] {
            [] => worker == "ajp13",
            list => list.iter().any(|listed| listed == worker),
        };
        if !is_listed {
            return Kind::Unlisted;
        }
        let worker_type = self.property(worker, "type");
        match worker_type.map_or("ajp13", |(value, _)| value.as_str()) {
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
        for prefix in self.prefixes(worker) {
            for key in ["type", "reference"] {
                if let Some((_, id)) = self.properties.get(&format!("{prefix}.{key}")) {
                    ledger.mapped(*id);
                }
            }
            self.used.insert(prefix);
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
        let mut added = BTreeSet::new();
        for member in items(&members) {
            if !added.insert(member) {
                continue;
            }
            self.claim(member, ledger);
            let prefix = format!("worker.{member}.");
            if !self.properties.keys().any(|it| it.starts_with(&prefix)) {
                let text =
                    format!("the member {member} is not defined; mod_jk asks localhost:8009");
                ledger.risk(id, text);
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

    /// The backend that a worker becomes. Some of its properties become keys of the upstream.
    fn backend(&self, worker: &str, upstream: &mut Upstream, ledger: &mut Ledger) -> Backend {
        let mut backend = Backend::default();
        let (mut host, mut port) = ("localhost".to_owned(), "8009".to_owned());
        // `port` comes after `host`, and replaces the port in it.
        for (key, value, id) in self.of(worker) {
            let is_address = matches!(key.as_str(), "host" | "port");
            if !is_address {
                backend_key(&key, &value, id, &mut backend.keys, upstream, ledger);
                continue;
            }
            ledger.mapped(id);
            backend
                .place
                .get_or_insert_with(|| ledger.place(id).clone());
            if key == "port" {
                port = value;
                continue;
            }
            match value.rsplit_once(':') {
                // With more than one colon, it is an address of IPv6.
                Some((name, digits)) if number(digits).is_some() && !name.contains(':') => {
                    (host, port) = (name.to_owned(), digits.to_owned());
                }
                _ => host = value,
            }
        }
        backend.url = url(&host, &port).unwrap_or_else(|| {
            let text = format!("the worker {worker} has no valid address: `{host}:{port}`");
            ledger.say(crate::ledger::Weight::Risk, backend.place.clone(), text);
            "ajp://placeholder-1.invalid:8009".to_owned()
        });
        backend
    }

    /// Drops the properties of workers to which no mount leads, and notes such workers of `worker.list`.
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
    let mut routes = BTreeSet::new();
    for backend in &mut upstream.backends {
        let keys = &mut backend.keys;
        let route = keys.get("jvm_route").or_else(|| keys.get("name"));
        if let Some(route) = route.cloned()
            && !routes.insert(route.clone())
        {
            ledger.risk(id, format!("two members have the route {route}"));
            keys.remove("jvm_route");
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
        let mut backends = upstream.backends.iter();
        let is_common = backends.all(|backend| backend.keys.get(&key) == Some(&value));
        if is_common && !OF_ONE.split(' ').any(|it| it == key) {
            for backend in &mut upstream.backends {
                backend.keys.remove(&key);
            }
            upstream.keys.insert(key, value);
        }
    }
}

/// The AJP URL of a host and port; `None` if they are not valid.
pub(crate) fn url(host: &str, port: &str) -> Option<String> {
    let port = number(port).filter(|it| (1..=65535).contains(it))?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let url = if bare.contains(':') {
        format!("ajp://[{bare}]:{port}")
    } else {
        format!("ajp://{bare}:{port}")
    };
    catamaran_config::parse_upstream_url(&url).ok()?;
    Some(url)
}

/// The items of a list in a value.
fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split([',', ' ', '\t']).filter(|it| !it.is_empty())
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

/// Converts a property of a balancer, and marks it, except one that the front has no key for.
fn balancer_key(key: &str, value: &str, id: Id, upstream: &mut Upstream, ledger: &mut Ledger) {
    // Without sticky sessions, the other properties about them do nothing.
    let mut set_sticky = |key: &str, text: String| {
        if let Some(keys) = &mut upstream.sticky {
            keys.insert(key.to_owned(), text);
        }
    };
    match key {
        "sticky_session" if !is_true(value) => upstream.sticky = None,
        "sticky_session" | "type" | "reference" => {}
        "sticky_session_force" => set_sticky("force", is_true(value).to_string()),
        "session_cookie" => set_sticky("cookies", quoted(value)),
        "session_path" => set_sticky("parameters", quoted(value.trim_start_matches(';'))),
        "set_session_cookie" if is_true(value) => set_sticky("set_cookie", quoted("ROUTEID")),
        "session_cookie_path" => set_sticky("cookie_path", quoted(value)),
        "method" => {
            let policy = match value.chars().next() {
                Some('B' | 'b') => Some("least-in-flight"),
                Some('T' | 't') => Some("traffic"),
                Some('R' | 'r') => None,
                _ => {
                    let text = "`method` S and N count sessions; here requests count (round-robin)";
                    ledger.note(id, text);
                    None
                }
            };
            if let Some(policy) = policy {
                upstream.keys.insert("policy".to_owned(), quoted(policy));
            }
        }
        "retries" | "lb_retries" => retries(value, id, upstream, ledger),
        "recovery_options" => recovery_options(value, upstream),
        "secret" => drop(upstream.keys.insert("secret".to_owned(), value.to_owned())),
        _ => return unclaimed(key, id, ledger),
    }
    ledger.mapped(id);
}

/// Converts `retries` of a balancer or of a worker, and marks it.
fn retries(value: &str, id: Id, upstream: &mut Upstream, ledger: &mut Ledger) {
    match number(value) {
        // mod_jk counts the first attempt, too; the front counts only the repeated ones, and accepts up to 20.
        Some(attempts) => {
            let repeated = attempts.saturating_sub(1).min(20).to_string();
            upstream.keys.insert("retries".to_owned(), repeated);
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
        let repeats_head_and_get = options & (8 | 16) == 8 | 16;
        let methods = if repeats_head_and_get { "safe" } else { "none" };
        let keys = &mut upstream.keys;
        keys.insert("retry_sent".to_owned(), quoted(methods));
    }
}

/// Converts a property of an AJP worker into `keys`, or into those of its upstream, and marks it.
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

/// Converts a property that is a time; returns `false` if the property is no time. Zero is no limit, and sets no key.
fn time_key(key: &str, value: &str, keys: &mut Keys) -> bool {
    const SECOND: u64 = 1_000;
    let (unit, own_keys): (u64, &[&str]) = match key {
        "socket_timeout" => (SECOND, &["first_byte_timeout", "idle_body_timeout"]),
        "reply_timeout" => (1, &["first_byte_timeout", "idle_body_timeout"]),
        "socket_connect_timeout" => (1, &["connect_timeout"]),
        "connect_timeout" | "prepost_timeout" | "ping_timeout" => (1, &["ping_timeout"]),
        "connection_pool_timeout" | "cache_timeout" => (SECOND, &["idle_timeout"]),
        "connection_acquire_timeout" => (1, &["queue_timeout"]),
        _ => return false,
    };
    let Some(time) = number(value).and_then(|count| duration(count, unit)) else {
        return true;
    };
    for &own_key in own_keys {
        // `reply_timeout` has precedence over `socket_timeout`, in whatever order they are.
        if key != "socket_timeout" || !keys.contains_key(own_key) {
            keys.insert(own_key.to_owned(), time.clone());
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
    // A minus says that the member itself does not count as failed.
    let mut codes: Vec<&str> = value
        .split([',', ' '])
        .map(|code| code.trim_start_matches('-'))
        .collect();
    codes.retain(|code| number(code).is_some_and(|status| (400..600).contains(&status)));
    if codes.contains(&"404") {
        return ledger.risk(
            id,
            "`fail_on_status` 404 would send each page that is not there to every member",
        );
    }
    if !codes.is_empty() {
        let keys = &mut upstream.keys;
        keys.insert("retry_status".to_owned(), quoted_list(codes));
    }
    ledger.mapped(id);
}

/// Reports a property that mod_jk does not know, with the name that was probably meant. Properties without a similar
/// name are left to the ledger.
fn unclaimed(key: &str, id: Id, ledger: &mut Ledger) {
    if catamaran_config::foreign_answer("mod_jk", key).is_some() {
        return;
    }
    let similarity = |known: &str| strsim::jaro_winkler(known, key);
    let closest = KNOWN
        .split(' ')
        .max_by(|one, other| similarity(one).total_cmp(&similarity(other)));
    let text = format!("mod_jk knows no `{key}`, so it did nothing");
    match closest {
        // Above this similarity, one is most likely a misspelling of the other.
        Some(known) if similarity(known) > 0.85 => {
            ledger.risk(id, format!("{text}; was `{known}` meant?"));
        }
        _ => {
            ledger.dropped(id, &text);
            ledger.note(id, text);
        }
    }
}

const VARIABLES_MAX: usize = 100;
const VALUE_MAX: usize = 64 << 10;
const REFERENCES_MAX: usize = 20;

/// Keys that belong to a single backend, which [`hoist`] does not move.
const OF_ONE: &str = "name weight jvm_route domain fallback distance activation upgrade_url";

/// The properties of workers that mod_jk knows, separated by blanks.
const KNOWN: &str = "\
    host port type reference lbfactor route domain redirect distance activation socket_timeout \
    socket_connect_timeout socket_keepalive ping_mode ping_timeout connect_timeout prepost_timeout reply_timeout \
    retries recovery_options secret connection_pool_size connection_pool_minsize connection_pool_timeout \
    max_packet_size fail_on_status balance_workers sticky_session sticky_session_force method lock recover_time \
    session_cookie session_path max_reply_timeouts busy_limit";
