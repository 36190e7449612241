//! Checks whether the tables of a file fit together.
//!
//! All values are typed already at this point. A value that is wrong by itself was reported where it was read, and is
//! not reported again.

mod addresses;
mod auths;
mod caches;
mod directories;
mod issuance;
mod limits;
mod listeners;
mod redirects;
mod splits;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use bytes::Bytes;
use catamaran_proxy::config::FieldName;
use catamaran_proxy::config::{
    Address, AdminConfig, BackendConfig, ClientCertificate, DnsKind, ListenAddress, ListenerConfig,
    MemberSource, PathExpression, Placeholder, ProbeKind, Protocol, RouteConfig, RouteRules,
    RouteScheme, RouteTarget, ServerConfig, StickyConfig, Template, UserSource,
};
use http::Method;

use crate::file::backend::is_url;
use crate::file::members::Members;
use crate::file::route::Route;
use crate::file::sticky::Sticky;
use crate::file::tls::Profile;
use crate::file::upstream::Upstream;
use crate::file::{Backend, File, PlacedValue};
use crate::report::{Finding, Report};
use crate::suggest::{meant_or, nearest};
use crate::value::address::is_local;

/// Adds to the report what is wrong between tables, such as a name that no table has. With `sees_files`, the machine's
/// directories are checked as well.
pub(crate) fn check(file: &File, sees_files: bool, report: &mut Report) {
    addresses::check(file, sees_files, report);
    if sees_files {
        directories::check(file, report);
    }
    backends(file, report);
    nodes(file, report);
    targets(file, report);
    ready(file, report);
    profiles(file, report);
    warn_of_small_packets(file, report);
    warn_of_missing_certificates(file, report);
    caches::check(file, sees_files, report);
    limits::check(file, report);
    auths::check(file, report);
    listeners::check(file, report);
    issuance::check(file, sees_files, report);
    repeated_routes(file, report);
    expressions(file, report);
    warn_of_many_patterns(file, report);
    rules(file, report);
    // A fault may be the cause of what these checks would find, so they need a file without faults.
    if report.faults() == 0 {
        warn_unused_upstreams(file, report);
        warn_of_unused_kubernetes(file, report);
        splits::warn_of_shared_routes(file, report);
        listeners::check_ways_around(file, report);
        listeners::check_wider_routes(file, report);
        for upstream in &file.upstreams {
            warn_of_missing_request_probe(file, upstream, report);
        }
        redirects::check(file, report);
        auths::check_routes(file, report);
    }
}

/// Checks the backends of each upstream: their names, addresses, secrets and sessions.
fn backends(file: &File, report: &mut Report) {
    for upstream in &file.upstreams {
        let mut first_places: HashMap<&str, &Range<usize>> = HashMap::new();
        for backend in &upstream.backends {
            if let Some(first) = first_places.insert(&backend.value.name, &backend.place) {
                let spot = report.spot(first.start, backend.place.start);
                let name = &backend.value.name;
                let message = format!("the backend of {spot} is named `{name}` too");
                let hint =
                    "give one of them another `name`; for a larger share, raise its `weight`";
                report.push(Finding::fault(message, backend.place.clone()).hint(hint));
            }
            if let Some(message) = unprotected(&backend.value) {
                report.push(Finding::warning(message, backend.place.clone()));
            }
        }
        same_url(upstream, report);
        sessions(upstream, report);
        stopped(upstream, report);
        warn_of_dropped_fields(upstream, &file.server, report);
    }
}

/// Faults `[mcmp]` if more than one upstream has its nodes as members, and warns if none has.
fn nodes(file: &File, report: &mut Report) {
    let Some(mcmp) = &file.mcmp else { return };
    if let Some(source) = &mcmp.value {
        check_own_address(file, source.listen, report);
    }
    let members = file
        .upstreams
        .iter()
        .filter_map(|upstream| upstream.members.as_ref());
    let users: Vec<&Members> = members
        .filter(|members| matches!(members.value.source, MemberSource::Mcmp(_)))
        .collect();
    // With other faults, the upstream that uses the nodes may be one that could not be read.
    if users.is_empty() && report.faults() == 0 {
        let message = "no upstream has members with from = \"mcmp\", so nobody listens at [mcmp]";
        let hint = "write from = \"mcmp\" in [upstream.NAME.members], or remove it";
        report.push(Finding::warning(message, mcmp.place.clone()).hint(hint));
    }
    if let Some(second) = users.get(1) {
        let message = "another upstream has the nodes of [mcmp]";
        report.push(Finding::fault(message, second.place.clone()).hint("keep one of them"));
    }
}

