//! Long runs of the built front under fire: each prints what it saw against its criteria and exits
//! with 1 if one was not met.
//!
//! ```text
//! cargo run --release -p catamaran-nights --bin siege -- NAME [--minutes N]
//! ```
//!
//! | name | what | takes |
//! |---|---|---|
//! | `soak` | 2,000 connections: honest, slow, vanishing and hostile clients, a failing backend | N minutes, 60 unless told |
//! | `cache-clients` | 30 clients of a cache that leave, ask for parts and with conditions, purges, reloads, and an application with odd responses | N minutes, 10 unless told |
//! | `drops` | a backend that drops idle connections at random, over HTTP/1.1 and over AJP13 (F1) | twice N minutes, 2 unless told |
//! | `handshakes` | full TLS handshakes as fast as OpenSSL asks for them, and 10,000 connections on which none begins | N minutes, 2 unless told |
//! | `reloads` | 200 reloads and 20 upgrades under load (F18, F21) | half a minute |
//! | `h2` | HTTP/2 in clear and over TLS, with a reload and an upgrade every five seconds | N minutes, 10 unless told |
//! | `failover` | three Tomcats: kill -9, restart, SIGSTOP, no answer to SYN (F2 to F5) | 2 minutes |
//! | `overload` | thrice the backend's capacity, and a flood of connections (F16, F17) | 1 minute |
//! | `payara` | GETs and uploads to Payara over AJP13, each response checked whole; `cargo xtask payara` runs it | a minute |
//! | `limits` | five times as many strange keys a second as limits have room for, beside honest and greedy clients; then nginx | twice N minutes, 1 unless told; in 9 minutes there are 10 million keys |
//! | `passwords` | 1,000 wrong passwords a second, from one address and from many, beside clients on open routes and with remembered passwords (row 17 of the sign-on) | N minutes, 2 unless told |
//! | `fd` | no further file may be opened (F13) | half a minute |
//!
//! The binary is that of `CATAMARAN_BIN`, else the newest in the target directory. `failover` needs
//! Tomcat, `handshakes` and `limits` need nginx, `passwords` needs apache2-utils, which `cargo xtask test` installs. Everything runs on
//! this machine, at rates that leave most of two cores free; only `drops`, `h2`, `handshakes`,
//! `limits`, `passwords` and `overload` send more than 400 requests a second. Latencies are those of a shared machine: they are
//! compared within one run, never alone.

#![expect(clippy::print_stdout, reason = "its output is the report")]
#![expect(
    dead_code,
    reason = "modules of the tests, of which this needs the rows alone"
)]

mod cache_clients;
mod client;
mod drops;
mod exhausted;
mod failover;
mod flaky;
mod h2;
mod handshakes;
mod honest;
mod limits;
mod odd;
mod overload;
mod paced;
mod passwords;
mod payara;
mod reloads;
#[path = "../../../../e2e/tests/it/hardening/request_rows.rs"]
mod request_rows;
#[path = "../../../../e2e/tests/it/hardening/row.rs"]
mod row;
mod rude;
mod soak;
mod tally;
mod tier;

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use catamaran_nights::Verdict;

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

/// Runs the siege that the arguments name, for the given or its usual number of minutes.
fn run(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Verdict> {
    let name = arguments.next().context(USAGE)?;
    let minutes = match arguments.next().as_deref() {
        None => None,
        Some("--minutes") => {
            let number = arguments.next().context(USAGE)?;
            Some(number.parse().context(USAGE)?)
        }
        Some(_) => bail!(USAGE),
    };
    match name.as_str() {
        "soak" => soak::run(minutes.unwrap_or(60)),
        "cache-clients" => cache_clients::run(minutes.unwrap_or(10)),
        "reloads" => reloads::run(),
        "h2" => h2::run(minutes.unwrap_or(10)),
        "overload" => overload::run(),
        "fd" => exhausted::run(),
        "failover" => failover::run(),
        "payara" => payara::run(),
        "handshakes" => handshakes::run(minutes.unwrap_or(2)),
        "limits" => limits::run(minutes.unwrap_or(1)),
        "passwords" => passwords::run(minutes.unwrap_or(2)),
        "drops" => drops::run(minutes.unwrap_or(2)),
        _ => bail!(USAGE),
    }
}

const USAGE: &str = "usage: siege soak|cache-clients|drops|handshakes|reloads|h2|failover|overload|payara|limits|passwords|fd [--minutes N]";
