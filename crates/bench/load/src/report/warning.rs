//! Warnings: facts about a run that mislead a reader who does not know them.

use std::time::Duration;

use catamaran_stats::WarmUp;

use super::Silence;

/// A reason to doubt the figures of a run, or to read them with care.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Some responses had a status outside 200 to 299: error pages may be faster than pages.
    NonSuccess {
        /// The number of responses without a 2xx status.
        count: u64,
        /// The number of complete responses.
        of: u64,
    },
    /// More than a tenth of the gets found no value.
    Misses {
        /// The number of gets that found no value.
        count: u64,
        /// The number of all gets.
        of: u64,
    },
    /// Keep-alive was on, and more than 1 % of the responses closed the connection.
    KeepAliveRefused {
        /// The number of responses after which the connection was kept.
        kept: u64,
        /// The number of complete responses.
        of: u64,
    },
    /// Some bodies were not as long as the first one.
    BodyLengthChanged {
        /// The number of bodies with another length.
        count: u64,
        /// The number of complete responses.
        of: u64,
    },
    /// Some requests failed, of any kind but [`BodyLength`](super::FailureKind::BodyLength).
    Failed {
        /// The number of failed requests.
        count: u64,
        /// The number of requests that began.
        of: u64,
    },
    /// Some requests never had a response; a table of latencies without them is too good.
    Hung {
        /// The number of requests without a response.
        count: u64,
        /// The age of the oldest request without a response.
        oldest: Duration,
    },
    /// Some requests were sent a second time, because the server had closed their kept connection
    /// before it received them.
    Resent {
        /// The number of requests that were sent a second time.
        count: u64,
    },
    /// Some requests were due, but never sent: no connection was free until the end of the run's duration.
    Unsent {
        /// The number of requests that were never sent.
        count: u64,
        /// The number of requests that were due.
        of: u64,
    },
    /// Requests of an open loop waited for a free connection: the 99th percentile of all requests'
    /// waits is above 1 ms and above 5 % of the 99th percentile of corrected latency.
    Waited {
        /// The number of requests that waited.
        count: u64,
        /// The number of requests that were due.
        of: u64,
        /// The approximate number of connections that the rate needs.
        needed: u64,
    },
    /// A closed loop had a stall: no response for 5 % of the time or more, in spans of at least
    /// [`Report::silence_min`], or one response that took at least 100 ms and a thousand times the
    /// median. Since nothing is sent during a stall, few latencies show it.
    ///
    /// [`Report::silence_min`]: super::Report::silence_min
    Stalled {
        /// The share of the time without responses, from 0 to 1.
        silent: f64,
        /// The longest raw latency of the run.
        longest: Duration,
        /// The median raw latency of the run.
        median: Duration,
    },
    /// No response came for 5 % of the time or more, or for a second at once, although requests
    /// waited for one. The rate includes that time.
    Silent {
        /// The total length of all silences.
        total: Duration,
        /// The length of the measured time.
        of: Duration,
        /// The number of silences in the measured time.
        count: usize,
        /// The longest silence, since measuring began.
        longest: Silence,
    },
    /// Threads of the generator were on a CPU for more than 95 % of the time: what was measured is (also) the
    /// generator.
    GeneratorSaturated {
        /// The threads that were.
        threads: ThreadShare,
        /// The share of the time, 0 to 1, that the busiest thread was on a CPU.
        busy: f64,
    },
    /// Threads of the generator were ready to run for more than 10 % of the time, but had no CPU. The latencies
    /// include these waits.
    GeneratorStarved {
        /// The threads that were.
        threads: ThreadShare,
        /// The share of the time that the worst one had no CPU, 0 to 1.
        starved: f64,
    },
    /// Threads of the generator did not run their loop for 5 % of the time or more, or for a second at once, although
    /// each runs it at least every 50 ms. They were stopped, had no CPU, or were busy, and noticed responses late.
    GeneratorStalled {
        /// The threads that stood still.
        threads: ThreadShare,
        /// The largest sum of a thread's standstills of 10 ms or more.
        total: Duration,
        /// The length of the longest standstill.
        longest: Duration,
    },
    /// The generator sent requests late: the 99th percentile of lateness is above 1 ms and above 5
    /// % of the 99th percentile of corrected latency. The run is invalid.
    GeneratorLate {
        /// The 99th percentile of lateness.
        p99: Duration,
    },
    /// The generator's median lateness is at least a third of the corrected median. This happens if
    /// responses are faster than a timer wakes.
    LateMedian {
        /// The median lateness of the generator.
        lateness: Duration,
        /// The corrected median, which includes lateness.
        corrected: Duration,
    },
    /// The requests sent within the span were fewer than 98 % of those due, by more than chance explains.
    RateMissed {
        /// The rate of the plan in requests per second; with stages, the mean over the span.
        asked: f64,
        /// The rate sent, in requests per second of the span.
        sent: f64,
    },
    /// There are too few responses for the high percentiles: each needs ten responses beyond it.
    FewSamples {
        /// The number of responses in the run.
        samples: u64,
        /// The highest percentile with enough responses, from 0 to 100.
        percentile_max: f64,
    },
    /// Little's law does not hold within 5 %: in a closed loop the latencies do not add up to
    /// clients times time, so clients were idle or something is counted wrongly.
    LittlesLaw {
        /// The number of clients of the closed loop.
        clients: usize,
        /// The share of the clients' time without a request in flight, from 0 to 1.
        idle: f64,
    },
    /// There are fewer descriptors than connections in the plan, even at the hard limit.
    DescriptorLimit {
        /// The limit of descriptors.
        limit: u64,
        /// The number of descriptors that the connections need.
        needed: u64,
    },
    /// The run was not shown to be steady when the longest warm-up was over; the value is the result of the test.
    NotSteady(WarmUp),
    /// The run was shorter than a second: start and end weigh more than what is between.
    Short,
    /// The generator's build is too slow for figures that are compared or published; the value is
    /// the name of cargo's profile. The command adds this warning, not the run.
    Build(&'static str),
    /// A warning of a report that was read from a file, which has only its token and text.
    Written {
        /// The warning's token.
        kind: String,
        /// The warning's text.
        text: String,
    },
}

