//! `/api/v1`: answers what can be read there, and carries out what changes the front.

use std::time::Duration;

use catamaran_admin_api::{EventList, OperationReport, ProbeResult, UpgradeStart};
use catamaran_message::name::IF_MATCH;
use http::{Method, StatusCode};
use rustix::process::geteuid;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::reply::Reply;
use super::request::{Request, parameter, parameters, segments};
use super::{Desk, access, caches, figures, limits, site, status, tls};
use crate::control::patch::Patch;
use crate::control::{self, Change, Refusal};
use crate::explain::hidden::hide;
use crate::explain::{Question, explain_on};
use crate::tls::of_listener;
use crate::worker::FrontState;

/// Answers a request that [`super::access`] has let through.
pub(super) async fn answer(desk: &Desk, request: &Request) -> Reply {
    let Some(segments) = segments(&request.head.target.path) else {
        return Reply::not_found("the path cannot be decoded");
    };
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let rest = match &segments[..] {
        ["api", "v1", rest @ ..] => rest,
        rest @ ["tls"] => rest,
        _ => {
            return Reply::not_found(
                "there is nothing at this path; try /, /healthz, /readyz, /metrics or /api/v1/status",
            );
        }
    };
    let shared = &*desk.shared;
    let method = match request.head.method {
        Method::HEAD => &Method::GET,
        ref method => method,
    };
    match (rest, method) {
        (["status"], &Method::GET) => Reply::json(&status::all(desk)),
        (["events"], &Method::GET) => events(shared, request),
        (["explain"], &Method::GET) => explain(desk, request),
        (["reload"], &Method::POST) => reload(shared).await,
        (["log", "reopen"], &Method::POST) => reopen(shared),
        (["upgrade"], &Method::POST) => upgrade(shared),
        (["reload" | "upgrade"] | ["log", "reopen"], _) => Reply::method("POST"),
        (["tls"], &Method::GET) => Reply::json(&tls::all(shared)),
        (["tls", name, "renew"], &Method::POST) => tls::renew(shared, name),
        (["tls", _, "renew"], _) => Reply::method("POST"),
        (["listeners"], &Method::GET) => Reply::json(&site::listeners(&shared.site.load_full())),
        (["routes"], &Method::GET) => Reply::json(&site::routes(&shared.site.load_full())),
        (["caches"], &Method::GET) => Reply::json(&caches::all(&shared.site.load_full())),
        (["caches", name, "keys"], &Method::GET) => caches::keys(&shared.site.load_full(), name),
        (["caches", _, "keys"], _) => Reply::method("GET, HEAD"),
        (["caches", name, "purge"], &Method::POST) => purge(shared, request, name),
        (["caches", _, "purge"], _) => Reply::method("POST"),
        (["limits"], &Method::GET) => Reply::json(&limits::all(&shared.site.load_full())),
        (["limits", name, "forget"], &Method::POST) => forget(shared, request, name),
        (["limits", _, "forget"], _) => Reply::method("POST"),
        (
            [
                "status" | "events" | "explain" | "tls" | "listeners" | "routes" | "caches"
                | "limits",
            ],
            _,
        ) => Reply::method("GET, HEAD"),
        (["upstreams", upstream], &Method::GET) => show(shared, upstream, None),
        (["upstreams", upstream, "backends", backend], &Method::GET) => {
            show(shared, upstream, Some(backend))
        }
        (["upstreams", upstream], &Method::PATCH) => patch_many(shared, request, upstream),
        (["upstreams", upstream, "backends", backend], &Method::PATCH) => {
            patch_one(shared, request, upstream, backend)
        }
        (["upstreams", _] | ["upstreams", _, "backends", _], _) => {
            Reply::method("GET, HEAD, PATCH")
        }
        (["upstreams", upstream, "backends", backend, "reset"], &Method::POST) => {
            let patches = vec![((*backend).to_owned(), Patch::reset())];
            change(shared, request, upstream, Some(backend), patches, true)
        }
        (["upstreams", upstream, "backends", backend, "probe"], &Method::POST) => {
            probe(shared, upstream, backend).await
        }
        (["upstreams", _, "backends", _, "reset" | "probe"], _) => Reply::method("POST"),
        _ => Reply::not_found("there is no such thing in this API"),
    }
}

/// Reads the configuration again, and answers with the outcome.
async fn reload(shared: &FrontState) -> Reply {
    let wrong = |detail: &str| Reply::problem(StatusCode::CONFLICT, "reload", detail);
    match shared.control.reload().await {
        Some(Ok(report)) => Reply::json(&OperationReport { report }),
        Some(Err(faults)) => wrong(&faults),
        None => wrong("this front has no file to read again, or does not take commands now"),
    }
}

