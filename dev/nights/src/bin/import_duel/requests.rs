//! Makes requests for a configuration: its own paths, the files that exist, and paths similar to both.

use fastrand::Rng;

use crate::ask::{Ask, Body, HTTP_1_0};
use crate::grammar::{HOSTS, PATHS};
use crate::judge::FORGERIES;
use crate::stage::FOLDERS;
use crate::tree::Conf;

/// `count` different random requests.
pub(crate) fn of(conf: &Conf, count: usize, random: &mut Rng) -> Vec<Ask> {
    let paths = paths(conf);
    let limits = limits(conf);
    let mut all = Vec::new();
    for _ in 0..count {
        let mut ask = request(&paths, random);
        if !limits.is_empty() && random.usize(..4) == 0 {
            add_body(&mut ask, &limits, random);
        }
        if !all.contains(&ask) {
            all.push(ask);
        }
    }
    all
}

/// The paths that the configuration names, those of the grammar, and those of files.
fn paths(conf: &Conf) -> Vec<String> {
    let texts = conf.0.iter().map(|(_, text)| text.as_str());
    let named = texts
        .flat_map(|text| text.split_whitespace())
        .filter_map(literal);
    let known = PATHS.iter().map(|it| (*it).to_owned());
    let files = FOLDERS.iter().flat_map(|(_, files)| files.iter());
    let mut all: Vec<String> = known.chain(files.map(|it| format!("/{it}"))).collect();
    // They are in the list twice, because the configuration has rules about them.
    for path in named {
        all.extend([path.clone(), path]);
    }
    all
}

/// The limits of bodies that the configuration names, in bytes, without those that are none.
fn limits(conf: &Conf) -> Vec<usize> {
    let texts = conf.0.iter().map(|(_, text)| text.as_str());
    let mut words = texts.flat_map(str::split_whitespace).peekable();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if !matches!(word, "client_max_body_size" | "LimitRequestBody") {
            continue;
        }
        let value = words.peek().map_or("", |it| it.trim_end_matches(';'));
        let bytes = match value.strip_suffix('k') {
            Some(count) => count.parse().map(|count: usize| count * 1024),
            None => value.parse(),
        };
        found.extend(bytes.ok().filter(|it| *it > 0));
    }
    found
}

/// Gives a request a body of about the size of one of the limits.
fn add_body(ask: &mut Ask, limits: &[usize], random: &mut Rng) {
    let limit = *random.choice(limits).expect("limits");
    let length = *random
        .choice(&[limit, limit + 1, limit + 1, 2 * limit])
        .expect("lengths");
    ask.body = Some(Body {
        length,
        is_chunked: ask.version != HTTP_1_0 && random.usize(..3) == 0,
    });
    ask.fields.retain(|(name, _)| name != "Content-Length");
    if ask.method == "GET" {
        ask.method = (*random.choice(&["POST", "PUT", "GET"]).expect("three")).to_owned();
    }
}

/// The path that a word of a configuration means, or one that its expression may match; `None` if it means none.
///
/// `"/a";` and `</a>` become `/a`, `m#^/app#` becomes `/app`, `^/a/(?<id>.*)$` becomes `/a/`; an address such as
/// `http://host/a` and a file such as `{place}/site` are no paths.
fn literal(word: &str) -> Option<String> {
    let word = word.trim_matches(['"', ';', '>', '{', ')']);
    let word = word.strip_prefix("m#").unwrap_or(word);
    let start = word.find('/')?;
    // The brace before `place}` may be trimmed.
    if word.contains("://") || word.contains("place}") {
        return None;
    }
    let mut path = String::new();
    for sign in word[start..].chars() {
        match sign {
            '(' | '[' | '$' | '*' | '?' | '|' | '\\' | '#' => break,
            '^' | ')' => {}
            other => path.push(other),
        }
    }
    path.starts_with('/').then_some(path)
}

