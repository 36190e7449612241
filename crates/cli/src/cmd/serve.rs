//! `serve`: runs the front.

mod reload;
mod tls;

use std::fmt::Write as _;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use catamaran_config::{
    BackendUrl, ReadFiles, parse_access_log, parse_listen_address, parse_upstream_url, read_secret,
};
use catamaran_proxy::config::{
    AccessLogTarget, AdminConfig, BackendConfig, Config, ListenAddress, ListenerConfig, LogConfig,
    Protocol, RouteConfig, RouteTarget, Secret, ServerConfig, UpstreamConfig,
};
use catamaran_proxy::{OperatorCommands, ReloadRequest, Running, TakenListeners};
use clap::ArgGroup;
use reload::{ReloadCause, Reloads, say_warnings};
use tls::TlsArgs;

use super::{announce, parse_workers};
use crate::failure::Failure;
use crate::notify::{Manager, News};
use crate::own_log;
use crate::signals::{self, Deadly, SignalRequest, Signals};
use crate::watch::{WatchEvent, WatchedFiles};
use crate::{descriptors, upgrade};

/// Run the front, from a file or from addresses alone
///
/// SIGTERM and SIGINT drain: exchanges under way may finish. A second one quits at once. With
/// `drain_delay` in the file, the front first serves for that long, while /readyz is 503.
///
/// SIGHUP reads the file again, which changes nothing if it has faults, and opens the access log
/// anew. SIGUSR1 opens the access log anew and reads nothing.
///
/// SIGUSR2 starts the same command again, for a new version of the program, hands the listeners over
/// to it and drains; if the new process does not become ready, nothing changes.
#[derive(clap::Args)]
#[command(override_usage = "\
    catamaran serve [OPTIONS] --config <FILE>
       catamaran serve [OPTIONS] --listen <ADDRESS>... --upstream <URL>...
       catamaran serve [OPTIONS] --tls <NAME>... --agree-terms --upstream <URL>...")]
#[command(group = ArgGroup::new("places").args(["listen", "tls"]).multiple(true))]
pub(crate) struct ServeArgs {
    /// The configuration file
    #[arg(long, value_name = "FILE", required_unless_present = "places")]
    #[arg(conflicts_with_all = ["places", "upstream"])]
    config: Option<PathBuf>,

    /// Without a file: where to listen, such as 127.0.0.1:8080 or unix:/run/front.sock; repeatable. With
    /// --tls these addresses take the place of the ports 443 and 80
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address, requires = "upstream")]
    listen: Vec<ListenAddress>,

    /// Without a file: a backend, such as ajp://127.0.0.1:8009, http://127.0.0.1:8080 (or https://),
    /// ajp+unix:/PATH or http+unix:/PATH; repeatable
    #[arg(long, value_name = "URL", value_parser = parse_upstream_url, requires = "places")]
    upstream: Vec<BackendUrl>,

    /// Without a file: a file with the secret of the AJP connectors in its first line, as Tomcat's
    /// `secret`
    #[arg(
        long,
        value_name = "FILE",
        requires = "upstream",
        conflicts_with = "config"
    )]
    secret_file: Option<PathBuf>,

    #[command(flatten)]
    certificates: TlsArgs,

    /// Worker threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = parse_workers)]
    workers: Option<NonZeroUsize>,

    /// Where the access log goes: a path, - for standard output, or off [default: -]
    #[arg(long, value_name = "PATH|-|off", value_parser = parse_access_log)]
    access_log: Option<AccessLogTarget>,

    /// The address of the admin listener, such as unix:/run/catamaran/admin.sock or 127.0.0.1:9090
    /// [default: nowhere]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    admin: Option<ListenAddress>,

    /// A file that the secrets of all TLS sessions are appended to, for Wireshark; everybody who can read it
    /// can decrypt them
    #[arg(long, value_name = "FILE")]
    tls_key_log: Option<PathBuf>,

    /// Reload when the file changes, or one that it includes, or a secret that it names
    #[arg(long, requires = "config")]
    watch: bool,

    /// The files that the configuration was read from
    #[arg(skip)]
    files: WatchedFiles,
}