/// Starts another process in place of this one. `GET /api/v1/status` tells the result.
fn upgrade(shared: &FrontState) -> Reply {
    let can_start = !shared.is_leaving();
    match can_start.then(|| shared.control.upgrade()).flatten() {
        Some(number) => {
            let process = std::process::id();
            Reply::json(&UpgradeStart { process, number }).status(StatusCode::ACCEPTED)
        }
        None => Reply::problem(
            StatusCode::CONFLICT,
            "upgrade",
            "this front cannot start another process, or is busy with a drain or another upgrade",
        ),
    }
}

/// Explains what the front would do with a request.
fn explain(desk: &Desk, request: &Request) -> Reply {
    let (shared, config) = (&*desk.shared, desk.config.load());
    let query = request.head.target.query.as_deref();
    let text = |name: &str| parameter(query, name).unwrap_or_default();
    let question = Question {
        url: text("url"),
        method: text("method"),
        headers: parameters(query, "header").collect(),
        from: text("from"),
        listen: text("listen"),
        client_certificate: text("client_certificate") == "true",
        auth: text("auth"),
        http2: text("http2") == "true",
    };
    let profiles = shared.profiles.load();
    let explained = explain_on(&shared.site.load_full(), &question, |listener| {
        Some(of_listener(&profiles, listener)?.current())
    });
    match explained {
        Ok(mut explanation) => {
            let own = geteuid().as_raw();
            if !access::sees_values(&config, request, own) {
                hide(&mut explanation, &config.hidden);
            }
            Reply::json(&explanation)
        }
        Err(detail) => syntax(&detail),
    }
}

/// Purges responses from a cache, as the request's body says.
fn purge(shared: &FrontState, request: &Request, name: &str) -> Reply {
    match json_object(&request.body) {
        Ok(body) => caches::purge(&shared.site.load_full(), name, &body),
        Err(detail) => syntax(&detail),
    }
}

/// Has a limit forget a key, as the request's body says.
fn forget(shared: &FrontState, request: &Request, name: &str) -> Reply {
    match json_object(&request.body) {
        Ok(body) => limits::forget(&shared.site.load_full(), name, &body),
        Err(detail) => syntax(&detail),
    }
}

/// Opens the access log's file again, after it has been moved away.
fn reopen(shared: &FrontState) -> Reply {
    match shared.access_log.reopen() {
        Ok(()) => Reply::json(&OperationReport {
            report: "the access log was opened again".to_owned(),
        }),
        Err(error) => Reply::problem(
            StatusCode::CONFLICT,
            "log",
            &format!("the access log cannot be opened: {error}"),
        ),
    }
}

/// Shows an upstream, or one of its backends, with the version of its settings as ETag.
fn show(shared: &FrontState, upstream_name: &str, backend_name: Option<&str>) -> Reply {
    let overrides = shared.control.lock();
    let discovered = &shared.control.discovered;
    let site = shared.site.load_full();
    let upstream = match control::find_upstream(&site, upstream_name) {
        Ok(upstream) => upstream,
        Err(refusal) => return refusal_reply(&refusal),
    };
    let Some(backend_name) = backend_name else {
        let version = control::version_of_all(upstream, &overrides);
        return Reply::json(&status::upstream(upstream, &overrides, discovered)).version(&version);
    };
    match control::find_member(upstream, backend_name) {
        Ok(member) => {
            let version = control::version(upstream, member, &overrides);
            let shown = status::member(upstream, member, &overrides, discovered);
            Reply::json(&shown).version(&version)
        }
        Err(refusal) => refusal_reply(&refusal),
    }
}

/// Changes one backend. The body is a patch, which may also have `"force"`.
fn patch_one(shared: &FrontState, request: &Request, upstream: &str, backend: &str) -> Reply {
    let read = || -> Result<_, String> {
        let members = json_object(&request.body)?;
        let force = read_force(&members)?;
        Ok((Patch::read(&members)?, force))
    };
    match read() {
        Ok((patch, force)) => {
            let patches = vec![(backend.to_owned(), patch)];
            change(shared, request, upstream, Some(backend), patches, force)
        }
        Err(detail) => syntax(&detail),
    }
}

/// Changes several backends of an upstream.
fn patch_many(shared: &FrontState, request: &Request, upstream: &str) -> Reply {
    match read_patches(&request.body) {
        Ok((patches, force)) => change(shared, request, upstream, None, patches, force),
        Err(detail) => syntax(&detail),
    }
}

