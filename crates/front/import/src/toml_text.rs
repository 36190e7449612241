//! Writes texts as TOML values.

use std::fmt::Write as _;

/// A text as a TOML string, with `${` escaped.
pub(crate) fn quoted(text: &str) -> String {
    // Most texts need no escape.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\$".contains(&byte);
    if text.bytes().all(is_plain) {
        return format!("\"{text}\"");
    }
    let mut out = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => {
                out.push('\\');
                out.push(sign);
            }
            sign if sign.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(sign));
            }
            sign => out.push(sign),
        }
    }
    out.push('"');
    // `${` would be a variable of the environment.
    out.replace("${", "$${")
}

/// Keys with their values, both in TOML already, as an inline table.
pub(crate) fn inline_table(pairs: impl Iterator<Item = (String, String)>) -> String {
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// Several texts as a TOML list; a single one as a string.
pub(crate) fn quoted_list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let strings: Vec<String> = texts.into_iter().map(|it| quoted(it.as_ref())).collect();
    match &strings[..] {
        [single] => single.clone(),
        _ => format!("[{}]", strings.join(", ")),
    }
}
