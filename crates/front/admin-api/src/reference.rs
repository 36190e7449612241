//! The page docs/admin-api.md, written from the declarations.

use std::fmt::Write as _;

use crate::{ENDPOINTS, MemberDoc, ObjectDoc, objects};

/// The reference of the admin API, as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRO.to_owned();
    for endpoint in ENDPOINTS {
        let answer = link(endpoint.answer);
        writeln!(
            page,
            "| `{} {}` | {answer} | {} |",
            endpoint.method, endpoint.path, endpoint.meaning
        )
        .expect("a string takes all");
    }
    for object in objects() {
        write(&mut page, &object);
    }
    page
}

fn write(page: &mut String, object: &ObjectDoc) {
    let meaning = sentence(object.meaning);
    write!(page, "\n## {}\n\n{meaning}\n\n", object.name).expect("a string takes all");
    for member in object.members {
        writeln!(page, "{}", item(member)).expect("a string takes all");
    }
}

fn item(member: &MemberDoc) -> String {
    let meaning = sentence(member.meaning);
    if member.is_flat {
        return format!("- all of {}: {meaning}", link(member.declared));
    }
    format!(
        "- `{}` ({}): {meaning}",
        member.name,
        words(member.declared)
    )
}

/// The lines of a comment as one text.
fn sentence(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

/// A type of Rust in the words of JSON.
fn words(declared: &str) -> String {
    let declared = declared.replace(' ', "");
    let inside = |outer: &str| declared.strip_prefix(outer)?.strip_suffix('>');
    if let Some(inner) = inside("Option<") {
        return format!("{} or null", words(inner));
    }
    if let Some(inner) = inside("Vec<") {
        return format!("list of {}", words(inner));
    }
    if let Some(inner) = inside("BTreeMap<String,") {
        return format!("{} by name", words(inner));
    }
    if let Some(inner) = declared
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'))
    {
        let parts: Vec<String> = inner.split(',').map(words).collect();
        return format!("list of {}", parts.join(" and "));
    }
    match declared.as_str() {
        "String" => "text".to_owned(),
        "bool" => "boolean".to_owned(),
        "f64" => "number".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "integer".to_owned(),
        object => link(object),
    }
}

fn link(object: &str) -> String {
    format!("[{object}](#{})", object.to_lowercase())
}

const INTRO: &str = "\
# The admin API

(Written by `cargo run -p catamaran-admin-api --example reference > docs/admin-api.md`.)

JSON under `/api/v1` of the admin listener. [admin.md](admin.md) says who may ask what, how a change is made, and
what the commands of `catamaran` make of it. Moments are texts in UTC such as `2030-01-31T04:00:00Z`. Members may be
added at any time. A fault is a [Problem](#problem).

| Request | Answer | What it does |
|---|---|---|
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/admin-api.md");
        let page = fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == reference(),
            "docs/admin-api.md is stale; write it anew: \
             cargo run -p catamaran-admin-api --example reference > docs/admin-api.md"
        );
    }

    #[test]
    fn types_are_told_in_the_words_of_json() {
        for (declared, expected) in [
            ("Option<String>", "text or null"),
            ("Vec<Event>", "list of [Event](#event)"),
            ("Option<BTreeMap<String, u64>>", "integer by name or null"),
            ("Vec<(String, String)>", "list of list of text and text"),
        ] {
            assert_eq!(words(declared), expected, "{declared}");
        }
    }

    /// What a row links to is on the page.
    #[test]
    fn every_object_is_declared_once_and_every_link_leads_to_one() {
        let objects = objects();
        let names: BTreeSet<&str> = objects.iter().map(|object| object.name).collect();
        assert_eq!(names.len(), objects.len());
        let page = reference();
        let anchors: BTreeSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        for link in page.split("](#").skip(1) {
            let anchor = link.split(')').next().unwrap_or_default();
            assert!(anchors.contains(anchor), "{anchor}");
        }
        for endpoint in ENDPOINTS {
            assert!(names.contains(endpoint.answer), "{endpoint:?}");
        }
    }
}
