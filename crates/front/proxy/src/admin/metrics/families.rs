//! The metrics of the front as a whole.

use crate::admin::exposition::{Family, Kind};

/// Labels without a description here: the head of `docs/metrics.md` explains them for all metrics.
pub(super) const UPSTREAM: (&str, &str) = ("upstream", "");
const CACHE: (&str, &str) = ("cache", "");
const AUTH: (&str, &str) = ("auth", "the name of the [auth.NAME]");
const LIMIT: (&str, &str) = ("limit", "the name of the [limit.NAME]");

/// Every family of this module, in the order of `docs/metrics.md`.
pub(super) static OF_FRONT: [&Family; 63] = [
    &BUILD_INFO,
    &READY,
    &UPSTREAM_READY,
    &DRAINING,
    &STATE_FILE_FAILS,
    &SERVED_SINCE,
    &RELOADS,
    &CONFIG_GENERATION,
    &LAST_RELOAD_SUCCESSFUL,
    &LAST_RELOAD,
    &LAST_RELOAD_SUCCESS,
    &CONNECTIONS_ACCEPTED,
    &CONNECTIONS_OPEN,
    &CONNECTIONS_MAX,
    &H2_CONNECTIONS_OPEN,
    &H2_STREAMS_OPEN,
    &TLS_HANDSHAKES,
    &TLS_HANDSHAKES_OPEN,
    &TLS_CERTIFICATE_RELOADS,
    &TLS_CERTIFICATE_REFUSED,
    &TLS_CERTIFICATE_NOT_AFTER,
    &ACME_ATTEMPTS,
    &ACME_FAILURES,
    &ACME_NEXT_ATTEMPT,
    &ACME_UNSTORED,
    &REQUESTS,
    &RESPONSES,
    &RETRIES,
    &TUNNELS_OPEN,
    &TUNNEL_BYTES,
    &FILES_REQUESTS,
    &FILES_OPEN,
    &FILES_BYTES,
    &FILES_THREAD_READS,
    &COMPRESSED_RESPONSES,
    &COMPRESSED_BYTES,
    &COMPRESS_MEMORY,
    &CACHE_REQUESTS,
    &CACHE_BYPASS,
    &CACHE_BYTES,
    &CACHE_OBJECTS,
    &CACHE_EVICTIONS,
    &CACHE_FILLS_OPEN,
    &CACHE_WAITERS,
    &CACHE_PURGES,
    &LIMIT_REQUESTS,
    &LIMIT_KEYS,
    &LIMIT_IN_FLIGHT,
    &LIMIT_EVICTED,
    &AUTH_REQUESTS,
    &AUTH_SECONDS,
    &AUTH_FILES_REFUSED,
    &AUTH_HASHES_WAITING,
    &STICKY,
    &REASONS,
    &LOG_LINES_DROPPED,
    &LOG_LINES_LOST,
    &OWN_LOG_LINES_DROPPED,
    &OWN_LOG_LINES_LOST,
    &TRACE_SPANS,
    &UPSTREAM_PANIC,
    &UPSTREAM_HELD,
    &UPSTREAM_HOLD,
];

pub(super) static BUILD_INFO: Family = Family {
    name: "catamaran_build_info",
    kind: Kind::Gauge,
    help: "Always 1; the label says which version runs.",
    labels: &[("version", "the version of the program")],
};

pub(super) static TUNNELS_OPEN: Family = Family {
    name: "catamaran_tunnels_open",
    kind: Kind::Gauge,
    help: "Tunnels open now, such as WebSocket connections.",
    labels: &[],
};

pub(super) static TUNNEL_BYTES: Family = Family {
    name: "catamaran_tunnel_bytes_total",
    kind: Kind::Counter,
    help: "Bytes that went through tunnels.",
    labels: &[("direction", "`from_client` or `to_client`")],
};

