//! The keys of a backend. An upstream may have most of them, for all its backends, and a file of members some.

use std::path::PathBuf;
use std::time::Duration;

use catamaran_proxy::config::{Activation, BackendConfig, ClientCertFields, DEPTH_MAX, Protocol};

use super::BackendDefaults;
use crate::file::backend_tls::TlsKeys;
use crate::file::members::unplaced;
use crate::fill;
use crate::key::{Group, Key, Preset};
use crate::value::address::{BackendUrl, parse_server_name, parse_upstream_url};
use crate::value::text::{file_path, parse_label, parse_secret, parse_sent_host};
use crate::value::{Choices, Counts, Durations, Optional, OrOff, Sizes, Switch, Syntax};

/// The values of a backend's keys, before they are checked against each other.
pub(crate) struct RawBackend {
    pub(crate) url: Option<BackendUrl>,
    pub(crate) upgrade_url: Option<BackendUrl>,
    pub(crate) name: Option<String>,
    pub(crate) jvm_route: Option<String>,
    pub(crate) packet_size: Option<usize>,
    pub(crate) secret: Option<String>,
    pub(crate) secret_file: Option<PathBuf>,
    pub(crate) tls: TlsKeys,
    /// The values of all other keys, and the defaults of those that are not written.
    pub(crate) config: BackendConfig,
}

impl RawBackend {
    /// The values to begin with: those that the upstream has for all its backends.
    pub(crate) fn within(shared: &BackendDefaults) -> Self {
        Self {
            url: None,
            upgrade_url: None,
            name: None,
            jvm_route: None,
            packet_size: None,
            secret: None,
            secret_file: None,
            tls: shared.tls.within(),
            config: shared.config.clone(),
        }
    }
}

impl Default for RawBackend {
    fn default() -> Self {
        Self::within(&BackendDefaults {
            config: BackendConfig::new(Protocol::Ajp, unplaced()),
            tls: TlsKeys::default(),
        })
    }
}

/// Whether an upstream may have the keys of a group, for all its backends.
pub(crate) fn is_shared(group: Group) -> bool {
    ![MEMBER, OWN].contains(&group)
}

/// Keys that a backend and a member in a file of members have, such as its address.
pub(crate) const MEMBER: Group = Group("member");

/// Further keys that only a single backend has.
const OWN: Group = Group("own");

/// Keys of backends of every protocol.
const SHARED: Group = Group("shared");

/// Keys that are only for HTTP.
pub(super) const HTTP: Group = Group("HTTP");

/// Keys that are only for `https://`.
pub(crate) const TLS: Group = Group("TLS");

/// Keys that are only for AJP.
pub(crate) const AJP: Group = Group("AJP");

