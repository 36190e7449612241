//! The state of the front, its upstreams, and the last events.

use std::collections::BTreeMap;

use crate::{Backend, BackendMember};

objects! {
    /// The state of the front. All of it belongs to one configuration.
    pub struct FrontStatus {
        /// The program's version.
        pub version: String,
        /// The process id.
        pub process: u32,
        /// The last upgrade that was begun.
        pub upgrade: UpgradeStatus,
        /// The number of the configuration in force; the first one has 1.
        pub generation: u64,
        /// The moment of the answer.
        pub now: String,
        /// Seconds since the process serves.
        pub uptime_s: u64,
        /// The number of threads that serve clients.
        pub workers: usize,
        /// Whether `/readyz` answers that the front takes new clients.
        pub ready: bool,
        /// Whether the front drains: it accepts no more connections, and ends.
        pub draining: bool,
        /// Whether the front waits for `drain_delay` before it drains.
        pub leaving: bool,
        /// Whether the admin listener refuses all changes.
        pub read_only: bool,
        /// Whether changes are not kept over a restart because `state_file` cannot be written.
        pub state_file_fails: bool,
        /// The connections of clients.
        pub connections: ClientConnections,
        /// Limits of the front at which clients are turned away, or were within the last minute.
        pub limits: Vec<ReachedLimit>,
        /// What fails in the front itself, each in a sentence: lines of a log that are lost, a reload or files of
        /// certificates that were refused, a certificate that has expired or cannot be stored.
        pub troubles: Vec<String>,
        /// Requests since the start.
        pub requests: u64,
        /// Responses since the start, by the first digit of the status code.
        pub responses: ResponseCounts,
        /// Attempts that followed a failed one, since the start.
        pub retries: u64,
        /// The reloads since the start.
        pub reloads: ReloadCounts,
        /// Requests that were refused or failed, by the reason in the log.
        pub reasons: BTreeMap<String, u64>,
        /// The upstreams, in the order of the file.
        pub upstreams: Vec<UpstreamStatus>,
        /// Backends that a reload removed and that still have requests.
        pub retired: Vec<Backend>,
        /// The requests that wait for their response.
        pub in_flight: InFlight,
    }

    /// The result of the last upgrade.
    pub struct UpgradeStatus {
        /// The number of upgrades that were begun.
        pub number: u64,
        /// Why the last upgrade failed; `null` if it did not fail.
        pub failed: Option<String>,
    }

    /// Connections of clients.
    pub struct ClientConnections {
        /// Connections that are open now.
        pub open: usize,
        /// The largest number of open connections.
        pub max: usize,
        /// Connections accepted since the start.
        pub accepted: u64,
    }

    /// A limit that was reached, so that clients were turned away. It is listed until no client was turned away for a
    /// minute.
    pub struct ReachedLimit {
        /// The reason, as in the log and in `reasons`.
        pub reason: String,
        /// The clients that are turned away: `clients` for any, those of one `address`, or `administrators`.
        pub whom: String,
        /// The number of clients that were turned away.
        pub clients: u64,
        /// Seconds since the first client was turned away.
        pub since_s: u64,
        /// Seconds since the last client was turned away.
        pub last_s: u64,
        /// Which limit was reached, and what to do.
        pub text: String,
    }

    /// Responses by the first digit of their status code.
    pub struct ResponseCounts {
        /// Interim responses (1xx).
        #[serde(rename = "1xx")]
        pub informational: u64,
        /// Successes (2xx).
        #[serde(rename = "2xx")]
        pub success: u64,
        /// Redirects, and answers to conditional requests (3xx).
        #[serde(rename = "3xx")]
        pub redirection: u64,
        /// Errors of clients (4xx).
        #[serde(rename = "4xx")]
        pub client_error: u64,
        /// Failures of applications and of the front (5xx).
        #[serde(rename = "5xx")]
        pub server_error: u64,
        /// Requests that ended without a response.
        pub none: u64,
    }

    /// The number of reloads by their result.
    pub struct ReloadCounts {
        /// Reloads that took effect.
        pub applied: u64,
        /// Reloads that were refused because the configuration had faults.
        pub refused: u64,
    }

    /// An upstream.
    pub struct UpstreamStatus {
        /// The upstream's name.
        pub name: String,
        /// How a backend is picked, as `policy` of the file.
        pub policy: String,
        /// Whether the upstream keeps sessions.
        pub sticky: bool,
        /// Requests by the outcome for their session; `null` if the upstream keeps no sessions.
        pub sticky_outcomes: Option<BTreeMap<String, u64>>,
        /// Whether the upstream accepts clients that have no session yet.
        pub ready: bool,
        /// The source of the upstream's members; `null` if the configuration file names all of them.
        pub members: Option<FoundMembers>,
        /// Whether more of the upstream's weight is out than `unwell_max` allows. Then backends that fail their
        /// probes serve.
        pub panic: bool,
        /// How many attempts may follow a failed one.
        pub retries: u32,
        /// The budget that limits the retries of all requests together.
        pub retry_budget: RetryBudgetStatus,
        /// The upstream's backends, in the order of the configuration file.
        pub backends: Vec<BackendMember>,
    }

    /// The retry budget: each request adds a part of a retry, and each retry takes one.
    pub struct RetryBudgetStatus {
        /// The number of retries that the budget allows now.
        pub left: u64,
        /// The most retries that the budget can save up.
        pub max: u64,
    }

    /// The source of an upstream's members, and the state of its answers.
    pub struct FoundMembers {
        /// The kind of the source.
        pub from: String,
        /// Members that serve.
        pub active: usize,
        /// Members that take no new sessions.
        pub drain: usize,
        /// Members that the source no longer names, and that drain until `leave` is over.
        pub leaving: usize,
        /// Seconds since the last good answer; `null` if there was none.
        pub age_s: Option<u64>,
        /// Why the last list was kept; `null` if the last answer was good.
        pub failed: Option<String>,
        /// Answers of the source since the start.
        pub answers: MemberAnswers,
        /// Members that the front refused.
        pub refused: Vec<RefusedMember>,
    }

    /// The number of answers of a source of members, by their result.
    pub struct MemberAnswers {
        /// Answers of the source that were applied.
        pub good: u64,
        /// Answers of the source that failed, so that the last list stayed in force.
        pub failed: u64,
    }

    /// A member that the front refused.
    pub struct RefusedMember {
        /// The member's name, as the source gives it.
        pub name: String,
        /// The reason as a token.
        pub reason: String,
    }

    /// The requests that wait for their response.
    pub struct InFlight {
        /// The number of requests.
        pub count: usize,
        /// Requests that were not counted because too many were in flight.
        pub unseen: u64,
        /// The ten requests that wait for the longest time.
        pub slowest: Vec<RequestInFlight>,
    }

    /// A request that waits for its response.
    pub struct RequestInFlight {
        /// The request's id, as in the log.
        pub id: String,
        /// The method.
        pub method: String,
        /// The path without query and path parameters, up to 96 bytes.
        pub path: String,
        /// Whether `path` is cut at 96 bytes.
        pub path_cut: bool,
        /// The upstream's name; `null` if the backend was removed.
        pub upstream: Option<String>,
        /// The backend's name; `null` if the backend was removed.
        pub backend: Option<String>,
        /// The phase of the exchange: `connecting`, `sending`, `waiting` or `responding`.
        pub phase: String,
        /// The time since the request began, in milliseconds.
        pub age_ms: u64,
    }

    /// The last events, of which a thousand are kept.
    pub struct EventList {
        /// The events after the number that was asked for, in order.
        pub events: Vec<Event>,
    }

    /// An event: something that happened in the front.
    pub struct Event {
        /// The event's number; the first event has 1.
        pub number: u64,
        /// The moment of the event.
        pub at: String,
        /// `change`, `health` (a backend is out, is back, answers mostly 5xx; clients are turned away) or `failure`.
        pub kind: String,
        /// The upstream's name; empty if the event concerns none.
        pub upstream: String,
        /// The backend's name; empty if the event concerns none.
        pub backend: String,
        /// What happened.
        pub text: String,
    }
}
