//! Writing JSON: the one part of it that is easy to get wrong.

/// Appends `value` as a string; bytes that are not UTF-8 are replaced.
pub(crate) fn push_string(json: &mut String, value: &[u8]) {
    json.push('"');
    for character in String::from_utf8_lossy(value).chars() {
        match character {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            control if control < ' ' || control == '\u{7f}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => json.push(other),
        }
    }
    json.push('"');
}
