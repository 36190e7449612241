//! 126 requests of published comparisons: conditions, ranges, codings, paths, types. What nginx and httpd answer is
//! in docs/files-answers.md.

use super::{FileBody as Body, FileCase as Case};

const fn case(
    name: &'static str,
    fields: &'static [(&'static str, &'static str)],
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    body: Body,
) -> Case {
    Case {
        name,
        method: "GET",
        path: "/page.html",
        fields,
        status,
        headers,
        body,
    }
}

/// `case` with another method and path.
const fn of(method: &'static str, path: &'static str, case: Case) -> Case {
    Case {
        method,
        path,
        ..case
    }
}

/// The whole file is sent: 200.
const fn full(name: &'static str, fields: &'static [(&'static str, &'static str)]) -> Case {
    case(name, fields, 200, IS_200, WHOLE)
}

/// The client's copy is current: 304.
const fn known(name: &'static str, fields: &'static [(&'static str, &'static str)]) -> Case {
    case(name, fields, 304, IS_304, Body::Nothing)
}

/// A condition of the request is false: 412.
const fn failed(name: &'static str, fields: &'static [(&'static str, &'static str)]) -> Case {
    case(name, fields, 412, &[("etag", "")], Body::Page)
}

/// The bytes from `from` to before `to` are sent: 206.
const fn part(
    name: &'static str,
    fields: &'static [(&'static str, &'static str)],
    range: &'static [(&'static str, &'static str)],
    from: usize,
    to: usize,
) -> Case {
    case(name, fields, 206, range, Body::Bytes(from, to))
}

/// The range begins behind the end of the file: 416.
const fn beyond(name: &'static str, fields: &'static [(&'static str, &'static str)]) -> Case {
    case(
        name,
        fields,
        416,
        &[("content-range", "bytes */1456")],
        Body::Page,
    )
}

/// A request without further fields, for the rules on paths.
const fn path(name: &'static str, path: &'static str, status: u16, body: Body) -> Case {
    of("GET", path, case(name, &[], status, &[], body))
}

/// The media type of a file, whose first five bytes are its content.
const fn media(
    name: &'static str,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
) -> Case {
    of(
        "GET",
        path,
        case(name, &[], 200, headers, Body::Bytes(0, 5)),
    )
}

/// A file that has variants with a content coding; `len` is the length of the one that is sent.
const fn coded(
    name: &'static str,
    path: &'static str,
    fields: &'static [(&'static str, &'static str)],
    headers: &'static [(&'static str, &'static str)],
    len: usize,
) -> Case {
    of(
        "GET",
        path,
        case(name, fields, 200, headers, Body::Bytes(0, len)),
    )
}

const WHOLE: Body = Body::Bytes(0, 1456);

const IS_200: &[(&str, &str)] = &[
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", "1456"),
];

const IS_304: &[(&str, &str)] = &[("etag", "\""), ("content-type", "")];

const PLAIN: &[(&str, &str)] = &[("content-encoding", ""), ("vary", "Accept-Encoding")];

const GZIP: &[(&str, &str)] = &[
    ("content-encoding", "gzip"),
    ("vary", "Accept-Encoding"),
    ("content-type", "text/javascript; charset=utf-8"),
];

const BROTLI: &[(&str, &str)] = &[("content-encoding", "br"), ("vary", "Accept-Encoding")];

const LATER: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

const EARLIER: &str = "Thu, 01 Jan 2004 00:00:00 GMT";

