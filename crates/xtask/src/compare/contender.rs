//! Who is compared, and how each is started: one worker each, before the same backend.
//!
//! The texts of their configurations are in [`super::conf`]. Every front relays to the application
//! of this project, by AJP13 or by HTTP/1.1, and sends what it sends by default.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, ensure};

use super::client::Client;
use super::server::{self, Server};
use super::{bare, conf};

/// A front with the protocol it speaks to the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    OursAjp,
    OursHttp,
    Nginx,
    Haproxy,
    ModJk,
    ModProxyAjp,
    ModProxyHttp,
    /// No front at all, but what any front costs at least.
    Bare,
    /// Ours, with as many routes, backends and workers as are asked for.
    ScaledAjp,
    ScaledHttp,
}

/// How many of what a scaled front has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// Routes, of which the last serves every path.
    pub(super) routes: u32,
    /// Backends of that route's upstream, all of them the one application.
    pub(super) backends: u32,
    /// Workers, on the front's one core.
    pub(super) workers: u32,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            routes: 1,
            backends: 1,
            workers: 1,
        }
    }
}

/// What was built here, in release mode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Programs<'a> {
    /// The program whose front and application are measured.
    pub(super) ours: &'a Path,
    /// The one that is also [`bare`]; of no meaning unless that is a contender.
    pub(super) bare: &'a Path,
}

/// What all fronts are given alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) programs: Programs<'a>,
    /// Whether every front writes an access log to a file, in its own usual format.
    pub(super) access_log: bool,
    /// How many client connections it must be able to hold.
    pub(super) connections: usize,
    pub(super) scale: Scale,
}

/// How the backend asks for an upload over AJP13, which is half of what the upload costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// For several packets at once, as our connector does.
    Ahead,
    /// For one packet, and for the next when it has come, as Tomcat does.
    OneByOne,
}

/// Where the application listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backend {
    pub(super) ajp: SocketAddr,
    pub(super) http: SocketAddr,
}

/// A contender that serves.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) contender: Contender,
    pub(super) server: Server,
    pub(super) address: SocketAddr,
}

impl Contender {
    pub(super) const ALL: [Self; 8] = [
        Self::OursAjp,
        Self::OursHttp,
        Self::Nginx,
        Self::Haproxy,
        Self::ModJk,
        Self::ModProxyAjp,
        Self::ModProxyHttp,
        Self::Bare,
    ];

    /// Those of [`Scale`], each behind the one it is measured by.
    pub(super) const SCALED: [Self; 4] = [
        Self::OursAjp,
        Self::ScaledAjp,
        Self::OursHttp,
        Self::ScaledHttp,
    ];

    /// As it is written on the command line and in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OursAjp => "ours-ajp",
            Self::OursHttp => "ours-http",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::ModJk => "mod_jk",
            Self::ModProxyAjp => "mod_proxy_ajp",
            Self::ModProxyHttp => "mod_proxy_http",
            Self::Bare => "bare-relay",
            Self::ScaledAjp => "scaled-ajp",
            Self::ScaledHttp => "scaled-http",
        }
    }

    /// Whether it is asked for uploads, or is what those that are should be measured by.
    pub(super) fn is_asked(self) -> bool {
        matches!(
            self,
            Self::OursAjp | Self::ModJk | Self::ModProxyAjp | Self::Nginx
        )
    }

    /// Starts it on [`FRONT_CORE`] and waits until it relays the page.
    pub(super) fn start(self, setting: Setting<'_>, backend: Backend) -> anyhow::Result<Front> {
        let directory = server::directory()?;
        let root = directory.path().to_owned();
        let address = server::unused_address()?;
        let place = conf::Place {
            root: &root,
            address,
            backend,
            setting,
        };
        let command: Vec<String> = match self {
            Self::OursAjp => conf::ours(place, &format!("ajp://{}", backend.ajp)),
            Self::OursHttp => conf::ours(place, &format!("http://{}", backend.http)),
            Self::Nginx => conf::nginx(place)?,
            Self::Haproxy => conf::haproxy(place)?,
            Self::ModJk => conf::mod_jk(place)?,
            Self::ModProxyAjp => conf::mod_proxy(place, "ajp")?,
            Self::ModProxyHttp => conf::mod_proxy(place, "http")?,
            Self::ScaledAjp => conf::scaled(place, &format!("ajp://{}", backend.ajp))?,
            Self::ScaledHttp => conf::scaled(place, &format!("http://{}", backend.http))?,
            Self::Bare => bare::relay(setting.programs.bare, address, backend.http),
        };
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut server = Server::start(self.name(), &command, FRONT_CORE, directory)?;
        server.wait_until(|_| {
            let length = Client::connect(address)?.get("/")?;
            ensure!(length == PAGE_BYTES as u64, "the page has {length} bytes");
            Ok(())
        })?;
        Ok(Front {
            contender: self,
            server,
            address,
        })
    }
}

/// Starts the backend of all fronts: our own application, the cheapest there is, on
/// [`LOAD_CORE`].
pub(super) fn start_backend(binary: &Path, asking: Asking) -> anyhow::Result<(Server, Backend)> {
    let binary = binary.to_string_lossy();
    let any = "127.0.0.1:0";
    let ahead = match asking {
        Asking::Ahead => "15",
        Asking::OneByOne => "0",
    };
    let command = [
        &binary,
        "app",
        "--ajp",
        any,
        "--http",
        any,
        "--io",
        "epoll",
        "--workers",
        "1",
        "--body-ahead",
        ahead,
    ];
    let directory = server::directory()?;
    let mut server = Server::start("the application", &command, LOAD_CORE, directory)?;
    let backend = server.wait_until(|server| {
        let log = server.log();
        let announced = |scheme: &str| {
            let prefix = format!("listening on {scheme}://");
            let address = log.lines().find_map(|line| line.strip_prefix(&prefix));
            let address = address.with_context(|| format!("no {scheme} address announced"))?;
            anyhow::Ok(address.parse()?)
        };
        Ok(Backend {
            ajp: announced("ajp")?,
            http: announced("http")?,
        })
    })?;
    Ok((server, backend))
}

/// The core that fronts have for themselves.
pub(super) const FRONT_CORE: usize = 0;
/// The core that the load and the backend share.
pub(super) const LOAD_CORE: usize = 1;
/// What `/` answers.
pub(super) const PAGE_BYTES: usize = 347;
