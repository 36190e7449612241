//! One cell of an experiment, up to be looked at: its servers are started by the code that runs start them
//! by, its load is driven if that is asked for, and a page shows what goes on until somebody ends it.
//!
//! Nothing is concluded from it: there are no rounds and no gates.

mod drawing;
mod moment;
mod page;
mod serve;
mod topology;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use catamaran_gauge::{Group, Syscalls};

use self::moment::{Point, TierMoment};
use self::page::{History, Setting};
use self::serve::PageServer;
use self::topology::{Node, Topology};
use crate::drive::{Board, DriveFault, Driver, RunKey, RunningServer, Stage, Stages, live};
use crate::experiment::{Experiment, Levels, Load, label};
use crate::extra::{echo, now};
use crate::template::Addresses;

/// What is to be up.
#[derive(Debug)]
pub struct UpRequest<'a> {
    /// What starts servers and loads.
    pub driver: &'a Driver,
    /// Its only cell is the one that is shown: [`Experiment::only`].
    pub experiment: &'a Experiment,
    /// Whether it is in the machine's own network and without cgroups, which needs no root.
    pub is_shared: bool,
    /// Whether the load is driven.
    pub is_driven: bool,
    /// How long; `None`: until `stop`.
    pub time: Option<Duration>,
    /// Where the page is served.
    pub page: TcpListener,
}

/// What is up, for those who are told once it serves.
#[derive(Clone, Debug)]
pub struct TierView<'a> {
    /// The servers as text, with the lines of who asks whom.
    pub drawing: String,
    /// The network namespace; `None` in the machine's own.
    pub namespace: Option<&'a str>,
    /// What the load asks for, driven or not.
    pub url: &'a str,
    /// Where the page is.
    pub page: SocketAddr,
    /// Where the servers' files are.
    pub directory: &'a Path,
}

/// What it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The page as it was last, which stands still.
    pub page: String,
    /// How long it was up.
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
    /// The page cannot be served.
    #[error("the page: {0}")]
    Page(#[from] io::Error),
}

/// Starts it, tells `say` once, and shows it until its time is over or a signal comes. Then nothing of it
/// is left.
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
    let topology = topology(experiment, stage, &load, asked.is_driven)?;
    let (syscalls, notes) = count(stage);
    let mut place = vec![label(levels)];
    place.retain(|text| !text.is_empty());
    place.push(match stage.space.namespace() {
        Some(name) => format!("network namespace {name}"),
        None => "in the network of this machine".to_owned(),
    });
    let setting = Setting {
        title: experiment.name.clone(),
        question: experiment.question.clone(),
        place: place.join(" · "),
        notes,
    };
    let address = asked.page.local_addr()?;
    let board = Board::default();
    let mut watch = Watch {
        stage,
        topology: &topology,
        setting: &setting,
        syscalls: syscalls.as_ref(),
        board: &board,
        history: History::default(),
        time: asked.time,
        stop: &driver.stop,
    };
    let site = PageServer::start(asked.page, watch.page("it has just begun", true))?;
    say(&TierView {
        drawing: drawing::draw(&topology),
        namespace: stage.space.namespace(),
        url: &load.url,
        page: address,
        directory: stage.space.directory(),
    })?;
    if asked.is_driven {
        let cell = (experiment, levels);
        return live(driver, stage, cell, &board, |faults| {
            watch.look(&site, faults)
        })?;
    }
    // Nobody sends.
    let (_sender, faults) = sync_channel(0);
    watch.look(&site, &faults)
}

/// Counts system calls where that can be done, and says what is not shown.
fn count(stage: &Stage) -> (Option<Syscalls>, Vec<String>) {
    let groups = stage.servers.iter().filter_map(|it| it.process.group());
    let groups: Vec<&Group> = groups.collect();
    if groups.is_empty() {
        let notes = [
            "System calls: the kernel counts them for root alone; `catamaran lab up` shows them.",
            "CPU, network, disks and memory above are the whole machine's; connections opened are not counted.",
        ];
        return (None, notes.map(str::to_owned).to_vec());
    }
    match Syscalls::count(&groups) {
        Ok(syscalls) => (Some(syscalls), Vec::new()),
        Err(fault) => (None, vec![format!("System calls: {fault}")]),
    }
}

fn topology(
    experiment: &Experiment,
    stage: &Stage,
    load: &Load,
    is_driven: bool,
) -> Result<Topology, DriveFault> {
    let levels = &experiment.cells[0];
    let mut nodes = vec![load_node(
        experiment,
        levels,
        &stage.addresses,
        (load, is_driven),
    )?];
    nodes.extend(stage.servers.iter().map(server_node));
    let hops = experiment.hops(levels, &stage.addresses)?;
    Ok(Topology::of(nodes, &hops))
}

