//! The request as it is sent to a backend: cleaned, with the front's own fields. It is the same for each attempt,
//! except for `Host` and fields about certificates, which depend on the backend.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use catamaran_cache::vary::RequestFields;
use catamaran_http1::Fault;
use catamaran_message::name::{AUTHORIZATION, COOKIE, HOST};
use catamaran_message::{
    Authority, Field, FieldName, Fields, Id, NameRef, Request, RequestHead, Traits,
};
use catamaran_tls::Facts as TlsFacts;
use catamaran_upstream::{ClientFacts, Lease, Preview, RequestError, preview, preview_upgrade};
use http::{Method, StatusCode};

use super::failure::Failure;
use crate::boxed::in_box;
use crate::config::{Address, AuthKind, BackendConfig, ClientCertFields, HostName, QueryForm};
use crate::counters::{Culprit, Reason};
use crate::exchange::fields::attributes::{AttributeFacts, Attributes};
use crate::exchange::fields::clean::{clean_request, withhold};
use crate::exchange::fields::forwarded::{self, Identity, Sender};
use crate::exchange::fields::own::{ForwardedClient, OwnFields};
use crate::exchange::fields::passage::{self, Passage, Values};
use crate::exchange::fields::signed_on::{SignedOn, hide_cookies, withhold_claims};
use crate::exchange::fields::{certificate, claims};
use crate::exchange::grounds::Grounds;
use crate::path::NormalPath;
use crate::peer::PeerFacts;
use crate::request_id::{self, RequestId};
use crate::site::rules::Rules;
use crate::site::sticky::own_cookie::Own;
use crate::site::{Facts, Told, Upstream};
use crate::traces::NextParent;

/// A request on its way to a backend of one upstream: the owner of its head from the verdict to the last attempt.
/// It borrows from its exchange; [`Self::detach`] makes a copy for another exchange.
#[derive(Debug)]
pub(crate) struct Outgoing<'s> {
    /// The head, with cleaned fields.
    pub(crate) head: Box<RequestHead>,
    pub(crate) path: NormalPath,
    /// The value of the field `Host`.
    host: Bytes,
    /// The host that the route has backends get instead; mostly `None`.
    forward_host: Option<Arc<HostName>>,
    /// The facts about the client that its connection gives.
    pub(crate) client: Cow<'s, PeerFacts>,
    /// The address, port and scheme of the client.
    pub(crate) identity: Identity,
    /// Whether the front writes the fields about the client's certificate. If not, a trusted proxy wrote them.
    certificate_is_ours: bool,
    certificate_chain: bool,
    /// The value of the front's own cookie, which is not forwarded.
    own: Own,
    /// The named attributes and the user for AJP backends; `None`: the upstream configures none.
    attributes: Option<Box<Attributes>>,
    /// Whether the route has a sign-on.
    asks_auth: bool,
    /// Fields that the client sent but no backend gets. They are kept only if a cache takes part.
    withheld: Option<Box<Fields>>,
    /// Values that the route's rules have put into fields and that nothing else in a cache's key tells.
    filled: Box<[Vec<u8>]>,
    /// The front's own fields; `None` once [`Self::complete`] has added them to the head.
    own_fields: Option<OwnFields<'s>>,
    /// The protocol that the client asks to change to; `None`: no tunnel is asked for.
    pub(crate) upgrade: Option<&'s str>,
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
    /// The port that the client used, if backends get it in fields; else `None`.
    pub(crate) port: Option<u16>,
    /// The address to which the client connected.
    pub(crate) local: IpAddr,
    /// The attributes of AJP13 for the request.
    pub(crate) attributes: Option<&'r Attributes>,
    /// Values that the route's rules have put into fields.
    pub(crate) filled: &'r [Vec<u8>],
    /// Whether the backend learns who the client is, by its certificate or as a user, or the route has a sign-on, whatever
    /// that told.
    pub(crate) names_client: bool,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackendEnd<'b> {
    pub(crate) address: &'b Address,
    /// `ajp`, `http` or `https`.
    pub(crate) protocol: &'static str,
}

