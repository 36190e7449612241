//! The request as it is sent to a backend: cleaned, with the front's own fields. It is the same for each attempt,
//! except for `Host` and fields about certificates, which depend on the backend.

use std::borrow::Cow;
use std::net::IpAddr;

use bytes::Bytes;

use catamaran_cache::vary::RequestFields;
use catamaran_http1::Fault;
use catamaran_message::name::{COOKIE, HOST};
use catamaran_message::{
    Authority, BodyLength, FieldName, Fields, Id, NameRef, Request, RequestHead, Traits,
};
use catamaran_tls::Facts as TlsFacts;
use catamaran_upstream::{ClientFacts, Lease, Preview, RequestError, preview, preview_upgrade};
use http::{Method, StatusCode};

use super::failure::Failure;
use crate::boxed::in_box;
use crate::config::{BackendConfig, ClientCertFields, ListenerConfig, QueryForm};
use crate::counters::{Culprit, Reason};
use crate::exchange::fields::attributes::{self, Attributes};
use crate::exchange::fields::clean::{Withheld, clean_request};
use crate::exchange::fields::forwarded::{self, Identity, Sender};
use crate::exchange::fields::own::{OwnFields, ToldClient};
use crate::exchange::fields::passage::{self, Passage, Values};
use crate::exchange::fields::{certificate, claims};
use crate::exchange::grounds::Grounds;
use crate::path::NormalPath;
use crate::peer::PeerFacts;
use crate::request_id::{self, RequestId};
use crate::site::rules::Rules;
use crate::site::sticky::own_cookie::Own;
use crate::site::{Facts, Told, Upstream};
use crate::version;

/// A request on its way to a backend of one upstream: the owner of its head from the verdict to the last attempt.
/// What it borrows belongs to its exchange; [`Self::detach`] makes one for another exchange.
#[derive(Debug)]
pub(crate) struct Outgoing<'s> {
    /// The head, with cleaned fields.
    head: Box<RequestHead>,
    path: NormalPath,
    /// The value of the field `Host`.
    host: Bytes,
    client: Cow<'s, PeerFacts>,
    identity: Identity,
    /// Whether fields about the client's certificate are ours to write. If not, a trusted proxy wrote
    /// them.
    certificate_is_ours: bool,
    certificate_chain: bool,
    /// The value of the front's own cookie, which is not forwarded.
    own: Own,
    /// The named attributes and the user for AJP backends; `None`: the upstream configures none.
    attributes: Option<Box<Attributes>>,
    /// Fields that the client sent but no backend gets. They are kept only if a cache takes part.
    withheld: Option<Box<Fields>>,
    /// The front's own fields; `None` once [`Self::complete`] has added them to the head.
    own_fields: Option<OwnFields<'s>>,
    /// The protocol that the client asks to change to.
    upgrade: Option<&'s str>,
    /// The id that a trusted proxy gave the request. Most have none.
    pub(crate) given_id: Option<Bytes>,
    /// The reason to be counted, if fields were dropped.
    pub(crate) dropped: Option<Reason>,
}

/// The facts that a backend learns besides the request line and the fields. A cache has them in its key. If they name
/// the client, a response is stored only if it allows that for requests with credentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BesideFields<'r> {
    /// Whether the client came over TLS.
    pub(crate) is_secure: bool,
    /// The value of `Host`: the host, and the port unless it is the usual one.
    pub(crate) host: &'r [u8],
    /// The port that the client used, as backends over HTTP are told; `None`: they are not told.
    pub(crate) port: Option<u16>,
    /// The address to which the client connected.
    pub(crate) local: IpAddr,
    /// The attributes of AJP13 for the request.
    pub(crate) attributes: Option<&'r Attributes>,
    /// Whether the backend learns who the client is, by its certificate or as a user.
    pub(crate) names_client: bool,
}

/// The purpose for which a request is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes<'s> {
    pub(crate) upstream: &'s Upstream,
    /// The protocol of the tunnel that the client wants and the route allows. Such a request is sent over HTTP even to
    /// AJP backends.
    pub(crate) upgrade: Option<&'s str>,
    /// Whether a cache takes part in the request.
    pub(crate) is_cached: bool,
}

