//! The keys of `[[listen]]` that limit heads and chunked framing.

use catamaran_proxy::config::Limits;

use super::RawListen;
use crate::fill;
use crate::key::{ALL, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::{Counts, Sizes};

/// Warns of limits that have no effect, because another limit is reached first.
pub(super) fn check(table: &mut Table<'_>, limits: &Limits) {
    for (name, bytes) in [
        ("target_max", limits.target_bytes),
        ("line_max", limits.line_bytes),
    ] {
        if table.has(name) && bytes > limits.head_bytes {
            let message = format!("`{name}` is larger than `head_max`");
            let hint = "a head over `head_max` is refused first; raise that one too";
            table.push(Finding::warning(message, table.place_of(name)).hint(hint));
        }
    }
}

pub(super) static KEYS: &[Key<RawListen>] = &[
    Key {
        name: "head_max",
        group: ALL,
        value: fill!(
            Sizes(1 << 10..=1 << 20),
            RawListen.listener.limits.head_bytes
        ),
        preset: Preset::Value("\"32KiB\""),
        sample: "\"16KiB\"",
        effect: "The largest head of a request, from request line to empty line; a larger one is \
                 answered 431. Towards an AJP backend a head must also fit one packet: see \
                 `packet_size`.",
        extremes: "Too low refuses requests with many cookies. Each connection that is sending a \
                   head may take this much memory.",
        elsewhere: "nginx `large_client_header_buffers`; Tomcat `maxHttpRequestHeaderSize`",
    },
    Key {
        name: "target_max",
        group: ALL,
        value: fill!(Sizes(64..=1 << 20), RawListen.listener.limits.target_bytes),
        preset: Preset::Value("\"8KiB\""),
        sample: "\"4KiB\"",
        effect: "The longest path with its query; a longer one is answered 414.",
        extremes: "Too low refuses long searches and redirects that carry a whole address.",
        elsewhere: "httpd `LimitRequestLine`",
    },
    Key {
        name: "line_max",
        group: ALL,
        value: fill!(Sizes(64..=1 << 20), RawListen.listener.limits.line_bytes),
        preset: Preset::Value("\"8KiB\""),
        sample: "\"4KiB\"",
        effect: "The longest single field of a head; a longer one is answered 431.",
        extremes: "Too low refuses large cookies and tokens.",
        elsewhere: "httpd `LimitRequestFieldSize`",
    },
    Key {
        name: "fields_max",
        group: ALL,
        value: fill!(Counts(1..=1000), RawListen.listener.limits.fields),
        preset: Preset::Value("94"),
        sample: "50",
        effect: "How many fields a head may have; more are answered 431. The front adds up to six: \
                 `Via`, the request's id, and for HTTP `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`.",
        extremes: "Above the container's own limit (Tomcat: 100), less six, the container refuses \
                   instead.",
        elsewhere: "httpd `LimitRequestFields`; Tomcat `maxHeaderCount`",
    },
    Key {
        name: "trailer_max",
        group: ALL,
        value: fill!(Sizes(0..=1 << 20), RawListen.listener.limits.trailer_bytes),
        preset: Preset::Value("\"8KiB\""),
        sample: "\"1KiB\"",
        effect: "How many bytes of trailer fields a chunked body may end with. They are read and \
                 dropped.",
        extremes: "0 refuses every trailer.",
        elsewhere: "Tomcat `maxTrailerSize`",
    },
    Key {
        name: "chunk_extensions_max",
        group: ALL,
        value: fill!(
            Sizes(0..=1 << 20),
            RawListen.listener.limits.chunk_extension_bytes
        ),
        preset: Preset::Value("\"8KiB\""),
        sample: "\"1KiB\"",
        effect: "How many bytes of chunk extensions a whole body may carry. They mean nothing to \
                 anybody and are dropped.",
        extremes: "Without a limit, a body of nothing but extensions would be endless work.",
        elsewhere: "Tomcat `maxExtensionSize`",
    },
];
