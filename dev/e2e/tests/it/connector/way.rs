//! The ways from a client to the application: web servers that people have, and our own front.

use std::net::SocketAddr;

use catamaran_e2e::{App, Front, Httpd, Module, Nginx};
use catamaran_testkit::{Address, HttpClient};

/// A web server, what it speaks to the application, and over what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ModJk,
    ModProxyAjp,
    ModProxyAjpUnix,
    ModProxyHttp,
    ModProxyHttpUnix,
    Nginx,
    NginxUnix,
    FrontAjp,
    FrontAjpUnix,
    FrontHttp,
    FrontHttpUnix,
}

/// The web server of a [`Way`], running.
#[derive(Debug)]
pub(crate) enum Server {
    Httpd(Httpd),
    Nginx(Nginx),
    Front(Front),
}

impl Way {
    /// mod_jk knows no Unix sockets.
    pub(crate) const ALL: [Self; 11] = [
        Self::ModJk,
        Self::ModProxyAjp,
        Self::ModProxyAjpUnix,
        Self::ModProxyHttp,
        Self::ModProxyHttpUnix,
        Self::Nginx,
        Self::NginxUnix,
        Self::FrontAjp,
        Self::FrontAjpUnix,
        Self::FrontHttp,
        Self::FrontHttpUnix,
    ];

    /// Those over AJP13 on TCP.
    pub(crate) const AJP: [Self; 3] = [Self::ModJk, Self::ModProxyAjp, Self::FrontAjp];

    pub(crate) fn is_unix(self) -> bool {
        use Way::{FrontAjpUnix, FrontHttpUnix, ModProxyAjpUnix, ModProxyHttpUnix, NginxUnix};
        matches!(
            self,
            ModProxyAjpUnix | ModProxyHttpUnix | NginxUnix | FrontAjpUnix | FrontHttpUnix
        )
    }

    pub(crate) fn is_ajp(self) -> bool {
        use Way::{FrontAjp, FrontAjpUnix, ModJk, ModProxyAjp, ModProxyAjpUnix};
        matches!(
            self,
            ModJk | ModProxyAjp | ModProxyAjpUnix | FrontAjp | FrontAjpUnix
        )
    }

    /// Starts the web server in front of `app`.
    pub(crate) fn start(self, app: &App) -> Server {
        self.start_with(app, None)
    }

    /// The same; over AJP13 it sends `secret` if there is one.
    pub(crate) fn start_with(self, app: &App, secret: Option<&str>) -> Server {
        let address = if self.is_ajp() { app.ajp() } else { app.http() };
        let settings: Vec<_> = secret
            .map(|secret| ("secret", secret))
            .into_iter()
            .collect();
        let httpd = |module| Server::Httpd(Httpd::with(module, address, &settings).unwrap());
        match self {
            Self::ModJk => httpd(Module::Jk),
            Self::ModProxyAjp | Self::ModProxyAjpUnix => httpd(Module::ProxyAjp),
            Self::ModProxyHttp | Self::ModProxyHttpUnix => httpd(Module::ProxyHttp),
            Self::Nginx | Self::NginxUnix => Server::Nginx(Nginx::to(address).unwrap()),
            Self::FrontAjp | Self::FrontAjpUnix => front("ajp", address, secret),
            Self::FrontHttp | Self::FrontHttpUnix => front("http", address, None),
        }
    }
}

fn front(scheme: &str, address: &Address, secret: Option<&str>) -> Server {
    let url = match address {
        Address::Tcp(address) => format!("{scheme}://{address}"),
        Address::Unix(path) => format!("{scheme}+unix:{}", path.display()),
    };
    let secret = secret.map_or_else(String::new, |secret| format!("secret = \"{secret}\"\n"));
    let tables = format!("[upstream.app]\n[[upstream.app.backend]]\nurl = \"{url}\"\n{secret}");
    Server::Front(Front::to_app(&tables).unwrap())
}

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Httpd(httpd) => httpd.address(),
            Self::Nginx(nginx) => nginx.address(),
            Self::Front(front) => front.address(),
        }
    }

    pub(crate) fn connect(&self) -> HttpClient {
        HttpClient::connect(self.address()).unwrap()
    }
}
