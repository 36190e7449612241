//! Asynchronous applications: any tower service, on the tokio runtime that is current at the start.
//!
//! This module alone converts heads to the types of the `http` crate and back.
//!
//! Each request is a task that owns the application's end of the pipe. The task is dropped when the
//! connection gives up the exchange. If it ends, fails or panics before the response is complete, the
//! response is cut. When a response body has no data at the moment, what was written so far is sent.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use catamaran_message::Fields;
use catamaran_message::field::decimal;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use tokio::runtime::Handle;
use tower_service::Service;

use crate::application::Caller;
use crate::conn::{Action, Conn, Io};
use crate::handler::{Attributes, BodyLength, ClientProtocol, Identity, Request, Response, Route};
use crate::pipe::{self, BodyEnd, BodyError, ClosedPipe, Head, ResponseEnd};

/// The body of a request to a service.
///
/// The client is asked for the body only when it is first polled. Polling fails if the peer leaves,
/// if it sends nothing for longer than the connection timeout, or if its bytes are not a valid body.
#[derive(Debug)]
pub struct RequestBody {
    end: BodyEnd,
    /// The length of what has not been read yet.
    left: BodyLength,
}

/// A service, and the runtime that runs its futures.
pub(crate) struct Tasks {
    service: Box<dyn Spawn>,
    runtime: Handle,
}

/// The interface of a service, whatever its type.
pub(crate) trait Spawn: Send + Sync {
    /// Spawns a task on `runtime` that answers the request.
    fn spawn(&self, request: http::Request<RequestBody>, response: ResponseEnd, runtime: &Handle);
}

/// The error of a service or of its response body.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// The service that is cloned for each request. Locked only while it is cloned: not all services are
/// `Sync`.
struct Original<S>(Arc<Mutex<S>>);

/// Wraps a service so that each request runs on a clone of it; the lock makes the service usable from all workers.
pub(crate) fn spawner<S, B>(service: S) -> Box<dyn Spawn>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Error: Into<Cause>,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<Cause>> + Send + 'static,
{
    Box::new(Original(Arc::new(Mutex::new(service))))
}

impl Tasks {
    pub(crate) fn new(service: Box<dyn Spawn>, runtime: Handle) -> Self {
        Self { service, runtime }
    }

    /// Starts a task that answers the request, connected with `conn` by a pipe. A path or query that the `http` crate
    /// cannot express is answered with 400.
    pub(crate) fn serve(
        &self,
        request: Request,
        conn: &mut Conn,
        io: &mut Io<'_>,
        caller: Caller<'_>,
    ) -> Action {
        let (conn_end, body, response) = pipe::pipe(caller.wakeup(), request.body);
        match into_http(request, body) {
            Ok(request) => {
                self.service.spawn(request, response, &self.runtime);
                conn.attach(conn_end, io)
            }
            Err(error) => {
                tracing::debug!(%error, "a request is not for a service");
                caller.counters.refuse("request-target");
                let text = "this path or query cannot be understood\n";
                conn.respond(Response::text(StatusCode::BAD_REQUEST, text), io)
            }
        }
    }
}

impl<S, B> Spawn for Original<S>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Error: Into<Cause>,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<Cause>> + Send + 'static,
{
    fn spawn(&self, request: http::Request<RequestBody>, response: ResponseEnd, runtime: &Handle) {
        let original = Arc::clone(&self.0);
        // The task is not joined: it ends when the connection drops its end of the pipe.
        drop(runtime.spawn(async move {
            // The service is cloned inside the task, so that a panic or a delay of its `clone` does not affect the
            // driver.
            let service = original
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            let answering = answer(service, request, &response);
            let outcome = unless_gone(answering, &response).await;
            match outcome {
                Some(Ok(())) => response.end(),
                Some(Err(error)) => {
                    tracing::warn!(%error, "an application failed");
                    response.fail("handler-error");
                }
                // The connection has given up the exchange.
                None => {}
            }
        }));
    }
}

