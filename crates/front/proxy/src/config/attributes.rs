//! What an AJP backend is told of a request besides its head, as an operator wants it.

use catamaran_message::FieldName;

/// AJP13's user and named attributes, and where their values come from. Over HTTP/1.1 there are none.
/// docs/reference.md has them as `remote_user` and `auth_type` of `[upstream.NAME]`, and as
/// `[upstream.NAME.attributes]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestAttributes {
    /// The field by which a trusted proxy tells the user that it authenticated.
    pub remote_user: Option<FieldName>,
    /// How the user was authenticated; only told of requests with a user.
    pub auth_type: Option<AttributeSource>,
    /// Attributes by name.
    pub named: Vec<(String, AttributeSource)>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeSource {
    /// Always the same.
    Text(String),
    /// The last line of a field, if a trusted proxy sent it. The field is removed from every request.
    Header(FieldName),
    /// The client, trusted proxies looked through.
    Client(ClientFact),
    /// The client's own TLS, if it came over TLS to the front, or to a proxy of `proxy_protocol_from` that tells of
    /// it.
    Tls(TlsFact),
}

/// A fact of the client and of what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFact {
    /// Its address.
    Address,
    /// Its port, if it is known.
    Port,
    /// `http` or `https`.
    Scheme,
    /// The host that it asked for, without the port.
    Host,
}

/// A fact of the client's TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFact {
    /// The version, such as `TLSv1.3`.
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
    /// The fields that values come from.
    pub fn headers(&self) -> impl Iterator<Item = &FieldName> {
        let named = self.named.iter().map(|(_, source)| source);
        let sources = self.auth_type.iter().chain(named);
        let of_sources = sources.filter_map(|source| match source {
            AttributeSource::Header(name) => Some(name),
            AttributeSource::Text(_) | AttributeSource::Client(_) | AttributeSource::Tls(_) => None,
        });
        self.remote_user.iter().chain(of_sources)
    }
}