impl<'s> Outgoing<'s> {
    /// Makes the request for the backends of an upstream: cleans the received head; `path` is the path to forward.
    /// Boxed, because the decision and the wait for a backend move it several times.
    pub(crate) fn new(
        grounds: &Grounds<'s>,
        sender: &Sender,
        wishes: Wishes<'s>,
        mut head: Box<RequestHead>,
        path: NormalPath,
    ) -> Result<Box<Self>, Failure> {
        let (site, client) = (grounds.site, grounds.peer);
        let Sender { peer, identity } = sender;
        let sticky = wishes.upstream.sticky.as_ref();
        let own_cookie = sticky.and_then(|sticky| sticky.own_cookie.as_ref());
        let own = own_cookie.and_then(|cookie| cookie.take(&mut head.headers));
        let mut withheld = Withheld::new(wishes.is_cached);
        let underscored = clean(&mut head, grounds, peer.trusted, &mut withheld)?;
        let over_http = wishes.upstream.wants_forwarded_fields() || wishes.upgrade.is_some();
        if peer.trusted && !over_http {
            settle_authority(&mut head, identity.secure);
        }
        let host = settle_host(&mut head, client);
        let attributes = wishes.upstream.config().attributes.as_ref().map(|wanted| {
            let authority = head.authority.as_ref();
            let told = attributes::Told {
                peer: *peer,
                identity: *identity,
                host: authority.map_or(&host, |it| &it.host),
                tls: client.tls_facts(),
            };
            Attributes::take(wanted, &mut head.headers, &mut withheld, told)
        });
        let id_name = site.server.request_id.as_ref().map(NameRef::from);
        let given_id =
            id_name.and_then(|name| request_id::take_given(&mut head.headers, name, peer.trusted));
        let own_fields = OwnFields {
            told: over_http.then(|| ToldClient::new(sender, &head, client.local)),
            via: site.via.as_deref(),
            id: id_name
                .filter(|_| given_id.is_none())
                .map(|name| (name, grounds.id)),
        };
        Ok(in_box(|| Self {
            head,
            path,
            host,
            client: Cow::Borrowed(client),
            identity: *identity,
            certificate_is_ours: client.front_verifies() || !peer.trusted,
            certificate_chain: client.tells_chain(),
            own,
            attributes,
            withheld: withheld.into_fields(),
            own_fields: Some(own_fields),
            upgrade: wishes.upgrade,
            given_id,
            dropped: (underscored > 0)
                .then(|| Reason::new(Culprit::Client, "underscore-field-dropped")),
        }))
    }

    /// Adds the front's own fields, unless they were added before. Called before a backend is asked; an answer from a
    /// stored response does not need them.
    pub(crate) fn complete(&mut self) {
        if let Some(own) = self.own_fields.take() {
            let head = &mut *self.head;
            own.add_to(&mut head.headers, &self.host, head.version);
        }
    }