/// Runs the front until a signal asks it to stop.
pub(crate) fn run(args: ServeArgs) -> Result<(), Failure> {
    let signals = Signals::catch()?;
    let inheritance = upgrade::inheritance()?;
    let (mut files, mut warnings) = (ReadFiles::default(), String::new());
    let config = configuration(&args, &mut files, &mut warnings)?;
    say_warnings(&warnings);
    args.files.note_read(files.versions().clone(), false);
    let group = upgrade::group_of_predecessor();
    let (events, arrivals) = sync_channel(EVENTS_MAX);
    let running = catamaran_proxy::start_inheriting(config, inheritance, commands(&events))
        .map_err(|error| {
            args.certificates
                .start_failure(!args.listen.is_empty(), &error)
        })?;
    if let Some(group) = group {
        upgrade::join_group(group);
    }
    running.count_own_log(own_log::queued());
    announce(&running.urls())?;
    for address in running.admin_addresses() {
        own_log::say(format_args!("admin on {address}"))?;
    }
    let manager = Manager::from_environment();
    manager.tell(News::Ready);
    let deadly = signals.deadly();
    signals.forward(events.clone())?;
    if args.watch {
        args.files.start(events.clone())?;
    }
    let serving = ServeLoop {
        running: &running,
        args: &args,
        manager: &manager,
        reloads: Reloads::new(&running, &args, &manager, &files),
        events,
        deadly,
        upgrade: None,
        is_leaving: false,
    };
    match serving.handle_until_drain(arrivals)? {
        DrainReason::Stop => running.drain(),
        DrainReason::Upgrade { taken, process } => {
            manager.tell(News::Successor(process));
            running.drain_for_successor(&taken);
        }
    }
    running.join();
    Ok(())
}

/// An event that the main thread handles.
enum Event {
    Asked(SignalRequest),
    Upgraded(upgrade::Outcome),
    Reload(ReloadRequest),
    /// `drain_delay` is over.
    DelayOver,
    Watched(WatchEvent),
}

impl From<SignalRequest> for Event {
    fn from(asked: SignalRequest) -> Self {
        Self::Asked(asked)
    }
}

impl From<upgrade::Outcome> for Event {
    fn from(outcome: upgrade::Outcome) -> Self {
        Self::Upgraded(outcome)
    }
}

impl From<WatchEvent> for Event {
    fn from(event: WatchEvent) -> Self {
        Self::Watched(event)
    }
}

/// Why the front drains.
enum DrainReason {
    /// A signal asked the front to stop.
    Stop,
    /// The process with this id has taken over these listeners.
    Upgrade { taken: TakenListeners, process: u32 },
}

/// Why requests for a reload or an upgrade are refused.
struct Refusal {
    /// The answer to an administrator.
    reason: &'static str,
    /// The message in the log if a signal asked.
    logged: &'static str,
}

/// A front that serves, and the events that it reacts to.
struct ServeLoop<'a> {
    running: &'a Running,
    args: &'a ServeArgs,
    manager: &'a Manager,
    reloads: Reloads<'a>,
    /// The queue of events, for those who cause them.
    events: SyncSender<Event>,
    /// Whether the next signal ends the process at once.
    deadly: Deadly,
    upgrade: Option<upgrade::PendingUpgrade>,
    /// Whether the front waits for the end of `drain_delay`.
    is_leaving: bool,
}

