//! An inline handler's answers, played by a tower service: the third kind of application.

use std::future::{self, Future, Pending};
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use catamaran_connector::{
    Application, Attributes, Body, BodyError, BodyLength, ClientProtocol, Handler, Identity,
    Request, RequestBody, Response, Route,
};
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, Version};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::runtime::Runtime;
use tokio::time::Timeout;
use tower_service::Service;

/// Where the futures of all tests run.
pub(crate) static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Runtime::new().expect("the system has threads"));

pub(crate) fn application(handler: impl Handler) -> Application {
    Application::service(Played(Arc::new(handler)))
}

struct Played<H>(Arc<H>);

impl<H> Clone for Played<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H: Handler> Service<http::Request<RequestBody>> for Played<H> {
    type Response = http::Response<PlayedBody>;
    type Error = BodyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BodyError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<RequestBody>) -> Self::Future {
        let handler = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, mut body) = request.into_parts();
            let request = described(parts, &body);
            let answer = handler.handle(&request);
            if answer.after_body {
                while let Some(frame) = body.frame().await {
                    drop(frame?);
                }
            }
            let _elapsed = due(answer.delay).await;
            Ok(played(answer, request.body, body))
        })
    }
}

/// The request as an inline handler sees it.
fn described(mut parts: http::request::Parts, body: &RequestBody) -> Request {
    parts.headers.remove(CONTENT_LENGTH);
    let identity: Option<Identity> = parts.extensions.remove();
    let (user, auth_type) = identity.map_or((None, None), |who| (who.user, who.auth_type));
    let attributes: Option<Attributes> = parts.extensions.remove();
    let version = match parts.version {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    let other: Option<ClientProtocol> = parts.extensions.remove();
    Request {
        method: parts.method,
        version: other.map_or_else(|| Bytes::from_static(version.as_bytes()), |other| other.0),
        path: Bytes::copy_from_slice(parts.uri.path().as_bytes()),
        query: parts
            .uri
            .query()
            .map(|query| Bytes::copy_from_slice(query.as_bytes())),
        headers: (parts.headers.iter())
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        body: match http_body::Body::size_hint(body).exact() {
            Some(length) => BodyLength::Known(length),
            None => BodyLength::Unknown,
        },
        origin: parts.extensions.remove().expect("every request has one"),
        tls: parts.extensions.remove().expect("every request has one"),
        user,
        auth_type,
        route: parts.extensions.remove().map(|Route(route)| route),
        attributes: attributes.map(|Attributes(list)| list).unwrap_or_default(),
    }
}

fn played(answer: Response, length: BodyLength, body: RequestBody) -> http::Response<PlayedBody> {
    let length = match (&answer.body, length) {
        (Body::Full(data), _) => Some(data.len() as u64),
        (Body::Repeat { length, .. }, _) => Some(*length),
        (Body::Echo { prefix }, BodyLength::Known(length)) => {
            length.checked_add(prefix.len() as u64)
        }
        _ => None,
    };
    let rest = match answer.body {
        Body::Full(data) => Rest::Repeat {
            left: data.len() as u64,
            pattern: data,
            at: 0,
        },
        Body::Repeat { pattern, length } => Rest::Repeat {
            pattern,
            at: 0,
            left: length,
        },
        Body::Stream {
            chunk,
            count,
            every,
        } => Rest::Stream {
            chunk,
            left: count,
            every,
            pause: None,
        },
        Body::Echo { prefix } => Rest::Echo { prefix, body },
    };
    let mut response = http::Response::new(PlayedBody { rest, length });
    *response.status_mut() = answer.status;
    for field in answer.headers.iter() {
        let name = HeaderName::from_bytes(field.name()).expect("a name");
        let value = HeaderValue::from_bytes(field.value()).expect("a value");
        response.headers_mut().append(name, value);
    }
    response
}

/// The end of a pause that the answer is made of.
fn due(pause: Duration) -> Pause {
    tokio::time::timeout(pause, future::pending())
}

type Pause = Timeout<Pending<()>>;

pub(crate) struct PlayedBody {
    rest: Rest,
    /// As announced.
    length: Option<u64>,
}

enum Rest {
    Repeat {
        pattern: Bytes,
        at: usize,
        left: u64,
    },
    Stream {
        chunk: Bytes,
        left: u64,
        every: Duration,
        pause: Option<Pin<Box<Pause>>>,
    },
    Echo {
        prefix: Bytes,
        body: RequestBody,
    },
}

impl http_body::Body for PlayedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let data = match &mut self.rest {
            Rest::Repeat { left: 0, .. } | Rest::Stream { left: 0, .. } => {
                return Poll::Ready(None);
            }
            Rest::Repeat { pattern, at, left } => {
                let end = pattern
                    .len()
                    .min(*at + usize::try_from(*left).unwrap_or(usize::MAX / 2));
                let piece = pattern.slice(*at..end);
                *at = end % pattern.len();
                *left -= piece.len() as u64;
                piece
            }
            Rest::Stream {
                chunk,
                left,
                every,
                pause,
            } => {
                if let Some(pause) = pause {
                    let _elapsed = ready!(pause.as_mut().poll(cx));
                }
                *left -= 1;
                *pause = (!every.is_zero()).then(|| Box::pin(due(*every)));
                chunk.clone()
            }
            Rest::Echo { prefix, .. } if !prefix.is_empty() => mem::take(prefix),
            Rest::Echo { body, .. } => return Pin::new(body).poll_frame(cx),
        };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map(SizeHint::with_exact).unwrap_or_default()
    }
}