/// The purpose for which a request is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPurpose<'s, 'c> {
    pub(crate) upstream: &'s Upstream,
    /// The protocol of the tunnel that the client wants and the route allows. Such a request is sent over HTTP even to
    /// AJP backends.
    pub(crate) upgrade: Option<&'s str>,
    /// Whether a cache takes part in the request.
    pub(crate) is_cached: bool,
    /// Whether the route has a sign-on.
    pub(crate) asks_auth: bool,
    /// What the sign-on told; `None`: nothing.
    pub(crate) signed_on: Option<&'c SignedOn>,
}

impl<'s> Outgoing<'s> {
    /// Makes the request for the backends of an upstream: cleans the received head; `path` is the path to forward.
    /// Boxed, because the decision and the wait for a backend move it several times.
    pub(crate) fn new(
        grounds: &Grounds<'s>,
        sender: &Sender,
        purpose: RequestPurpose<'s, '_>,
        mut head: Box<RequestHead>,
        path: NormalPath,
    ) -> Result<Box<Self>, Failure> {
        let (site, client) = (grounds.site, grounds.peer);
        let Sender { peer, identity } = *sender;
        let sticky = purpose.upstream.sticky.as_ref();
        let own_cookie = sticky.and_then(|sticky| sticky.own_cookie.as_ref());
        let own = own_cookie.and_then(|cookie| cookie.take(&mut head.headers));
        let mut withheld = purpose.is_cached.then(Fields::new);
        let underscored = clean(&mut head, grounds, peer.trusted, &mut withheld)?;
        if let Some(auths) = &site.auths {
            withhold_claims(auths.claims(), &mut head.headers, &mut withheld);
        }
        let over_http = purpose.upstream.wants_forwarded_fields() || purpose.upgrade.is_some();
        // A backend over AJP gets no `X-Forwarded-Host`: it sees the host that the proxy was asked for.
        if !over_http && let Some(asked) = forwarded::asked_of_proxy(sender, &head) {
            head.authority = Some(asked);
        }
        let host = settle_host(&mut head, client);
        let attributes = purpose.upstream.config().attributes.as_ref().map(|wanted| {
            let authority = head.authority.as_ref();
            let facts = AttributeFacts {
                sender: *sender,
                host: authority.map_or(&host, |authority| &authority.host),
                tls: client.tls_facts(),
                signed_on: purpose.signed_on,
            };
            Attributes::take(wanted, &mut head.headers, &mut withheld, facts)
        });
        if let Some(signed_on) = purpose.signed_on {
            match &signed_on.auth.kind {
                AuthKind::Forward(service) => {
                    hide_cookies(&service.hide_cookies, &mut head.headers, &mut withheld);
                }
                AuthKind::Users(users) if users.pass_credentials => {}
                AuthKind::Users(_) => {
                    withhold(&mut head.headers, &mut withheld, |it| it.is(AUTHORIZATION));
                }
            }
            signed_on.add_to(&mut head.headers);
        }
        let id_name = site.server.request_id.as_ref().map(NameRef::from);
        let given_id =
            id_name.and_then(|name| request_id::take_given(&mut head.headers, name, peer.trusted));
        // An id that a trusted proxy gave stays.
        let new_id_name = id_name.filter(|_| given_id.is_none());
        let own_fields = OwnFields {
            client: over_http.then(|| ForwardedClient {
                sender: *sender,
                port: forwarded::client_port(sender, &head, client.local),
            }),
            via: site.via.as_deref(),
            id: new_id_name.map(|name| (name, grounds.id)),
            trace: grounds.trace,
        };
        Ok(in_box(|| Self {
            head,
            path,
            host,
            forward_host: None,
            client: Cow::Borrowed(client),
            identity,
            certificate_is_ours: client.front_verifies() || !peer.trusted,
            certificate_chain: client.tells_chain(),
            own,
            attributes,
            asks_auth: purpose.asks_auth,
            withheld: withheld.filter(|fields| !fields.is_empty()).map(Box::new),
            filled: Box::default(),
            own_fields: Some(own_fields),
            upgrade: purpose.upgrade,
            given_id,
            dropped: (underscored > 0)
                .then(|| Reason::new(Culprit::Client, "underscore-field-dropped")),
        }))
    }

