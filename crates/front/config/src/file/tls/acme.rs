//! `[tls.NAME.acme]`: certificates that an authority issues to the front.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;

use catamaran_proxy::config::{
    AcmeChallenge, AcmeConfig, ClientCertificate, ExternalAccount, IssuedKeyType, LETS_ENCRYPT,
    LETS_ENCRYPT_STAGING, Roots, TlsConfig,
};
use toml::Spanned;
use toml::de::DeValue;

use crate::file::{Surroundings, backend_tls};
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::address::is_label;
use crate::value::text::{file_path, parse_name};
use crate::value::{Choices, OneOrMore, Optional, Switch, Syntax};

/// The values of the keys, before they are checked against each other.
struct RawAcme {
    acme: AcmeConfig,
    challenge: ChallengeChoice,
    terms_agreed: bool,
    ca_file: Option<PathBuf>,
    eab_key_id: Option<String>,
    eab_hmac_file: Option<PathBuf>,
}

/// The settings, and their place in the file.
#[derive(Debug)]
pub(crate) struct Acme {
    /// Without `challenges`, which depend on other tables, too.
    pub(crate) value: AcmeConfig,
    pub(crate) challenge: ChallengeChoice,
    pub(crate) place: Range<usize>,
}

/// What `challenge` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChallengeChoice {
    Auto,
    Only(AcmeChallenge),
}

impl ChallengeChoice {
    /// The challenges that the front can answer for a profile, in the order in which they are tried; none if nothing
    /// answers the one that is chosen. `has_clear`: whether a listener in clear text has an address of TCP.
    pub(crate) fn challenges(self, profile: &TlsConfig, has_clear: bool) -> Vec<AcmeChallenge> {
        let mut challenges = match self {
            Self::Auto => vec![AcmeChallenge::Http01, AcmeChallenge::TlsAlpn01],
            Self::Only(challenge) => vec![challenge],
        };
        challenges.retain(|challenge| match challenge {
            AcmeChallenge::Http01 => has_clear,
            // The authority has no certificate to show.
            AcmeChallenge::TlsAlpn01 => {
                profile.settings.client_certificate == ClientCertificate::Off
            }
            AcmeChallenge::Dns01 => true,
        });
        challenges
    }
}

/// Reads `[tls.NAME.acme]`; `None` if it has faults.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Acme> {
    let (place, entries) = table(SECTION.header, value, report)?;
    let mut table = Table::new(&SECTION, place.clone(), entries);
    let mut written = RawAcme {
        acme: AcmeConfig {
            names: Vec::new(),
            together: false,
            directory: LETS_ENCRYPT.to_owned(),
            contact: Vec::new(),
            state_dir: PathBuf::from(STATE_DIR),
            challenges: Vec::new(),
            dns_hook: Vec::new(),
            preflight: true,
            key_type: IssuedKeyType::P256,
            profile: None,
            external_account: None,
            roots: Roots::none(),
        },
        challenge: ChallengeChoice::Auto,
        terms_agreed: false,
        ca_file: None,
        eab_key_id: None,
        eab_hmac_file: None,
    };
    table.read(KEYS, &mut written);
    let RawAcme {
        mut acme,
        challenge,
        terms_agreed,
        ca_file,
        eab_key_id,
        eab_hmac_file,
    } = written;
    if !terms_agreed && table.has("terms_agreed") && table.is_good_at("terms_agreed") {
        let message = "the authority issues certificates only to those who agree to its terms";
        let hint =
            "read them (`meta` of the directory links to them), and write terms_agreed = true";
        let place = table.place_of("terms_agreed");
        table.push(Finding::fault(message, place).hint(hint));
    }
    check_names(&acme.names, &mut table);
    check_hook(&acme, challenge, &mut table);
    acme.external_account = external_account(eab_key_id, eab_hmac_file, surroundings, &mut table);
    acme.state_dir = surroundings.base.join(&acme.state_dir);
    let ca_file = ca_file.map(|path| surroundings.base.join(path));
    match backend_tls::trusted_roots(ca_file, surroundings) {
        Ok(roots) => acme.roots = roots,
        Err(message) => {
            let place = table.place_of("ca_file");
            table.push(Finding::fault(message, place).hint(CA_HINT));
        }
    }
    let is_good = table.is_good();
    table.finish(report);
    is_good.then_some(Acme {
        value: acme,
        challenge,
        place,
    })
}

