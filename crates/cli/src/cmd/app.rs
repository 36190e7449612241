//! `app`: runs the connector with its built-in application.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use catamaran_config::{parse_listen_address, read_secret};
use catamaran_connector::{
    Address, Application, Config, IoModel, Listener, Protocol, Secret, StatusView, TrustedPeers,
    start,
};
use catamaran_proxy::config::ListenAddress;

mod knobs;
mod response_fields;

use self::knobs::Knobs;
use self::response_fields::AppWithFields;
use super::{announce, parse_workers};
use crate::descriptors;
use crate::failure::Failure;
use crate::signals::Signals;

/// Run the application's side: the connector with its built-in application
///
/// The application answers / with a page, /bytes/N, /delay/MS, /echo, /sink, /status/CODE,
/// /stream/N/MS and /snoop, which shows what it is told of a request. /_status shows what the
/// connector is doing.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("addresses").required(true).multiple(true)))]
pub(crate) struct AppArgs {
    /// Where to listen for AJP13, such as 127.0.0.1:8009 or unix:/run/app.sock
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, group = "addresses")]
    ajp: Option<ListenAddress>,

    /// Where to listen for HTTP/1.1, such as 127.0.0.1:8081 or unix:/run/app.sock
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, group = "addresses")]
    http: Option<ListenAddress>,

    /// The I/O model that runs the connections
    #[arg(long, value_name = "MODEL", default_value = "epoll")]
    io: Model,

    /// The secret that every AJP request must carry; other users of this machine can see it in the
    /// list of processes
    #[arg(long, value_name = "SECRET", conflicts_with = "secret_file")]
    secret: Option<String>,

    /// A file with that secret in its first line
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    workers: Option<NonZeroUsize>,

    /// Run the application on threads, one for each request at work, as Tomcat does: /delay/MS then
    /// holds a thread and not a timer
    #[arg(long)]
    blocking_delay: bool,

    /// Who may see /_status, which tells what the connector is doing: addresses, networks and `unix`
    /// with commas between; `none` leaves the path to the application
    #[arg(long, value_name = "PEERS", default_value = "127.0.0.0/8,::1,unix")]
    status: TrustedPeers,

    /// A file of header fields that every response gets, such as `X-Frame-Options: DENY`, one a line
    #[arg(long, value_name = "FILE")]
    response_fields: Option<PathBuf>,

    #[command(flatten)]
    knobs: Knobs,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Model {
    /// Readiness: an event loop per worker
    Epoll,
    /// Blocking: a thread per connection, see --max-threads
    Threads,
    /// Completion: io_uring, an event loop per worker; needs Linux 6.0
    Uring,
}

/// Runs the connector until a signal asks it to stop.
pub(crate) fn run(args: AppArgs) -> Result<(), Failure> {
    let io = match args.io {
        Model::Epoll => IoModel::Epoll,
        Model::Threads => IoModel::Threads,
        Model::Uring => IoModel::Uring,
    };
    let ajp = args.ajp.map(|address| listener(Protocol::Ajp, address));
    let http = args.http.map(|address| listener(Protocol::Http, address));
    let defaults = Config::default();
    let status = (args.status != TrustedPeers::none()).then(|| StatusView {
        peers: args.status,
        ..StatusView::default()
    });
    let config = Config {
        listeners: ajp.into_iter().chain(http).collect(),
        io,
        workers: args.workers.unwrap_or(defaults.workers),
        secret: secret(args.secret, args.secret_file)?,
        status,
        ..args.knobs.apply(defaults)
    };
    let needed = config.max_connections + descriptors::BESIDES;
    descriptors::raise_limit_to(needed, "let the front open fewer connections");
    let signals = Signals::catch()?;
    let app = AppWithFields::new(args.response_fields.as_deref())?;
    let application = if args.blocking_delay {
        Application::on_threads(app)
    } else {
        app.into()
    };
    let running = start(config, application).map_err(|error| Failure::of(&error))?;
    announce(running.addresses())?;
    signals.wait_for_stop();
    running.shutdown(DRAIN_TIMEOUT);
    running.join();
    Ok(())
}

fn listener(protocol: Protocol, address: ListenAddress) -> Listener {
    let address = match address {
        ListenAddress::Tcp(address) => Address::Tcp(address),
        ListenAddress::Unix(path) => Address::Unix(path),
    };
    Listener { protocol, address }
}

fn secret(option: Option<String>, file: Option<PathBuf>) -> Result<Option<Secret>, Failure> {
    let secret = match (option, file) {
        (Some(secret), _) => secret,
        (None, Some(path)) => read_secret(&path).map_err(|error| {
            Failure::Fault(format!(
                "cannot use the secret in {}: {error}",
                path.display()
            ))
        })?,
        (None, None) => return Ok(None),
    };
    let empty = || Failure::Usage("--secret is empty; leave it out, or write one".to_owned());
    Secret::new(secret).ok_or_else(empty).map(Some)
}

/// How long requests in progress may still take after a signal; the same as the front's default.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);