    /// A request of the front's own to a service, about a client's request: it has the fields of `head` and those about
    /// the client.
    pub(crate) fn about(
        grounds: &Grounds<'s>,
        sender: &Sender,
        mut head: Box<RequestHead>,
        path: NormalPath,
    ) -> Box<Self> {
        let (site, client) = (grounds.site, grounds.peer);
        let host = settle_host(&mut head, client);
        let own_fields = OwnFields {
            client: Some(ForwardedClient {
                sender: *sender,
                port: forwarded::client_port(sender, &head, client.local),
            }),
            via: site.via.as_deref(),
            id: site
                .server
                .request_id
                .as_ref()
                .map(|name| (NameRef::from(name), grounds.id)),
            trace: grounds.trace,
        };
        let mut request = in_box(|| Self {
            head,
            path,
            host,
            forward_host: None,
            client: Cow::Borrowed(client),
            identity: sender.identity,
            certificate_is_ours: client.front_verifies() || !sender.peer.trusted,
            certificate_chain: client.tells_chain(),
            own: None,
            attributes: None,
            asks_auth: false,
            withheld: None,
            filled: Box::default(),
            own_fields: Some(own_fields),
            upgrade: None,
            given_id: None,
            dropped: None,
        });
        request.complete();
        request
    }

    /// The user whom AJP backends are told, for the log.
    pub(crate) fn told_user(&self) -> Option<Bytes> {
        self.attributes.as_ref()?.user().cloned()
    }

    /// Adds the front's own fields, unless they were added before. Called before a backend is asked; an answer from a
    /// stored response does not need them.
    pub(crate) fn complete(&mut self) {
        if let Some(own) = self.own_fields.take() {
            let head = &mut *self.head;
            own.add_to(&mut head.headers, &self.host, head.version);
        }
    }

    /// The fields with those of the front's own that [`Self::complete`] has not added.
    fn with_own_fields(&self) -> Fields {
        let mut headers = self.head.headers.clone();
        if let Some(own) = &self.own_fields {
            own.add_to(&mut headers, &self.host, self.head.version);
        }
        headers
    }