/// Reads `{"backends": {"a": {...}, "b": {...}}, "force": false}`: a patch for each backend, and `force`.
fn read_patches(body: &[u8]) -> Result<(Vec<(String, Patch)>, bool), String> {
    let settings = json_object(body)?;
    let force = read_force(&settings)?;
    let backends = settings.get("backends").and_then(Value::as_object);
    let backends = backends.ok_or("`backends` must have a patch for each backend named")?;
    let is_known = |key: &str| matches!(key, "backends" | "force");
    if let Some(key) = settings.keys().find(|key| !is_known(key)) {
        return Err(format!("there is no setting {key:?} of an upstream"));
    }
    let mut patches = Vec::with_capacity(backends.len());
    for (backend, value) in backends {
        let members = value.as_object().ok_or("a patch must be an object")?;
        let patch = Patch::read(members).map_err(|detail| format!("{backend:?}: {detail}"))?;
        patches.push((backend.clone(), patch));
    }
    if patches.is_empty() {
        return Err("`backends` names none".to_owned());
    }
    Ok((patches, force))
}

/// Changes backends if their version is still the one that the client has seen (`If-Match`);
/// answers with the new state.
fn change(
    shared: &FrontState,
    request: &Request,
    upstream: &str,
    backend: Option<&str>,
    patches: Vec<(String, Patch)>,
    force: bool,
) -> Reply {
    let Some(if_match) = request.head.headers.get(IF_MATCH) else {
        let detail = "say which version is to be changed: If-Match with the ETag of a GET, or *";
        return Reply::problem(StatusCode::PRECONDITION_REQUIRED, "if-match", detail);
    };
    let version = match str::from_utf8(if_match).unwrap_or_default().trim() {
        // Any version may be changed.
        "*" => None,
        etag => Some(etag.trim_matches('"')),
    };
    let by = request.author();
    let changed = shared.control.change(
        &shared.site,
        &Change {
            upstream,
            whole: backend.is_none(),
            patches,
            version,
            force,
            by: &by,
        },
    );
    match changed {
        Ok(()) => show(shared, upstream, backend),
        Err(refusal) => refusal_reply(&refusal),
    }
}

fn refusal_reply(refusal: &Refusal) -> Reply {
    let (status, token) = match refusal {
        Refusal::NoUpstream(_) => (StatusCode::NOT_FOUND, "no-upstream"),
        Refusal::NoBackend { .. } => (StatusCode::NOT_FOUND, "no-backend"),
        Refusal::Stale { .. } => (StatusCode::PRECONDITION_FAILED, "stale"),
        Refusal::LastBackend { .. } => (StatusCode::CONFLICT, "last-backend"),
        Refusal::HandedOver => (StatusCode::SERVICE_UNAVAILABLE, "handed-over"),
    };
    let reply = Reply::problem(status, token, &refusal.to_string());
    match refusal {
        Refusal::Stale { version } => reply.version(version),
        _ => reply,
    }
}

/// Probes a backend now. Answers with the result, or with 202 if it takes longer than
/// [`PROBE_WAIT`].
async fn probe(shared: &FrontState, upstream: &str, backend: &str) -> Reply {
    let (number, probe) = {
        let site = shared.site.load_full();
        let member = control::find_upstream(&site, upstream)
            .and_then(|upstream| control::find_member(upstream, backend));
        match member {
            Ok(member) => member.backend.begin_probe(),
            Err(refusal) => return refusal_reply(&refusal),
        }
    };
    // In a task of its own, so that the probe is completed and counted even if this client leaves.
    let task = tokio::spawn(probe);
    match timeout(PROBE_WAIT, task).await {
        Ok(Ok(probe)) => Reply::json(&ProbeResult {
            probing: false,
            number,
            probe: Some(figures::last_probe(&probe)),
        }),
        _ => Reply::json(&ProbeResult {
            probing: true,
            number,
            probe: None,
        })
        .status(StatusCode::ACCEPTED),
    }
}

fn events(shared: &FrontState, request: &Request) -> Reply {
    let after = parameter(request.head.target.query.as_deref(), "after");
    let Ok(after) = after.as_deref().unwrap_or("0").parse() else {
        return syntax("`after` must be the number of an event");
    };
    let events = shared.control.events.after(after).into_iter();
    Reply::json(&EventList {
        events: events.map(status::event).collect(),
    })
}

fn syntax(detail: &str) -> Reply {
    Reply::problem(StatusCode::BAD_REQUEST, "syntax", detail)
}

fn json_object(body: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(json_object)) => Ok(json_object),
        Ok(_) => Err("the body must be a JSON object".to_owned()),
        Err(error) => Err(format!("the body is no JSON: {error}")),
    }
}

fn read_force(body: &Map<String, Value>) -> Result<bool, String> {
    match body.get("force") {
        None => Ok(false),
        Some(Value::Bool(force)) => Ok(*force),
        Some(_) => Err("`force` must be true or false".to_owned()),
    }
}

/// How long an answer waits for the result of a probe; less than an answer may take.
const PROBE_WAIT: Duration = Duration::from_secs(5);