/// Warns of `[kubernetes]` if no upstream has members from there.
fn warn_of_unused_kubernetes(file: &File, report: &mut Report) {
    let Some(place) = &file.kubernetes else {
        return;
    };
    let mut members = file.upstreams.iter().filter_map(|it| it.members.as_ref());
    let is_used =
        members.any(|members| matches!(members.value.source, MemberSource::Kubernetes(_)));
    if !is_used {
        let message =
            "no upstream has members with from = \"kubernetes\", so nobody asks the API server";
        let hint = "write from = \"kubernetes\" in [upstream.NAME.members], or remove it";
        report.push(Finding::warning(message, place.clone()).hint(hint));
    }
}

/// Faults a backend whose address is that of the listener for nodes: the front would take its own requests for messages
/// of nodes.
fn check_own_address(file: &File, listen: SocketAddr, report: &mut Report) {
    let is_own_host = |host: &str| match host.parse::<IpAddr>() {
        // A listener at 0.0.0.0 or [::] listens on the loopback addresses as well.
        Ok(ip) => ip == listen.ip() || (listen.ip().is_unspecified() && ip.is_loopback()),
        Err(_) => host == "localhost",
    };
    for backend in file
        .upstreams
        .iter()
        .flat_map(|upstream| &upstream.backends)
    {
        if let Address::Tcp { host, port } = &backend.value.address
            && *port == listen.port()
            && is_own_host(host)
        {
            let message = "the front itself listens at this `url`, for nodes ([mcmp])";
            let hint = "write the address of an application server";
            report.push(Finding::fault(message, backend.place.clone()).hint(hint));
        }
    }
}

/// Reports two backends of an upstream that have one address, which are one server under two names.
fn same_url(upstream: &Upstream, report: &mut Report) {
    let mut first_by_url: HashMap<(bool, &Address), &Backend> = HashMap::new();
    for backend in &upstream.backends {
        let is_ajp = backend.value.protocol == Protocol::Ajp;
        let url = (is_ajp, &backend.value.address);
        match first_by_url.get(&url) {
            None => {
                first_by_url.insert(url, backend);
            }
            // Two backends with one name are reported already.
            Some(first) if first.value.name == backend.value.name => {}
            Some(first) => {
                let spot = report.spot(first.place.start, backend.place.start);
                let name = &first.value.name;
                let message = format!(
                    "the backend of {spot} has this `url` under the name `{name}`: its \
                     `connections_max` and its health are counted twice"
                );
                let hint = "keep one of them; for a larger share, raise its `weight`";
                report.push(Finding::warning(message, backend.place.clone()).hint(hint));
            }
        }
    }
}

/// Warns if no backend of the upstream is active, so that nobody serves it.
fn stopped(upstream: &Upstream, report: &mut Report) {
    let takes_new = |backend: &Backend| backend.value.activation.takes_new();
    let is_known = !upstream.backends.is_empty() && !upstream.finds_members;
    if is_known && !upstream.backends.iter().any(takes_new) {
        let message = format!(
            "no backend of upstream `{}` is active: new sessions are answered 503",
            upstream.name
        );
        let hint = "write activation = \"active\" for one, or a [[route]] with `status` instead";
        report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
    }
}

