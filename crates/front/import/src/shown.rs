//! What messages show of the source: words without secrets, cut after some length.

/// The words of a directive for a message: without what may be a secret, and cut after [`LENGTH_MAX`] characters.
pub(crate) fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut follows_secret_name = false;
    for word in words {
        shown.push(if follows_secret_name {
            HIDDEN.to_owned()
        } else {
            without_secret(word)
        });
        // Where the secret ends is not known, so all further words are hidden.
        follows_secret_name |= names_secret(word) || is_login(word);
    }
    let text = shown.join(" ");
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}{HIDDEN}", &text[..end]),
        None => text,
    }
}

/// The name of a directive for a message. If it is a line of a file of passwords, only the user is shown.
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

/// A word with `…` in place of a secret: the value of `secret=` or `Token: `, that of a secret parameter in a URL's
/// query, a password in a URL, and the hash of a password.
fn without_secret(word: &str) -> String {
    let body = word.trim_end_matches(|sign: char| sign.is_whitespace() || "`;,".contains(sign));
    let end = &word[body.len()..];
    let hidden_from = |at: usize| format!("{}{HIDDEN}{end}", &body[..at]);
    // A kind of hash alone is no secret.
    let is_whole = |hash: &&str, at: usize| at + hash.len() < body.len();
    let found = |hash: &&str| body.find(*hash).filter(|at| is_whole(hash, *at));
    let first_hash = HASHES.iter().filter_map(found).min();
    if let Some(at) = first_hash {
        // In `user:hash`, the user is shown.
        let colon = body[..at].find(':');
        return hidden_from(colon.map_or(at, |colon| colon + 1));
    }
    // In a URL, the first `:` is behind its scheme.
    let is_url = body.contains("://");
    let name_end = body.find(|sign| sign == '=' || (sign == ':' && !is_url));
    if let Some(name_end) = name_end
        && names_secret(&body[..name_end])
    {
        return hidden_from(name_end + 1);
    }
    without_login(&without_parameters(word))
}

/// A URL without the password before its host.
fn without_login(word: &str) -> String {
    let start = word.find("://").map_or(0, |at| at + "://".len());
    let authority = word[start..].split(['/', '?']).next().unwrap_or_default();
    if let Some((login, _)) = authority.rsplit_once('@')
        && let Some(colon) = login.find(':')
    {
        let login_end = start + login.len();
        return format!("{}{HIDDEN}{}", &word[..=start + colon], &word[login_end..]);
    }
    word.to_owned()
}

/// A URL without the values of those query parameters that may be secrets.
fn without_parameters(word: &str) -> String {
    let Some((path, query)) = word.split_once('?') else {
        return word.to_owned();
    };
    let shown = |parameter: &str| match parameter.split_once('=') {
        Some((name, value)) if is_secret_parameter(name) => {
            // The signs behind the value are those of the message.
            let behind = value.trim_start_matches(|sign: char| !"`;,\"' ".contains(sign));
            format!("{name}={HIDDEN}{behind}")
        }
        _ => parameter.to_owned(),
    };
    let parameters: Vec<String> = query.split('&').map(shown).collect();
    format!("{path}?{}", parameters.join("&"))
}

fn is_secret_parameter(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    names_secret(&lower) || lower.ends_with("key") || lower.starts_with("sig") || lower == "auth"
}

/// Whether the text after this word, or after its `=` or `:`, may be a secret.
fn names_secret(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    // As a part of other words, `pass` names no secret, as in `ProxyPass`.
    let bare = lower.trim_matches(|sign: char| !sign.is_alphanumeric());
    bare == "pass" || SECRET.iter().any(|part| lower.contains(part))
}

/// Whether a word is a line of a file of passwords, `user:…`.
fn is_login(word: &str) -> bool {
    let Some((_, password)) = word.split_once(':') else {
        return false;
    };
    let mut hashes = HASHES.iter().map(|hash| hash.trim_start_matches(':'));
    hashes.any(|hash| password.starts_with(hash))
}

/// Parts of names that mark their values as secrets.
const SECRET: &[&str] = &[
    "secret",
    "passw",
    "passphrase",
    "bindpw",
    "pwd",
    "authorization",
    "credential",
    "apikey",
    "api-key",
    "api_key",
    "token",
    "nonce",
];

/// The beginnings of hashes of passwords.
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
            ("as {SHA}, is {SHA}W6ph=", "as {SHA}, is …"),
            ("ProxySet pass=hunter2", "ProxySet pass=…"),
            ("ProxySet dbpwd=hunter2", "ProxySet dbpwd=…"),
            ("Frob X-Token:hunter2", "Frob X-Token:…"),
            (
                "/a http://h/x?key=hunter2&a=b&sig=c",
                "/a http://h/x?key=…&a=b&sig=…",
            ),
            ("connect u:hunter2@h:80", "connect u:…@h:80"),
            ("/a https://h:443/@x", "/a https://h:443/@x"),
            ("ProxyPass /a http://h/", "ProxyPass /a http://h/"),
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
