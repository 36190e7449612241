//! The front, a reverse proxy: it serves HTTP/1.x and HTTP/2 clients and forwards to backends over AJP13 or HTTP/1.1.
//!
//! [`start`] binds the listeners of a [`config::Config`] and serves until [`Running::drain`].
//! [`Running::reload`] applies another configuration meanwhile. [`Running::offer`] hands the
//! listening sockets to another process. A request passes through `client` (its connection),
//! `exchange` (route, pick, lease, relay, account) and `exchange::relay` (both bodies). The pure
//! decisions are in modules of their own: `path`, `site::route`, `exchange::fields`,
//! `exchange::retry`. `catamaran-balance` chooses backends,
//! `catamaran-upstream` holds the connections to them and is the only one to see bytes of AJP13.
//!
//! ```no_run
//! use catamaran_proxy::config::{
//!     Address, BackendConfig, Config, ListenAddress, ListenerConfig, LogConfig, Protocol,
//!     RouteConfig, RouteTarget, ServerConfig, UpstreamConfig,
//! };
//!
//! let tomcat = Address::Tcp { host: "127.0.0.1".into(), port: 8009 };
//! let listen = ListenAddress::Tcp("127.0.0.1:8080".parse()?);
//! let front = catamaran_proxy::start(Config {
//!     server: ServerConfig::default(),
//!     tls: vec![],
//!     listeners: vec![ListenerConfig::new(listen)],
//!     caches: vec![],
//!     limits: vec![],
//!     auths: vec![],
//!     upstreams: vec![UpstreamConfig::new(
//!         "tomcat",
//!         vec![BackendConfig::new(Protocol::Ajp, tomcat)],
//!     )],
//!     routes: vec![RouteConfig::new("/", RouteTarget::Upstream("tomcat".into()))],
//!     error_pages: None,
//!     log: LogConfig::default(),
//!     trace: None,
//!     admin: None,
//! })?;
//! println!("listening on {}", front.addresses()[0]);
//! front.drain();
//! front.join();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access_log;
mod admin;
mod boxed;
mod cache;
mod client;
pub mod config;
mod control;
mod counters;
mod date;
mod deadlines;
pub mod doctor;
mod exchange;
pub mod explain;
mod handover;
mod inheritance;
mod limits;
mod line_queue;
mod listener;
mod local_file;
mod lock;
mod log_target;
mod path;
mod peer;
mod reload;
mod request_id;
mod running;
mod serve;
mod site;
pub mod tls;
mod trace_context;
mod traces;
mod trust;
mod tunnel_request;
pub mod users;
mod version;
mod via;
mod worker;

pub use admin::metrics::metrics_reference;
pub use catamaran_upstream::BackendCounts;
pub use control::{OperatorCommands, ReloadRequest};
pub use counters::{CountersSnapshot, Culprit, FileResult, LastReload, Outcome, Reason};
pub use handover::{HandoverError, Offer, TakenListeners};
pub use inheritance::Inheritance;
pub use line_queue::LineQueue;
pub use listener::{BindError, BoundAddress};
pub use local_file::{FileVersion, Stamp, stamp};
pub use reload::{ReloadError, ReloadReport};
pub use running::{Running, StartError, start, start_inheriting};
pub use site::BackendStatus;
