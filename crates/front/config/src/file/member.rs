//! A file of members: a list of `[[member]]`, written by hand or by another program.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use catamaran_proxy::config::{Address, FoundMember, FoundState, MemberPlace, Protocol, Speech};
use toml::de::DeTable;

use super::backend::{self, resolve};
use super::hint_of_unknown_key;
use crate::fill;
use crate::key::{ALL, Group, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::suggest::nearest;
use crate::syntax::parsed;
use crate::table::{Table, tables};
use crate::value::address::BackendUrl;
use crate::value::text::parse_label;
use crate::value::{Choices, Syntax};

/// Reads a file of members from its text. Unless the report has faults, the members are all that it lists.
pub(crate) fn parse(path: &Path, text: &str) -> (Vec<FoundMember>, Report) {
    let mut report =
        Report::new(&path.display().to_string(), text).with_unknown_key(hint_of_unknown_key);
    let base = path.parent().unwrap_or_else(|| Path::new(""));
    let root = parsed(text, 0, &mut report);
    let members = root.map(|root| read(root.get_ref(), base, &mut report));
    report.finish();
    (members.unwrap_or_default(), report)
}

/// Reads all members; those with faults are reported and left out.
fn read(root: &DeTable<'_>, base: &Path, report: &mut Report) -> Vec<FoundMember> {
    let mut members = Vec::new();
    for (name, value) in root {
        if name.get_ref() == LIST {
            for (place, entries) in tables(SECTION.header, value, report) {
                members.extend(read_one(place, entries, base, report));
            }
        } else {
            let message = format!("`{}` is no table of a file of members", name.get_ref());
            let hint = match nearest(name.get_ref(), [LIST]) {
                Some(_) => "did you mean `[[member]]`?".to_owned(),
                None => "write [[member]] with a `name` and a `url`".to_owned(),
            };
            report.push(Finding::fault(message, name.span()).hint(hint));
        }
    }
    report_repeated(&members, report);
    members.into_iter().map(|(member, _)| member).collect()
}

/// Reads one member, with its place in the file; `None` if it has faults.
fn read_one(
    place: Range<usize>,
    entries: &DeTable<'_>,
    base: &Path,
    report: &mut Report,
) -> Option<(FoundMember, Range<usize>)> {
    let mut table = Table::new(&SECTION, place, entries);
    let mut member = FoundMember::new(
        "",
        MemberPlace::Unix(std::path::PathBuf::new()),
        Speech::Ajp,
    );
    table.read(KEYS, &mut member);
    // A member has some keys of backends as well.
    let mut written = backend::RawBackend::default();
    let shared_keys = backend::KEYS
        .iter()
        .filter(|key| key.group == backend::MEMBER);
    table.read(shared_keys, &mut written);
    resolve("url", written.url.as_mut(), &mut table, base);
    let place = table.place_of("name");
    table.finish(report);
    member.weight = written.config.weight;
    member.distance = written.config.distance;
    member.jvm_route = written.jvm_route;
    member.domain = written.config.domain;
    (member.place, member.speech) = place_and_speech(written.url?);
    (!member.name.is_empty()).then_some((member, place))
}

/// Where a member with this URL is, and what it speaks. TLS with AJP is no URL, so it needs no case.
fn place_and_speech(url: BackendUrl) -> (MemberPlace, Speech) {
    let speech = match (url.protocol, url.tls) {
        (Protocol::Ajp, _) => Speech::Ajp,
        (Protocol::Http, false) => Speech::Http,
        (Protocol::Http, true) => Speech::Https,
    };
    let place = match url.address {
        Address::Tcp { host, port } => MemberPlace::Tcp { host, port },
        Address::Unix(path) => MemberPlace::Unix(path),
    };
    (place, speech)
}

/// Reports members that share a name, a `jvm_route` or an address.
fn report_repeated(members: &[(FoundMember, Range<usize>)], report: &mut Report) {
    let mut first_places: HashMap<(&str, String), &Range<usize>> = HashMap::new();
    for (member, place) in members {
        let route = member.jvm_route.as_ref().unwrap_or(&member.name);
        // Members of different protocols may share an address; the message shows the address alone.
        let address = member.place.to_string();
        for (verb, key, value) in [
            ("is named", member.name.clone(), &member.name),
            ("has the jvmRoute", route.clone(), route),
            ("is at", format!("{:?} {address}", member.speech), &address),
        ] {
            let Some(first) = first_places.insert((verb, key), place) else {
                continue;
            };
            let spot = report.spot(first.start, place.start);
            let message = format!("the member of {spot} {verb} `{value}` too");
            report.push(Finding::fault(message, place.clone()).hint("keep one of them"));
            // Further faults of this member would follow from this one.
            break;
        }
    }
}

/// The name of the list in the file.
const LIST: &str = "member";

/// The most bytes of a file of members; ten thousand members take some 2 MB.
pub(crate) const BYTES_MAX: usize = 4 << 20;

pub(crate) static SECTION: Section = Section {
    header: "[[member]]",
    intro: "A member of an upstream, in the file that `path` of `[upstream.NAME.members]` names, not in the \
            configuration itself. Such a file has no other tables. Keys that are not here are those of \
            `[upstream.NAME]`.",
    keys: &[
        Part::of(&KEYS, |group| group == NAME),
        Part::of(&backend::KEYS, |group| group == backend::MEMBER),
        Part::of(&KEYS, |group| group != NAME),
    ],
    later: &[
        ("activation", "write state = \"drain\""),
        ("secret", "write it in [upstream.NAME], for all members"),
    ],
};

/// The group of `name`, which the reference page shows before the keys of a backend.
const NAME: Group = Group("name");

static KEYS: &[Key<FoundMember>] = &[
    Key {
        name: "name",
        group: NAME,
        value: fill!(
            Syntax {
                what: "a name such as \"a\"",
                parse: parse_label,
            },
            FoundMember.name
        ),
        preset: Preset::Required,
        sample: "\"a\"",
        effect: "The member's identity: for sessions, `hash`, the commands, logs and metrics. A member at another \
                 address under the same name keeps its sessions and what operators said of it; its connections \
                 and its health begin anew.",
        extremes: "A name that a program makes up at each start is a new member each time.",
        elsewhere: "",
    },
    Key {
        name: "state",
        group: ALL,
        value: fill!(
            Choices(&[("active", FoundState::Active), ("drain", FoundState::Drain)]),
            FoundMember.state
        ),
        preset: Preset::Value("\"active\""),
        sample: "\"drain\"",
        effect: "Which requests the member gets: with `\"drain\"` those of its own sessions only. If no member of \
                 the upstream is active, those that drain serve new sessions, too.",
        extremes: "An operator's `catamaran activate` or `drain` wins.",
        elsewhere: "Kubernetes: `serving` and `terminating` of an EndpointSlice",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        let (_, report) = parse(Path::new("/etc/members.toml"), text);
        report.to_string()
    }

    #[test]
    fn a_member_has_all_that_it_may_have() {
        let text = "[[member]]\nname = \"a\"\nurl = \"https://App.Internal:8443\"\nweight = 3\n\
                    distance = 1\njvm_route = \"east.a\"\ndomain = \"east\"\nstate = \"drain\"\n\
                    [[member]]\nname = \"b\"\nurl = \"ajp+unix:b.sock\"\n";
        let (found, report) = parse(Path::new("/etc/members.toml"), text);
        assert_eq!(report.to_string(), "");
        let place = MemberPlace::Tcp {
            host: "app.internal".to_owned(),
            port: 8443,
        };
        let first = FoundMember {
            weight: 3,
            distance: 1,
            jvm_route: Some("east.a".to_owned()),
            domain: Some("east".to_owned()),
            state: FoundState::Drain,
            ..FoundMember::new("a", place, Speech::Https)
        };
        let beside = MemberPlace::Unix("/etc/b.sock".into());
        assert_eq!(found, [first, FoundMember::new("b", beside, Speech::Ajp)]);
        assert_eq!(parse(Path::new("x"), "").0, []);
    }

    #[test]
    fn faults_are_said_as_of_any_file() {
        for (text, expected) in [
            (
                "[[member]]\nname = \"a\"\n",
                "/etc/members.toml:1:1: fault: [[member]] lacks `url`",
            ),
            (
                "[[member]]\nurl = \"ajp://a:1\"\n",
                "[[member]] lacks `name`",
            ),
            (
                "[[member]]\nname = \"a\"\nurl = \"ajp://a:1\"\nwieght = 2\n",
                "did you mean `weight`?",
            ),
            (
                "[[member]]\nname = \"a\"\nurl = \"a:1\"\n",
                "`url` has no scheme",
            ),
            ("[[members]]\nname = \"a\"\n", "did you mean `[[member]]`?"),
            ("[member]\nname = \"a\"\n", "this must be a list of tables"),
            ("[[member]\n", "fault:"),
            (
                "[[member]]\nname = \"a\"\nurl = \"ajp://a:1\"\n[[member]]\nname = \"a\"\nurl = \"ajp://b:1\"\n",
                "the member of line 2 is named `a` too",
            ),
            (
                "[[member]]\nname = \"a\"\nurl = \"ajp://a:1\"\n[[member]]\nname = \"b\"\nurl = \"ajp://a:1\"\n",
                "the member of line 2 is at `a:1` too",
            ),
        ] {
            let said = said(text);
            assert!(said.contains(expected), "{text}: {said}");
        }
    }
}
