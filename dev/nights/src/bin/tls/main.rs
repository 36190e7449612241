//! Measures what TLS costs our front, nginx and HAProxy: CPU time for each handshake and each request, and memory for
//! each idle connection. All have one worker on one core, the same certificate, versions, curves and tickets, and the
//! same application behind them; load and application have the other core. The fronts take turns within each round,
//! so that a ratio compares measurements that follow each other.
//!
//! ```text
//! cargo run --release -p catamaran-nights --bin tls -- [--rounds N] [ROW…]
//! ```
//!
//! It needs root, two cores, OpenSSL, nginx and HAProxy (`cargo xtask needs`), and takes some 40 s a
//! round. The binary is that of `CATAMARAN_BIN`, else the newest in the target directory: use a release
//! build. [`row::ROWS`] has the rows; without any name all are measured.

#![expect(clippy::print_stdout, reason = "its output is the report")]

mod idle;
mod load;
mod row;
mod stand;
mod table;

use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use row::{ROWS, Row};
use stand::{FRONTS, Stand};
use table::Table;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:?}");
            ExitCode::from(2)
        }
    }
}

/// Measures the rows that the arguments name, or all, and prints the table.
fn run(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut rounds = ROUNDS;
    let mut rows: Vec<&Row> = Vec::new();
    while let Some(word) = arguments.next() {
        if word == "--rounds" {
            let number = arguments.next().context(USAGE)?;
            rounds = number.parse().context(USAGE)?;
        } else if let Some(row) = ROWS.iter().find(|row| row.name == word) {
            rows.push(row);
        } else {
            let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            bail!("{USAGE}; rows: {}", names.join(" "));
        }
    }
    if rows.is_empty() {
        rows.extend(ROWS);
    }
    ensure!(
        rounds >= ROUNDS_MIN,
        "an interval needs {ROUNDS_MIN} rounds"
    );
    let stand = Stand::start()?;
    let mut tables: Vec<Table> = rows.into_iter().map(Table::new).collect();
    for round in 0..rounds {
        for table in &mut tables {
            table.add(round, |front| table.row.measure(&stand, front))?;
            println!("{round:2} {}", table.last());
        }
    }
    println!(
        "\n| | {} | ours / nginx | ours / HAProxy | goal ÷ nginx |",
        FRONTS.join(" | ")
    );
    println!("|---|---|---|---|---|---|---|");
    for table in &tables {
        println!("{table}");
    }
    Ok(())
}

const USAGE: &str = "usage: tls [--rounds N] [ROW…]";
const ROUNDS: usize = 12;
/// The fewest rounds that give an interval of 95 %.
const ROUNDS_MIN: usize = 6;
