//! The texts and tokens of warnings.

use catamaran_stats::WarmUp;

use crate::report::{ThreadShare, Warning};

impl Warning {
    /// The warning's name in files: kebab-case, never changed.
    #[must_use]
    pub fn token(&self) -> &str {
        match self {
            Self::NonSuccess { .. } => "non-2xx",
            Self::Misses { .. } => "misses",
            Self::KeepAliveRefused { .. } => "keep-alive-refused",
            Self::BodyLengthChanged { .. } => "body-length-changed",
            Self::Failed { .. } => "failed",
            Self::Hung { .. } => "hung",
            Self::Resent { .. } => "resent",
            Self::Unsent { .. } => "unsent",
            Self::Waited { .. } => "waited",
            Self::Stalled { .. } => "stalled",
            Self::Silent { .. } => "silent",
            Self::GeneratorSaturated { .. } => "generator-saturated",
            Self::GeneratorStarved { .. } => "generator-starved",
            Self::GeneratorStalled { .. } => "generator-stalled",
            Self::GeneratorLate { .. } => "generator-late",
            Self::LateMedian { .. } => "late-median",
            Self::RateMissed { .. } => "rate-missed",
            Self::FewSamples { .. } => "few-samples",
            Self::LittlesLaw { .. } => "littles-law",
            Self::DescriptorLimit { .. } => "descriptor-limit",
            Self::NotSteady(_) => "not-steady",
            Self::Short => "short",
            Self::Build(_) => "build",
            Self::Written { kind, .. } => kind,
        }
    }

    /// What happened, without what to do about it, as the reason for which a run is invalid.
    #[must_use]
    pub fn finding(&self) -> String {
        match self {
            Self::GeneratorLate { p99 } => format!(
                "the generator sent its requests late, by {:.3} ms at the 99th percentile",
                p99.as_secs_f64() * 1000.0
            ),
            _ => self.text(),
        }
    }

