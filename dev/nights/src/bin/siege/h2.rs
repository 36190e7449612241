//! `h2`: our own bench over HTTP/2, without and with TLS, while the front is reloaded and upgraded in turn, each
//! every five seconds. No request may fail.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_e2e::catamaran;
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, Process, Signal, signal_process};
use serde_json::Value;
use tokio::time::Instant;

use crate::reloads::{judge_ends, said};
use crate::tier::{App, Besieged, mib, upstream, usage, wait};

/// Starts two loads, reloads and upgrades the front in turn while they run, and judges that they lost nothing.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let apps = [
        App::start("ajp", "127.0.0.1:0")?,
        App::start("http", "127.0.0.1:0")?,
    ];
    let files = tempfile::tempdir()?;
    let urls: Vec<&str> = apps.iter().map(|app| app.url.as_str()).collect();
    write_certificate(files.path())?;
    let listeners = listeners(files.path());
    let mut front = Besieged::start("", &format!("{listeners}{}", upstream(&urls, "")))?;
    let line = front.front.wait_for_log("listening on https://")?;
    let (_, tls) = line.rsplit_once("https://").context("an address")?;
    let time = Duration::from_secs(60 * minutes);
    let targets = [
        format!("http://{}/bytes/1000", front.address()),
        format!("https://{}/bytes/1000", tls.trim()),
    ];
    // Both run at the same time; a failure to start one is reported at the end.
    let loads = targets.map(|url| anyhow::Ok((load(&url, time)?, url)));
    let end = Instant::now() + time;
    let mut id = front.id;
    let mut rounds = 0;
    while Instant::now() + 2 * PERIOD < end {
        rounds += 1;
        wait(PERIOD)?;
        signal_process(id, Signal::Hangup)?;
        said(&front, "reloaded;", rounds)?;
        wait(PERIOD)?;
        signal_process(id, Signal::User2)?;
        let line = said(&front, "another process has taken over", rounds)?;
        let (_, number) = line.rsplit_once("process=").context("a process")?;
        id = number.trim().parse()?;
    }
    let mut verdict = Verdict::default();
    for load in loads {
        let (load, url) = load?;
        judge_load(&mut verdict, &url, load)?;
    }
    println!(
        "{rounds} reloads and as many upgrades; heap of the last process {:.2} MiB",
        mib(usage(id)?.private)
    );
    verdict.at_least("reloads, and upgrades", rounds as f64, 2.0);
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    judge_ends(&mut verdict, &mut front, id)?;
    Ok(verdict)
}

/// Writes a certificate and its key to `files`.
fn write_certificate(files: &Path) -> anyhow::Result<()> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(files.join("chain.pem"), certified.cert.pem())?;
    fs::write(files.join("key.pem"), certified.signing_key.serialize_pem())?;
    Ok(())
}

/// More keys of the `[[listen]]` that [`Besieged`] begins, which make it speak HTTP/2 without TLS, and a second
/// listener with TLS and the certificate in `files`.
fn listeners(files: &Path) -> String {
    let directory = files.display();
    format!(
        "protocols = [\"h2\"]\n[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [[tls.www.certificate]]\nchain = \"{directory}/chain.pem\"\nkey = \"{directory}/key.pem\"\n"
    )
}

/// Ten connections with ten requests at a time on each.
fn load(url: &str, time: Duration) -> anyhow::Result<Process> {
    let duration = format!("{}s", time.as_secs());
    let words = ["bench", "--http2", "-q", "--json", "-W", "1", "-c", "10"];
    let more = ["--streams", "10", "--duration", &duration];
    catamaran(&[&words[..], &more[..], &[url]].concat())
}

/// Judges the counts of the bench.
fn judge_load(verdict: &mut Verdict, name: &str, mut load: Process) -> anyhow::Result<()> {
    load.wait(Deadline::default())?;
    let report: Value = serde_json::from_str(&load.stdout())
        .with_context(|| format!("bench: {}", load.stderr()))?;
    let requests = &report["requests"];
    println!("{name}: {requests}");
    let number = |what: &str| {
        let value = requests[what].as_u64();
        value.with_context(|| format!("bench reports no {what}"))
    };
    verdict.never(
        &format!("{name}: request lost"),
        number("started")? - number("ok")?,
    );
    verdict.never(&format!("{name}: status not 2xx"), number("non_2xx")?);
    verdict.at_least(&format!("{name}: requests"), number("ok")? as f64, 2000.0);
    Ok(())
}

/// The time between a reload and an upgrade.
const PERIOD: Duration = Duration::from_millis(2500);
