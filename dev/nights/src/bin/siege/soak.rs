//! `soak`: 2,000 connections of all kinds for a given time. Memory and open files may not grow, no honest request may
//! fail, and nothing may be left at the end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, Signal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::honest::{Kind, Latency, Load};
use crate::tally::{Tally, millis};
use crate::tier::{App, Besieged, Usage, event_loop, mib, pause, upstream};
use crate::{flaky, rude};

/// Starts the front before two applications and the failing backend, and besieges it.
pub(crate) fn run(minutes: u64) -> anyhow::Result<Verdict> {
    let apps = [
        App::start("ajp", "127.0.0.1:0")?,
        App::start("http", "127.0.0.1:0")?,
    ];
    let urls: Vec<&str> = apps.iter().map(|app| app.url.as_str()).collect();
    let flaky = flaky::start()?;
    let tables = format!(
        "[[route]]\npath = \"/flaky\"\nupstream = \"flaky\"\n[[upstream.flaky.backend]]\n\
         url = \"http://{flaky}\"\nfirst_byte_timeout = \"2s\"\n{IDLE}{}",
        upstream(&urls, IDLE)
    );
    let mut front = Besieged::start("", &tables)?;
    let runtime = event_loop()?;
    runtime.block_on(besiege(&mut front, minutes))
}

/// Runs all clients for `minutes`, watches the front meanwhile, and judges what was seen.
async fn besiege(front: &mut Besieged, minutes: u64) -> anyhow::Result<Verdict> {
    let fresh = front.usage()?;
    let (honest, rude) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
    let load = Load {
        front: front.address(),
        clients: CLIENTS - SLOW - VANISHING - HOSTILE,
        rate: RATE,
        mix: MIX,
        latency: Latency::SinceDue,
        requests_max: 0,
    };
    let working = load.start(&honest);
    let mut tasks = JoinSet::new();
    for _ in 0..SLOW {
        tasks.spawn(rude::read_slowly(load.front, Arc::clone(&rude)));
    }
    for _ in 0..VANISHING {
        tasks.spawn(rude::vanish(load.front, Arc::clone(&rude)));
    }
    for _ in 0..HOSTILE {
        tasks.spawn(rude::attack(load.front, Arc::clone(&rude)));
    }
    let samples = watch(front, Duration::from_secs(60 * minutes), &honest).await?;
    tasks.shutdown().await;
    working.stop().await;
    println!("honest: {honest}\nrude: {rude}");
    let mut verdict = Verdict::default();
    judge_clients(&mut verdict, &honest, minutes);
    judge_memory(&mut verdict, &samples);
    judge_end(&mut verdict, front, fresh).await?;
    Ok(verdict)
}

/// Samples the front every ten seconds.
async fn watch(front: &Besieged, length: Duration, honest: &Tally) -> anyhow::Result<Vec<Usage>> {
    let (began, mut samples) = (Instant::now(), Vec::new());
    println!("second  open  heap MiB  RSS MiB  PSS MiB  files  CPU s  p99 ms");
    while began.elapsed() < length {
        pause(Duration::from_secs(10).min(length)).await;
        let usage = front.usage()?;
        let open = front.metric("catamaran_connections_open")?;
        println!(
            "{:6}  {open:4}  {:8.2}  {:7.2}  {:7.2}  {:5}  {:5.1}  {:.1}",
            began.elapsed().as_secs(),
            mib(usage.private),
            mib(usage.resident),
            mib(usage.proportional),
            usage.open_files,
            usage.cpu.as_secs_f64(),
            millis(honest.percentile(0.99)),
        );
        samples.push(usage);
    }
    Ok(samples)
}

