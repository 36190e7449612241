//! What a client costs that has asked once and keeps its connection.
//!
//! Memory is what the front's processes have gained since before the connections, over their
//! number: user memory only, the kernel's sockets cost every front the same. Every connection is
//! asked again at the end, so that one that was closed meanwhile does not pass for cheap.

use std::time::Duration;

use anyhow::Context;
use catamaran_gauge::cpu;
use catamaran_gauge::memory::Shares;

use super::client::Client;
use super::contender::Front;
use super::pause;
use super::table::Table;
use crate::step::{now, say};

/// Measures, and prints the table.
pub(super) fn run(fronts: &[Front], connections: usize, seconds: u32) -> anyhow::Result<()> {
    say(&format!(
        "\n== idle: {connections} kept-alive connections, {seconds} s"
    ));
    let mut table = Table::new(&[
        "front",
        "RssAnon B/conn",
        "Private_Dirty B/conn",
        "whole front MiB",
        "CPU % idle",
        "lost",
    ]);
    for front in fronts {
        let cost = measure(front, connections, seconds);
        let cost = cost.with_context(|| front.contender.name())?;
        table.push(cost.row(front, connections));
    }
    say(&table.render());
    Ok(())
}

/// What one front's idle connections have cost.
#[derive(Debug)]
struct Cost {
    before: Shares,
    after: Shares,
    /// CPU time while idle as a share of one core.
    busy: f64,
    /// Connections that did not answer a second time.
    lost: usize,
}

fn measure(front: &Front, connections: usize, seconds: u32) -> anyhow::Result<Cost> {
    let pid = front.server.pid();
    // Whatever the front allots once, at its first requests, is no connection's cost.
    let mut first = Client::connect(front.address)?;
    for _ in 0..WARM_UP_REQUESTS {
        first.get("/")?;
    }
    drop(first);
    let before = front.server.memory()?;
    let mut clients = Vec::with_capacity(connections);
    for number in 0..connections {
        let mut client =
            Client::connect(front.address).with_context(|| format!("connection {number}"))?;
        let answer = client.get("/");
        answer.with_context(|| format!("connection {number}"))?;
        clients.push(client);
    }
    pause(SETTLE);
    let after = front.server.memory()?;
    let (cpu, start) = (cpu::of_tree(pid)?, now());
    pause(Duration::from_secs(u64::from(seconds)));
    let used = (cpu::of_tree(pid)? - cpu).total();
    let busy = used.div_duration_f64(now().duration_since(start));
    let again = clients.iter_mut().map(|client| client.get("/"));
    let lost = again.filter(Result::is_err).count();
    Ok(Cost {
        before,
        after,
        busy,
        lost,
    })
}

impl Cost {
    #[expect(clippy::cast_precision_loss, reason = "thousands of connections")]
    fn row(&self, front: &Front, connections: usize) -> Vec<String> {
        let Self { before, after, .. } = self;
        let each = |before: u64, after: u64| {
            let gained = after as f64 - before as f64;
            format!("{:.0}", gained / connections as f64)
        };
        vec![
            front.contender.name().to_owned(),
            each(before.anonymous, after.anonymous),
            each(before.private_dirty, after.private_dirty),
            format!("{:.1}", after.private_dirty as f64 / f64::from(1 << 20)),
            format!("{:.2}", self.busy * 100.0),
            self.lost.to_string(),
        ]
    }
}

const WARM_UP_REQUESTS: usize = 200;
/// Gives a front time to let go of what it needed for the requests.
const SETTLE: Duration = Duration::from_secs(1);
