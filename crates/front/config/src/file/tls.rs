//! `[tls.NAME]` and `[[tls.NAME.certificate]]`: profiles of TLS.

use std::ops::Range;
use std::path::PathBuf;

use catamaran_front::config::{CertificateConfig, ClientCertificate, TlsConfig, TlsVersion};
use catamaran_front::tls::{Fault, Part};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Surroundings;
use crate::key::{Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, list_header, table, tables};
use crate::value::text::{FilePath, file_path, parse_name};
use crate::value::{Choices, Counts, Durations, OrOff, Switch};

/// A profile and where it stands. It is there even when its files are at fault, so that the
/// listeners that name it are not blamed as well.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) value: TlsConfig,
    pub(crate) place: Range<usize>,
}

/// Reads the tables.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<Profile> {
    let Some((_, entries)) = table(SECTION.header, value, report) else {
        return Vec::new();
    };
    let mut profiles = Vec::new();
    for (name, value) in entries {
        let key = name.get_ref();
        let known = SECTION.has(key) || key == "certificate";
        if known && !value.get_ref().is_table() {
            let message = "a TLS profile needs a name";
            let hint = "write [tls.NAME] and [[tls.NAME.certificate]]";
            report.push(Finding::fault(message, name.span()).hint(hint));
        } else if let Some((place, entries)) = table(SECTION.header, value, report) {
            if let Err(error) = parse_name(key) {
                let message = format!("the name of a TLS profile {error}");
                report.push(Finding::fault(message, name.span()));
            }
            profiles.push(one((key, place, entries), surroundings, report));
        }
    }
    profiles
}

