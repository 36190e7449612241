//! What `bench` asks of memcached: its flags become operations, keys and values, and `--prefill` a run of
//! its own before the one that is measured.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_load::plan::{KeyOrder, Memcached, Operation, Plan, Request};
use catamaran_load::render::MemcachedSubject;
use catamaran_load::report::{Ending, Report};

use crate::output::INTERRUPTED;
use crate::refusal::Refusal;
use crate::typed::{MemcachedParts, Typed};
use crate::url::{Scheme, Url};
use crate::{BenchFailure, Program, execution, refuse};

/// Whether the URLs are of memcached.
pub(crate) fn is_spoken(urls: &[Url]) -> bool {
    urls.iter().any(|url| url.scheme == Scheme::Memcached)
}

/// Looks at which flags go with which URLs.
///
/// # Errors
/// [`Refusal::NeedsMemcached`] or [`Refusal::NotWithMemcached`].
pub(crate) fn check(typed: &Typed, urls: &[Url]) -> Result<(), Refusal> {
    let asked = &typed.memcached;
    if !is_spoken(urls) {
        let flag = own_flags(asked).into_iter().find(|(is_there, _)| *is_there);
        return flag.map_or(Ok(()), |(_, flag)| Err(Refusal::NeedsMemcached(flag)));
    }
    let (load, request) = (&typed.load, &typed.request);
    let (tls, output) = (&typed.tls, &typed.output);
    for (is_there, what) in [
        (urls.len() > 1, "another URL"),
        (load.requests_file.is_some(), "--requests-file"),
        (load.table.is_some(), "--data-file"),
        (load.replay.is_some(), "--replay"),
        (
            request.method.is_some() || request.body.is_some(),
            "a method or body",
        ),
        (request.content_type.is_some(), "-T"),
        (!request.cookies.is_empty() || request.cookie_jar, "cookies"),
        (!request.headers.is_empty(), "-H"),
        (!request.credentials.is_empty(), "-A and -P"),
        (request.proxy.is_some(), "-X"),
        (request.http10, "--http1.0"),
        (request.http2, "--http2"),
        (request.secret.is_some(), "--secret"),
        (
            tls.verify || tls.roots.is_some() || tls.certificate.is_some(),
            "TLS",
        ),
        (typed.check_bodies, "--check-bodies: every value is checked"),
        (output.html, "-w"),
        (
            output.gnuplot.is_some() || output.percentiles.is_some(),
            "ab's files",
        ),
    ] {
        if is_there {
            return Err(Refusal::NotWithMemcached(what));
        }
    }
    Ok(())
}

fn own_flags(asked: &MemcachedParts) -> [(bool, &'static str); 6] {
    [
        (asked.mix.is_some(), "--mix"),
        (asked.keys.is_some(), "--keys"),
        (asked.zipf.is_some(), "--zipf"),
        (asked.value_bytes.is_some(), "--value"),
        (asked.prefill, "--prefill"),
        (asked.dialect.is_some(), "--protocol"),
    ]
}

/// What operations are about.
pub(crate) fn asked(typed: &Typed) -> Memcached {
    let asked = &typed.memcached;
    Memcached {
        dialect: asked.dialect.unwrap_or_default(),
        keys: asked.keys.unwrap_or(KEYS),
        order: asked.zipf.map_or(KeyOrder::Uniform, KeyOrder::Zipf),
        value_bytes: asked.value_bytes.unwrap_or(VALUE_BYTES),
    }
}

/// The operations, each with its weight.
pub(crate) fn operations(typed: &Typed) -> Vec<Request> {
    let mix = mix(typed).into_iter();
    mix.map(|(operation, weight)| Request::operation(operation, weight))
        .collect()
}

fn mix(typed: &Typed) -> Vec<(Operation, NonZeroU32)> {
    let mix = typed.memcached.mix.clone();
    mix.unwrap_or_else(|| MIX.to_vec())
}

/// What the report says of it.
pub(crate) fn subject(typed: &Typed, urls: &[Url]) -> Option<MemcachedSubject> {
    if !is_spoken(urls) {
        return None;
    }
    let mix = mix(typed).into_iter();
    let mix: Vec<String> = mix
        .map(|(operation, weight)| format!("{}={weight}", operation.word()))
        .collect();
    let asked = asked(typed);
    let keys = asked.keys.get();
    Some(MemcachedSubject {
        mix: mix.join(", "),
        keys,
        zipf: typed.memcached.zipf,
        value_bytes: asked.value_bytes as u64,
        prefilled: if typed.memcached.prefill { keys } else { 0 },
    })
}

/// Stores a value under every key, if that was asked for. The exit code, if that is the end of it.
///
/// # Errors
/// [`BenchFailure`]: the plan makes no sense, or not every value was stored.
pub(crate) fn prefill(
    typed: &Typed,
    plan: &Plan,
    program: &Program,
    interrupted: &AtomicBool,
) -> Result<Option<u8>, BenchFailure> {
    let Some(plan) = plan.prefill().filter(|_| typed.memcached.prefill) else {
        return Ok(None);
    };
    (program.raise_limit)();
    let report = match execution::part(plan, program, interrupted) {
        Ok(report) => report,
        Err(refusal) => return refuse("bench", typed.mode, &refusal).map(Some),
    };
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Some(INTERRUPTED));
    }
    fault(&report).map_or(Ok(None), |fault| {
        Err(BenchFailure::Fault(Refusal::Prefill(fault).to_string()))
    })
}

/// Why not every value was stored.
fn fault(report: &Report) -> Option<String> {
    if let Ending::Failure(error) = &report.ending {
        return Some(error.message.clone());
    }
    let stored = report.operations.unwrap_or_default().stored;
    let started = report.counts.started;
    if stored == started && report.ending == Ending::Requests {
        return None;
    }
    let kind = report.failures.iter().next().map(|(kind, _)| kind);
    let why = kind.map(|kind| {
        let reason = report
            .reasons
            .get(&kind)
            .map_or_else(|| kind.text(), String::as_str);
        format!(": {reason}")
    });
    Some(format!(
        "only {stored} of {started} values were stored{}",
        why.unwrap_or_default()
    ))
}

/// What is done, if nobody says: mostly reading, as of a cache.
const MIX: [(Operation, NonZeroU32); 2] = [
    (Operation::Get, NonZeroU32::new(9).expect("above zero")),
    (Operation::Set, NonZeroU32::MIN),
];

/// How many keys, if nobody says.
const KEYS: NonZeroU64 = NonZeroU64::new(10_000).expect("above zero");

/// How long values are, if nobody says.
const VALUE_BYTES: usize = 100;