/// Warns if `activate --wait` cannot tell when a backend of the upstream serves again.
///
/// There is no warning if nobody can change the front at run time, nor for an upstream that has neither sessions nor a
/// secret.
fn warn_of_missing_request_probe(file: &File, upstream: &Upstream, report: &mut Report) {
    let is_container = matches!(upstream.sticky, Sticky::On(_))
        || upstream
            .backends
            .iter()
            .any(|backend| backend.value.protocol == Protocol::Ajp);
    let has_request_probe = |backend: &Backend| {
        let probe = backend.value.probe.as_ref();
        probe.is_some_and(|probe| matches!(probe.kind, ProbeKind::Request(_)))
    };
    // A rolling restart takes at least two backends.
    if !takes_commands(file)
        || !is_container
        || upstream.backends.len() < 2
        || upstream.backends.iter().all(has_request_probe)
    {
        return;
    }
    let name = &upstream.name;
    let message = format!(
        "upstream `{name}` has no probe with kind = \"request\": a restarted Tomcat accepts connections \
         before it has deployed, and answers CPING whatever its secret is, so `catamaran activate --wait` \
         cannot tell when it serves"
    );
    let hint = format!(
        "add [upstream.{name}.probe] with kind = \"request\" and the `path` of a page that begins no \
         session"
    );
    report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
}

/// Whether the admin listener lets somebody change the front at run time: over TCP this takes a token.
fn takes_commands(file: &File) -> bool {
    let Some(admin) = &file.admin else {
        return false;
    };
    let is_unix = |address: &ListenAddress| matches!(address, ListenAddress::Unix(_));
    let AdminConfig { token, auth, .. } = &admin.value;
    let has_writers = token.is_some() || auth.is_some();
    let is_reachable = has_writers || admin.value.addresses.iter().any(is_unix);
    !admin.value.read_only && is_reachable
}

/// Warns if fields from which attributes are taken can never arrive: no proxy is trusted to send them, or their names
/// have an underscore.
fn warn_of_dropped_fields(upstream: &Upstream, server: &ServerConfig, report: &mut Report) {
    let Some(first) = upstream.attributes.headers().next() else {
        return;
    };
    if server.trusted_proxies.is_empty() {
        let message = format!(
            "upstream `{}` takes attributes from fields such as `{first}`, and no proxy is trusted to send them",
            upstream.name
        );
        let hint = "name the proxies that send them in `trusted_proxies` of [server]";
        report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
    }
    let is_let_through = |field: &str| {
        let mut permitted = server.underscore_fields.iter();
        permitted.any(|name| name.eq_ignore_ascii_case(field))
    };
    let mut fields = upstream.attributes.headers().map(FieldName::as_str);
    if let Some(field) = fields.find(|field| field.contains('_') && !is_let_through(field)) {
        let message = format!("fields with an underscore such as `{field}` are dropped");
        let hint = format!("add \"{field}\" to `underscore_fields` of [server]");
        report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
    }
}

/// Checks whether sessions can stay with the backends of an upstream.
fn sessions(upstream: &Upstream, report: &mut Report) {
    routes_of_sessions(upstream, report);
    fallbacks(upstream, report);
    match &upstream.sticky {
        Sticky::Unsaid => warn_of_unsaid_sessions(upstream, report),
        // With a cookie of the front's own, ids need no route.
        Sticky::On(StickyConfig {
            set_cookie: None, ..
        }) => warn_of_names_without_sessions(upstream, report),
        Sticky::Off | Sticky::On(_) => {}
    }
}

/// Warns of an upstream with several AJP backends that says nothing about sessions.
fn warn_of_unsaid_sessions(upstream: &Upstream, report: &mut Report) {
    let speaks_ajp = |backend: &&Backend| backend.value.protocol == Protocol::Ajp;
    let ajp_in_file = upstream.backends.iter().filter(speaks_ajp).count();
    let ajp_members = upstream.members.as_ref().map_or(0, |members| members.ajp);
    if ajp_in_file + ajp_members <= 1 {
        return;
    }
    let name = &upstream.name;
    let message = format!(
        "upstream `{name}` has several AJP backends and no `sticky`: sessions break unless they \
         are replicated"
    );
    let hint = format!(
        "add [upstream.{name}.sticky] and give each backend its `jvm_route`; if there are no \
         sessions, write sticky = \"off\" in [upstream.{name}]"
    );
    report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
}

