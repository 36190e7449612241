//! The keys of `[[route]]` about compressing responses.

use catamaran_proxy::config::{Coding, CompressConfig, MediaPattern};
use thiserror::Error;

use super::rules::ServedBy;
use crate::fill;
use crate::key::{ALL, Group, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::{Choices, OneOrMore, Sizes, Syntax};

/// Reads the keys; `None` if the route compresses nothing. Reports `compress` on routes that only have the front's own
/// answers, and Brotli without files or a cache.
pub(super) fn read(table: &mut Table<'_>, served_by: ServedBy) -> Option<CompressConfig> {
    if table.written(KEYS, |_| true).is_empty() {
        return None;
    }
    let mut compress = CompressConfig::new(Vec::new());
    table.read(KEYS, &mut compress);
    let place = table.place_of("compress");
    if !table.has("compress") {
        for (name, place) in table.written(KEYS, |group| group == OF_COMPRESS) {
            let message = format!("`{name}` has no use without `compress`");
            let hint = "write compress = [\"zstd\", \"gzip\"], or remove it";
            table.push(Finding::fault(message, place).hint(hint));
        }
    } else if !served_by.upstream && !served_by.files {
        let message = "`compress` has no use without `upstream` or `files`";
        table.push(Finding::fault(message, place).hint("remove it"));
    } else if table.is_empty_list("compress_types") {
        let message = "`compress_types` is an empty list, so that nothing would be compressed";
        let finding = Finding::fault(message, table.place_of("compress_types"));
        table.push(finding.hint("remove `compress`, or name a type"));
    } else if compress.codings.contains(&Coding::Brotli) && !served_by.files && !table.has("cache")
    {
        let message = "\"br\" in `compress` has no use without `cache` or `files`: bodies that stream are never \
                       put into it";
        let hint = "name a `cache`, or remove \"br\"";
        table.push(Finding::warning(message, place).hint(hint));
    }
    (!compress.codings.is_empty()).then_some(compress)
}

/// Why a text is not a value of a key about compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
enum CompressError {
    /// The text is not a media type.
    #[error("must be a type and a subtype with a slash between them; the subtype may have one `*`")]
    MediaType,
}

fn parse_pattern(text: &str) -> Result<MediaPattern, CompressError> {
    MediaPattern::parse(text).ok_or(CompressError::MediaType)
}

/// Keys that have no use without `compress`.
const OF_COMPRESS: Group = Group("compress");

pub(super) static KEYS: &[Key<CompressConfig>] = &[
    Key {
        name: "compress",
        group: ALL,
        value: fill!(
            OneOrMore(Choices(&[
                ("br", Coding::Brotli),
                ("zstd", Coding::Zstd),
                ("gzip", Coding::Gzip),
            ])),
            CompressConfig.codings
        ),
        preset: Preset::Unset("responses are sent as they come"),
        sample: "[\"zstd\", \"gzip\"]",
        effect: "The codings in which responses are compressed, of an upstream or of files: the client gets \
                 the one that it weighs most, of equals the first of this list. What was compressed is sent \
                 on whenever the application flushes or pauses, so that event streams work. What is made of \
                 a small file, or of a page in a cache, is kept; this alone is put into Brotli (`\"br\"`). For bodies that \
                 stream, and until the one in Brotli is made, the next coding of the list that the client takes \
                 is used. The response loses `Content-Length` (unless what was made is kept) and \
                 `Accept-Ranges`, its `ETag` becomes weak, and `Vary` gets `Accept-Encoding`. \
                 [files.md](files.md#compression) has figures.",
        extremes: "A page that holds a secret, such as a CSRF token, and also text of the request can leak the \
                   secret by its compressed length (BREACH): leave such routes out, or mask the secret anew \
                   in each page, as Spring Security 6 and Rails do. Never compressed are 206 and 304, what has \
                   `Content-Encoding` or a digest, `no-transform`, clients of HTTP/1.0, tunnels, and the \
                   front's own pages. With `\"br\"` alone, bodies that stream are sent as they \
                   are.",
        elsewhere: "nginx `gzip`; httpd `mod_deflate`; Tomcat `compression`",
    },
    Key {
        name: "compress_types",
        group: OF_COMPRESS,
        value: fill!(
            OneOrMore(Syntax {
                what: "a media type such as \"text/html\", or a pattern such as \"text/*\"",
                parse: parse_pattern,
            }),
            CompressConfig.types
        ),
        preset: Preset::Value(
            "[\"text/*\", \"application/javascript\", \"application/json\", \"application/*+json\", \
             \"application/xml\", \"application/*+xml\", \"application/xml-dtd\", \"application/yaml\", \
             \"application/vnd.apple.mpegurl\", \"application/wasm\", \"image/svg+xml\", \"font/ttf\", \
             \"font/otf\"]",
        ),
        sample: "[\"text/html\", \"application/json\"]",
        effect: "The media types of responses that are compressed, without parameters. `*` stands for any \
                 characters of the subtype.",
        extremes: "Images, video and archives are compressed already: to do it again costs time and gains \
                   nothing.",
        elsewhere: "nginx `gzip_types`; httpd `AddOutputFilterByType`; Tomcat `compressibleMimeType`",
    },
    Key {
        name: "compress_min",
        group: OF_COMPRESS,
        value: fill!(Sizes(0..=1 << 30), CompressConfig.min),
        preset: Preset::Value("\"1KiB\""),
        sample: "\"4KiB\"",
        effect: "A response that announces fewer bytes is not compressed. One that announces no length is.",
        extremes: "Too low, and small responses become no shorter and cost more time.",
        elsewhere: "nginx `gzip_min_length`; Tomcat `compressionMinSize`",
    },
];
