//! The status view: the state of the connector as data, JSON and a page.
//!
//! It shows, for each listener, what Tomcat's manager shows under server status. The data is read
//! from the workers' counters on request; nothing is stored for it. This module also decides who may
//! see it.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use catamaran_message::name::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, FORWARDED, VIA, X_FORWARDED_FOR,
};
use http::{Method, StatusCode};
use serde_json::Value;

use crate::{Body, IoModel, Listener, Protocol, Request, Response, Snapshot, StatusView};

/// The state and the counters of a connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The I/O model.
    pub io: IoModel,
    /// The threads that may block, of connections or of a blocking application; `None` if there are
    /// none.
    pub threads: Option<Threads>,
    /// The listeners in the order configured, with their counters.
    pub listeners: Vec<(Listener, Snapshot)>,
}

/// Threads of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The most threads that the pool may have.
    pub max: usize,
    /// The number of threads now.
    pub current: usize,
    /// The number of threads at work; on [`IoModel::Threads`] those with a connection, even an idle
    /// one.
    pub busy: usize,
    /// The number of jobs that wait for a thread.
    pub queued: usize,
}

/// The response to a request for the status page.
pub(crate) fn answer(
    request: &Request,
    view: &StatusView,
    status: impl FnOnce() -> Status,
) -> Response {
    if !may_see(request, view) {
        let text = "the status is shown to this machine and listed peers only\n";
        return Response::text(StatusCode::FORBIDDEN, text);
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Response::text(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD\n")
            .with_header(ALLOW, "GET, HEAD");
    }
    let status = status();
    let (kind, text) = if wants_html(request) {
        ("text/html; charset=utf-8", status.to_html())
    } else {
        ("application/json", status.to_json())
    };
    Response::new(StatusCode::OK, Body::Full(text.into()))
        .with_header(CONTENT_TYPE, kind)
        .with_header(CACHE_CONTROL, "no-store")
}

/// Whether the request may see the status page. Both the peer and the client must be listed, for the
/// peer may be a front that anybody can use.
fn may_see(request: &Request, view: &StatusView) -> bool {
    let origin = &request.origin;
    let client_is_listed = match origin.protocol {
        Protocol::Ajp => {
            let address_bytes = origin.remote_addr.as_deref();
            let address_text = address_bytes.and_then(|client| std::str::from_utf8(client).ok());
            let client = address_text.and_then(|client| client.parse::<IpAddr>().ok());
            client.is_some_and(|client| view.peers.contains(Some(client)))
        }
        Protocol::Http => {
            // With one of these fields, the client is behind a proxy and not the listed peer.
            let forwarded = [FORWARDED, VIA, X_FORWARDED_FOR];
            !forwarded.iter().any(|name| request.headers.contains(*name))
        }
    };
    client_is_listed && view.peers.contains(origin.peer)
}

/// Whether to answer with HTML: by the query `format=` if there is one, else by what a browser accepts.
fn wants_html(request: &Request) -> bool {
    let query = request.query.as_deref().unwrap_or_default();
    match query.strip_prefix(b"format=") {
        Some(format) => format == b"html",
        None => request
            .headers
            .text_of(ACCEPT)
            .is_some_and(|accept| accept.contains("text/html")),
    }
}

impl Status {
    /// The status as JSON; names end with their unit.
    fn to_json(&self) -> String {
        let mut json = format!("{{\n  \"io\": \"{}\",\n  \"threads\": ", self.io.as_str());
        match self.threads {
            None => json.push_str("null"),
            Some(Threads {
                max,
                current,
                busy,
                queued,
            }) => push(
                &mut json,
                format_args!(
                    "{{\"max\": {max}, \"current\": {current}, \"busy\": {busy}, \
                     \"idle\": {idle}, \"queued\": {queued}}}",
                    idle = current - busy
                ),
            ),
        }
        json.push_str(",\n  \"listeners\": [");
        let mut separator = "\n";
        for (listener, counts) in &self.listeners {
            json.push_str(separator);
            push_listener(&mut json, listener, counts);
            separator = ",\n";
        }
        json.push_str("\n  ]\n}\n");
        json
    }

    /// The status as an HTML page of tables.
    fn to_html(&self) -> String {
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Connector \
             status</title>\n<style>body {{ font-family: sans-serif }} td, th {{ padding: 0.2em \
             0.8em; text-align: right }}</style>\n<h1>Connector on {}</h1>\n",
            self.io.as_str()
        );
        if let Some(threads) = self.threads {
            push(
                &mut html,
                format_args!(
                    "<p>Threads: {} at most, {} there, {} busy; {} waiting for one</p>\n",
                    threads.max, threads.current, threads.busy, threads.queued
                ),
            );
        }
        for (listener, counts) in &self.listeners {
            push_section(&mut html, listener, counts);
        }
        html.push_str("</html>\n");
        html
    }
}

/// Appends the JSON object of a listener.
fn push_listener(json: &mut String, listener: &Listener, counts: &Snapshot) {
    let name = Value::from(listener.to_string());
    let open = counts.open();
    push(
        json,
        format_args!("    {{\"listener\": {name},\n     \"connections\": {{\"open\": {open}"),
    );
    for (state, count) in states(counts) {
        push(json, format_args!(", \"{state}\": {count}"));
    }
    json.push('}');
    for (name, value) in totals(counts) {
        push(json, format_args!(",\n     \"{name}\": {value}"));
    }
    json.push_str(",\n     \"errors\": {");
    let mut separator = "";
    for (reason, count) in &counts.refused {
        let reason = Value::from(*reason);
        push(json, format_args!("{separator}{reason}: {count}"));
        separator = ", ";
    }
    json.push_str("}}");
}

/// Appends the heading and the table of a listener.
fn push_section(html: &mut String, listener: &Listener, counts: &Snapshot) {
    let name = listener.to_string();
    let escaped = name.replace('&', "&amp;").replace('<', "&lt;");
    push(html, format_args!("<h2>{escaped}</h2>\n<table>\n"));
    let mut push_row = |name: &str, value: u64| {
        let label = name.replace('_', " ");
        push(html, format_args!("<tr><th>{label}<td>{value}\n"));
    };
    for (state, count) in states(counts) {
        push_row(&format!("connections {state}"), count);
    }
    for (total, value) in totals(counts) {
        push_row(total, value);
    }
    for (reason, count) in &counts.refused {
        push_row(&format!("errors: {reason}"), *count);
    }
    html.push_str("</table>\n");
}

/// The connections of a listener by what they do, with the names that the page and the metrics use.
fn states(counts: &Snapshot) -> [(&'static str, u64); 5] {
    let connections = counts.connections;
    [
        ("accepting", connections.accepting),
        ("reading", connections.reading),
        ("serving", connections.serving),
        ("writing", connections.writing),
        ("keep_alive", connections.keep_alive),
    ]
}

fn totals(counts: &Snapshot) -> [(&'static str, u64); 7] {
    [
        ("accepted", counts.accepted),
        ("closed", counts.closed),
        ("requests", counts.requests),
        ("bytes_in", counts.bytes_in),
        ("bytes_out", counts.bytes_out),
        ("processing_time_us", micros(counts.processing_time)),
        ("processing_time_max_us", micros(counts.processing_time_max)),
    ]
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = text.write_fmt(arguments);
}
