//! `reloads`: 200 reloads and 20 upgrades in place under load. No request may fail (F18, F21).

use std::fs;
use std::sync::Arc;

use anyhow::Context as _;
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, Signal, signal_process};

use crate::honest::{Kind, Latency, Load};
use crate::tally::{Tally, millis};
use crate::tier::{App, Besieged, config, mib, upstream, usage};

/// Reloads and upgrades the front while clients with kept and with new connections send requests.
pub(crate) fn run() -> anyhow::Result<Verdict> {
    let apps = [
        App::start("ajp", "127.0.0.1:0")?,
        App::start("http", "127.0.0.1:0")?,
    ];
    let urls: Vec<&str> = apps.iter().map(|app| app.url.as_str()).collect();
    let tables = upstream(&urls, "");
    let mut front = Besieged::start("", &tables)?;
    let tally = Arc::new(Tally::default());
    let on_kept_connections = Load {
        front: front.address(),
        clients: 60,
        rate: 300.0,
        mix: MIX,
        latency: Latency::SinceDue,
        requests_max: 0,
    };
    let on_new_connections = Load {
        rate: 100.0,
        clients: 30,
        requests_max: 1,
        ..on_kept_connections.clone()
    };
    let mut heaps = (0, 0);
    let (last, took) = on_kept_connections
        .during(&tally, || {
            let (last, _) = on_new_connections.during(&tally, || {
                heaps = reload(&mut front, &tables, &tally)?;
                upgrade(&front, &tally)
            })?;
            Ok(last)
        })
        .context("while reloading or upgrading")?;
    println!(
        "{tally}\n{:.1} s, p99 {:.1} ms",
        took.as_secs_f64(),
        millis(tally.percentile(0.99))
    );
    println!(
        "heap after {SETTLED} reloads {:.2} MiB, after {RELOADS} {:.2} MiB",
        mib(heaps.0),
        mib(heaps.1)
    );
    let mut verdict = Verdict::default();
    judge_requests(&mut verdict, &tally);
    let growth = heaps.1 as f64 / heaps.0 as f64 - 1.0;
    verdict.at_most(
        "growth of the heap over the second 100 reloads",
        growth,
        0.1,
    );
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    judge_ends(&mut verdict, &mut front, last)?;
    Ok(verdict)
}

/// Judges that each request of the load was answered 200, and that there were many.
fn judge_requests(verdict: &mut Verdict, tally: &Tally) {
    let kinds = ["page", "echo", "slow"];
    let total: u64 = kinds.iter().map(|kind| tally.total(kind)).sum();
    let served: u64 = kinds.iter().map(|kind| tally.count(kind, &["200"])).sum();
    verdict.never("request failed", total - served);
    verdict.at_least("requests", total as f64, 2000.0);
}

/// Judges that the first process has drained, and that the last one drains when it is told to.
pub(crate) fn judge_ends(
    verdict: &mut Verdict,
    front: &mut Besieged,
    last: u32,
) -> anyhow::Result<()> {
    let exit_status = || front.front.process().try_wait().ok().flatten();
    let status = Deadline::default().poll("the first process to end", exit_status)?;
    verdict.judge("the first process ended with 0", status, status.success());
    signal_process(last, Signal::Terminate)?;
    // The last process is no child of this one, so only /proc tells of its end.
    let is_gone = || match fs::exists(format!("/proc/{last}")) {
        Ok(false) => Some(()),
        Ok(true) | Err(_) => None,
    };
    let has_ended = Deadline::default()
        .poll("the last process to end", is_gone)
        .is_ok();
    verdict.judge("the last process ends on SIGTERM", has_ended, has_ended);
    Ok(())
}

/// Reloads the front: every second time a listener is added, and removed the next time. Returns the heap after
/// [`SETTLED`] reloads and at the end.
fn reload(front: &mut Besieged, tables: &str, tally: &Tally) -> anyhow::Result<(u64, u64)> {
    let file = front.front.directory().join("catamaran.toml");
    let mut early = 0;
    for turn in 1..=RELOADS {
        let path = front.front.directory().join(format!("{turn}.sock"));
        let listener = format!("[[listen]]\naddress = \"unix:{}\"\n", path.display());
        let more = if turn % 2 == 1 { listener.as_str() } else { "" };
        fs::write(&file, config("", &format!("{more}{tables}")))?;
        front.front.process().signal(Signal::Hangup)?;
        said(front, "reloaded;", turn)?;
        tally.wait_for_more(20)?;
        if turn == SETTLED {
            early = front.usage()?.private;
        }
    }
    Ok((early, front.usage()?.private))
}

/// Upgrades the front twenty times; returns the id of the last process.
fn upgrade(front: &Besieged, tally: &Tally) -> anyhow::Result<u32> {
    let mut id = front.id;
    for turn in 1..=UPGRADES {
        signal_process(id, Signal::User2)?;
        let line = said(front, "another process has taken over", turn)?;
        let (_, number) = line.rsplit_once("process=").context("a process")?;
        id = number.trim().parse()?;
        usage(id).context("the new process")?;
        tally.wait_for_more(200)?;
    }
    Ok(id)
}

/// Waits for the `nth` line of the log with `text` in it.
pub(crate) fn said(front: &Besieged, text: &str, nth: usize) -> anyhow::Result<String> {
    let nth_line = || {
        let log = front.front.log();
        let mut lines = log.lines().filter(|line| line.contains(text));
        lines.nth(nth - 1).map(str::to_owned)
    };
    let event = format!("{text:?} for the {nth}th time");
    Deadline::default()
        .poll(&event, nth_line)
        .with_context(|| front.front.log())
}

const RELOADS: usize = 200;
/// After this many reloads the allocator has all memory that one reload needs; further growth is a leak.
const SETTLED: usize = 100;
const UPGRADES: usize = 20;
const MIX: &[Kind] = &[Kind::Page, Kind::Page, Kind::Page, Kind::Echo, Kind::Slow];