    /// Changes the request as the route's rules say. Returns the changes that the route makes to its responses.
    pub(crate) fn apply_route<'r>(&mut self, rules: &'r Rules, id: RequestId) -> Box<Passage<'r>> {
        if !rules.request_fields().is_empty() {
            self.complete();
        }
        // Not `values`, which borrows of the whole request.
        let values = Values {
            authority: &self.host,
            client: self.identity.ip,
            id,
            secure: self.identity.secure,
            path: &self.path.forward,
            rest: b"",
            query: self.head.target.query.as_deref(),
            captured: self.path.captured(),
        };
        passage::edit_request(rules, values, &mut self.head.headers);
        Box::new(Passage::new(rules, values, self.host.clone()))
    }

    /// The changes that a route makes to the responses.
    pub(crate) fn passage<'r>(&self, rules: &'r Rules, id: RequestId) -> Box<Passage<'r>> {
        Box::new(Passage::new(rules, self.values(id), self.host.clone()))
    }

    fn values(&self, id: RequestId) -> Values<'_> {
        Values {
            authority: &self.host,
            client: self.identity.ip,
            id,
            secure: self.identity.secure,
            path: &self.path.forward,
            rest: b"",
            query: self.head.target.query.as_deref(),
            captured: self.path.captured(),
        }
    }

    /// The request for an exchange of its own, with all the fields that a backend gets.
    pub(crate) fn detach(&self) -> Outgoing<'static> {
        let mut head = self.head.clone();
        if let Some(own) = &self.own_fields {
            own.add_to(&mut head.headers, &self.host, head.version);
        }
        Outgoing {
            head,
            path: self.path.clone(),
            host: self.host.clone(),
            client: Cow::Owned(PeerFacts::clone(&self.client)),
            identity: self.identity,
            certificate_is_ours: self.certificate_is_ours,
            certificate_chain: self.certificate_chain,
            own: self.own,
            attributes: self.attributes.clone(),
            withheld: self.withheld.clone(),
            own_fields: None,
            // A cache has no part in tunnels.
            upgrade: None,
            given_id: None,
            dropped: None,
        }
    }

    /// The head, for the next request to use its memory.
    pub(crate) fn into_head(self: Box<Self>) -> Box<RequestHead> {
        self.head
    }

    /// The address, port and scheme of the client.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What the connection tells of the client.
    pub(crate) fn client(&self) -> &PeerFacts {
        &self.client
    }

    pub(crate) fn head_mut(&mut self) -> &mut RequestHead {
        &mut self.head
    }

    /// All facts that a backend learns besides the request line and the fields. The function destructures the request,
    /// so that a new field does not compile until somebody has decided whether a cache must know it.
    pub(crate) fn beside_fields(&self) -> BesideFields<'_> {
        let Self {
            // The line and the fields, as the backend and as the client have them.
            head: _,
            path: _,
            withheld: _,
            host,
            client,
            identity,
            // Whose fields tell the certificate: those of a proxy are fields.
            certificate_is_ours: _,
            certificate_chain: _,
            // Chooses the backend alone.
            own: _,
            attributes,
            own_fields,
            // A cache has no part in tunnels.
            upgrade: _,
            // For the log.
            given_id: _,
            dropped: _,
        } = self;
        // No shared cache tells clients apart by their addresses.
        let Identity {
            ip: _,
            port: _,
            secure,
        } = identity;
        let PeerFacts {
            remote: _,
            local,
            // What is told of it is in the identity.
            secure: _,
            tls: _,
        } = &**client;
        BesideFields {
            is_secure: *secure,
            host,
            port: own_fields.and_then(|own| Some(own.told?.port)),
            local: local.ip(),
            attributes: attributes.as_deref(),
            names_client: self.names_client(),
        }
    }

    /// The values of all lines of a field that the client sent, whether a backend gets them or not.
    pub(crate) fn sent(&self, name: Id) -> impl Iterator<Item = &[u8]> {
        let withheld = self
            .withheld
            .iter()
            .flat_map(move |fields| fields.get_all(name));
        self.head.headers.get_all(name).chain(withheld)
    }

    /// Whether a backend learns who the client is, by its certificate or as a user.
    fn names_client(&self) -> bool {
        let facts = self.client.tls_facts();
        let headers = &self.head.headers;
        let may_claim = headers.may_have(Traits::CERTIFICATE.with(Traits::UNKNOWN));
        let mut fields = headers.iter();
        facts.is_some_and(TlsFacts::name_client)
            || self.attributes.as_ref().is_some_and(|it| it.name_user())
            || may_claim && fields.any(|field| claims::is_certificate_claim(field.name_ref()))
    }

    /// The facts from which a backend is chosen.
    pub(crate) fn facts<'r>(&'r self, rules: Option<&'r Rules>) -> Facts<'r> {
        Facts {
            unsticky: rules.is_some_and(Rules::is_unsticky),
            drained: rules.map_or(&[], Rules::drained),
            head: &self.head,
            path: &self.path,
            client: self.identity.ip,
            own: self.own,
        }
    }

    pub(crate) fn method(&self) -> &Method {
        &self.head.method
    }

    /// The method by which a retry is decided. A request for a tunnel counts as POST: it must not be sent again once it
    /// was sent.
    pub(crate) fn method_for_retry(&self) -> &Method {
        match self.upgrade {
            Some(_) => &Method::POST,
            None => &self.head.method,
        }
    }

    /// The protocol to which the client wants to upgrade; `None`: no tunnel is asked for.
    pub(crate) fn upgrade(&self) -> Option<&'s str> {
        self.upgrade
    }

    /// Whether the client accepts interim responses: they exist since HTTP/1.1.
    pub(crate) fn takes_interims(&self) -> bool {
        version::has_chunks(self.head.version)
    }

    pub(crate) fn body(&self) -> BodyLength {
        self.head.body
    }

    pub(crate) fn expect_continue(&self) -> bool {
        self.head.expect_continue
    }

    /// Encodes the request on a leased connection. `told` has the attributes for AJP that depend on the choice of the
    /// backend.
    pub(crate) fn send(
        &self,
        lease: &mut Lease<'_>,
        backend: &BackendConfig,
        told: Told<'_>,
    ) -> Result<(), RequestError> {
        self.with_parts(backend, told, |request, client| match self.upgrade {
            Some(token) => lease.send_upgrade(request, token),
            None => lease.send_request(request, client, backend),
        })
    }

    /// The bytes and facts that [`Self::send`] would send to a backend, without sending them.
    pub(crate) fn preview(
        &self,
        backend: &BackendConfig,
        told: Told<'_>,
    ) -> Result<Preview, RequestError> {
        self.with_parts(backend, told, |request, client| match self.upgrade {
            Some(token) => preview_upgrade(request, token),
            None => preview(request, client, backend),
        })
    }

    /// Calls `act` with the request and the client's facts in the form for this backend.
    fn with_parts<T>(
        &self,
        backend: &BackendConfig,
        told: Told<'_>,
        act: impl FnOnce(&Request<'_>, &ClientFacts<'_>) -> T,
    ) -> T {
        let own_headers = self.headers_of(backend);
        let called = backend.sent_host();
        let request = Request {
            // Over HTTP/2 a tunnel is asked for by CONNECT.
            method: match self.upgrade {
                Some(_) => &Method::GET,
                None => &self.head.method,
            },
            path: &self.path.forward,
            query: self.head.target.query.as_deref(),
            host: called.map_or(&self.host, |called| called.text()),
            headers: own_headers.as_ref().unwrap_or(&self.head.headers),
            body: self.head.body,
        };
        let attributes = self.attributes.as_ref().map(|it| it.for_ajp());
        let asked = self.head.authority.as_ref();
        let authority = called.map_or(asked, |called| Some(&called.authority));
        let client = ClientFacts {
            version: self.head.version,
            remote_ip: self.identity.ip,
            remote_port: self.identity.port,
            local_ip: self.client.local.ip(),
            server_name: &self.server_name(authority),
            server_port: self.server_port(authority),
            secure: self.identity.secure,
            jvm_route: told.route,
            activation: told.activation,
            tls: self.client.tls_facts(),
            certificate_chain: self.certificate_chain,
            attributes: attributes.as_deref().unwrap_or_default(),
        };
        act(&request, &client)
    }

    /// The fields for a backend that gets another `Host`, or the client's TLS in fields, or that still lack the front's
    /// own.
    ///
    /// `None`: the head's fields are right. Backends of an upstream differ in this, so the head itself is not changed.
    fn headers_of(&self, backend: &BackendConfig) -> Option<Fields> {
        let told = self.told_certificate(backend);
        let called = backend.sent_host();
        let own = self.own_fields.as_ref();
        if told.is_none() && called.is_none() && own.is_none() {
            return None;
        }
        let mut headers = self.head.headers.clone();
        if let Some(own) = own {
            own.add_to(&mut headers, &self.host, self.head.version);
        }
        if let Some(called) = called {
            headers.insert(HOST, called.text());
        }
        if let Some(facts) = told {
            let form = backend.client_cert_fields;
            certificate::announce(form, facts, self.certificate_chain, &mut headers);
        }
        Some(headers)
    }

    /// The facts about the client's TLS that a backend gets in fields; `None`: it gets none.
    fn told_certificate(&self, backend: &BackendConfig) -> Option<&TlsFacts> {
        let over_http = backend.speaks_http() || self.upgrade.is_some();
        let wanted = backend.client_cert_fields != ClientCertFields::Off;
        let is_told = over_http && wanted && self.certificate_is_ours;
        self.client.tls_facts().filter(|_| is_told)
    }

    /// The server's name as the client sees it.
    fn server_name<'a>(&self, authority: Option<&'a Authority>) -> Cow<'a, [u8]> {
        match authority {
            Some(authority) => Cow::Borrowed(&authority.host),
            None if self.client.local.port() == 0 => Cow::Borrowed(UNIX_HOST.as_bytes()),
            None => Cow::Owned(self.client.local.ip().to_string().into()),
        }
    }

    /// The usual port of the scheme that the client used: 443 or 80.
    fn usual_port(&self) -> u16 {
        if self.identity.secure { 443 } else { 80 }
    }

    /// The server's port as the client sees it.
    fn server_port(&self, authority: Option<&Authority>) -> u16 {
        let default = self.usual_port();
        match authority {
            Some(authority) => authority.port.unwrap_or(default),
            None if self.client.local.port() == 0 => default,
            None => self.client.local.port(),
        }
    }
}

