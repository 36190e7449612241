//! The application side: AJP13 and HTTP/1.1 served to an application, as Tomcat's `<Connector>`.

mod app;
mod attribute;
mod config;
mod conn;
mod counters;
mod handler;
mod io;
mod running;

pub use crate::{
    app::App,
    attribute::AllowedAttributes,
    config::{Address, Config, IoModel, Listener, Protocol, Secret},
    counters::Snapshot,
    handler::{Body, BodyLength, Handler, Origin, Request, Response, Tls},
    running::{Running, StartError, start},
};
