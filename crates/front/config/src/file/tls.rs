//! `[tls.NAME]` and `[[tls.NAME.certificate]]`: profiles of TLS.

pub(crate) mod acme;

use std::ops::Range;
use std::path::PathBuf;

use catamaran_proxy::config::{
    CertificateConfig, ClientCertificate, DEPTH_MAX, TlsConfig, TlsVersion,
};
use catamaran_proxy::tls::{Fault, Part};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Surroundings, named};
use crate::fill;
use crate::key::{ALL, Group, Key, Part as KeyPart, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, list_header, tables};
use crate::value::text::file_path;
use crate::value::{Choices, Counts, Durations, Optional, OrOff, Switch};

/// A profile and its place in the file. It exists even if its files have faults, so that listeners that name it get no
/// further faults.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) value: TlsConfig,
    /// The certificates that an authority issues; `None`: there are none, or they have a fault.
    pub(crate) acme: Option<acme::Acme>,
    pub(crate) place: Range<usize>,
}

/// Reads all tables `[tls.NAME]`.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Vec<Profile> {
    let sections = [&SECTION, &CERTIFICATE_SECTION, &acme::SECTION];
    let tables = named(&sections, "a TLS profile", value, report);
    let profiles = tables
        .into_iter()
        .map(|(name, place, entries)| read_one(name, place, entries, surroundings, report));
    profiles.collect()
}