impl RequestFields for Outgoing<'_> {
    fn lines(&self, name: &FieldName, line: &mut dyn FnMut(&[u8])) {
        let name = NameRef::from(name);
        let head = &self.head;
        let mut completed;
        let headers = match &self.own_fields {
            Some(own) if own.has(name) => {
                completed = head.headers.clone();
                own.add_to(&mut completed, &self.host, head.version);
                &completed
            }
            _ => &head.headers,
        };
        headers.get_all(name).for_each(&mut *line);
        for value in self.withheld.iter().flat_map(|fields| fields.get_all(name)) {
            // No field has such a byte: what a backend got is never taken for what it did not get.
            line(&[b"\x01", value].concat());
        }
        // What the front itself says of the client's TLS is written for each backend.
        if let Some(facts) = self.client.tls_facts()
            && claims::is_certificate_claim(name)
        {
            line(facts.cipher.as_bytes());
            line(facts.client_sha256.as_deref().unwrap_or("-").as_bytes());
        }
    }
}

/// Removes from a received head what no backend gets of it. Returns how many fields were dropped because of an
/// underscore in their name.
fn clean(
    head: &mut RequestHead,
    grounds: &Grounds<'_>,
    is_trusted: bool,
    withheld: &mut Withheld,
) -> Result<usize, Failure> {
    let Grounds {
        site,
        listener,
        peer,
        ..
    } = grounds;
    if listener.query == QueryForm::Escaped {
        head.target.escape_query();
    }
    let underscored_names = &site.server.underscore_fields;
    let underscored = clean_request(&mut head.headers, underscored_names, is_trusted, withheld);
    if head.headers.join_cookies() {
        check_cookie(&head.headers, listener)?;
    }
    if peer.front_verifies() {
        // The front itself verifies certificates of clients: those that a proxy tells are not used.
        withheld.take(&mut head.headers, claims::is_certificate_claim);
    }
    Ok(underscored)
}