pub(super) static FILES_REQUESTS: Family = Family {
    name: "catamaran_files_requests_total",
    kind: Kind::Counter,
    help: "Requests that were for a file, on routes with `files`.",
    labels: &[(
        "result",
        "`hit` if the front remembered the file, `open` if it was opened at once, `thread` if a thread had to wait for the disk, `missing` \
         if there is none that is served, `failed` if it cannot be fetched",
    )],
};

pub(super) static FILES_OPEN: Family = Family {
    name: "catamaran_files_open",
    kind: Kind::Gauge,
    help: "Files that are being sent now.",
    labels: &[],
};

pub(super) static FILES_BYTES: Family = Family {
    name: "catamaran_files_bytes",
    kind: Kind::Gauge,
    help: "Memory that small files and the names of files take, at most `files_memory` in each worker.",
    labels: &[],
};

pub(super) static FILES_THREAD_READS: Family = Family {
    name: "catamaran_files_thread_reads_total",
    kind: Kind::Counter,
    help: "Pieces of files that a thread had to read, because the kernel did not have them in memory.",
    labels: &[],
};

pub(super) static COMPRESSED_RESPONSES: Family = Family {
    name: "catamaran_compressed_responses_total",
    kind: Kind::Counter,
    help: "Responses that the front compressed, on routes with `compress`. One whose coding is kept, beside a \
           file or in a cache, counts each time that it is sent.",
    labels: &[("coding", "`br`, `gzip` or `zstd`")],
};

pub(super) static COMPRESSED_BYTES: Family = Family {
    name: "catamaran_compressed_bytes_total",
    kind: Kind::Counter,
    help: "Bytes of the bodies of such responses.",
    labels: &[("side", "`before` or `after` the compression")],
};

pub(super) static COMPRESS_MEMORY: Family = Family {
    name: "catamaran_compress_memory_bytes",
    kind: Kind::Gauge,
    help: "Memory that responses which are being compressed hold, of at most `compress_memory`. Responses \
           beyond it are counted in `catamaran_reasons_total` as `compress-memory`.",
    labels: &[],
};

pub(super) static CACHE_REQUESTS: Family = Family {
    name: "catamaran_cache_requests_total",
    kind: Kind::Counter,
    help: "Requests on routes with a cache.",
    labels: &[
        CACHE,
        (
            "result",
            "`hit` from memory, `stale` from memory though it was to be fetched anew, `revalidated` after the \
             backend said that it is valid, `miss` from a backend, `collapsed` with what another request had \
             asked for, `bypass` without the cache, `uncacheable` from a backend and not stored",
        ),
    ],
};

pub(super) static CACHE_BYPASS: Family = Family {
    name: "catamaran_cache_bypass_total",
    kind: Kind::Counter,
    help: "Why requests passed a cache by, and why responses were not stored.",
    labels: &[
        CACHE,
        ("reason", "in one word, as `cache_reason` in the access log"),
    ],
};

pub(super) static CACHE_BYTES: Family = Family {
    name: "catamaran_cache_bytes",
    kind: Kind::Gauge,
    help: "Memory that stored responses take.",
    labels: &[CACHE],
};

pub(super) static CACHE_OBJECTS: Family = Family {
    name: "catamaran_cache_objects",
    kind: Kind::Gauge,
    help: "URLs of which a cache knows something.",
    labels: &[CACHE],
};

pub(super) static CACHE_EVICTIONS: Family = Family {
    name: "catamaran_cache_evictions_total",
    kind: Kind::Counter,
    help: "URLs that made room for others.",
    labels: &[CACHE],
};

pub(super) static CACHE_FILLS_OPEN: Family = Family {
    name: "catamaran_cache_fills_open",
    kind: Kind::Gauge,
    help: "Responses that are being fetched now for a cache.",
    labels: &[
        CACHE,
        (
            "age",
            "for how long: `under-10s`, `under-1m`, `under-10m`, `older`",
        ),
    ],
};

