//! Compares two responses to one request: pure rules by which a difference is a door.

use std::collections::BTreeSet;

use crate::ask::{Answer, Ask, Origin, values};

/// The result of comparing both responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Both responses are the same.
    Alike,
    /// The source serves content, and the import does not.
    Closed,
    /// A difference that docs/import.md describes, or that gives a client nothing that the source refuses.
    Other,
    Door(Door),
}

/// The kinds of doors: what the import allows and the source does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Door {
    /// The source refuses (401, 403, 405, 413, a closed connection), the import serves.
    Refused,
    /// The source has no content here (404, a redirect, an error), the import serves content that the source serves
    /// this client under no similar target.
    Absent,
    /// Both serve, but from different files, or different requests reach the backend.
    Elsewhere,
    /// A field with a client's false claim reaches the application, which the source removes.
    Forged,
    /// The application gets another value of a field.
    Field,
    /// A response lacks a field that protects browsers, or has another media type.
    Loosened,
    /// The front listens at an address at which the source does not.
    Wider,
    /// The import failed, or the front refuses the file that it wrote.
    Fails,
}

impl Door {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Absent => "absent",
            Self::Elsewhere => "elsewhere",
            Self::Forged => "forged",
            Self::Field => "field",
            Self::Loosened => "loosened",
            Self::Wider => "wider",
            Self::Fails => "fails",
        }
    }
}

/// Compares the responses of the source and of the import; `said` is the report of the import.
///
/// [`Door::Absent`] is only a suspicion: the caller must send [`others`] to the source.
pub(crate) fn judge(ask: &Ask, theirs: &Answer, ours: &Answer, said: &str) -> Verdict {
    match (&theirs.origin, &ours.origin) {
        (None, None) if theirs.status == ours.status => Verdict::Alike,
        (None, None) => Verdict::Other,
        (Some(_), None) => Verdict::Closed,
        // nginx answers 400 to a method in lower case, as to a malformed request.
        (None, Some(Origin::Backend { method, .. }))
            if theirs.status == 400 && method.contains(|it: char| it.is_ascii_lowercase()) =>
        {
            Verdict::Other
        }
        (None, Some(_)) if REFUSALS.contains(&theirs.status) => Verdict::Door(Door::Refused),
        (None, Some(_)) => Verdict::Door(Door::Absent),
        (Some(there), Some(here)) if !is_same(there, here) => Verdict::Door(Door::Elsewhere),
        (Some(there), Some(here)) => of_fields(ask, there, here)
            .or_else(|| loosened(ask, theirs, ours, said))
            .unwrap_or(Verdict::Alike),
    }
}

/// Whether both responses come from the same file, or the same request reached the same backend.
fn is_same(there: &Origin, here: &Origin) -> bool {
    let (Some(theirs), Some(ours)) = (BackendRequest::of(there), BackendRequest::of(here)) else {
        return there == here;
    };
    let (their_target, our_target) = (plain(theirs.target), plain(ours.target));
    let (path, query) = their_target.split_once('?').unwrap_or((&their_target, ""));
    let (our_path, our_query) = our_target.split_once('?').unwrap_or((&our_target, ""));
    // A last slash may be missing, which the import's report notes.
    let is_same_path = path == our_path || path.strip_suffix('/') == Some(our_path);
    theirs.name == ours.name && theirs.method == ours.method && is_same_path && query == our_query
}

/// A backend, and the request that reached it.
struct BackendRequest<'o> {
    name: &'o str,
    method: &'o str,
    target: &'o str,
}

impl<'o> BackendRequest<'o> {
    fn of(origin: &'o Origin) -> Option<Self> {
        let Origin::Backend {
            name,
            method,
            target,
            ..
        } = origin
        else {
            return None;
        };
        Some(Self {
            name,
            method,
            target,
        })
    }
}

/// The path of a target, and its query with the `?`.
fn split_query(target: &str) -> (&str, &str) {
    target.split_at(target.find('?').unwrap_or(target.len()))
}

/// Whether both responses have the same content, apart from the query, parameters of the path, and a last slash.
pub(crate) fn is_same_content(there: &Origin, here: &Origin) -> bool {
    let bare_path = |target: &str| segments(split_query(&plain(target)).0).join("/");
    match (BackendRequest::of(there), BackendRequest::of(here)) {
        (Some(theirs), Some(ours)) => {
            theirs.name == ours.name && bare_path(theirs.target) == bare_path(ours.target)
        }
        _ => there == here,
    }
}