/// Measures the line that several lines of cookies became, as the listener measures each line.
fn check_cookie(headers: &Fields, listener: &ListenerConfig) -> Result<(), Failure> {
    let len = headers.get(COOKIE).map_or(0, <[u8]>::len);
    if COOKIE.spelling().len() + ": ".len() + len > listener.limits.line_bytes {
        Err(Failure::client(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Fault::FieldTooLong.token(),
        ))
    } else {
        Ok(())
    }
}

/// Takes the authority that a trusted proxy was asked for, if it says that.
fn settle_authority(head: &mut RequestHead, secure: bool) {
    let own = head.authority.as_ref();
    if let Some(asked) = forwarded::asked_of_proxy(&head.headers, own, secure) {
        head.authority = Some(asked);
    }
}

/// Sets `Host` to what the client asked for, or to the address it connected to if it named no host.
fn settle_host(head: &mut RequestHead, client: &PeerFacts) -> Bytes {
    if let (Some(authority), Some(host)) = (&head.authority, head.headers.get(HOST))
        && says(authority, host)
    {
        return head.headers.share(host);
    }
    let host = match &head.authority {
        Some(authority) => authority.to_bytes(),
        None if client.local.port() == 0 => Bytes::from_static(UNIX_HOST.as_bytes()),
        None => Bytes::from(client.local.to_string()),
    };
    head.headers.insert(HOST, &host);
    host
}

/// Whether a received `Host` is already spelled as the front would write it.
fn says(authority: &Authority, host: &[u8]) -> bool {
    match (host.strip_prefix(&authority.host[..]), authority.port) {
        (Some(rest), None) => rest.is_empty(),
        (Some([b':', digits @ ..]), Some(port)) => {
            itoa::Buffer::new().format(port).as_bytes() == digits
        }
        _ => false,
    }
}

/// The host for a request without one that came over a Unix socket, which has no address.
const UNIX_HOST: &str = "localhost";
