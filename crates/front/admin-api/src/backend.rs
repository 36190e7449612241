//! A backend: how it fares, what it did, what was said of it.

use std::collections::BTreeMap;

objects! {
    /// A backend of an upstream.
    pub struct BackendMember {
        /// How it fares and what it did.
        #[flat(flatten)]
        pub backend: Backend,
        /// The route that its session ids end with.
        pub jvm_route: String,
        /// Its domain: who has copies of its sessions.
        pub domain: Option<String>,
        /// The backend that has copies of its sessions.
        pub fallback: Option<String>,
        /// The version of what was said of it, for `If-Match`.
        pub version: String,
        /// What is in force.
        pub settings: BackendControls,
        /// What the file says.
        pub file: BackendControls,
        /// Where it was found; `null` if the file names it.
        pub found: Option<MemberOrigin>,
        /// What was changed at run time; `null` if nothing is.
        #[serde(rename = "override")]
        pub changed: Option<Override>,
        /// How far its drain is; `null` without one.
        pub drain: Option<DrainProgress>,
        /// Sessions seen within `session_timeout`; `null` if they are not counted.
        pub sessions: Option<u64>,
        /// Requests of its sessions whose id it is not known to have given out; `null` if sessions are not counted.
        pub unknown_ids: Option<u64>,
    }

    /// How a backend fares and what it did.
    pub struct Backend {
        /// Its name.
        pub name: String,
        /// Its upstream.
        pub upstream: String,
        /// `ajp`, `http` or `https`.
        pub protocol: String,
        /// Where it is.
        pub address: String,
        /// Where its name leads; `null` if its address has none.
        pub resolution: Option<NameResolution>,
        /// How it fares, in words.
        pub state: String,
        /// The same in one word: `up`, `ramping`, `verifying`, `suspect` or `out`.
        pub condition: String,
        /// Why it is out, in words; `null` if it is not.
        pub cause: Option<String>,
        /// What is amiss with it although it may serve, in words.
        pub remarks: Vec<String>,
        /// How much of its weight it has now, in percent.
        pub share: u8,
        /// Requests that wait for its response.
        pub in_flight: usize,
        /// Requests whose client has left, and whose response is still awaited.
        pub abandoned: usize,
        /// Requests that wait for a connection.
        pub waiting: usize,
        /// At most so many wait.
        pub queue_max: usize,
        /// Its connections.
        pub connections: BackendConnections,
        /// Attempts since the start: requests, and their retries.
        pub requests: u64,
        /// Bytes since the start.
        pub bytes: BackendBytes,
        /// How much happens in a second, over the last 5 seconds; `null` before there are some.
        pub rates: Option<BackendRates>,
        /// Times of the last minute; `null` without responses.
        pub latency: Option<BackendLatency>,
        /// Attempts that failed, by the reason in the log. What clients cause (`client:...`) is not among them.
        pub errors: BTreeMap<String, FailureCounts>,
        /// Responses 5xx.
        pub server_errors: ServerErrors,
        /// Requests by what became of their session.
        pub sticky: BTreeMap<String, u64>,
        /// The last failure that was not the client's doing; `null` if there was none.
        pub last_failure: Option<BackendFailure>,
        /// Probes since the start.
        pub probes: ProbeCounts,
        /// The last probe that ended; `null` if there was none.
        pub last_probe: Option<BackendProbe>,
        /// How often it was out since the start.
        pub ejections: u64,
        /// How often it was suspect since the start.
        pub suspicions: u64,
        /// How long it was out in all, in seconds.
        pub down_s: u64,
    }

    /// Where the name of a backend leads.
    pub struct NameResolution {
        /// The name.
        pub host: String,
        /// The addresses in use. They stay while resolving fails.
        pub addresses: Vec<String>,
        /// How long ago they came, in seconds; `null` if the name has never been resolved.
        pub age_s: Option<u64>,
        /// Why resolving fails; `null` if it does not.
        pub failed: Option<String>,
    }

    /// Connections to a backend.
    pub struct BackendConnections {
        /// Open now.
        pub open: usize,
        /// Of these: without a request.
        pub idle: usize,
        /// At most so many are open.
        pub max: usize,
        /// Opened since the start.
        pub dialled: u64,
        /// Attempts to open one that failed.
        pub failed: u64,
        /// Requests that found one that was open.
        pub reused: u64,
        /// Found closed when a request came.
        pub stale: u64,
    }

    /// Bytes on connections to a backend.
    pub struct BackendBytes {
        /// To it.
        pub sent: u64,
        /// From it.
        pub received: u64,
    }

    /// How much happens in a second.
    pub struct BackendRates {
        /// Attempts.
        pub requests_s: f64,
        /// Bytes to it.
        pub sent_s: f64,
        /// Bytes from it.
        pub received_s: f64,
    }

    /// From the beginning of an attempt to the head of its response, a wait for a connection included; right to
    /// 3 %.
    pub struct BackendLatency {
        /// Responses.
        pub count: u64,
        /// What half of them did not exceed.
        pub p50_ms: f64,
        /// What 99 of 100 did not exceed.
        pub p99_ms: f64,
    }

    /// Attempts that failed for one reason.
    pub struct FailureCounts {
        /// Since the start.
        pub total: u64,
        /// Within the last minute.
        pub minute: u64,
    }

    /// Responses 5xx.
    pub struct ServerErrors {
        /// Since the start.
        pub total: u64,
        /// Within the last minute.
        pub minute: u64,
        /// All responses of that minute.
        pub responses_minute: u64,
        /// Whether ten or more, and at least half of all, were 5xx.
        pub mostly: bool,
    }

    /// A failure.
    pub struct BackendFailure {
        /// Whose doing it was.
        pub culprit: String,
        /// The reason in the log.
        pub token: String,
        /// How far the attempt came: `not-sent`, `undelivered`, `sent`, `declined` or `answered`.
        pub stage: String,
        /// When.
        pub at: String,
        /// The request's id, as in the log.
        pub request: String,
        /// What happened, as the system or the protocol says it.
        pub detail: String,
    }

    /// Probes.
    pub struct ProbeCounts {
        /// Those that were answered as they should be.
        pub answered: u64,
        /// The others.
        pub failed: u64,
    }

    /// A probe that has ended.
    pub struct BackendProbe {
        /// Its number, in the order in which they began; the first one has 1.
        pub number: u64,
        /// When it ended.
        pub at: String,
        /// How long it took.
        pub took_ms: f64,
        /// What was asked: `request`, `cping` or `connect`.
        pub kind: String,
        /// The method of a `request`.
        pub method: Option<String>,
        /// The path of a `request`.
        pub path: Option<String>,
        /// Whether it was answered as it should be.
        pub answered: bool,
        /// What it found, in words.
        pub found: String,
        /// What an answer does not prove, in words; `null` if it proves all.
        pub unproved: Option<String>,
    }

    /// What an operator may change.
    pub struct BackendControls {
        /// `active`, `drain` or `stopped`.
        pub activation: String,
        /// Its weight, as in the file.
        pub weight: u32,
        /// Its distance, as in the file.
        pub distance: u32,
    }

    /// Where a member was found.
    pub struct MemberOrigin {
        /// The kind of source.
        pub from: String,
        /// What the source says of it.
        pub state: String,
        /// In how many seconds it is gone; `null` if it stays.
        pub gone_in_s: Option<u64>,
    }

    /// What was changed at run time.
    pub struct Override {
        /// Its activation; `null` if that is the file's.
        pub activation: Option<String>,
        /// Its weight; `null` if that is the file's.
        pub weight: Option<u32>,
        /// Its distance; `null` if that is the file's.
        pub distance: Option<u32>,
        /// When all of it is taken back; `null`: never.
        pub until: Option<String>,
        /// Why, in the operator's words.
        pub reason: Option<String>,
        /// Who changed it: a user of the machine, or an address.
        pub by: String,
        /// When.
        pub at: String,
    }

    /// How far a drain is.
    pub struct DrainProgress {
        /// What it becomes when nothing is left to wait for: `stopped` or `active`.
        pub then: String,
        /// When it began.
        pub began: String,
        /// When it ends in any case.
        pub deadline: String,
        /// Sessions that were seen when it began.
        pub sessions_at_start: u64,
        /// Sessions that are left; `null` if they are not counted.
        pub sessions_now: Option<u64>,
        /// When the last session is over if nobody comes again; `null` if sessions are not counted.
        pub earliest: Option<String>,
        /// Requests that wait for its response.
        pub in_flight: usize,
    }
}