/// Warns of members whose names no application writes at the end of a session id.
fn warn_of_names_without_sessions(upstream: &Upstream, report: &mut Report) {
    // SRV records give members a host name; other records give them their IP address only.
    if let Some(members) = &upstream.members
        && let MemberSource::Dns(dns) = &members.value.source
        && dns.kind != DnsKind::Services
    {
        let message = "no session id ends in the address of a member, which is its name";
        let hint = "add `set_cookie` to [upstream.NAME.sticky], or write from = \"srv\"";
        report.push(Finding::warning(message, members.place.clone()).hint(hint));
    }
    for backend in &upstream.backends {
        // A backend without a name and a `jvm_route` has its URL as both.
        let name = &backend.value.jvm_route;
        if is_url(name) {
            let message = format!("no session id ends in `{name}`, the name of this backend");
            let hint = "set `jvm_route` to Tomcat's jvmRoute";
            report.push(Finding::warning(message, backend.place.clone()).hint(hint));
        }
    }
}

/// Faults backends of one upstream that have the same `jvm_route`.
fn routes_of_sessions(upstream: &Upstream, report: &mut Report) {
    let mut first_by_route: HashMap<&str, &Backend> = HashMap::new();
    for backend in &upstream.backends {
        let route = &backend.value.jvm_route;
        match first_by_route.get(&route[..]) {
            None => {
                first_by_route.insert(route, backend);
            }
            // Two backends with one name are reported already.
            Some(first) if first.value.name == backend.value.name => {}
            Some(first) => {
                let spot = report.spot(first.place.start, backend.place.start);
                let message = format!("the backend of {spot} has the jvmRoute `{route}` too");
                let hint = "give each its own `jvm_route`, as in its server.xml";
                report.push(Finding::fault(message, backend.place.clone()).hint(hint));
            }
        }
    }
}

/// Faults a `fallback` that is not the `jvm_route` of another backend.
fn fallbacks(upstream: &Upstream, report: &mut Report) {
    let backends = upstream.backends.iter();
    let routes: Vec<&str> = backends
        .map(|backend| &backend.value.jvm_route[..])
        .collect();
    for backend in &upstream.backends {
        let Some(fallback) = &backend.value.fallback else {
            continue;
        };
        if *fallback == backend.value.jvm_route {
            let message = format!("`fallback` names this backend itself, `{fallback}`");
            let hint = "name another, or remove it";
            report.push(Finding::fault(message, backend.place.clone()).hint(hint));
        } else if !routes.contains(&fallback.as_str()) {
            let message = format!("`fallback` is `{fallback}`, and no backend has that jvmRoute");
            let hint = meant_or(nearest(fallback, routes.iter().copied()), || {
                "write the `jvm_route` of a backend of this upstream".to_owned()
            });
            report.push(Finding::fault(message, backend.place.clone()).hint(hint));
        }
    }
}

/// The warning about an AJP backend that others might reach and that has no secret; `None` if it is not such a backend.
#[must_use]
pub fn unprotected(backend: &BackendConfig) -> Option<String> {
    let open = backend.protocol == Protocol::Ajp
        && backend.ajp.secret.is_none()
        && !is_local(&backend.address);
    open.then(|| {
        let address = &backend.address;
        format!(
            "AJP goes to {address} without a secret: everybody who reaches that port is believed whatever \
             it says of its clients; set `secret` here and in the connector"
        )
    })
}

/// The warning about an admin listener that others might reach; `None` if there is nothing to warn of. `has_secret`:
/// whether clients send a token or a password.
#[must_use]
pub fn exposed_admin(address: &ListenAddress, has_secret: bool) -> Option<String> {
    let ListenAddress::Tcp(address) = address else {
        return None;
    };
    let secret = if has_secret {
        ", and the token or password goes there in cleartext"
    } else {
        ""
    };
    (!address.ip().is_loopback()).then(|| {
        format!(
            "the admin listener is at {address}: everybody who reaches it reads every counter and the \
             names of all backends{secret}; use a loopback address, or keep others out by a firewall"
        )
    })
}