/// Threads of the generator that have something in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadShare {
    /// The number of threads that the warning is about.
    pub count: usize,
    /// The number of all threads of the generator.
    pub of: usize,
}

/// How far a warning makes the figures doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WarningWeight {
    /// The figures can be used as they are.
    Remark,
    /// The figures are the server's, but of too few answers or too short a time to be exact.
    Imprecise,
    /// The figures may mean something else than they seem to.
    Doubt,
    /// The figures are not the server's.
    Invalid,
}

impl Warning {
    /// How far the warning makes the figures doubtful.
    pub(crate) fn weight(&self) -> WarningWeight {
        match self {
            Self::BodyLengthChanged { .. } | Self::Build(_) => WarningWeight::Remark,
            Self::Short | Self::FewSamples { .. } | Self::LateMedian { .. } => WarningWeight::Imprecise,
            Self::NotSteady(WarmUp::Unclear(_)) => WarningWeight::Imprecise,
            Self::NonSuccess { .. }
            | Self::Misses { .. }
            | Self::KeepAliveRefused { .. }
            | Self::Failed { .. }
            | Self::Hung { .. }
            | Self::Resent { .. }
            | Self::Unsent { .. }
            | Self::Waited { .. }
            | Self::Stalled { .. }
            | Self::Silent { .. }
            | Self::GeneratorSaturated { .. }
            | Self::GeneratorStarved { .. }
            | Self::GeneratorStalled { .. }
            | Self::RateMissed { .. }
            | Self::DescriptorLimit { .. }
            | Self::NotSteady(WarmUp::Moving(_) | WarmUp::Steady)
            // A report that was read has its verdict already.
            | Self::Written { .. } => WarningWeight::Doubt,
            Self::GeneratorLate { .. } | Self::LittlesLaw { .. } => WarningWeight::Invalid,
        }
    }
}
