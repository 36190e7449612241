//! `remote_user` and `auth_type` of an upstream, and `[upstream.NAME.attributes]`: the facts about a request that AJP
//! backends get besides its head.

use catamaran_proxy::config::FieldName;
use catamaran_proxy::config::{AttributeSource, CertificateUser, ClientFact, TlsFact, UserSource};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::auth;
use super::route::reserved_of_requests;
use crate::key::{ALL, Fill, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::route::parse_field_name;
use crate::value::text::parse_label;
use crate::value::{Complaint, Optional, Syntax, Values};

/// The name of the table.
pub(super) const NAME: &str = "attributes";

/// Reads the table of attributes. Also faults `auth_type` without `remote_user` in the table `upstream`.
pub(super) fn read(
    value: Option<&Spanned<DeValue<'_>>>,
    upstream: &mut Table<'_>,
    report: &mut Report,
) -> Vec<(String, AttributeSource)> {
    if upstream.has("auth_type") && !upstream.has("remote_user") {
        let message = "`auth_type` has no use without `remote_user`";
        upstream.push(Finding::fault(message, upstream.place_of("auth_type")).hint("remove it"));
    }
    value.map_or_else(Vec::new, |value| named(value, report))
}

/// Reads the table of attributes; more of them than [`ATTRIBUTES_MAX`] are a fault.
fn named(value: &Spanned<DeValue<'_>>, report: &mut Report) -> Vec<(String, AttributeSource)> {
    let Some((place, entries)) = table(SECTION.header, value, report) else {
        return Vec::new();
    };
    let mut table = Table::new(&SECTION, place.clone(), entries).except_those(|_| true);
    let named = each(entries, &mut table);
    if entries.len() > ATTRIBUTES_MAX {
        let message = format!("there are more than {ATTRIBUTES_MAX} attributes");
        let hint = "each goes into the packet of every request; keep what the application reads";
        table.push(Finding::fault(message, place).hint(hint));
    }
    table.finish(report);
    named
}

/// Reads the attributes. Those with faults are reported and left out.
fn each(entries: &DeTable<'_>, table: &mut Table<'_>) -> Vec<(String, AttributeSource)> {
    let mut named = Vec::new();
    for (name, value) in entries {
        if OURS.contains(&name.get_ref().as_ref()) {
            let message = format!("`{}` is the front's own attribute", name.get_ref());
            table.push(Finding::fault(message, name.span()).hint("give it another name"));
            continue;
        }
        if let Err(error) = parse_label(name.get_ref()) {
            let message = format!("the name of an attribute {error}");
            table.push(Finding::fault(message, name.span()));
            continue;
        }
        match SOURCE.read(value) {
            Ok(source) => named.push((name.get_ref().to_string(), source)),
            Err(complaints) => {
                for Complaint { message, span } in complaints {
                    let message = format!("`{}` {message}", name.get_ref());
                    table.push(Finding::fault(message, span));
                }
            }
        }
    }
    named
}

/// Why a text is not the source of an attribute's value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("must be {SOURCES}")]
    Kind,
    #[error(
        "must be \"auth\", \"tls:subject_cn\", \"tls:san_email\", or \"header:NAME\", a field that a proxy of `trusted_proxies` sends"
    )]
    User,
    #[error("{0}")]
    Field(String),
    #[error("names the field `{0}`, {1}")]
    Reserved(FieldName, &'static str),
    #[error("has a control character, or is not 1 to {TEXT_MAX} bytes")]
    Text,
}

/// Parses who tells the user: `header:X-User`, `auth`, or a part of the certificate such as `tls:subject_cn`.
pub(super) fn parse_user(text: &str) -> Result<UserSource, SourceError> {
    match text {
        "auth" => return Ok(UserSource::Auth),
        "tls:subject_cn" => return Ok(UserSource::Certificate(CertificateUser::SubjectCn)),
        "tls:san_email" => return Ok(UserSource::Certificate(CertificateUser::SanEmail)),
        _ => {}
    }
    let name = text.strip_prefix("header:").ok_or(SourceError::User)?;
    parse_unreserved_field(name).map(UserSource::Header)
}

