//! The reasons why the front answers some requests in another way than nginx or httpd.

/// The reason for the case with this name; `None` if there is none.
pub(crate) fn of(name: &str) -> Option<&'static str> {
    let mut all = REASONS.iter();
    let found = all.find(|(names, _)| names.contains(&name));
    found.map(|(_, reason)| *reason)
}

const REASONS: &[(&[&str], &str)] = &[
    (
        &["post"],
        "A 405 must name the methods (RFC 9110, section 15.5.6). httpd answers a POST with the file.",
    ),
    (&["delete"], "A 405 must name the methods (section 15.5.6)."),
    (&["options"], "There is no body, so 204."),
    (
        &["inm-comma"],
        "A comma within the quotes belongs to the tag.",
    ),
    (
        &["inm-lines"],
        "Lines of one field are one list (section 5.3); nginx refuses the second.",
    ),
    (
        &["ims-later"],
        "A file that is older than the date has not changed since; nginx wants the very date (`if_modified_since`).",
    ),
    (
        &["ims-not-gmt"],
        "A date that is not in GMT is none, and is ignored (section 13.1.3).",
    ),
    (
        &["inm-over-old-ims"],
        "`If-None-Match` decides, and `If-Modified-Since` is ignored beside it (section 13.2.2).",
    ),
    (
        &["im-over-ius"],
        "`If-Match` decides, and `If-Unmodified-Since` is ignored beside it (section 13.2.2).",
    ),
    (
        &["r-beyond", "r-none-of-two"],
        "A 416 says how long the file is (section 15.5.17).",
    ),
    (
        &["r-zero-suffix"],
        "A suffix of no bytes cannot be satisfied (section 14.1.2).",
    ),
    (
        &["r-backward", "r-text"],
        "An invalid range is ignored, as section 14.2 recommends; nginx calls it unsatisfiable.",
    ),
    (
        &["r-overflow"],
        "The last byte may be beyond the end, however far (section 14.1.2).",
    ),
    (
        &["r-space"],
        "White space around the comma is allowed in lists (section 5.6.1).",
    ),
    (
        &["r-overlap", "r-thousand"],
        "Overlapping ranges, and more than 16, cost more than the whole file (section 17.15), so that is sent.",
    ),
    (
        &["r-head"],
        "Ranges are defined for GET alone (section 14.2).",
    ),
    (
        &["r-two", "r-one-of-two", "r-descending"],
        "One part is sent as such, several in the order in which they were asked for.",
    ),
    (
        &["c-none"],
        "The response depends on the field, also when there is none.",
    ),
    (&["c-star"], "`*` stands for every coding (section 12.5.3)."),
    (
        &["c-br-gzip"],
        "The preferred coding of `precompressed` is sent; Debian's nginx has no Brotli.",
    ),
    (
        &["c-br-refused", "c-gzip-refused"],
        "A coding of weight 0 is refused; httpd's rules look for its name alone.",
    ),
    (
        &["c-q-order"],
        "The coding that the client weighs most is sent; httpd's rules know no weights.",
    ),
    (
        &["c-star-refused", "c-case", "c-x-gzip"],
        "Names of codings have no case, and `x-gzip` is gzip (section 8.4.1.3).",
    ),
    (
        &["c-part-of-name"],
        "`brx` is not `br`; httpd's rules look for the letters.",
    ),
    (
        &["c-identity-refused"],
        "What the client does not want is better than nothing, and the response depends on the field.",
    ),
    (&["c-only-gz"], "The coding that exists is sent."),
    (
        &["c-no-file"],
        "Without the plain file there is none: a build may have left the compressed one behind.",
    ),
    (
        &[
            "c-range",
            "c-if-range-cross",
            "c-inm",
            "c-inm-cross",
            "c-gzip",
        ],
        "Each coding has a tag and ranges of its own, and all responses say `Vary`.",
    ),
    (
        &["c-direct"],
        "Asked for by its own name, the compressed file is a file like others.",
    ),
    (
        &["p-dir", "p-dir-query"],
        "308 keeps the method. A redirect by path keeps scheme, host and port right behind other proxies.",
    ),
    (
        &["p-dir-slashes"],
        "Slashes are merged, and the redirect begins with one: `//dir2/` would lead to the host `dir2`.",
    ),
    (
        &["p-dir-no-index"],
        "Whether a directory exists is not told.",
    ),
    (
        &["p-dot", "p-dot-below"],
        "Dotfiles are hidden: `.git`, `.env`, `.htpasswd`.",
    ),
    (
        &["p-link-out", "p-link-abs", "p-dir-out"],
        "Links that lead outside are not followed unless `links` says so.",
    ),
    (&["p-loop", "p-long"], "There is no such file."),
    (
        &["p-fifo"],
        "Only regular files are served. httpd opens the FIFO and waits for its writer.",
    ),
    (
        &["p-up", "p-up-escaped", "p-up-slash", "p-backslash"],
        "A path that leaves its directory by a hidden segment is refused for every route, with files or not.",
    ),
    (&["p-nul"], "No path has a NUL."),
    (
        &["p-escaped-slash"],
        "A name has no slash. Containers differ about an escaped one, so it names nothing.",
    ),
    (&["p-file-slash", "p-below-file"], "A file is no directory."),
    (
        &["t-page.html", "t-app.js", "t-x.txt"],
        "Texts have a `charset`: UTF-8 unless the route says otherwise.",
    ),
    (
        &["t-x.mjs"],
        "It is JavaScript, or browsers do not run it (RFC 9239).",
    ),
    (
        &[
            "t-x.webmanifest",
            "t-x.woff2",
            "t-x.avif",
            "t-x.wasm",
            "t-x.svg",
            "t-x.json",
        ],
        "The types that are registered.",
    ),
    (
        &["t-x.xml"],
        "`text/xml` with a charset would overrule the one that the file declares (RFC 7303).",
    ),
    (
        &["t-noext", "t-x.unknownext"],
        "What nobody knows is bytes; without a type browsers guess, and may run it.",
    ),
];
