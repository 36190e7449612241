//! `[upstream.NAME.members]`: where an upstream finds members that are not in the file.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catamaran_proxy::config::{
    Address, DnsKind, DnsSource, FileSource, FoundMember, KubernetesSource, MemberSource,
    MemberTemplate, MemberTrust, MembersConfig, Protocol, ServicePort, Speech,
};
use toml::Spanned;
use toml::de::DeValue;

use super::backend::BackendDefaults;
use super::sticky::Sticky;
use super::upstream::Sources;
use super::{Surroundings, backend_tls, member};
use crate::fill;
use crate::key::{ALL, Group, Key, Part, Preset, Section};
use crate::load::read_members;
use crate::report::{Finding, Report};
use crate::syntax::shifted;
use crate::table::{Table, table};
use crate::value::address::{is_label, parse_dns_name, parse_socket};
use crate::value::text::file_path;
use crate::value::{Choices, Complaint, Counts, Durations, OneOrMore, Optional, Syntax, Values};

/// The table `[upstream.NAME.members]`; its place is that of `from`.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) value: Arc<MembersConfig>,
    pub(crate) place: Range<usize>,
    /// What all its members speak; `None`: the source tells that of each member.
    pub(crate) speech: Option<Speech>,
    /// How many members speak AJP: those that the file of members lists now. 2 stands for any number, if all members
    /// speak AJP.
    pub(crate) ajp: usize,
}

/// What the members' table has to know of its upstream.
pub(super) struct ForUpstream<'g> {
    pub(super) shared: &'g BackendDefaults,
    pub(super) sticky: &'g Sticky,
    pub(super) sources: Sources<'g>,
}

/// The kind of source from which members come: the value of `from`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    File,
    Dns,
    Srv,
    Mcmp,
    Kubernetes,
}

impl From {
    /// The value as it is written in the file.
    const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Dns => "dns",
            Self::Srv => "srv",
            Self::Mcmp => "mcmp",
            Self::Kubernetes => "kubernetes",
        }
    }

    /// Whether the keys of a group belong to this kind of source.
    fn has(self, group: Group) -> bool {
        match group {
            FILE => self == Self::File,
            DNS | RESOLVERS => matches!(self, Self::Dns | Self::Srv),
            SERVICE => self == Self::Kubernetes,
            PROTOCOL => matches!(self, Self::Dns | Self::Srv | Self::Kubernetes),
            PORT => matches!(self, Self::Dns | Self::Kubernetes),
            _ => true,
        }
    }

    /// Whether this kind of source cannot do without the keys of a group.
    fn needs(self, group: Group) -> bool {
        match group {
            // A port of Kubernetes may be the only one, and tell its protocol.
            PROTOCOL | PORT => self != Self::Kubernetes && self.has(group),
            FILE | DNS | SERVICE => self.has(group),
            _ => false,
        }
    }
}

/// The values of the keys of `[upstream.NAME.members]`, before they are checked against each other.
#[derive(Default)]
struct RawMembers {
    from: Option<From>,
    path: Option<PathBuf>,
    name: Option<String>,
    speech: Option<Speech>,
    port: Option<ServicePort>,
    service: Option<(String, String)>,
    resolvers: Vec<SocketAddr>,
    leave: Duration,
    members_max: usize,
}