    /// The warning as a sentence: what happened, and what it means or what to do.
    #[expect(
        clippy::too_many_lines,
        reason = "one arm per warning, of one sentence each"
    )]
    #[must_use]
    pub fn text(&self) -> String {
        match *self {
            Self::NonSuccess { count, of } if count * 2 > of => format!(
                "{count} of {of} answers were not 2xx: this is the speed of error pages or redirects"
            ),
            Self::NonSuccess { count, of } => {
                format!("{count} of {of} answers were not 2xx; their latencies count, too")
            }
            Self::Misses { count, of } => format!(
                "{count} of {of} gets found no value: a miss costs less than a hit; --prefill stores a value \
             under every key before the run"
            ),
            Self::KeepAliveRefused { kept, of } => {
                // A limit of requests per connection makes a few new connections necessary; a
                // server that keeps none, one per request.
                let meaning = if kept < of / 2 {
                    "this is mostly the speed of connecting"
                } else {
                    "each of the others cost a connection"
                };
                format!(
                    "keep-alive was asked for, but only {kept} of {of} answers kept their connection \
                 open: {meaning}"
                )
            }
            Self::BodyLengthChanged { count, of } => format!(
                "{count} of {of} bodies were not as long as the first one: look whether they are pages \
             of errors; -l allows lengths to vary"
            ),
            Self::Failed { count, of } => {
                format!("{count} of {of} requests failed; no latency includes them")
            }
            Self::Hung { count, oldest } => format!(
                "{count} requests had no answer when the run ended, the oldest after {:.3} s: the \
             latencies leave them out and look too good",
                oldest.as_secs_f64()
            ),
            Self::Resent { count } => format!(
                "{count} requests were sent twice, because the server had closed their kept connections: \
             their latencies include both attempts"
            ),
            Self::Unsent { count, of } => format!(
                "{count} of {of} requests were never sent, because no connection was free: the server \
             does not keep up with the rate, or it needs more connections (-c)"
            ),
            Self::Waited { count, of, needed } => format!(
                "{count} of {of} requests waited for a free connection, which the corrected \
             latency includes: the rate needs about -c {needed}"
            ),
            Self::Stalled {
                silent,
                longest,
                median,
            } => format!(
                "the server stalled: there was no answer for {:.0} % of the time, and the longest took \
             {:.3} ms, the median {:.3} ms; clients that wait send nothing, so that the percentiles \
             hide this: --rate shows it",
                silent * 100.0,
                longest.as_secs_f64() * 1000.0,
                median.as_secs_f64() * 1000.0
            ),
            Self::Silent {
                total,
                of,
                count,
                longest,
            } => format!(
                "no answer came for {:.3} s of {:.3} s, in {count} span(s), the longest from {:.3} s to \
             {:.3} s: the rate is a mean over times with and without a server that answers",
                total.as_secs_f64(),
                of.as_secs_f64(),
                longest.from.as_secs_f64(),
                longest.to.as_secs_f64()
            ),
            Self::GeneratorSaturated { threads, busy } => format!(
                "{} busy for up to {:.0} % of the time: the figures show the generator's speed as much as the \
             server's; give it more --threads, or another machine",
                were(threads),
                busy * 100.0
            ),
            Self::GeneratorStarved { threads, starved } => format!(
                "{} ready to run for up to {:.0} % of the time, but had no CPU: the latencies include that wait; \
             leave the generator cores of its own",
                were(threads),
                starved * 100.0
            ),
            Self::GeneratorStalled {
                threads,
                total,
                longest,
            } => format!(
                "{} standing still for up to {:.3} s, {:.3} s at once: stopped or without a CPU. No answer was seen \
             meanwhile, and the latencies include that time",
                were(threads),
                total.as_secs_f64(),
                longest.as_secs_f64()
            ),
            Self::GeneratorLate { .. } => format!(
                "{}: the run is invalid; lower --rate, or give it more --threads or connections (-c)",
                self.finding()
            ),
            Self::LateMedian {
                lateness,
                corrected,
            } => format!(
                "the corrected median of {:.3} ms includes {:.3} ms of the generator's own lateness: for \
             answers as fast as these, compare the raw median",
                corrected.as_secs_f64() * 1000.0,
                lateness.as_secs_f64() * 1000.0
            ),
            Self::RateMissed { asked, sent } => {
                format!("{asked:.2} requests per second were asked for, and {sent:.2} were sent")
            }
            Self::FewSamples {
                samples,
                percentile_max: 0.0,
            } => format!(
                "{samples} answers are too few for any percentile: ten must lie beyond a percentile"
            ),
            Self::FewSamples {
                samples,
                percentile_max,
            } => format!(
                "{samples} answers are too few for percentiles above {percentile_max}: ten must lie \
             beyond a percentile"
            ),
            Self::LittlesLaw { clients, idle } => format!(
                "{clients} clients had no request under way for {:.1} % of the time, although there were \
             requests to send: the latencies do not add up to the time that has passed",
                idle * 100.0
            ),
            Self::DescriptorLimit { limit, needed } => format!(
                "{limit} files may be open, but {needed} are needed: raise the hard limit \
             (`ulimit -Hn`) or lower -c"
            ),
            Self::NotSteady(verdict) => not_steady(verdict),
            Self::Short => {
                "the run was shorter than a second: its beginning and end weigh more than the rest"
                    .to_owned()
            }
            Self::Build(profile) => format!(
                "this is a {profile} build of the generator, which is slower than a dist build: publish \
             and compare figures of `cargo build --profile dist` only"
            ),
            Self::Written { ref text, .. } => text.clone(),
        }
    }
}

/// The threads as the beginning of a sentence.
fn were(ThreadShare { count, of }: ThreadShare) -> String {
    match (count, of) {
        (1, 1) => "the generator's thread was".to_owned(),
        (1, _) => format!("1 of the generator's {of} threads was"),
        _ => format!("{count} of the generator's {of} threads were"),
    }
}

/// The warning of a warm-up that ended before the run was steady.
fn not_steady(verdict: WarmUp) -> String {
    let percent = |share: f64| format!("{:.0} %", share.abs() * 100.0);
    match verdict {
        WarmUp::Moving(share) => format!(
            "the run was still changing when the warm-up was over, by {} over the time that was \
             measured: give it longer with --warmup-max",
            percent(share)
        ),
        WarmUp::Unclear(share) if share.is_finite() => format!(
            "whether the run was steady could not be told: its noise hides a change of up to {} \
             over the time that was measured; give it longer with --warmup-max",
            percent(share)
        ),
        WarmUp::Steady | WarmUp::Unclear(_) => {
            "whether the run was steady could not be told: the warm-up had too few seconds with \
             answers; give it longer with --warmup-max"
                .to_owned()
        }
    }
}
