//! `[upstream.NAME.members]`: where an upstream finds members that are not in the file.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catamaran_front::config::{
    Address, BackendConfig, DnsKind, DnsSource, FileSource, Found, MemberSource, MemberTemplate,
    MemberTrust, MembersConfig, Protocol, Speech,
};
use toml::Spanned;
use toml::de::DeValue;

use super::backend_tls::{self, TlsKeys};
use super::mcmp::Mcmp;
use super::sticky::Sticky;
use super::{Surroundings, member};
use crate::key::{AnyKey, Doc, Key, Preset, Section};
use crate::load::read_members;
use crate::report::{Finding, Report};
use crate::syntax::shifted;
use crate::table::{Table, table};
use crate::value::address::{UrlError, parse_dns_name, parse_socket};
use crate::value::text::{FilePath, file_path};
use crate::value::{Choices, Counts, Durations, OneOrMore, Parsed};

/// The table, placed by `from`.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) value: Arc<MembersConfig>,
    pub(crate) place: Range<usize>,
    /// What its members speak, if the table says it; a file says it of each.
    pub(crate) speech: Option<Speech>,
    /// How many members speak AJP as far as the file says now; several if the table says it.
    pub(crate) ajp: usize,
}

/// The upstream that members are for.
pub(super) struct Group<'g> {
    pub(super) shared: &'g BackendConfig,
    pub(super) tls: &'g TlsKeys,
    pub(super) sticky: &'g Sticky,
    pub(super) mcmp: Option<&'g Mcmp>,
}

/// Where members are found, as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    File,
    Dns,
    Srv,
    Mcmp,
}

/// Reads the table.
pub(super) fn read(
    value: &Spanned<DeValue<'_>>,
    group: &Group<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Members> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place, entries);
    let from = table.require(&FROM);
    let path = table.take(&PATH);
    let dns = DnsKeys {
        name: table.take(&NAME),
        port: table.take(&PORT),
        speech: table.take(&PROTOCOL),
        resolvers: table.take(&RESOLVER).unwrap_or_default(),
    };
    without_use(&mut table, from);
    let mut leave = match group.sticky {
        Sticky::On(sticky) => sticky.session_timeout,
        Sticky::Unsaid | Sticky::Off => Duration::ZERO,
    };
    table.set(&LEAVE, &mut leave);
    let mut members_max = 1000;
    table.set(&MEMBERS_MAX, &mut members_max);
    let (source, listed) = match from {
        Some(From::File) => file(&mut table, path, surroundings, report),
        Some(From::Mcmp) => (nodes(&mut table, group), Vec::new()),
        Some(from) => (dns.source(&mut table, from), Vec::new()),
        None => (None, Vec::new()),
    };
    let speech = match &source {
        Some(MemberSource::Dns(dns)) => Some(dns.speech),
        Some(MemberSource::File(_) | MemberSource::Mcmp(_)) | None => None,
    };
    let trust = match source.is_some() && speech.is_none_or(|it| it == Speech::Https) {
        true => trust(&mut table, group, surroundings),
        false => None,
    };
    let place = table.place_of(&FROM);
    table.finish(report);
    let template = MemberTemplate::new(group.shared.clone(), trust);
    let mut value = MembersConfig::new(source?, template);
    value.leave = leave;
    value.members_max = members_max;
    Some(Members {
        value: Arc::new(value),
        place,
        ajp: match speech {
            // There may be any number.
            Some(Speech::Ajp) => 2,
            Some(Speech::Http | Speech::Https) => 0,
            // Nodes bring their routes.
            None => listed.iter().filter(|it| it.speech == Speech::Ajp).count(),
        },
        speech,
    })
}

/// The keys of a source in DNS.
struct DnsKeys {
    name: Option<String>,
    port: Option<u16>,
    speech: Option<Speech>,
    resolvers: Vec<SocketAddr>,
}

impl DnsKeys {
    fn source(self, table: &mut Table<'_>, from: From) -> Option<MemberSource> {
        let word = if from == From::Srv { "srv" } else { "dns" };
        let needs = [
            (NAME.name, table.has(&NAME), "name = \"app.internal\""),
            (PROTOCOL.name, table.has(&PROTOCOL), "protocol = \"ajp\""),
            (
                PORT.name,
                table.has(&PORT) || from == From::Srv,
                "port = 8009",
            ),
        ];
        for (key, has, example) in needs {
            if !has {
                let message = format!("from = \"{word}\" needs `{key}`");
                let place = table.place_of(&FROM);
                table.push(Finding::fault(message, place).hint(format!("write {example}")));
            }
        }
        let kind = match from {
            From::Srv => DnsKind::Services,
            From::Dns | From::File | From::Mcmp => DnsKind::Addresses { port: self.port? },
        };
        Some(MemberSource::Dns(DnsSource {
            name: self.name?,
            kind,
            speech: self.speech?,
            resolvers: self.resolvers,
        }))
    }
}

