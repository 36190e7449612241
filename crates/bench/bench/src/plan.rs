//! Makes the plan of a run from the settings of a command line, with the facts that the report repeats.
//!
//! All defaults are here. In ab mode they are ab's: one thread, HTTP/1.0, no timeout for a request,
//! and an end at the first error. Otherwise a run continues after errors and counts them.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::thread::available_parallelism;
use std::time::Duration;

use catamaran_load::plan::{
    Arrivals, Checks, ConnectPatience, Connections, Endpoint, HttpVersion, LengthCheck, Numbers,
    Pace, Plan, Protocol, Replay, Request, Resend, Samples, Stage, Stop, Target, Timeouts, WarmUp,
};
use catamaran_load::report::{SpokenProtocol, Subject};

use crate::getopt::Mode;
use crate::number::DURATION_MAX;
use crate::refusal::{Refusal, RunKind};
use crate::replay;
use crate::settings::{self, Settings};
use crate::url::{self, Scheme, Url};
use crate::{flag, memcached, operand, requests, schedstat, target};

/// Makes the plan of a run from the settings, with defaults for those not given.
pub(crate) fn prepare(settings: &Settings) -> Result<Plan, Refusal> {
    check_needs(settings)?;
    let urls = urls(settings)?;
    flag::check_twins(&settings.flags, settings.mode)?;
    check_http2(settings, &urls)?;
    memcached::check(settings, &urls)?;
    let requests = requests(settings, &urls);
    let mut targets = targets(settings, &urls)?;
    take_requests(settings, &mut targets)?;
    let replay = replay(settings, &mut targets)?;
    let pace = match &replay {
        Some(replay) => replay_pace(settings, replay),
        None => pace(settings, requests, targets.len())?,
    };
    let threads = threads(settings, pace.connections());
    let stages = stages(settings, &pace);
    let connections = connections(settings, &urls, targets.len());
    let subject = Subject {
        streams: connections.pipeline.get(),
        keep_alive: connections.keep_alive,
        has_stages: !stages.is_empty(),
        ..subject(settings, &urls, &targets[0])
    };
    Ok(Plan {
        subject,
        replay,
        stages,
        stop: stop(settings, requests),
        warm_up: warm_up(settings)?,
        threads,
        connections,
        timeouts: timeouts(settings),
        checks: checks(settings, &urls),
        samples: samples(settings, requests),
        seed: settings.load.seed,
        table: settings.load.table.clone(),
        numbers: Numbers::default(),
        cookie_jar: settings.request.cookie_jar,
        starved_time: schedstat::starved_time,
        pace,
        targets,
    })
}

/// Refuses flags that are useless without another flag or command.
fn check_needs(settings: &Settings) -> Result<(), Refusal> {
    let checks = &settings.checks;
    if checks.gate.conditions.is_empty() && !checks.gate.waived.is_empty() {
        return Err(Refusal::NeedsCondition);
    }
    if settings.load.versus.is_none()
        && let Some(limit) = checks.ratios.first()
    {
        return Err(Refusal::NeedsVersus(limit.text.clone()));
    }
    // `bench knee` has taken the highest rate out of the settings.
    if settings.load.rate_max.is_some() {
        return Err(Refusal::NeedsKnee);
    }
    Ok(())
}

/// What counts as a failure. In ab mode a body of another length does, and the first error of a receive or a lack of
/// descriptors ends the run; otherwise they are counted.
fn checks(settings: &Settings, urls: &[Url]) -> Checks {
    let may_vary = settings.checks.variable_length || memcached::is_spoken(urls);
    Checks {
        body_length: match (may_vary, settings.mode) {
            (true, _) => LengthCheck::Ignored,
            (false, Mode::Ab) => LengthCheck::Failed,
            (false, Mode::Ours) => LengthCheck::Counted,
        },
        body_content: settings.checks.bodies,
        stop_at_receive_error: settings.mode == Mode::Ab && !settings.checks.receive_errors,
        stop_without_descriptors: settings.mode == Mode::Ab,
    }
}

/// Refuses `--http2` with AJP13 or with flags that exclude it, and `--streams` without `--http2`.
fn check_http2(settings: &Settings, urls: &[Url]) -> Result<(), Refusal> {
    if !settings.request.http2 {
        return match settings.connection.streams {
            Some(_) => Err(Refusal::NeedsHttp2),
            None => Ok(()),
        };
    }
    if urls.iter().any(|url| url.scheme == Scheme::Ajp) {
        return Err(Refusal::Conflict {
            kind: RunKind::Http2,
            with: "AJP13",
        });
    }
    flag::check(&settings.flags, RunKind::Http2)
}