    /// Changes the request as the route's rules say. Returns the changes that the route makes to its responses, if any.
    pub(crate) fn apply_route<'r>(
        &mut self,
        rules: &'r Rules,
        id: RequestId,
    ) -> Option<Box<Passage<'r>>> {
        // What they say of the request is what its client sent.
        let passage = self.passage(rules, id);
        self.forward_host.clone_from(&rules.config().forward_host);
        if !rules.request_fields().is_empty() {
            let method = match self.head.method {
                // A fetch asks so in the place of a HEAD, and the key does not have the method.
                Method::HEAD if rules.cache().is_some() => &Method::GET,
                ref method => method,
            };
            let values = Values {
                method,
                ..self.values(id)
            };
            let filled = passage::fill(rules.request_fields(), values);
            // The rules may change the front's own fields.
            self.complete();
            let headers = &mut self.head.headers;
            passage::edit_request(rules.request_fields(), &filled, headers);
            // The rules may have added a line of cookies.
            headers.join_cookies();
            self.filled = passage::keyed(rules, filled);
        }
        passage
    }

    /// The changes that a route makes to the responses; `None`: it makes none.
    pub(crate) fn passage<'r>(&self, rules: &'r Rules, id: RequestId) -> Option<Box<Passage<'r>>> {
        rules
            .changes_responses()
            .then(|| Box::new(Passage::new(rules, self.values(id), self.host.clone())))
    }

    fn values(&self, id: RequestId) -> Values<'_> {
        Values {
            authority: &self.host,
            client: self.identity.ip,
            id,
            secure: self.identity.secure,
            tls: self.client.tls_facts(),
            worker: None,
            method: &self.head.method,
            path: self.path.asked(),
            rest: b"",
            head: &self.head,
            captured: self.path.captured(),
        }
    }

    /// The request for a fetch of the cache, which is an exchange of its own: it has all fields that a backend gets.
    pub(crate) fn detach(&self) -> Outgoing<'static> {
        let mut head = self.head.clone();
        if let Some(own) = &self.own_fields {
            own.add_to(&mut head.headers, &self.host, head.version);
        }
        Outgoing {
            head,
            path: self.path.clone(),
            host: self.host.clone(),
            forward_host: self.forward_host.clone(),
            client: Cow::Owned(PeerFacts::clone(&self.client)),
            identity: self.identity,
            certificate_is_ours: self.certificate_is_ours,
            certificate_chain: self.certificate_chain,
            own: self.own,
            attributes: self.attributes.clone(),
            asks_auth: self.asks_auth,
            withheld: self.withheld.clone(),
            own_fields: None,
            // These serve the cache's key, the tunnel, the log and the counters of the client's exchange alone.
            filled: Box::default(),
            upgrade: None,
            given_id: None,
            dropped: None,
        }
    }

    /// All facts that a backend learns besides the request line and the fields. The function destructures the request,
    /// so that a new field does not compile until somebody has decided whether a cache must know it.
    pub(crate) fn beside_fields(&self) -> BesideFields<'_> {
        let Self {
            // The key has the request line and the fields, both those that the backend gets and those that it does not.
            head: _,
            path: _,
            withheld: _,
            host,
            client,
            identity,
            // A part of the digest of the route's rules, which is in the key.
            forward_host: _,
            // Say who writes the fields about the certificate. Those of a proxy are among the fields.
            certificate_is_ours: _,
            certificate_chain: _,
            // Only chooses the backend.
            own: _,
            attributes,
            asks_auth,
            filled,
            own_fields,
            // A cache has no part in tunnels.
            upgrade: _,
            // Only for the log.
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
            // Backends are told of TLS by `identity.secure`, and of its details by fields.
            secure: _,
            tls: _,
        } = &**client;
        BesideFields {
            is_secure: *secure,
            host,
            port: own_fields.and_then(|own| Some(own.client?.port)),
            local: local.ip(),
            attributes: attributes.as_deref(),
            filled,
            names_client: *asks_auth || self.names_client(),
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
        let attributes = self.attributes.as_ref();
        if self.client.tls_facts().is_some_and(TlsFacts::name_client)
            || attributes.is_some_and(|attributes| attributes.user().is_some())
        {
            return true;
        }
        // A trusted proxy may have sent fields about the certificate. Most requests have none.
        let headers = &self.head.headers;
        let mut names = headers.iter().map(Field::name_ref);
        headers.may_have(Traits::CERTIFICATE.with(Traits::UNKNOWN))
            && names.any(claims::is_certificate_claim)
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

    /// The method by which a retry is decided. A request for a tunnel counts as POST: it must not be sent again once it
    /// was sent.
    pub(crate) fn method_for_retry(&self) -> &Method {
        match self.upgrade {
            Some(_) => &Method::POST,
            None => &self.head.method,
        }
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

    /// The address of a backend to which the request goes, and what is spoken there.
    pub(crate) fn end<'b>(&self, backend: &'b BackendConfig) -> BackendEnd<'b> {
        let (address, tls) = match self.upgrade {
            Some(_) => backend.tunnel_end(),
            None => backend.end(),
        };
        let over_http = backend.speaks_http() || self.upgrade.is_some();
        let protocol = if !over_http {
            "ajp"
        } else if tls.is_some() {
            "https"
        } else {
            "http"
        };
        BackendEnd { address, protocol }
    }

    /// Calls `act` with the request and the client's facts in the form for this backend.
    fn with_parts<T>(
        &self,
        backend: &BackendConfig,
        told: Told<'_>,
        act: impl FnOnce(&Request<'_>, &ClientFacts<'_>) -> T,
    ) -> T {
        let own_headers = self.headers_of(backend, told.parent);
        let called = self.called(backend);
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
        let attributes = match &self.attributes {
            Some(attributes) => attributes.for_ajp(),
            None => Vec::new(),
        };
        let authority = match called {
            Some(called) => Some(&called.authority),
            None => self.head.authority.as_ref(),
        };
        let (server_name, server_port) = self.server(authority);
        let client = ClientFacts {
            version: self.head.version,
            remote_ip: self.identity.ip,
            remote_port: self.identity.port,
            local_ip: self.client.local.ip(),
            server_name: &server_name,
            server_port,
            secure: self.identity.secure,
            jvm_route: told.route,
            activation: told.activation,
            tls: self.client.tls_facts(),
            certificate_chain: self.certificate_chain,
            attributes: &attributes,
        };
        act(&request, &client)
    }

    /// The host by which a backend is called instead of the client's: the route's, or else the backend's own; `None`: it
    /// is the client's.
    fn called<'o>(&'o self, backend: &'o BackendConfig) -> Option<&'o HostName> {
        let of_route = self.forward_host.as_deref();
        of_route.or_else(|| backend.sent_host())
    }

    /// The fields for a backend that gets another `Host`, another `parent` of its span, or the client's TLS in fields, or
    /// that still lack the front's own.
    ///
    /// `None`: the head's fields are right. Backends of an upstream differ in this, so the head itself is not changed.
    fn headers_of(&self, backend: &BackendConfig, parent: Option<&NextParent>) -> Option<Fields> {
        let over_http = backend.speaks_http() || self.upgrade.is_some();
        let wants_tls = over_http
            && backend.client_cert_fields != ClientCertFields::Off
            && self.certificate_is_ours;
        let tls_facts = self.client.tls_facts().filter(|_| wants_tls);
        let called = self.called(backend);
        let is_complete = self.own_fields.is_none();
        if is_complete && tls_facts.is_none() && called.is_none() && parent.is_none() {
            return None;
        }
        let mut headers = self.with_own_fields();
        if let Some(called) = called {
            headers.insert(HOST, called.text());
        }
        if let Some(parent) = parent {
            parent.apply(&mut headers);
        }
        if let Some(facts) = tls_facts {
            let form = backend.client_cert_fields;
            certificate::announce(form, facts, self.certificate_chain, &mut headers);
        }
        Some(headers)
    }

    /// The server's name and port as the client sees them.
    fn server<'a>(&self, authority: Option<&'a Authority>) -> (Cow<'a, [u8]>, u16) {
        let default = self.identity.usual_port();
        let local = self.client.local;
        match authority {
            Some(asked) => (Cow::Borrowed(&asked.host), asked.port.unwrap_or(default)),
            // A Unix socket.
            None if local.port() == 0 => (Cow::Borrowed(UNIX_HOST.as_bytes()), default),
            None => (Cow::Owned(local.ip().to_string().into()), local.port()),
        }
    }
}

