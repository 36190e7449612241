//! Checks whether a response has the type that the extension in its path suggests.
//!
//! An attacker makes a victim request `/account/x.css`; an application that treats it as `/account` answers
//! with the victim's page, and a cache that trusts the extension stores it for all (web cache deception). So a
//! response is not stored if its path looks like a file of one type and its `Content-Type` is another.

/// Whether a response with this `Content-Type` may belong to this path. Only extensions of style sheets,
/// scripts, images and fonts are checked.
#[must_use]
pub fn fits(path: &[u8], content_type: Option<&[u8]>) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let Some(dot) = name.iter().rposition(|byte| *byte == b'.') else {
        return true;
    };
    let extension = name[dot + 1..].to_ascii_lowercase();
    let mut known = EXTENSIONS.iter();
    let Some((_, beginnings)) = known.find(|(names, _)| names.contains(&&extension[..])) else {
        return true;
    };
    let value = content_type.unwrap_or_default();
    let media_type = value.split(|byte| *byte == b';').next().unwrap_or_default();
    let lower = media_type.trim_ascii().to_ascii_lowercase();
    beginnings.iter().any(|text| lower.starts_with(text))
}

type ExtensionTypes = (&'static [&'static [u8]], &'static [&'static [u8]]);

/// Extensions of paths, each with the beginnings of the media types that a response for it may have.
const EXTENSIONS: &[ExtensionTypes] = &[
    (&[b"css"], &[b"text/css"]),
    (
        &[b"js", b"mjs"],
        &[
            b"text/javascript",
            b"application/javascript",
            b"application/x-javascript",
            b"text/ecmascript",
            b"application/ecmascript",
        ],
    ),
    (
        &[
            b"png", b"jpg", b"jpeg", b"gif", b"webp", b"avif", b"ico", b"bmp", b"svg", b"tif",
            b"tiff",
        ],
        &[b"image/"],
    ),
    (
        &[b"woff", b"woff2", b"ttf", b"otf", b"eot"],
        &[
            b"font/",
            b"application/font",
            b"application/x-font",
            b"application/vnd.ms-fontobject",
            b"application/octet-stream",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_no_style_sheet() {
        for (path, given, expected) in [
            ("/a.css", Some("text/css; charset=utf-8"), true),
            ("/a.css", Some("text/html"), false),
            ("/a.CSS", Some("text/html"), false),
            ("/a.css", None, false),
            ("/a.js", Some("Application/JavaScript"), true),
            ("/a.js", Some("application/json"), false),
            ("/a/b.PNG", Some("image/webp"), true),
            ("/a/b.png", Some("text/html"), false),
            ("/f.woff2", Some("font/woff2"), true),
            ("/account", Some("text/html"), true),
            ("/a.css/account", Some("text/html"), true),
            ("/a.html", Some("text/plain"), true),
            ("/.css", Some("text/html"), false),
        ] {
            let given = given.map(str::as_bytes);
            assert_eq!(fits(path.as_bytes(), given), expected, "{path} {given:?}");
        }
    }
}