/// Replaces the target's requests by those of `--requests-file`, if it is given.
fn take_requests(settings: &Settings, targets: &mut [Target]) -> Result<(), Refusal> {
    let load = &settings.load;
    let Some(path) = &load.requests_file else {
        return Ok(());
    };
    let kind = RunKind::RequestsFile;
    flag::check(&settings.flags, kind)?;
    if settings.urls.len() > 1 {
        let with = "more than one URL";
        return Err(Refusal::Conflict { kind, with });
    }
    let target = &mut targets[0];
    target.requests = requests::read(path, &target.requests[0], load.table.as_deref())?;
    Ok(())
}

/// Reads the log of `--replay`, and replaces the target's requests by the log's; `None` without that flag.
fn replay(settings: &Settings, targets: &mut [Target]) -> Result<Option<Replay>, Refusal> {
    let load = &settings.load;
    let Some(path) = &load.replay else {
        if load.speed.is_some() {
            return Err(Refusal::NeedsReplay("--speed"));
        }
        if load.replay_methods.is_some() {
            return Err(Refusal::NeedsReplay("--replay-methods"));
        }
        return Ok(None);
    };
    let kind = RunKind::Replay;
    flag::check(&settings.flags, kind)?;
    let target = &mut targets[0];
    if settings.urls.len() > 1 {
        let with = "more than one URL";
        return Err(Refusal::Conflict { kind, with });
    }
    if target.requests[0].varies() {
        let with = "placeholders";
        return Err(Refusal::Conflict { kind, with });
    }
    let methods = match &load.replay_methods {
        Some(methods) => methods.clone(),
        None => REPLAY_METHODS.map(str::to_owned).to_vec(),
    };
    let log = replay::read(&settings::file(path)?, &methods);
    let speed = load.speed.unwrap_or(1.0);
    let Some((replay, requests)) = log.replay(speed, &target.requests[0]) else {
        return Err(Refusal::EmptyReplay(path.clone()));
    };
    target.requests = requests;
    Ok(Some(replay))
}

/// The pace of a replay. Its rate is the mean of the log; only the warm-up uses it.
fn replay_pace(settings: &Settings, replay: &Replay) -> Pace {
    let connections = settings.load.concurrency.unwrap_or(OPEN_CONNECTIONS).max(1);
    Pace::Open {
        per_second: replay.arrivals.len() as f64 / replay.span.as_secs_f64(),
        arrivals: Arrivals::Poisson,
        connections: non_zero(connections),
        backlog: non_zero(BACKLOG),
    }
}

/// The warm-up of the run. A limit on it is refused unless its end is to be detected.
fn warm_up(settings: &Settings) -> Result<WarmUp, Refusal> {
    match (settings.load.warm_up, settings.load.warm_up_max) {
        (WarmUp::Detect { .. }, Some(max)) => Ok(WarmUp::Detect { max }),
        (warm_up, None) => Ok(warm_up),
        _ => Err(Refusal::NeedsAutoWarmUp),
    }
}

/// The parsed URLs: exactly one in ab mode, at least one otherwise.
fn urls(settings: &Settings) -> Result<Vec<Url>, Refusal> {
    match settings.mode {
        Mode::Ab => match settings.urls.as_slice() {
            [text] => Ok(vec![url::parse_as_ab(text)?]),
            urls => Err(Refusal::ManyUrls(urls.len())),
        },
        Mode::Ours if settings.urls.is_empty() => Err(Refusal::NoUrl),
        Mode::Ours => {
            operand::check(&settings.operands)?;
            let urls = settings.urls.iter().map(|text| {
                operand::check_bare(text)?;
                url::parse(text)
            });
            urls.collect()
        }
    }
}

/// The number of requests that ends the run; `None`: there is no such number. In a closed loop on
/// memcached, `-n` counts for each client.
fn requests(settings: &Settings, urls: &[Url]) -> Option<u64> {
    let load = &settings.load;
    let is_timed = load.duration.is_some() || !load.stages.is_empty() || load.rate.is_some();
    // ab's default is one request.
    let default = (settings.mode == Mode::Ab && !is_timed).then_some(1);
    let requests = load.requests.or(default)?;
    let is_for_each_client = memcached::is_spoken(urls) && load.rate.is_none();
    if is_for_each_client {
        let has_requests = true;
        Some(requests.saturating_mul(clients(settings, has_requests)))
    } else {
        Some(requests)
    }
}

/// The duration that ends the run; `None`: something else ends it. The default, if nothing does, is
/// 10 s after the ramp.
fn duration(settings: &Settings, requests: Option<u64>) -> Option<Duration> {
    let load = &settings.load;
    let is_ended = requests.is_some() || !load.stages.is_empty() || load.replay.is_some();
    let default = (!is_ended).then(|| DURATION + load.ramp.unwrap_or_default());
    load.duration.or(default)
}