/// Reads one `[tls.NAME]`, and checks its files if the surroundings allow it.
fn read_one(
    name: &str,
    place: Range<usize>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Profile {
    let mut table = Table::new(&SECTION, place.clone(), entries).except(&["certificate", "acme"]);
    let mut profile = TlsConfig::new(name, Vec::new());
    table.read(KEYS, &mut profile);
    let paths = [
        &mut profile.client_ca,
        &mut profile.client_crl,
        &mut profile.ticket_keys_file,
    ];
    for path in paths.into_iter().flatten() {
        *path = surroundings.base.join(&path);
    }
    warn_of_ineffective_keys(&profile, &mut table);
    let mut places = Places {
        profile: place.clone(),
        client_ca: table.place_of("client_ca"),
        client_crl: table.place_of("client_crl"),
        ticket_keys: table.place_of("ticket_keys_file"),
        certificates: Vec::new(),
    };
    let has_good_keys = table.is_good();
    let written_acme = entries.get("acme");
    let acme = written_acme.and_then(|value| acme::read(value, surroundings, report));
    profile.acme = acme.as_ref().map(|acme| acme.value.clone());
    let mut has_all_certificates = written_acme.is_some();
    if let Some(value) = entries.get("certificate") {
        let header = list_header("tls", name, "certificate");
        let written = tables(&header, value, report);
        let count = written.len();
        for (place, entries) in written {
            let read = certificate(place, entries, surroundings, &mut places, report);
            profile.certificates.extend(read);
        }
        has_all_certificates = profile.certificates.len() == count;
    } else if written_acme.is_none() {
        let message = format!("TLS profile `{name}` has no certificate");
        let hint = format!(
            "add [[tls.{name}.certificate]] with its `chain` and `key`, or [tls.{name}.acme]"
        );
        table.push(Finding::fault(message, place.clone()).hint(hint));
    }
    table.finish(report);
    if has_good_keys && surroundings.checks_files {
        if has_all_certificates && written_acme.is_some() == acme.is_some() {
            check(&profile, |_| true, &places, report);
        } else {
            // The missing certificates are reported already. The other files are checked nevertheless.
            let mut trust = profile.clone();
            trust.certificates.clear();
            let is_trust =
                |part| matches!(part, Part::ClientCa | Part::ClientCrl | Part::TicketKeys);
            check(&trust, is_trust, &places, report);
        }
    }
    Profile {
        value: profile,
        acme,
        place,
    }
}

/// Warns of keys about certificates of clients that none is asked for, and of keys of tickets without tickets.
fn warn_of_ineffective_keys(profile: &TlsConfig, table: &mut Table<'_>) {
    if profile.settings.client_certificate == ClientCertificate::Off {
        for (name, place) in table.written(KEYS, |group| group == CLIENTS) {
            let message = format!("`{name}` has no effect: no client is asked for a certificate");
            let hint = "add client_certificate = \"required\" or \"optional\"";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
    if table.has("ticket_keys_file") && !profile.settings.tickets {
        let message = "`ticket_keys_file` has no effect with tickets = false";
        let place = table.place_of("ticket_keys_file");
        table.push(Finding::warning(message, place).hint("remove one of them"));
    }
}

/// The places in the configuration where the files of a profile are named.
struct Places {
    profile: Range<usize>,
    client_ca: Range<usize>,
    client_crl: Range<usize>,
    ticket_keys: Range<usize>,
    /// For each certificate the places of `chain`, `key` and `default`.
    certificates: Vec<[Range<usize>; 3]>,
}

impl Places {
    /// The place where the file of a part is named; that of the profile if it is not.
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

/// Reads one `[[tls.NAME.certificate]]`; `None` if a file is missing. Adds its places to `places`.
fn certificate(
    place: Range<usize>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    places: &mut Places,
    report: &mut Report,
) -> Option<CertificateConfig> {
    let mut table = Table::new(&CERTIFICATE_SECTION, place, entries);
    let mut certificate = CertificateConfig {
        chain: PathBuf::new(),
        key: PathBuf::new(),
        default: false,
    };
    table.read(CERTIFICATE_KEYS, &mut certificate);
    let place = |name| table.place_of(name);
    (places.certificates).push([place("chain"), place("key"), place("default")]);
    table.finish(report);
    for path in [&mut certificate.chain, &mut certificate.key] {
        if path.as_os_str().is_empty() {
            return None;
        }
        *path = surroundings.base.join(&path);
    }
    Some(certificate)
}

/// Reads the files of a profile, and reports what is wrong with those parts that `is_checked` selects.
fn check(profile: &TlsConfig, is_checked: fn(Part) -> bool, places: &Places, report: &mut Report) {
    type MakeFinding = fn(String, Range<usize>) -> Finding;
    let (problems, make_finding): (Vec<Fault>, MakeFinding) =
        match catamaran_proxy::tls::check(profile) {
            Ok(warnings) => (warnings, Finding::warning),
            Err(faults) => (faults, Finding::fault),
        };
    for problem in problems {
        if !is_checked(problem.part) {
            continue;
        }
        let mut finding = make_finding(problem.message, places.of(problem.part));
        if !problem.hint.is_empty() {
            finding = finding.hint(problem.hint);
        }
        report.push(finding);
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[tls.NAME]",
    intro: "A profile of TLS, for listeners that name it with `tls`. All listeners of a profile serve \
            the same certificates and trust the same clients. [tls.md](tls.md) explains it with \
            examples.",
    keys: &[KeyPart::all(&KEYS)],
    later: &[],
};

pub(crate) static CERTIFICATE_SECTION: Section = Section {
    header: "[[tls.NAME.certificate]]",
    intro: "A certificate and its key. A client gets the one for the name that it asks for: an exact \
            name wins, then a wildcard of one label, then the default. For a name there may be one \
            with an elliptic-curve key and one with an RSA key.",
    keys: &[KeyPart::all(&CERTIFICATE_KEYS)],
    later: &[],
};

/// The keys about certificates of clients.
const CLIENTS: Group = Group("clients");

static KEYS: &[Key<TlsConfig>] = &[
    Key {
        name: "strict_sni",
        group: ALL,
        value: fill!(Switch, TlsConfig.settings.strict_sni),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether the handshake is refused if the client asks for a name without a \
                 certificate, or for no name.",
        extremes: "Clients that ask by address send no name and are refused.",
        elsewhere: "nginx `ssl_reject_handshake`; HAProxy `strict-sni`; httpd `SSLStrictSNIVHostCheck`",
    },
    Key {
        name: "version_min",
        group: ALL,
        value: fill!(
            Choices(&[("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)]),
            TlsConfig.settings.version_min
        ),
        preset: Preset::Value("\"1.2\""),
        sample: "\"1.3\"",
        effect: "The lowest version of TLS. Ciphers are not chosen: all have forward secrecy and \
                 authenticate what they encrypt.",
        extremes: "With \"1.3\", clients from before about 2019 are refused.",
        elsewhere: "nginx `ssl_protocols`; httpd `SSLProtocol`; HAProxy `ssl-min-ver`",
    },
    Key {
        name: "client_certificate",
        group: ALL,
        value: fill!(
            Choices(&[
                ("off", ClientCertificate::Off),
                ("optional", ClientCertificate::Optional),
                ("required", ClientCertificate::Required),
            ]),
            TlsConfig.settings.client_certificate
        ),
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
    Key {
        name: "client_ca",
        group: CLIENTS,
        value: fill!(
            Optional(file_path("a path such as \"/etc/ssl/clients-ca.pem\"")),
            TlsConfig.client_ca
        ),
        preset: Preset::Unset("nobody"),
        sample: "\"/etc/ssl/clients-ca.pem\"",
        effect: "The PEM file with the certificates of the authorities that may issue certificates \
                 of clients, or with such certificates themselves.",
        extremes: "An authority in it can make a certificate for any client.",
        elsewhere: "nginx `ssl_client_certificate`; httpd `SSLCACertificateFile`",
    },
    Key {
        name: "client_ca_depth",
        group: CLIENTS,
        value: fill!(Counts(0..=DEPTH_MAX), TlsConfig.settings.client_ca_depth),
        preset: Preset::Value("6"),
        sample: "1",
        effect: "How many authorities may stand between a client's certificate and one of `client_ca`. With 0 those of \
                 `client_ca` must have issued it themselves. Certificates that a client sends needlessly count, too.",
        extremes: "With many, each authority below those of `client_ca` can make certificates for clients.",
        elsewhere: "nginx `ssl_verify_depth`; httpd `SSLVerifyDepth`, which is one more",
    },
    Key {
        name: "client_crl",
        group: CLIENTS,
        value: fill!(
            Optional(file_path("a path such as \"/etc/ssl/clients.crl.pem\"")),
            TlsConfig.client_crl
        ),
        preset: Preset::Unset("none is revoked"),
        sample: "\"/etc/ssl/clients.crl.pem\"",
        effect: "The PEM file with lists of certificates that were revoked, one for each issuer of \
                 `client_ca`. The whole chain is checked.",
        extremes: "When a list is older than its nextUpdate, the certificates of its issuer are \
                   refused; replace it in time, which needs no reload.",
        elsewhere: "nginx `ssl_crl`; httpd `SSLCARevocationFile`",
    },
    Key {
        name: "client_certificate_chain",
        group: ALL,
        value: fill!(Switch, TlsConfig.settings.client_certificate_chain),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether a backend also gets the chain of the client's certificate.",
        extremes: "Over AJP the chain must fit into a packet: raise `packet_size`.",
        elsewhere: "mod_jk `JkOptions +ForwardSSLCertChain`",
    },
    Key {
        name: "tickets",
        group: ALL,
        value: fill!(Switch, TlsConfig.settings.tickets),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Whether clients may resume sessions, which saves most of a handshake. Keys of \
                 tickets are kept in memory alone, for all workers; a reload keeps them. Requests \
                 are never taken in the handshake itself (0-RTT).",
        extremes: "Without tickets each connection is a full handshake.",
        elsewhere: "nginx `ssl_session_tickets`; httpd `SSLSessionTickets`",
    },
    Key {
        name: "ticket_rotation",
        group: ALL,
        value: fill!(
            Durations(
                std::time::Duration::from_secs(60)
                    ..=std::time::Duration::from_secs(7 * 24 * 60 * 60)
            ),
            TlsConfig.settings.ticket_rotation
        ),
        preset: Preset::Value("\"12h\""),
        sample: "\"1h\"",
        effect: "How often the keys of tickets change. A ticket can be used for one to two such times.",
        extremes: "Anybody who gets a key can decrypt the TLS 1.2 sessions of its time.",
        elsewhere: "HAProxy `tls-ticket-keys`; nginx renews its keys with its processes",
    },
    Key {
        name: "ticket_keys_file",
        group: ALL,
        value: fill!(
            Optional(file_path("a path such as \"/etc/catamaran/ticket.keys\"")),
            TlsConfig.ticket_keys_file
        ),
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
    Key {
        name: "handshake_timeout",
        group: ALL,
        value: fill!(
            Durations(std::time::Duration::from_millis(100)..=std::time::Duration::from_secs(600)),
            TlsConfig.handshake_timeout
        ),
        preset: Preset::Value("\"10s\""),
        sample: "\"5s\"",
        effect: "The deadline of a handshake, from the accept. Single bytes do not extend it. A \
                 header of the PROXY protocol before it is a part of this time.",
        extremes: "Too short hurts clients on bad networks. Too long lets silent clients hold \
                   connections.",
        elsewhere: "HAProxy `timeout client-hs`; nginx `client_header_timeout`",
    },
    Key {
        name: "handshakes_max",
        group: ALL,
        value: fill!(Counts(1..=100_000), TlsConfig.handshakes_max),
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
    Key {
        name: "certificate_watch",
        group: ALL,
        value: fill!(
            OrOff(Durations(
                std::time::Duration::from_secs(1)..=std::time::Duration::from_secs(24 * 60 * 60)
            )),
            TlsConfig.certificate_watch
        ),
        preset: Preset::Value("\"30s\""),
        sample: "\"off\"",
        effect: "How often the front looks for changes in the files of the profile. If a change \
                 stays for a second such interval, the front checks the files. If they have no \
                 fault, they are put in force. Otherwise the old certificates stay, the front logs \
                 an error, and `catamaran_tls_certificate_reloads_total` counts it.",
        extremes: "With \"off\" files are read by a reload only.",
        elsewhere: "none in nginx, httpd and HAProxy, which need a reload",
    },
];

static CERTIFICATE_KEYS: &[Key<CertificateConfig>] = &[
    Key {
        name: "chain",
        group: ALL,
        value: fill!(
            file_path("a path such as \"/etc/ssl/www.pem\""),
            CertificateConfig.chain
        ),
        preset: Preset::Required,
        sample: "\"/etc/ssl/www/fullchain.pem\"",
        effect: "The PEM file with the certificate, then those of its issuers.",
        extremes: "Without those of its issuers some clients cannot verify it.",
        elsewhere: "nginx `ssl_certificate`; httpd `SSLCertificateFile`; HAProxy `crt`",
    },
    Key {
        name: "key",
        group: ALL,
        value: fill!(
            file_path("a path such as \"/etc/ssl/www.key\""),
            CertificateConfig.key
        ),
        preset: Preset::Required,
        sample: "\"/etc/ssl/www/privkey.pem\"",
        effect: "The PEM file with the certificate's key, not encrypted.",
        extremes: "Anybody who can read it can pretend to be this server: keep it from other \
                   users.",
        elsewhere: "nginx `ssl_certificate_key`; httpd `SSLCertificateKeyFile`",
    },
    Key {
        name: "default",
        group: ALL,
        value: fill!(Switch, CertificateConfig.default),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether this certificate is for clients that ask for a name without a \
                 certificate, or for no name. If no certificate is marked, the first is the \
                 default.",
        extremes: "Of no use with `strict_sni`.",
        elsewhere: "nginx `default_server`; the first `<VirtualHost>` of httpd",
    },
];