/// Judges the requests of honest clients. Those to the failing backend may fail in the ways that its failures lead
/// to.
fn judge_clients(verdict: &mut Verdict, honest: &Tally, minutes: u64) {
    let mut wrong = 0;
    for kind in MIX.iter().filter(|kind| **kind != Kind::Flaky) {
        let name = kind.name();
        wrong += honest.total(name) - honest.count(name, &["200"]);
    }
    verdict.never("honest request failed", wrong);
    let flaky = honest.total("flaky");
    let known = ["200", "502", "503", "504", "truncated"];
    let others = flaky - honest.count("flaky", &known);
    verdict.never("strange end of a request to the failing backend", others);
    let requests: u64 = MIX_NAMES.iter().map(|name| honest.total(name)).sum();
    let expected = RATE * 60.0 * minutes as f64;
    verdict.at_least(
        "share of the planned requests made",
        requests as f64 / expected,
        0.9,
    );
}

/// Judges that the last quarter of the time used no more memory than the time between the first sixth and the last
/// quarter. Memory in use varies by a tenth with the load of the machine; a leak only grows.
fn judge_memory(verdict: &mut Verdict, samples: &[Usage]) {
    let warm = &samples[samples.len() / 6..];
    let quarter = (warm.len() / 4).max(1);
    let (before, last) = warm.split_at(warm.len() - quarter);
    let growth = |figure: fn(&Usage) -> f64| {
        median(last.iter().map(figure)) / median(before.iter().map(figure)) - 1.0
    };
    let heap = growth(|usage| usage.private as f64);
    verdict.at_most("growth of the heap", heap, GROWTH_MAX);
    let pss = growth(|usage| usage.proportional as f64);
    verdict.at_most("growth of PSS", pss, GROWTH_MAX);
    let files = growth(|usage| usage.open_files as f64);
    verdict.at_most("growth of open files", files, 2.0 * GROWTH_MAX);
}

/// Judges that nothing is left when all clients have gone.
async fn judge_end(
    verdict: &mut Verdict,
    front: &mut Besieged,
    fresh: Usage,
) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(90);
    let gauges = [
        "catamaran_connections_open",
        "catamaran_backend_in_flight",
        "catamaran_backend_waiting",
        "catamaran_backend_connections_open",
        "catamaran_backend_connections_idle",
    ];
    let mut sum = f64::INFINITY;
    while sum > 0.0 && Instant::now() < until {
        pause(Duration::from_millis(500)).await;
        sum = 0.0;
        for gauge in gauges {
            sum += front.metric(gauge)?;
        }
    }
    verdict.at_most("sum of all gauges at the end", sum, 0.0);
    let usage = front.usage()?;
    let (heap_before, heap_after) = (mib(fresh.private), mib(usage.private));
    println!("heap at the start {heap_before:.2} MiB, when all are gone {heap_after:.2} MiB");
    let files = usage.open_files;
    let extra = files.saturating_sub(fresh.open_files);
    verdict.at_most("more files open than at the start", extra as f64, 2.0);
    for line in front.alarms() {
        println!("{line}");
    }
    verdict.never("panic or error in the log", front.alarms().len() as u64);
    let retries = front.metric("catamaran_retries_total")?;
    println!("retries: {retries}");
    front.front.process().signal(Signal::Terminate)?;
    let status = front.front.process().wait(Deadline::default())?;
    let code = status.code().context("ended by a signal")?;
    verdict.at_most("exit code", f64::from(code), 0.0);
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A few more than the 2,000 connections that are to be open, because clients are not always connected.
const CLIENTS: usize = 2200;
const SLOW: usize = 100;
const VANISHING: usize = 200;
const HOSTILE: usize = 200;

/// Honest requests a second.
const RATE: f64 = 200.0;

const MIX: &[Kind] = &[
    Kind::Page,
    Kind::Page,
    Kind::Page,
    Kind::Page,
    Kind::Page,
    Kind::Echo,
    Kind::Echo,
    Kind::Download,
    Kind::Upload,
    Kind::Flaky,
];

const MIX_NAMES: [&str; 5] = ["page", "echo", "download", "upload", "flaky"];

/// The growth that is taken for noise.
const GROWTH_MAX: f64 = 0.02;

/// Idle connections to backends are closed soon.
const IDLE: &str = "idle_timeout = \"5s\"\n";
