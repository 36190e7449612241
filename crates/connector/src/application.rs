//! The kinds of applications that answer requests, and where each runs.
//!
//! The three kinds differ in where they may wait: an inline [`Handler`] never waits, a
//! [`BlockingHandler`] has a thread, a service's futures are tasks. Drivers do not distinguish them:
//! they pass each request to [`Runner::serve`] and obey the connection.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use catamaran_message::name::RETRY_AFTER;
use http::StatusCode;
use http_body::Body;
use tokio::runtime::Handle;
use tower_service::Service;

use crate::blocking::{self, BlockingHandler, Sleep};
use crate::conn::{Action, Conn, Io};
use crate::counters::Counters;
use crate::handler::{Handler, Request, Response};
use crate::pipe::{self, Wake, Wakeup};
use crate::played::PlayedHandler;
use crate::pool::{self, Limits, Pool};
use crate::service::{self, RequestBody, Spawn, Tasks};
use crate::{Config, StartError};

/// The application that answers requests, of one of three kinds.
///
/// A [`Handler`] converts by `into`; the other kinds have the constructors below.
pub struct Application(ApplicationKind);

enum ApplicationKind {
    Inline(Box<dyn Handler>),
    Blocking(Arc<dyn BlockingHandler>),
    Service(Box<dyn Spawn>),
}

impl Application {
    /// A service, such as an axum `Router`. Each request is a task on the tokio runtime that is
    /// current when the connector is started, and goes to a clone of the service once that is
    /// ready. The task is dropped if its client leaves.
    ///
    /// The request's extensions have [`Origin`](crate::Origin) and [`Tls`](crate::Tls), and
    /// [`Identity`](crate::Identity), [`Route`](crate::Route), [`Attributes`](crate::Attributes) and
    /// [`ClientProtocol`](crate::ClientProtocol) where there are any. A `Content-Length` of the response is binding; trailers are dropped.
    pub fn service<S, B>(service: S) -> Self
    where
        S: Service<http::Request<RequestBody>, Response = http::Response<B>>
            + Clone
            + Send
            + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send + 'static,
        B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
    {
        Self(ApplicationKind::Service(service::spawner(service)))
    }

    /// A handler that may block. It runs on the threads of the connector's executor, one request on each; see
    /// [`Config::max_threads`].
    pub fn blocking(handler: impl BlockingHandler) -> Self {
        Self(ApplicationKind::Blocking(Arc::new(handler)))
    }

    /// Runs a [`Handler`] on threads that may block: its delays and pauses, and slow peers, each hold a thread, as in a
    /// servlet container.
    pub fn on_threads(handler: impl Handler) -> Self {
        Self::blocking(PlayedHandler(handler))
    }
}

impl<H: Handler> From<H> for Application {
    fn from(handler: H) -> Self {
        Self(ApplicationKind::Inline(Box::new(handler)))
    }
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            ApplicationKind::Inline(_) => "Inline",
            ApplicationKind::Blocking(_) => "Blocking",
            ApplicationKind::Service(_) => "Service",
        };
        f.debug_tuple("Application").field(&kind).finish()
    }
}

/// An application ready to serve, with what it runs on.
#[derive(Debug)]
pub(crate) enum Runner {
    Inline(Inline),
    Blocking(Executor),
    Service(Tasks),
}

/// A handler that the event loop calls directly.
pub(crate) struct Inline(Box<dyn Handler>);

/// A blocking handler and the pool of threads that call it.
pub(crate) struct Executor {
    handler: Arc<dyn BlockingHandler>,
    pool: Pool,
}

/// What an application needs to know of the connection that a request came on.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// The counters that the connection counts in.
    pub(crate) counters: &'a Counters,
    /// The driver that the application wakes when it has something for the connection.
    pub(crate) driver: &'a Arc<dyn Wake>,
    /// The driver's key for the connection.
    pub(crate) key: usize,
}

