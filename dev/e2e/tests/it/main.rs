//! The built binary in front of real servers, end to end.
//!
//! Each test starts fronts of its own, which takes milliseconds, and shares one Tomcat, which takes
//! seconds. What is true of every way into Tomcat is tested over all of them: see [`through`].

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "the whole crate is a test; clippy exempts only the functions marked as one"
)]

mod access_log;
mod admin_page;
mod answers;
mod application;
mod attributes;
mod backend_tls;
mod bench;
mod bench_data;
mod bench_gate;
mod bench_http2;
mod bench_knee;
mod bench_memcached;
mod bench_page;
mod bench_replay;
mod bench_report;
mod bench_versus;
mod beside_mod_jk;
mod bodies;
mod builds;
mod compression;
mod concurrency;
mod config_watch;
mod connector;
mod cors;
mod day_two;
mod decision;
mod deploy;
mod descriptors;
mod error_pages;
mod examples;
mod explain;
mod failures;
mod files;
mod files_browser;
mod files_many;
mod fleet;
mod h2c_balancer;
mod hardening;
mod http2;
mod identity;
mod import;
mod import_beside;
mod import_field;
mod import_limits;
mod import_nginx;
mod import_peers;
mod import_vhost;
mod interop;
mod kubernetes;
mod lab;
mod lab_faults;
mod lab_page;
mod leaving;
mod lifecycle;
mod limits;

mod listeners;
mod look;
mod monitoring;
mod names;
mod namespace;
mod one_server;
mod operate;
mod pages;
mod proxied_by;
mod redeploy;
mod reload;
mod rewrite;
mod routes;
mod rules;
mod secrets;
mod sessions;
mod shop;
mod sign_on;
mod silence;
mod systemd;
mod targets;
mod through;
mod tls;
mod tomcat;
mod traces;
mod typed;
mod unread;
mod up;
mod upgrade;
mod websocket;
