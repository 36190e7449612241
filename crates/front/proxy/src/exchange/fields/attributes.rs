//! The user and the named attributes of AJP13 for one request, as its upstream configures them.
//!
//! Fields from which their values come are removed from every request, and are believed only if a trusted proxy sent
//! them: a client cannot claim to be a user.

use std::sync::Arc;

use bytes::Bytes;
use catamaran_message::{FieldName, Fields};
use catamaran_tls::Facts;
use catamaran_upstream::{Attribute, IpText};

use crate::config::{
    AttributeSource, CertificateUser, ClientFact, RequestAttributes, TlsFact, UserSource,
};
use crate::exchange::fields::claims;
use crate::exchange::fields::clean::withhold;
use crate::exchange::fields::forwarded::Sender;
use crate::exchange::fields::passage::scheme;
use crate::exchange::fields::signed_on::SignedOn;

/// The values of AJP13's user and named attributes for one request.
#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    wanted: Arc<RequestAttributes>,
    user: Option<Bytes>,
    auth_type: Option<Bytes>,
    /// The values of the named attributes, in the order of the configuration; `None`: the request has no such value.
    named: Box<[Option<Bytes>]>,
}

/// The facts about a request from which the values are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttributeFacts<'r> {
    pub(crate) sender: Sender,
    /// The host that the client asked for, without the port.
    pub(crate) host: &'r [u8],
    pub(crate) tls: Option<&'r Facts>,
    /// What the route's sign-on told; `None`: the route has none.
    pub(crate) signed_on: Option<&'r SignedOn>,
}

impl Attributes {
    /// Makes the values for a request, and removes the fields from which only they may come.
    pub(crate) fn take(
        wanted: &Arc<RequestAttributes>,
        headers: &mut Fields,
        withheld: &mut Option<Fields>,
        facts: AttributeFacts<'_>,
    ) -> Box<Self> {
        let believed = Some(&*headers).filter(|_| facts.sender.peer.trusted);
        let value_of = |source: &AttributeSource| value(source, believed, facts);
        let user = match &wanted.remote_user {
            Some(UserSource::Header(name)) => believed.and_then(|fields| last_line(fields, name)),
            Some(UserSource::Auth) => facts.signed_on.and_then(|told| told.user.clone()),
            Some(UserSource::Certificate(part)) => certificate_user(*part, facts),
            None => None,
        };
        // Without a user nobody has been authenticated.
        let auth_type = wanted.auth_type.as_ref().filter(|_| user.is_some());
        let named = wanted.named.iter();
        let attributes = Self {
            auth_type: auth_type.and_then(value_of),
            named: named.map(|(_, source)| value_of(source)).collect(),
            user,
            wanted: Arc::clone(wanted),
        };
        withhold(headers, withheld, |field| {
            let mut sources = wanted.headers();
            sources.any(|source| claims::are_alike(source.into(), field.name_ref()))
        });
        Box::new(attributes)
    }

    /// The names and values of the named attributes, on which the response may depend even for clients without
    /// credentials. The user is not among them: see [`Self::user`].
    pub(crate) fn told_of_all(&self) -> impl Iterator<Item = (&str, Option<&[u8]>)> {
        let Self {
            wanted,
            user: _,
            auth_type: _,
            named,
        } = self;
        let names = wanted.named.iter().map(|(name, _)| &name[..]);
        names.zip(named.iter().map(Option::as_deref))
    }

    /// The user; `None`: the request has none.
    pub(crate) fn user(&self) -> Option<&Bytes> {
        self.user.as_ref()
    }

    /// The attributes as AJP13 sends them.
    pub(crate) fn for_ajp(&self) -> Vec<Attribute<'_>> {
        let user = self.user.as_deref().map(Attribute::RemoteUser);
        let auth_type = self.auth_type.as_deref().map(Attribute::AuthType);
        let names = self.wanted.named.iter().map(|(name, _)| name.as_bytes());
        let named = names.zip(&self.named).filter_map(|(name, value)| {
            let value = value.as_deref()?;
            Some(Attribute::Request { name, value })
        });
        user.into_iter().chain(auth_type).chain(named).collect()
    }
}

/// The value from a source; `None` if the request has none. `believed` has the fields, if a trusted proxy sent them.
fn value(
    source: &AttributeSource,
    believed: Option<&Fields>,
    facts: AttributeFacts<'_>,
) -> Option<Bytes> {
    match source {
        AttributeSource::Text(text) => Some(Bytes::copy_from_slice(text.as_bytes())),
        AttributeSource::Header(name) => last_line(believed?, name),
        AttributeSource::Client(fact) => client_value(*fact, facts),
        AttributeSource::Tls(fact) => tls_value(*fact, facts.tls?),
        AttributeSource::Auth(source) => facts.signed_on?.value(source),
    }
}

/// A fact about the client as the value of an attribute; `None` if it is not known.
fn client_value(fact: ClientFact, facts: AttributeFacts<'_>) -> Option<Bytes> {
    let identity = facts.sender.identity;
    Some(match fact {
        ClientFact::Address => Bytes::copy_from_slice(IpText::new(identity.ip).as_bytes()),
        ClientFact::Port => Bytes::from(identity.port?.to_string()),
        ClientFact::Scheme => Bytes::from_static(scheme(identity.secure)),
        ClientFact::Host => Bytes::copy_from_slice(facts.host),
    })
}