/// Parses the source of a value, such as `text:internal`, `header:X-User` or `tls:version`.
fn parse_source(text: &str) -> Result<AttributeSource, SourceError> {
    let (kind, rest) = text.split_once(':').ok_or(SourceError::Kind)?;
    Ok(match (kind, rest) {
        ("text", rest) => {
            let fits = (1..=TEXT_MAX).contains(&rest.len()) && !rest.contains(char::is_control);
            AttributeSource::Text(fits.then(|| rest.to_owned()).ok_or(SourceError::Text)?)
        }
        ("auth", source) => AttributeSource::Auth(
            auth::parse_source(source).map_err(|error| SourceError::Field(error.to_string()))?,
        ),
        ("header", name) => AttributeSource::Header(parse_unreserved_field(name)?),
        ("client", "address") => AttributeSource::Client(ClientFact::Address),
        ("client", "port") => AttributeSource::Client(ClientFact::Port),
        ("client", "scheme") => AttributeSource::Client(ClientFact::Scheme),
        ("client", "host") => AttributeSource::Client(ClientFact::Host),
        ("tls", "version") => AttributeSource::Tls(TlsFact::Version),
        ("tls", "cipher") => AttributeSource::Tls(TlsFact::Cipher),
        ("tls", "sni") => AttributeSource::Tls(TlsFact::Sni),
        ("tls", "certificate_sha256") => AttributeSource::Tls(TlsFact::CertificateSha256),
        ("tls", "certificate_cn") => AttributeSource::Tls(TlsFact::CertificateCn),
        _ => return Err(SourceError::Kind),
    })
}

/// Parses the name of a field that clients, or proxies before the front, may send; the front's own are refused.
fn parse_unreserved_field(name: &str) -> Result<FieldName, SourceError> {
    let field = parse_field_name(name).map_err(|error| SourceError::Field(error.to_string()))?;
    match reserved_of_requests(&field) {
        Some(why) => Err(SourceError::Reserved(field, why)),
        None => Ok(field),
    }
}

/// The value of a key that names the source of an attribute's value.
pub(super) const SOURCE: Syntax<AttributeSource, SourceError> = Syntax {
    what: SOURCES,
    parse: parse_source,
};

/// Attributes that the front writes itself.
const OURS: [&str; 4] = [
    "AJP_REMOTE_PORT",
    "AJP_LOCAL_ADDR",
    "AJP_SSL_PROTOCOL",
    "JK_LB_ACTIVATION",
];

/// The most attributes: a packet of 8 KiB must have room for the request's head, too.
const ATTRIBUTES_MAX: usize = 64;

/// The most bytes of a fixed text.
const TEXT_MAX: usize = 1024;

const SOURCES: &str = "\"text:...\", \"header:NAME\", \"auth:FIELD\", \"client:address\", \"client:port\", \
    \"client:scheme\", \"client:host\", \"tls:version\", \"tls:cipher\", \"tls:sni\", \
    \"tls:certificate_sha256\" or \"tls:certificate_cn\"";

pub(crate) static SECTION: Section = Section {
    header: "[upstream.NAME.attributes]",
    intro: "Request attributes for applications behind AJP, which read them with \
            `request.getAttribute`. Each key is the name of one; up to 64. Tomcat answers 403 to a request \
            with an attribute that it does not know: its connector needs \
            `allowedRequestAttributesPattern`, such as `\"TENANT|SITE\"` (WildFly: \
            `allowed-request-attributes-pattern`). [routes.md](routes.md#what-an-application-behind-ajp-is-told) \
            has an example.",
    keys: &[Part::all(&KEYS)],
    later: &[],
};

static KEYS: &[Key<Option<AttributeSource>>] = &[Key {
    name: "NAME",
    group: ALL,
    value: &Fill(Optional(SOURCE), |source: &mut Option<AttributeSource>| {
        source
    }),
    preset: Preset::Unset("no attribute of that name"),
    sample: "\"header:X-Tenant\"",
    effect: "Where the value of the attribute `NAME` comes from. `text:` is always the same. `header:` \
                 is the last line of a field. `client:` is the client as `trusted_proxies` tell it, and \
                 the host that it asked for. `auth:` is a field of the answer of the route's sign-on, or `auth:user` its user. `tls:` is the client's own TLS with the front, or with a proxy of `proxy_protocol_from` that tells of it. A request \
                 that has no such value has no such attribute.",
    extremes: "A field is believed from `trusted_proxies` only, and removed from every request of this \
                   upstream, so that no client can say what only a proxy may.",
    elsewhere: "mod_jk `JkEnvVar`; mod_proxy_ajp: variables that begin with `AJP_`",
}];
