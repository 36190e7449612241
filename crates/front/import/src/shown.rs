//! What messages show of the source: its words, but no secrets, and not at any length.

/// The words of a directive for a message, without what may be a secret, and cut after [`LENGTH_MAX`] characters.
pub(crate) fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut is_named = false;
    for word in words {
        shown.push(if is_named {
            HIDDEN.to_owned()
        } else {
            without_secret(word)
        });
        is_named |= names_secret(word) || is_login(word);
    }
    let text = shown.join(" ");
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}{HIDDEN}", &text[..end]),
        None => text,
    }
}

/// A name of a directive for a message: of a line of a file of passwords only the user.
pub(crate) fn name(name: &str) -> String {
    match name.split_once(':') {
        Some((user, _)) => format!("{user}:{HIDDEN}"),
        None => without_secret(name),
    }
}

/// A message in which each word that holds a secret is without it.
pub(crate) fn message(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace);
    words.map(without_secret).collect()
}

/// A word with `…` in the place of the value of `secret=`, of a password in a URL, and of a password's hash.
fn without_secret(word: &str) -> String {
    let body = word.trim_end_matches(|it: char| it.is_whitespace() || "`;,".contains(it));
    let end = &word[body.len()..];
    let hides_from = |at: usize| format!("{}{HIDDEN}{end}", &body[..at]);
    let hash = HASHES.iter().filter_map(|it| body.find(it)).min();
    if let Some(at) = hash {
        return hides_from(body[..at].find(':').map_or(at, |it| it + 1));
    }
    if let Some((key, _)) = body.split_once('=')
        && names_secret(key)
    {
        return hides_from(key.len() + 1);
    }
    let login = body.split_once("://").and_then(|(scheme, rest)| {
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (user, _) = authority.rsplit_once('@')?;
        let start = scheme.len() + 3;
        let password = start + user.find(':')? + 1;
        Some(format!(
            "{}{HIDDEN}{}{end}",
            &body[..password],
            &body[start + user.len()..]
        ))
    });
    login.unwrap_or_else(|| word.to_owned())
}

/// Whether what stands after this word, or after its `=`, may be a secret.
fn names_secret(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    SECRET.iter().any(|it| lower.contains(it))
}

/// Whether a word is a line of a file of passwords, `user:…`.
fn is_login(word: &str) -> bool {
    let rest = word.split_once(':').map(|it| it.1);
    rest.is_some_and(|it| {
        HASHES
            .iter()
            .any(|hash| it.starts_with(hash.trim_start_matches(':')))
    })
}

/// Parts of names whose values are secrets.
const SECRET: &[&str] = &[
    "secret",
    "passw",
    "passphrase",
    "bindpw",
    "authorization",
    "credential",
    "apikey",
    "api-key",
    "api_key",
    "token",
    "nonce",
];

/// How hashes of passwords begin. What a capture may look like needs the colon before it.
const HASHES: &[&str] = &[
    "$apr1$", "$2a$", "$2b$", "$2y$", "$argon2", ":$1$", ":$5$", ":$6$", ":$y$", "{SHA}", "{SSHA}",
];

/// The most characters of a directive that a message shows.
const LENGTH_MAX: usize = 80;
const HIDDEN: &str = "…";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_all_else_is_shown() {
        for (given, expected) in [
            (
                "^/a$ ajp://a:8009/b$1 secret=hunter2",
                "^/a$ ajp://a:8009/b$1 secret=…",
            ),
            ("AuthLDAPBindPassword hunter2", "AuthLDAPBindPassword …"),
            (
                "RequestHeader set Authorization Basic=x y",
                "RequestHeader set Authorization … …",
            ),
            (
                "proxy_pass http://u:hunter2@h/x",
                "proxy_pass http://u:…@h/x",
            ),
            ("motion:$apr1$s$L x", "motion:… …"),
            (
                "return 301 https://$host:$server_port/$1$is_args$args",
                "return 301 https://$host:$server_port/$1$is_args$args",
            ),
        ] {
            assert_eq!(words(given.split(' ')), expected);
        }
        assert_eq!(
            words(["é".repeat(100).as_str()]),
            format!("{}…", "é".repeat(80))
        );
        assert_eq!(name("motion:$apr1$s$L"), "motion:…");
        assert_eq!(
            message("the parameter `secret=a` was, see `secret`"),
            "the parameter `secret=…` was, see `secret`"
        );
    }
}
