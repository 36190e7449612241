//! Renews a certificate by ACME again and again while clients come, and counts those that failed.
//!
//! ```text
//! cargo run -p catamaran-nights --bin renewals -- [TIMES]
//! ```
//!
//! The certificates of its Pebble end after a minute, so the front renews each after about half of that: the 20 renewals
//! that are made unless TIMES says otherwise take about ten minutes. Meanwhile two clients make one new connection after
//! the other. It prints the numbers, and exits with 1 if a client failed. It needs Pebble (`cargo xtask needs`). The binary
//! is that of `CATAMARAN_BIN`, else the newest in the target directory.

#![expect(clippy::print_stdout, reason = "its output is the report")]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::{Front, Pebble, PebbleSettings, curl};
use catamaran_testkit::Deadline;

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            println!("{error:?}");
            ExitCode::from(2)
        }
    }
}

/// Returns how many clients failed.
fn run(times: Option<&str>) -> anyhow::Result<u64> {
    let times: f64 = times.map_or(Ok(TIMES), str::parse)?;
    let settings = PebbleSettings {
        lifetime: Duration::from_secs(60),
        ..PebbleSettings::default()
    };
    let pebble = Pebble::start_with(&[], &settings)?;
    let state = tempfile::tempdir()?;
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [[listen]]\naddress = \"{}\"\n\
         [[route]]\nstatus = 200\n\
         [tls.www.acme]\nnames = \"a.test\"\nterms_agreed = true\npreflight = false\n\
         directory = \"{}\"\nca_file = \"{}\"\nstate_dir = \"{}\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n",
        pebble.challenges(),
        pebble.directory_url(),
        pebble.ca_file().display(),
        state.path().display(),
    ))?;
    let address = front.address();
    let first =
        Deadline::default().poll("the first certificate", || is_served(address).then_some(()));
    first.with_context(|| front.log())?;
    let load = LoadCounts::default();
    let renewed = thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| load.run(address));
        }
        let renewed = Deadline::after(Duration::from_secs(60 * 60)).poll("renewals", || {
            let attempts = front.metric("catamaran_acme_attempts_total").ok()?;
            let issued = attempts.first().copied()?;
            (issued > times).then_some(attempts)
        });
        load.is_over.store(true, Ordering::Relaxed);
        renewed
    });
    let attempts = renewed.with_context(|| front.log())?;
    let (made, failed) = (load.made.into_inner(), load.failed.into_inner());
    println!("attempts (issued, failed): {attempts:?}; clients: {made}, failed: {failed}");
    Ok(failed)
}

/// What clients met.
#[derive(Default)]
struct LoadCounts {
    made: AtomicU64,
    failed: AtomicU64,
    is_over: AtomicBool,
}

impl LoadCounts {
    /// Makes one new connection after the other.
    fn run(&self, address: SocketAddr) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.made.fetch_add(1, Ordering::Relaxed);
            if !is_served(address) {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
            thread::park_timeout(PAUSE);
        }
    }
}

/// Whether a new client is answered.
fn is_served(address: SocketAddr) -> bool {
    let (ip, port) = (address.ip(), address.port());
    let resolve = format!("a.test:{port}:{ip}");
    let output = curl()
        .args(["--insecure", "--resolve", &resolve, "--output", "/dev/null"])
        .args(["--write-out", "%{http_code}"])
        .arg(format!("https://a.test:{port}/"))
        .output();
    output.is_ok_and(|it| it.stdout == b"200")
}

/// How many renewals are made.
const TIMES: f64 = 20.0;

const CLIENTS: usize = 2;

/// The pause of a client between two connections.
const PAUSE: Duration = Duration::from_millis(50);
