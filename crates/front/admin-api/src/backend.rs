//! A backend: its health, its counters, its settings, and its last failure and probe.

use std::collections::BTreeMap;

objects! {
    /// A backend of an upstream.
    pub struct BackendMember {
        /// The backend's health and counters.
        #[flat(flatten)]
        pub backend: Backend,
        /// The route that ends the backend's session ids.
        pub jvm_route: String,
        /// The backend's domain: the group of backends that have copies of its sessions.
        pub domain: Option<String>,
        /// The name of the backend that has copies of this backend's sessions.
        pub fallback: Option<String>,
        /// The version of the backend's run-time settings, for `If-Match`.
        pub version: String,
        /// The settings in force.
        pub settings: BackendControls,
        /// The settings that the configuration file gives.
        pub file: BackendControls,
        /// The source that found the backend; `null` if the configuration file names it.
        pub found: Option<MemberOrigin>,
        /// The settings changed at run time; `null` if none is.
        #[serde(rename = "override")]
        pub changed: Option<Override>,
        /// The progress of the drain; `null` if the backend does not drain.
        pub drain: Option<DrainProgress>,
        /// Sessions seen within `session_timeout`; `null` if sessions are not counted.
        pub sessions: Option<u64>,
        /// Requests for this backend with a session id that the front has not seen any backend give out; `null` if
        /// sessions are not counted.
        pub unknown_ids: Option<u64>,
    }

    /// The health and the counters of a backend.
    pub struct Backend {
        /// The backend's name.
        pub name: String,
        /// The upstream's name.
        pub upstream: String,
        /// `ajp`, `http` or `https`.
        pub protocol: String,
        /// The backend's address, as the configuration or a source writes it.
        pub address: String,
        /// The addresses of the backend's name; `null` if its address contains no name.
        pub resolution: Option<NameResolution>,
        /// The backend's health, in words.
        pub state: String,
        /// The backend's health in one word: `up`, `ramping`, `verifying`, `suspect` or `out`.
        pub condition: String,
        /// Why the backend is out, in words; `null` if it is not out.
        pub cause: Option<String>,
        /// Problems of the backend that do not put it out, in words.
        pub remarks: Vec<String>,
        /// The percentage of its weight that the backend counts with now.
        pub share: u8,
        /// Requests that wait for the backend's response.
        pub in_flight: usize,
        /// Requests whose client has left, and whose response is still awaited.
        pub abandoned: usize,
        /// Requests that wait for a connection.
        pub waiting: usize,
        /// The largest number of requests that may wait for a connection.
        pub queue_max: usize,
        /// The backend's connections.
        pub connections: BackendConnections,
        /// Attempts since the start: requests and their retries.
        pub requests: u64,
        /// Bytes sent and received since the start.
        pub bytes: BackendBytes,
        /// How much happens in a second, over the last 5 seconds; `null` before there are some.
        pub rates: Option<BackendRates>,
        /// Latencies of the last minute; `null` without responses.
        pub latency: Option<BackendLatency>,
        /// Attempts that failed, by the reason in the log. Failures that clients cause (`client:...`) are not
        /// counted.
        pub errors: BTreeMap<String, FailureCounts>,
        /// Responses with a status 5xx.
        pub server_errors: ServerErrors,
        /// Requests by the outcome for their session, with the words of `sticky=` in the log.
        pub sticky: BTreeMap<String, u64>,
        /// The last failure that the client did not cause; `null` if there was none.
        pub last_failure: Option<BackendFailure>,
        /// Probes since the start.
        pub probes: ProbeCounts,
        /// The last probe that ended; `null` if there was none.
        pub last_probe: Option<BackendProbe>,
        /// How often the backend was put out since the start.
        pub ejections: u64,
        /// How often the backend became suspect since the start.
        pub suspicions: u64,
        /// How long the backend was out in all, in seconds.
        pub down_s: u64,
    }

    /// The addresses to which the name of a backend resolves.
    pub struct NameResolution {
        /// The name that is resolved.
        pub host: String,
        /// The addresses in use. They stay in use while resolving fails.
        pub addresses: Vec<String>,
        /// How long ago the name was resolved, in seconds; `null` if it never was.
        pub age_s: Option<u64>,
        /// Why resolving fails; `null` if it does not fail.
        pub failed: Option<String>,
    }

    /// Connections to a backend.
    pub struct BackendConnections {
        /// Connections that are open now.
        pub open: usize,
        /// Open connections that carry no request.
        pub idle: usize,
        /// The largest number of open connections.
        pub max: usize,
        /// Connections opened since the start.
        pub dialled: u64,
        /// Failed attempts to open a connection.
        pub failed: u64,
        /// Requests that were sent on a connection that was open already.
        pub reused: u64,
        /// Connections that the backend had closed, which was found when a request was to use them.
        pub stale: u64,
    }

    /// Bytes sent and received on connections to a backend.
    pub struct BackendBytes {
        /// Bytes sent to the backend.
        pub sent: u64,
        /// Bytes received from the backend.
        pub received: u64,
    }

    /// The rates of a backend.
    pub struct BackendRates {
        /// Attempts per second.
        pub requests_s: f64,
        /// Bytes sent to the backend, per second.
        pub sent_s: f64,
        /// Bytes received from the backend, per second.
        pub received_s: f64,
    }

    /// The time from the beginning of an attempt to the head of its response, including the wait for a
    /// connection. Values are right to 3 %.
    pub struct BackendLatency {
        /// The number of responses.
        pub count: u64,
        /// The median: half of the times are not longer.
        pub p50_ms: f64,
        /// The time that 99 of 100 responses did not exceed.
        pub p99_ms: f64,
    }

    /// The number of attempts that failed for one reason.
    pub struct FailureCounts {
        /// Attempts since the start.
        pub total: u64,
        /// Attempts within the last minute.
        pub minute: u64,
    }

    /// The number of responses with a status 5xx.
    pub struct ServerErrors {
        /// Responses 5xx since the start.
        pub total: u64,
        /// Responses 5xx within the last minute.
        pub minute: u64,
        /// Responses with any status within the last minute.
        pub responses_minute: u64,
        /// Whether ten or more, and at least half of all, were 5xx.
        pub mostly: bool,
    }

    /// A failed attempt.
    pub struct BackendFailure {
        /// Who caused the failure.
        pub culprit: String,
        /// The reason, as the token in the log.
        pub token: String,
        /// How far the attempt came: `not-sent`, `undelivered`, `sent`, `declined` or `answered`.
        pub stage: String,
        /// The moment of the failure.
        pub at: String,
        /// The request's id, as in the log.
        pub request: String,
        /// What happened, in the words of the operating system or the protocol.
        pub detail: String,
    }

    /// The number of probes by their result.
    pub struct ProbeCounts {
        /// Probes that got the right answer.
        pub answered: u64,
        /// Probes that did not get the right answer.
        pub failed: u64,
    }

    /// A probe that has ended.
    pub struct BackendProbe {
        /// The probe's number. A backend's probes are numbered from 1, in the order in which they begin.
        pub number: u64,
        /// The moment at which the probe ended.
        pub at: String,
        /// How long the probe took.
        pub took_ms: f64,
        /// What the probe does: `request`, `cping` or `connect`.
        pub kind: String,
        /// The method of a probe of the kind `request`.
        pub method: Option<String>,
        /// The path of a probe of the kind `request`.
        pub path: Option<String>,
        /// Whether the backend gave the right answer.
        pub answered: bool,
        /// What the probe found, in words.
        pub found: String,
        /// What the backend's answer leaves unproved, in words; `null` if it proves that requests are served.
        pub unproved: Option<String>,
    }

    /// The settings of a backend that an operator may change.
    pub struct BackendControls {
        /// The activation: `active`, `drain` or `stopped`.
        pub activation: String,
        /// The backend's weight, as in the configuration file.
        pub weight: u32,
        /// The backend's distance, as in the configuration file.
        pub distance: u32,
    }

    /// The source that found a member.
    pub struct MemberOrigin {
        /// The kind of the source.
        pub from: String,
        /// The backend's state according to the source.
        pub state: String,
        /// In how many seconds the backend is removed; `null` if it stays.
        pub gone_in_s: Option<u64>,
    }

    /// The settings of a backend that were changed at run time.
    pub struct Override {
        /// The changed activation; `null` if the configuration file's is in force.
        pub activation: Option<String>,
        /// The changed weight; `null` if the configuration file's is in force.
        pub weight: Option<u32>,
        /// The changed distance; `null` if the configuration file's is in force.
        pub distance: Option<u32>,
        /// The moment at which all changes are taken back; `null` if they stay.
        pub until: Option<String>,
        /// Why the settings were changed, in the operator's words.
        pub reason: Option<String>,
        /// Who made the change: a user of the machine, or an address.
        pub by: String,
        /// The moment of the change.
        pub at: String,
    }

    /// The progress of a drain.
    pub struct DrainProgress {
        /// The activation of the backend when the drain ends: `stopped` or `active`.
        pub then: String,
        /// The moment at which the drain began.
        pub began: String,
        /// The moment at which the drain ends at the latest.
        pub deadline: String,
        /// Sessions that the backend had when the drain began.
        pub sessions_at_start: u64,
        /// Sessions that the backend has now; `null` if sessions are not counted.
        pub sessions_now: Option<u64>,
        /// The moment at which the last session ends if no client uses its session again; `null` if sessions are not
        /// counted.
        pub earliest: Option<String>,
        /// Requests that wait for the backend's response.
        pub in_flight: usize,
    }
}
