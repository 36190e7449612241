//! The connector on each I/O model beside Tomcat and nginx, as servers of one small page.
//!
//! Every server has one core, the load the other. Rounds are interleaved, as for the page: each has
//! one measurement of every server over every protocol it speaks, in an order that changes. Servers
//! are started anew for each kind of load, so that none shows the memory of another. The table is
//! Markdown, for it is meant to be kept.

mod crowd;
mod load;
mod served;

use std::time::Duration;

use anyhow::Context;
use catamaran_gauge::cpu::{self, Cpu};

use self::crowd::Crowd;
use self::load::Tool;
pub(super) use self::load::{Load, ToolKind};
pub(super) use self::served::Kind;
use self::served::{Protocol, Server};
use super::contender::Programs;
use super::options::Options;
use super::page::order;
use super::pause;
use super::series::{Spread, ratios};
use crate::step::say;

/// A server over one of its protocols, and what was measured of it in each round.
struct Target {
    server: usize,
    protocol: Protocol,
    samples: Vec<Option<Sample>>,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Sample {
    report: load::Report,
    /// Of the server.
    cpu: Cpu,
    threads: usize,
    /// Private memory in the middle of the load, in bytes.
    memory: u64,
}

/// Measures every load, and prints the table.
pub(super) fn run(options: &Options, programs: Programs<'_>) -> anyhow::Result<()> {
    let (rounds, seconds) = (options.page_rounds, options.page_seconds);
    let tool = Tool::new(options.tool, programs.ours);
    say(&format!(
        "\n== connector: {rounds} rounds of {seconds} s, 347 bytes, load by {tool}\n"
    ));
    say(HEADING);
    for load in options.loads.iter().filter(|load| tool.makes(**load)) {
        let servers: Vec<Server> = options
            .servers
            .iter()
            .filter(|kind| **kind != Kind::Bare || load.keeps())
            .map(|kind| kind.start(programs))
            .collect::<Result<_, _>>()?;
        let mut targets = targets(&servers, &tool);
        for target in &targets {
            let seconds = servers[target.server].kind.warm_up_seconds();
            let warm_up = tool.run(&servers[target.server], target.protocol, *load, seconds);
            warm_up.with_context(|| target.name(&servers))?;
        }
        for round in 0..rounds {
            for place in order(targets.len(), round) {
                let target = &mut targets[place];
                let sample = measure(&servers, target, *load, (&tool, seconds));
                let sample = sample.with_context(|| target.name(&servers))?;
                target.take(sample, &servers);
            }
        }
        say(&rows(*load, &servers, &targets));
    }
    say(NOTE);
    Ok(())
}

fn targets(servers: &[Server], tool: &Tool<'_>) -> Vec<Target> {
    let mut targets = Vec::new();
    for (server, protocols) in servers.iter().map(Server::protocols).enumerate() {
        for protocol in protocols {
            if tool.speaks(protocol) {
                let samples = Vec::new();
                targets.push(Target {
                    server,
                    protocol,
                    samples,
                });
            }
        }
    }
    targets
}

fn measure(
    servers: &[Server],
    target: &Target,
    load: Load,
    (tool, seconds): (&Tool<'_>, u32),
) -> anyhow::Result<Sample> {
    let server = &servers[target.server];
    let crowd = Crowd::gather(server, target.protocol, load.idle())?;
    let before = cpu::of_tree(server.pid())?;
    let running = tool.start(server, target.protocol, load, seconds)?;
    pause(Duration::from_secs(u64::from(seconds)) / 2);
    let (threads, memory) = (server.threads()?, server.memory()?);
    let report = running.finish()?;
    let cpu = cpu::of_tree(server.pid())? - before;
    crowd.check()?;
    Ok(Sample {
        report,
        cpu,
        threads,
        memory: memory.private_dirty,
    })
}

impl Target {
    fn name(&self, servers: &[Server]) -> String {
        format!("{}, {}", servers[self.server].name(), self.protocol)
    }

    fn take(&mut self, sample: Sample, servers: &[Server]) {
        if sample.report.failed > 0 {
            let name = self.name(servers);
            say(&format!(
                "a round of {name} is invalid: {} requests failed",
                sample.report.failed
            ));
        }
        self.samples
            .push(Some(sample).filter(|sample| sample.report.failed == 0));
    }

    fn costs(&self) -> Vec<Option<f64>> {
        let costs = self
            .samples
            .iter()
            .map(|sample| sample.as_ref().map(Sample::cost));
        costs.collect()
    }

    fn spread(&self, figure: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().flatten().map(figure))
    }

    fn median(&self, figure: impl Fn(&Sample) -> f64, places: usize) -> String {
        let spread = self.spread(figure);
        spread.map_or_else(
            || "-".to_owned(),
            |spread| format!("{:.places$}", spread.median),
        )
    }
}

impl Sample {
    /// Microseconds of CPU for each request.
    #[expect(clippy::cast_precision_loss, reason = "requests of some seconds")]
    fn cost(&self) -> f64 {
        self.cpu.total().as_secs_f64() * 1e6 / self.report.requests.max(1) as f64
    }

