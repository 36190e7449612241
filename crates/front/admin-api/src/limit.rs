//! Limits: their settings and counters, the keys that were refused, and what is left for a request.

objects! {
    /// Every limit of the configuration in force.
    pub struct LimitList {
        /// The limits, in the order of the configuration file.
        pub limits: Vec<LimitStatus>,
        /// The keys that were refused most often, most often first; at most ten.
        pub refused: Vec<RefusedKey>,
        /// The number of keys that the table of limits can hold; 0 without limits.
        pub keys_max: usize,
        /// The memory of that table, in bytes.
        pub memory: u64,
        /// Keys that were forgotten to make room before they had recovered from their last requests, since the start.
        pub evicted: u64,
    }

    /// A limit.
    pub struct LimitStatus {
        /// The limit's name.
        pub name: String,
        /// Whether requests beyond the limit are refused; otherwise they are only counted and logged.
        pub enforced: bool,
        /// Requests that passed, since the start.
        pub passed: u64,
        /// Requests that were refused, since the start.
        pub refused: u64,
        /// Requests that would have been refused if the limit were enforced, since the start.
        pub dry: u64,
        /// Keys that have not recovered from their last requests, or have requests in flight.
        pub keys: u64,
        /// Requests in flight now; `null` for a limit by rate.
        pub in_flight: Option<u64>,
    }

    /// A key that was refused, or would have been if its limit were enforced.
    pub struct RefusedKey {
        /// The limit's name.
        pub limit: String,
        /// The key, such as a client's address.
        pub key: String,
        /// How often it was refused, at most.
        pub count: u64,
        /// By how much `count` may be too high.
        pub excess: u64,
    }

    /// The answer to a request to forget what a key has used of a limit.
    pub struct ForgottenKey {
        /// Whether the limit knew the key.
        pub known: bool,
    }

    /// A limit that a request is subject to, as it stands now.
    pub struct LimitOutlook {
        /// The limit's name.
        pub name: String,
        /// The key by which the request is counted; `null` if a trusted proxy does not tell the client's address, so
        /// that the request is not counted.
        pub key: Option<String>,
        /// Whether requests beyond the limit are refused.
        pub enforced: bool,
        /// Whether the request is beyond the limit now.
        pub exceeded: bool,
        /// How many requests of this key would pass after this one.
        pub left: u32,
    }
}
