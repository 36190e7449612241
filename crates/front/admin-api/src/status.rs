//! The front as a whole, its upstreams, and what happened.

use std::collections::BTreeMap;

use crate::{Backend, BackendMember};

objects! {
    /// The front, of one configuration.
    pub struct FrontStatus {
        /// Version of the program.
        pub version: String,
        /// Number of the process.
        pub process: u32,
        /// The last upgrade that was begun.
        pub upgrade: UpgradeStatus,
        /// Number of the configuration in force: the first one has 1.
        pub generation: u64,
        /// The moment of the answer.
        pub now: String,
        /// Seconds since the process serves.
        pub uptime_s: u64,
        /// Threads that serve clients.
        pub workers: usize,
        /// Whether `/readyz` says that it takes new clients.
        pub ready: bool,
        /// Whether it accepts no more, and ends.
        pub draining: bool,
        /// Whether it is about to drain: from the beginning of `drain_delay`.
        pub leaving: bool,
        /// Whether nobody may change anything.
        pub read_only: bool,
        /// Whether changes are not kept over a restart because `state_file` cannot be written.
        pub state_file_fails: bool,
        /// Connections of clients.
        pub connections: ClientConnections,
        /// Limits of the front at which clients are turned away, or were within the last minute.
        pub limits: Vec<ReachedLimit>,
        /// What fails in the front itself, each in a sentence: lines of a log that are lost, a reload or files of
        /// certificates that were refused, a certificate that has expired.
        pub troubles: Vec<String>,
        /// Requests since the start.
        pub requests: u64,
        /// Responses since the start, by the first digit of their status.
        pub responses: ResponseCounts,
        /// Attempts after a failed one, since the start.
        pub retries: u64,
        /// Reloads since the start.
        pub reloads: ReloadCounts,
        /// Requests that were refused or failed, by the reason in the log.
        pub reasons: BTreeMap<String, u64>,
        /// The upstreams, in the order of the file.
        pub upstreams: Vec<UpstreamStatus>,
        /// Backends that a reload removed, until their last request ends.
        pub retired: Vec<Backend>,
        /// The requests that wait for their response.
        pub in_flight: InFlight,
    }

    /// The result of the last upgrade.
    pub struct UpgradeStatus {
        /// How many were begun.
        pub number: u64,
        /// Why the last one failed; `null` if it has not.
        pub failed: Option<String>,
    }

    /// Connections of clients.
    pub struct ClientConnections {
        /// Open now.
        pub open: usize,
        /// As many may be open.
        pub max: usize,
        /// Accepted since the start.
        pub accepted: u64,
    }

    /// A limit at which clients are turned away: until none was for a minute.
    pub struct ReachedLimit {
        /// The reason, as in the log and in `reasons`.
        pub reason: String,
        /// Who is turned away: `clients` whoever they are, those of one `address`, or `administrators`.
        pub whom: String,
        /// Clients that were turned away.
        pub clients: u64,
        /// Seconds since the first of them.
        pub since_s: u64,
        /// Seconds since the last of them.
        pub last_s: u64,
        /// What was reached, and what to do.
        pub text: String,
    }

    /// Responses by the first digit of their status.
    pub struct ResponseCounts {
        /// Interim responses.
        #[serde(rename = "1xx")]
        pub informational: u64,
        /// Successes.
        #[serde(rename = "2xx")]
        pub success: u64,
        /// Redirects, and answers to conditional requests.
        #[serde(rename = "3xx")]
        pub redirection: u64,
        /// Faults of clients.
        #[serde(rename = "4xx")]
        pub client_error: u64,
        /// Failures of applications and of the front.
        #[serde(rename = "5xx")]
        pub server_error: u64,
        /// Requests that ended without a response.
        pub none: u64,
    }

    /// Reloads.
    pub struct ReloadCounts {
        /// Those that took effect.
        pub applied: u64,
        /// Those that were refused because of faults.
        pub refused: u64,
    }

    /// An upstream.
    pub struct UpstreamStatus {
        /// Its name.
        pub name: String,
        /// How a backend is picked, as `policy` of the file.
        pub policy: String,
        /// Whether sessions are kept.
        pub sticky: bool,
        /// Requests by what became of their session; `null` if no sessions are kept.
        pub sticky_outcomes: Option<BTreeMap<String, u64>>,
        /// Whether it takes clients that have no session yet.
        pub ready: bool,
        /// Where it finds members; `null` if the file names them all.
        pub members: Option<FoundMembers>,
        /// Whether more of its weight is out than `unwell_max` allows, so that backends which fail their probes
        /// serve.
        pub panic: bool,
        /// Further attempts after a failed one.
        pub retries: u32,
        /// What limits the retries of all requests together.
        pub retry_budget: RetryBudgetStatus,
        /// Its backends, in the order of the file.
        pub backends: Vec<BackendMember>,
    }

    /// The retries that are left: each request earns a part of one, and each retry spends one.
    pub struct RetryBudgetStatus {
        /// So many may be made now.
        pub left: u64,
        /// The most retries that the budget can save up.
        pub max: u64,
    }

    /// Where an upstream finds members, and how well that goes.
    pub struct FoundMembers {
        /// The kind of source.
        pub from: String,
        /// Members that serve.
        pub active: usize,
        /// Members that take no new sessions.
        pub drain: usize,
        /// Members that are gone from the list and still have `leave` left.
        pub leaving: usize,
        /// Seconds since the last good answer; `null` if there was none.
        pub age_s: Option<u64>,
        /// Why the last list was kept; `null` if the last answer was good.
        pub failed: Option<String>,
        /// Answers of the source since the start.
        pub answers: MemberAnswers,
        /// Members that were not taken.
        pub refused: Vec<RefusedMember>,
    }

    /// Answers of a source of members.
    pub struct MemberAnswers {
        /// Those that were taken.
        pub good: u64,
        /// Those that kept the last list.
        pub failed: u64,
    }

    /// A member that was not taken.
    pub struct RefusedMember {
        /// Its name, as the source has it.
        pub name: String,
        /// Why, in one word.
        pub reason: String,
    }

    /// The requests that wait for their response.
    pub struct InFlight {
        /// How many there are.
        pub count: usize,
        /// Requests that were not counted because too many were in flight.
        pub unseen: u64,
        /// The ten slowest.
        pub slowest: Vec<RequestInFlight>,
    }

    /// A request that waits for its response.
    pub struct RequestInFlight {
        /// Its id, as in the log.
        pub id: String,
        /// Its method.
        pub method: String,
        /// Its path without query and path parameters, up to 96 bytes.
        pub path: String,
        /// Whether the path is longer.
        pub path_cut: bool,
        /// The upstream; `null` if its backend is gone.
        pub upstream: Option<String>,
        /// The backend; `null` if it is gone.
        pub backend: Option<String>,
        /// How far it is: `connecting`, `sending`, `waiting` or `responding`.
        pub phase: String,
        /// How long it is under way, in milliseconds.
        pub age_ms: u64,
    }

    /// The last events, of which a thousand are kept.
    pub struct EventList {
        /// Those after the number that was asked for, in their order.
        pub events: Vec<Event>,
    }

    /// Something that happened.
    pub struct Event {
        /// Its number; the first one has 1.
        pub number: u64,
        /// When.
        pub at: String,
        /// `change`, `health` (a backend is out, is back, answers mostly 5xx; clients are turned away) or `failure`.
        pub kind: String,
        /// The upstream.
        pub upstream: String,
        /// The backend.
        pub backend: String,
        /// What happened.
        pub text: String,
    }
}