/// Faults names of upstreams, in routes, that do not exist.
fn targets(file: &File, report: &mut Report) {
    let upstreams: HashSet<&str> = upstream_names(file).collect();
    for route in &file.routes {
        for name in route.target.upstreams() {
            if upstreams.contains(name) {
                continue;
            }
            let message = format!("there is no upstream `{name}`");
            // A full report drops the finding, so the search for a similar name would be for nothing.
            let similar = if report.is_full() {
                None
            } else {
                nearest(name, upstream_names(file))
            };
            let hint = meant_or(similar, || {
                format!("add [upstream.{name}] with a [[upstream.{name}.backend]]")
            });
            report.push(Finding::fault(message, route.target_place.clone()).hint(hint));
        }
    }
}

fn upstream_names(file: &File) -> impl Iterator<Item = &str> {
    file.upstreams.iter().map(|upstream| &upstream.name[..])
}

/// Faults names in `ready` of `[admin]` for which there is no upstream.
fn ready(file: &File, report: &mut Report) {
    let Some(admin) = &file.admin else {
        return;
    };
    for name in admin.value.ready.iter().flatten() {
        if upstream_names(file).any(|upstream| upstream == name) {
            continue;
        }
        let message = format!("`ready` names the upstream `{name}`, which does not exist");
        let hint = meant_or(nearest(name, upstream_names(file)), || {
            "write the name of an [upstream.NAME]".to_owned()
        });
        report.push(Finding::fault(message, admin.ready_place.clone()).hint(hint));
    }
}

/// Faults names of TLS profiles in listeners for which there is no profile, and warns of profiles that no listener
/// uses.
fn profiles(file: &File, report: &mut Report) {
    let names = || file.tls.iter().map(|profile| profile.value.name.as_str());
    let mut in_use = HashSet::new();
    for listener in &file.listeners {
        let Some(name) = &listener.value.tls else {
            continue;
        };
        in_use.insert(name);
        if names().any(|profile| profile == name) {
            continue;
        }
        let message = format!("there is no TLS profile `{name}`");
        let hint = meant_or(nearest(name, names()), || {
            format!("add [tls.{name}] with a [[tls.{name}.certificate]]")
        });
        report.push(Finding::fault(message, listener.place.clone()).hint(hint));
    }
    // A listener with a fault may be the one that uses the profile.
    if report.faults() > 0 {
        return;
    }
    for profile in &file.tls {
        if !in_use.contains(&profile.value.name) {
            let message = format!("no listener uses TLS profile `{}`", profile.value.name);
            let hint = "write `tls` in a [[listen]], or remove it";
            report.push(Finding::warning(message, profile.place.clone()).hint(hint));
        }
    }
}

/// Warns of upstreams whose user is that of a client's certificate, if no client is asked for one.
fn warn_of_missing_certificates(file: &File, report: &mut Report) {
    let asks_certificate =
        |profile: &Profile| profile.value.settings.client_certificate != ClientCertificate::Off;
    let tells = |listener: &PlacedValue<ListenerConfig>| listener.value.proxy_protocol;
    if file.tls.iter().any(asks_certificate) || file.listeners.iter().any(tells) {
        return;
    }
    for upstream in &file.upstreams {
        if matches!(
            upstream.attributes.remote_user,
            Some(UserSource::Certificate(_))
        ) {
            let message =
                "`remote_user` is of a client's certificate, and no client is asked for one";
            let hint = "write client_certificate and client_ca in a [tls.NAME]";
            report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
        }
    }
}

/// Warns of AJP packets that may be too small for a client's certificate, if a TLS profile asks clients for one.
fn warn_of_small_packets(file: &File, report: &mut Report) {
    let asks_certificate =
        |profile: &Profile| profile.value.settings.client_certificate != ClientCertificate::Off;
    if !file.tls.iter().any(asks_certificate) {
        return;
    }
    for backend in file
        .upstreams
        .iter()
        .flat_map(|upstream| &upstream.backends)
    {
        let packet = backend.value.ajp.packet_size.bytes();
        if backend.value.protocol == Protocol::Ajp && packet < PACKET_WITH_CERTIFICATE {
            let message = "a client's certificate may not fit into a packet of this backend";
            let hint = "set packet_size = \"16KiB\" here and packetSize=\"16384\" in the connector; for longer \
                        chains more, up to \"64KiB\" and \"65536\"";
            report.push(Finding::warning(message, backend.place.clone()).hint(hint));
        }
    }
}