fn load_node(
    experiment: &Experiment,
    levels: &Levels,
    addresses: &Addresses,
    (load, is_driven): (&Load, bool),
) -> Result<Node, DriveFault> {
    let said = |load: &Load| {
        let rate = load.rate.map(|rate| format!(", {rate} requests/s"));
        let kept = if load.keep_alive { "kept" } else { "closed" };
        format!(
            "{} clients, {kept}{}",
            load.clients,
            rate.unwrap_or_default()
        )
    };
    let mut lines = vec![said(load)];
    let beside = experiment.beside(levels, addresses)?;
    lines.extend(beside.iter().map(said));
    if let Some(crowd) = &load.crowd {
        lines.push(format!(
            "{} clients that {}",
            crowd.clients,
            crowd.kind.name()
        ));
    }
    if !is_driven {
        lines.push("not driven (--load)".to_owned());
    }
    let is_echo = echo::EchoRequest::site(&load.url).is_some();
    Ok(Node {
        name: "load".to_owned(),
        kind: if is_echo { "echo" } else { "catamaran bench" }.to_owned(),
        lines,
        core: load.core,
        ..Node::default()
    })
}

fn server_node(server: &RunningServer) -> Node {
    let ports = server.process.addresses();
    let mut by_scheme: Vec<(String, Vec<SocketAddr>)> = Vec::new();
    for (scheme, address) in ports {
        match by_scheme.iter_mut().find(|(known, _)| known == scheme) {
            Some((_, addresses)) => addresses.push(*address),
            None => by_scheme.push((scheme.clone(), vec![*address])),
        }
    }
    Node {
        name: server.record.name.clone(),
        kind: server.record.target.clone(),
        lines: Vec::new(),
        ports: by_scheme,
        pid: Some(server.process.id()),
        core: server.core,
    }
}

/// Looks at what is up, once a second.
struct Watch<'a> {
    stage: &'a Stage,
    topology: &'a Topology,
    setting: &'a Setting,
    syscalls: Option<&'a Syscalls>,
    board: &'a Board,
    history: History,
    time: Option<Duration>,
    stop: &'a AtomicBool,
}

impl Watch<'_> {
    fn look(&mut self, site: &PageServer, faults: &Receiver<DriveFault>) -> Result<Over, UpFault> {
        let start = now();
        let mut before = self.moment();
        loop {
            let is_over = self.wait(start, faults)?;
            let after = self.moment();
            self.history.push(Point::between(&before, &after));
            before = after;
            let up = now().duration_since(start);
            let traffic = before.traffic;
            if is_over {
                let state = format!(
                    "ended after {:.1} s: {} answers, {} failed",
                    up.as_secs_f64(),
                    traffic.completed,
                    traffic.failed
                );
                return Ok(Over {
                    page: self.page(&state, false),
                    time: up,
                    completed: traffic.completed,
                    failed: traffic.failed,
                    is_stopped: self.stop.load(Ordering::Relaxed),
                });
            }
            let state = format!(
                "up for {} s, {} answers; lines are the last minute, and this page is loaded anew each second",
                up.as_secs(),
                traffic.completed
            );
            site.show(self.page(&state, true));
        }
    }

    fn moment(&self) -> TierMoment {
        let traffic = self.board.traffic();
        TierMoment::read(self.stage, &self.topology.hops, self.syscalls, traffic)
    }

    /// Waits for the next whole second, or until it is over, which it says.
    fn wait(&self, start: Instant, faults: &Receiver<DriveFault>) -> Result<bool, UpFault> {
        let next = Duration::from_secs(now().duration_since(start).as_secs() + 1);
        loop {
            let up = now().duration_since(start);
            let left = next.saturating_sub(up);
            let rest = self.time.map(|time| time.saturating_sub(up));
            if rest.is_some_and(|rest| rest.is_zero()) || self.stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
            if left.is_zero() {
                self.check_servers()?;
                return Ok(false);
            }
            let wait = left.min(LOOK).min(rest.unwrap_or(LOOK));
            if let Ok(fault) = faults.recv_timeout(wait) {
                // A server that has ended is why the load has failed.
                self.check_servers()?;
                return Err(fault.into());
            }
        }
    }

    fn check_servers(&self) -> Result<(), UpFault> {
        for server in &self.stage.servers {
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

    fn page(&self, state: &str, is_live: bool) -> String {
        page::page(self.setting, self.topology, &self.history, (state, is_live))
    }
}

/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(100);