/// Whether there is a program for the challenge dns-01, if that is needed.
fn check_hook(acme: &AcmeConfig, challenge: ChallengeChoice, table: &mut Table<'_>) {
    if let Some(program) = acme.dns_hook.first() {
        if !program.starts_with('/') {
            let message = format!("`dns_hook` begins with `{program}`, which is no absolute path");
            let hint = "write the whole path of the program: it is run without a shell";
            let place = table.place_of("dns_hook");
            table.push(Finding::fault(message, place).hint(hint));
        }
        return;
    }
    if table.has("dns_hook") {
        return;
    }
    let hint = "write dns_hook = [\"/path\"], a program that puts records into the DNS";
    if let Some(wildcard) = acme.names.iter().find(|name| name.starts_with("*.")) {
        let message =
            format!("`{wildcard}` needs the challenge dns-01, and there is no `dns_hook`");
        let place = table.place_of("names");
        table.push(Finding::fault(message, place).hint(hint));
    }
    if challenge == ChallengeChoice::Only(AcmeChallenge::Dns01) {
        let message = "the challenge dns-01 needs a `dns_hook`";
        let place = table.place_of("challenge");
        table.push(Finding::fault(message, place).hint(hint));
    }
}

/// The account that the authority made outside of ACME; `None`: there is none, or it has a fault.
fn external_account(
    key_id: Option<String>,
    hmac_file: Option<PathBuf>,
    surroundings: &Surroundings<'_>,
    table: &mut Table<'_>,
) -> Option<ExternalAccount> {
    for (key, other) in [
        ("eab_key_id", "eab_hmac_file"),
        ("eab_hmac_file", "eab_key_id"),
    ] {
        if table.has(key) && !table.has(other) {
            let message = format!("`{key}` is of no use without `{other}`");
            let hint = "write both as the authority shows them, or neither";
            table.push(Finding::fault(message, table.place_of(key)).hint(hint));
        }
    }
    let (key_id, hmac_file) = (key_id?, hmac_file?);
    let check = |text: String| match ExternalAccount::new(String::new(), &text) {
        Some(_) => Ok(text),
        None => Err("has no key in base64url in its first line".to_owned()),
    };
    let text = surroundings.secret("eab_hmac_file", &hmac_file, check, table)?;
    ExternalAccount::new(key_id, &text)
}

fn check_names(names: &[String], table: &mut Table<'_>) {
    let place = table.place_of("names");
    if table.is_empty_list("names") {
        let message = "`names` is empty, so there is nothing to get a certificate for";
        table.push(Finding::fault(message, place).hint("write the names, or remove the table"));
        return;
    }
    let mut known = HashSet::new();
    if let Some(name) = names.iter().find(|name| !known.insert(*name)) {
        let message = format!("`{name}` is written twice");
        table.push(Finding::fault(message, place).hint("keep one of them"));
    }
}

/// Why a text is not a value of its key.
#[derive(Debug, thiserror::Error)]
enum AcmeTextError {
    #[error(
        "must be a DNS name such as \"www.example.org\", in ASCII (a name in another script begins with `xn--`)"
    )]
    Name,
    #[error("must be a path or an argument: it is empty, or has a zero byte")]
    Hook,
    #[error("must be \"letsencrypt\", \"letsencrypt-staging\" or a URL that begins with https://")]
    Directory,
    #[error("must be an address such as \"admin@example.org\"")]
    Contact,
}

/// The name of an authority's certificate, in lower case: a DNS name that is no wildcard.
///
/// # Errors
/// Why the text is none.
pub fn parse_acme_name(text: &str) -> Result<String, String> {
    if text.starts_with("*.") {
        return Err("a wildcard needs a file with `dns_hook` in [tls.NAME.acme]".to_owned());
    }
    parse_dns_name(text).map_err(|error| error.to_string())
}