/// Requests for which the source may serve what it does not serve for `ask`: with the target in the form that the
/// front forwards, and with the host as it is sent and as the front compares it. With `with_more`, also with and without
/// a last slash, with the method in capitals, and with no condition that holds. Escaped slashes stay; `parameters` says
/// what happens to parameters of the path.
pub(crate) fn others(ask: &Ask, with_more: bool, parameters: Parameters) -> Vec<Ask> {
    let mut other = relative(ask);
    if with_more {
        other.method = other.method.to_uppercase();
    }
    let normal = resolved(&decoded(&other.target, is_unreserved));
    let (path, query) = split_query(&normal);
    let bare = match parameters {
        Parameters::Without => format!("/{}", segments(path).join("/")),
        Parameters::Kept => path.trim_end_matches('/').to_owned(),
        Parameters::NoSuch => path.trim_end_matches('/').replace(';', "_"),
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    let ends_with_slash = match parameters {
        // The last segment may consist of parameters alone.
        Parameters::Without => last.is_empty() || last.starts_with(';'),
        Parameters::Kept | Parameters::NoSuch => last.is_empty(),
    };
    let ends: &[&str] = match bare.as_str() {
        "/" => &[""],
        // The slash is the whole path.
        "" => &["/"],
        _ if with_more => &["", "/"],
        _ if ends_with_slash => &["/"],
        _ => &[""],
    };
    let mut all = Vec::new();
    for fields in other_fields(&other.fields, with_more) {
        all.extend(ends.iter().map(|end| Ask {
            target: format!("{bare}{end}{query}"),
            fields: fields.clone(),
            ..other.clone()
        }));
    }
    all
}

/// The fields of a request with its host as it is sent and as the front compares it. Without `with_more` its conditions
/// stay; else they are left out, or are there but do not hold, because the source may ask whether they are there.
fn other_fields(fields: &[(String, String)], with_more: bool) -> Vec<Vec<(String, String)>> {
    let mut all = vec![fields.to_vec()];
    let is_condition = |it: &(String, String)| CONDITIONS.contains(&it.0.as_str());
    if with_more && fields.iter().any(is_condition) {
        let plain = fields.iter().filter(|it| !is_condition(it)).cloned();
        let unmet = fields.iter().filter_map(|(name, value)| {
            let unmet = match name.as_str() {
                "If-None-Match" => "\"other\"",
                "If-Modified-Since" => "Thu, 01 Jan 1970 00:00:00 GMT",
                other if CONDITIONS.contains(&other) => return None,
                _ => value.as_str(),
            };
            Some((name.clone(), unmet.to_owned()))
        });
        all = vec![plain.collect(), unmet.collect()];
    }
    if !with_more && fields.iter().any(|it| it.0 == "Range") {
        // The source may have less content than the range begins with: 416.
        let mut from_start = fields.to_vec();
        for (_, value) in from_start.iter_mut().filter(|it| it.0 == "Range") {
            "bytes=0-".clone_into(value);
        }
        all.push(from_start);
    }
    if has_odd_host(fields) {
        for mut compared in all.clone() {
            for (_, value) in compared.iter_mut().filter(|it| it.0 == "Host") {
                *value = compared_host(value);
            }
            all.push(compared);
        }
    }
    all
}

/// Whether the front compares another host than the one that is sent.
pub(crate) fn has_odd_host(fields: &[(String, String)]) -> bool {
    let mut hosts = fields.iter().filter(|it| it.0 == "Host");
    hosts.any(|it| compared_host(&it.1) != it.1)
}

/// A host as the front compares it: in lower case, without its port and a last dot. A client can also send this form.
fn compared_host(host: &str) -> String {
    let lower = host.to_ascii_lowercase();
    let name = match lower.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => &lower,
    };
    name.strip_suffix('.').unwrap_or(name).to_owned()
}

/// The request with a target that is no absolute URL; the URL's host becomes that of the fields.
fn relative(ask: &Ask) -> Ask {
    let mut relative = ask.clone();
    let mut schemes = ["http://", "https://"].iter();
    if let Some(url) = schemes.find_map(|it| ask.target.strip_prefix(it)) {
        let (host, target) = url.split_at(url.find('/').unwrap_or(url.len()));
        relative.target = target.to_owned();
        for (_, value) in relative.fields.iter_mut().filter(|it| it.0 == "Host") {
            host.clone_into(value);
        }
    }
    relative
}

/// What is done with the parameters of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameters {
    Kept,
    /// They are removed.
    Without,
    /// They become a part of their segment, so that rules about parameters do not match.
    NoSuch,
}

