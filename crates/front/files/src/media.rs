//! Media types by extension, and extensions of compressed files.

use bytes::Bytes;
use catamaran_coding::Coding;
use http::HeaderValue;

use crate::config::FilesConfig;

/// The value of `Content-Type` for a file with this name.
pub(crate) fn media_type(name: &[u8], config: &FilesConfig) -> HeaderValue {
    let unknown = HeaderValue::from_static(UNKNOWN);
    let Some(extension) = extension(name).map(str::to_ascii_lowercase) else {
        return unknown;
    };
    if let Some(configured) = config.types.get(&extension) {
        return configured.clone();
    }
    let Some(built_in) = built_in(&extension) else {
        return unknown;
    };
    match &config.charset {
        Some(charset) if built_in.starts_with("text/") => {
            let text = Bytes::from(format!("{built_in}; charset={charset}"));
            HeaderValue::from_maybe_shared(text).unwrap_or(unknown)
        }
        _ => HeaderValue::from_static(built_in),
    }
}

/// The text after the last dot of the last segment of a name; `None` if there is none.
fn extension(name: &[u8]) -> Option<&str> {
    let last = name.rsplit(|&byte| byte == b'/').next()?;
    let dot = last.iter().rposition(|&byte| byte == b'.')?;
    let extension = std::str::from_utf8(&last[dot + 1..]).ok()?;
    // The dot of `.profile` begins no extension.
    (dot > 0 && !extension.is_empty()).then_some(extension)
}

/// The coding of a file's bytes according to its name: gzip for `.svgz` (SVG 1.1), else `None`, also for `.gz`. It is
/// sent as Content-Encoding, and no precompressed sibling of the file is looked for.
pub(crate) fn own_coding(name: &[u8]) -> Option<Coding> {
    let is_svgz = extension(name)?.eq_ignore_ascii_case("svgz");
    is_svgz.then_some(Coding::Gzip)
}

/// Whether files with this extension are compressed, whatever media type they have.
pub(crate) fn is_compressed(name: &[u8]) -> bool {
    let Some(extension) = extension(name) else {
        return false;
    };
    let mut compressed = COMPRESSED.iter();
    compressed.any(|known| known.eq_ignore_ascii_case(extension))
}

/// The built-in type of an extension: first from our own table, then from `mime_guess`; `None`: it is unknown.
fn built_in(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "mjs" | "cjs" => "text/javascript",
        // A source map, which is JSON.
        "map" => "application/json",
        "jar" | "war" | "ear" => "application/java-archive",
        "ts" | "mts" | "m2ts" => "video/mp2t",
        "m3u8" => "application/vnd.apple.mpegurl",
        "m4s" => "video/iso.segment",
        "m4v" => "video/mp4",
        "m4a" => "audio/mp4",
        "otf" => "font/otf",
        "woff" => "font/woff",
        "tgz" => "application/gzip",
        "zst" => "application/zstd",
        "yaml" | "yml" => "application/yaml",
        "dtd" => "application/xml-dtd",
        // Not the type of an old media player, which `mime_guess` gives.
        "rpm" => UNKNOWN,
        other => match mime_guess::from_ext(other).first_raw()? {
            // With `text/xml`, a charset in the field would overrule the one that the file declares (RFC 7303, section
            // 3).
            "text/xml" => "application/xml",
            known => known,
        },
    })
}

/// The media type of files with an unknown extension.
const UNKNOWN: &str = "application/octet-stream";

/// Extensions of compressed files, which might be given the media type of a text.
const COMPRESSED: [&str; 10] = [
    "svgz", "gz", "tgz", "br", "bz2", "xz", "zst", "zip", "woff", "woff2",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_have_the_types_of_the_web() {
        let mut config = FilesConfig::new("/srv");
        let own = HeaderValue::from_static("application/own");
        config.types.insert("own".to_owned(), own);
        for (name, expected) in [
            ("page.html", "text/html; charset=utf-8"),
            ("a/B.HTML", "text/html; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("x.mjs", "text/javascript; charset=utf-8"),
            ("x.css", "text/css; charset=utf-8"),
            ("x.wasm", "application/wasm"),
            ("x.woff2", "font/woff2"),
            ("x.svg", "image/svg+xml"),
            ("x.json", "application/json"),
            ("x.js.map", "application/json"),
            ("x.webmanifest", "application/manifest+json"),
            ("x.xml", "application/xml"),
            ("x.txt", "text/plain; charset=utf-8"),
            ("x.avif", "image/avif"),
            ("x.webp", "image/webp"),
            ("x.mp4", "video/mp4"),
            ("x.pdf", "application/pdf"),
            ("x.gz", "application/gzip"),
            ("x.ts", "video/mp2t"),
            ("x.m2ts", "video/mp2t"),
            ("x.m3u8", "application/vnd.apple.mpegurl"),
            ("x.mpd", "application/dash+xml"),
            ("x.m4s", "video/iso.segment"),
            ("x.m4a", "audio/mp4"),
            ("x.rpm", UNKNOWN),
            ("x.tgz", "application/gzip"),
            ("x.yaml", "application/yaml"),
            ("x.otf", "font/otf"),
            ("x.woff", "font/woff"),
            ("x.zst", "application/zstd"),
            ("x.xsd", "application/xml"),
            ("x.wsdl", "application/xml"),
            ("x.xslt", "application/xml"),
            ("x.dtd", "application/xml-dtd"),
            ("x.svgz", "image/svg+xml"),
            ("x.own", "application/own"),
            ("x.OWN", "application/own"),
            ("noext", UNKNOWN),
            ("a.b/noext", UNKNOWN),
            ("x.", UNKNOWN),
            (".html", UNKNOWN),
            ("x.unknownext", UNKNOWN),
        ] {
            assert_eq!(media_type(name.as_bytes(), &config), expected, "{name}");
        }
        config.charset = None;
        assert_eq!(media_type(b"x.txt", &config), "text/plain");
    }
}
