//! Checks whether the tables of a file fit together.
//!
//! All values are typed already at this point. A value that is wrong by itself was reported where it was read, and is
//! not reported again.

mod addresses;
mod caches;
mod directories;
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
    Address, BackendConfig, ClientCertificate, DnsKind, ListenAddress, ListenerConfig,
    MemberSource, PathExpression, Placeholder, ProbeKind, Protocol, RouteConfig, RouteRules,
    RouteScheme, RouteTarget, ServerConfig, StickyConfig, Template,
};
use http::Method;

use crate::file::admin::Admin;
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
    caches::check(file, sees_files, report);
    limits::check(file, report);
    listeners::check(file, report);
    routes(file, report);
    rules(file, report);
    if report.faults() == 0 {
        warn_unused_upstreams(file, report);
        splits::warn_of_shared_routes(file, report);
        listeners::check_ways_around(file, report);
        listeners::check_wider_routes(file, report);
        let upstreams = file.upstreams.iter();
        upstreams.for_each(|upstream| unasked(file, upstream, report));
        redirects::check(file, report);
    }
}

/// Checks the backends of each upstream: their names, addresses, secrets and sessions.
fn backends(file: &File, report: &mut Report) {
    for upstream in &file.upstreams {
        let mut seen: HashMap<&str, &Range<usize>> = HashMap::new();
        for backend in &upstream.backends {
            if let Some(first) = seen.insert(&backend.value.name, &backend.place) {
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
        believed(upstream, &file.server, report);
    }
}

/// Faults `[mcmp]` if more than one upstream has its nodes as members, and warns if none has.
fn nodes(file: &File, report: &mut Report) {
    let Some(mcmp) = &file.mcmp else { return };
    if let Some(source) = &mcmp.value {
        loops(file, source.listen, report);
    }
    let of_nodes = |it: &&Members| matches!(it.value.source, MemberSource::Mcmp(_));
    let all = file.upstreams.iter().filter_map(|it| it.members.as_ref());
    let mut members = all.filter(of_nodes);
    match (members.next(), members.next()) {
        (None, _) if report.faults() == 0 => {
            let message =
                "no upstream has members with from = \"mcmp\", so nobody listens at [mcmp]";
            let hint = "write from = \"mcmp\" in [upstream.NAME.members], or remove it";
            report.push(Finding::warning(message, mcmp.place.clone()).hint(hint));
        }
        (Some(_), Some(second)) => {
            let message = "another upstream has the nodes of [mcmp]";
            let hint = "keep one of them";
            report.push(Finding::fault(message, second.place.clone()).hint(hint));
        }
        _ => {}
    }
}

/// Faults a backend whose address is that of the listener for nodes: the front would take its own requests for messages
/// of nodes.
fn loops(file: &File, listen: SocketAddr, report: &mut Report) {
    let is_there = |host: &str| match host.parse::<IpAddr>() {
        Ok(ip) => ip == listen.ip() || listen.ip().is_unspecified() && ip.is_loopback(),
        Err(_) => host == "localhost",
    };
    for backend in file.upstreams.iter().flat_map(|it| &it.backends) {
        if let Address::Tcp { host, port } = &backend.value.address
            && *port == listen.port()
            && is_there(host)
        {
            let message = "the front itself listens at this `url`, for nodes ([mcmp])";
            let hint = "write the address of an application server";
            report.push(Finding::fault(message, backend.place.clone()).hint(hint));
        }
    }
}

/// Reports two backends of an upstream that have one address, which are one server under two names.
fn same_url(upstream: &Upstream, report: &mut Report) {
    let mut seen: HashMap<(bool, &Address), &Backend> = HashMap::new();
    for backend in &upstream.backends {
        let is_ajp = backend.value.protocol == Protocol::Ajp;
        let url = (is_ajp, &backend.value.address);
        match seen.get(&url) {
            None => {
                seen.insert(url, backend);
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
fn unasked(file: &File, upstream: &Upstream, report: &mut Report) {
    let is_unix = |address: &ListenAddress| matches!(address, ListenAddress::Unix(_));
    let takes_changes = |admin: &Admin| {
        let admin = &admin.value;
        !admin.read_only && (admin.token.is_some() || admin.addresses.iter().any(is_unix))
    };
    let is_steered = file.admin.as_ref().is_some_and(takes_changes);
    let ajp = |backend: &Backend| backend.value.protocol == Protocol::Ajp;
    let is_container =
        upstream.backends.iter().any(ajp) || matches!(upstream.sticky, Sticky::On(_));
    let is_asked = |backend: &Backend| {
        let probe = backend.value.probe.as_ref();
        probe.is_some_and(|probe| matches!(probe.kind, ProbeKind::Request(_)))
    };
    let asked = upstream.backends.iter().all(is_asked);
    if !is_steered || upstream.backends.len() < 2 || !is_container || asked {
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

/// Warns if fields from which attributes are taken can never arrive: no proxy is trusted to send them, or their names
/// have an underscore.
fn believed(upstream: &Upstream, server: &ServerConfig, report: &mut Report) {
    let name = &upstream.name;
    let Some(first) = upstream.attributes.headers().next() else {
        return;
    };
    if server.trusted_proxies.is_empty() {
        let message = format!(
            "upstream `{name}` takes attributes from fields such as `{first}`, and no proxy is trusted to send them"
        );
        let hint = "name the proxies that send them in `trusted_proxies` of [server]";
        report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
    }
    let passes = |name: &str| {
        server
            .underscore_fields
            .iter()
            .any(|it| it.eq_ignore_ascii_case(name))
    };
    let mut fields = upstream.attributes.headers().map(FieldName::as_str);
    if let Some(field) = fields.find(|it| it.contains('_') && !passes(it)) {
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
    let in_file = upstream.backends.iter().filter(speaks_ajp).count();
    let found = upstream.members.as_ref().map_or(0, |it| it.ajp);
    if in_file + found <= 1 {
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
    let by_address = |it: &&Members| matches!(&it.value.source, MemberSource::Dns(dns) if dns.kind != DnsKind::Services);
    if let Some(members) = upstream.members.as_ref().filter(by_address) {
        let message = "no session id ends in the address of a member, which is its name";
        let hint = "add `set_cookie` to [upstream.NAME.sticky], or write from = \"srv\"";
        report.push(Finding::warning(message, members.place.clone()).hint(hint));
    }
    for backend in &upstream.backends {
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
    let mut seen: HashMap<&str, &Backend> = HashMap::new();
    for backend in &upstream.backends {
        let route = &backend.value.jvm_route;
        match seen.get(&route[..]) {
            None => {
                seen.insert(route, backend);
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
    let routes = || {
        upstream
            .backends
            .iter()
            .map(|it| it.value.jvm_route.as_str())
    };
    for backend in &upstream.backends {
        let Some(fallback) = &backend.value.fallback else {
            continue;
        };
        let (message, hint) = if *fallback == backend.value.jvm_route {
            let message = format!("`fallback` names this backend itself, `{fallback}`");
            (message, "name another, or remove it".to_owned())
        } else if routes().any(|route| route == fallback) {
            continue;
        } else {
            let hint = meant_or(nearest(fallback, routes()), || {
                "write the `jvm_route` of a backend of this upstream".to_owned()
            });
            (
                format!("`fallback` is `{fallback}`, and no backend has that jvmRoute"),
                hint,
            )
        };
        report.push(Finding::fault(message, backend.place.clone()).hint(hint));
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

/// The warning about an admin listener that others might reach; `None` if there is nothing to warn of.
#[must_use]
pub fn exposed_admin(address: &ListenAddress, has_token: bool) -> Option<String> {
    let ListenAddress::Tcp(address) = address else {
        return None;
    };
    let token = if has_token {
        ", and the token goes there in cleartext"
    } else {
        ""
    };
    (!address.ip().is_loopback()).then(|| {
        format!(
            "the admin listener is at {address}: everybody who reaches it reads every counter and the \
             names of all backends{token}; use a loopback address, or keep others out by a firewall"
        )
    })
}

/// Faults names of upstreams, in routes, that do not exist.
fn targets(file: &File, report: &mut Report) {
    let names = || file.upstreams.iter().map(|upstream| upstream.name.as_str());
    let known: HashSet<&str> = names().collect();
    let named = file.routes.iter().flat_map(|route| {
        let names = route.target.upstreams();
        names.map(move |name| (route, name))
    });
    for (route, name) in named {
        if known.contains(name) {
            continue;
        }
        let message = format!("there is no upstream `{name}`");
        let meant = if report.is_full() {
            None
        } else {
            nearest(name, names())
        };
        let hint = meant_or(meant, || {
            format!("add [upstream.{name}] with a [[upstream.{name}.backend]]")
        });
        report.push(Finding::fault(message, route.target_place.clone()).hint(hint));
    }
}

/// Faults names in `ready` of `[admin]` for which there is no upstream.
fn ready(file: &File, report: &mut Report) {
    let Some(admin) = &file.admin else {
        return;
    };
    let names = || file.upstreams.iter().map(|upstream| upstream.name.as_str());
    for name in admin.value.ready.iter().flatten() {
        if names().any(|known| known == name) {
            continue;
        }
        let message = format!("`ready` names the upstream `{name}`, which does not exist");
        let hint = meant_or(nearest(name, names()), || {
            "write the name of an [upstream.NAME]".to_owned()
        });
        report.push(Finding::fault(message, admin.ready_place.clone()).hint(hint));
    }
}

/// Faults names of TLS profiles in listeners for which there is no profile. Warns of profiles that no listener uses,
/// and of AJP packets that may be too small for a client's certificate.
fn profiles(file: &File, report: &mut Report) {
    let names = || file.tls.iter().map(|profile| profile.value.name.as_str());
    for listener in &file.listeners {
        let Some(name) = &listener.value.tls else {
            continue;
        };
        if names().any(|known| known == name) {
            continue;
        }
        let message = format!("there is no TLS profile `{name}`");
        let hint = meant_or(nearest(name, names()), || {
            format!("add [tls.{name}] with a [[tls.{name}.certificate]]")
        });
        report.push(Finding::fault(message, listener.place.clone()).hint(hint));
    }
    for profile in &file.tls {
        let used = |listener: &PlacedValue<ListenerConfig>| {
            listener.value.tls.as_ref() == Some(&profile.value.name)
        };
        if report.faults() == 0 && !file.listeners.iter().any(used) {
            let message = format!("no listener uses TLS profile `{}`", profile.value.name);
            let hint = "write `tls` in a [[listen]], or remove it";
            report.push(Finding::warning(message, profile.place.clone()).hint(hint));
        }
    }
    let asks =
        |profile: &Profile| profile.value.settings.client_certificate != ClientCertificate::Off;
    if !file.tls.iter().any(asks) {
        return;
    }
    let backends = file
        .upstreams
        .iter()
        .flat_map(|upstream| &upstream.backends);
    for backend in backends {
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
    let used: HashSet<&str> = file
        .routes
        .iter()
        .flat_map(|route| route.target.upstreams())
        .collect();
    let gets_routes_from_members = |it: &Members| matches!(&it.value.source, MemberSource::Mcmp(mcmp) if !mcmp.paths.is_empty());
    for upstream in &file.upstreams {
        let has_routes = upstream
            .members
            .as_ref()
            .is_some_and(gets_routes_from_members);
        if !used.contains(upstream.name.as_str()) && !has_routes {
            let message = format!("no route leads to upstream `{}`", upstream.name);
            let hint = "add a [[route]] with this `upstream`, or remove it";
            report.push(Finding::warning(message, upstream.place.clone()).hint(hint));
        }
    }
}

/// Faults a route for the same requests as an earlier one, and warns of too many routes with a `pattern`.
fn routes(file: &File, report: &mut Report) {
    let mut seen = HashMap::with_capacity(file.routes.len());
    for route in file.routes.iter().filter(|route| route.matching) {
        let first = route
            .values
            .iter()
            .flat_map(matched)
            .find_map(|matched| seen.insert(matched, &route.place))
            .filter(|first| *first != &route.place);
        if let Some(first) = first {
            let message = format!(
                "{} has a route for the same requests",
                report.spot(first.start, route.place.start)
            );
            let hint = "only the first of them would ever be used; remove one";
            report.push(Finding::fault(message, route.place.clone()).hint(hint));
        }
    }
    expressions(file, report);
    let values = || file.routes.iter().flat_map(|route| &route.values);
    let patterns = || values().filter(|value| value.pattern.is_some());
    if patterns().count() > PATTERNS_MAX
        && let Some(route) = file.routes.iter().rfind(|route| {
            let mut values = route.values.iter();
            values.any(|value| value.pattern.is_some())
        })
    {
        let message = format!(
            "there are {} routes with a `pattern`, and each request is compared with all of its host",
            patterns().count()
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
fn matched(value: &RouteConfig) -> impl Iterator<Item = RouteMatch<'_>> {
    let named_hosts = value.hosts.iter().map(String::as_str);
    let hosts = named_hosts.chain(value.hosts.is_empty().then_some(""));
    let any = RouteMatch {
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
    hosts.flat_map(move |host| {
        let any = any.clone();
        let named_listeners = value.listen.iter().copied().map(Some);
        let listeners = named_listeners.chain(value.listen.is_empty().then_some(None));
        listeners.flat_map(move |listener| {
            let any = any.clone();
            let named_methods = value.methods.iter().map(Some);
            let methods = named_methods.chain(value.methods.is_empty().then_some(None));
            methods.map(move |method| RouteMatch {
                host,
                listener,
                method,
                ..any.clone()
            })
        })
    })
}

/// Faults a file with more expressions than the front may have to compare with a request.
fn expressions(file: &File, report: &mut Report) {
    let has = |route: &&Route| route.values.iter().any(|value| value.regex.is_some());
    let mut beyond = file
        .routes
        .iter()
        .filter(has)
        .skip(PathExpression::COUNT_MAX);
    if let Some(route) = beyond.next() {
        let most = PathExpression::COUNT_MAX;
        let message = format!("there are more than {most} routes with a `regex`");
        let hint = "use `path`, `suffix` and `exclude` where they say the same";
        report.push(Finding::fault(message, route.place.clone()).hint(hint));
    }
}

/// Faults names in `activation` for which there is no backend, and a redirect to https that would send clients of https
/// to the URL that they asked for.
fn rules(file: &File, report: &mut Report) {
    let by_name: HashMap<&str, &Upstream> = file
        .upstreams
        .iter()
        .map(|upstream| (upstream.name.as_str(), upstream))
        .collect();
    let may_be_secure = !file.server.trusted_proxies.is_empty()
        || file.listeners.iter().any(|it| it.value.tls.is_some());
    for route in &file.routes {
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
                let to_itself = HTTPS_OF_ALL.iter().any(|text| {
                    let usual = Template::parse(text, Placeholder::OF_REDIRECTS);
                    usual.is_ok_and(|usual| usual == redirect.to)
                });
                if to_itself && may_be_secure && value.scheme != Some(RouteScheme::Http) {
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

/// Faults names in `activation` for which the route's upstream has no backend.
fn named_backends(upstream: &Upstream, route: &Route, rules: &RouteRules, report: &mut Report) {
    let names = || upstream.backends.iter().map(|it| it.value.name.as_str());
    for (name, _) in &rules.activation {
        if names().any(|known| known == name) {
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