/// A random request. Most are plain GETs; some have another method, an absolute URL, forged fields or HTTP/1.0.
fn request(paths: &[String], random: &mut Rng) -> Ask {
    let path = &paths[random.usize(..paths.len())];
    let mut ask = Ask::get(&neighbour(path, random), &host(random));
    // The last number of the client's address, of which configurations allow or deny some.
    ask.client = *random.choice(&[1, 1, 1, 2, 3]).expect("five clients");
    ask.listener = usize::from(random.usize(..5) == 0);
    if random.usize(..4) == 0 {
        ask.method = (*random.choice(METHODS).expect("methods")).to_owned();
        if matches!(ask.method.as_str(), "POST" | "PUT") {
            ask.fields
                .push(("Content-Length".to_owned(), "0".to_owned()));
        }
    }
    if random.usize(..16) == 0 && ask.target.starts_with('/') {
        let scheme = *random.choice(&["http", "http", "https"]).expect("two");
        ask.target = format!("{scheme}://{}{}", host(random), ask.target);
    }
    for _ in 0..random.usize(..3) {
        let (name, value) = random.choice(FIELDS).expect("fields");
        let is_new = |known: &(String, String)| !known.0.eq_ignore_ascii_case(name);
        if ask.fields.iter().all(is_new) {
            ask.fields.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    if random.usize(..8) == 0 {
        let together = random.choice(TOGETHER).expect("fields");
        let owned = together
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ask.fields.extend(owned);
    }
    if random.usize(..20) == 0 {
        ask.version = HTTP_1_0;
        if random.bool() {
            ask.fields.retain(|(name, _)| name != "Host");
        }
    }
    ask
}

/// A host of the grammar; in ten of 28 cases written in another way, or one that no configuration has.
fn host(random: &mut Rng) -> String {
    let host = *random.choice(HOSTS).expect("hosts");
    match random.usize(..28) {
        0 => host.to_uppercase(),
        1 => format!("{host}."),
        2 => format!("{host}:80"),
        3 => "stranger.invalid".to_owned(),
        4 => "127.0.0.1".to_owned(),
        5 => format!("x.{host}"),
        6 => format!("{}.:443", host.to_uppercase()),
        7 => "[::1]".to_owned(),
        8 => format!("user@{host}"),
        9 => String::new(),
        _ => host.to_owned(),
    }
}

/// The path itself, or a similar one that a rule may treat in another way.
fn neighbour(path: &str, random: &mut Rng) -> String {
    let last = path.rfind('/').unwrap_or_default();
    let middle = path[1..].find('/').map_or(0, |it| it + 1);
    let end = path.len();
    let inserted = |at: usize, text: &str| format!("{}{text}{}", &path[..at], &path[at..]);
    match random.usize(..60) {
        0 => path.to_uppercase(),
        1 => inserted(last, "/"),
        2 => inserted(middle, "/"),
        3 => inserted(end, ";x"),
        4 => inserted(last, ";x"),
        5 => path.replacen('.', "%2e", 1),
        6 => inserted(last, "/%2e"),
        7 => path.replacen("/", "/%2F", 1),
        8 => inserted(last, "%2F"),
        9 => inserted(end, "."),
        10 => inserted(end, "/"),
        11 => inserted(end, "x"),
        12 => inserted(end, "/x"),
        13 => inserted(end, "/index.html"),
        14 => inserted(end, "?admin"),
        15 => inserted(end, "?role=admin"),
        16 => inserted(last, "/x/.."),
        17 => path.trim_end_matches('/').to_owned() + "%2f",
        18 => {
            let at = random.usize(1..=path.len().max(2) - 1).min(end);
            let byte = path.as_bytes().get(at).copied().unwrap_or(b'/');
            format!(
                "{}%{byte:02x}{}",
                &path[..at],
                path.get(at + 1..).unwrap_or_default()
            )
        }
        19 => inserted(end, "%00"),
        20 => inserted(end, "%0a"),
        21 => inserted(end, ".txt"),
        22 => inserted(end, "/secret.txt"),
        23 => inserted(last, "/admin"),
        24 => format!("/app{path}"),
        25 => inserted(end, "%20"),
        26 => inserted(end, "~"),
        27 => inserted(end, "%3fx"),
        28 => inserted(middle, ";x"),
        29 => inserted(end, ";x=1"),
        30 => inserted(end, "%3bx"),
        31 => path.replacen('/', "//", 1),
        32 => path.replace('/', "//"),
        33 => inserted(last, "/%2F"),
        34 => path[..1].to_owned() + &path[1..].replace('/', "%2F"),
        35 => inserted(end, "%2Fx"),
        36 => format!("/x/..%2f{}", &path[1..]),
        37 => inserted(last, "/x%2f.."),
        38 => format!("/x/..;{path}"),
        39 => inserted(end, ";jsessionid=1.two"),
        40 => inserted(last, "%5C"),
        41 => inserted(last, "/x\\.."),
        42 => inserted(last, "/x/%252e%252e"),
        43 => inserted(end, "%00.html"),
        44 => inserted(last, "%00"),
        45 => inserted(end, "#x"),
        46 => inserted(last, "/x/%2e%2e"),
        47 => inserted(last, "/%c0%ae"),
        _ => path.to_owned(),
    }
    .chars()
    .take(200)
    .collect()
}

const METHODS: &[&str] = &[
    "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "TRACK", "PATCH", "get", "FOO",
    "PROPFIND", "MOVE",
];

/// Fields with claims of a client; each value is one of [`FORGERIES`] or one that the grammar compares with.
const FIELDS: &[(&str, &str)] = &[
    ("X-Role", "admin"),
    ("X-Role", FORGERIES[0]),
    ("X_Role", FORGERIES[0]),
    ("X-User", FORGERIES[0]),
    ("Remote.User", FORGERIES[0]),
    ("Remote-User", FORGERIES[0]),
    ("X-Real-IP", FORGERIES[1]),
    ("X-Forwarded-For", FORGERIES[1]),
    ("X-Forwarded-For", "127.0.0.2"),
    ("X-Forwarded-Host", FORGERIES[0]),
    ("X-Forwarded-Proto", "https"),
    ("Forwarded", "for=192.0.2.66"),
    ("X-Path", FORGERIES[0]),
    ("User-Agent", FORGERIES[0]),
    ("Referer", "http://a.org/"),
    ("Origin", "http://forged"),
    ("Cookie", "role=admin"),
    // user:password in base64
    // With a right password, a wrong one, and those of other users.
    ("Authorization", "Basic dXNlcjpwYXNzd29yZA=="),
    ("Authorization", "Basic dXNlcjp3cm9uZw=="),
    ("Authorization", "Basic b3RoZXI6cGFzc3dvcmQ="),
    ("Authorization", "Basic Zm9yZ2VkOng="),
    ("Proxy", FORGERIES[0]),
    ("X-Forwarded-Port", "443"),
    ("X-Forwarded-Proto", "https, http"),
    ("X-Forwarded-Server", FORGERIES[0]),
    ("X-Original-URL", "/admin"),
    ("X-HTTP-Method-Override", "DELETE"),
];

/// Fields that a client sends together: conditions, ranges, other protocols, options of the connection, several lines of one
/// name.
const TOGETHER: &[&[(&str, &str)]] = &[
    &[("Range", "bytes=0-")],
    &[("Range", "bytes=9999-")],
    &[("Range", "bytes=0-"), ("If-Range", "\"forged\"")],
    &[("If-Match", "\"forged\"")],
    &[("If-None-Match", "*")],
    &[("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")],
    &[("If-Modified-Since", "Fri, 31 Dec 2060 00:00:00 GMT")],
    &[("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")],
    &[("Connection", "upgrade"), ("Upgrade", "websocket")],
    &[
        ("Connection", "upgrade, http2-settings"),
        ("Upgrade", "h2c"),
        ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
    ],
    &[("Connection", "close, x-role"), ("X-Role", FORGERIES[0])],
    &[("Connection", "close, X-Real-IP, Authorization, Host")],
    &[("X-Role", "admin"), ("X-Role", FORGERIES[0])],
    &[("X-Role", "guest"), ("X-Role", "admin")],
    &[("Cookie", "role=guest"), ("Cookie", "role=admin")],
    &[("Host", "b.org")],
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(literal(word).as_deref(), expected, "{word}");
    }

    /// Of a fixed seed, as many requests as some files have.
    #[test]
    fn requests_of_each_class_are_made() {
        let asks = of(&Conf(Vec::new()), 6_000, &mut Rng::with_seed(1));
        let is_made = |is: &dyn Fn(&Ask) -> bool| asks.iter().any(is);
        for (name, value) in TOGETHER.iter().flat_map(|it| it.iter()) {
            let has = |it: &Ask| {
                it.fields
                    .contains(&((*name).to_owned(), (*value).to_owned()))
            };
            assert!(is_made(&has), "{name}: {value}");
        }
        for part in [
            "https://",
            ";jsessionid=",
            "..%2f",
            "%2f..",
            "/..;/",
            "%5C",
            "\\",
            "%00",
            "%252e",
        ] {
            assert!(is_made(&|it| it.target.contains(part)), "{part}");
        }
        for host in ["A.ORG.:443", "[::1]", "user@a.org", ""] {
            let has = |it: &Ask| it.fields.contains(&("Host".to_owned(), host.to_owned()));
            assert!(is_made(&has), "{host}");
        }
        for method in METHODS {
            assert!(is_made(&|it| it.method == *method), "{method}");
        }
        let has_none = |it: &Ask| it.fields.iter().all(|it| it.0 != "Host");
        assert!(is_made(&|it| it.version == HTTP_1_0 && has_none(it)));
    }

    #[test]
    fn bodies_are_of_the_size_of_the_limits() {
        let text = "client_max_body_size 1k;\nclient_max_body_size 0;\nLimitRequestBody 1000\n";
        let conf = Conf(vec![(String::new(), text.to_owned())]);
        assert_eq!(limits(&conf), [1024, 1000]);
        let asks = of(&conf, 600, &mut Rng::with_seed(1));
        let is_made =
            |is: &dyn Fn(&Body) -> bool| asks.iter().filter_map(|it| it.body).any(|it| is(&it));
        assert!(is_made(&|it| it.length == 1025 && it.is_chunked));
        assert!(is_made(&|it| it.length == 1001 && !it.is_chunked));
        assert!(is_made(&|it| it.length == 1024));
        assert!(asks.iter().any(|it| it.body.is_none()));
        let none = of(&Conf(Vec::new()), 100, &mut Rng::with_seed(1));
        assert!(none.iter().all(|it| it.body.is_none()));
    }

    #[test]
    fn words_name_paths() {
        check("/admin", Some("/admin"));
        check("\"^/admin/(.*)$\"", Some("/admin/"));
        check("http://{one}/x", None);
        check("root", None);
    }
}