impl ServeLoop<'_> {
    /// Handles events until one of them is a reason to drain, and returns that reason.
    fn handle_until_drain(mut self, arrivals: Receiver<Event>) -> Result<DrainReason, Failure> {
        for event in arrivals {
            if let Some(reason) = self.handle(event)? {
                return Ok(reason);
            }
        }
        // The threads that send events do not end.
        Ok(DrainReason::Stop)
    }

    /// Handles one event. While an upgrade runs or the front leaves, other requests are refused.
    fn handle(&mut self, event: Event) -> Result<Option<DrainReason>, Failure> {
        match (event, self.refusal()) {
            (Event::Asked(SignalRequest::Stop), _) if !self.is_leaving => return self.leave(),
            // A second signal cuts the delay short.
            (Event::Asked(SignalRequest::Stop) | Event::DelayOver, _) => {
                self.deadly.set(true);
                signals::say_draining();
                return Ok(Some(DrainReason::Stop));
            }
            (Event::Upgraded(outcome), _) => return Ok(self.handle_upgraded(outcome)),
            (Event::Asked(SignalRequest::Reopen), _) => match self.running.reopen_logs() {
                Ok(()) => tracing::info!("the access log was opened again"),
                Err(error) => tracing::error!("cannot open the access log: {error}"),
            },
            (Event::Asked(asked), Some(refusal)) => tracing::warn!(?asked, "{}", refusal.logged),
            (Event::Reload(request), Some(refusal)) => {
                request.answer(Err(refusal.reason.to_owned()));
            }
            // Another process reads them anyway, or nobody needs them any more.
            (Event::Watched(_), Some(_)) => self.args.files.note_dropped(),
            (Event::Watched(event), None) => {
                // `reload` has logged the result.
                self.reloads.reload(ReloadCause::Watch(event)).ok();
            }
            (Event::Asked(SignalRequest::Reload), None) => {
                self.reloads.reload(ReloadCause::Operator).ok();
            }
            (Event::Reload(request), None) => {
                request.answer(self.reloads.reload(ReloadCause::Operator));
            }
            (Event::Asked(SignalRequest::Upgrade), None) => {
                self.upgrade = upgrade::try_begin(self.running, self.events.clone());
            }
        }
        Ok(None)
    }

    /// Why the front refuses to reload or upgrade now; `None` if it does not refuse.
    fn refusal(&self) -> Option<Refusal> {
        if self.is_leaving {
            Some(Refusal {
                reason: "the front is about to stop",
                logged: "the front is about to stop; nothing changed",
            })
        } else if self.upgrade.is_some() {
            Some(Refusal {
                reason: "an upgrade is under way",
                logged: "an upgrade is under way; ask again when it has ended",
            })
        } else {
            None
        }
    }

    /// Begins `drain_delay`, in which the front serves and tells load balancers that it leaves. Without a delay the
    /// front drains at once.
    fn leave(&mut self) -> Result<Option<DrainReason>, Failure> {
        self.manager.tell(News::Stopping);
        if let Some(upgrade) = self.upgrade.take() {
            upgrade.abandon();
        }
        let delay = self.running.leave();
        if delay.is_zero() {
            signals::say_draining();
            return Ok(Some(DrainReason::Stop));
        }
        self.deadly.set(false);
        self.is_leaving = true;
        tracing::info!(
            "serving for another {delay:?} (`drain_delay`) while /readyz is 503; a second signal begins the drain at once"
        );
        after(delay, self.events.clone())?;
        Ok(None)
    }

    fn handle_upgraded(&mut self, outcome: upgrade::Outcome) -> Option<DrainReason> {
        if self.is_leaving {
            // Leaving has abandoned the upgrade, so that its outcome does not matter.
            return None;
        }
        match outcome {
            Ok((taken, process)) => {
                tracing::info!(process, "another process has taken over; draining");
                Some(DrainReason::Upgrade { taken, process })
            }
            Err(reason) => {
                self.upgrade = None;
                self.running.note_failed_upgrade(&reason);
                tracing::error!("cannot upgrade: {reason}; this process goes on");
                None
            }
        }
    }
}

/// What the admin listener calls for a reload or an upgrade: both put an event into `events`.
fn commands(events: &SyncSender<Event>) -> OperatorCommands {
    let (reloads, upgrades) = (events.clone(), events.clone());
    OperatorCommands {
        // If the queue is full, the request is dropped, which the one who waits for its answer notices.
        reload: Some(Box::new(move |request| {
            reloads.try_send(Event::Reload(request)).ok();
        })),
        upgrade: Some(Box::new(move || {
            upgrades
                .try_send(Event::Asked(SignalRequest::Upgrade))
                .is_ok()
        })),
    }
}

