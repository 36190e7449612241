//! nginx, as a front before our connector over kept HTTP/1.1 connections, or as a server of pages.

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

    /// As [`Nginx::to`], with two workers, `connections` for each of them, and a `client_header_timeout` that equals
    /// our `head_timeout`.
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

    /// nginx that answers by itself: `/` with a page of 347 bytes, `/redirect` with a redirect, `/bare` with one
    /// without a body, `/empty` with 204, `/post` with five bytes to any method, all else with 404.
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

    /// The address at which nginx listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process, to read its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }
}