/// Reads `[upstream.NAME.members]`.
pub(super) fn read(
    value: &Spanned<DeValue<'_>>,
    upstream: &ForUpstream<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Members> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place, entries);
    let mut written = RawMembers {
        leave: match upstream.sticky {
            Sticky::On(sticky) => sticky.session_timeout,
            Sticky::Unsaid | Sticky::Off => Duration::ZERO,
        },
        members_max: 1000,
        ..RawMembers::default()
    };
    table.read(KEYS, &mut written);
    if written.from == Some(From::Kubernetes) && !table.has("leave") {
        // Kubernetes says which pods are about to end, and gives them time for it.
        written.leave = Duration::ZERO;
    }
    let (leave, members_max) = (written.leave, written.members_max);
    if let Some(from) = written.from {
        compare(&mut table, from);
    }
    let (source, listed) = match written.from {
        Some(From::File) => file(&mut table, written.path, surroundings, report),
        Some(From::Mcmp) => (nodes(&mut table, upstream), Vec::new()),
        Some(From::Dns | From::Srv) => (in_dns(&mut table, written), Vec::new()),
        Some(From::Kubernetes) => {
            let source = in_kubernetes(&mut table, written, upstream, surroundings);
            (source, Vec::new())
        }
        None => (None, Vec::new()),
    };
    let speech = match &source {
        Some(MemberSource::Dns(dns)) => Some(dns.speech),
        Some(MemberSource::Kubernetes(service)) => service.speech,
        Some(MemberSource::File(_) | MemberSource::Mcmp(_)) | None => None,
    };
    // Members of files and nodes say themselves what they speak, which may be HTTPS.
    let may_have_tls = speech.is_none_or(|speech| speech == Speech::Https);
    let trust = if source.is_some() && may_have_tls {
        trust(&mut table, upstream, surroundings)
    } else {
        None
    };
    let place = table.place_of("from");
    table.finish(report);
    let template = MemberTemplate::new(upstream.shared.config.clone(), trust);
    let mut value = MembersConfig::new(source?, template);
    value.leave = leave;
    value.members_max = members_max;
    Some(Members {
        value: Arc::new(value),
        place,
        ajp: match speech {
            // Stands for several, since their number is not known.
            Some(Speech::Ajp) => 2,
            Some(Speech::Http | Speech::Https) => 0,
            // Nodes of MCMP are not counted: they bring their own routes.
            None => {
                let speaks_ajp = |member: &&FoundMember| member.speech == Speech::Ajp;
                listed.iter().filter(speaks_ajp).count()
            }
        },
        speech,
    })
}

/// Reports keys that the source needs and that are missing, and keys that belong to another source.
fn compare(table: &mut Table<'_>, from: From) {
    for key in KEYS {
        if from.needs(key.group) && !table.has(key.name) {
            let message = format!("from = \"{}\" needs `{}`", from.word(), key.name);
            let hint = format!("write {} = {}", key.name, key.sample);
            table.push(Finding::fault(message, table.place_of("from")).hint(hint));
        }
    }
    for (name, place) in table.written(KEYS, |group| !from.has(group)) {
        let message = format!("`{name}` has no effect with this `from`");
        table.push(Finding::fault(message, place).hint("remove it"));
    }
}

/// The source that asks DNS; `None` if a key is missing, which is reported. Called only if `from` is DNS.
fn in_dns(table: &mut Table<'_>, written: RawMembers) -> Option<MemberSource> {
    let kind = match (written.from?, written.port) {
        (From::Srv, _) => DnsKind::Services,
        (_, Some(ServicePort::Number(port))) => DnsKind::Addresses { port },
        (_, Some(ServicePort::Name(_))) => {
            let message = "`port` is a name, which only ports of Kubernetes have";
            let finding = Finding::fault(message, table.place_of("port"));
            table.push(finding.hint("write a number"));
            return None;
        }
        (_, None) => return None,
    };
    Some(MemberSource::Dns(DnsSource {
        name: written.name?,
        kind,
        speech: written.speech?,
        resolvers: written.resolvers,
    }))
}

