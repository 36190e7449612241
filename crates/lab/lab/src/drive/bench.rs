//! Runs the load generator: its command line, its warm-up, and its report.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_load::document::Tick;
use catamaran_load::report::{Report, SecondFacts, Silence};

use super::child::{self, ChildExit, DRIVEN};
use super::stage::Stage;
use super::watch::TICK;
use super::{DriveFault, Driver};
use crate::experiment::{Addresses, Experiment, HttpVersion, Load, OriginalRun};
use crate::extra::echo;
use crate::run::Second;

/// The report of a load generator, and its files.
#[derive(Debug)]
pub(super) struct LoadReport {
    pub(super) document: Report,
    pub(super) text: String,
    /// The latencies, as a log for HdrHistogram's tools; empty if the load is an echo.
    pub(super) latency: String,
}

/// The parameters of one call of the load generator.
#[derive(Clone, Copy)]
pub(super) struct LoadCall<'a> {
    /// The name of the load generator's group in the space.
    pub(super) name: &'a str,
    pub(super) load: &'a Load,
    /// The duration of the load: that of the measured span or of the whole warm-up.
    pub(super) time: Duration,
    /// The seed of random numbers. A warm-up has another one than the measured load, so that a
    /// cache does not already have what is requested at random.
    pub(super) seed: u64,
}

/// A function that is called at each tick with the generator's progress; it is not called if the load is an echo.
pub(super) type TickListener<'a> = Option<&'a mut dyn FnMut(Tick)>;

/// Runs the load generator, which is `bench` or that of an echo, and returns its report.
///
/// # Errors
/// [`DriveFault::Load`]: it could not drive the load to its end, or wrote no report. Requests that failed are no error.
pub(super) fn run(
    driver: &Driver,
    stage: &Stage,
    call: LoadCall<'_>,
    stop: &AtomicBool,
    mut listener: TickListener<'_>,
) -> Result<LoadReport, DriveFault> {
    let LoadCall { name, load, .. } = call;
    let (report_file, latency_file) = (report_file(stage, name), latency_file(stage, name));
    let mut words = words(driver, stage, call)?;
    // A load that is an echo has neither ticks nor such a log.
    if words[1] == BENCH {
        words.insert(OPTIONS, format!("--hdr={}", latency_file.display()));
        if listener.is_some() {
            words.insert(OPTIONS, ticks(TICK));
        }
    }
    // The files of the warm-up must not be taken for the measured ones; they need not exist.
    for file in [&report_file, &latency_file] {
        let _ = fs::remove_file(file);
    }
    let on_tick = |tick| {
        if let Some(listen) = &mut listener {
            listen(tick);
        }
        ControlFlow::Continue(())
    };
    let exit = child::run(&stage.space, &load.job(name, &words), stop, on_tick)?;
    let has_driven = exit.code.is_some_and(|code| DRIVEN.contains(&code));
    match fs::read_to_string(&report_file) {
        Ok(text) if has_driven => Ok(LoadReport {
            document: Report::parse(&text)?,
            text,
            latency: fs::read_to_string(&latency_file).unwrap_or_default(),
        }),
        _ => Err(DriveFault::Load {
            how: exit.how,
            said: exit.said,
        }),
    }
}

/// Runs `bench` with a tick each `every`, until `on_tick` breaks. It has no report.
pub(super) fn ticking(
    driver: &Driver,
    stage: &Stage,
    call: LoadCall<'_>,
    every: Duration,
    stop: &AtomicBool,
    on_tick: impl FnMut(Tick) -> ControlFlow<()>,
) -> Result<ChildExit, DriveFault> {
    let mut words = words(driver, stage, call)?;
    words.insert(OPTIONS, ticks(every));
    let job = call.load.job(call.name, &words);
    child::run(&stage.space, &job, stop, on_tick)
}

