//! Long runs of the built front under fire: each prints what it saw against its criteria and exits
//! with 1 if one was not met.
//!
//! ```text
//! cargo run --release -p catamaran-e2e --example siege -- NAME [--minutes N]
//! ```
//!
//! | name | what | takes |
//! |---|---|---|
//! | `soak` | 2,000 connections: honest, slow, vanishing and hostile clients, a failing backend | N minutes, 60 unless told |
//!
//! The binary is that of `CATAMARAN_BIN`, else the newest in the target directory. Everything runs
//! on this machine; `soak` sends 200 requests a second, so that it can run beside other work.

#![expect(clippy::print_stdout, reason = "its output is the report")]
#![expect(
    dead_code,
    reason = "modules of the tests, of which this needs the rows alone"
)]

mod client;
mod drops;
mod flaky;
mod honest;
#[path = "../../tests/it/hardening/request_rows.rs"]
mod request_rows;
#[path = "../../tests/it/hardening/row.rs"]
mod row;
mod rude;
mod soak;
mod tally;
mod tier;
mod verdict;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use verdict::Verdict;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(verdict) if verdict.print() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            println!("{error:?}");
            ExitCode::from(2)
        }
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Verdict> {
    let name = arguments.next().context(USAGE)?;
    let minutes = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => None,
        (Some("--minutes"), Some(number)) => Some(number.parse().context(USAGE)?),
        _ => bail!(USAGE),
    };
    match name.as_str() {
        "soak" => soak::run(minutes.unwrap_or(60)),
        "drops" => drops::run(minutes.unwrap_or(2)),
        _ => bail!(USAGE),
    }
}

const USAGE: &str = "usage: siege soak [--minutes N]";