/// Keys of another source have no effect.
fn without_use(table: &mut Table<'_>, from: Option<From>) {
    let Some(from) = from else { return };
    let is_file = from == From::File;
    let is_dns = matches!(from, From::Dns | From::Srv);
    for (key, has, place, fits) in [
        (PATH.name, table.has(&PATH), table.place_of(&PATH), is_file),
        (NAME.name, table.has(&NAME), table.place_of(&NAME), is_dns),
        (
            PORT.name,
            table.has(&PORT),
            table.place_of(&PORT),
            from == From::Dns,
        ),
        (
            PROTOCOL.name,
            table.has(&PROTOCOL),
            table.place_of(&PROTOCOL),
            is_dns,
        ),
        (
            RESOLVER.name,
            table.has(&RESOLVER),
            table.place_of(&RESOLVER),
            is_dns,
        ),
    ] {
        if has && !fits {
            let message = format!("`{key}` has no effect with this `from`");
            table.push(Finding::fault(message, place).hint("remove it"));
        }
    }
}

/// Nodes that announce themselves, by the rules of `[mcmp]`.
fn nodes(table: &mut Table<'_>, group: &Group<'_>) -> Option<MemberSource> {
    let Some(mcmp) = group.mcmp else {
        let message = "from = \"mcmp\" needs [mcmp], which says where nodes announce themselves";
        let hint = "add [mcmp] with `listen` and `peers`";
        table.push(Finding::fault(message, table.place_of(&FROM)).hint(hint));
        return None;
    };
    mcmp.value.clone().map(MemberSource::Mcmp)
}

/// A file, whose faults are said like those of this one, and what it lists now.
fn file(
    table: &mut Table<'_>,
    path: Option<PathBuf>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> (Option<MemberSource>, Vec<Found>) {
    if !table.has(&PATH) {
        let message = "from = \"file\" needs `path`, the file that lists the members";
        let hint = "write path = \"members.toml\"";
        table.push(Finding::fault(message, table.place_of(&FROM)).hint(hint));
    }
    let Some(path) = path else {
        return (None, Vec::new());
    };
    let path = surroundings.base.join(path);
    let mut listed = Vec::new();
    if let Some(includes) = surroundings.includes {
        match (includes.read)(&path, member::BYTES_MAX) {
            Ok(text) => {
                let name = path.display().to_string();
                let (found, own) = member::parse(&path, &text);
                listed = found;
                let start = report.add(&name, &text);
                for finding in own.findings() {
                    report.push(Finding {
                        span: finding.span.clone().map(|span| shifted(span, start)),
                        ..finding.clone()
                    });
                }
            }
            Err(error) => {
                let message = format!("{} cannot be read: {error}", path.display());
                let hint = "the upstream has no members from it until it is there";
                table.push(Finding::warning(message, table.place_of(&PATH)).hint(hint));
            }
        }
    }
    let read = read_members;
    (Some(MemberSource::File(FileSource { path, read })), listed)
}

/// How members are trusted that speak HTTP over TLS. The keys are those of the upstream.
fn trust(
    table: &mut Table<'_>,
    group: &Group<'_>,
    surroundings: &Surroundings<'_>,
) -> Option<MemberTrust> {
    let place = table.place_of(&FROM);
    match backend_tls::settings(group.tls, surroundings) {
        Ok(settings) => Some(MemberTrust::new(settings)),
        Err(error) => {
            table.push(Finding::fault(error, place));
            None
        }
    }
}

impl Members {
    /// Whether some may speak it.
    pub(crate) fn may_speak(&self, protocol: Protocol) -> bool {
        self.speech.is_none_or(|speech| {
            let of_ajp = speech == Speech::Ajp;
            of_ajp == (protocol == Protocol::Ajp)
        })
    }

    /// Whether some may have TLS.
    pub(crate) fn may_have_tls(&self) -> bool {
        self.speech.is_none_or(|speech| speech == Speech::Https)
    }
}

/// An address that stands for none.
pub(super) fn unplaced() -> Address {
    Address::Unix(PathBuf::new())
}

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME.members]",
    intro: "Where the upstream finds members besides its `[[upstream.NAME.backend]]`, which stay. The keys of \
            `[upstream.NAME]` hold for them. A member's name is its identity: for sessions, `hash`, the \
            commands and metrics. If the source fails or names nobody, the last list stays. If more than half \
            of the members are missing from one answer, they leave one by one, each confirmed by a further \
            answer. [fleet.md](fleet.md) explains it with examples.",
    keys: KEYS,
    parts: &[],
    later: &[(
        "service",
        "write from = \"dns\" with the name of a headless service",
    )],
};

const KEYS: &[&dyn AnyKey] = &[
    &FROM,
    &PATH,
    &NAME,
    &PROTOCOL,
    &PORT,
    &RESOLVER,
    &LEAVE,
    &MEMBERS_MAX,
];

