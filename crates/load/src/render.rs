//! A report as text, for people and for programs: pure functions from data to strings.
//!
//! Nothing here measures, judges or prints. What is doubtful about a run is decided where its
//! [`Report`](crate::report::Report) is made; here it only gets its words.

/// What a report is about: what the plan said and the report does not repeat.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// The first URL as the user gave it.
    pub url: String,
    /// How many URLs there were.
    pub urls: usize,
    /// The host in it, without brackets (ab: Server Hostname).
    pub hostname: String,
    /// Its port (ab: Server Port).
    pub port: u16,
    /// Path and query (ab: Document Path).
    pub path: String,
    /// Whether connections were to be kept alive (`-k`).
    pub keep_alive: bool,
    /// Whether requests have bodies (`-p`, `-u`).
    pub sends_body: bool,
    /// Whether answers may differ in length (`-l`).
    pub variable_length: bool,
    /// Whether the table of percentiles is wanted (not `-d`).
    pub percentiles: bool,
    /// Whether deviations and doubts are wanted (not `-S`).
    pub confidence: bool,
    /// Requests per second that were asked for (`--rate`); `None`: a closed loop.
    pub rate: Option<f64>,
}