/// The segments of a path without their parameters.
fn segments(path: &str) -> Vec<&str> {
    let without_parameters = path
        .split('/')
        .map(|segment| segment.split_once(';').map_or(segment, |(bare, _)| bare));
    without_parameters.filter(|it| !it.is_empty()).collect()
}

/// A target with its escapes decoded, its slashes merged and its dot segments resolved.
fn plain(target: &str) -> String {
    resolved(&decoded(target, |_| true))
}

/// Whether a byte means the same with and without an escape (RFC 3986, section 2.3).
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// A target in whose path the escapes of those bytes are decoded for which `is_such` is true.
fn decoded(target: &str, is_such: impl Fn(u8) -> bool) -> String {
    let (path, query) = split_query(target);
    let bytes = path.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let escape = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let value = escape.and_then(|it| u8::from_str_radix(it, 16).ok());
        match value.filter(|it| is_such(*it)) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned() + query
}

/// A target with its slashes merged and its dot segments resolved.
fn resolved(target: &str) -> String {
    let (path, query) = split_query(target);
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let is_folder = ["/", "/.", "/.."].iter().any(|it| path.ends_with(it));
    let end = if is_folder && !segments.is_empty() {
        "/"
    } else {
        ""
    };
    format!("/{}{end}{query}", segments.join("/"))
}

/// The worst difference between the fields that reach the backends; `None` without one.
fn of_fields(ask: &Ask, there: &Origin, here: &Origin) -> Option<Verdict> {
    let (Origin::Backend { fields: theirs, .. }, Origin::Backend { fields: ours, .. }) =
        (there, here)
    else {
        return None;
    };
    let is_forged = |value: &str| FORGERIES.iter().any(|forgery| value.contains(forgery));
    let mut worst = None;
    for (name, _) in ours {
        let (there, here) = (values(theirs, name), values(ours, name)?);
        // Several lines of cookies are one list: RFC 9113, section 8.2.3.
        // Paths in fields are encoded: docs/import.md.
        let is_same = |it: &str| {
            let is_cookie = name == "cookie" && it == here.replace("; ", ", ");
            it == here || is_cookie || it.starts_with('/') && it == plain(&here)
        };
        if there.as_deref().is_some_and(is_same) {
            continue;
        }
        let is_joined = there
            .as_deref()
            .is_some_and(|it| takes_first_line(ask, it, &here));
        let verdict = match name.as_str() {
            // The front sends the client's Host unless the source sets another: docs/import.md says so.
            "host" => Verdict::Other,
            _ if is_joined => Verdict::Other,
            _ if is_forged(&here) && !there.as_deref().is_some_and(is_forged) => {
                Verdict::Door(Door::Forged)
            }
            name if OWN.contains(&name) => Verdict::Other,
            // httpd removes what a client names in `Connection`, also if httpd has set it itself. The front removes what
            // the client sent, and then sets its own fields. It is the stricter one: no client gets rid of a field that
            // says who it is, and none takes credentials out of a request.
            name if there.is_none()
                && is_of_connection(ask, name)
                && (name == "authorization" || !is_of_client(ask, name, &here)) =>
            {
                Verdict::Other
            }
            _ => Verdict::Door(Door::Field),
        };
        // Verdicts are ordered from the best to the worst.
        worst = worst.max(Some(verdict));
    }
    worst
}

/// Whether two values differ only because nginx before 1.23 takes the first line of a client's field for its variable
/// `$http_NAME`. The front joins all lines, as later versions do. The client could send the joined value as one line, which
/// every version passes on.
fn takes_first_line(ask: &Ask, there: &str, here: &str) -> bool {
    ask.fields.iter().any(|(name, first)| {
        let lines = client_lines(ask, name);
        let has_several = lines.len() > 1 && lines[0] == first;
        has_several && there.replacen(first, &lines.join(", "), 1) == here
    })
}

/// Whether a value has one that the client sent in this field.
fn is_of_client(ask: &Ask, name: &str, value: &str) -> bool {
    client_lines(ask, name).iter().any(|it| value.contains(it))
}

/// The values of the client's lines of a field.
fn client_lines<'a>(ask: &'a Ask, name: &str) -> Vec<&'a str> {
    let lines = ask
        .fields
        .iter()
        .filter(|it| it.0.eq_ignore_ascii_case(name));
    lines.map(|it| it.1.as_str()).collect()
}

