//! One cell of an experiment, up to be looked at: its servers are started by the code that starts those of
//! runs, and its load is driven if that is asked for, until somebody ends it.
//!
//! Nothing is measured or concluded: there are no rounds and no gates.

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

/// The servers to start, and whether to drive the load.
#[derive(Debug)]
pub struct UpRequest<'a> {
    /// The programs that servers and loads are started with.
    pub driver: &'a Driver,
    /// An experiment whose only cell is started: see [`Experiment::only`].
    pub experiment: &'a Experiment,
    /// Whether it is in the machine's own network and without cgroups, which needs no root.
    pub is_shared: bool,
    /// Whether the load is driven.
    pub is_driven: bool,
    /// The time after which all is stopped; `None`: not before the driver's `stop`.
    pub time: Option<Duration>,
}

/// The servers that are up, for the message once all serve.
#[derive(Clone, Debug)]
pub struct TierView<'a> {
    /// The servers, from the front to the backmost.
    pub servers: Vec<ServerView<'a>>,
    /// The network namespace; `None` in the machine's own.
    pub namespace: Option<&'a str>,
    /// The URL that the load asks for, driven or not.
    pub url: &'a str,
    /// The directory of the servers' files.
    pub directory: &'a Path,
}

/// A server that is up.
#[derive(Clone, Debug)]
pub struct ServerView<'a> {
    /// Its name in the experiment.
    pub name: &'a str,
    /// Its kind.
    pub target: &'a str,
    /// Its first process.
    pub pid: u32,
    /// The core that it is pinned to.
    pub core: Option<usize>,
    /// Its ports that are listening, with their names: `ajp`.
    pub ports: Vec<(&'a str, SocketAddr)>,
}

/// The counts when all has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The time that all was up.
    pub time: Duration,
    /// Answers of all loads.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Whether a signal has ended it.
    pub is_stopped: bool,
}

/// Why it is not up, or no more.
#[derive(Debug, thiserror::Error)]
pub enum UpFault {
    /// Servers or loads do not start, or do not go on.
    #[error(transparent)]
    Drive(#[from] DriveFault),
    /// A server has ended by itself.
    #[error("{name} ended with {how}\n{log}")]
    Died {
        /// The server.
        name: String,
        /// Exit status or signal.
        how: String,
        /// The end of what it said.
        log: String,
    },
    /// The message that all is up could not be written.
    #[error(transparent)]
    Say(#[from] io::Error),
}

/// Starts it, tells `say` once, and waits until its time is over or a signal comes. Then nothing of it is
/// left.
///
/// # Errors
/// [`UpFault`]; nothing is left then, either.
///
/// # Panics
/// If the experiment has no cell.
pub fn run(
    asked: UpRequest<'_>,
    say: impl FnOnce(&TierView<'_>) -> io::Result<()>,
) -> Result<Over, UpFault> {
    let UpRequest {
        driver, experiment, ..
    } = asked;
    let levels = &experiment.cells[0];
    let mut stages = if asked.is_shared {
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
    let servers = stage.servers.iter().rev();
    let servers = servers.map(|server| ServerView::of(server, &stage.space));
    say(&TierView {
        servers: servers
            .collect::<Result<_, _>>()
            .map_err(DriveFault::from)?,
        namespace: stage.space.namespace(),
        url: &load.url,
        directory: stage.space.directory(),
    })?;
    let answers = Answers::default();
    let watch = Watch {
        servers: &stage.servers,
        time: asked.time,
        stop: &driver.stop,
    };
    let start = now();
    if asked.is_driven {
        live(driver, stage, experiment, levels, &answers, |faults| {
            watch.wait(start, faults)
        })??;
    } else {
        // Nobody sends.
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
    fn of(server: &'a RunningServer, space: &Space) -> Result<Self, SpaceFault> {
        let ports = server.process.addresses();
        // A port that its configuration does not use has an address all the same.
        let listens = |(_, address): &&(String, SocketAddr)| TcpStream::connect(address).is_ok();
        let ports = space.inside(|| ports.iter().filter(listens).collect::<Vec<_>>())?;
        Ok(Self {
            name: &server.record.name,
            target: &server.record.target,
            pid: server.process.id(),
            core: server.core,
            ports: ports
                .into_iter()
                .map(|(name, address)| (name.as_str(), *address))
                .collect(),
        })
    }
}

/// Waits for the end of what is up.
struct Watch<'a> {
    servers: &'a [RunningServer],
    time: Option<Duration>,
    stop: &'a AtomicBool,
}

impl Watch<'_> {
    /// Until its time is over or a signal comes; a fault if a server or a load has ended by itself.
    fn wait(&self, start: Instant, faults: &Receiver<DriveFault>) -> Result<(), UpFault> {
        loop {
            let up = now().duration_since(start);
            let left = self.time.map_or(LOOK, |time| time.saturating_sub(up));
            if left.is_zero() || self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let fault = faults.recv_timeout(left.min(LOOK));
            // A server that has ended is why the load has failed.
            self.check_servers()?;
            if let Ok(fault) = fault {
                return Err(fault.into());
            }
        }
    }

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

/// The interval at which a signal, and a server that has ended, is looked for.
const LOOK: Duration = Duration::from_millis(100);
