//! What would become of a request, and why. Texts in it may be a client's or the file's.

objects! {
    /// What would become of a request.
    pub struct Explanation {
        /// Of the configuration that was asked.
        pub generation: u64,
        /// All of it in one line.
        pub summary: String,
        /// The request as it was understood; `null` if it is none.
        pub request: Option<ExplainedRequest>,
        /// Its path.
        pub path: Option<PathForms>,
        /// `forward` to a backend, `answer` by the front, or `refused`.
        pub outcome: String,
        /// What the front answers, if it does.
        pub answer: Option<FrontAnswer>,
        /// The route that was chosen.
        pub route: Option<RouteStatus>,
        /// The routes that come next, the best first; at most three.
        pub others: Vec<OtherRoute>,
        /// What the path becomes, if the route rewrites it.
        pub rewrite: Option<String>,
        /// What the cache of the route would do, if there is one.
        pub cache: Option<CacheOutlook>,
        /// Where the route leads.
        pub upstream: Option<UpstreamOutlook>,
        /// What its session says, if sessions are kept.
        pub affinity: Option<SessionAffinity>,
        /// The backend that gets it, if there is but one.
        pub backend: Option<String>,
        /// What led there: `session`, `own-cookie`, `fallback`, `domain`, `hash`, `only`, `policy`, or `nobody`;
        /// `null` if it is not forwarded.
        pub by: Option<String>,
        /// Every backend of the upstream.
        pub members: Vec<MemberShare>,
        /// What is sent to `backend`, or to the first that may get it and can be sent it.
        pub sent: Option<BackendRequest>,
        /// What follows the decision and has effects, a rule each: what is counted, picked, made or read.
        pub then: Vec<String>,
    }

    /// A request as it was understood.
    pub struct ExplainedRequest {
        /// Its method.
        pub method: String,
        /// `http` or `https`: how the client came, here or to a trusted proxy.
        pub scheme: String,
        /// The host it asks for, without port.
        pub host: Option<String>,
        /// The port beside the host, if one is given.
        pub port: Option<u16>,
        /// The path as received.
        pub path: String,
        /// The query without its question mark.
        pub query: Option<String>,
        /// The listener that it is supposed to come by: its name, or else its address.
        pub listener: String,
        /// The address of the connection's other end.
        pub from: String,
        /// The client's address, trusted proxies looked through.
        pub client: String,
        /// Whether the client came over TLS, here or to a trusted proxy.
        pub secure: bool,
    }

    /// A path on its way.
    pub struct PathForms {
        /// As received.
        pub received: String,
        /// Normalised.
        pub normal: String,
        /// In the form that routes are compared with.
        pub compared: String,
        /// As it is sent to a backend.
        pub forwarded: String,
    }

    /// A response of the front's own.
    pub struct FrontAnswer {
        /// Its status.
        pub status: u16,
        /// The reason in the log.
        pub reason: String,
        /// Why, in words.
        pub text: String,
        /// Where a redirect leads.
        pub location: Option<String>,
    }

    /// Every route.
    pub struct RouteList {
        /// In the order of the file.
        pub routes: Vec<RouteStatus>,
    }

    /// A route, in the words of the file.
    pub struct RouteStatus {
        /// Its file and line.
        pub place: Option<String>,
        /// Its hosts; empty for any.
        pub hosts: Vec<String>,
        /// Its path.
        pub path: String,
        /// Whether the path must be equal.
        pub exact: bool,
        /// What the path must end in.
        pub suffix: Option<String>,
        /// What stands in the place of path, exactness and suffix.
        pub pattern: Option<String>,
        /// The expression that stands in the place of all these.
        pub regex: Option<String>,
        /// Whether expressions are not asked where this path would win without them.
        pub before_regex: bool,
        /// The methods that it is for; empty for all.
        pub methods: Vec<String>,
        /// The listeners that it is for, by name or else by address; empty for all.
        pub listen: Vec<String>,
        /// `http` or `https`, if it is for one of them only.
        pub scheme: Option<String>,
        /// Where it leads: `upstream NAME`, `files`, `status CODE`, or `redirect CODE`.
        pub target: String,
    }

    /// A route that was not chosen.
    pub struct OtherRoute {
        /// The route.
        #[flat(flatten)]
        pub route: RouteStatus,
        /// Whether it would serve the request if those before it were not there.
        pub matches: bool,
        /// Why it was not chosen.
        pub why_not: String,
    }

    /// The cache of a route, as it stands to a request.
    pub struct CacheOutlook {
        /// Its name.
        pub name: String,
        /// The key, its parts separated by spaces. What is not text in it is replaced.
        pub key: String,
        /// Why the cache has no part in the request, in one word.
        pub bypass: Option<String>,
        /// What is stored is to it: `fresh`, `stale`, `foreign` (it is for other clients), or `nothing`.
        pub stored: String,
        /// The age of what is stored, in seconds.
        pub age: Option<u32>,
        /// For how many seconds it stays fresh; less than 0 if it is stale.
        pub ttl: Option<i64>,
    }

    /// The upstream that a route leads to.
    pub struct UpstreamOutlook {
        /// Its name.
        pub name: String,
        /// How a backend is picked.
        pub policy: String,
        /// Whether sessions are kept.
        pub sticky: bool,
        /// Whether more of its weight is unwell than may be out.
        pub panic: bool,
    }

    /// What the session of a request says.
    pub struct SessionAffinity {
        /// As `sticky=` in the log; `held` if its backend is out and nobody else may have it.
        pub outcome: String,
        /// What was made of each session id, in the order in which they are read.
        pub steps: Vec<AffinityStep>,
    }

    /// What was made of one session id.
    pub struct AffinityStep {
        /// Where it was found: `cookie JSESSIONID`, `path parameter jsessionid`.
        pub source: String,
        /// As received; `null` for the front's own cookie.
        pub value: Option<String>,
        /// The backend that it led to.
        pub backend: Option<String>,
        /// What was made of it.
        pub text: String,
    }

    /// A backend of the upstream.
    pub struct MemberShare {
        /// Its name.
        pub backend: String,
        /// Of how many such requests in a hundred it would get this one.
        pub share: f64,
        /// Why it does not get it.
        pub why_not: Option<String>,
    }

    /// A request to a backend, and how long it may take.
    pub struct BackendRequest {
        /// The backend's name.
        pub backend: String,
        /// `ajp`, `http` or `https`.
        pub protocol: String,
        /// Where the backend is; for a tunnel beside AJP that of its `upgrade_url`.
        pub address: String,
        /// The protocol of the tunnel that the backend is asked for, if it is asked for one.
        pub tunnel: Option<String>,
        /// Method, path and query.
        pub request: String,
        /// Header fields.
        pub fields: Vec<(String, String)>,
        /// What AJP13 says besides. The secret is not shown; TLS is that of a client that was supposed.
        pub attributes: Vec<(String, String)>,
        /// The cookie of the front's own that the response would get.
        pub set_cookie: Option<String>,
        /// Keys of the file with their values.
        pub timeouts: Vec<(String, String)>,
        /// Further attempts after a first failed one.
        pub retries: u32,
    }
}
