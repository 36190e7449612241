//! What two answers to one request mean: the pure rules by which a difference is a door.

use crate::ask::{Answer, Ask, Origin, values};

/// What becomes of a request at both servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Both answer alike.
    Alike,
    /// The import closes what the source serves.
    Closed,
    /// A difference that docs/import.md names, or that keeps nobody from anything.
    Other,
    Door(Door),
}

/// The kinds of doors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Door {
    /// The source refuses (401, 403, 405, a closed connection), the import serves.
    Refused,
    /// The source answers otherwise without content (404, a redirect, an error), the import serves what the source
    /// serves nowhere for this client.
    Absent,
    /// Both serve, from different places.
    Elsewhere,
    /// What a client claims reaches the application, and not in the source.
    Forged,
    /// The application is told something else.
    Field,
    /// A response lacks what the source guards it with.
    Loosened,
    /// The front listens where the source does not.
    Wider,
    /// Nothing that can be served was written.
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

/// Compares the answers of the source and of the import; `said` is the report of the import.
///
/// [`Door::Absent`] is a suspicion: whoever asked has to ask the source for [`others`].
pub(crate) fn judge(theirs: &Answer, ours: &Answer, said: &str) -> Verdict {
    match (&theirs.origin, &ours.origin) {
        (None, None) if theirs.status == ours.status => Verdict::Alike,
        (None, None) => Verdict::Other,
        (Some(_), None) => Verdict::Closed,
        // nginx refuses each method in lower case as no request at all.
        (None, Some(Origin::Backend { method, .. }))
            if theirs.status == 400 && method.contains(|it: char| it.is_ascii_lowercase()) =>
        {
            Verdict::Other
        }
        (None, Some(_)) if REFUSALS.contains(&theirs.status) => Verdict::Door(Door::Refused),
        (None, Some(_)) => Verdict::Door(Door::Absent),
        (Some(there), Some(here)) if !is_same(there, here) => Verdict::Door(Door::Elsewhere),
        (Some(there), Some(here)) => of_fields(there, here)
            .or_else(|| loosened(theirs, ours, said))
            .unwrap_or(Verdict::Alike),
    }
}

/// The same file or backend, with the same request for it.
fn is_same(there: &Origin, here: &Origin) -> bool {
    match (there, here) {
        (
            Origin::Backend {
                name,
                method,
                target,
                ..
            },
            Origin::Backend {
                name: our_name,
                method: our_method,
                target: our_target,
                ..
            },
        ) => name == our_name && method == our_method && plain(target) == plain(our_target),
        _ => there == here,
    }
}

/// Whether an origin is another one's content, whatever its parameters and last slash.
pub(crate) fn is_same_content(there: &Origin, here: &Origin) -> bool {
    let bare = |target: &str| {
        let path = plain(target);
        segments(path.split('?').next().unwrap_or_default()).join("/")
    };
    match (there, here) {
        (
            Origin::Backend { name, target, .. },
            Origin::Backend {
                name: other,
                target: our,
                ..
            },
        ) => name == other && bare(target) == bare(our),
        _ => there == here,
    }
}

/// The requests by which the source may serve what it does not serve by this one: in the plainest form and, if asked
/// for, with a last slash, without, and with its method in capitals.
pub(crate) fn others(ask: &Ask, with_more: bool) -> Vec<Ask> {
    let mut other = ask.clone();
    if let Some(absolute) = ask.target.strip_prefix("http://") {
        let at = absolute.find('/').unwrap_or(absolute.len());
        let (host, target) = absolute.split_at(at);
        other.target = target.to_owned();
        for (_, value) in other.fields.iter_mut().filter(|it| it.0 == "Host") {
            host.clone_into(value);
        }
    }
    let plain = plain(&other.target);
    let (path, query) = plain
        .find('?')
        .map_or((plain.as_str(), ""), |at| plain.split_at(at));
    let bare = format!("/{}", segments(path).join("/"));
    let own_end = if path.ends_with('/') { "/" } else { "" };
    let ends = if bare == "/" {
        [""].as_slice()
    } else if with_more {
        &["", "/"][..]
    } else {
        &[own_end][..]
    };
    if with_more {
        other.method = other.method.to_uppercase();
    }
    let targets = ends.iter().map(|end| format!("{bare}{end}{query}"));
    targets
        .map(|target| Ask {
            target,
            ..other.clone()
        })
        .collect()
}

/// The segments of a path without their parameters.
fn segments(path: &str) -> Vec<&str> {
    let each = path
        .split('/')
        .map(|it| it.split(';').next().unwrap_or_default());
    each.filter(|it| !it.is_empty()).collect()
}

/// A target with its escapes decoded, its slashes merged and its dot segments resolved.
fn plain(target: &str) -> String {
    let (path, query) = target
        .split_once('?')
        .map_or((target, None), |it| (it.0, Some(it.1)));
    let bytes = path.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let escape = path.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match escape.and_then(|it| u8::from_str_radix(it, 16).ok()) {
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
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let is_folder = ["/", "/.", "/.."].iter().any(|it| decoded.ends_with(it));
    let ends_in_slash = is_folder && !segments.is_empty();
    let end = if ends_in_slash { "/" } else { "" };
    let query = query.map_or_else(String::new, |it| format!("?{it}"));
    format!("/{}{end}{query}", segments.join("/"))
}

/// What the fields that reach the backend say.
fn of_fields(there: &Origin, here: &Origin) -> Option<Verdict> {
    let (Origin::Backend { fields: theirs, .. }, Origin::Backend { fields: ours, .. }) =
        (there, here)
    else {
        return None;
    };
    let mut found = None;
    for (name, _) in ours {
        let (there, here) = (values(theirs, name), values(ours, name)?);
        if there.as_deref() == Some(here.as_str()) {
            continue;
        }
        let claims = FORGERIES.iter().any(|it| here.contains(it));
        let claimed_there = there
            .iter()
            .any(|it| FORGERIES.iter().any(|forged| it.contains(forged)));
        let verdict = match name.as_str() {
            // Host is the client's in the front unless the source sets it: docs/import.md notes it.
            "host" if claims && !claimed_there => Verdict::Other,
            "host" => Verdict::Other,
            _ if claims && !claimed_there => Verdict::Door(Door::Forged),
            name if OWN.contains(&name) => Verdict::Other,
            _ if there.is_none() && claims => Verdict::Door(Door::Forged),
            _ => Verdict::Door(Door::Field),
        };
        found = found.max(Some(verdict));
    }
    found
}

/// Whether a browser would do with the response what the source keeps it from.
fn loosened(theirs: &Answer, ours: &Answer, said: &str) -> Option<Verdict> {
    let lacks = |name: &&&str| {
        let said_so = said.to_ascii_lowercase().contains(**name);
        theirs.field(name).is_some() && theirs.field(name) != ours.field(name) && !said_so
    };
    let media = |answer: &Answer| {
        let media = answer.field("content-type").unwrap_or_default();
        media
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let is_active = ACTIVE.contains(&media(ours).as_str()) && media(theirs) != media(ours);
    let is_loose = is_active || GUARDS.iter().find(lacks).is_some();
    is_loose.then_some(Verdict::Door(Door::Loosened))
}

/// What a client claims in a forged field.
pub(crate) const FORGERIES: [&str; 2] = ["forged", "192.0.2.66"];

/// The statuses by which a source refuses; 0 is a closed connection.
const REFUSALS: [u16; 5] = [0, 401, 403, 405, 410];

/// Fields that each front writes in its own way.
const OWN: [&str; 11] = [
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
];

/// Fields of responses that guard what they come with.
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