fn one(
    (name, place, entries): (&str, Range<usize>, &DeTable<'_>),
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Profile {
    let mut table = Table::new(&SECTION, place.clone(), entries).except(&["certificate"]);
    let mut profile = TlsConfig::new(name, Vec::new());
    let settings = &mut profile.settings;
    table.set(&STRICT_SNI, &mut settings.strict_sni);
    table.set(&VERSION_MIN, &mut settings.version_min);
    table.set(&CLIENT_CERTIFICATE, &mut settings.client_certificate);
    table.set(
        &CLIENT_CERTIFICATE_CHAIN,
        &mut settings.client_certificate_chain,
    );
    table.set(&TICKETS, &mut settings.tickets);
    table.set(&TICKET_ROTATION, &mut settings.ticket_rotation);
    let path = |path: Option<PathBuf>| path.map(|path| surroundings.base.join(path));
    profile.client_ca = path(table.take(&CLIENT_CA));
    profile.client_crl = path(table.take(&CLIENT_CRL));
    profile.ticket_keys_file = path(table.take(&TICKET_KEYS_FILE));
    table.set(&HANDSHAKE_TIMEOUT, &mut profile.handshake_timeout);
    table.set(&HANDSHAKES_MAX, &mut profile.handshakes_max);
    table.set(&CERTIFICATE_WATCH, &mut profile.certificate_watch);
    without_use(&mut table, profile.settings.client_certificate);
    if table.has(&TICKET_KEYS_FILE) && !profile.settings.tickets {
        let message = "`ticket_keys_file` has no effect with tickets = false";
        let place = table.place_of(&TICKET_KEYS_FILE);
        table.push(Finding::warning(message, place).hint("remove one of them"));
    }
    let mut places = Places {
        profile: place.clone(),
        client_ca: table.place_of(&CLIENT_CA),
        client_crl: table.place_of(&CLIENT_CRL),
        ticket_keys: table.place_of(&TICKET_KEYS_FILE),
        certificates: Vec::new(),
    };
    let lists = entries.get("certificate");
    let lists = lists.map(|value| tables(&list_header("tls", name, "certificate"), value, report));
    let good = table.is_good();
    let mut complete = lists.is_some();
    if !complete {
        let message = format!("TLS profile `{name}` has no certificate");
        let hint = format!("add [[tls.{name}.certificate]] with its `chain` and `key`");
        table.push(Finding::fault(message, place.clone()).hint(hint));
    }
    for (place, entries) in lists.unwrap_or_default() {
        let read = certificate((place, entries), surroundings, &mut places, report);
        complete &= read.is_some();
        profile.certificates.extend(read);
    }
    table.finish(report);
    if good && surroundings.reads_certificates {
        match complete {
            true => check(&profile, |_| true, &places, report),
            // What is missing was said; the files of the others are checked all the same.
            false => {
                let mut trust = profile.clone();
                trust.certificates.clear();
                let is_trust =
                    |part| matches!(part, Part::ClientCa | Part::ClientCrl | Part::TicketKeys);
                check(&trust, is_trust, &places, report);
            }
        }
    }
    Profile {
        value: profile,
        place,
    }
}

/// Where the files of a profile are named.
struct Places {
    profile: Range<usize>,
    client_ca: Range<usize>,
    client_crl: Range<usize>,
    ticket_keys: Range<usize>,
    /// The chain, the key and `default` of each certificate.
    certificates: Vec<[Range<usize>; 3]>,
}

impl Places {
    fn of(&self, part: Part) -> Range<usize> {
        let certificate = |index: usize, which: usize| {
            let places = self.certificates.get(index);
            places.map_or_else(|| self.profile.clone(), |places| places[which].clone())
        };
        match part {
            Part::Chain(index) => certificate(index, 0),
            Part::Key(index) => certificate(index, 1),
            Part::Default(index) => certificate(index, 2),
            Part::ClientCa => self.client_ca.clone(),
            Part::ClientCrl => self.client_crl.clone(),
            Part::TicketKeys => self.ticket_keys.clone(),
            Part::Profile => self.profile.clone(),
        }
    }
}

fn certificate(
    (place, entries): (Range<usize>, &DeTable<'_>),
    surroundings: &Surroundings<'_>,
    places: &mut Places,
    report: &mut Report,
) -> Option<CertificateConfig> {
    let mut table = Table::new(&CERTIFICATE_SECTION, place, entries);
    let chain = table.require(&CHAIN);
    let key = table.require(&KEY);
    let mut default = false;
    table.set(&DEFAULT, &mut default);
    places.certificates.push([
        table.place_of(&CHAIN),
        table.place_of(&KEY),
        table.place_of(&DEFAULT),
    ]);
    table.finish(report);
    Some(CertificateConfig {
        chain: surroundings.base.join(chain?),
        key: surroundings.base.join(key?),
        default,
    })
}

/// Reads the files and tells what is wrong with these parts of them.
fn check(profile: &TlsConfig, is_meant: fn(Part) -> bool, places: &Places, report: &mut Report) {
    let finding = |make: fn(String, Range<usize>) -> Finding, fault: Fault| {
        let finding = make(fault.message, places.of(fault.part));
        match fault.hint.is_empty() {
            true => finding,
            false => finding.hint(fault.hint),
        }
    };
    match catamaran_front::tls::check(profile) {
        Ok(warnings) => warnings
            .into_iter()
            .filter(|it| is_meant(it.part))
            .for_each(|warning| report.push(finding(Finding::warning, warning))),
        Err(faults) => faults
            .into_iter()
            .filter(|it| is_meant(it.part))
            .for_each(|fault| report.push(finding(Finding::fault, fault))),
    }
}

/// Settings of certificates of clients that nobody is asked for.
fn without_use(table: &mut Table<'_>, mode: ClientCertificate) {
    if mode != ClientCertificate::Off {
        return;
    }
    for (name, has, place) in [
        (
            CLIENT_CA.name,
            table.has(&CLIENT_CA),
            table.place_of(&CLIENT_CA),
        ),
        (
            CLIENT_CRL.name,
            table.has(&CLIENT_CRL),
            table.place_of(&CLIENT_CRL),
        ),
    ] {
        if has {
            let message = format!("`{name}` has no effect: no client is asked for a certificate");
            let hint = "add client_certificate = \"required\" or \"optional\"";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[tls.NAME]",
    intro: "A profile of TLS, for listeners that name it with `tls`. All listeners of a profile serve \
            the same certificates and trust the same clients. [tls.md](tls.md) explains it with \
            examples.",
    keys: &[
        &STRICT_SNI,
        &VERSION_MIN,
        &CLIENT_CERTIFICATE,
        &CLIENT_CA,
        &CLIENT_CRL,
        &CLIENT_CERTIFICATE_CHAIN,
        &TICKETS,
        &TICKET_ROTATION,
        &TICKET_KEYS_FILE,
        &HANDSHAKE_TIMEOUT,
        &HANDSHAKES_MAX,
        &CERTIFICATE_WATCH,
    ],
    parts: &[],
    later: &[],
};

pub(crate) static CERTIFICATE_SECTION: Section = Section {
    header: "[[tls.NAME.certificate]]",
    intro: "A certificate and its key. A client gets the one for the name that it asks for: an exact \
            name wins, then a wildcard of one label, then the default. For a name there may be one \
            with an elliptic-curve key and one with an RSA key.",
    keys: &[&CHAIN, &KEY, &DEFAULT],
    parts: &[],
    later: &[],
};

static CHAIN: Key<FilePath> = Key {
    name: "chain",
    values: file_path("a path such as \"/etc/ssl/www.pem\""),
    doc: Doc {
        preset: Preset::Required,
        sample: "\"/etc/ssl/www/fullchain.pem\"",
        effect: "The PEM file with the certificate, then those of its issuers.",
        extremes: "Without those of its issuers some clients cannot verify it.",
        elsewhere: "nginx `ssl_certificate`; httpd `SSLCertificateFile`; HAProxy `crt`",
    },
};

static KEY: Key<FilePath> = Key {
    name: "key",
    values: file_path("a path such as \"/etc/ssl/www.key\""),
    doc: Doc {
        preset: Preset::Required,
        sample: "\"/etc/ssl/www/privkey.pem\"",
        effect: "The PEM file with the certificate's key, not encrypted.",
        extremes: "Anybody who can read it can pretend to be this server: keep it from other \
                   users.",
        elsewhere: "nginx `ssl_certificate_key`; httpd `SSLCertificateKeyFile`",
    },
};

static DEFAULT: Key<Switch> = Key {
    name: "default",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether this certificate is for clients that ask for a name without a \
                 certificate, or for no name. If no certificate is marked, the first is the \
                 default.",
        extremes: "Of no use with `strict_sni`.",
        elsewhere: "nginx `default_server`; the first `<VirtualHost>` of httpd",
    },
};

static STRICT_SNI: Key<Switch> = Key {
    name: "strict_sni",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether the handshake is refused if the client asks for a name without a \
                 certificate, or for no name.",
        extremes: "Clients that ask by address send no name and are refused.",
        elsewhere: "nginx `ssl_reject_handshake`; HAProxy `strict-sni`; httpd `SSLStrictSNIVHostCheck`",
    },
};

static VERSION_MIN: Key<Choices<TlsVersion>> = Key {
    name: "version_min",
    values: Choices(&[("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)]),
    doc: Doc {
        preset: Preset::Value("\"1.2\""),
        sample: "\"1.3\"",
        effect: "The lowest version of TLS. Ciphers are not chosen: all have forward secrecy and \
                 authenticate what they encrypt.",
        extremes: "With \"1.3\", clients from before about 2019 are refused.",
        elsewhere: "nginx `ssl_protocols`; httpd `SSLProtocol`; HAProxy `ssl-min-ver`",
    },
};

static CLIENT_CERTIFICATE: Key<Choices<ClientCertificate>> = Key {
    name: "client_certificate",
    values: Choices(&[
        ("off", ClientCertificate::Off),
        ("optional", ClientCertificate::Optional),
        ("required", ClientCertificate::Required),
    ]),
    doc: Doc {
        preset: Preset::Value("\"off\""),
        sample: "\"required\"",
        effect: "Whether clients are asked for a certificate. With \"optional\" none is fine, but one \
                 that cannot be verified is refused. An application behind AJP gets it as it would \
                 from mod_jk. A request whose host is not the name of the handshake is answered 421.",
        extremes: "It holds for the whole profile, never for one host: give a host with other rules a \
                   profile and an address of its own, and name that address in `listen` of its routes. \
                   With `optional`, a [[route]] may ask for one by client_certificate = \"required\".",
        elsewhere: "nginx `ssl_verify_client`; httpd `SSLVerifyClient`; Tomcat \
                    `certificateVerification`",
    },
};

static CLIENT_CA: Key<FilePath> = Key {
    name: "client_ca",
    values: file_path("a path such as \"/etc/ssl/clients-ca.pem\""),
    doc: Doc {
        preset: Preset::Unset("nobody"),
        sample: "\"/etc/ssl/clients-ca.pem\"",
        effect: "The PEM file with the certificates of the authorities that may issue certificates \
                 of clients, or with such certificates themselves.",
        extremes: "An authority in it can make a certificate for any client.",
        elsewhere: "nginx `ssl_client_certificate`; httpd `SSLCACertificateFile`",
    },
};

static CLIENT_CRL: Key<FilePath> = Key {
    name: "client_crl",
    values: file_path("a path such as \"/etc/ssl/clients.crl.pem\""),
    doc: Doc {
        preset: Preset::Unset("none is revoked"),
        sample: "\"/etc/ssl/clients.crl.pem\"",
        effect: "The PEM file with lists of certificates that were revoked, one for each issuer of \
                 `client_ca`. The whole chain is checked.",
        extremes: "When a list is older than its nextUpdate, the certificates of its issuer are \
                   refused; replace it in time, which needs no reload.",
        elsewhere: "nginx `ssl_crl`; httpd `SSLCARevocationFile`",
    },
};

static CLIENT_CERTIFICATE_CHAIN: Key<Switch> = Key {
    name: "client_certificate_chain",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether a backend also gets the chain of the client's certificate.",
        extremes: "Over AJP the chain must fit into a packet: raise `packet_size`.",
        elsewhere: "mod_jk `JkOptions +ForwardSSLCertChain`",
    },
};

static TICKETS: Key<Switch> = Key {
    name: "tickets",
    values: Switch,
    doc: Doc {
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Whether clients may resume sessions, which saves most of a handshake. Keys of \
                 tickets are kept in memory alone, for all workers; a reload keeps them. Requests \
                 are never taken in the handshake itself (0-RTT).",
        extremes: "Without tickets each connection is a full handshake.",
        elsewhere: "nginx `ssl_session_tickets`; httpd `SSLSessionTickets`",
    },
};

static TICKET_ROTATION: Key<Durations> = Key {
    name: "ticket_rotation",
    values: Durations {
        min: std::time::Duration::from_secs(60),
        max: std::time::Duration::from_secs(7 * 24 * 60 * 60),
    },
    doc: Doc {
        preset: Preset::Value("\"12h\""),
        sample: "\"1h\"",
        effect: "How often the keys of tickets change. A ticket can be used for one to two such times.",
        extremes: "Anybody who gets a key can decrypt the TLS 1.2 sessions of its time.",
        elsewhere: "HAProxy `tls-ticket-keys`; nginx renews its keys with its processes",
    },
};

static TICKET_KEYS_FILE: Key<FilePath> = Key {
    name: "ticket_keys_file",
    values: file_path("a path such as \"/etc/catamaran/ticket.keys\""),
    doc: Doc {
        preset: Preset::Unset("each process makes its own keys"),
        sample: "\"/etc/catamaran/ticket.keys\"",
        effect: "A file with the three keys of tickets, so that several fronts resume the sessions of one another: \
                 three lines of 96 hexadecimal digits, each by `openssl rand -hex 48`. The first key seals new \
                 tickets, all three open them. Its mode must be 0600. The file is looked at as certificates are \
                 (`certificate_watch`), and `ticket_rotation` changes no key. [fleet.md](fleet.md) says how to \
                 replace a key.",
        extremes: "Anybody who can read it can decrypt recorded TLS 1.2 sessions that were resumed. A front whose \
                   file lacks the first key of another one makes full handshakes with its clients.",
        elsewhere: "nginx `ssl_session_ticket_key`; HAProxy `tls-ticket-keys`; httpd `SSLSessionTicketKeyFile`",
    },
};

static HANDSHAKE_TIMEOUT: Key<Durations> = Key {
    name: "handshake_timeout",
    values: Durations {
        min: std::time::Duration::from_millis(100),
        max: std::time::Duration::from_secs(600),
    },
    doc: Doc {
        preset: Preset::Value("\"10s\""),
        sample: "\"5s\"",
        effect: "The deadline of a handshake, from the accept. Single bytes do not extend it. A \
                 header of the PROXY protocol before it is a part of this time.",
        extremes: "Too short hurts clients on bad networks. Too long lets silent clients hold \
                   connections.",
        elsewhere: "HAProxy `timeout client-hs`; nginx `client_header_timeout`",
    },
};

static HANDSHAKES_MAX: Key<Counts<usize>> = Key {
    name: "handshakes_max",
    values: Counts {
        min: 1,
        max: 100_000,
    },
    doc: Doc {
        preset: Preset::Value("256"),
        sample: "1000",
        effect: "Handshakes that each worker may have under way. For a further connection the one whose \
                 client has done nothing for longest is closed: one without a whole ClientHello, if those \
                 are more than half, else one that stalls after it. Whatever their number, a worker goes \
                 on with 8 at a time before it serves others again.",
        extremes: "Too low and a flood of stalled handshakes closes those of slow clients. Too high and a flood of handshakes \
                   slows those who have made theirs.",
        elsewhere: "HAProxy `maxsslrate` limits their rate",
    },
};

static CERTIFICATE_WATCH: Key<OrOff<Durations>> = Key {
    name: "certificate_watch",
    values: OrOff(Durations {
        min: std::time::Duration::from_secs(1),
        max: std::time::Duration::from_secs(24 * 60 * 60),
    }),
    doc: Doc {
        preset: Preset::Value("\"30s\""),
        sample: "\"off\"",
        effect: "How often the front looks for changes in the files of the profile. If a change \
                 stays for a second such interval, the front checks the files. If they have no \
                 fault, they are put in force. Otherwise the old certificates stay, the front logs \
                 an error, and `catamaran_tls_certificate_reloads_total` counts it.",
        extremes: "With \"off\" files are read by a reload only.",
        elsewhere: "none in nginx, httpd and HAProxy, which need a reload",
    },
};