/// Waits for `answering`, or until the connection has given up the exchange: `None`.
async fn unless_gone(
    answering: impl Future<Output = Result<(), Cause>>,
    response: &ResponseEnd,
) -> Option<Result<(), Cause>> {
    let mut answering = pin!(answering);
    poll_fn(|cx| {
        if response.poll_gone(cx.waker()).is_ready() {
            return Poll::Ready(None);
        }
        answering.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Calls the service for a request, and sends its response.
async fn answer<S, B>(
    mut service: S,
    request: http::Request<RequestBody>,
    response: &ResponseEnd,
) -> Result<(), Cause>
where
    S: Service<http::Request<RequestBody>, Response = http::Response<B>>,
    S::Error: Into<Cause>,
    B: Body<Error: Into<Cause>>,
{
    poll_fn(|cx| service.poll_ready(cx))
        .await
        .map_err(Into::into)?;
    let (parts, body) = service
        .call(request)
        .await
        .map_err(Into::into)?
        .into_parts();
    response.set_head(Head {
        status: parts.status,
        length: length(&parts.headers, &body.size_hint()),
        headers: (parts.headers.iter())
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
    });
    if body.is_end_stream() {
        return Ok(());
    }
    send_body(pin!(body), response).await
}

/// Sends a body as the service produces it; ends early if the client leaves.
async fn send_body<B>(mut body: Pin<&mut B>, response: &ResponseEnd) -> Result<(), Cause>
where
    B: Body<Error: Into<Cause>>,
{
    // Whether something was written and not flushed; at first it is the head.
    let mut unsent = true;
    loop {
        let room = poll_fn(|cx| response.poll_room(cx.waker()));
        if room.await == Err(ClosedPipe) {
            return Ok(());
        }
        let frame = poll_fn(|cx| {
            let frame = body.as_mut().poll_frame(cx);
            if frame.is_pending() && std::mem::take(&mut unsent) {
                // The service is slow, so the client gets what there is.
                // An error means that the client has left, which `poll_room` reports.
                let _ = response.flush();
            }
            frame
        });
        match frame.await.transpose().map_err(Into::into)? {
            None => return Ok(()),
            Some(frame) => {
                // AJP has no trailers, so they are dropped for both protocols.
                if let Ok(mut data) = frame.into_data() {
                    let bytes = data.copy_to_bytes(data.remaining());
                    unsent |= response.push(bytes).is_ok();
                }
            }
        }
    }
}

/// The length of a response body, from `Content-Length` or else from the body's size hint.
fn length(headers: &HeaderMap, hint: &SizeHint) -> BodyLength {
    let announced = (headers.get(CONTENT_LENGTH)).and_then(|value| decimal(value.as_bytes()));
    announced
        .or_else(|| hint.exact())
        .map_or(BodyLength::Unknown, BodyLength::Known)
}

/// Converts a request to the `http` crate's type; what that has no field for goes to its extensions. A protocol that
/// `http` does not know becomes HTTP/1.1, and its name goes to the extensions, too.
fn into_http(request: Request, body: BodyEnd) -> Result<http::Request<RequestBody>, http::Error> {
    let mut converted = http::Request::new(RequestBody {
        end: body,
        left: request.body,
    });
    *converted.method_mut() = request.method;
    *converted.uri_mut() = uri(request.path, request.query)?;
    let (version, unknown_protocol) = match &request.version[..] {
        b"HTTP/1.0" => (Version::HTTP_10, None),
        b"HTTP/1.1" => (Version::HTTP_11, None),
        b"HTTP/2.0" => (Version::HTTP_2, None),
        b"HTTP/3.0" => (Version::HTTP_3, None),
        _ => (Version::HTTP_11, Some(ClientProtocol(request.version))),
    };
    *converted.version_mut() = version;
    *converted.headers_mut() = map(&request.headers);
    if let BodyLength::Known(length @ 1..) = request.body {
        converted
            .headers_mut()
            .insert(CONTENT_LENGTH, length.into());
    }
    let extensions = converted.extensions_mut();
    extensions.insert(request.origin);
    extensions.insert(request.tls);
    if request.user.is_some() || request.auth_type.is_some() {
        extensions.insert(Identity {
            user: request.user,
            auth_type: request.auth_type,
        });
    }
    if let Some(protocol) = unknown_protocol {
        extensions.insert(protocol);
    }
    if let Some(route) = request.route {
        extensions.insert(Route(route));
    }
    if !request.attributes.is_empty() {
        extensions.insert(Attributes(request.attributes));
    }
    Ok(converted)
}

/// Converts fields to a map of the `http` crate, with room for one more field: the length of the body.
fn map(fields: &Fields) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields.len() + 1);
    for field in fields.iter() {
        let value = HeaderValue::from_maybe_shared(fields.share(field.value()));
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(field.name()), value) {
            // A map that is full is one that no codec would have made.
            map.try_append(name, value).ok();
        }
    }
    map
}

fn uri(path: Bytes, query: Option<Bytes>) -> Result<Uri, http::Error> {
    let target = match query {
        None => path,
        Some(query) => [&path[..], b"?", &query].concat().into(),
    };
    Ok(Uri::from_maybe_shared(target)?)
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    /// The next piece of the body. `left` counts down to 0, so that `size_hint` tells what is still to come.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let piece = ready!(self.end.poll_read(cx.waker())).transpose()?;
        match &piece {
            Some(data) => {
                if let BodyLength::Known(left) = &mut self.left {
                    *left = left.saturating_sub(data.len() as u64);
                }
            }
            None => self.left = BodyLength::Known(0),
        }
        Poll::Ready(piece.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == BodyLength::Known(0)
    }

    fn size_hint(&self) -> SizeHint {
        match self.left {
            BodyLength::Known(left) => SizeHint::with_exact(left),
            BodyLength::Unknown => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("runtime", &self.runtime)
            .finish_non_exhaustive()
    }
}