/// Whether the client named this field in `Connection`, so that httpd removes it.
fn is_of_connection(ask: &Ask, name: &str) -> bool {
    client_lines(ask, "connection").iter().any(|it| {
        it.split(',')
            .any(|option| option.trim().eq_ignore_ascii_case(name))
    })
}

/// Whether a browser may do more with the front's response than with the source's.
fn loosened(ask: &Ask, theirs: &Answer, ours: &Answer, said: &str) -> Option<Verdict> {
    let report = said.to_ascii_lowercase();
    let is_lost = |name: &&str| {
        let (there, here) = (theirs.field(name), ours.field(name));
        there.is_some_and(|it| !has_elements(here.as_deref(), &it)) && !report.contains(name)
    };
    let media_type = |answer: &Answer| {
        let value = answer.field("content-type").unwrap_or_default();
        let without_parameters = value.split_once(';').map_or(&*value, |it| it.0);
        without_parameters.trim().to_owned()
    };
    let our_type = media_type(ours);
    let is_active = ACTIVE.contains(&our_type.as_str()) && media_type(theirs) != our_type;
    let is_loosened = (is_active && !is_own_text(ask, ours)) || GUARDS.iter().any(is_lost);
    is_loosened.then_some(Verdict::Door(Door::Loosened))
}

/// Whether a field has just the elements of this value. An element forbids no more if it is there twice.
fn has_elements(field: Option<&str>, value: &str) -> bool {
    let elements =
        |it: &str| -> BTreeSet<String> { it.split(',').map(|it| it.trim().to_owned()).collect() };
    field.is_some_and(|it| elements(it) == elements(value))
}

/// Whether a response is a text of the configuration that has nothing of the request. nginx gives it the type of the
/// request's extension, and the front one for all requests: docs/import.md. No client's script runs by that.
fn is_own_text(ask: &Ask, answer: &Answer) -> bool {
    let Some(Origin::Text(text)) = &answer.origin else {
        return false;
    };
    let values = ask.fields.iter().map(|it| it.1.as_str());
    let mut all = values.chain([ask.method.as_str(), ask.target.as_str()]);
    !all.any(|it| !it.is_empty() && text.contains(it))
}

/// The values of forged fields.
pub(crate) const FORGERIES: [&str; 2] = ["forged", "192.0.2.66"];

/// Fields by which a client has content already, or wants a part of it.
const CONDITIONS: [&str; 6] = [
    "If-Match",
    "If-Modified-Since",
    "If-None-Match",
    "If-Range",
    "If-Unmodified-Since",
    "Range",
];

/// The statuses with which a source refuses; 0 stands for a closed connection.
const REFUSALS: [u16; 6] = [0, 401, 403, 405, 410, 413];

/// Fields that each server writes in its own way.
const OWN: [&str; 12] = [
    "connection",
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
    "x-request-id",
    "content-length",
    "transfer-encoding",
];

/// Fields of responses that protect browsers.
const GUARDS: [&str; 5] = [
    "content-disposition",
    "content-security-policy",
    "strict-transport-security",
    "x-content-type-options",
    "x-frame-options",
];