/// The URL of an authority's directory, from the URL or one of the words of `directory`.
///
/// # Errors
/// Why the text is none.
pub fn parse_acme_directory(text: &str) -> Result<String, String> {
    parse_directory(text).map_err(|error| error.to_string())
}

fn parse_dns_name(text: &str) -> Result<String, AcmeTextError> {
    let domain = text.strip_prefix("*.").unwrap_or(text);
    let is_address = domain
        .rsplit('.')
        .next()
        .is_some_and(|last| last.parse::<u8>().is_ok());
    let fits = text.len() <= 253 && domain.contains('.') && domain.split('.').all(is_label);
    let is_name = fits && !is_address && !domain.contains('_');
    is_name
        .then(|| text.to_ascii_lowercase())
        .ok_or(AcmeTextError::Name)
}

fn parse_hook_part(text: &str) -> Result<String, AcmeTextError> {
    let is_good = !text.is_empty() && !text.contains('\0');
    is_good.then(|| text.to_owned()).ok_or(AcmeTextError::Hook)
}

fn parse_directory(text: &str) -> Result<String, AcmeTextError> {
    match text {
        "letsencrypt" => Ok(LETS_ENCRYPT.to_owned()),
        "letsencrypt-staging" => Ok(LETS_ENCRYPT_STAGING.to_owned()),
        url => {
            let parsed: Result<http::Uri, _> = url.parse();
            let is_https = parsed.is_ok_and(|it| it.scheme_str() == Some("https"));
            is_https
                .then(|| url.to_owned())
                .ok_or(AcmeTextError::Directory)
        }
    }
}

