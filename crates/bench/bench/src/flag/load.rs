//! Flags for the load: how much, how fast, and how long.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use catamaran_load::plan::{Arrivals, Stage, Table, WarmUp};

use super::ValueKind::Needed;
use super::{Flag, FlagUse, store};
use crate::getopt::Mode;
use crate::refusal::RunKind::{Knee, Memcached, Replay, RequestsFile, Versus};
use crate::refusal::{CONCURRENCY_MAX, Refusal};
use crate::settings::reason;
use crate::{data, number, replay};

/// The settings of the load: clients or rate, requests, duration, stages.
#[derive(Debug, Default)]
pub(crate) struct LoadSettings {
    pub(crate) requests: Option<u64>,
    pub(crate) concurrency: Option<u64>,
    pub(crate) duration: Option<Duration>,
    /// The flag that set the duration: `-t` or `--duration`.
    duration_by: Option<&'static str>,
    pub(crate) rate: Option<f64>,
    pub(crate) rate_max: Option<f64>,
    pub(crate) requests_file: Option<String>,
    pub(crate) table: Option<Arc<Table>>,
    pub(crate) replay: Option<String>,
    pub(crate) speed: Option<f64>,
    pub(crate) replay_methods: Option<Vec<String>>,
    pub(crate) arrivals: Option<Arrivals>,
    pub(crate) ramp: Option<Duration>,
    pub(crate) stages: Vec<Stage>,
    pub(crate) warm_up: WarmUp,
    pub(crate) warm_up_max: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) threads: Option<u64>,
    pub(crate) spacing: Duration,
    pub(crate) seed: u64,
    /// The URL of `--versus`, the server to compare with.
    pub(crate) versus: Option<String>,
}

impl LoadSettings {
    /// Sets the duration of the run; two different flags for it are refused. 0 means without a limit.
    fn set_duration(&mut self, given: &FlagUse<'_>) -> Result<(), Refusal> {
        let duration = given.time()?;
        if self.duration_by.is_some_and(|by| by != given.flag.long) {
            return Err(Refusal::TwoDurations);
        }
        self.duration_by = Some(given.flag.long);
        self.duration = Some(duration).filter(|time| !time.is_zero());
        Ok(())
    }