/// Types whose scripts a browser runs.
const ACTIVE: [&str; 5] = [
    "application/xhtml+xml",
    "image/svg+xml",
    "text/html",
    "text/javascript",
    "text/xml",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(fields: &[(&str, &str)]) -> Answer {
        let owned = fields.iter().map(|it| (it.0.to_owned(), it.1.to_owned()));
        Answer {
            status: 200,
            origin: Some(Origin::Backend {
                name: "one".to_owned(),
                method: "GET".to_owned(),
                target: "/".to_owned(),
                fields: owned.collect(),
            }),
            fields: Vec::new(),
        }
    }

    #[test]
    fn credentials_that_a_client_names_in_connection_stay() {
        let ours = answer(&[("authorization", "Basic x")]);
        let mut ask = Ask::get("/", "a.org");
        ask.fields
            .push(("Authorization".to_owned(), "Basic x".to_owned()));
        let verdict = |ask: &Ask, theirs: &Answer| judge(ask, theirs, &ours, "");
        let door = Verdict::Door(Door::Field);
        assert_eq!(verdict(&ask, &answer(&[])), door);
        ask.fields
            .push(("Connection".to_owned(), "close, authorization".to_owned()));
        assert_eq!(verdict(&ask, &answer(&[])), Verdict::Other);
        assert_eq!(
            verdict(&ask, &answer(&[("authorization", "Basic y")])),
            door
        );
    }

    #[test]
    fn paths_in_fields_may_be_encoded() {
        let ask = Ask::get("/", "a.org");
        for (here, expected) in [
            ("/a%3fb", Verdict::Alike),
            ("/a%3f", Verdict::Door(Door::Field)),
        ] {
            let verdict = judge(
                &ask,
                &answer(&[("x-path", "/a?b")]),
                &answer(&[("x-path", here)]),
                "",
            );
            assert_eq!(verdict, expected, "{here}");
        }
    }

    fn with_field(ask: &Ask, name: &str, value: &str) -> Ask {
        let mut with = ask.clone();
        with.fields.push((name.to_owned(), value.to_owned()));
        with
    }

    #[test]
    fn what_a_server_sets_stays_whatever_clients_name_in_connection() {
        let (there, here) = (answer(&[]), answer(&[("x-role", "guest")]));
        let ask = Ask::get("/", "a.org");
        let verdict = |ask: &Ask| judge(ask, &there, &here, "");
        assert_eq!(verdict(&ask), Verdict::Door(Door::Field));
        let named = with_field(&ask, "Connection", "close, X-Role");
        assert_eq!(verdict(&named), Verdict::Other);
        // It is what the client sent, which has to go.
        let own = with_field(&named, "X-Role", "guest");
        assert_eq!(verdict(&own), Verdict::Door(Door::Field));
    }

    #[test]
    fn lines_of_a_client_may_be_joined() {
        let ask = with_field(&Ask::get("/", "a.org"), "X-Role", "guest");
        let two = with_field(&ask, "X-Role", "forged");
        let (there, here) = (
            answer(&[("x-user", "<guest>")]),
            answer(&[("x-user", "<guest, forged>")]),
        );
        assert_eq!(judge(&two, &there, &here, ""), Verdict::Other);
        let door = Verdict::Door(Door::Forged);
        assert_eq!(judge(&ask, &there, &here, ""), door);
        let other = answer(&[("x-user", "<forged>")]);
        assert_eq!(judge(&two, &there, &other, ""), door);
    }

    #[test]
    fn other_requests_have_the_host_and_the_conditions_changed() {
        let ask = with_field(&Ask::get("/a", "B.ORG.:443"), "If-None-Match", "*");
        let shown = |with_more| {
            let all = others(&ask, with_more, Parameters::Kept);
            let shown = all.iter().map(|it| {
                let values: Vec<&str> = it.fields.iter().map(|it| it.1.as_str()).collect();
                format!("{} {}", it.target, values.join(" "))
            });
            shown.collect::<Vec<_>>()
        };
        assert_eq!(shown(false), ["/a B.ORG.:443 *", "/a b.org *"]);
        let more = shown(true);
        for expected in ["/a B.ORG.:443", "/a/ b.org \"other\""] {
            assert!(more.iter().any(|it| it == expected), "{more:?}");
        }
        assert!(more.iter().all(|it| !it.ends_with(" *")), "{more:?}");
    }

    #[test]
    fn a_segment_of_parameters_alone_ends_with_a_slash() {
        for (target, expected) in [("/a/;x", "/a/"), ("/a;x", "/a"), ("/a;x/", "/a/")] {
            let all = others(&Ask::get(target, "a"), false, Parameters::Without);
            let targets: Vec<&str> = all.iter().map(|it| it.target.as_str()).collect();
            assert_eq!(targets, [expected], "{target}");
        }
    }

    #[test]
    fn a_response_is_loosened_if_it_may_do_more() {
        let of = |text: &str, fields: &[(&str, &str)]| Answer {
            status: 200,
            origin: Some(Origin::Text(text.to_owned())),
            fields: fields
                .iter()
                .map(|it| (it.0.to_owned(), it.1.to_owned()))
                .collect(),
        };
        let ask = Ask::get("/<script>", "a.org");
        let door = Verdict::Door(Door::Loosened);
        let html = ("content-type", "text/html");
        let frame = |value| ("x-frame-options", value);
        for (text, there, here, expected) in [
            ("ok", &[][..], &[html][..], Verdict::Alike),
            ("at /<script>", &[], &[html], door),
            ("ok", &[frame("DENY")], &[], door),
            (
                "ok",
                &[frame("DENY, DENY")],
                &[frame("DENY")],
                Verdict::Alike,
            ),
            ("ok", &[frame("DENY")], &[frame("SAMEORIGIN")], door),
        ] {
            let verdict = judge(&ask, &of(text, there), &of(text, here), "");
            assert_eq!(verdict, expected, "{text} {there:?} {here:?}");
        }
    }
}