/// The pace of the run: open with a rate, else closed. It has at least one connection for each of the `servers`, except
/// in a closed loop whose number of clients was given. More clients than `requests` are refused, as in ab.
fn pace(settings: &Settings, requests: Option<u64>, servers: usize) -> Result<Pace, Refusal> {
    let load = &settings.load;
    if let Some(per_second) = load.rate {
        let connections = load.concurrency.unwrap_or(OPEN_CONNECTIONS).max(1);
        return Ok(Pace::Open {
            per_second,
            arrivals: load.arrivals.unwrap_or(Arrivals::Poisson),
            connections: non_zero(connections.max(servers as u64)),
            backlog: non_zero(BACKLOG),
        });
    }
    if load.arrivals.is_some() {
        return Err(Refusal::NeedsRate("--arrivals"));
    }
    let clients = clients(settings, requests.is_some());
    let concurrency = match load.concurrency {
        Some(_) => clients,
        None => clients.max(servers as u64),
    };
    match requests {
        Some(requests) if concurrency > requests && load.concurrency.is_some() => {
            Err(Refusal::MoreClientsThanRequests {
                concurrency,
                requests,
            })
        }
        _ => Ok(Pace::Closed {
            concurrency: non_zero(concurrency),
            spacing: load.spacing,
        }),
    }
}

/// The number of clients of a closed loop. `has_requests`: the run ends after a number of requests.
fn clients(settings: &Settings, has_requests: bool) -> u64 {
    let load = &settings.load;
    match load.concurrency {
        // As ab's trunk does: one client per thread.
        Some(0) => threads_asked(settings).get() as u64,
        Some(clients) => clients,
        None if settings.mode == Mode::Ours && !has_requests && load.stages.is_empty() => CLIENTS,
        // As many as the stages need, or one.
        None => {
            let levels = load.stages.iter().map(|stage| stage.level);
            levels.fold(1.0, f64::max) as u64
        }
    }
}

/// The number of threads: as set, but not more than connections.
fn threads(settings: &Settings, connections: NonZeroUsize) -> NonZeroUsize {
    threads_asked(settings).min(connections)
}

/// The number of threads that was asked for. The default is one in ab mode, else one for each core; 0 also means one
/// for each core.
fn threads_asked(settings: &Settings) -> NonZeroUsize {
    let default = match settings.mode {
        Mode::Ab => 1,
        Mode::Ours => 0,
    };
    match settings.load.threads.unwrap_or(default) {
        0 => available_parallelism().unwrap_or(NonZeroUsize::MIN),
        threads => non_zero(threads),
    }
}

/// The stages of the run: those of `--stage`, or for `--ramp` a rise to the full level and then that level.
fn stages(settings: &Settings, pace: &Pace) -> Vec<Stage> {
    let load = &settings.load;
    let Some(ramp) = load.ramp else {
        return load.stages.clone();
    };
    let level = match *pace {
        Pace::Closed { concurrency, .. } => concurrency.get() as f64,
        Pace::Open { per_second, .. } => per_second,
    };
    let rise = Stage {
        duration: ramp,
        level,
        ramp: true,
    };
    // The level then holds until the run's duration or its number of requests ends the run.
    let hold = Stage {
        duration: DURATION_MAX,
        level,
        ramp: false,
    };
    vec![rise, hold]
}

/// What ends the run. `grace` is the time that requests in flight have then; ab gives them none.
fn stop(settings: &Settings, requests: Option<u64>) -> Stop {
    Stop {
        requests: requests.and_then(NonZeroU64::new),
        duration: duration(settings, requests),
        grace: match settings.mode {
            Mode::Ab => Duration::ZERO,
            Mode::Ours => GRACE,
        },
    }
}

/// How connections are made and used. `targets` is the number of servers.
fn connections(settings: &Settings, urls: &[Url], targets: usize) -> Connections {
    let given = &settings.connection;
    // The most requests in flight on a connection: streams of HTTP/2, else pipelined requests.
    let depth = given.streams.or(given.pipeline).unwrap_or(1);
    let pipeline = u32::try_from(depth).unwrap_or(u32::MAX);
    Connections {
        keep_alive: keeps_alive(settings) || memcached::is_spoken(urls),
        requests_max: given.requests_max.and_then(NonZeroU64::new),
        pipeline: NonZeroU32::new(pipeline).unwrap_or(NonZeroU32::MIN),
        sources: given.sources.clone(),
        send_buffer: given.buffer,
        receive_buffer: given.buffer,
        patience: match settings.mode {
            Mode::Ab => ConnectPatience::Ab(AB_PATIENCE),
            Mode::Ours if targets == 1 => ConnectPatience::UntilConnected,
            // Of several servers the others may answer.
            Mode::Ours => ConnectPatience::Unlimited,
        },
        resend: match settings.mode {
            Mode::Ab => Resend::Never,
            Mode::Ours => Resend::Unreceived,
        },
    }
}

