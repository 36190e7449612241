//! Apache httpd, as a front before our connector, with one of its two AJP modules or over HTTP/1.1.

use std::net::SocketAddr;

use catamaran_testkit::{Address, Process};

use crate::server;

/// A running httpd.
#[derive(Debug)]
pub struct Httpd {
    process: Process,
    address: SocketAddr,
}

/// A module of httpd that reaches a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    /// `mod_proxy_ajp`, part of httpd.
    ProxyAjp,
    /// `mod_proxy_http`, part of httpd.
    ProxyHttp,
    /// `mod_jk`, of the Tomcat project.
    Jk,
}

impl Httpd {
    /// httpd that passes every request to `backend` with `mod_proxy_ajp`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_proxy_ajp(backend: SocketAddr) -> anyhow::Result<Self> {
        Self::with(Module::ProxyAjp, &backend.into(), &[])
    }

    /// httpd that passes every request to `backend` with `mod_proxy_http`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_proxy_http(backend: SocketAddr) -> anyhow::Result<Self> {
        Self::with(Module::ProxyHttp, &backend.into(), &[])
    }

    /// httpd that passes every request to `backend` with `mod_jk`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_mod_jk(backend: SocketAddr) -> anyhow::Result<Self> {
        Self::with(Module::Jk, &backend.into(), &[])
    }

    /// httpd that passes every request to `backend` with `module`. `settings` are parameters of `ProxyPass`, or
    /// properties of the worker of `mod_jk`. httpd logs what it does on a connection.
    ///
    /// # Errors
    /// As [`Httpd::with`].
    pub fn talkative(
        module: Module,
        backend: &Address,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        Self::start(module, backend, settings, "on")
    }

    /// As [`Httpd::talkative`], but httpd logs only errors.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log. `mod_jk` cannot reach a
    /// Unix socket.
    pub fn with(
        module: Module,
        backend: &Address,
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        Self::start(module, backend, settings, "off")
    }

    /// httpd that passes every request to the worker `app` of `mod_jk` in `workers_properties`.
    ///
    /// # Errors
    /// httpd is not installed or did not start; the message has its log.
    pub fn with_workers(workers_properties: &str) -> anyhow::Result<Self> {
        let (process, address) = server::start(
            "httpd",
            &[
                ("module", "mod_jk"),
                ("backend", "ajp://127.0.0.1:8009"),
                ("workers_properties", workers_properties),
                ("start_workers", "25"),
                ("max_workers", "25"),
                ("user", ""),
            ],
        )?;
        Ok(Self { process, address })
    }

    /// The address at which httpd listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process, to read its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    fn start(
        module: Module,
        backend: &Address,
        settings: &[(&str, &str)],
        trace: &str,
    ) -> anyhow::Result<Self> {
        let (module, scheme) = match module {
            Module::ProxyAjp => ("mod_proxy_ajp", "ajp"),
            Module::ProxyHttp => ("mod_proxy_http", "http"),
            Module::Jk => ("mod_jk", "ajp"),
        };
        let options: Vec<String> = settings
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let (process, address) = server::start(
            "httpd",
            &[
                ("module", module),
                ("backend", &server::url(scheme, backend)),
                ("options", &options.join("\n")),
                ("trace", trace),
                // The default user could not reach Unix sockets in directories of tests.
                ("user", ""),
            ],
        )?;
        Ok(Self { process, address })
    }
}