pub(crate) static KEYS: &[Key<RawBackend>] = &[
    Key {
        name: "url",
        group: MEMBER,
        value: fill!(
            Optional(Syntax {
                what: "a URL: \"ajp://HOST:PORT\", \"http://HOST:PORT\", \"https://HOST:PORT\", \
               \"ajp+unix:/PATH\" or \"http+unix:/PATH\"",
                parse: parse_upstream_url,
            }),
            RawBackend.url
        ),
        preset: Preset::Required,
        sample: "\"ajp://127.0.0.1:8009\"",
        effect: "Protocol and address of the backend. A host name is resolved beside the \
                 traffic, every 3 s and after a dial that failed. While resolving fails, the last \
                 addresses stay in use. Of several addresses the next one is tried after 250 ms.",
        extremes: "AJP carries no encryption and trusts everybody who may connect: keep it on loopback, a \
                   Unix socket or a private network, and give it a `secret`.",
        elsewhere: "nginx `server`; httpd `BalancerMember`; mod_jk `type`, `host`, `port`; Tomcat \
                    `unixDomainSocketPath`",
    },
    Key {
        name: "upgrade_url",
        group: OWN,
        value: fill!(
            Optional(Syntax {
                what: "a URL: \"http://HOST:PORT\", \"https://HOST:PORT\" or \"http+unix:/PATH\"",
                parse: parse_upstream_url,
            }),
            RawBackend.upgrade_url
        ),
        preset: Preset::Unset("requests for a tunnel are answered 501"),
        sample: "\"http://127.0.0.1:8080\"",
        effect: "Where an AJP backend takes requests for a tunnel (`upgrade` of a route): the HTTP \
                 connector of the same container. AJP cannot carry them. The backend is chosen as for \
                 any request, so sessions stay.",
        extremes: "The URL of another container: it does not know the session.",
        elsewhere: "httpd: `ProxyPass ws://` beside `ProxyPass ajp://`",
    },
    Key {
        name: "name",
        group: OWN,
        value: fill!(
            Optional(Syntax {
                what: "a name such as \"a\"",
                parse: parse_label,
            }),
            RawBackend.name
        ),
        preset: Preset::Unset("the `url`"),
        sample: "\"a\"",
        effect: "The name of the backend in logs and counters. Unique within its upstream.",
        extremes: "A reload with another name keeps the backend's connections and counters; its \
                   metrics go on under the new name.",
        elsewhere: "mod_jk: the worker's name",
    },
    Key {
        name: "weight",
        group: MEMBER,
        value: fill!(Counts(1..=1000), RawBackend.config.weight),
        preset: Preset::Value("1"),
        sample: "3",
        effect: "The backend's share of the load, in proportion to the weights of the others.",
        extremes: "0 is refused: to take a backend out of use, remove it.",
        elsewhere: "nginx `weight`; httpd `loadfactor`; mod_jk `lbfactor`",
    },
    Key {
        name: "jvm_route",
        group: MEMBER,
        value: fill!(
            Optional(Syntax {
                what: "a route such as \"a\"",
                parse: parse_label,
            }),
            RawBackend.jvm_route
        ),
        preset: Preset::Unset("the `name`"),
        sample: "\"a\"",
        effect: "The route at the end of this backend's session ids: the `jvmRoute` of `<Engine>` \
                 in Tomcat's `server.xml`, `instance-id` in WildFly. Unique within its upstream; \
                 upper and lower case differ. Used with `[upstream.NAME.sticky]`.",
        extremes: "A route that the backend does not write breaks its sessions: they show as \
                   `sticky=unknown`, or `sticky=ignored` if it writes none.",
        elsewhere: "httpd `route`; mod_jk `route`; nginx `srun_id`, `route`",
    },
    Key {
        name: "domain",
        group: MEMBER,
        value: fill!(
            Optional(Syntax {
                what: "a name such as \"east\"",
                parse: parse_label,
            }),
            RawBackend.config.domain
        ),
        preset: Preset::Unset("what `jvm_route` has before its first dot, if it has one"),
        sample: "\"east\"",
        effect: "The replication group. When a backend is out, its sessions go to a backend with the \
                 same domain, which has copies of them.",
        extremes: "Backends that do not replicate to one another gain nothing from a common domain.",
        elsewhere: "mod_jk `domain`",
    },
    Key {
        name: "fallback",
        group: OWN,
        value: fill!(
            Optional(Syntax {
                what: "the `jvm_route` of another backend",
                parse: parse_label,
            }),
            RawBackend.config.fallback
        ),
        preset: Preset::Unset("none"),
        sample: "\"b\"",
        effect: "Where the sessions of this backend go first when it is out, before others of its \
                 `domain`.",
        extremes: "One fallback for many backends gets the load of all that are out.",
        elsewhere: "httpd `redirect`; mod_jk `redirect`",
    },
    Key {
        name: "distance",
        group: MEMBER,
        value: fill!(Counts(0..=1000), RawBackend.config.distance),
        preset: Preset::Value("0"),
        sample: "1",
        effect: "Strict preference: a backend gets requests only while no backend with a lower \
                 distance can serve. Sessions stay with their backend whatever its distance.",
        extremes: "A standby that gets no requests may be broken without anybody noticing: give it \
                   a probe. One that is suspect (`suspect_after`) serves only if no distance has \
                   another.",
        elsewhere: "nginx `backup`; httpd `lbset`, `status=+H`; mod_jk `distance`",
    },
    Key {
        name: "activation",
        group: OWN,
        value: fill!(
            Choices(&[
                ("active", Activation::Active),
                ("drain", Activation::Drain),
                ("stopped", Activation::Stopped),
            ]),
            RawBackend.config.activation
        ),
        preset: Preset::Value("\"active\""),
        sample: "\"drain\"",
        effect: "Which requests the backend gets: with `\"active\"` its share, with `\"drain\"` \
                 those of its own sessions only, with `\"stopped\"` none. Exchanges in flight are \
                 always finished. Over AJP, with `sticky`, the front tells Tomcat in the attribute \
                 `JK_LB_ACTIVATION`. `catamaran drain`, `stop` and `activate` change it without \
                 the file ([sessions.md](sessions.md)).",
        extremes: "Without `sticky` a backend in `\"drain\"` gets nothing, like one that is stopped.",
        elsewhere: "httpd `status=+D`, `+S`; HAProxy `drain`, `maint`; mod_jk `activation`; nginx \
                    `drain`, `down`",
    },
    Key {
        name: "connections_max",
        group: SHARED,
        value: fill!(Counts(1..=65_535), RawBackend.config.connections_max),
        preset: Preset::Value("200"),
        sample: "400",
        effect: "Open connections to this backend over all workers, idle ones included. The \
                 default is Tomcat's `maxThreads`: further requests would wait inside Tomcat, \
                 where the front does not see them.",
        extremes: "Too low and requests queue here while the backend idles. Too high and they queue \
                   in the backend, where no limit of the front holds.",
        elsewhere: "nginx `max_conns`; httpd `max`; mod_jk `connection_pool_size` (per process there)",
    },
    Key {
        name: "queue_max",
        group: SHARED,
        value: fill!(Counts(0..=1_000_000), RawBackend.config.queue_max),
        preset: Preset::Value("1000"),
        sample: "100",
        effect: "Exchanges that may wait for a connection when `connections_max` is reached; one \
                 more is answered 503.",
        extremes: "0 refuses at once. Too high and clients wait for answers they have given up on.",
        elsewhere: "nginx Plus `queue`; HAProxy `maxqueue`; Tomcat `acceptCount`",
    },
    Key {
        name: "queue_timeout",
        group: SHARED,
        value: fill!(WAIT, RawBackend.config.queue_timeout),
        preset: Preset::Value("\"5s\""),
        sample: "\"1s\"",
        effect: "How long an exchange may wait for a connection before it is answered 503.",
        extremes: "Too short turns short bursts into errors. Too long hides an overload.",
        elsewhere: "mod_jk `connection_acquire_timeout`; httpd `acquire`; HAProxy `timeout queue`",
    },
    Key {
        name: "idle_timeout",
        group: SHARED,
        value: fill!(WAIT, RawBackend.config.idle_timeout),
        preset: Preset::Value("\"15s\""),
        sample: "\"20s\"",
        effect: "How long an unused connection stays in the pool.",
        extremes: "Longer than the backend's own (Tomcat: `keepAliveTimeout`, or else \
                   `connectionTimeout`, 20 s for HTTP in its stock `server.xml`), requests meet \
                   connections that are just closing. Too short and each pause costs new \
                   connections.",
        elsewhere: "nginx `keepalive_timeout` (upstream); httpd `ttl`; mod_jk \
                    `connection_pool_timeout`",
    },
    Key {
        name: "connect_timeout",
        group: SHARED,
        value: fill!(WAIT, RawBackend.config.connect_timeout),
        preset: Preset::Value("\"1s\""),
        sample: "\"500ms\"",
        effect: "How long a new connection may take, name resolution included.",
        extremes: "Too short, a lost packet makes the dial fail (a retry of TCP takes 1 s). Too \
                   long keeps clients waiting before another backend is tried.",
        elsewhere: "nginx `proxy_connect_timeout`; httpd `connectiontimeout`; mod_jk \
                    `socket_connect_timeout`",
    },
    Key {
        name: "first_byte_timeout",
        group: SHARED,
        value: fill!(WAIT, RawBackend.config.first_byte_timeout),
        preset: Preset::Value("\"60s\""),
        sample: "\"5m\"",
        effect: "How long the backend may be silent before the first byte of its response; the \
                 transfer of a request's body does not count. After it: 504.",
        extremes: "Too short cuts slow pages off, and their work goes on in the backend. Too long \
                   lets a hung backend hold connections.",
        elsewhere: "nginx `proxy_read_timeout`; httpd `timeout`; mod_jk `reply_timeout`",
    },
    Key {
        name: "idle_body_timeout",
        group: SHARED,
        value: fill!(WAIT, RawBackend.config.idle_body_timeout),
        preset: Preset::Value("\"60s\""),
        sample: "\"10s\"",
        effect: "How long the backend may be silent within a response, or refuse to take the next \
                 bytes of a request.",
        extremes: "Too short cuts streams with long pauses, such as server-sent events. The client \
                   sees a truncated response.",
        elsewhere: "nginx `proxy_read_timeout`, `proxy_send_timeout`; mod_jk `socket_timeout`",
    },
    Key {
        name: "exchange_timeout",
        group: SHARED,
        value: fill!(OrOff(WAIT), RawBackend.config.exchange_timeout),
        preset: Preset::Value("\"off\""),
        sample: "\"10m\"",
        effect: "How long a whole exchange may take, however busy it is. Off by default, as in \
                 nginx: a large download takes as long as its client needs.",
        extremes: "Too short cuts downloads off. Off lets a slow client hold a connection for long.",
        elsewhere: "HAProxy `timeout tunnel` comes near",
    },
    Key {
        name: "eject",
        group: SHARED,
        value: fill!(Switch, RawBackend.config.eject),
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
    Key {
        name: "eject_after_5xx",
        group: SHARED,
        value: fill!(OrOff(Counts(1..=10_000)), RawBackend.config.eject_after_5xx),
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
    Key {
        name: "suspect_after",
        group: SHARED,
        value: fill!(OrOff(WAIT), RawBackend.config.suspect_after),
        preset: Preset::Value("\"2s\""),
        sample: "\"5s\"",
        effect: "A backend is suspect when no byte came on any of its connections for so long while a \
                 request awaits the first byte of its answer. Other backends are preferred until a \
                 byte comes. Over AJP it is asked CPING; without an answer it is left out, unless its \
                 requests fill `connections_max` or `unwell_max` would be exceeded. Requests that \
                 may run twice and have no byte of an answer are then tried elsewhere. Over HTTP \
                 there is no such question: a backend is never left out for its silence, requests \
                 that wait for it are not tried elsewhere and wait for up to `first_byte_timeout`, \
                 and a suspect without requests gets some again, few at first.",
        extremes: "Too short, a slow page on a quiet backend makes others preferred for a moment. Too \
                   long or off, requests wait for a hung backend until `first_byte_timeout`. For CPING \
                   to tell a busy Tomcat from a hung one, `connections_max` must not exceed its \
                   `maxThreads`.",
        elsewhere: "mod_jk `reply_timeout` with `max_reply_timeouts` comes near",
    },
    Key {
        name: "slow_start",
        group: SHARED,
        value: fill!(
            Durations(Duration::ZERO..=DAY),
            RawBackend.config.slow_start
        ),
        preset: Preset::Value("\"10s\""),
        sample: "\"60s\"",
        effect: "How long a backend that comes back gets less than its `weight`, growing from a tenth \
                 of it. Without effect when no other backend is up.",
        extremes: "`\"0s\"` gives a Tomcat that has just started its full load before its code is \
                   warm. Too long, the others carry the load for it.",
        elsewhere: "nginx `slow_start` (commercial); HAProxy `slowstart`",
    },
    Key {
        name: "tunnels_max",
        group: SHARED,
        value: fill!(Counts(0..=1_000_000), RawBackend.config.tunnels_max),
        preset: Preset::Value("1000"),
        sample: "10000",
        effect: "Tunnels to this backend that may be open, over all workers. They do not count for \
                 `connections_max`, since a container needs no thread for one that is silent. One more \
                 is answered 503 (`tunnels-max`).",
        extremes: "Each takes two descriptors of the front and one of the container, whose own limit \
                   (Tomcat: `maxConnections`, 8192) counts them all.",
        elsewhere: "nginx `max_conns` counts them as connections",
    },
    Key {
        name: "host",
        group: SHARED,
        value: fill!(
            Syntax {
                what: "\"client\", \"backend\" or a host such as \"app.internal\"",
                parse: parse_sent_host,
            },
            RawBackend.config.host
        ),
        preset: Preset::Value("\"client\""),
        sample: "\"backend\"",
        effect: "By what host the backend is called, in `Host` and over AJP as the server's name and port. \
                 `\"client\"`: as the client called this front. `\"backend\"`: by the host of the backend's \
                 `url`, over HTTP with its port unless that is 80, or 443 of `https://`. Else by this host, \
                 with a port if it has one. `X-Forwarded-Host` says in any case what the client asked for. \
                 The name in a TLS handshake is `server_name`, or the host of the `url`.",
        extremes: "An application that is called by another host writes that one into its redirects, \
                   cookies and links: give its routes a `rewrite`, if only from `/` to `/`, so that \
                   responses are turned back.",
        elsewhere: "httpd `ProxyPreserveHost` (off is `\"backend\"`); nginx `proxy_set_header Host \
                    $proxy_host`, its default",
    },
    Key {
        name: "client_cert_fields",
        group: HTTP,
        value: fill!(
            Choices(&[
                ("off", ClientCertFields::Off),
                ("rfc9440", ClientCertFields::Rfc9440),
                ("tomcat", ClientCertFields::Tomcat),
            ]),
            RawBackend.config.client_cert_fields
        ),
        preset: Preset::Value("\"off\""),
        sample: "\"tomcat\"",
        effect: "The fields by which an HTTP backend is told of the client's certificate: \
                 `\"rfc9440\"` is `Client-Cert`, with `client_certificate_chain` also \
                 `Client-Cert-Chain`; `\"tomcat\"` is what Tomcat's `SSLValve` reads, \
                 `ssl_client_escaped_cert`, `ssl_cipher` and `ssl_cipher_usekeysize`. Such fields of \
                 a client are removed whatever this says (tls.md).",
        extremes: "The backend must take requests from the front only: everybody else who reaches it can \
                   write these fields, too. A certificate takes 2 to 3 KiB of a head.",
        elsewhere: "nginx `proxy_set_header ... $ssl_client_escaped_cert`; httpd `RequestHeader set \
                    ... %{SSL_CLIENT_CERT}s`",
    },
    Key {
        name: "ca_file",
        group: TLS,
        value: fill!(
            Optional(file_path("a path such as \"/etc/ssl/backends-ca.pem\"")),
            RawBackend.tls.ca_file
        ),
        preset: Preset::Unset("the issuers that this system trusts"),
        sample: "\"/etc/ssl/backends-ca.pem\"",
        effect: "The PEM file with the certificates of the authorities that may issue the \
                 backend's certificate, or with that certificate itself. For `https://` alone, like the next five. A reload reads \
                 it anew.",
        extremes: "A certificate of another issuer is refused: 502, `tls-untrusted`. With the \
                   system's issuers anybody who gets a certificate for the name can stand in for \
                   the backend; an authority of your own is the closer rule.",
        elsewhere: "nginx `proxy_ssl_trusted_certificate`; httpd `SSLProxyCACertificateFile`; \
                    HAProxy `ca-file`",
    },
    Key {
        name: "ca_depth",
        group: TLS,
        value: fill!(Optional(Counts(0..=DEPTH_MAX)), RawBackend.tls.ca_depth),
        preset: Preset::Unset("6"),
        sample: "1",
        effect: "How many authorities may stand between the backend's certificate and one of `ca_file`. With 0 those of \
                 `ca_file` must have issued it themselves. Certificates that the backend sends needlessly count, too.",
        extremes: "A longer chain is refused: 502, `tls-untrusted`.",
        elsewhere: "nginx `proxy_ssl_verify_depth`; httpd `SSLProxyVerifyDepth`, which is one more",
    },
    Key {
        name: "server_name",
        group: TLS,
        value: fill!(
            Optional(Syntax {
                what: "a host name or an address",
                parse: parse_server_name,
            }),
            RawBackend.tls.server_name
        ),
        preset: Preset::Unset("the host of the `url`"),
        sample: "\"app.internal\"",
        effect: "The name that the backend's certificate must have, and that it is asked for (SNI). \
                 An address must stand in the certificate as an address.",
        extremes: "Another name: 502, `tls-name`.",
        elsewhere: "nginx `proxy_ssl_name`; HAProxy `sni`, `verifyhost`",
    },
    Key {
        name: "verify",
        group: TLS,
        value: fill!(
            Choices(&[("on", true), ("off", false)]),
            RawBackend.tls.verify
        ),
        preset: Preset::Value("\"on\""),
        sample: "\"off\"",
        effect: "Whether the backend's certificate is verified. Off, each start warns of it, and \
                 `catamaran_backend_tls_unverified` is 1.",
        extremes: "With `\"off\"`, TLS protects only against those who listen. Anybody who can \
                   answer in the backend's place can read and change everything.",
        elsewhere: "nginx `proxy_ssl_verify` (off there unless said); httpd `SSLProxyVerify`; HAProxy \
                    `verify`",
    },
    Key {
        name: "client_certificate",
        group: TLS,
        value: fill!(
            Optional(file_path("a path such as \"/etc/ssl/front.pem\"")),
            RawBackend.tls.client_certificate
        ),
        preset: Preset::Unset("none is shown"),
        sample: "\"/etc/ssl/front.pem\"",
        effect: "The PEM file with the certificate that the front shows to the backend, then those of \
                 its issuers. Needs `client_key`.",
        extremes: "A backend that refuses it closes the connection, in TLS 1.3 only after the \
                   request was sent: `tls-alert`.",
        elsewhere: "nginx `proxy_ssl_certificate`; httpd `SSLProxyMachineCertificateFile`; HAProxy \
                    `crt`",
    },
    Key {
        name: "client_key",
        group: TLS,
        value: fill!(
            Optional(file_path("a path such as \"/etc/ssl/front.key\"")),
            RawBackend.tls.client_key
        ),
        preset: Preset::Unset("none"),
        sample: "\"/etc/ssl/front.key\"",
        effect: "The PEM file with the key of `client_certificate`, not encrypted.",
        extremes: "Anybody who can read it can pretend to be this front: keep it from other users.",
        elsewhere: "nginx `proxy_ssl_certificate_key`",
    },
    Key {
        name: "packet_size",
        group: AJP,
        value: fill!(Optional(Sizes(8192..=65_536)), RawBackend.packet_size),
        preset: Preset::Value("\"8KiB\""),
        sample: "\"64KiB\"",
        effect: "The size of a whole AJP packet. It must equal the connector's `packetSize`, which \
                 Tomcat takes as a number of bytes: `packetSize=\"16384\"` for \"16KiB\". A request's head must fit one packet, and so must a response's.",
        extremes: "Above the connector's: it drops the connection. Below it: large responses break \
                   off. Too low for the heads of your requests: they are answered 431. Tomcat asks \
                   for an upload packet by packet, each a round trip: `\"64KiB\"` on both sides takes \
                   a third of the CPU.",
        elsewhere: "mod_jk `max_packet_size`; httpd `ProxyIOBufferSize`; Tomcat `packetSize`",
    },
    Key {
        name: "secret",
        group: AJP,
        value: fill!(
            Optional(Syntax {
                what: "a text",
                parse: parse_secret,
            }),
            RawBackend.secret
        ),
        preset: Preset::Unset("none is sent"),
        sample: "\"correct horse battery staple\"",
        effect: "The shared secret of the connector (Tomcat: `secret`, required there unless \
                 `secretRequired=\"false\"`), sent with each request. Never printed.",
        extremes: "Missing or wrong, Tomcat answers 403. Readable by everyone who can read this \
                   file: `secret_file` keeps it apart.",
        elsewhere: "httpd `secret`; mod_jk `secret`; Tomcat `secret`",
    },
    Key {
        name: "secret_file",
        group: AJP,
        value: fill!(Optional(file_path("a path")), RawBackend.secret_file),
        preset: Preset::Unset("none is read"),
        sample: "\"ajp.secret\"",
        effect: "A file that holds the secret in its first line. A relative path starts from the \
                 directory of the configuration file. Instead of `secret`.",
        extremes: "Let only the user of the front read it (mode 0400).",
        elsewhere: "",
    },
    Key {
        name: "ping_after_idle",
        group: AJP,
        value: fill!(
            OrOff(Durations(Duration::ZERO..=DAY)),
            RawBackend.config.ajp.ping_after_idle
        ),
        preset: Preset::Value("\"10s\""),
        sample: "\"off\"",
        effect: "The front sends CPING on a pooled connection that was idle for longer, before its \
                 next use, so that no request meets a backend that has gone away. A backend that \
                 serves and has never answered CPING is not asked on pooled connections, and is back \
                 as soon as it can be connected to; a warning says so.",
        extremes: "`\"0s\"` asks before every request and costs each a round trip. Off leaves stale \
                   connections to the retry, which not every request can have.",
        elsewhere: "httpd `ping`; mod_jk `ping_mode`, `connection_ping_interval`",
    },
    Key {
        name: "ping_fresh",
        group: AJP,
        value: fill!(Switch, RawBackend.config.ajp.ping_fresh),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "The front sends CPING on each new connection before its first request. Without an \
                 answer the connection counts as not established, so the front may try a request \
                 of any method elsewhere.",
        extremes: "On, each new connection costs a round trip more, and a backend whose threads are \
                   all busy takes no new connection. Off, a backend that accepts connections and does \
                   nothing is noticed by its first request.",
        elsewhere: "mod_jk `ping_mode` C, `connect_timeout`; httpd `ping`",
    },
    Key {
        name: "ping_timeout",
        group: AJP,
        value: fill!(WAIT, RawBackend.config.ajp.ping_timeout),
        preset: Preset::Value("\"1s\""),
        sample: "\"3s\"",
        effect: "How long the answer to CPING may take before the connection is given up for \
                 another.",
        extremes: "Too short throws good connections away while the backend collects garbage. Too \
                   long delays requests.",
        elsewhere: "httpd `ping`; mod_jk `ping_timeout`",
    },
    Key {
        name: "announce_chunked",
        group: AJP,
        value: fill!(Switch, RawBackend.config.ajp.announce_chunked),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Say `Transfer-Encoding: chunked` for a body of unknown length. The field is the \
                 front's own, never the client's, and no Content-Length stands beside it.",
        extremes: "Off, a form that its client sends in chunks has no parameters for an application \
                   on Tomcat, and with Undertow (WildFly, JBoss EAP) every chunked upload arrives \
                   empty. Turn it off only for a container that refuses the field.",
        elsewhere: "mod_jk and mod_proxy_ajp always say it",
    },
];

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The range of timeouts for a backend.
const WAIT: Durations = Durations(Duration::from_millis(1)..=DAY);
