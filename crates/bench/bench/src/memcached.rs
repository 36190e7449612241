//! memcached in `bench`: makes operations, keys and values of the flags, and for `--prefill` a run
//! before the measured one.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_load::plan::{KeyOrder, Memcached, Operation, Plan, Request};
use catamaran_load::report::{Ending, MemcachedSubject, Report};

use crate::output::INTERRUPTED;
use crate::refusal::{Refusal, RunKind};
use crate::settings::Settings;
use crate::url::{Scheme, Url};
use crate::{BenchFailure, Program, execution, flag, refuse};

/// Whether the URLs have the scheme `memcached`.
pub(crate) fn is_spoken(urls: &[Url]) -> bool {
    urls.iter().any(|url| url.scheme == Scheme::Memcached)
}

/// Checks that flags for memcached and URLs go together.
///
/// # Errors
/// [`Refusal::NeedsMemcached`] for a flag that needs memcached; [`Refusal::Conflict`] for one that does not go with it.
pub(crate) fn check(settings: &Settings, urls: &[Url]) -> Result<(), Refusal> {
    if !is_spoken(urls) {
        let mut flags = flag::memcached::FLAGS.iter();
        return match flags.find(|flag| settings.flags.contains(flag)) {
            Some(flag) => Err(Refusal::NeedsMemcached(flag.long)),
            None => Ok(()),
        };
    }
    let kind = RunKind::Memcached;
    if urls.len() > 1 {
        let with = "another URL";
        return Err(Refusal::Conflict { kind, with });
    }
    flag::check(&settings.flags, kind)
}

/// The options of the load on memcached, with defaults for those not given.
pub(crate) fn options(settings: &Settings) -> Memcached {
    let given = &settings.memcached;
    Memcached {
        dialect: given.dialect.unwrap_or_default(),
        keys: given.keys.unwrap_or(KEYS),
        order: given.zipf.map_or(KeyOrder::Uniform, KeyOrder::Zipf),
        value_bytes: given.value_bytes.unwrap_or(VALUE_BYTES),
    }
}

/// The operations as requests, each with its weight.
pub(crate) fn operations(settings: &Settings) -> Vec<Request> {
    let mix = mix(settings).into_iter();
    mix.map(|(operation, weight)| Request::operation(operation, weight))
        .collect()
}

fn mix(settings: &Settings) -> Vec<(Operation, NonZeroU32)> {
    let mix = settings.memcached.mix.clone();
    mix.unwrap_or_else(|| MIX.to_vec())
}

/// The report's facts about the load on memcached; `None` if the URLs are not of memcached.
pub(crate) fn subject(settings: &Settings, urls: &[Url]) -> Option<MemcachedSubject> {
    if !is_spoken(urls) {
        return None;
    }
    let operations = mix(settings).into_iter();
    let weights: Vec<String> = operations
        .map(|(operation, weight)| format!("{}={weight}", operation.word()))
        .collect();
    let options = options(settings);
    let keys = options.keys.get();
    Some(MemcachedSubject {
        mix: weights.join(", "),
        keys,
        zipf: settings.memcached.zipf,
        value_bytes: options.value_bytes as u64,
        prefilled: if settings.memcached.prefill { keys } else { 0 },
    })
}

/// With `--prefill`, stores a value under every key. `Some`: the exit code of a run that ends here;
/// `None`: go on with the measured run.
///
/// # Errors
/// [`BenchFailure`]: the plan is not valid, or not every value was stored.
pub(crate) fn prefill(
    settings: &Settings,
    plan: &Plan,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Option<u8>, BenchFailure> {
    if !settings.memcached.prefill {
        return Ok(None);
    }
    let Some(prefill_plan) = plan.prefill() else {
        return Ok(None);
    };
    (program.raise_limit)();
    let report = match execution::part(prefill_plan, program, interrupted) {
        Ok(report) => report,
        Err(refusal) => return refuse("bench", settings.mode, &refusal).map(Some),
    };
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Some(INTERRUPTED));
    }
    match prefill_fault(&report) {
        Some(fault) => Err(BenchFailure::Fault(Refusal::Prefill(fault).to_string())),
        None => Ok(None),
    }
}

/// The message on why not every value was stored; `None` if all were.
fn prefill_fault(report: &Report) -> Option<String> {
    if let Ending::Failure(error) = &report.ending {
        return Some(error.message.clone());
    }
    let stored = report.operations.unwrap_or_default().stored;
    let started = report.requests.started;
    if stored == started && report.ending == Ending::Requests {
        return None;
    }
    let mut text = format!("only {stored} of {started} values were stored");
    if let Some((kind, _)) = report.failures.iter().next() {
        let known = report.failure_reasons.get(&kind);
        let reason = known.map_or_else(|| kind.text(), String::as_str);
        text = format!("{text}: {reason}");
    }
    Some(text)
}

/// The default mix of operations: mostly reads, as caches have.
const MIX: [(Operation, NonZeroU32); 2] = [
    (Operation::Get, NonZeroU32::new(9).expect("above zero")),
    (Operation::Set, NonZeroU32::MIN),
];

/// The default number of keys.
const KEYS: NonZeroU64 = NonZeroU64::new(10_000).expect("above zero");

/// The default length of a value in bytes.
const VALUE_BYTES: usize = 100;
