//! Tests that the page's script reads the API by the names of its members, so that a renamed member fails
//! here.

use std::collections::BTreeSet;

use catamaran_admin_api::{MemberDoc, ObjectDoc, objects};

#[test]
fn the_script_reads_members_by_their_names() {
    let script = include_str!("page.js");
    let mut read = 0;
    for (variable, object) in VARIABLES {
        let chains = chains(script, variable);
        read += chains.len();
        for chain in &chains {
            let fault = fault(object, chain);
            assert_eq!(fault, None, "{variable}.{}", chain.join("."));
        }
        for members in taken_apart(script, variable) {
            for member in &members {
                assert_eq!(fault(object, &[member]), None, "{members:?} of {variable}");
            }
        }
    }
    assert!(read > 150, "only {read} members are found in the script");
}

#[test]
fn a_member_that_is_none_is_found() {
    assert_eq!(fault("BackendMember", &["settings", "weight"]), None);
    assert_eq!(fault("BackendMember", &["connections", "open"]), None);
    let missing = |chain: &[&str]| fault("BackendMember", chain);
    assert_eq!(missing(&["weight"]).as_deref(), Some("weight"));
    assert_eq!(missing(&["settings", "wieght"]).as_deref(), Some("wieght"));
    let script = "x.backend.a; backend?.b.c; `${backend.d}`; const { e, f: g } = backend;";
    assert_eq!(chains(script, "backend"), [vec!["b", "c"], vec!["d"]]);
    assert_eq!(taken_apart(script, "backend"), [vec!["e", "f"]]);
}

/// The first member of a chain that its object does not have. Members of a text, a number or a list are not
/// checked.
fn fault(object: &str, chain: &[&str]) -> Option<String> {
    let (member, rest) = chain.split_first()?;
    if BROWSER.contains(member) {
        return None;
    }
    match members(object).into_iter().find(|it| it.name == *member) {
        None => Some((*member).to_owned()),
        Some(found) => {
            let declared = found.declared.replace(' ', "");
            let inner = declared
                .strip_prefix("Option<")
                .map_or(&declared[..], |inner| {
                    inner.strip_suffix('>').unwrap_or(inner)
                });
            let is_object = objects().iter().any(|object| object.name == inner);
            is_object.then(|| fault(inner, rest)).flatten()
        }
    }
}

/// The members of an object, with those of the objects that are flattened into it.
fn members(object: &str) -> Vec<MemberDoc> {
    let all = objects();
    let of = |name: &str| -> ObjectDoc {
        let found = all.iter().find(|it| it.name == name);
        *found.unwrap_or_else(|| panic!("there is no object {name}"))
    };
    let own = of(object).members.iter();
    own.flat_map(|member| {
        if member.is_flat {
            of(member.declared).members.to_vec()
        } else {
            vec![*member]
        }
    })
    .collect()
}

/// The chains of members that the script reads of a variable: `a.b` for `variable.a.b`.
fn chains<'s>(script: &'s str, variable: &str) -> Vec<Vec<&'s str>> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    let mut found = Vec::new();
    for (at, _) in script.match_indices(variable) {
        let before = script[..at].bytes().next_back().unwrap_or(b' ');
        if is_name(before) || before == b'.' || before == b'-' {
            continue;
        }
        let mut rest = &script[at + variable.len()..];
        let mut chain = Vec::new();
        while let Some(behind) = rest.strip_prefix("?.").or_else(|| rest.strip_prefix('.')) {
            let length = behind.bytes().take_while(|byte| is_name(*byte)).count();
            if length == 0 {
                break;
            }
            chain.push(&behind[..length]);
            rest = &behind[length..];
        }
        if !chain.is_empty() {
            found.push(chain);
        }
    }
    found
}

/// The members that the script takes from a variable by `const { a, b: c } = variable;`.
fn taken_apart<'s>(script: &'s str, variable: &str) -> Vec<Vec<&'s str>> {
    let end = format!("}} = {variable};");
    let starts = script.match_indices(&end).map(|(at, _)| &script[..at]);
    let bodies = starts.filter_map(|before| Some(&before[before.rfind('{')? + 1..]));
    let members = |body: &'s str| -> BTreeSet<&'s str> {
        let parts = body.split(',');
        let names = parts.filter_map(|part| part.split(':').next());
        names.map(str::trim).collect()
    };
    bodies
        .map(|body| members(body).into_iter().collect())
        .collect()
}

/// The variables of the script, each with the API's object that it holds.
const VARIABLES: &[(&str, &str)] = &[
    ("status", "FrontStatus"),
    ("upstream", "UpstreamStatus"),
    ("members", "FoundMembers"),
    ("budget", "RetryBudgetStatus"),
    ("backend", "BackendMember"),
    ("b", "BackendMember"),
    ("settings", "BackendControls"),
    ("connections", "BackendConnections"),
    ("c", "BackendConnections"),
    ("rates", "BackendRates"),
    ("latency", "BackendLatency"),
    ("counts", "FailureCounts"),
    ("failure", "BackendFailure"),
    ("probes", "ProbeCounts"),
    ("probe", "BackendProbe"),
    ("begun", "ProbeResult"),
    ("said", "Override"),
    ("drain", "DrainProgress"),
    ("request", "RequestInFlight"),
    ("event", "Event"),
    ("cache", "CacheStatus"),
    ("profile", "ProfileStatus"),
    ("problem", "Problem"),
    ("explanation", "Explanation"),
    ("r", "RouteStatus"),
    ("other", "OtherRoute"),
    ("step", "AffinityStep"),
    ("member", "MemberShare"),
];

/// Members of the browser's own objects, which the script has in variables of the same names.
const BROWSER: &[&str] = &["preventDefault", "key", "newState"];