fn parse_contact(text: &str) -> Result<String, AcmeTextError> {
    let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    match text.split_once('@') {
        Some((user, host)) if is_printable && !user.is_empty() && host.contains('.') => {
            Ok(format!("mailto:{}", text.trim_start_matches("mailto:")))
        }
        _ => Err(AcmeTextError::Contact),
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[tls.NAME.acme]",
    intro: "Certificates that the front gets by itself from an authority, by ACME (RFC 8555): one for each name, or one \
            for all (`together`). The \
            authority must reach the front at each name: a listener in clear text at port 80 (http-01), or the \
            profile's own at port 443 (tls-alpn-01). Until a name has its first certificate, its handshakes are refused with the alert \
            `unrecognized_name` (`tls-no-certificate-yet`), and while the profile has none at all, `/readyz` answers \
            503. A certificate of `[[tls.NAME.certificate]]` is preferred for its names, and none that is issued is \
            ever the default. A failed attempt is made again after 1 minute, 10 minutes, 1, 3, 6, then about every 12 \
            hours, which no restart or reload changes. A certificate is renewed when the authority wants it (RFC 9773), \
            else when a third of its lifetime is left. [tls.md](tls.md) explains it with an example.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<RawAcme>] = &[
    Key {
        name: "names",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a name such as \"www.example.org\"",
                parse: parse_dns_name,
            }),
            RawAcme.acme.names
        ),
        preset: Preset::Required,
        sample: "[\"www.example.org\", \"example.org\"]",
        effect: "The names to get certificates for. Each has its own, so that one that fails keeps no other back, unless \
                 they are `together`.",
        extremes: "Authorities limit the orders of a week for a domain: Let's Encrypt to 50.",
        elsewhere: "nginx `acme_certificate`; httpd `MDomain`; Caddy's site addresses",
    },
    Key {
        name: "together",
        group: ALL,
        value: fill!(Switch, RawAcme.acme.together),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Whether one certificate has all names. In files, logs and metrics its first name stands for all. After a \
                 change of `names` a new one is ordered; meanwhile each name is served by the one that it had.",
        extremes: "A name that cannot be proved keeps all of them back, and everybody who sees the certificate sees all \
                   names. Let's Encrypt allows 100 of them, its profile \"shortlived\" 25.",
        elsewhere: "nginx and certbot: one certificate for all names, always; httpd `MDomain` with several names; Caddy: \
                    none",
    },
    Key {
        name: "terms_agreed",
        group: ALL,
        value: fill!(Switch, RawAcme.terms_agreed),
        preset: Preset::Required,
        sample: "true",
        effect: "Whether you agree to the authority's terms of service. It must be `true`.",
        extremes: "The authority keeps the agreement with the account.",
        elsewhere: "nginx `accept_terms_of_service`; httpd `MDCertificateAgreement`",
    },
    Key {
        name: "directory",
        group: ALL,
        value: fill!(
            Syntax {
                what: "\"letsencrypt\", \"letsencrypt-staging\" or a URL",
                parse: parse_directory,
            },
            RawAcme.acme.directory
        ),
        preset: Preset::Value("\"letsencrypt\""),
        sample: "\"letsencrypt-staging\"",
        effect: "The authority: its directory's URL, or a word for one of Let's Encrypt's. The front never changes to \
                 another one by itself.",
        extremes: "\"letsencrypt-staging\" is for trials: its limits are high, and clients do not trust its certificates.",
        elsewhere: "nginx `acme_issuer` with `uri`; httpd `MDCertificateAuthority`; Caddy `acme_ca`",
    },
    Key {
        name: "contact",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "an address such as \"admin@example.org\"",
                parse: parse_contact,
            }),
            RawAcme.acme.contact
        ),
        preset: Preset::Unset("the authority gets no address"),
        sample: "\"admin@example.org\"",
        effect: "The addresses of mail to which the authority may write, given when the account is made.",
        extremes: "Let's Encrypt ignores them; others require one.",
        elsewhere: "nginx `contact`; httpd `MDContactEmail`; Caddy `email`",
    },
    Key {
        name: "state_dir",
        group: ALL,
        value: fill!(
            file_path("a path such as \"/var/lib/catamaran/acme\""),
            RawAcme.acme.state_dir
        ),
        preset: Preset::Value("\"/var/lib/catamaran/acme\""),
        sample: "\"/srv/acme\"",
        effect: "The directory with the account, the keys, the certificates and what is known of each name. The front \
                 makes it, with the mode 0700, and takes the rights of others off what is in it. For each name one \
                 process orders at a time (`lock` and `owner.json` in its folder); another one that serves meanwhile, \
                 on this machine or another, answers its challenges, too.",
        extremes: "Without it each start would order anew, and soon meet the authority's limits: keep it, and back it up. \
                   On NFS, where the lock may exclude nobody, another machine takes a name over ten minutes after its \
                   owner was killed.",
        elsewhere: "nginx `state_path`; httpd `MDStoreDir`; Caddy `storage`",
    },
    Key {
        name: "challenge",
        group: ALL,
        value: fill!(
            Choices(&[
                ("auto", ChallengeChoice::Auto),
                ("http-01", ChallengeChoice::Only(AcmeChallenge::Http01)),
                (
                    "tls-alpn-01",
                    ChallengeChoice::Only(AcmeChallenge::TlsAlpn01)
                ),
                ("dns-01", ChallengeChoice::Only(AcmeChallenge::Dns01)),
            ]),
            RawAcme.challenge
        ),
        preset: Preset::Value("\"auto\""),
        sample: "\"tls-alpn-01\"",
        effect: "How the authority sees that a name leads to the front: it fetches a file from port 80 \
                 (\"http-01\"), or makes a handshake at port 443 (\"tls-alpn-01\"), in which the front shows a \
                 certificate for that alone. \"auto\": http-01 if a listener in clear text has an address of TCP, \
                 else tls-alpn-01, and after two failures in a row the other one. \"dns-01\": by a record that \
                 `dns_hook` puts into the DNS, so that the authority need not reach the front. Wildcards always \
                 are proved by that.",
        extremes: "What ends TLS before the front answers tls-alpn-01 in its place. A profile with \
                   `client_certificate` has http-01 alone, because the authority has no certificate.",
        elsewhere: "nginx `challenge` of `acme_issuer`; httpd `MDCAChallenges`; Caddy `disable_http_challenge`",
    },
    Key {
        name: "dns_hook",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a path such as \"/usr/local/bin/dns-hook\", then arguments",
                parse: parse_hook_part,
            }),
            RawAcme.acme.dns_hook
        ),
        preset: Preset::Unset("no wildcards"),
        sample: "[\"/usr/local/bin/dns-hook\", \"--zone=example.org\"]",
        effect: "The program for the challenge dns-01, with its first arguments. The front runs it as its own user, \
                 without a shell and with an empty environment, with `present NAME VALUE` after them: it must put a TXT \
                 record with this name (`_acme-challenge.example.org`) and value into the DNS, and end with 0 when all \
                 name servers have it. `cleanup NAME VALUE` takes the record out.",
        extremes: "After 120 seconds it is killed, with what it has started, and the attempt has failed. What it has \
                   left in the background at its end is killed, too. What it prints is logged if it fails.",
        elsewhere: "httpd `MDChallengeDns01`; certbot `--manual-auth-hook`; acme.sh `--dns`; lego `--dns exec`",
    },
    Key {
        name: "preflight",
        group: ALL,
        value: fill!(Switch, RawAcme.acme.preflight),
        preset: Preset::Value("true"),
        sample: "false",
        effect: "Whether the front, before an order by http-01, fetches an answer of its own over port 80 of each address \
                 of the name. If another server answers, or none, the attempt has failed and the log says what \
                 answered; the authority is not asked.",
        extremes: "Each third attempt goes on all the same, because a front behind address translation may not reach \
                   itself by its name. There `false` saves ten minutes.",
        elsewhere: "cert-manager's self check; acme.sh and nginx have none",
    },
    Key {
        name: "key_type",
        group: ALL,
        value: fill!(
            Choices(&[
                ("p256", IssuedKeyType::P256),
                ("p384", IssuedKeyType::P384),
                ("rsa2048", IssuedKeyType::Rsa2048),
            ]),
            RawAcme.acme.key_type
        ),
        preset: Preset::Value("\"p256\""),
        sample: "\"rsa2048\"",
        effect: "The type of new keys; each certificate has a new one.",
        extremes: "With \"rsa2048\" a handshake costs several times as much CPU; clients from before about 2010 know \
                   nothing else.",
        elsewhere: "nginx `acme_certificate` with `key=`; httpd `MDPrivateKeys`; Caddy `key_type`",
    },
    Key {
        name: "profile",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a name such as \"shortlived\"",
                parse: parse_name,
            }),
            RawAcme.acme.profile
        ),
        preset: Preset::Unset("the authority's default"),
        sample: "\"tlsserver\"",
        effect: "The authority's profile of certificates, such as Let's Encrypt's \"classic\", \"tlsserver\" and \
                 \"shortlived\" (six days).",
        extremes: "An authority that does not know it refuses the order.",
        elsewhere: "httpd `MDProfile`; Caddy `profile`",
    },
    Key {
        name: "eab_key_id",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "the id of a key such as \"kid-1\"",
                parse: parse_name,
            }),
            RawAcme.eab_key_id
        ),
        preset: Preset::Unset("the account is bound to no other"),
        sample: "\"kid-1\"",
        effect: "The id of the key by which the front's account is bound to one that you have with the authority \
                 (RFC 8555, section 7.3.4). `eab_hmac_file` has the key.",
        extremes: "It is used once, when the account is made: ZeroSSL, Google and Sectigo ask for it, Let's Encrypt does \
                   not.",
        elsewhere: "nginx `external_account_key`; httpd `MDExternalAccountBinding`; Caddy `acme_eab`",
    },
    Key {
        name: "eab_hmac_file",
        group: ALL,
        value: fill!(
            Optional(file_path("a path such as \"/etc/catamaran/eab.key\"")),
            RawAcme.eab_hmac_file
        ),
        preset: Preset::Unset("the account is bound to no other"),
        sample: "\"/etc/catamaran/eab.key\"",
        effect: "The file with the key of `eab_key_id` in its first line, in base64url as the authority shows it.",
        extremes: "Others must not be able to read it.",
        elsewhere: "nginx `external_account_key`; httpd `MDExternalAccountBinding`; Caddy `acme_eab`",
    },
    Key {
        name: "ca_file",
        group: ALL,
        value: fill!(
            Optional(file_path("a path such as \"/etc/ssl/own-ca.pem\"")),
            RawAcme.ca_file
        ),
        preset: Preset::Unset("the system's authorities"),
        sample: "\"/etc/ssl/own-ca.pem\"",
        effect: "The PEM file with the authorities that may issue the certificate of the directory's own server.",
        extremes: "For an authority of your own. The system's trust is never changed.",
        elsewhere: "nginx `ssl_trusted_certificate` of `acme_issuer`; httpd `MDCACertificateFile`",
    },
];