pub(super) static CACHE_WAITERS: Family = Family {
    name: "catamaran_cache_waiters",
    kind: Kind::Gauge,
    help: "Requests that wait for, or read, a response that is being fetched.",
    labels: &[CACHE],
};

pub(super) static CACHE_PURGES: Family = Family {
    name: "catamaran_cache_purges_total",
    kind: Kind::Counter,
    help: "Purges.",
    labels: &[CACHE],
};

pub(super) static AUTH_REQUESTS: Family = Family {
    name: "catamaran_auth_requests_total",
    kind: Kind::Counter,
    help: "Requests for which a sign-on was asked.",
    labels: &[
        AUTH,
        (
            "result",
            "`granted`, `denied`, `sign-in` if the client was sent to the page where it can sign on, or `failed` if \
             there was no valid answer, or too many passwords waited",
        ),
    ],
};

pub(super) static AUTH_SECONDS: Family = Family {
    name: "catamaran_auth_seconds",
    kind: Kind::Histogram,
    help: "How long the answers of a sign-on took, or the checks of passwords, failures included.",
    labels: &[AUTH],
};

pub(super) static AUTH_FILES_REFUSED: Family = Family {
    name: "catamaran_auth_files_refused",
    kind: Kind::Gauge,
    help: "Whether the files of a sign-on's users have changed and cannot be used; those read before are then in use.",
    labels: &[AUTH],
};

pub(super) static AUTH_HASHES_WAITING: Family = Family {
    name: "catamaran_auth_hashes_waiting",
    kind: Kind::Gauge,
    help: "Passwords that wait for a thread that hashes them; at most 64.",
    labels: &[],
};

pub(super) static LIMIT_REQUESTS: Family = Family {
    name: "catamaran_limit_requests_total",
    kind: Kind::Counter,
    help: "Requests that a limit was asked about.",
    labels: &[
        LIMIT,
        (
            "result",
            "`passed`, `refused` with 429, or `dry` if the limit would have refused it with `enforce = true`",
        ),
    ],
};

pub(super) static LIMIT_KEYS: Family = Family {
    name: "catamaran_limit_keys",
    kind: Kind::Gauge,
    help: "Keys, such as addresses of clients, that owe something to a limit.",
    labels: &[LIMIT],
};

pub(super) static LIMIT_IN_FLIGHT: Family = Family {
    name: "catamaran_limit_in_flight",
    kind: Kind::Gauge,
    help: "Requests in flight, of limits with `in_flight`.",
    labels: &[LIMIT],
};

pub(super) static LIMIT_EVICTED: Family = Family {
    name: "catamaran_limit_evicted_total",
    kind: Kind::Counter,
    help: "Keys that were forgotten to make room although they owed something to a limit.",
    labels: &[],
};

pub(super) static READY: Family = Family {
    name: "catamaran_ready",
    kind: Kind::Gauge,
    help: "1 while `/readyz` answers 200, else 0.",
    labels: &[],
};

pub(super) static DRAINING: Family = Family {
    name: "catamaran_draining",
    kind: Kind::Gauge,
    help: "1 from the beginning of a drain, else 0.",
    labels: &[],
};

pub(super) static STATE_FILE_FAILS: Family = Family {
    name: "catamaran_state_file_fails",
    kind: Kind::Gauge,
    help: "1 if `state_file` of `[admin]` could not be understood at the start and no change was written \
           since, or cannot be written, else 0.",
    labels: &[],
};

pub(super) static RELOADS: Family = Family {
    name: "catamaran_reloads_total",
    kind: Kind::Counter,
    help: "Reloads, also those that `serve --watch` tries again; a refused one changed nothing.",
    labels: &[("result", "`applied` or `refused`")],
};

pub(super) static CONFIG_GENERATION: Family = Family {
    name: "catamaran_config_generation",
    kind: Kind::Gauge,
    help: "The number of the configuration in force: each reload that is applied, and each change by \
           an operator, makes it greater.",
    labels: &[],
};

