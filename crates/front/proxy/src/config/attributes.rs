//! The facts about a request, besides its head, that an AJP backend is sent.

use catamaran_message::FieldName;

use super::auth::AuthSource;

/// AJP13's user and named attributes, and where their values come from.
///
/// Backends over HTTP/1.1 get none. In docs/reference.md these are `remote_user` and `auth_type` of
/// `[upstream.NAME]`, and `[upstream.NAME.attributes]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestAttributes {
    /// Who tells the user; `None`: nobody does.
    pub remote_user: Option<UserSource>,
    /// How the user was authenticated; sent only with requests that have a user.
    pub auth_type: Option<AttributeSource>,
    /// The named attributes, each with the source of its value.
    pub named: Vec<(String, AttributeSource)>,
}

/// Who tells the user of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserSource {
    /// A trusted proxy, which authenticated the user, in the last line of this field. The field is removed from every
    /// request.
    Header(FieldName),
    /// The sign-on of the request's route.
    Auth,
    /// The client's certificate, which the front or a proxy of `proxy_protocol_from` has verified.
    Certificate(CertificateUser),
}

/// The part of a client's certificate that is its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateUser {
    /// The common name of the subject. mod_ssl: `SSLUserName SSL_CLIENT_S_DN_CN`.
    SubjectCn,
    /// The first address of mail among the alternative names. mod_ssl: `SSLUserName SSL_CLIENT_SAN_Email_0`.
    SanEmail,
}

/// The source of an attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeSource {
    /// A fixed text.
    Text(String),
    /// The value of the last line of a field, if a trusted proxy sent it. The field is removed from every request.
    Header(FieldName),
    /// A fact about the client; if trusted proxies forwarded the request, about the client behind them.
    Client(ClientFact),
    /// A fact about the TLS that the client itself used: to the front, or to a proxy of `proxy_protocol_from` that
    /// reports it.
    Tls(TlsFact),
    /// A value that the sign-on of the request's route gives.
    Auth(AuthSource),
}

/// A fact about the client or about the URL that it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFact {
    /// The client's address.
    Address,
    /// The client's port, if it is known.
    Port,
    /// The scheme that the client used: `http` or `https`.
    Scheme,
    /// The host that the client asked for, without the port.
    Host,
}

/// A fact about the client's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFact {
    /// The version of TLS, such as `TLSv1.3`.
    Version,
    /// The cipher suite as OpenSSL names it.
    Cipher,
    /// The name that the client asked for (SNI).
    Sni,
    /// SHA-256 of the client's certificate, in hexadecimal.
    CertificateSha256,
    /// The common name (CN) of the client's certificate. mod_ssl: `SSL_CLIENT_S_DN_CN`.
    CertificateCn,
}

impl RequestAttributes {
    /// The request fields from which values are taken.
    pub fn headers(&self) -> impl Iterator<Item = &FieldName> {
        let named = self.named.iter().map(|(_, source)| source);
        let sources = self.auth_type.iter().chain(named);
        let of_sources = sources.filter_map(|source| match source {
            AttributeSource::Header(name) => Some(name),
            AttributeSource::Text(_)
            | AttributeSource::Client(_)
            | AttributeSource::Tls(_)
            | AttributeSource::Auth(_) => None,
        });
        let of_user = match &self.remote_user {
            Some(UserSource::Header(name)) => Some(name),
            Some(UserSource::Auth | UserSource::Certificate(_)) | None => None,
        };
        of_user.into_iter().chain(of_sources)
    }
}