/// The directory in which the packaged unit may keep state.
const STATE_DIR: &str = "/var/lib/catamaran/acme";

const CA_HINT: &str =
    "install `ca-certificates`, or write `ca_file` with the authority of the directory's server";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_can_be_proved_are_taken() {
        assert_eq!(
            parse_dns_name("WWW.example.org").unwrap(),
            "www.example.org"
        );
        for bad in [
            "",
            "localhost",
            "10.0.0.1",
            "a..b",
            "-a.b",
            "a_b.c",
            "a.b/",
            "*.",
            "é.fr",
        ] {
            assert!(parse_dns_name(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_dns_name("*.Example.org").unwrap(), "*.example.org");
        for bad in [
            "*.org",
            "*.*.example.org",
            "a.*.example.org",
            "*example.org",
        ] {
            assert!(parse_dns_name(bad).is_err(), "{bad}");
        }
        assert!(parse_acme_name("*.example.org").is_err());
    }

    #[test]
    fn only_challenges_that_the_front_can_answer_are_tried() {
        use AcmeChallenge::{Dns01, Http01, TlsAlpn01};
        let chosen = |choice: ChallengeChoice, client_certificate, has_clear| {
            let mut profile = TlsConfig::new("www", Vec::new());
            profile.settings.client_certificate = client_certificate;
            choice.challenges(&profile, has_clear)
        };
        let (off, optional) = (ClientCertificate::Off, ClientCertificate::Optional);
        let only = ChallengeChoice::Only;
        for (choice, clients, has_clear, expected) in [
            (
                ChallengeChoice::Auto,
                off,
                true,
                &[Http01, TlsAlpn01] as &[_],
            ),
            (ChallengeChoice::Auto, off, false, &[TlsAlpn01]),
            (ChallengeChoice::Auto, optional, true, &[Http01]),
            (ChallengeChoice::Auto, optional, false, &[]),
            (only(Http01), off, true, &[Http01]),
            (only(Http01), off, false, &[]),
            (only(Dns01), optional, false, &[Dns01]),
            (only(TlsAlpn01), off, true, &[TlsAlpn01]),
            (only(TlsAlpn01), optional, true, &[]),
        ] {
            assert_eq!(
                chosen(choice, clients, has_clear),
                expected,
                "{choice:?} {clients:?}"
            );
        }
    }

    #[test]
    fn a_directory_is_https() {
        assert_eq!(parse_directory("letsencrypt").unwrap(), LETS_ENCRYPT);
        assert!(parse_directory("https://127.0.0.1:14000/dir").is_ok());
        for bad in ["", "lets-encrypt", "http://ca.test/dir", "ca.test"] {
            assert!(parse_directory(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_contact("a@b.test").unwrap(), "mailto:a@b.test");
        assert_eq!(parse_contact("mailto:a@b.test").unwrap(), "mailto:a@b.test");
        for bad in ["", "a", "@b.test", "a@b", "a b@c.test"] {
            assert!(parse_contact(bad).is_err(), "{bad}");
        }
    }
}
