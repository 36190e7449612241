//! The decision about a request, with its reasons. Texts may be from a client or from the configuration file.

use crate::limit::LimitOutlook;

objects! {
    /// The decision about a request.
    pub struct Explanation {
        /// The number of the configuration that decides.
        pub generation: u64,
        /// The decision in one line.
        pub summary: String,
        /// The request as the front understood it; `null` if it is not valid.
        pub request: Option<ExplainedRequest>,
        /// The forms of the request's path.
        pub path: Option<PathForms>,
        /// `forward` to a backend, `answer` by the front, or `refused`.
        pub outcome: String,
        /// The response that the front makes itself, if it does.
        pub answer: Option<FrontAnswer>,
        /// The route that was chosen.
        pub route: Option<RouteStatus>,
        /// The routes that come next, the best first; at most three.
        pub others: Vec<OtherRoute>,
        /// The limits that the request is subject to, as they stand now.
        pub limits: Vec<LimitOutlook>,
        /// What the route's sign-on is asked before, if the route has one.
        pub auth: Option<AuthOutlook>,
        /// The path after the route's rewriting, if the route rewrites it.
        pub rewrite: Option<String>,
        /// What the route's cache would do, if the route has one.
        pub cache: Option<CacheOutlook>,
        /// The upstream that the route leads to.
        pub upstream: Option<UpstreamOutlook>,
        /// The backend that the session leads to, if the upstream keeps sessions.
        pub affinity: Option<SessionAffinity>,
        /// The backend that gets the request, if only one can get it.
        pub backend: Option<String>,
        /// How `backend` was chosen: `session`, `own-cookie`, `fallback`, `domain`, `hash`, `only`, `policy`,
        /// or `nobody`; `null` if the request is not forwarded.
        pub by: Option<String>,
        /// All backends of the upstream, with their chance to get the request.
        pub members: Vec<MemberShare>,
        /// The request that the front sends to `backend`, or else to the first backend that may get the
        /// request.
        pub sent: Option<BackendRequest>,
        /// The rules that apply after the decision and have effects, each in a sentence: what is counted, picked, made
        /// or read.
        pub then: Vec<String>,
    }

    /// A request as the front understood it.
    pub struct ExplainedRequest {
        /// The method.
        pub method: String,
        /// `http` or `https`: the scheme of the client's connection, to the front or to a trusted proxy.
        pub scheme: String,
        /// The host that the request names, without port.
        pub host: Option<String>,
        /// The port that the request names beside the host, if any.
        pub port: Option<u16>,
        /// The path as received.
        pub path: String,
        /// The query without its question mark.
        pub query: Option<String>,
        /// The listener by which the request is assumed to come: its name, or its address if it has none.
        pub listener: String,
        /// The address of the peer that is assumed to connect.
        pub from: String,
        /// The address of the client, as trusted proxies tell it.
        pub client: String,
        /// Whether the client's connection, to the front or to a trusted proxy, uses TLS.
        pub secure: bool,
    }

    /// The forms that a path takes on its way through the front.
    pub struct PathForms {
        /// The path as received.
        pub received: String,
        /// The path after it was normalised.
        pub normal: String,
        /// The path in the form that routes are compared with.
        pub compared: String,
        /// The path as the front sends it to a backend.
        pub forwarded: String,
    }

    /// A response that the front makes itself.
    pub struct FrontAnswer {
        /// The status code.
        pub status: u16,
        /// The reason, as the token in the log.
        pub reason: String,
        /// The reason, in words.
        pub text: String,
        /// The address that a redirect leads to.
        pub location: Option<String>,
    }

    /// The routes of a configuration.
    pub struct RouteList {
        /// The routes, in the order of the configuration file.
        pub routes: Vec<RouteStatus>,
    }

    /// A route, in the words of the configuration file.
    pub struct RouteStatus {
        /// The file and line of the route.
        pub place: Option<String>,
        /// The hosts that the route is for; empty for any.
        pub hosts: Vec<String>,
        /// The path that the route is for.
        pub path: String,
        /// Whether the whole path must be equal, not only its beginning.
        pub exact: bool,
        /// What the path must end in.
        pub suffix: Option<String>,
        /// The pattern of the path, in the place of path, exactness and suffix.
        pub pattern: Option<String>,
        /// The regular expression of the path, in the place of path, exactness, suffix and pattern.
        pub regex: Option<String>,
        /// Whether a request is refused whose parameters (`;NAME=VALUE`) decide whether the expression matches.
        pub refuse_parameters: bool,
        /// Whether expressions are not asked if this path would be chosen without them.
        pub before_regex: bool,
        /// The methods that the route is for; empty for all.
        pub methods: Vec<String>,
        /// The fields, parameters of the query, and cookies that a request must have, and the clients that are left to
        /// other routes, such as `?v=2, a field x-beta, not from 10.0.0.0/8`; empty for none. Values of fields and cookies
        /// are left out.
        pub conditions: String,
        /// The listeners that the route is for, by name, or by address if they have none; empty for all.
        pub listen: Vec<String>,
        /// `http` or `https`, if the route is for only one of them.
        pub scheme: Option<String>,
        /// The route's target: `upstream NAME`, `split NAME SHARE, …`, `files`, `status CODE`, or `redirect CODE`.
        pub target: String,
    }

    /// A route that was not chosen.
    pub struct OtherRoute {
        /// The route.
        #[flat(flatten)]
        pub route: RouteStatus,
        /// Whether the route would serve the request if the routes before it did not exist.
        pub matches: bool,
        /// Why the route was not chosen.
        pub why_not: String,
    }

    /// What the sign-on of a route is asked before a request is served.
    pub struct AuthOutlook {
        /// The sign-on's name.
        pub name: String,
        /// The upstream of the service; empty if users are in a file.
        pub upstream: String,
        /// The method and the path; empty if users are in a file.
        pub request: String,
        /// The header fields, with names and values.
        pub fields: Vec<(String, String)>,
        /// The file of users, if the sign-on has one.
        pub users_file: Option<String>,
        /// The user whose password would be checked, if the sign-on has a file of users and the request names one.
        pub user: Option<String>,
        /// The status of the answer that was supposed, if one was.
        pub supposed: Option<u16>,
    }

    /// What a route's cache would do with the request.
    pub struct CacheOutlook {
        /// The cache's name.
        pub name: String,
        /// The key of the request, with its parts separated by spaces. Bytes that are not text are replaced.
        pub key: String,
        /// Why the cache is not used for the request, as a token.
        pub bypass: Option<String>,
        /// What the cache has stored for the request: `fresh`, `stale`, `foreign` (a response for other
        /// clients), or `nothing`.
        pub stored: String,
        /// The age of the stored response, in seconds.
        pub age: Option<u32>,
        /// For how many seconds the stored response stays fresh; negative if it is stale.
        pub ttl: Option<i64>,
    }

    /// The upstream that a route leads to.
    pub struct UpstreamOutlook {
        /// The upstream's name.
        pub name: String,
        /// The policy by which a backend is picked.
        pub policy: String,
        /// Whether the upstream keeps sessions.
        pub sticky: bool,
        /// Whether so much of the upstream's weight is unwell that backends which fail their probes serve.
        pub panic: bool,
    }

    /// The decision about the session of a request.
    pub struct SessionAffinity {
        /// The word that `sticky=` in the log would have; `held` if the session's backend is out and no other
        /// backend may have the session.
        pub outcome: String,
        /// The decision for each session id, in the order in which the front reads them.
        pub steps: Vec<AffinityStep>,
    }

    /// The decision for one session id.
    pub struct AffinityStep {
        /// Where the session id was found, such as `cookie JSESSIONID` or `path parameter jsessionid`.
        pub source: String,
        /// The session id as received; `null` for the front's own cookie.
        pub value: Option<String>,
        /// The backend that the session id names.
        pub backend: Option<String>,
        /// The decision, in words.
        pub text: String,
    }

    /// A backend of the upstream.
    pub struct MemberShare {
        /// The backend's name.
        pub backend: String,
        /// The percentage of such requests that the backend would get.
        pub share: f64,
        /// Why the backend cannot get the request.
        pub why_not: Option<String>,
    }

    /// A request that the front sends to a backend, and the time that it may take.
    pub struct BackendRequest {
        /// The backend's name.
        pub backend: String,
        /// `ajp`, `http` or `https`.
        pub protocol: String,
        /// The backend's address; for a tunnel that does not go over AJP, the address of its `upgrade_url`.
        pub address: String,
        /// The protocol of the tunnel that the front asks the backend for, if any.
        pub tunnel: Option<String>,
        /// The method, the path and the query.
        pub request: String,
        /// The header fields, with names and values.
        pub fields: Vec<(String, String)>,
        /// What AJP13 says besides. The secret is not shown; TLS is that of a client that was supposed.
        pub attributes: Vec<(String, String)>,
        /// The cookie of the front's own that the response would get.
        pub set_cookie: Option<String>,
        /// The timeouts of the exchange: keys of the configuration file, with their values.
        pub timeouts: Vec<(String, String)>,
        /// How many attempts may follow a failed one.
        pub retries: u32,
    }
}
