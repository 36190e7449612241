//! Requests for a configuration: its own literals, the files that there are, and the neighbours of both.

use fastrand::Rng;

use crate::ask::Ask;
use crate::grammar::{HOSTS, PATHS};
use crate::judge::FORGERIES;
use crate::stage::FOLDERS;
use crate::tree::Conf;

/// As many requests as asked for, by chance, without repetition.
pub(crate) fn of(conf: &Conf, count: usize, random: &mut Rng) -> Vec<Ask> {
    let paths = paths(conf);
    let mut all = Vec::new();
    for _ in 0..count {
        let ask = request(&paths, random);
        if !all.contains(&ask) {
            all.push(ask);
        }
    }
    all
}

/// Paths that the texts name, those of the grammar, and those of files.
fn paths(conf: &Conf) -> Vec<String> {
    let texts = conf.0.iter().map(|(_, text)| text.as_str());
    let named = texts
        .flat_map(|text| text.split_whitespace())
        .filter_map(literal);
    let known = PATHS.iter().map(|it| (*it).to_owned());
    let files = FOLDERS.iter().flat_map(|(_, files)| files.iter());
    let mut all: Vec<String> = known.chain(files.map(|it| format!("/{it}"))).collect();
    // Twice as likely, since the configuration decides on them.
    for path in named {
        all.extend([path.clone(), path]);
    }
    all
}

/// The path that a word of a configuration means, or one that its expression may match.
fn literal(word: &str) -> Option<String> {
    let word = word.trim_matches(['"', ';', '>', '{', ')']);
    let word = word.strip_prefix("m#").unwrap_or(word);
    let start = word.find('/')?;
    if word.contains("://") || word.contains("place}") {
        return None;
    }
    let rest = word[start..].replace("(?<id>", "(");
    let mut path = String::new();
    for byte in rest.chars() {
        match byte {
            '(' | '[' | '$' | '*' | '?' | '|' | '\\' | '#' => break,
            '^' | ')' => {}
            other => path.push(other),
        }
    }
    path.starts_with('/').then_some(path)
}

fn request(paths: &[String], random: &mut Rng) -> Ask {
    let path = &paths[random.usize(..paths.len())];
    let mut ask = Ask::get(&neighbour(path, random), &host(random));
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
        let host = (*random.choice(HOSTS).expect("hosts")).to_owned();
        ask.target = format!("http://{host}{}", ask.target);
    }
    for _ in 0..random.usize(..3) {
        let (name, value) = random.choice(FIELDS).expect("fields");
        if ask.fields.iter().all(|it| !it.0.eq_ignore_ascii_case(name)) {
            ask.fields.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    ask
}

fn host(random: &mut Rng) -> String {
    let host = *random.choice(HOSTS).expect("hosts");
    match random.usize(..24) {
        0 => host.to_uppercase(),
        1 => format!("{host}."),
        2 => format!("{host}:80"),
        3 => "stranger.invalid".to_owned(),
        4 => "127.0.0.1".to_owned(),
        5 => format!("x.{host}"),
        _ => host.to_owned(),
    }
}

/// The path itself, or one that a guard may take for another.
fn neighbour(path: &str, random: &mut Rng) -> String {
    let last = path.rfind('/').unwrap_or_default();
    let middle = path[1..].find('/').map_or(0, |it| it + 1);
    let end = path.len();
    let inserted = |at: usize, text: &str| format!("{}{text}{}", &path[..at], &path[at..]);
    match random.usize(..36) {
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
        _ => path.to_owned(),
    }
    .chars()
    .take(200)
    .collect()
}

const METHODS: &[&str] = &[
    "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "get", "FOO", "PROPFIND",
];

/// What a client may claim; each value is one of [`FORGERIES`] or a value that the grammar asks for.
const FIELDS: &[(&str, &str)] = &[
    ("X-Role", "admin"),
    ("X-Role", FORGERIES[0]),
    ("X_Role", FORGERIES[0]),
    ("X-User", FORGERIES[0]),
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
    // user:password
    ("Authorization", "Basic dXNlcjpwYXNzd29yZA=="),
    ("Authorization", "Basic Zm9yZ2VkOng="),
    ("Proxy", FORGERIES[0]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(literal(word).as_deref(), expected, "{word}");
    }

    #[test]
    fn words_name_paths() {
        check("/admin", Some("/admin"));
        check("\"^/admin/(.*)$\"", Some("/admin/"));
        check("http://{one}/x", None);
        check("root", None);
    }
}