/// A fact about the client's TLS as the value of an attribute; `None` if it is not known.
fn tls_value(fact: TlsFact, tls: &Facts) -> Option<Bytes> {
    let text = match fact {
        TlsFact::Version => tls.version.name(),
        TlsFact::Cipher => Some(&*tls.cipher).filter(|cipher| !cipher.is_empty())?,
        TlsFact::Sni => tls.sni.as_deref()?,
        TlsFact::CertificateSha256 => tls.client_sha256.as_deref()?,
        TlsFact::CertificateCn => tls.client_cn.as_deref()?,
    };
    Some(Bytes::copy_from_slice(text.as_bytes()))
}

/// The user whose certificate the client has shown; `None`: it has shown none, or the certificate is that of a trusted
/// proxy, which is nobody's.
fn certificate_user(part: CertificateUser, facts: AttributeFacts<'_>) -> Option<Bytes> {
    let tls = facts.tls.filter(|_| !facts.sender.peer.trusted)?;
    let name = match part {
        CertificateUser::SubjectCn => tls.client_cn.as_deref()?,
        CertificateUser::SanEmail => tls.client_email.as_deref()?,
    };
    (!name.is_empty()).then(|| Bytes::copy_from_slice(name.as_bytes()))
}

/// The last line of a field, which the nearest proxy wrote; `None` if it is empty or missing. A client may have written
/// the other lines.
fn last_line(headers: &Fields, name: &FieldName) -> Option<Bytes> {
    let line = headers.get_all(name).next_back()?;
    (!line.is_empty()).then(|| Bytes::copy_from_slice(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::fields::forwarded::{Identity, Peer};

    fn wanted() -> Arc<RequestAttributes> {
        let header = |name| AttributeSource::Header(FieldName::from_static(name));
        let named = |name: &str, source| (name.to_owned(), source);
        Arc::new(RequestAttributes {
            remote_user: Some(UserSource::Header(FieldName::from_static("x-remote-user"))),
            auth_type: Some(AttributeSource::Text("SSO".to_owned())),
            named: vec![
                named("TENANT", header("x-tenant")),
                named("CLIENT", AttributeSource::Client(ClientFact::Address)),
                named("PORT", AttributeSource::Client(ClientFact::Port)),
                named("SCHEME", AttributeSource::Client(ClientFact::Scheme)),
                named("HOST", AttributeSource::Client(ClientFact::Host)),
                named("CIPHER", AttributeSource::Tls(TlsFact::Cipher)),
            ],
        })
    }

    /// The attributes that a backend gets for a request with these fields, and the number of fields that are left.
    fn told(trusted: bool, fields: &[(&'static str, &'static str)]) -> (Vec<String>, usize) {
        let mut headers = Fields::from_iter(fields.iter().copied());
        let facts = AttributeFacts {
            sender: Sender {
                peer: Peer {
                    address: ([192, 0, 2, 1], 4711).into(),
                    trusted,
                    secure: false,
                },
                identity: Identity {
                    ip: [192, 0, 2, 7].into(),
                    port: None,
                    secure: true,
                },
            },
            host: b"www.example.org",
            tls: None,
            signed_on: None,
        };
        let attributes = Attributes::take(&wanted(), &mut headers, &mut None, facts);
        let said = |attribute: Attribute<'_>| match attribute {
            Attribute::RemoteUser(user) => format!("user {}", String::from_utf8_lossy(user)),
            Attribute::AuthType(by) => format!("by {}", String::from_utf8_lossy(by)),
            Attribute::Request { name, value } => {
                let text = String::from_utf8_lossy;
                format!("{}={}", text(name), text(value))
            }
            other => panic!("{other:?}"),
        };
        let all = attributes.for_ajp().into_iter().map(said).collect();
        (all, headers.len())
    }

    const OF_CLIENT: [&str; 3] = ["CLIENT=192.0.2.7", "SCHEME=https", "HOST=www.example.org"];

    #[test]
    fn a_trusted_proxy_tells_the_user_and_the_last_line_counts() {
        let (said, left) = told(
            true,
            &[
                ("x-remote-user", "forged"),
                ("x-remote-user", "ann"),
                ("x-tenant", "blue"),
                ("accept", "*/*"),
            ],
        );
        let of_fields = ["user ann", "by SSO", "TENANT=blue"];
        assert_eq!(said, [&of_fields[..], &OF_CLIENT].concat());
        assert_eq!(left, 1, "the fields are not passed on");
    }

    #[test]
    fn nobody_else_is_believed_and_the_fields_go_all_the_same() {
        let (said, left) = told(
            false,
            &[
                ("x-remote-user", "root"),
                ("x-tenant", "blue"),
                ("x.remote.user", "root"),
                ("x_tenant", "blue"),
            ],
        );
        assert_eq!(
            (said.as_slice(), left),
            (&OF_CLIENT.map(str::to_owned)[..], 0)
        );
    }

    #[test]
    fn an_empty_user_is_none_and_has_no_kind_of_authentication() {
        let (said, _) = told(true, &[("x-remote-user", "ann"), ("x-remote-user", "")]);
        assert_eq!(said, OF_CLIENT);
    }
}