/// The source that asks Kubernetes for the pods of a Service; `None` if a key is missing, which is reported.
fn in_kubernetes(
    table: &mut Table<'_>,
    written: RawMembers,
    upstream: &ForUpstream<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<MemberSource> {
    let api = upstream.sources.kubernetes.api.clone();
    if api.server.is_none() && surroundings.sees_files() {
        let message = "there is no API server to ask here: this is no pod";
        let hint = "in a pod it is found; elsewhere add [kubernetes] with `server`";
        table.push(Finding::warning(message, table.place_of("from")).hint(hint));
    }
    let (namespace, service) = written.service?;
    Some(MemberSource::Kubernetes(KubernetesSource {
        api,
        namespace,
        service,
        port: written.port,
        speech: written.speech,
    }))
}

/// The source of nodes that announce themselves, by the settings of `[mcmp]`.
fn nodes(table: &mut Table<'_>, upstream: &ForUpstream<'_>) -> Option<MemberSource> {
    let Some(mcmp) = upstream.sources.mcmp else {
        let message = "from = \"mcmp\" needs [mcmp], which says where nodes announce themselves";
        let hint = "add [mcmp] with `listen` and `peers`";
        table.push(Finding::fault(message, table.place_of("from")).hint(hint));
        return None;
    };
    mcmp.value.clone().map(MemberSource::Mcmp)
}

/// The source that reads a file of members, and the members that the file lists now. Faults of that file are added to
/// the report.
fn file(
    table: &mut Table<'_>,
    path: Option<PathBuf>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> (Option<MemberSource>, Vec<FoundMember>) {
    let Some(written) = path else {
        return (None, Vec::new());
    };
    let path = surroundings.base.join(written);
    let mut listed = Vec::new();
    if let Some(includes) = surroundings.includes {
        match (includes.read)(&path, member::BYTES_MAX) {
            Ok(text) => {
                let (members, own_report) = member::parse(&path, &text);
                listed = members;
                let start = report.add(&path.display().to_string(), &text);
                for finding in own_report.findings() {
                    report.push(Finding {
                        span: finding.span.clone().map(|span| shifted(span, start)),
                        ..finding.clone()
                    });
                }
            }
            Err(error) => {
                let message = format!("{} cannot be read: {error}", path.display());
                let hint = "the upstream has no members from it until it is there";
                table.push(Finding::warning(message, table.place_of("path")).hint(hint));
            }
        }
    }
    let read = read_members;
    (Some(MemberSource::File(FileSource { path, read })), listed)
}

/// The trust in members that speak HTTP over TLS, by the upstream's keys; `None` if these have a fault.
fn trust(
    table: &mut Table<'_>,
    upstream: &ForUpstream<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<MemberTrust> {
    match backend_tls::settings(&upstream.shared.tls, surroundings) {
        Ok(settings) => Some(MemberTrust::new(settings)),
        Err(error) => {
            table.push(Finding::fault(error, table.place_of("from")));
            None
        }
    }
}

impl Members {
    /// Whether some members may speak this protocol.
    pub(crate) fn may_speak(&self, protocol: Protocol) -> bool {
        self.speech.is_none_or(|speech| {
            let of_ajp = speech == Speech::Ajp;
            of_ajp == (protocol == Protocol::Ajp)
        })
    }

    /// Whether some members may speak HTTP over TLS.
    pub(crate) fn may_have_tls(&self) -> bool {
        self.speech.is_none_or(|speech| speech == Speech::Https)
    }
}

/// A placeholder for the address of each member.
pub(super) fn unplaced() -> Address {
    Address::Unix(PathBuf::new())
}

/// A port's number, or its name in Kubernetes.
struct Ports;

impl Values for Ports {
    type Read = ServicePort;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<ServicePort, Vec<Complaint>> {
        let names = Syntax {
            what: "a whole number without quotes, or the name of a port such as \"ajp\"",
            parse: parse_port_name,
        };
        if value.get_ref().as_str().is_some() {
            names.read(value).map(ServicePort::Name)
        } else {
            Counts(1..=65535).read(value).map(ServicePort::Number)
        }
    }

    fn describe(&self) -> String {
        format!("{}; or a name", Counts(1..=65535_u16).describe())
    }
}

/// Parses the name of a port, a label of at most 63 bytes.
fn parse_port_name(text: &str) -> Result<String, &'static str> {
    let wrong = "must be a number without quotes, or the name of a port such as \"ajp\"";
    is_kubernetes_name(text)
        .then(|| text.to_owned())
        .ok_or(wrong)
}

/// Parses a namespace and the name of a Service.
fn parse_service(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('/') {
        Some((namespace, name)) if is_kubernetes_name(namespace) && is_kubernetes_name(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("must be NAMESPACE/NAME, in lower case, such as \"shop/app\""),
    }
}

/// Whether a text may be a name of Kubernetes (RFC 1123, in lower case).
fn is_kubernetes_name(text: &str) -> bool {
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    is_label(text) && text.bytes().all(is_lower)
}

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME.members]",
    intro: "Where the upstream finds members besides its `[[upstream.NAME.backend]]`, which stay. The keys of \
            `[upstream.NAME]` hold for them. A member's name is its identity: for sessions, `hash`, the \
            commands and metrics. If the source fails or names nobody, the last list stays. If more than half \
            of the members are missing from one answer, they leave one by one, each confirmed by a further \
            answer. A list of Kubernetes is known to be whole, and is believed at once. [fleet.md](fleet.md) \
            explains it with examples.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

/// Keys that `from = "file"` needs.
const FILE: Group = Group("file");

/// Keys that sources in DNS need, for addresses and for services.
const DNS: Group = Group("DNS");

/// Keys that `from = "kubernetes"` needs.
const SERVICE: Group = Group("Kubernetes");

/// Keys that sources in DNS need, and that those in Kubernetes may have.
const PROTOCOL: Group = Group("protocol");

/// Keys that addresses in DNS need, and that sources in Kubernetes may have.
const PORT: Group = Group("port");

/// Keys that say which resolvers are asked; optional, for all sources in DNS.
const RESOLVERS: Group = Group("resolvers");

static KEYS: &[Key<RawMembers>] = &[
    Key {
        name: "from",
        group: ALL,
        value: fill!(
            Optional(Choices(&[
                (From::File.word(), From::File),
                (From::Dns.word(), From::Dns),
                (From::Srv.word(), From::Srv),
                (From::Mcmp.word(), From::Mcmp),
                (From::Kubernetes.word(), From::Kubernetes),
            ])),
            RawMembers.from
        ),
        preset: Preset::Required,
        sample: "\"file\"",
        effect: "Where members are found. `file`: a file that lists them, which another program may write. `dns`: the \
                 addresses of a name (A and AAAA); a member's name is `ADDRESS:PORT`. `srv`: the services of a \
                 name (SRV), such as Kubernetes and Consul have them: the first label of a target is the member's \
                 name and its `jvm_route`, its weight is the member's, and priorities in their order are \
                 distances 0, 1 and so on. The front asks again when the time to live of an answer is over, but \
                 not within 1 s and at the latest after 5 min, a tenth more or less. `mcmp`: the nodes of \
                 mod_cluster that announce themselves at `[mcmp]`. `kubernetes`: the pods of a Service; see \
                 [kubernetes.md](kubernetes.md).",
        extremes: "The first answer is waited for at a start, for 5 s. `/readyz` is 503 while there was none.",
        elsewhere: "nginx `resolve`; HAProxy `server-template`",
    },
    Key {
        name: "path",
        group: FILE,
        value: fill!(
            Optional(file_path("a path such as \"members.toml\"")),
            RawMembers.path
        ),
        preset: Preset::Unset("required with from = \"file\""),
        sample: "\"members.toml\"",
        effect: "The file that lists the members, each a `[[member]]` (see there). The front looks once a second \
                 whether it was changed. A relative path starts from the directory of the configuration.",
        extremes: "A file with faults changes nothing: the log has what `catamaran check` says of it. Replace it \
                   by a rename, so that the front never reads half of it.",
        elsewhere: "HAProxy's runtime API; confd and consul-template write such files",
    },
    Key {
        name: "name",
        group: DNS,
        value: fill!(
            Optional(Syntax {
                what: "a name in DNS such as \"app.internal\"",
                parse: parse_dns_name,
            }),
            RawMembers.name
        ),
        preset: Preset::Unset("required with from = \"dns\" and \"srv\""),
        sample: "\"app.internal\"",
        effect: "The name that is asked for; of services for example `_ajp._tcp.app.internal`. Over `https://` the \
                 certificate of each address must have this name, and that of each service its target, unless \
                 `server_name` of the upstream says otherwise.",
        extremes: "A name without a dot at its end is tried with the search domains of `resolv.conf`, too.",
        elsewhere: "nginx `server ... resolve`; HAProxy `server-template`",
    },
    Key {
        name: "service",
        group: SERVICE,
        value: fill!(
            Optional(Syntax {
                what: "a namespace and a Service such as \"shop/app\"",
                parse: parse_service,
            }),
            RawMembers.service
        ),
        preset: Preset::Unset("required with from = \"kubernetes\""),
        sample: "\"shop/app\"",
        effect: "The Service whose pods are the members, as NAMESPACE/NAME. A member's name and `jvm_route` are the \
                 pod's name. Over `https` the certificate of each must have the name `NAME.NAMESPACE.svc`, unless \
                 `server_name` of the upstream says otherwise.",
        extremes: "A Service without pods has no members: `hold` lets requests wait for the first.",
        elsewhere: "Ingress `backend.service`",
    },
    Key {
        name: "protocol",
        group: PROTOCOL,
        value: fill!(
            Optional(Choices(&[
                ("ajp", Speech::Ajp),
                ("http", Speech::Http),
                ("https", Speech::Https),
            ])),
            RawMembers.speech
        ),
        preset: Preset::Unset(
            "required with from = \"dns\" and \"srv\"; `appProtocol` of the port in Kubernetes",
        ),
        sample: "\"ajp\"",
        effect: "What the members speak. The `appProtocol` of a port may be `ajp`, `PREFIX/ajp`, `http` or `https`.",
        extremes: "A connector that speaks otherwise answers no request.",
        elsewhere: "",
    },
    Key {
        name: "port",
        group: PORT,
        value: fill!(Optional(Ports), RawMembers.port),
        preset: Preset::Unset(
            "required with from = \"dns\"; services have their own; the only one of a Service of Kubernetes",
        ),
        sample: "8009",
        effect: "The port of each address. In Kubernetes it is the name of a port of the Service, or its number at \
                 the pods.",
        extremes: "At a port where nobody listens each member is out, and requests are answered 503.",
        elsewhere: "",
    },
    Key {
        name: "resolver",
        group: RESOLVERS,
        value: fill!(
            OneOrMore(Syntax {
                what: "an address and port such as \"127.0.0.1:8600\"",
                parse: parse_socket,
            }),
            RawMembers.resolvers
        ),
        preset: Preset::Unset(
            "the servers of `/etc/resolv.conf`, which is read again at each question",
        ),
        sample: "\"127.0.0.1:8600\"",
        effect: "The DNS servers that are asked, such as the agent of Consul.",
        extremes: "A server that knows other names says that there is none, and the last list stays.",
        elsewhere: "nginx `resolver`; HAProxy `resolvers`",
    },
    Key {
        name: "leave",
        group: ALL,
        value: fill!(
            Durations(Duration::ZERO..=Duration::from_secs(7 * 24 * 3600)),
            RawMembers.leave
        ),
        preset: Preset::Unset(
            "`session_timeout` of an upstream with `sticky`, else \"0s\"; \"0s\" with from = \"kubernetes\"",
        ),
        sample: "\"10m\"",
        effect: "How long a member that is no longer named drains: it serves the sessions that it has. Then it is \
                 gone; its exchanges in flight end.",
        extremes: "Shorter than a session, sessions of a member that was only forgotten for a moment are lost.",
        elsewhere: "HAProxy `hold obsolete`",
    },
    Key {
        name: "members_max",
        group: ALL,
        value: fill!(Counts(1..=10_000), RawMembers.members_max),
        preset: Preset::Value("1000"),
        sample: "50",
        effect: "How many members there may be. Of more, those that are known stay, and others are refused.",
        extremes: "Too low, a part of the fleet gets no requests: `catamaran_members_refused_total` counts it.",
        elsewhere: "HAProxy: the number of a `server-template`",
    },
];
