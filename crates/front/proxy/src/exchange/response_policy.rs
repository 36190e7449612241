//! How the front changes a response, whatever its source, before the relay sends it.
//!
//! First, for a response of a backend: the front may decline a status to ask another backend (`retry_status`),
//! replace an error by a page, note the sessions that begin, and change the backend's paths back to the client's.
//! Then, for each time that a response is sent: the route's rules for fields and cookies, the fields of CORS, and the
//! front's own fields.
//! The relay knows nothing of all this: it handles bytes and deadlines.

use bytes::Bytes;
use catamaran_message::name::{DATE, SET_COOKIE, STRICT_TRANSPORT_SECURITY};
use catamaran_message::{Fields, ResponseHead};
use http::StatusCode;

use crate::exchange::compression::CompressionOffer;
use crate::exchange::cors::CorsFields;
use crate::exchange::fields::body::{FieldScope, forbid_sharing};
use crate::exchange::fields::passage::Passage;
use crate::exchange::other_backends::OtherBackends;
use crate::exchange::outgoing::Outgoing;
use crate::exchange::pages::Pages;
use crate::exchange::progress::Progress;
use crate::exchange::scene::Scene;
use crate::site::Member;
use crate::site::sticky::Sticky;
use crate::site::sticky::response_cookies::may_carry_cookie;

/// How the response of one attempt is changed before it is sent.
#[derive(Debug)]
pub(crate) struct ResponsePolicy<'a> {
    /// The policy for a response of a backend; `None` for any other source.
    pub(crate) backend: Option<BackendPolicy<'a>>,
    /// The changes of fields, cookies and paths by the route; `None`: it makes none.
    pub(crate) passage: Option<&'a Passage<'a>>,
    /// The fields for this client alone: what limits leave it, and cookies of the service of the route's sign-on; `None`:
    /// none.
    pub(crate) client_fields: Option<&'a Fields>,
    /// The fields of CORS for this client; `None`: the backend's stay.
    pub(crate) cors: Option<&'a CorsFields<'a>>,
    /// The request that the backend got, if a cache takes part in its response.
    pub(crate) request: Option<&'a Outgoing<'a>>,
}

/// The part of the policy that concerns only responses of backends.
#[derive(Debug)]
pub(crate) struct BackendPolicy<'a> {
    pub(crate) member: &'a Member,
    /// Decides whether another backend may be asked for a better response.
    pub(crate) other_backends: &'a OtherBackends<'a>,
    /// The pages that replace error responses; `None`: these are sent as they are.
    pub(crate) pages: Option<Pages<'a>>,
    /// The front's own cookie for the client. It is left out if a shared cache could store it for others.
    pub(crate) cookie: Option<&'a Bytes>,
}

/// The status of a response that is not sent, because another backend is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Declined(pub(crate) StatusCode);

impl<'a> ResponsePolicy<'a> {
    /// Declines a response, or replaces it by a page. In the latter case it changes the head, and returns the page's
    /// body; `Ok(None)`: the response stays.
    ///
    /// # Errors
    /// The status for which another backend is to be asked instead.
    pub(crate) fn judge(
        &self,
        head: &mut ResponseHead,
        scene: Scene<'_>,
        progress: &Progress,
    ) -> Result<Option<Bytes>, Declined> {
        let Some(backend) = &self.backend else {
            return Ok(None);
        };
        let retries = backend.member.settings.retries_status(head.status);
        if retries && backend.other_backends.may_decline(progress) {
            return Err(Declined(head.status));
        }
        let pages = backend.pages.as_ref();
        Ok(pages.and_then(|pages| pages.replace(head, |reason| scene.worker.count(reason))))
    }

    /// The offer by which the response may be compressed; `None`: it must not be.
    pub(crate) fn compression(&self) -> Option<&CompressionOffer<'a>> {
        self.passage?.compression.as_ref()
    }

    /// Makes the changes that are the same for all clients: notes sessions that the response begins, and changes the
    /// backend's paths back to the client's.
    #[inline]
    pub(crate) fn turn_back(&self, head: &mut ResponseHead, scene: Scene<'a>) {
        let Some(backend) = &self.backend else {
            return;
        };
        if let Some(sticky) = &backend.other_backends.upstream.sticky {
            backend.note_sessions(sticky, &head.headers, scene);
        }
        if let Some(passage) = self.passage {
            passage.turn_back(&mut head.headers, &backend.member.settings);
        }
    }

    /// The front's own cookie to send with a response; `None`: there is none, or a cache could store it.
    pub(crate) fn cookie(&self, head: &ResponseHead) -> Option<&'a Bytes> {
        let cookie = self.backend.as_ref()?.cookie;
        cookie.filter(|_| may_carry_cookie(head.status, &head.headers))
    }

    /// Makes the changes for this client: the route's rules for fields and cookies, the fields of CORS, and the front's
    /// own fields.
    /// `scope` says which of the route's rules for fields apply.
    pub(crate) fn edit(
        &self,
        head: &mut ResponseHead,
        scene: Scene<'_>,
        scope: impl FnOnce() -> FieldScope,
    ) {
        if let Some(passage) = self.passage {
            let scope = FieldScope::new(head.status, scope());
            let backend = self.backend.as_ref();
            let address = backend.map(|it| &it.member.settings.address);
            passage.edit(&mut head.headers, head.status, scope, address);
        }
        if let Some(client_fields) = self.client_fields {
            if client_fields.contains(SET_COOKIE) && !may_carry_cookie(head.status, &head.headers) {
                // No cache before the front may give the cookies of a sign-on to others.
                forbid_sharing(&mut head.headers, "private");
            }
            for field in client_fields.iter() {
                if field.is(SET_COOKIE) {
                    head.headers.append(SET_COOKIE, field.value());
                } else {
                    head.headers.insert(field.name_ref(), field.value());
                }
            }
        }
        if let Some(cors) = self.cors {
            cors.edit(head);
        }
        let cookie = self.cookie(head);
        let headers = &mut head.headers;
        // For clients over TLS, unless the backend has sent the field itself.
        if let Some(policy) = &scene.listener.hsts
            && scene.peer.secure
            && !headers.contains(STRICT_TRANSPORT_SECURITY)
        {
            headers.append(STRICT_TRANSPORT_SECURITY, policy);
        }
        if !headers.contains(DATE)
            && let Some(date) = crate::date::now()
        {
            headers.append(DATE, date);
        }
        if let Some(cookie) = cookie {
            headers.append(SET_COOKIE, cookie);
        }
    }
}

impl BackendPolicy<'_> {
    /// Counts the sessions that a response begins as seen by the backend.
    #[inline(never)]
    fn note_sessions(&self, sticky: &Sticky, headers: &Fields, scene: Scene<'_>) {
        for id in sticky.response_cookies.begun(headers) {
            self.member.backend.note_session(id, scene.clock());
        }
    }
}