/// Warns of upstreams that no route leads to.
///
/// Called only for a file without faults, because a faulty route may be the one that should lead there.
fn warn_unused_upstreams(file: &File, report: &mut Report) {
    let routes = file.routes.iter();
    let of_routes = routes.flat_map(|route| route.target.upstreams());
    let targets: HashSet<&str> = of_routes.chain(auths::upstreams(file)).collect();
    for upstream in &file.upstreams {
        // The contexts of nodes become routes to this upstream.
        let gets_routes_from_nodes = upstream.members.as_ref().is_some_and(|members| {
            matches!(&members.value.source, MemberSource::Mcmp(mcmp) if !mcmp.paths.is_empty())
        });
        if !targets.contains(upstream.name.as_str()) && !gets_routes_from_nodes {
            let message = format!("no route leads to upstream `{}`", upstream.name);
            let hint = "add a [[route]] with this `upstream`, or remove it";
            report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
        }
    }
}

/// Faults a route for the same requests as an earlier one.
fn repeated_routes(file: &File, report: &mut Report) {
    let mut places = HashMap::with_capacity(file.routes.len());
    for route in file.routes.iter().filter(|route| route.matching) {
        let mut matches = route.values.iter().flat_map(matched);
        let earlier = matches.find_map(|matched| places.insert(matched, &route.place));
        // A route that repeats itself, as with one host twice, hides nothing.
        if let Some(earlier) = earlier
            && earlier != &route.place
        {
            let message = format!(
                "{} has a route for the same requests",
                report.spot(earlier.start, route.place.start)
            );
            let hint = "only the first of them would ever be used; remove one";
            report.push(Finding::fault(message, route.place.clone()).hint(hint));
        }
    }
}

/// Warns, at the last of them, of too many routes with a `pattern`.
fn warn_of_many_patterns(file: &File, report: &mut Report) {
    let mut patterns = 0;
    let mut last = None;
    for route in &file.routes {
        let with_pattern = route.values.iter().filter(|value| value.pattern.is_some());
        let count = with_pattern.count();
        if count > 0 {
            patterns += count;
            last = Some(route);
        }
    }
    if patterns > PATTERNS_MAX
        && let Some(route) = last
    {
        let message = format!(
            "there are {patterns} routes with a `pattern`, and each request is compared with all of its host"
        );
        let hint = "use `path`, `suffix` and `exclude` where they say the same";
        report.push(Finding::warning(message, route.place.clone()).hint(hint));
    }
}

/// What a route matches, in a form in which two routes for the same requests are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
struct RouteMatch<'v> {
    /// The host; empty if the route is for any host.
    host: &'v str,
    /// The index of the listener; `None` if the route is for all listeners.
    listener: Option<usize>,
    scheme: Option<RouteScheme>,
    /// The method; `None` if the route is for all methods.
    method: Option<&'v Method>,
    conditions: String,
    pattern: Option<&'v str>,
    regex: Option<&'v str>,
    path: Bytes,
    exact: bool,
    suffix: Option<Bytes>,
}

/// What a route matches: one value for each combination of its hosts, listeners and methods.
///
/// An empty list means any host, listener or method, and gives the one value for it.
fn matched(value: &RouteConfig) -> impl Iterator<Item = RouteMatch<'_>> {
    let any_host = value.hosts.is_empty().then_some("");
    let any_listener = value.listen.is_empty().then_some(None);
    let any_method = value.methods.is_empty().then_some(None);
    let shared = RouteMatch {
        host: "",
        listener: None,
        scheme: value.scheme,
        method: None,
        conditions: value.conditions.identity(),
        pattern: value.pattern.as_deref(),
        regex: value.regex.as_ref().map(PathExpression::as_str),
        // `/adm@in`, `/adm%40in` and `/adm@in/` are one prefix to the front.
        path: value.compared_path(),
        exact: value.exact,
        suffix: value.compared_suffix(),
    };
    let mut matches = Vec::new();
    for host in value.hosts.iter().map(String::as_str).chain(any_host) {
        for listener in value.listen.iter().copied().map(Some).chain(any_listener) {
            for method in value.methods.iter().map(Some).chain(any_method) {
                matches.push(RouteMatch {
                    host,
                    listener,
                    method,
                    ..shared.clone()
                });
            }
        }
    }
    matches.into_iter()
}