static FROM: Key<Choices<From>> = Key {
    name: "from",
    values: Choices(&[
        ("file", From::File),
        ("dns", From::Dns),
        ("srv", From::Srv),
        ("mcmp", From::Mcmp),
    ]),
    doc: Doc {
        preset: Preset::Required,
        sample: "\"file\"",
        effect: "Where members are found. `file`: a file that lists them, which another program may write. `dns`: the \
                 addresses of a name (A and AAAA); a member's name is `ADDRESS:PORT`. `srv`: the services of a \
                 name (SRV), such as Kubernetes and Consul have them: the first label of a target is the member's \
                 name and its `jvm_route`, its weight is the member's, and priorities in their order are \
                 distances 0, 1 and so on. The front asks again when the time to live of an answer is over, but \
                 not within 1 s and at the latest after 5 min, a tenth more or less. `mcmp`: the nodes of \
                 mod_cluster that announce themselves at `[mcmp]`.",
        extremes: "The first answer is waited for at a start, for 5 s. `/readyz` is 503 while there was none.",
        elsewhere: "nginx `resolve`; HAProxy `server-template`",
    },
};

static PATH: Key<FilePath> = Key {
    name: "path",
    values: file_path("a path such as \"members.toml\""),
    doc: Doc {
        preset: Preset::Unset("required with from = \"file\""),
        sample: "\"members.toml\"",
        effect: "The file that lists the members, each a `[[member]]` (see there). The front looks once a second \
                 whether it was changed. A relative path starts from the directory of the configuration.",
        extremes: "A file with faults changes nothing: the log has what `catamaran check` says of it. Replace it \
                   by a rename, so that the front never reads half of it.",
        elsewhere: "HAProxy's runtime API; confd and consul-template write such files",
    },
};

static NAME: Key<Parsed<String, UrlError>> = Key {
    name: "name",
    values: Parsed {
        what: "a name in DNS such as \"app.internal\"",
        parse: parse_dns_name,
    },
    doc: Doc {
        preset: Preset::Unset("required with from = \"dns\" and \"srv\""),
        sample: "\"app.internal\"",
        effect: "The name that is asked for; of services for example `_ajp._tcp.app.internal`. Over `https://` the \
                 certificate of each address must have this name, and that of each service its target, unless \
                 `server_name` of the upstream says otherwise.",
        extremes: "A name without a dot at its end is tried with the search domains of `resolv.conf`, too.",
        elsewhere: "nginx `server ... resolve`; HAProxy `server-template`",
    },
};

static PROTOCOL: Key<Choices<Speech>> = Key {
    name: "protocol",
    values: Choices(&[
        ("ajp", Speech::Ajp),
        ("http", Speech::Http),
        ("https", Speech::Https),
    ]),
    doc: Doc {
        preset: Preset::Unset("required with from = \"dns\" and \"srv\""),
        sample: "\"ajp\"",
        effect: "What the members speak.",
        extremes: "A connector that speaks otherwise answers no request.",
        elsewhere: "",
    },
};

static PORT: Key<Counts<u16>> = Key {
    name: "port",
    values: Counts { min: 1, max: 65535 },
    doc: Doc {
        preset: Preset::Unset("required with from = \"dns\"; services have their own"),
        sample: "8009",
        effect: "The port of each address.",
        extremes: "At a port where nobody listens each member is out, and requests are answered 503.",
        elsewhere: "",
    },
};

static RESOLVER: Key<OneOrMore<Parsed<SocketAddr, &'static str>>> = Key {
    name: "resolver",
    values: OneOrMore(Parsed {
        what: "an address and port such as \"127.0.0.1:8600\"",
        parse: parse_socket,
    }),
    doc: Doc {
        preset: Preset::Unset(
            "the servers of `/etc/resolv.conf`, which is read again at each question",
        ),
        sample: "\"127.0.0.1:8600\"",
        effect: "The DNS servers that are asked, such as the agent of Consul.",
        extremes: "A server that knows other names says that there is none, and the last list stays.",
        elsewhere: "nginx `resolver`; HAProxy `resolvers`",
    },
};

static LEAVE: Key<Durations> = Key {
    name: "leave",
    values: Durations {
        min: Duration::ZERO,
        max: Duration::from_secs(7 * 24 * 3600),
    },
    doc: Doc {
        preset: Preset::Unset("`session_timeout` of an upstream with `sticky`, else \"0s\""),
        sample: "\"10m\"",
        effect: "How long a member that is no longer named drains: it serves the sessions that it has. Then it is \
                 gone; its exchanges in flight end.",
        extremes: "Shorter than a session, sessions of a member that was only forgotten for a moment are lost.",
        elsewhere: "HAProxy `hold obsolete`",
    },
};

static MEMBERS_MAX: Key<Counts<usize>> = Key {
    name: "members_max",
    values: Counts {
        min: 1,
        max: 10_000,
    },
    doc: Doc {
        preset: Preset::Value("1000"),
        sample: "50",
        effect: "How many members there may be. Of more, those that are known stay, and others are refused.",
        extremes: "Too low, a part of the fleet gets no requests: `catamaran_members_refused_total` counts it.",
        elsewhere: "HAProxy: the number of a `server-template`",
    },
};