    /// The part of it that is the server's own and not the kernel's.
    fn user_cost(&self) -> f64 {
        self.cost() * self.cpu.user.div_duration_f64(self.cpu.total())
    }
}

/// The rows of one load; ratios are made within each round.
fn rows(load: Load, servers: &[Server], targets: &[Target]) -> String {
    let of = |kind: Kind, protocol: Protocol| {
        let found = targets
            .iter()
            .find(|target| servers[target.server].kind == kind && target.protocol == protocol);
        found.map(Target::costs)
    };
    let beside = |target: &Target, other: Option<Vec<Option<f64>>>| {
        let ratio = other.and_then(|other| ratios(&target.costs(), &other));
        ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
    };
    let mut text = String::new();
    for target in targets {
        let cost = target.spread(Sample::cost);
        let cells = [
            load.to_string(),
            target.name(servers),
            target.median(|sample| sample.report.per_second, 0),
            target.median(|sample| milliseconds(sample.report.p50), 2),
            target.median(|sample| milliseconds(sample.report.p99), 2),
            cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.1}")),
            target.median(Sample::user_cost, 1),
            beside(target, of(Kind::Nginx, Protocol::Http)),
            beside(target, of(Kind::Tomcat, target.protocol)),
            target.median(|sample| count(sample.threads as u64), 0),
            target.median(|sample| count(sample.memory) / f64::from(1 << 20), 1),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.trim_end().to_owned()
}

/// Measures what connections cost that do nothing, and prints the table.
pub(super) fn run_crowd(options: &Options, programs: Programs<'_>) -> anyhow::Result<()> {
    let (connections, seconds) = (options.idle_connections, options.idle_seconds);
    say(&format!(
        "\n== crowd: {connections} connections served once, then idle for {seconds} s\n\n{CROWD_HEADING}"
    ));
    for kind in options.servers.iter().filter(|kind| **kind != Kind::Bare) {
        let protocols = kind.start(programs)?.protocols();
        for protocol in protocols {
            // A fresh process for each, so that none inherits the memory of another.
            let server = kind.start(programs)?;
            let row = crowd_row(&server, protocol, connections, seconds);
            say(&row.with_context(|| kind.name())?);
        }
    }
    Ok(())
}

fn crowd_row(
    server: &Server,
    protocol: Protocol,
    connections: usize,
    seconds: u32,
) -> anyhow::Result<String> {
    // Whatever is allotted once, at the first connections, is none of the others' cost.
    drop(Crowd::gather(server, protocol, WARM_UP_CONNECTIONS)?);
    let before = server.memory()?;
    let crowd = Crowd::gather(server, protocol, connections)?;
    pause(SETTLE);
    let (after, cpu) = (server.memory()?, cpu::of_tree(server.pid())?);
    pause(Duration::from_secs(u64::from(seconds)));
    let busy = (cpu::of_tree(server.pid())? - cpu).total().as_secs_f64() / f64::from(seconds);
    let threads = server.threads()?;
    crowd.check()?;
    let each = |before: u64, after: u64| {
        let gained = count(after) - count(before);
        format!("{:.0}", gained / count(connections as u64))
    };
    let cells = [
        format!("{}, {protocol}", server.name()),
        each(before.anonymous, after.anonymous),
        each(before.private_dirty, after.private_dirty),
        format!("{:.1}", count(after.private_dirty) / f64::from(1 << 20)),
        threads.to_string(),
        format!("{:.2}", busy * 100.0),
    ];
    Ok(format!("| {} |", cells.join(" | ")))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn count(number: u64) -> f64 {
    number as f64
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const HEADING: &str = "\
| load | server | requests/s | p50 ms | p99 ms | CPU µs/request | of it user | of nginx's | of Tomcat's | threads | MiB |
|---|---|---|---|---|---|---|---|---|---|---|";

const NOTE: &str = "
Medians over rounds [lowest..highest]; ratios of CPU per request are made within each round, Tomcat's
over the same protocol. CPU is utime+stime of all of the server's processes, on one core; the load is
closed and has the other. Over HTTP it is the server that closes for a closing client, for one that
leaves, and over AJP13 always, the client. Memory is private and written, in the middle of a run.";

const CROWD_HEADING: &str = "\
| server | RssAnon B/connection | Private_Dirty B/connection | whole server MiB | threads | CPU % idle |
|---|---|---|---|---|---|";

const WARM_UP_CONNECTIONS: usize = 200;
/// Gives a server time to let go of what it needed for the requests.
const SETTLE: Duration = Duration::from_secs(1);
