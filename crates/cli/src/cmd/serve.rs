//! `serve`: the front.

use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use catamaran_config::{parse_access_log, parse_listen_address, parse_upstream_url};
use catamaran_front::config::{
    AccessLogTarget, Address, BackendConfig, Config, ListenAddress, ListenerConfig, LogConfig,
    Protocol, RouteConfig, RouteTarget, ServerConfig, UpstreamConfig,
};

use super::{announce, parse_workers};
use crate::descriptors;
use crate::failure::Failure;
use crate::signals::Signals;

/// Run the front, from a file or from addresses alone
///
/// SIGTERM and SIGINT drain: exchanges under way may finish. A second one quits at once.
#[derive(clap::Args)]
#[command(override_usage = "\
    catamaran serve [OPTIONS] --config <FILE>
       catamaran serve [OPTIONS] --listen <ADDRESS>... --upstream <URL>...")]
pub(crate) struct Args {
    /// The configuration file
    #[arg(long, value_name = "FILE", required_unless_present = "listen")]
    #[arg(conflicts_with_all = ["listen", "upstream"])]
    config: Option<PathBuf>,

    /// Without a file: where to listen, such as 127.0.0.1:8080 or unix:/run/front.sock; repeatable
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, requires = "upstream")]
    listen: Vec<ListenAddress>,

    /// Without a file: a backend, such as ajp://127.0.0.1:8009, http://127.0.0.1:8080,
    /// ajp+unix:/PATH or http+unix:/PATH; repeatable
    #[arg(long, value_name = "URL", value_parser = parse_upstream_url, requires = "listen")]
    upstream: Vec<(Protocol, Address)>,

    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    workers: Option<NonZeroUsize>,

    /// Where the access log goes: a path, - for standard output, or off [default: -]
    #[arg(long, value_name = "PATH|-|off", value_parser = parse_access_log)]
    access_log: Option<AccessLogTarget>,

    /// Reserved for the pages of administration, which are not there yet.
    #[arg(long, value_name = "ADDRESS", hide = true)]
    admin: Option<String>,
}

/// Runs until a signal.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    if args.admin.is_some() {
        let message = "--admin is not available yet: nothing would be served there; leave it out";
        return Err(Failure::Usage(message.to_owned()));
    }
    let mut config = match &args.config {
        Some(path) => from_file(path)?,
        None => {
            let backend = |(protocol, address)| BackendConfig::new(protocol, address);
            without_file(
                args.listen,
                args.upstream.into_iter().map(backend).collect(),
            )?
        }
    };
    config.server.workers = args.workers.unwrap_or(config.server.workers);
    config.log.access = args.access_log.unwrap_or(config.log.access);
    descriptors::raise_limit(descriptors_needed(&config), "lower `connections_max`");
    let signals = Signals::catch()?;
    let running = catamaran_front::start(config).map_err(|error| Failure::of(&error))?;
    announce(&running.addresses())?;
    signals.wait_for_stop();
    running.drain();
    running.join();
    Ok(())
}

fn from_file(path: &Path) -> Result<Config, Failure> {
    let loaded = super::check::load(path)?;
    write!(io::stderr(), "{}", loaded.report)?;
    Ok(loaded.config)
}

/// One upstream with every backend, and one route that leads all requests there.
pub(super) fn without_file(
    listen: Vec<ListenAddress>,
    backends: Vec<BackendConfig>,
) -> Result<Config, Failure> {
    let names: Vec<&str> = backends
        .iter()
        .map(|backend| backend.name.as_str())
        .collect();
    if let Some(name) = repeated(&names, |one, other| one == other) {
        return Err(Failure::Usage(format!(
            "--upstream {name} is there twice; remove one"
        )));
    }
    if repeated(&listen, catamaran_config::same_address).is_some() {
        return Err(Failure::Usage(
            "--listen has an address twice; remove one".to_owned(),
        ));
    }
    for message in backends.iter().filter_map(catamaran_config::unprotected) {
        writeln!(io::stderr(), "warning: {message}")?;
    }
    let name = "default".to_owned();
    Ok(Config {
        server: ServerConfig::default(),
        listeners: listen.into_iter().map(ListenerConfig::new).collect(),
        routes: vec![RouteConfig {
            hosts: Vec::new(),
            path: "/".to_owned(),
            exact: false,
            suffix: None,
            target: RouteTarget::Upstream(name.clone()),
        }],
        upstreams: vec![UpstreamConfig::new(name, backends)],
        log: LogConfig::default(),
    })
}

fn repeated<T>(items: &[T], same: impl Fn(&T, &T) -> bool) -> Option<&T> {
    let earlier = |at: usize| items[..at].iter().any(|item| same(item, &items[at]));
    (0..items.len())
        .find(|&at| earlier(at))
        .map(|at| &items[at])
}

/// With every connection of every client and backend open.
fn descriptors_needed(config: &Config) -> usize {
    let backends = config
        .upstreams
        .iter()
        .flat_map(|upstream| &upstream.backends);
    let backends: usize = backends.map(|backend| backend.connections_max).sum();
    config.server.connections_max + backends + descriptors::BESIDES
}