/// All cases.
pub(super) const CASES: &[Case] = &[
    case(
        "get",
        &[],
        200,
        &[
            ("etag", "\""),
            ("last-modified", "Tue, 14 Nov 2023 22:13:20 GMT"),
            ("accept-ranges", "bytes"),
            ("vary", ""),
            ("cache-control", ""),
        ],
        WHOLE,
    ),
    of(
        "HEAD",
        "/page.html",
        case("head", &[], 200, IS_200, Body::Nothing),
    ),
    of(
        "GET",
        "/empty.txt",
        case(
            "get-empty",
            &[],
            200,
            &[("content-length", "0")],
            Body::Nothing,
        ),
    ),
    of(
        "POST",
        "/page.html",
        case(
            "post",
            &[],
            405,
            &[("allow", "GET, HEAD, OPTIONS")],
            Body::Page,
        ),
    ),
    of(
        "DELETE",
        "/page.html",
        case(
            "delete",
            &[],
            405,
            &[("allow", "GET, HEAD, OPTIONS")],
            Body::Page,
        ),
    ),
    of(
        "OPTIONS",
        "/page.html",
        case(
            "options",
            &[],
            204,
            &[("allow", "GET, HEAD, OPTIONS")],
            Body::Nothing,
        ),
    ),
    of("GET", "/page.html?a=b", full("query", &[])),
    known("inm-same", &[("if-none-match", "{etag}")]),
    known("inm-weak", &[("if-none-match", "W/{etag}")]),
    known("inm-list", &[("if-none-match", "\"a\", {etag}, \"b\"")]),
    known("inm-comma", &[("if-none-match", "\"a,b\", {etag}")]),
    known(
        "inm-lines",
        &[("if-none-match", "\"a\""), ("if-none-match", "{etag}")],
    ),
    known("inm-star", &[("if-none-match", "*")]),
    full("inm-other", &[("if-none-match", "\"a\"")]),
    full("inm-bare", &[("if-none-match", "a")]),
    of(
        "HEAD",
        "/page.html",
        known("inm-head", &[("if-none-match", "{etag}")]),
    ),
    known("ims-same", &[("if-modified-since", "{date}")]),
    known("ims-later", &[("if-modified-since", LATER)]),
    full("ims-earlier", &[("if-modified-since", EARLIER)]),
    known(
        "ims-rfc850",
        &[("if-modified-since", "Tuesday, 14-Nov-23 22:13:20 GMT")],
    ),
    known(
        "ims-asctime",
        &[("if-modified-since", "Tue Nov 14 22:13:20 2023")],
    ),
    full("ims-invalid", &[("if-modified-since", "yesterday")]),
    full(
        "ims-not-gmt",
        &[("if-modified-since", "Tue, 14 Nov 2023 22:13:20 CET")],
    ),
    full(
        "inm-beats-ims",
        &[("if-none-match", "\"a\""), ("if-modified-since", "{date}")],
    ),
    known(
        "inm-over-old-ims",
        &[("if-none-match", "{etag}"), ("if-modified-since", EARLIER)],
    ),
    full("im-same", &[("if-match", "{etag}")]),
    failed("im-other", &[("if-match", "\"a\"")]),
    full("im-star", &[("if-match", "*")]),
    failed("im-weak", &[("if-match", "W/{etag}")]),
    of(
        "GET",
        "/none",
        case("im-missing", &[("if-match", "*")], 404, &[], Body::Page),
    ),
    full("ius-same", &[("if-unmodified-since", "{date}")]),
    failed("ius-earlier", &[("if-unmodified-since", EARLIER)]),
    full(
        "im-over-ius",
        &[("if-match", "{etag}"), ("if-unmodified-since", EARLIER)],
    ),
    of(
        "GET",
        "/none",
        case(
            "inm-missing",
            &[("if-none-match", "*")],
            404,
            &[],
            Body::Page,
        ),
    ),
    part(
        "r-first",
        &[("range", "bytes=0-0")],
        &[("content-range", "bytes 0-0/1456")],
        0,
        1,
    ),
    part(
        "r-mid",
        &[("range", "bytes=100-199")],
        &[("content-range", "bytes 100-199/1456")],
        100,
        200,
    ),
    part(
        "r-suffix",
        &[("range", "bytes=-100")],
        &[("content-range", "bytes 1356-1455/1456")],
        1356,
        1456,
    ),
    part(
        "r-open",
        &[("range", "bytes=1400-")],
        &[("content-range", "bytes 1400-1455/1456")],
        1400,
        1456,
    ),
    part(
        "r-clamp",
        &[("range", "bytes=0-9999")],
        &[("content-range", "bytes 0-1455/1456")],
        0,
        1456,
    ),
    part(
        "r-long-suffix",
        &[("range", "bytes=-9999")],
        &[("content-range", "bytes 0-1455/1456")],
        0,
        1456,
    ),
    beyond("r-beyond", &[("range", "bytes=1456-")]),
    beyond("r-zero-suffix", &[("range", "bytes=-0")]),
    full("r-backward", &[("range", "bytes=9-1")]),
    full("r-text", &[("range", "bytes=a-b")]),
    full("r-unit", &[("range", "lines=0-1")]),
    part(
        "r-unit-case",
        &[("range", "BYTES=0-1")],
        &[("content-range", "bytes 0-1/1456")],
        0,
        2,
    ),
    part(
        "r-overflow",
        &[("range", "bytes=0-99999999999999999999999")],
        &[("content-range", "bytes 0-1455/1456")],
        0,
        1456,
    ),
    case(
        "r-two",
        &[("range", "bytes=0-1,100-101")],
        206,
        &[("content-type", "multipart/byteranges")],
        Body::Parts(&[(0, 2), (100, 102)], 1456),
    ),
    case(
        "r-space",
        &[("range", "bytes=0-1 , 100-101")],
        206,
        &[("content-type", "multipart/byteranges")],
        Body::Parts(&[(0, 2), (100, 102)], 1456),
    ),
    part(
        "r-one-of-two",
        &[("range", "bytes=0-1,2000-2001")],
        &[("content-range", "bytes 0-1/1456")],
        0,
        2,
    ),
    beyond("r-none-of-two", &[("range", "bytes=2000-2001,3000-")]),
    case(
        "r-descending",
        &[("range", "bytes=1450-1451,1-2")],
        206,
        &[("content-type", "multipart/byteranges")],
        Body::Parts(&[(1450, 1452), (1, 3)], 1456),
    ),
    of(
        "GET",
        "/big.bin",
        case(
            "r-overlap",
            &[("range", "bytes=0-,0-,0-")],
            200,
            &[],
            Body::Bytes(0, 100_000),
        ),
    ),
    of(
        "GET",
        "/big.bin",
        case(
            "r-thousand",
            &[("range", THOUSAND)],
            200,
            &[],
            Body::Bytes(0, 100_000),
        ),
    ),
    of(
        "HEAD",
        "/page.html",
        case(
            "r-head",
            &[("range", "bytes=0-1")],
            200,
            IS_200,
            Body::Nothing,
        ),
    ),
    of(
        "GET",
        "/empty.txt",
        case(
            "r-empty",
            &[("range", "bytes=0-0")],
            200,
            &[],
            Body::Nothing,
        ),
    ),
    part(
        "r-if-same",
        &[("range", "bytes=0-1"), ("if-range", "{etag}")],
        &[],
        0,
        2,
    ),
    full(
        "r-if-other",
        &[("range", "bytes=0-1"), ("if-range", "\"a\"")],
    ),
    full(
        "r-if-weak",
        &[("range", "bytes=0-1"), ("if-range", "W/{etag}")],
    ),
    part(
        "r-if-date",
        &[("range", "bytes=0-1"), ("if-range", "{date}")],
        &[],
        0,
        2,
    ),
    full(
        "r-if-date-other",
        &[("range", "bytes=0-1"), ("if-range", LATER)],
    ),
    full(
        "r-if-unsat",
        &[("range", "bytes=9999-"), ("if-range", "\"a\"")],
    ),
    known(
        "r-inm",
        &[("range", "bytes=0-1"), ("if-none-match", "{etag}")],
    ),
    failed(
        "r-im-other",
        &[("range", "bytes=0-1"), ("if-match", "\"a\"")],
    ),
    coded("c-none", "/app.js", &[], PLAIN, 1000),
    coded(
        "c-gzip",
        "/app.js",
        &[("accept-encoding", "gzip")],
        GZIP,
        200,
    ),
    coded(
        "c-br-gzip",
        "/app.js",
        &[("accept-encoding", "gzip, deflate, br")],
        BROTLI,
        150,
    ),
    coded(
        "c-br-refused",
        "/app.js",
        &[("accept-encoding", "br;q=0, gzip")],
        GZIP,
        200,
    ),
    coded(
        "c-q-order",
        "/app.js",
        &[("accept-encoding", "br;q=0.5, gzip")],
        GZIP,
        200,
    ),
    coded(
        "c-gzip-refused",
        "/app.js",
        &[("accept-encoding", "gzip;q=0")],
        PLAIN,
        1000,
    ),
    coded(
        "c-star",
        "/app.js",
        &[("accept-encoding", "*")],
        BROTLI,
        150,
    ),
    coded(
        "c-star-refused",
        "/app.js",
        &[("accept-encoding", "gzip, *;q=0")],
        GZIP,
        200,
    ),
    coded(
        "c-case",
        "/app.js",
        &[("accept-encoding", "GZIP")],
        GZIP,
        200,
    ),
    coded(
        "c-x-gzip",
        "/app.js",
        &[("accept-encoding", "x-gzip")],
        GZIP,
        200,
    ),
    coded(
        "c-part-of-name",
        "/app.js",
        &[("accept-encoding", "brx, gzipped")],
        PLAIN,
        1000,
    ),
    coded(
        "c-identity-refused",
        "/app.js",
        &[("accept-encoding", "identity;q=0")],
        PLAIN,
        1000,
    ),
    coded(
        "c-only-gz",
        "/only.css",
        &[("accept-encoding", "br, gzip")],
        &[("content-encoding", "gzip"), ("content-type", "text/css")],
        200,
    ),
    of(
        "GET",
        "/gone.js",
        case(
            "c-no-file",
            &[("accept-encoding", "gzip")],
            404,
            &[],
            Body::Page,
        ),
    ),
    of(
        "GET",
        "/app.js",
        case(
            "c-range",
            &[("accept-encoding", "gzip"), ("range", "bytes=0-99")],
            206,
            &[
                ("content-range", "bytes 0-99/200"),
                ("content-encoding", "gzip"),
            ],
            Body::Bytes(0, 100),
        ),
    ),
    of(
        "GET",
        "/app.js",
        case(
            "c-inm",
            &[("accept-encoding", "gzip"), ("if-none-match", "{gz}")],
            304,
            &[("vary", "Accept-Encoding")],
            Body::Nothing,
        ),
    ),
    coded(
        "c-inm-cross",
        "/app.js",
        &[("if-none-match", "{gz}")],
        PLAIN,
        1000,
    ),
    coded(
        "c-if-range-cross",
        "/app.js",
        &[
            ("accept-encoding", "gzip"),
            ("range", "bytes=0-9"),
            ("if-range", "{etag}"),
        ],
        GZIP,
        200,
    ),
    coded(
        "c-direct",
        "/app.js.gz",
        &[("accept-encoding", "gzip")],
        &[
            ("content-type", "application/gzip"),
            ("content-encoding", ""),
            ("vary", ""),
        ],
        200,
    ),
    path("p-index", "/", 200, Body::Bytes(0, 300)),
    of(
        "GET",
        "/dir2",
        case("p-dir", &[], 308, &[("location", "/dir2/")], Body::Page),
    ),
    of(
        "GET",
        "/dir2?a=b",
        case(
            "p-dir-query",
            &[],
            308,
            &[("location", "/dir2/?a=b")],
            Body::Page,
        ),
    ),
    of(
        "GET",
        "//dir2",
        case(
            "p-dir-slashes",
            &[],
            308,
            &[("location", "/dir2/")],
            Body::Page,
        ),
    ),
    path("p-dir-index", "/dir2/", 200, Body::Bytes(0, 400)),
    path("p-dir-no-index", "/dir/", 404, Body::Page),
    path("p-file-slash", "/page.html/", 404, Body::Page),
    path("p-below-file", "/page.html/x", 404, Body::Page),
    path("p-dot", "/.secret", 404, Body::Page),
    path("p-dot-below", "/dir/.secret", 404, Body::Page),
    path(
        "p-well-known",
        "/.well-known/security.txt",
        200,
        Body::Bytes(0, 20),
    ),
    path("p-link-in", "/link-in", 200, WHOLE),
    path("p-link-out", "/link-out", 404, Body::Page),
    path("p-link-abs", "/link-abs", 404, Body::Page),
    path("p-dir-out", "/link-dir-out/secret.txt", 404, Body::Page),
    path("p-loop", "/loop", 404, Body::Page),
    path("p-up", "/../outside/secret.txt", 400, Body::Page),
    path(
        "p-up-escaped",
        "/%2e%2e/outside/secret.txt",
        400,
        Body::Page,
    ),
    path("p-up-slash", "/..%2foutside%2fsecret.txt", 400, Body::Page),
    path("p-backslash", "/..%5coutside%5csecret.txt", 400, Body::Page),
    path("p-nul", "/page.html%00.txt", 400, Body::Page),
    path("p-space", "/a%20b.txt", 200, Body::Bytes(0, 11)),
    path("p-utf8", "/%C3%A9.txt", 200, Body::Bytes(0, 12)),
    path("p-percent", "/100%25.txt", 200, Body::Bytes(0, 13)),
    path("p-plus", "/a+b.txt", 200, Body::Bytes(0, 14)),
    path("p-semicolon", "/a;b.txt", 200, Body::Bytes(0, 15)),
    path("p-escaped-slash", "/dir%2fx.txt", 404, Body::Page),
    path("p-fifo", "/fifo", 404, Body::Page),
    path("p-long", LONG, 404, Body::Page),
    path("p-missing", "/none", 404, Body::Page),
    of(
        "GET",
        "/page.html",
        case(
            "t-page.html",
            &[],
            200,
            &[("content-type", "text/html; charset=utf-8")],
            WHOLE,
        ),
    ),
    coded(
        "t-app.js",
        "/app.js",
        &[],
        &[("content-type", "text/javascript; charset=utf-8")],
        1000,
    ),
    media("t-x.mjs", "/x.mjs", &[("content-type", "text/javascript")]),
    media(
        "t-x.wasm",
        "/x.wasm",
        &[("content-type", "application/wasm")],
    ),
    media("t-x.woff2", "/x.woff2", &[("content-type", "font/woff2")]),
    media("t-x.svg", "/x.svg", &[("content-type", "image/svg+xml")]),
    media(
        "t-x.json",
        "/x.json",
        &[("content-type", "application/json")],
    ),
    media(
        "t-x.webmanifest",
        "/x.webmanifest",
        &[("content-type", "application/manifest+json")],
    ),
    media("t-x.xml", "/x.xml", &[("content-type", "application/xml")]),
    media(
        "t-x.txt",
        "/x.txt",
        &[("content-type", "text/plain; charset=utf-8")],
    ),
    media("t-x.avif", "/x.avif", &[("content-type", "image/avif")]),
    media(
        "t-noext",
        "/noext",
        &[("content-type", "application/octet-stream")],
    ),
    media(
        "t-x.unknownext",
        "/x.unknownext",
        &[("content-type", "application/octet-stream")],
    ),
];

/// A Range field with more ranges than a server sends.
const THOUSAND: &str = "bytes=0-0,5-5,10-10,15-15,20-20,25-25,30-30,35-35,40-40,45-45,50-50,55-55,60-60,65-65,70-70,75-75,80-80";

const LONG: &str = "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