impl Runner {
    /// Starts what the application runs on, such as its threads.
    ///
    /// # Errors
    /// [`StartError::Worker`] if the system refuses a thread; [`StartError::NoRuntime`] if a service has no tokio
    /// runtime.
    pub(crate) fn start(application: Application, config: &Config) -> Result<Self, StartError> {
        Ok(match application.0 {
            ApplicationKind::Service(service) => {
                let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
                Self::Service(Tasks::new(service, runtime))
            }
            ApplicationKind::Inline(handler) => Self::Inline(Inline(handler)),
            ApplicationKind::Blocking(handler) => {
                let mut limits = Limits::of(config);
                if config.io.has_thread_per_connection() {
                    // Handlers run on the threads of their connections.
                    limits.min_spare_threads = 0;
                }
                let pool = Pool::start("connector-exec", limits);
                Self::Blocking(Executor {
                    handler,
                    pool: pool.map_err(StartError::Worker)?,
                })
            }
        })
    }

    /// The blocking handler, for a driver that calls it on the connection's own thread; `None` for other kinds.
    pub(crate) fn blocking_handler(&self) -> Option<&Arc<dyn BlockingHandler>> {
        match self {
            Self::Blocking(executor) => Some(&executor.handler),
            Self::Inline(_) | Self::Service(_) => None,
        }
    }

    /// The use of the application's thread pool; `None` if it has none.
    pub(crate) fn usage(&self) -> Option<pool::Usage> {
        match self {
            Self::Blocking(executor) => Some(executor.pool.usage()),
            Self::Inline(_) | Self::Service(_) => None,
        }
    }

    /// Whether the application is a service. Its answers come from tasks of a tokio runtime, at any time.
    pub(crate) fn answers_later(&self) -> bool {
        matches!(self, Self::Service(_))
    }

    /// Passes a request to the application, and as much of its answer as there is to the connection. Returns what the
    /// driver is to do next.
    pub(crate) fn serve(
        &self,
        request: Box<Request>,
        conn: &mut Conn,
        io: &mut Io<'_>,
        caller: Caller<'_>,
    ) -> Action {
        Counters::add(&caller.counters.requests, 1);
        match self {
            Self::Inline(inline) => inline.serve(&request, conn, io),
            Self::Blocking(executor) => executor.serve(request, conn, io, caller),
            Self::Service(tasks) => tasks.serve(*request, conn, io, caller),
        }
    }
}

impl Inline {
    /// Runs the handler on the driver's own thread, and begins its response. A panic is answered with 500.
    fn serve(&self, request: &Request, conn: &mut Conn, io: &mut Io<'_>) -> Action {
        // Unwind safety is up to the handler: it takes `&self`, so a panic leaves only the handler's own state as it
        // was.
        match catch_unwind(AssertUnwindSafe(|| self.0.handle(request))) {
            Ok(response) => conn.respond(response, io),
            Err(_) => conn.fail("handler-panic", io),
        }
    }
}

impl Executor {
    /// Calls the handler on a thread of the pool, connected with `conn` by a pipe. Responds with 503 if the pool has no
    /// thread and no room in its queue.
    fn serve(
        &self,
        request: Box<Request>,
        conn: &mut Conn,
        io: &mut Io<'_>,
        caller: Caller<'_>,
    ) -> Action {
        let (conn_end, body_end, response_end) = pipe::pipe(caller.wakeup(), request.body);
        let handler = Arc::clone(&self.handler);
        let job = Box::new(move || {
            // The thread sleeps while it waits for a part of the body, or for room in the pipe.
            let wait = Sleep::new();
            blocking::run(&*handler, &request, body_end, response_end, &wait);
        });
        match self.pool.run(job) {
            Ok(()) => conn.attach(conn_end, io),
            Err(_) => {
                caller.counters.refuse("executor-full");
                conn.respond(busy(), io)
            }
        }
    }
}

impl Caller<'_> {
    pub(crate) fn wakeup(&self) -> Wakeup {
        Wakeup {
            driver: Arc::clone(self.driver),
            key: self.key,
        }
    }
}

impl Limits {
    /// The pool limits that the configuration sets.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            max_threads: config.max_threads.get(),
            min_spare_threads: config.min_spare_threads,
            max_queue_size: config.max_queue_size,
            max_idle_time: config.max_idle_time,
        }
    }
}

/// The 503 response to a request for which there is no thread and no room in the queue.
fn busy() -> Response {
    let text = "all threads of the application are busy; try again\n";
    Response::text(StatusCode::SERVICE_UNAVAILABLE, text).with_header(RETRY_AFTER, "1")
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline").finish_non_exhaustive()
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}
