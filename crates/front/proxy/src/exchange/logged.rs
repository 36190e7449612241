//! The parts of a request that its log line shows, kept until the line is written.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catamaran_message::RequestHead;
use catamaran_message::name::{REFERER, USER_AGENT};
use http::{Method, Version};
use tokio::time::Instant;

use crate::access_log::{AuthLine, CacheLine, LoggedFields, RequestLine};
use crate::config::{AuthConfig, LimitConfig};

/// The parts of a request that its log line shows. They share the head's memory until
/// [`Self::detach`].
pub(crate) struct LoggedRequest {
    method: Method,
    path: Bytes,
    query: Option<Bytes>,
    version: Version,
    host: Option<Bytes>,
    referer: Option<Bytes>,
    user_agent: Option<Bytes>,
    fields: LoggedFields,
    /// How the front got the file, such as `hit` or `open`; `None` if the response is not a file.
    pub(crate) file: Option<&'static str>,
    /// The coding in which a kept copy of the file was sent, and the file's own length.
    pub(crate) coded: Option<(&'static str, u64)>,
    /// The cache's result; `None` if the route has no cache.
    pub(crate) cache: Option<CacheLine>,
    /// The limit that refused the request.
    pub(crate) limit: Option<Arc<LimitConfig>>,
    /// The limit that would have refused it if it were enforced.
    pub(crate) limit_dry: Option<Arc<LimitConfig>>,
    /// The user that has signed on, or whom the backend is told; `None`: there is none.
    pub(crate) user: Option<Bytes>,
    /// The sign-on of the route; `None`: it was not asked.
    pub(crate) auth: Option<LoggedAuth>,
    /// The time at which the last attempt got its connection.
    pub(crate) leased: Option<Instant>,
    /// The time at which the response was complete.
    pub(crate) ended: Option<Instant>,
}

/// A sign-on that was asked about a request, for its log line.
#[derive(Debug)]
pub(crate) struct LoggedAuth {
    pub(crate) config: Arc<AuthConfig>,
    /// The time that the answer took.
    pub(crate) waited: Duration,
}

impl LoggedAuth {
    fn line(&self) -> AuthLine<'_> {
        AuthLine {
            name: &self.config.name,
            waited: self.waited,
        }
    }
}

impl LoggedRequest {
    pub(crate) fn new(head: &RequestHead, fields: LoggedFields) -> Self {
        let share = |value| head.headers.share(value);
        Self {
            method: head.method.clone(),
            path: head.target.path.clone(),
            query: head.target.query.clone(),
            version: head.version,
            host: head
                .authority
                .as_ref()
                .map(|authority| authority.host.clone()),
            referer: head.headers.get(REFERER).map(share),
            user_agent: head.headers.get(USER_AGENT).map(share),
            fields,
            file: None,
            coded: None,
            cache: None,
            limit: None,
            limit_dry: None,
            user: None,
            auth: None,
            leased: None,
            ended: None,
        }
    }

    /// Copies the parts, so that the rest of the head's memory can be freed.
    pub(crate) fn detach(&mut self) {
        let copy = |bytes: &mut Bytes| *bytes = Bytes::copy_from_slice(bytes);
        copy(&mut self.path);
        for (_, value) in &mut self.fields.0 {
            copy(value);
        }
        let optional = [
            &mut self.query,
            &mut self.host,
            &mut self.referer,
            &mut self.user_agent,
        ];
        for part in optional.into_iter().flatten() {
            copy(part);
        }
    }

    /// The sign-on of the route.
    pub(crate) fn auth(&self) -> Option<AuthLine<'_>> {
        self.auth.as_ref().map(LoggedAuth::line)
    }

    pub(crate) fn line(&self) -> RequestLine<'_> {
        RequestLine {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            version: self.version,
            host: self.host.as_deref(),
            referer: self.referer.as_deref(),
            user_agent: self.user_agent.as_deref(),
            fields: &self.fields,
        }
    }
}