impl RequestFields for Outgoing<'_> {
    fn lines(&self, name: &FieldName, line: &mut dyn FnMut(&[u8])) {
        let name = NameRef::from(name);
        let completed;
        let headers = match &self.own_fields {
            Some(own) if own.has(name) => {
                completed = self.with_own_fields();
                &completed
            }
            _ => &self.head.headers,
        };
        headers.get_all(name).for_each(&mut *line);
        if let Some(withheld) = &self.withheld {
            for value in withheld.get_all(name) {
                // No field has this byte: a value that was withheld never equals one that a backend got.
                line(&[b"\x01", value].concat());
            }
        }
        // The front's own fields about the client's TLS are written later, for each backend.
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
    withheld: &mut Option<Fields>,
) -> Result<usize, Failure> {
    if grounds.listener.query == QueryForm::Escaped {
        head.target.escape_query();
    }
    let underscored_names = &grounds.site.server.underscore_fields;
    let underscored = clean_request(&mut head.headers, underscored_names, is_trusted, withheld);
    if head.headers.join_cookies() {
        // The joined line must not be longer than the listener allows for a line.
        let len = head.headers.get(COOKIE).map_or(0, <[u8]>::len);
        if COOKIE.spelling().len() + ": ".len() + len > grounds.listener.limits.line_bytes {
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return Err(Failure::client(status, Fault::FieldTooLong.token()));
        }
    }
    if grounds.peer.front_verifies() {
        // The front itself verifies certificates of clients, so it ignores those that a proxy reports.
        let tells_certificate = |field: Field<'_>| claims::is_certificate_claim(field.name_ref());
        withhold(&mut head.headers, withheld, tells_certificate);
    }
    Ok(underscored)
}

/// Sets `Host` to what the client asked for, or to the address it connected to if it named no host.
fn settle_host(head: &mut RequestHead, client: &PeerFacts) -> Bytes {
    if let (Some(authority), Some(host)) = (&head.authority, head.headers.get(HOST))
        && is_usual_spelling(host, authority)
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
fn is_usual_spelling(host: &[u8], authority: &Authority) -> bool {
    let Some(after_host) = host.strip_prefix(&authority.host[..]) else {
        return false;
    };
    match authority.port {
        None => after_host.is_empty(),
        Some(port) => {
            let digits = after_host.strip_prefix(b":");
            digits == Some(itoa::Buffer::new().format(port).as_bytes())
        }
    }
}

/// The host for a request without one that came over a Unix socket, which has no address.
const UNIX_HOST: &str = "localhost";
