//! The requests of the API, each with the object that is its answer.

/// A request of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The method of the request.
    pub method: &'static str,
    /// The path below `/api/v1`; a word in capitals stands for a name, such as an upstream's.
    pub path: &'static str,
    /// The name of the object that the response contains.
    pub answer: &'static str,
    /// What the request does.
    pub meaning: &'static str,
}

/// All requests.
pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "GET",
        path: "/status",
        answer: "FrontStatus",
        meaning: "everything, of one configuration",
    },
    Endpoint {
        method: "GET",
        path: "/upstreams/U",
        answer: "UpstreamStatus",
        meaning: "an upstream, with its version as `ETag`",
    },
    Endpoint {
        method: "PATCH",
        path: "/upstreams/U",
        answer: "UpstreamStatus",
        meaning: "changes several backends, all or none",
    },
    Endpoint {
        method: "GET",
        path: "/upstreams/U/backends/B",
        answer: "BackendMember",
        meaning: "a backend, with its version as `ETag`",
    },
    Endpoint {
        method: "PATCH",
        path: "/upstreams/U/backends/B",
        answer: "BackendMember",
        meaning: "changes a backend",
    },
    Endpoint {
        method: "POST",
        path: "/upstreams/U/backends/B/reset",
        answer: "BackendMember",
        meaning: "takes back what was changed",
    },
    Endpoint {
        method: "POST",
        path: "/upstreams/U/backends/B/probe",
        answer: "ProbeResult",
        meaning: "probes a backend at once",
    },
    Endpoint {
        method: "POST",
        path: "/reload",
        answer: "OperationReport",
        meaning: "has the configuration file read again",
    },
    Endpoint {
        method: "POST",
        path: "/log/reopen",
        answer: "OperationReport",
        meaning: "opens the access log again",
    },
    Endpoint {
        method: "POST",
        path: "/upgrade",
        answer: "UpgradeStart",
        meaning: "has a new process of the same command take over",
    },
    Endpoint {
        method: "GET",
        path: "/events",
        answer: "EventList",
        meaning: "the last events; `after=N`: those after a number",
    },
    Endpoint {
        method: "GET",
        path: "/tls",
        answer: "ProfileList",
        meaning: "the TLS profiles and their certificates",
    },
    Endpoint {
        method: "POST",
        path: "/tls/N/renew",
        answer: "OperationReport",
        meaning: "orders a new certificate for the DNS name N by ACME, at most once an hour (else 429)",
    },
    Endpoint {
        method: "GET",
        path: "/listeners",
        answer: "ListenerList",
        meaning: "what the configuration in force accepts",
    },
    Endpoint {
        method: "GET",
        path: "/routes",
        answer: "RouteList",
        meaning: "where each route leads",
    },
    Endpoint {
        method: "GET",
        path: "/explain",
        answer: "Explanation",
        meaning: "what would become of a request: [admin.md](admin.md#why-does-this-request-go-there)",
    },
    Endpoint {
        method: "GET",
        path: "/caches",
        answer: "CacheList",
        meaning: "what caches hold and did",
    },
    Endpoint {
        method: "GET",
        path: "/caches/C/keys",
        answer: "CacheKeyList",
        meaning: "the keys that were answered from memory most often",
    },
    Endpoint {
        method: "POST",
        path: "/caches/C/purge",
        answer: "PurgeResult",
        meaning: "takes responses out of a cache",
    },
    Endpoint {
        method: "GET",
        path: "/limits",
        answer: "LimitList",
        meaning: "what limits did, and the keys that they refused most often",
    },
    Endpoint {
        method: "POST",
        path: "/limits/L/forget",
        answer: "ForgottenKey",
        meaning: "has a limit forget what a key owes: `{\"key\": \"192.0.2.1\"}`",
    },
];
