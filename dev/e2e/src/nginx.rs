//! nginx, as a front to our connector's HTTP/1.1 with connections kept alive, or as a server of
//! pages.

use std::net::SocketAddr;

use catamaran_testkit::{Address, Process};

use crate::server;

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    address: SocketAddr,
}

impl Nginx {
    /// nginx that passes every request to `backend` over kept-alive connections, with bodies
    /// streamed both ways.
    ///
    /// # Errors
    /// nginx is not installed or did not start; the message has its log.
    pub fn to(backend: impl Into<Address>) -> anyhow::Result<Self> {
        let backend = server::url("http", &backend.into());
        Self::start(&[("backend", &backend), ("buffer", "off")])
    }

    /// As [`Nginx::to`] with two workers, room for `connections` on each, and `client_header_timeout`
    /// as our `head_timeout`.
    ///
    /// # Errors
    /// As [`Nginx::to`].
    pub fn with_room(backend: impl Into<Address>, connections: usize) -> anyhow::Result<Self> {
        let backend = server::url("http", &backend.into());
        Self::start(&[
            ("backend", &backend),
            ("buffer", "off"),
            ("workers", "2"),
            ("connections", &connections.to_string()),
            ("head_timeout", "10s"),
        ])
    }

    /// nginx that answers by itself: `/` a page of 347 bytes, `/redirect` a redirect, `/bare` one
    /// without a body, `/empty` 204, `/post` five bytes to any method; others are 404.
    ///
    /// # Errors
    /// As [`Nginx::to`].
    pub fn with_pages() -> anyhow::Result<Self> {
        Self::start(&[])
    }

    fn start(set: &[(&str, &str)]) -> anyhow::Result<Self> {
        let (process, address) = server::start("nginx", set)?;
        Ok(Self { process, address })
    }

    /// Where nginx listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process, to look at its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}
