//! Attacks our front, nginx and HAProxy, and writes a section of `docs/hardening.md`: how other clients fare while a
//! few hold responses, cancel requests or stall handshakes.
//!
//! ```text
//! cargo run -p catamaran-nights --bin under_fire > dev/nights/src/bin/under_fire/section.md
//! ```
//!
//! With `held`, `schemes`, `cancels` or `handshakes` it prints only the rows of that attack.
//!
//! It needs nginx and HAProxy (`cargo xtask needs`) and takes four minutes. The binary is that of
//! `CATAMARAN_BIN`, else the newest in the target directory. The example `hardening` makes the section part
//! of its page.

#![expect(clippy::print_stdout, reason = "its output is the section")]

mod backend;
mod cancels;
mod client;
mod handshakes;
mod held;
mod schemes;
mod server;

use std::time::Duration;

use anyhow::{Context as _, bail};
use catamaran_testkit::tls::Authority;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{Kind, Stage};
use tokio::time::{Interval, interval, sleep};

fn main() -> anyhow::Result<()> {
    raise_descriptors()?;
    let files = tempfile::tempdir()?;
    let authority = Authority::new("under fire")?;
    authority.issue(files.path(), "www", &["localhost"])?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stage = Stage {
        certificates: files.path().to_owned(),
        authority: authority.der().to_vec(),
    };
    let mut only = std::env::args().skip(1);
    match only.next() {
        None => runtime.block_on(section(&stage)),
        Some(name) => runtime.block_on(async {
            rows(&stage, &name).await?.iter().for_each(print);
            Ok(())
        }),
    }
}

/// The rows of one attack.
async fn rows(stage: &Stage, name: &str) -> anyhow::Result<Vec<Row>> {
    match name {
        "held" => held::rows(stage).await,
        "schemes" => Ok(vec![schemes::row(stage).await?]),
        "cancels" => Ok(vec![cancels::row(stage).await?]),
        "handshakes" => handshakes::rows(stage).await,
        _ => bail!("usage: under_fire [{}]", NAMES.join("|")),
    }
}

fn print(row: &Row) {
    let cells = row.cells.join(" | ");
    println!("| {} | {cells} |", row.attack);
}

/// Prints the whole section: all attacks, with the introduction and the notes.
async fn section(stage: &Stage) -> anyhow::Result<()> {
    println!("{INTRODUCTION}");
    let names: Vec<String> = Kind::ALL
        .map(Kind::title)
        .into_iter()
        .collect::<Result<_, _>>()?;
    println!("| attack | {} |", names.join(" | "));
    println!("|---|---|---|---|");
    for name in NAMES {
        let rows = rows(stage, name).await.context(name)?;
        rows.iter().for_each(print);
    }
    print!("{NOTES}");
    Ok(())
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) attack: String,
    /// One cell for each server.
    pub(crate) cells: Vec<String>,
}

/// Waits while other tasks run.
pub(crate) async fn pause(time: Duration) {
    sleep(time).await;
}

/// An interval with `a_second` ticks per second.
pub(crate) fn ticks(a_second: f64) -> Interval {
    interval(Duration::from_secs_f64(1.0 / a_second))
}

/// Raises the limit of open files: attackers and backends are all in this process.
fn raise_descriptors() -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).context("descriptors")
}

const INTRODUCTION: &str = "## 3. Under fire

The table has what a few clients can take from the others: by responses that they ask for and do not take, by
requests that they cancel, and by handshakes that they begin and leave. Catamaran, nginx and HAProxy each
stand in front of a backend of the same kind.
";

const NOTES: &str = "
- All have two workers, at most 200 connections to the backend, and room for 20,000 clients. Otherwise
  Catamaran and nginx have their defaults, and HAProxy the timeouts of Debian's file (client and server 50 s).
- Responses held: two clients each ask for 100 responses of 300 KB over HTTP/2 (90 if they ask for heads
  besides), with windows of 1 MiB for each response and of 64 KiB for the connection. Then they take nothing,
  and send the frames of the row, 40 a second. A cell has the requests under way at the backend after 2, 30 and
  60 s, and how many of the others, who asked twice a second from 2 s to 75 s, were not answered 200. nginx
  stores responses on its disk (`proxy_buffering`), so its backend is free early. With one byte more for the
  connection, Catamaran keeps two responses of each client for more than a minute: they had the 64 KiB that the
  client took at first, which is 500 bytes a second (`write_rate_min`) for so long.
- Scheme: the status for a balancer in `trusted_proxies` that ends TLS, speaks HTTP/2 in clear and names the
  scheme of its users.
- Cancels: a balancer's connection carries 100 requests a second of some users, for 20 s, while others cancel
  40 a second. A request that the server says it has not begun is sent again, as balancers do. A cell has the
  requests of the others that were lost, and the connections that it took.
- Handshakes: clients send a whole ClientHello and nothing more. A cell has the handshakes of others, ten a
  second from the 10th to the 25th second, that failed or took longer than 3 s.

The figures are those of a debug build of Catamaran, on two cores that did other work at the same time. These
commands write the section anew, with a release build:

```
cargo xtask needs                                                    # installs the servers
cargo build --release -p catamaran
CATAMARAN_BIN=target/release/catamaran cargo run -p catamaran-nights --bin under_fire \\
    > dev/nights/src/bin/under_fire/section.md
```
";

const NAMES: [&str; 4] = ["held", "schemes", "cancels", "handshakes"];
