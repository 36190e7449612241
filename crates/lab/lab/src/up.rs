//! Starts one cell of an experiment and keeps it running to be watched, with its load if that is
//! wanted, until its time is over or a signal comes.
//!
//! There are no measurements and no conclusions, and so no rounds and no gates.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use catamaran_tier::{Space, SpaceFault};

use crate::drive::{Answers, DriveFault, Driver, RunningServer, Stage, Stages, live};
use crate::experiment::Experiment;
use crate::extra::now;
use crate::run::RunKey;

/// The servers to start, whether to drive the load, and for how long.
#[derive(Debug)]
pub struct UpRequest<'a> {
    /// The programs and paths that servers and loads need.
    pub driver: &'a Driver,
    /// The experiment; its only cell is started, see [`Experiment::only`].
    pub experiment: &'a Experiment,
    /// Whether the servers run in the machine's own network and without cgroups, which needs no root.
    pub is_shared: bool,
    /// Whether the load is driven.
    pub is_driven: bool,
    /// The time after which everything is stopped; `None`: only the driver's `stop` ends it.
    pub time: Option<Duration>,
}

/// The running tier, for the message once all servers serve.
#[derive(Clone, Debug)]
pub struct TierView<'a> {
    /// The servers, from the front to the last one behind it.
    pub servers: Vec<ServerView<'a>>,
    /// The name of the network namespace; `None` for the machine's own network.
    pub namespace: Option<&'a str>,
    /// The URL that the load requests, even if it is not driven.
    pub url: &'a str,
    /// The directory of the servers' files.
    pub directory: &'a Path,
}

/// A running server of the tier.
#[derive(Clone, Debug)]
pub struct ServerView<'a> {
    /// The server's name in the experiment.
    pub name: &'a str,
    /// The kind of server: the name of its target.
    pub target: &'a str,
    /// The id of the server's first process.
    pub pid: u32,
    /// The core that the server is pinned to; `None`: any core.
    pub core: Option<usize>,
    /// The ports on which the server listens, each with its name, such as `ajp`.
    pub ports: Vec<(&'a str, SocketAddr)>,
}

/// The counts at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The time for which the tier was running.
    pub time: Duration,
    /// The number of responses of all loads.
    pub completed: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// Whether a signal has ended the tier.
    pub is_stopped: bool,
}

/// Why the tier could not be started, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum UpFault {
    /// Servers or loads could not be started, or could not continue.
    #[error(transparent)]
    Drive(#[from] DriveFault),
    /// A server has ended by itself.
    #[error("{name} ended with {how}\n{log}")]
    Died {
        /// The server's name.
        name: String,
        /// The exit status or signal.
        how: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// The message that all servers serve could not be written.
    #[error(transparent)]
    Say(#[from] io::Error),
}

/// Starts the tier, calls `say` once, and waits until its time is over or a signal comes. Then
/// everything is stopped and removed.
///
/// # Errors
/// The tier could not be started, or ended early; [`UpFault`] says why. Everything is stopped and removed then, too.
///
/// # Panics
/// If the experiment has no cell.
pub fn run(
    request: UpRequest<'_>,
    say: impl FnOnce(&TierView<'_>) -> io::Result<()>,
) -> Result<Over, UpFault> {
    let UpRequest {
        driver, experiment, ..
    } = request;
    let levels = &experiment.cells[0];
    let mut stages = if request.is_shared {
        Stages::shared()
    } else {
        Stages::default()
    };
    let stage: &Stage = stages.prepare(driver, experiment, RunKey { cell: 0, round: 0 })?;
    if driver.stop.load(Ordering::Relaxed) {
        return Err(DriveFault::Interrupted.into());
    }
    let load = experiment
        .load(levels, &stage.addresses)
        .map_err(DriveFault::from)?;
    let mut servers = Vec::new();
    // A stage has the backmost server first.
    for server in stage.servers.iter().rev() {
        let view = ServerView::of(server, &stage.space);
        servers.push(view.map_err(DriveFault::from)?);
    }
    say(&TierView {
        servers,
        namespace: stage.space.namespace(),
        url: &load.url,
        directory: stage.space.directory(),
    })?;
    let answers = Answers::default();
    let watch = Watch {
        servers: &stage.servers,
        time: request.time,
        stop: &driver.stop,
    };
    let start = now();
    if request.is_driven {
        let wait = |faults: &Receiver<DriveFault>| watch.wait(start, faults);
        // First the faults by which loads could not be started, then those by which the tier ended.
        let end = live(driver, stage, experiment, levels, &answers, wait)?;
        end?;
    } else {
        // There is no load that could send a fault.
        let (_sender, faults) = sync_channel(0);
        watch.wait(start, &faults)?;
    }
    Ok(Over {
        time: now().duration_since(start),
        completed: answers.completed.into_inner(),
        failed: answers.failed.into_inner(),
        is_stopped: driver.stop.load(Ordering::Relaxed),
    })
}

impl<'a> ServerView<'a> {
    /// A running server, with those of its ports on which it listens.
    fn of(server: &'a RunningServer, space: &Space) -> Result<Self, SpaceFault> {
        let addresses = server.process.addresses().iter();
        let mut ports: Vec<(&str, SocketAddr)> = addresses
            .map(|(name, address)| (name.as_str(), *address))
            .collect();
        // A port that its configuration does not use has an address too, but does not listen.
        space.inside(|| ports.retain(|(_, address)| TcpStream::connect(address).is_ok()))?;
        Ok(Self {
            name: &server.record.name,
            target: &server.record.target,
            pid: server.process.id(),
            core: server.core,
            ports,
        })
    }
}

/// Waits for the end of a running tier.
struct Watch<'a> {
    servers: &'a [RunningServer],
    time: Option<Duration>,
    stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// Waits until the time is over or a signal comes; the error is that a server or a load has ended by itself.
    fn wait(&self, start: Instant, faults: &Receiver<DriveFault>) -> Result<(), UpFault> {
        loop {
            let up = now().duration_since(start);
            let left = self.time.map_or(LOOK, |time| time.saturating_sub(up));
            if left.is_zero() || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let fault = faults.recv_timeout(left.min(LOOK));
            // If a server has ended, that is why the load has failed.
            self.check_servers()?;
            if let Ok(fault) = fault {
                return Err(fault.into());
            }
        }
    }

    /// The error is that a server has ended by itself.
    fn check_servers(&self) -> Result<(), UpFault> {
        for server in self.servers {
            if let Some(how) = server.process.ended() {
                return Err(UpFault::Died {
                    name: server.record.name.clone(),
                    how,
                    log: server.process.last_words(),
                });
            }
        }
        Ok(())
    }
}

/// The interval at which signals and servers that have ended are checked for.
const LOOK: Duration = Duration::from_millis(100);