pub(super) static LAST_RELOAD_SUCCESSFUL: Family = Family {
    name: "catamaran_config_last_reload_successful",
    kind: Kind::Gauge,
    help: "1 if the last reload was applied, or there was none; 0 if it was refused.",
    labels: &[],
};

pub(super) static LAST_RELOAD: Family = Family {
    name: "catamaran_config_last_reload_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When the last reload was asked for, in Unix time; the start if there was none.",
    labels: &[],
};

pub(super) static LAST_RELOAD_SUCCESS: Family = Family {
    name: "catamaran_config_last_reload_success_timestamp_seconds",
    kind: Kind::Gauge,
    help: "When a reload was applied the last time, in Unix time; the start if none was.",
    labels: &[],
};

pub(super) static CONNECTIONS_ACCEPTED: Family = Family {
    name: "catamaran_connections_accepted_total",
    kind: Kind::Counter,
    help: "Connections of clients that were accepted, those closed at once for a limit included.",
    labels: &[],
};

pub(super) static CONNECTIONS_OPEN: Family = Family {
    name: "catamaran_connections_open",
    kind: Kind::Gauge,
    help: "Connections of clients that are open.",
    labels: &[],
};

pub(super) static CONNECTIONS_MAX: Family = Family {
    name: "catamaran_connections_max",
    kind: Kind::Gauge,
    help: "How many connections of clients may be open: `connections_max`, or less if fewer files may be \
           open.",
    labels: &[],
};

pub(super) static H2_CONNECTIONS_OPEN: Family = Family {
    name: "catamaran_h2_connections_open",
    kind: Kind::Gauge,
    help: "Connections of clients that speak HTTP/2, of those that are open.",
    labels: &[],
};

pub(super) static H2_STREAMS_OPEN: Family = Family {
    name: "catamaran_h2_streams_open",
    kind: Kind::Gauge,
    help: "Requests over HTTP/2 that are under way. One that the client gave up counts until the \
           backend has let go of it.",
    labels: &[],
};

pub(super) static TLS_HANDSHAKES: Family = Family {
    name: "catamaran_tls_handshakes_total",
    kind: Kind::Counter,
    help: "Handshakes of TLS that succeeded; others are among the reasons, as `tls-*`.",
    labels: &[
        ("version", "`TLSv1.2` or `TLSv1.3`"),
        ("resumed", "`yes` if a session was resumed, else `no`"),
    ],
};

pub(super) static TLS_HANDSHAKES_OPEN: Family = Family {
    name: "catamaran_tls_handshakes_open",
    kind: Kind::Gauge,
    help: "Handshakes of TLS that are under way.",
    labels: &[],
};

pub(super) static TLS_CERTIFICATE_RELOADS: Family = Family {
    name: "catamaran_tls_certificate_reloads_total",
    kind: Kind::Counter,
    help: "Changes of files of a TLS profile; after a refused one the previous files stay in force.",
    labels: &[("result", "`applied` or `refused`")],
};

pub(super) static TLS_CERTIFICATE_REFUSED: Family = Family {
    name: "catamaran_tls_certificate_refused",
    kind: Kind::Gauge,
    help: "1 while changed files of a TLS profile cannot be used and the previous ones stay in force, else 0.",
    labels: &[("profile", "the name of the TLS profile")],
};

pub(super) static UPSTREAM_READY: Family = Family {
    name: "catamaran_upstream_ready",
    kind: Kind::Gauge,
    help: "1 while an upstream accepts new clients, 0 while each of its backends is out, drained or \
           stopped.",
    labels: &[UPSTREAM],
};

pub(super) static SERVED_SINCE: Family = Family {
    name: "catamaran_served_since_seconds",
    kind: Kind::Gauge,
    help: "When the front was started, in Unix time. An upgrade keeps it, although its process is a new \
           one; a restart does not.",
    labels: &[],
};

