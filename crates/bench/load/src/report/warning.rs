//! Facts about a run that mislead a reader who does not know them.

use std::time::Duration;

use super::Silence;

/// A reason to doubt the numbers, or to read them otherwise than they look.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Answers with a status outside 200 to 299: error pages may be faster than pages.
    NonSuccess {
        /// The number of such answers.
        count: u64,
        /// All complete answers.
        of: u64,
    },
    /// More than a tenth of the gets found no value.
    Misses {
        /// The number of such gets.
        count: u64,
        /// All gets.
        of: u64,
    },
    /// Keep-alive was asked for, and more than 1 % of the answers closed the connection.
    KeepAliveRefused {
        /// Answers after which the connection was kept.
        kept: u64,
        /// All complete answers.
        of: u64,
    },
    /// Bodies were not as long as the first one.
    BodyLengthChanged {
        /// The number of such bodies.
        count: u64,
        /// All complete answers.
        of: u64,
    },
    /// Requests failed for other reasons.
    Failed {
        /// The number of such requests.
        count: u64,
        /// All requests that were started.
        of: u64,
    },
    /// Requests never got an answer; a latency table without them is too good.
    Hung {
        /// The number of such requests.
        count: u64,
        /// The oldest of them.
        oldest: Duration,
    },
    /// Requests were sent a second time, because the server had closed their kept connection before
    /// it received them.
    Resent {
        /// The number of such requests.
        count: u64,
    },
    /// Requests were due, but never sent: no connection was free up to the end of the run's
    /// duration.
    Unsent {
        /// The number of such requests.
        count: u64,
        /// All requests that were due.
        of: u64,
    },
    /// Requests of an open loop waited for a free connection: the 99th percentile of all requests'
    /// waits is above 1 ms and above 5 % of the 99th percentile of corrected latency.
    Waited {
        /// The number of requests that waited.
        count: u64,
        /// All requests that were due.
        of: u64,
        /// Connections that the rate needs, about.
        needed: u64,
    },
    /// A closed loop had no answer for 5 % of the time or more, counting spans that are as long as silences
    /// are ([`Report::silence_min`]), or had one that took 100 ms and a thousand times the median or more.
    /// It sends nothing meanwhile, so that few latencies have the stall in them.
    ///
    /// [`Report::silence_min`]: super::Report::silence_min
    Stalled {
        /// The share of the time without answers, 0 to 1.
        silent: f64,
        /// The longest raw latency.
        longest: Duration,
        /// The median.
        median: Duration,
    },
    /// No answer came for 5 % of the time or more, or for a second at once, although requests waited for
    /// one. The rate has that time in it.
    Silent {
        /// The sum of all silences.
        total: Duration,
        /// The measured time.
        of: Duration,
        /// The number of silences.
        count: usize,
        /// The longest one, since measuring began.
        longest: Silence,
    },
    /// A thread of ours was on a CPU for more than 95 % of the time: what was measured is (also)
    /// the generator.
    GeneratorSaturated {
        /// The thread's number, from 0.
        thread: usize,
        /// The share of the time that it was on a CPU, 0 to 1.
        busy: f64,
    },
    /// A thread of ours was ready to run for more than 10 % of the time, but had no CPU: whatever
    /// waited meanwhile is in the latencies.
    GeneratorStarved {
        /// The thread's number, from 0.
        thread: usize,
        /// The share of the time that it had no CPU, 0 to 1.
        starved: f64,
    },
    /// A thread of ours did not come round for 5 % of the time or more, or for a second at once, although
    /// it had to at least every 50 ms: it was stopped, had no CPU, or worked for so long. No answer is seen
    /// meanwhile.
    GeneratorStalled {
        /// The thread's number, from 0.
        thread: usize,
        /// The sum of its standstills of 10 ms or more.
        total: Duration,
        /// The longest span.
        longest: Duration,
    },
    /// Requests were sent late by us: the 99th percentile of lateness is above 1 ms and above 5 % of
    /// the 99th percentile of corrected latency. The run is invalid.
    GeneratorLate {
        /// The 99th percentile of lateness.
        p99: Duration,
    },
    /// Half of the requests or more were sent so late by us that it is a third or more of the corrected
    /// median: of answers that are faster than a timer wakes.
    LateMedian {
        /// The median of lateness.
        lateness: Duration,
        /// The corrected median, which includes lateness.
        corrected: Duration,
    },
    /// The requests sent within the span were fewer than 98 % of those due, by more than chance explains.
    RateMissed {
        /// Asked, per second; with stages the mean of the span.
        asked: f64,
        /// Sent, per second of the span.
        sent: f64,
    },
    /// Too few answers for the high percentiles: a percentile p needs 10 beyond it.
    FewSamples {
        /// Answers.
        samples: u64,
        /// The highest percentile that they carry, 0 to 100.
        percentile_max: f64,
    },
    /// Little's law does not hold within 5 %: in a closed loop the latencies do not add up to clients
    /// times time, so clients idled or something is counted wrongly.
    LittlesLaw {
        /// Clients.
        clients: usize,
        /// The share of their time without a request under way, 0 to 1.
        idle: f64,
    },
    /// Fewer descriptors than connections asked for, even at the hard limit.
    DescriptorLimit {
        /// The limit.
        limit: u64,
        /// The descriptors that the connections need.
        needed: u64,
    },
    /// The run was not known to be steady when the warm-up's time was up: how it was.
    NotSteady(catamaran_stats::WarmUp),
    /// The run was shorter than a second: start and end weigh more than what is between.
    Short,
    /// The generator was not built for figures that are compared or published: the name of cargo's
    /// profile. The command knows it, so `run` never adds it.
    Build(&'static str),
    /// One of a report that was read: what it was computed from is not written.
    Written {
        /// Its token.
        kind: String,
        /// Its text.
        text: String,
    },
}