/// Faults a file with more expressions than the front may have to compare with a request.
fn expressions(file: &File, report: &mut Report) {
    let has_regex = |route: &&Route| route.values.iter().any(|value| value.regex.is_some());
    let most = PathExpression::COUNT_MAX;
    if let Some(route) = file.routes.iter().filter(has_regex).nth(most) {
        let message = format!("there are more than {most} routes with a `regex`");
        let hint = "use `path`, `suffix` and `exclude` where they say the same";
        report.push(Finding::fault(message, route.place.clone()).hint(hint));
    }
}

/// Faults names in `activation` for which there is no backend, and a redirect to https that would send clients of https
/// to the URL that they asked for.
fn rules(file: &File, report: &mut Report) {
    let upstreams = file.upstreams.iter();
    let by_name: HashMap<&str, &Upstream> = upstreams
        .map(|upstream| (&upstream.name[..], upstream))
        .collect();
    for route in &file.routes {
        // The values of a route differ in path and suffix only.
        let Some(value) = route.values.first() else {
            continue;
        };
        match &route.target {
            RouteTarget::Upstream(name) => {
                if let (Some(upstream), Some(rules)) = (by_name.get(name.as_str()), &value.rules) {
                    named_backends(upstream, route, rules, report);
                }
            }
            RouteTarget::Redirect(redirect) => {
                let serves_https = value.scheme != Some(RouteScheme::Http) && may_be_secure(file);
                if serves_https && is_same_url_over_https(&redirect.to) {
                    let message = "clients that came over https would be sent to where they are";
                    let place = route.target_place.clone();
                    let hint = "add scheme = \"http\"";
                    report.push(Finding::fault(message, place).hint(hint));
                }
            }
            RouteTarget::Split(_) | RouteTarget::Status(_) | RouteTarget::Files => {}
        }
    }
}

/// Whether any request may come over https: to the front itself, or to a proxy before it.
fn may_be_secure(file: &File) -> bool {
    let has_tls = |listener: &PlacedValue<ListenerConfig>| listener.value.tls.is_some();
    !file.server.trusted_proxies.is_empty() || file.listeners.iter().any(has_tls)
}

fn is_same_url_over_https(location: &Template) -> bool {
    HTTPS_OF_ALL.iter().any(|text| {
        let same_url = Template::parse(text, Placeholder::OF_REDIRECTS);
        same_url.is_ok_and(|same_url| same_url == *location)
    })
}

/// Faults names in `activation` for which the route's upstream has no backend.
fn named_backends(upstream: &Upstream, route: &Route, rules: &RouteRules, report: &mut Report) {
    let names = || {
        upstream
            .backends
            .iter()
            .map(|backend| backend.value.name.as_str())
    };
    for (name, _) in &rules.activation {
        if names().any(|backend_name| backend_name == name) {
            continue;
        }
        let message = format!("upstream `{}` has no backend `{name}`", upstream.name);
        let hint = meant_or(nearest(name, names()), || {
            "write the `name` of one of its backends".to_owned()
        });
        report.push(Finding::fault(message, route.activation_place.clone()).hint(hint));
    }
}

/// Whether two addresses are one and the same to listen on. Addresses with port 0 are not, since each gets a port of
/// its own.
#[must_use]
pub fn same_address(one: &ListenAddress, other: &ListenAddress) -> bool {
    let chosen = matches!(one, ListenAddress::Tcp(address) if address.port() == 0);
    !chosen && one == other
}

/// The AJP packet size that is enough for a head of 8 KiB and a certificate.
const PACKET_WITH_CERTIFICATE: usize = 16 * 1024;

/// The number of patterns above which comparing them with each request takes noticeable time.
const PATTERNS_MAX: usize = 1000;

/// The usual targets of redirects to https.
const HTTPS_OF_ALL: &[&str] = &[
    "https://{host}{path_query}",
    "https://{authority}{path_query}",
];
