//! How much CPU a front spends on a large body, down and up.
//!
//! One body at a time on one connection. The client and the backend share the other core and may
//! be what limits the speed, so the figure to look at is what the front moves for each second of
//! *its* CPU time. Over AJP13 it depends on the backend: one that asks for a packet at a time makes
//! every 8 KiB of an upload a round trip, so there is a second table for that.

use anyhow::{Context, ensure};
use catamaran_gauge::cpu;

use super::client::Client;
use super::contender::{Asking, Front};
use super::series::Spread;
use super::table::Table;
use crate::step::{now, say};

/// Which way the body goes.
#[derive(Clone, Copy, Debug)]
enum Direction {
    Down,
    Up,
}

impl Direction {
    fn headings(&self) -> [&'static str; 2] {
        match self {
            Self::Down => ["down MB/CPU-s", "down MB/s"],
            Self::Up => ["up MB/CPU-s", "up MB/s"],
        }
    }
}

/// One body through one front.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    /// Seconds of the front's CPU time.
    cpu: f64,
    /// Seconds that passed.
    took: f64,
}

/// Measures, and prints the table. How the backend asks concerns uploads alone.
pub(super) fn run(
    fronts: &[Front],
    asking: Asking,
    rounds: usize,
    bytes: u64,
) -> anyhow::Result<()> {
    let (directions, what): (&[Direction], _) = match asking {
        Asking::Ahead => (
            &[Direction::Down, Direction::Up],
            "each way; over AJP13 sixteen packets of an upload are asked for at a time",
        ),
        Asking::OneByOne => (
            &[Direction::Up],
            "up; over AJP13 packets are asked for one by one, as Tomcat does",
        ),
    };
    say(&format!(
        "\n== bulk: {rounds} rounds of {} MiB {what}",
        bytes >> 20
    ));
    let headings = directions.iter().flat_map(Direction::headings);
    let mut table = Table::new(&Vec::from_iter(std::iter::once("front").chain(headings)));
    let mut all = vec![vec![Vec::new(); directions.len()]; fronts.len()];
    for _ in 0..rounds {
        for (front, transfers) in fronts.iter().zip(&mut all) {
            for (direction, transfers) in directions.iter().zip(transfers) {
                let transfer = measure(front, *direction, bytes);
                let what = || format!("{direction:?} through {}", front.contender.name());
                transfers.push(transfer.with_context(what)?);
            }
        }
    }
    for (front, transfers) in fronts.iter().zip(&all) {
        let cells = transfers.iter().flat_map(|transfers| row(transfers, bytes));
        let name = front.contender.name().to_owned();
        table.push(std::iter::once(name).chain(cells).collect());
    }
    say(&table.render());
    Ok(())
}

fn measure(front: &Front, direction: Direction, bytes: u64) -> anyhow::Result<Transfer> {
    let mut client = Client::connect(front.address)?;
    let (cpu, start) = (cpu::of_tree(front.server.pid())?, now());
    match direction {
        Direction::Down => {
            let got = client.get(&format!("/bytes/{bytes}"))?;
            ensure!(got == bytes, "{got} bytes instead of {bytes}");
        }
        Direction::Up => {
            client.post("/sink", bytes)?;
        }
    }
    let took = now().duration_since(start).as_secs_f64();
    let cpu = (cpu::of_tree(front.server.pid())? - cpu)
        .total()
        .as_secs_f64();
    Ok(Transfer { cpu, took })
}

#[expect(clippy::cast_precision_loss, reason = "gibibytes")]
fn row(transfers: &[Transfer], bytes: u64) -> [String; 2] {
    let megabytes = bytes as f64 / 1e6;
    let show = |seconds: fn(&Transfer) -> f64| {
        let rates = transfers
            .iter()
            .map(|transfer| megabytes / seconds(transfer));
        Spread::of(rates).map_or_else(String::new, |rates| format!("{rates:.0}"))
    };
    [
        show(|transfer| transfer.cpu),
        show(|transfer| transfer.took),
    ]
}