/// Sends [`Event::DelayOver`] when `delay` has passed.
fn after(delay: Duration, events: SyncSender<Event>) -> io::Result<()> {
    let thread = thread::Builder::new().name("drain-delay".into());
    thread.spawn(move || {
        // Nothing is ever sent on this channel: its timeout is the delay.
        let (_kept, never) = sync_channel::<()>(0);
        never.recv_timeout(delay).ok();
        // After a second signal the receiver may be gone.
        events.send(Event::DelayOver).ok();
    })?;
    Ok(())
}

/// Reads the configuration from the arguments and the file. It also raises the limit of open files, and notes the
/// limit in the configuration. `files` becomes the files that were read, and warnings are added to `warnings`.
fn configuration(
    args: &ServeArgs,
    files: &mut ReadFiles,
    warnings: &mut String,
) -> Result<Config, Failure> {
    let mut config = match &args.config {
        Some(path) => {
            let loaded = super::check::load_recorded(path, files)?;
            warnings.push_str(&loaded.report.to_string());
            loaded.config
        }
        None => {
            let mut backends = Vec::new();
            for url in &args.upstream {
                backends.push(catamaran_config::backend(url.clone()).map_err(Failure::Usage)?);
            }
            if let Some(path) = &args.secret_file {
                give_secret(&mut backends, path)?;
            }
            let mut config = without_file(args.listen.clone(), backends)?;
            args.certificates.apply(&mut config)?;
            config
        }
    };
    config.server.workers = args.workers.unwrap_or(config.server.workers);
    config.server.tls_key_log.clone_from(&args.tls_key_log);
    if let Some(access_log) = &args.access_log {
        config.log.access = access_log.clone();
    }
    if let Some(address) = &args.admin {
        let no_admin = || AdminConfig::new(Vec::new());
        let admin = config.admin.get_or_insert_with(no_admin);
        admin.addresses = vec![address.clone()];
        let has_secret = admin.token.is_some() || admin.auth.is_some();
        if let Some(message) = catamaran_config::exposed_admin(address, has_secret) {
            writeln!(warnings, "warning: {message}").expect("a string takes all");
        }
    }
    config.server.files_max = descriptors::raise_limit();
    Ok(config)
}

/// Gives every AJP backend the secret in a file.
fn give_secret(backends: &mut [BackendConfig], path: &Path) -> Result<(), Failure> {
    let secret = read_secret(path).map_err(|error| {
        let path = path.display();
        Failure::Fault(format!("cannot use the secret in {path}: {error}"))
    })?;
    let mut has_ajp = false;
    for backend in backends {
        if backend.protocol == Protocol::Ajp {
            has_ajp = true;
            backend.ajp.secret = Some(Secret::new(secret.clone()));
        }
    }
    if !has_ajp {
        let message = "--secret-file is for AJP, and no --upstream begins with ajp:; remove it";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}

/// The configuration for a front without a file: one upstream with all backends, and one route that leads
/// all requests to it.
pub(super) fn without_file(
    listen: Vec<ListenAddress>,
    backends: Vec<BackendConfig>,
) -> Result<Config, Failure> {
    let names: Vec<&str> = backends
        .iter()
        .map(|backend| backend.name.as_str())
        .collect();
    if let Some(name) = repeated(&names, |a, b| a == b) {
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
        own_log::say(format_args!("warning: {message}"))?;
    }
    let name = "default".to_owned();
    Ok(Config {
        server: ServerConfig::default(),
        tls: Vec::new(),
        listeners: listen.into_iter().map(ListenerConfig::new).collect(),
        routes: vec![RouteConfig::new("/", RouteTarget::Upstream(name.clone()))],
        caches: Vec::new(),
        limits: Vec::new(),
        auths: Vec::new(),
        upstreams: vec![UpstreamConfig::new(name, backends)],
        error_pages: None,
        log: LogConfig::default(),
        trace: None,
        admin: None,
    })
}

fn repeated<T>(items: &[T], same: impl Fn(&T, &T) -> bool) -> Option<&T> {
    let earlier = |at: usize| items[..at].iter().any(|item| same(item, &items[at]));
    (0..items.len())
        .find(|&at| earlier(at))
        .map(|at| &items[at])
}

/// How many events may wait while one is handled.
const EVENTS_MAX: usize = 16;
