//! The keys of `[[listen]]` for the PROXY protocol.

use catamaran_proxy::config::{ListenAddress, ListenerConfig};

use super::RawListen;
use crate::fill;
use crate::key::{ALL, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::text::parse_network;
use crate::value::{OneOrMore, Switch, Syntax};

/// Reports keys that have no effect without another one.
pub(super) fn check(table: &mut Table<'_>, listener: &ListenerConfig) {
    let is_tcp = matches!(listener.address, ListenAddress::Tcp(_));
    if listener.proxy_protocol && is_tcp && listener.proxy_protocol_from.is_empty() {
        let message = "`proxy_protocol` needs `proxy_protocol_from`: nobody may send the header, so every \
                       connection would be closed";
        let hint = "write the networks of the proxies, such as [\"10.0.0.0/8\"]";
        table.push(Finding::fault(message, table.place_of("proxy_protocol")).hint(hint));
    }
    for (name, is_set) in [
        (
            "proxy_protocol_from",
            !listener.proxy_protocol_from.is_empty(),
        ),
        ("proxy_protocol_tls", listener.proxy_protocol_tls),
    ] {
        if is_set && !listener.proxy_protocol {
            let message = format!("`{name}` has no use without `proxy_protocol`");
            let finding = Finding::fault(message, table.place_of(name));
            table.push(finding.hint("write proxy_protocol = true"));
        }
    }
}

pub(super) static KEYS: &[Key<RawListen>] = &[
    Key {
        name: "proxy_protocol",
        group: ALL,
        value: fill!(Switch, RawListen.listener.proxy_protocol),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether each connection begins with a header of the PROXY protocol, version 1 or 2, by \
                 which a proxy of TCP (HAProxy `send-proxy`, a cloud's load balancer) tells who the \
                 client is. It comes before TLS. `connections_per_address` counts the address that it \
                 tells. `LOCAL` and `UNKNOWN` leave the connection's own. \
                 [proxy-protocol.md](proxy-protocol.md) explains it.",
        extremes: "A connection without it is closed (`proxy-header`), so no client can connect directly.",
        elsewhere: "nginx `listen proxy_protocol`; httpd `RemoteIPProxyProtocol`; HAProxy `accept-proxy`",
    },
    Key {
        name: "proxy_protocol_from",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an IP address or network such as \"10.0.0.0/8\"",
                parse: parse_network,
            }),
            RawListen.listener.proxy_protocol_from
        ),
        preset: Preset::Value("[]"),
        sample: "[\"10.0.0.0/8\"]",
        effect: "The proxies that may send the header; connections of others are closed \
                 (`proxy-untrusted`). A listener on a Unix socket does not need it.",
        extremes: "Every client in it can pretend to be any other client.",
        elsewhere: "nginx `set_real_ip_from`; httpd `RemoteIPProxyProtocolExceptions` comes near",
    },
    Key {
        name: "proxy_protocol_tls",
        group: ALL,
        value: fill!(Switch, RawListen.listener.proxy_protocol_tls),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether the proxies end the TLS of all their clients, and do not say so in the header (an AWS \
                 Network Load Balancer with a TLS listener; version 1). Then requests count as made over TLS: \
                 their scheme is `https`, and clients may speak HTTP/2 if `protocols` has it. A proxy that \
                 tells of TLS itself (HAProxy `send-proxy-v2-ssl`) does not need it: what it tells wins. \
                 What the proxy itself sends (`LOCAL`), such as health checks, counts as sent in clear.",
        extremes: "On, though clients reach the proxy in clear: applications set cookies that are not sent \
                   back, and `redirect_https` redirects nobody.",
        elsewhere: "nginx and httpd have none; applications are told by `X-Forwarded-Proto`",
    },
];