    /// Sets the duration of `-t` and, as ab does, a number of requests, which a later `-n` replaces.
    fn set_time_limit_as_ab(&mut self, given: &FlagUse<'_>) {
        self.duration = match given.count() {
            Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(seconds)),
            // A time below zero: the run is over at once.
            None => Some(Duration::from_nanos(1)),
        };
        self.requests = Some(REQUESTS_OF_TIMED_RUN);
    }
}

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        short: Some('n'),
        long: "requests",
        value: Needed("N"),
        help: "Requests in all, such as 1000 or 100k; of memcached:// without --rate operations of each client \
               [default: as many as 10 s take]",
        conflicts: &[(Knee, "-n"), (Versus, "-n"), (Replay, "-n")],
        substitute: |given| {
            let is_file = given.mode == Mode::Ours && is_requests_file(given.text());
            is_file.then_some("requests-file")
        },
        apply: |settings, given| {
            let requests = given.count().filter(|&requests| requests > 0);
            settings.load.requests =
                Some(requests.ok_or_else(|| Refusal::Requests(given.owned()))?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('c'),
        long: "concurrency",
        aliases: &["connections"],
        value: Needed("N"),
        help: "Clients that each send their next request when the last is answered; with --rate, connections \
               [default: 10; with -n 1; with --rate 100]",
        apply: |settings, given| {
            let clients = given.count().filter(|&clients| clients <= CONCURRENCY_MAX);
            settings.load.concurrency = Some(clients.ok_or(Refusal::Concurrency)?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('t'),
        long: "time-limit",
        value: Needed("SECONDS"),
        help: "As --duration; as ab it also sets -n to 50000, at this point of the line",
        apply: |settings, given| {
            if given.mode == Mode::Ab {
                settings.load.set_time_limit_as_ab(given);
                return Ok(());
            }
            settings.load.set_duration(given)
        },
        ..Flag::OURS
    },
    Flag {
        long: "duration",
        value: Needed("TIME"),
        help: "How long, such as 10s, 1.5m or 500ms [default: 10s, unless -n or --stage is given]",
        apply: |settings, given| settings.load.set_duration(given),
        ..Flag::OURS
    },
    Flag {
        long: "rate",
        value: Needed("N"),
        help: "Requests per second, sent by a schedule whatever the answers do: the open loop",
        conflicts: &[(Replay, "--rate")],
        apply: |settings, given| {
            settings.load.rate = Some(given.amount("requests per second")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "rate-max",
        value: Needed("N"),
        help: "As knee: the highest rate to try [default: none]",
        apply: |settings, given| {
            settings.load.rate_max = Some(given.amount("requests per second")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "arrivals",
        value: Needed("KIND"),
        help: "poisson, as of many users, or constant [default: poisson]",
        conflicts: &[(Replay, "--arrivals")],
        apply: |settings, given| {
            settings.load.arrivals = Some(match given.text() {
                "constant" => Arrivals::Constant,
                "poisson" => Arrivals::Poisson,
                _ => return Err(given.bad("constant or poisson")),
            });
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "ramp",
        value: Needed("TIME"),
        help: "Begin with nothing and rise evenly to the full load within this time",
        conflicts: &[(Knee, "--ramp"), (Versus, "--ramp"), (Replay, "--ramp")],
        apply: |settings, given| {
            settings.load.ramp = Some(given.time()?).filter(|time| !time.is_zero());
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "stage",
        aliases: &["stages"],
        value: Needed("STAGES"),
        help: "Levels in turn, of the rate or of clients: 30s=100 is 100 for 30 s, 30s..100 moves evenly there; a \
               comma between stages; repeatable",
        conflicts: &[(Knee, "--stage"), (Versus, "--stage"), (Replay, "--stage")],
        twins: &["ramp"],
        apply: |settings, given| {
            for word in given.text().split(',') {
                let Some(stage) = number::stage(word) else {
                    return Err(given.bad("stages such as 30s=100 or 30s..100"));
                };
                settings.load.stages.push(stage);
            }
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "warmup",
        aliases: &["warm-up"],
        value: Needed("TIME|auto"),
        help: "Send load for so long, or until throughput and latency are steady, and leave it out of the report",
        apply: |settings, given| {
            settings.load.warm_up = match given.text() {
                "auto" => WarmUp::Detect { max: WARM_UP_MAX },
                text => WarmUp::For(
                    number::duration(text)
                        .ok_or_else(|| given.bad("a time such as 10s, or auto"))?,
                ),
            };
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "warmup-max",
        value: Needed("TIME"),
        help: "When --warmup auto gives up waiting [default: 60s]",
        apply: |settings, given| store(&mut settings.load.warm_up_max, given.time()?),
        ..Flag::OURS
    },
    Flag {
        short: Some('s'),
        long: "timeout",
        value: Needed("TIME"),
        help: "How long one request may take; as ab, how long nothing at all may happen [default: 30s]",
        apply: |settings, given| {
            settings.load.timeout = Some(match given.mode {
                Mode::Ab => given
                    .count()
                    .map_or(number::DURATION_MAX, Duration::from_secs),
                Mode::Ours => given.time()?,
            });
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('W'),
        long: "threads",
        value: Needed("N"),
        help: "Threads, each with one event loop; 0 is one per core [default: 0; as ab 1]",
        apply: |settings, given| {
            settings.load.threads = Some(given.number("a number of threads")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('R'),
        long: "connect-delay",
        value: Needed("MS"),
        help: "Time between the first connects of two clients",
        apply: |settings, given| {
            settings.load.spacing = Duration::from_millis(given.number("milliseconds")?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "urls",
        value: Needed("FILE"),
        help: "More URLs, one a line, asked for in turn; - is standard input",
        apply: |settings, given| {
            settings.urls.extend(urls_in(given.text())?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "requests-file",
        value: Needed("FILE"),
        help: "Requests with their own method, path, headers, body, weight and name, one JSON object a line; \
               --requests FILE.jsonl does the same",
        conflicts: &[(Memcached, "--requests-file")],
        apply: |settings, given| store(&mut settings.load.requests_file, given.owned()),
        ..Flag::OURS
    },
    Flag {
        long: "data-file",
        value: Needed("FILE"),
        help: "The CSV file from which {{csv COLUMN}} takes its values, row by row",
        conflicts: &[(Memcached, "--data-file")],
        apply: |settings, given| {
            settings.load.table = Some(Arc::new(data::read(given.text())?));
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "replay",
        value: Needed("LOG"),
        help: "Send the GET and HEAD requests of an access log (combined or our JSON) to the URL's server, at the \
               log's own times",
        conflicts: &[
            (Memcached, "--replay"),
            (RequestsFile, "--replay"),
            (Knee, "--replay"),
            (Versus, "--replay"),
        ],
        apply: |settings, given| store(&mut settings.load.replay, given.owned()),
        ..Flag::OURS
    },
    Flag {
        long: "speed",
        value: Needed("FACTOR"),
        help: "With --replay: such as 2x for twice as fast [default: 1x]",
        apply: |settings, given| {
            let speed = replay::speed(given.text());
            settings.load.speed =
                Some(speed.ok_or_else(|| given.bad("a factor such as 2x or 0.5x"))?);
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "replay-methods",
        value: Needed("LIST"),
        help: "With --replay: the methods that are sent, without bodies [default: GET,HEAD]",
        apply: |settings, given| {
            let methods = given.text().split(',').map(str::to_owned);
            settings.load.replay_methods = Some(methods.collect());
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "seed",
        value: Needed("N"),
        help: "What random numbers start from, those of the schedule and of {{rand}} and {{uuid}} [default: 1]",
        apply: |settings, given| {
            settings.load.seed = given.number("a number")?;
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        long: "versus",
        value: Needed("URL"),
        help: "Compare with this URL: both take turns in short blocks, and the ratios within pairs of blocks are \
               judged [duration: 12s]",
        conflicts: &[(Knee, "--versus")],
        apply: |settings, given| store(&mut settings.load.versus, given.owned()),
        ..Flag::OURS
    },
];

/// Whether the value of `--requests` is a file of requests, not their number.
fn is_requests_file(text: &str) -> bool {
    [".jsonl", ".ndjson"].iter().any(|end| text.ends_with(end))
}

/// The lines of a file, or of standard input for `-`, that are neither empty nor comments.
fn urls_in(path: &str) -> Result<Vec<String>, Refusal> {
    let read = if path == "-" {
        io::read_to_string(io::stdin().lock())
    } else {
        fs::read_to_string(path)
    };
    let text = read.map_err(|error| Refusal::File {
        path: path.to_owned(),
        reason: reason(&error),
    })?;
    let lines = text.lines().map(str::trim);
    let urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(urls.map(str::to_owned).collect())
}

/// The number of requests that ab sets for `-t`: the size of its array of results.
const REQUESTS_OF_TIMED_RUN: u64 = 50_000;

const WARM_UP_MAX: Duration = Duration::from_secs(60);