pub(super) static TLS_CERTIFICATE_NOT_AFTER: Family = Family {
    name: "catamaran_tls_certificate_not_after_seconds",
    kind: Kind::Gauge,
    help: "The end of a certificate's validity, in Unix time.",
    labels: &[
        ("profile", "the name of the TLS profile"),
        ("name", "the certificate's first name"),
        ("key", "the type of its key"),
    ],
};

const PROFILE: (&str, &str) = ("profile", "the name of the TLS profile");
const ISSUED_NAME: (&str, &str) = ("name", "the DNS name of the certificate");

pub(super) static ACME_ATTEMPTS: Family = Family {
    name: "catamaran_acme_attempts_total",
    kind: Kind::Counter,
    help: "Attempts of this process to get a certificate by ACME.",
    labels: &[PROFILE, ISSUED_NAME, ("result", "`issued` or `failed`")],
};

pub(super) static ACME_FAILURES: Family = Family {
    name: "catamaran_acme_failures",
    kind: Kind::Gauge,
    help: "Attempts to get a certificate that failed in a row, those of earlier processes too.",
    labels: &[PROFILE, ISSUED_NAME],
};

pub(super) static ACME_NEXT_ATTEMPT: Family = Family {
    name: "catamaran_acme_next_attempt_seconds",
    kind: Kind::Gauge,
    help: "When the next attempt to get a certificate begins, in Unix time: its renewal, or the end of the \
           pause after a failure.",
    labels: &[PROFILE, ISSUED_NAME],
};

pub(super) static ACME_UNSTORED: Family = Family {
    name: "catamaran_acme_unstored",
    kind: Kind::Gauge,
    help: "1 if the certificate of a name, or its state, is in memory alone, because `state_dir` cannot be written.",
    labels: &[PROFILE, ISSUED_NAME],
};

pub(super) static REQUESTS: Family = Family {
    name: "catamaran_requests_total",
    kind: Kind::Counter,
    help: "Requests whose head was understood.",
    labels: &[],
};

pub(super) static RESPONSES: Family = Family {
    name: "catamaran_responses_total",
    kind: Kind::Counter,
    help: "Exchanges that ended, by the status that the client was sent.",
    labels: &[(
        "class",
        "`1xx` to `5xx`, or `none` where the client was sent no head",
    )],
};

pub(super) static RETRIES: Family = Family {
    name: "catamaran_retries_total",
    kind: Kind::Counter,
    help: "Attempts after a first failed one.",
    labels: &[],
};

pub(super) static STICKY: Family = Family {
    name: "catamaran_sticky_requests_total",
    kind: Kind::Counter,
    help: "Requests to upstreams with `sticky`, by what became of their sessions.",
    labels: &[(
        "outcome",
        "`kept`: served by the backend of the session; `moved`: that one was out or failed; \
         `unknown`: no backend has the route; `new`: no session id; `ignored`: a session id without \
         a route",
    )],
};

pub(super) static REASONS: Family = Family {
    name: "catamaran_reasons_total",
    kind: Kind::Counter,
    help: "Refusals and failures, by the reason that the access log gives; \
           those that a retry made good are included.",
    labels: &[
        ("culprit", "`client`, `backend` or `front`"),
        (
            "reason",
            "one word, such as `bare-lf`, `connect-failed` or `retry-budget`; only those that occurred",
        ),
    ],
};

pub(super) static LOG_LINES_DROPPED: Family = Family {
    name: "catamaran_access_log_lines_dropped_total",
    kind: Kind::Counter,
    help: "Lines of the access log that were dropped because writing did not keep up.",
    labels: &[],
};

pub(super) static LOG_LINES_LOST: Family = Family {
    name: "catamaran_access_log_lines_lost_total",
    kind: Kind::Counter,
    help: "Lines of the access log that could not be written, such as to a full disk, counted by their \
           ends.",
    labels: &[],
};

