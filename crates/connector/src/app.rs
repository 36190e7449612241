//! The built-in application: pages, byte ranges, delays and mirrors for demos, tests and the lab.

use http::StatusCode;

use crate::handler::{Handler, Request, Response};

/// The built-in application.
#[derive(Debug, Default)]
pub struct App {}

impl App {
    /// The application; it needs nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }
}

impl Handler for App {
    fn handle(&self, _request: &Request) -> Response {
        Response::text(StatusCode::NOT_FOUND, "not found\n")
    }
}