/// Whether connections are kept: with `-k`, or because the settings need it.
pub(crate) fn keeps_alive(settings: &Settings) -> bool {
    let given = &settings.connection;
    let pipelines = given.pipeline.is_some_and(|depth| depth > 1);
    let has_limit = given.requests_max.is_some_and(|requests| requests > 0);
    settings.request.http2 || given.keep_alive || pipelines || has_limit
}

/// The time limits. `-s` is the limit of a request; in ab mode it is that of a run without events.
fn timeouts(settings: &Settings) -> Timeouts {
    let timeout = settings.load.timeout.unwrap_or(TIMEOUT);
    match settings.mode {
        Mode::Ab => Timeouts {
            request: None,
            idle: Some(timeout),
        },
        Mode::Ours => Timeouts {
            // 0 means without a limit.
            request: Some(timeout).filter(|timeout| !timeout.is_zero()),
            idle: None,
        },
    }
}

fn samples(settings: &Settings, requests: Option<u64>) -> Samples {
    if settings.output.gnuplot.is_none() {
        return Samples::None;
    }
    Samples::First(non_zero(requests.unwrap_or(SAMPLES_MAX)))
}

/// The targets: one for each endpoint, in the order of the URLs, each with all its requests.
fn targets(settings: &Settings, urls: &[Url]) -> Result<Vec<Target>, Refusal> {
    if memcached::is_spoken(urls) {
        return Ok(vec![Target {
            endpoint: target::endpoint(settings, &urls[0])?,
            requests: memcached::operations(settings),
        }]);
    }
    // The first URL of each endpoint, the endpoint, and its requests.
    let mut grouped: Vec<(&Url, Endpoint, Vec<Request>)> = Vec::new();
    for url in urls {
        let request = target::request(settings, url)?;
        let known = grouped.iter_mut().find(|(first, ..)| {
            first.scheme == url.scheme
                && first.transport == url.transport
                && first.hostname == url.hostname
        });
        match known {
            Some((_, _, requests)) => requests.push(request),
            None => grouped.push((url, target::endpoint(settings, url)?, vec![request])),
        }
    }
    let targets = grouped.into_iter();
    Ok(targets
        .map(|(_, endpoint, requests)| Target { endpoint, requests })
        .collect())
}

/// The report's facts about the run: its URLs and options.
fn subject(settings: &Settings, urls: &[Url], first: &Target) -> Subject {
    let url = &urls[0];
    Subject {
        url: url.text.clone(),
        urls: urls.len(),
        hostname: url.hostname.clone(),
        port: url.port,
        path: url.path.clone(),
        protocol: protocol(first),
        memcached: memcached::subject(settings, urls),
        sends_body: target::sends_body(settings),
        variable_length: settings.checks.variable_length,
        percentiles: !settings.output.no_percentiles,
        confidence: !settings.output.no_confidence,
        rate: settings.load.rate,
        ..Subject::default()
    }
}

/// The protocol of a target, as the report names it.
fn protocol(target: &Target) -> SpokenProtocol {
    match &target.endpoint.protocol {
        Protocol::Http2 => SpokenProtocol::Http2,
        Protocol::Ajp(_) => SpokenProtocol::Ajp13,
        Protocol::Memcached(options) => SpokenProtocol::Memcached(options.dialect),
        Protocol::Http => match target.requests.first().map(|request| request.version) {
            Some(HttpVersion::Http10) => SpokenProtocol::Http10,
            _ => SpokenProtocol::Http11,
        },
    }
}

/// The number, raised to 1 if it is 0.
fn non_zero(number: u64) -> NonZeroUsize {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN)
}

/// The methods that are replayed by default: those that change nothing.
const REPLAY_METHODS: [&str; 2] = ["GET", "HEAD"];

/// The default duration of a run.
const DURATION: Duration = Duration::from_secs(10);

/// The default number of clients of a run without a number of requests.
const CLIENTS: u64 = 10;

/// The default number of connections of an open loop.
const OPEN_CONNECTIONS: u64 = 100;

/// The most requests that may wait for a connection, per thread.
const BACKLOG: u64 = 1 << 20;

/// The time that requests in flight have after the duration is over.
const GRACE: Duration = Duration::from_secs(2);

const TIMEOUT: Duration = Duration::from_secs(30);

/// The number of failures after which ab gives up.
const AB_PATIENCE: u32 = 10;

/// The most requests kept for `-g` when their number is not known: 400 MB of memory.
const SAMPLES_MAX: u64 = 10_000_000;

#[cfg(test)]
mod tests;