pub(super) static OWN_LOG_LINES_DROPPED: Family = Family {
    name: "catamaran_own_log_lines_dropped_total",
    kind: Kind::Counter,
    help: "Lines of the front's own log, on standard error, that were dropped because nobody read them in \
           time.",
    labels: &[],
};

pub(super) static OWN_LOG_LINES_LOST: Family = Family {
    name: "catamaran_own_log_lines_lost_total",
    kind: Kind::Counter,
    help: "Lines of the front's own log that could not be written, such as to a full disk, or to a pipe \
           whose reader has left.",
    labels: &[],
};

pub(super) static TRACE_SPANS: Family = Family {
    name: "catamaran_trace_spans_total",
    kind: Kind::Counter,
    help: "Spans of recorded traces (`[trace]`), by what became of them.",
    labels: &[(
        "result",
        "`sent`: the collector took it; `dropped`: too many waited; `lost`: the collector could not be reached, or \
         answered again and again that it is busy; `refused`: it answered that it does not want it",
    )],
};

pub(super) static UPSTREAM_PANIC: Family = Family {
    name: "catamaran_upstream_panic",
    kind: Kind::Gauge,
    help: "1 while more than `unwell_max` of the upstream's weight is unwell or cannot be connected to, \
           so that backends that are unwell serve where no other can; else 0.",
    labels: &[UPSTREAM],
};

pub(super) static UPSTREAM_HELD: Family = Family {
    name: "catamaran_upstream_held_requests",
    kind: Kind::Gauge,
    help: "Requests that wait now because no backend takes new sessions, for upstreams with `hold`.",
    labels: &[UPSTREAM],
};

pub(super) static UPSTREAM_HOLD: Family = Family {
    name: "catamaran_upstream_hold_seconds",
    kind: Kind::Histogram,
    help: "How long requests waited for a first backend that takes new sessions, for upstreams with `hold`; \
           including those that waited in vain.",
    labels: &[UPSTREAM],
};

/// The metrics of the process's resources, under the names that all client libraries of Prometheus
/// use.
pub(super) static OF_PROCESS: [&Family; 7] = [
    &PROCESS_CPU,
    &PROCESS_RESIDENT,
    &PROCESS_VIRTUAL,
    &PROCESS_OPEN_FDS,
    &PROCESS_MAX_FDS,
    &PROCESS_START,
    &PROCESS_THREADS,
];

pub(super) static PROCESS_CPU: Family = Family {
    name: "process_cpu_seconds_total",
    kind: Kind::Counter,
    help: "CPU time of the process, in and outside the kernel.",
    labels: &[],
};

pub(super) static PROCESS_RESIDENT: Family = Family {
    name: "process_resident_memory_bytes",
    kind: Kind::Gauge,
    help: "Resident memory.",
    labels: &[],
};

pub(super) static PROCESS_VIRTUAL: Family = Family {
    name: "process_virtual_memory_bytes",
    kind: Kind::Gauge,
    help: "Address space.",
    labels: &[],
};

pub(super) static PROCESS_OPEN_FDS: Family = Family {
    name: "process_open_fds",
    kind: Kind::Gauge,
    help: "Files that are open, connections included.",
    labels: &[],
};

pub(super) static PROCESS_MAX_FDS: Family = Family {
    name: "process_max_fds",
    kind: Kind::Gauge,
    help: "How many files may be open; connections beyond are not accepted.",
    labels: &[],
};

pub(super) static PROCESS_START: Family = Family {
    name: "process_start_time_seconds",
    kind: Kind::Gauge,
    help: "When the process began, in Unix time.",
    labels: &[],
};

pub(super) static PROCESS_THREADS: Family = Family {
    name: "process_threads",
    kind: Kind::Gauge,
    help: "Threads of the process.",
    labels: &[],
};