/// The option of `bench` for a tick each `every`.
fn ticks(every: Duration) -> String {
    format!("--ticks={}", millis(every))
}

fn report_file(stage: &Stage, name: &str) -> PathBuf {
    stage.space.directory().join(format!("{name}.json"))
}

fn latency_file(stage: &Stage, name: &str) -> PathBuf {
    stage.space.directory().join(format!("{name}.hlog"))
}

/// The command line of the load generator.
pub(super) fn words(
    driver: &Driver,
    stage: &Stage,
    call: LoadCall<'_>,
) -> Result<Vec<String>, DriveFault> {
    let LoadCall {
        name,
        load,
        time,
        seed,
    } = call;
    let json = format!("--json={}", report_file(stage, name).display());
    let mut words = vec![driver.catamaran.display().to_string()];
    if echo::EchoRequest::site(&load.url).is_some() {
        words.extend(["lab", "extra", "echo"].map(str::to_owned));
        words.push(json);
        words.extend(echo_options(load, time));
    } else {
        words.extend([BENCH, "--quiet"].map(str::to_owned));
        words.push(json);
        words.extend(options(load, time));
        words.extend(["--seed".to_owned(), seed.to_string()]);
        if load.post_bytes > 0 {
            words.extend(["-p".to_owned(), body(stage, load.post_bytes)?]);
        }
    }
    words.push(load.url.clone());
    Ok(words)
}

/// Makes a published run with `bench` in ab's mode, and returns its output.
pub(super) fn as_ab(
    driver: &Driver,
    stage: &Stage,
    load: &Load,
    run: &OriginalRun,
    stop: &AtomicBool,
) -> Result<String, DriveFault> {
    let mut words = vec![driver.catamaran.display().to_string(), BENCH.to_owned()];
    words.extend(["--compat", "ab", "-q"].map(str::to_owned));
    words.extend(["-n".to_owned(), run.requests.to_string()]);
    words.extend(["-c".to_owned(), run.clients.to_string()]);
    if run.keep_alive {
        words.push("-k".to_owned());
    }
    words.push(load.url.clone());
    let on_tick = |_| ControlFlow::Continue(());
    let exit = child::run(&stage.space, &load.job("load", &words), stop, on_tick)?;
    match exit.code {
        Some(0) => Ok(exit.printed),
        _ => Err(DriveFault::Load {
            how: exit.how,
            said: exit.said,
        }),
    }
}

/// The path of a file of `bytes` bytes for requests' bodies; it is made if it does not exist.
fn body(stage: &Stage, bytes: u64) -> Result<String, DriveFault> {
    let path = stage.space.directory().join(format!("body-{bytes}"));
    if !path.exists() {
        let length = usize::try_from(bytes).map_err(std::io::Error::other);
        let result = length.and_then(|length| fs::write(&path, vec![b'x'; length]));
        result.map_err(|error| DriveFault::Load {
            how: "no body".to_owned(),
            said: format!("{}: {error}", path.display()),
        })?;
    }
    Ok(path.display().to_string())
}

/// The options of `bench` for a load; those that ab has are given as in ab.
fn options(load: &Load, time: Duration) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    add(&["-c", &load.clients.to_string(), "-W", "1"]);
    if load.keep_alive {
        add(&["-k"]);
    }
    match load.http {
        HttpVersion::Http1_1 => {}
        HttpVersion::Http1_0 => add(&["--http1-0"]),
        HttpVersion::Http2 => add(&["--http2"]),
    }
    for field in &load.headers {
        add(&["-H", field]);
    }
    if !load.varies {
        add(&["--check-bodies"]);
    }
    if let Some(rate) = load.rate {
        add(&["--rate", &format!("{rate:.3}")]);
    }
    add(&["--duration", &millis(time)]);
    words
}

/// The options for a load that is an echo; its warm-up is not watched.
fn echo_options(load: &Load, time: Duration) -> [String; 3] {
    [
        format!("--clients={}", load.clients),
        format!("--bytes={}", load.post_bytes),
        format!("--time={}", millis(time)),
    ]
}

