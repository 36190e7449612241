//! Files that the front serves: every kind of request as a table, over HTTP/1.1 and HTTP/2.

mod cases;
mod hostile;
mod large;
mod remembered;
mod storm;
mod through;

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use catamaran_proxy::config::{
    Config, FilesConfig, Protocols, RouteConfig, RouteRules, RouteTarget,
};
pub(crate) use catamaran_testkit::files::{FileTree as Tree, pattern};
use catamaran_testkit::{HttpClient, Response};
use http::{HeaderMap, Method, Request};

use crate::{Front, config, loopback, start, tcp};

/// A front that serves the files of a directory, and nothing else.
pub(crate) fn front(files: FilesConfig, change: impl FnOnce(&mut Config)) -> Front {
    let mut config = config(&[loopback()], Vec::new());
    config.listeners[0].protocols = Protocols::Both;
    config.upstreams.clear();
    config.routes = vec![route("/", RouteTarget::Files, files)];
    change(&mut config);
    start(config).unwrap()
}

pub(crate) fn route(path: &str, target: RouteTarget, files: FilesConfig) -> RouteConfig {
    RouteConfig {
        rules: Some(Arc::new(RouteRules {
            files: Some(Arc::new(files)),
            ..RouteRules::default()
        })),
        ..RouteConfig::new(path, target)
    }
}

/// What a client got.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().unwrap_or("?"))
    }

    /// The same for those who know no `http`.
    fn response(self) -> Response {
        let text =
            |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = self.headers.iter();
        Response {
            status: self.status,
            headers: headers
                .map(|(name, value)| (name.to_string(), text(value)))
                .collect(),
            body: self.body,
            ..Response::default()
        }
    }
}

/// A client of one of both protocols, with a connection for each request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    Http1,
    Http2,
}

impl Client {
    pub(crate) const BOTH: [Self; 2] = [Self::Http1, Self::Http2];

    pub(crate) fn ask(
        self,
        address: SocketAddr,
        method: &str,
        path: &str,
        fields: &[(&str, String)],
    ) -> Got {
        match self {
            Self::Http1 => ask_http1(address, method, path, fields),
            Self::Http2 => ask_http2(address, method, path, fields),
        }
    }

    pub(crate) fn get(self, address: SocketAddr, path: &str) -> Got {
        self.ask(address, "GET", path, &[])
    }

    /// What a client of HTTP/2 gets by GET; `None` if its response is cut.
    fn get_unless_cut(address: SocketAddr, path: &str) -> Option<Got> {
        try_http2(address, "GET", path, &[]).ok()
    }
}

fn ask_http1(address: SocketAddr, method: &str, path: &str, fields: &[(&str, String)]) -> Got {
    let mut client = HttpClient::connect(address).unwrap();
    let fields: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    client.send(request.as_bytes()).unwrap();
    let response = match method {
        "HEAD" => client.receive_head().unwrap(),
        _ => client.receive().unwrap(),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &response.headers {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    Got {
        status: response.status,
        headers,
        body: response.body,
    }
}

fn ask_http2(address: SocketAddr, method: &str, path: &str, fields: &[(&str, String)]) -> Got {
    try_http2(address, method, path, fields).unwrap()
}

/// Asks over HTTP/2; an error if the response is cut.
fn try_http2(
    address: SocketAddr,
    method: &str,
    path: &str,
    fields: &[(&str, String)],
) -> Result<Got, h2::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes()).unwrap())
            .uri(format!("http://a{path}"));
        for (name, value) in fields {
            request = request.header(*name, value);
        }
        let request = request.body(()).unwrap();
        let (response, _) = client.send_request(request, true)?;
        let (head, mut stream) = response.await?.into_parts();
        let mut body = Vec::new();
        while let Some(data) = stream.data().await {
            let data: Bytes = data?;
            stream.flow_control().release_capacity(data.len())?;
            body.extend_from_slice(&data);
        }
        Ok(Got {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        })
    })
}

pub(crate) fn address(running: &Front) -> SocketAddr {
    tcp(running, 0)
}