fn millis(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// The bytes per request on hops that only clients use, by SERVER.PORT, as the load generators count them: without
/// headers of TCP and IP. Only hops that the experiment measures are included. `loads` has all loads with their
/// reports.
pub(super) fn bytes(
    experiment: &Experiment,
    addresses: &Addresses,
    loads: &[(&Load, &LoadReport)],
    requests: u64,
) -> BTreeMap<String, f64> {
    let mut hops = BTreeMap::new();
    if requests == 0 {
        return hops;
    }
    for (server, port) in &experiment.measure.bytes {
        let urls = addresses.get(server).and_then(|ports| ports.get(port));
        let is_of_hop = |load: &Load| {
            let mut urls = urls.iter().flat_map(|urls| urls.split_whitespace());
            let path = urls.find_map(|url| load.url.strip_prefix(url));
            // Port 80 is also the beginning of port 8080.
            path.is_some_and(|path| path.is_empty() || path.starts_with('/'))
        };
        let mut sum = 0;
        for (load, report) in loads {
            if is_of_hop(load) {
                sum += report.document.bytes.sent + report.document.bytes.received;
            }
        }
        if sum > 0 {
            hops.insert(format!("{server}.{port}"), sum as f64 / requests as f64);
        }
    }
    hops
}

/// The figures of each whole second. A last part of a second would look like a drop.
pub(super) fn seconds(document: &Report) -> Vec<Second> {
    let second = |facts: &SecondFacts| Second {
        completed: facts.completed,
        p99_ms: facts.p99_us.map(|micros| micros as f64 / 1000.0),
    };
    let whole = document.elapsed.as_secs() as usize;
    document.seconds.iter().take(whole).map(second).collect()
}

/// The longest silences, in order, from and to in seconds since measuring began.
pub(super) fn silences(document: &Report) -> Vec<[f64; 2]> {
    let mut silences = document.silences.clone();
    silences.sort_by_key(|silence| Reverse(silence.length()));
    silences.truncate(SILENCES_MAX);
    silences.sort_by_key(|silence| silence.from);
    let span = |silence: &Silence| [silence.from, silence.to].map(|at| at.as_secs_f64());
    silences.iter().map(span).collect()
}

/// The most silences of a run that are kept: a plot shows no more.
const SILENCES_MAX: usize = 50;

/// The command of `catamaran` that is the load generator.
const BENCH: &str = "bench";

/// The index of the first option in the load generator's command line.
const OPTIONS: usize = 2;

/// The seed of a measured load.
pub(super) const SEED: u64 = 1;

/// The seed of a warm-up.
pub(super) const WARM_UP_SEED: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_count_the_bytes_of_their_hop() {
        let text = include_str!("../../fixtures/keepalive.toml");
        let experiment = Experiment::read("keepalive.toml", text, true).unwrap();
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let addresses = |port| {
            let ports = BTreeMap::from([("http".to_owned(), url(port))]);
            Addresses::from([("httpd".to_owned(), ports)])
        };
        let load = experiment.load(&experiment.cells[0], &addresses(8001));
        let load = load.unwrap();
        let mut document = Report::default();
        (document.bytes.sent, document.bytes.received) = (1_000, 18_000);
        let (text, latency) = (String::new(), String::new());
        let report = LoadReport {
            document,
            text,
            latency,
        };
        let of = |port, requests| {
            let loads = [(&load, &report)];
            bytes(&experiment, &addresses(port), &loads, requests)
        };
        let found = of(8001, 10);
        assert_eq!(found, BTreeMap::from([("httpd.http".to_owned(), 1900.0)]));
        assert!(
            of(800, 10).is_empty(),
            "another port, with the same digits in front"
        );
        assert!(of(8001, 0).is_empty());
    }
}
