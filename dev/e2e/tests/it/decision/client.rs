//! Clients of each kind of listener: in clear and over TLS, HTTP/1.1 and HTTP/2, over TCP from any address
//! of this machine or over a Unix socket, with a header of the PROXY protocol or without.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use catamaran_testkit::http2::{self, END_HEADERS, END_STREAM, block, frame, kind};
use catamaran_testkit::tls::{Authority, Pair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use socket2::{Domain, Socket, Type};

use super::request::Request;

/// Where a listener listens.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What a client was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answered {
    /// `None`: the stream was reset, or the connection closed.
    pub(super) status: Option<u16>,
    pub(super) location: Option<String>,
    /// What `Content-Length` says, over HTTP/1.1.
    pub(super) length: Option<u64>,
    /// The code of the frame that reset the stream or ended the connection.
    pub(super) code: Option<u32>,
}

trait Wire: Read + Write {}

impl<T: Read + Write> Wire for T {}

/// A connection on which nothing was sent, and the address that the front will take it to come from.
pub(super) struct Opened {
    wire: Box<dyn Wire>,
    pub(super) from: String,
}

/// What clients need for TLS.
pub(super) struct Credentials {
    pub(super) roots: Arc<RootCertStore>,
    pub(super) own: Pair,
}

impl Credentials {
    pub(super) fn new(authority: &Authority) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der().to_vec()))?;
        Ok(Self {
            roots: Arc::new(roots),
            own: authority.sign(&["client.test"], |_| ())?,
        })
    }

    /// A client that offers the one cipher suite that explanations suppose.
    fn config(&self, request: &Request) -> anyhow::Result<ClientConfig> {
        let mut provider = aws_lc_rs::default_provider();
        let suite = rustls::CipherSuite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites.retain(|it| it.suite() == suite);
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(Arc::clone(&self.roots));
        let mut config = if request.client_certificate {
            let chain = CertificateDer::pem_slice_iter(self.own.chain.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(self.own.key.as_bytes())?;
            builder.with_client_auth_cert(chain.collect::<Result<_, _>>()?, key)?
        } else {
            builder.with_no_client_auth()
        };
        let protocol = if request.http2 { "h2" } else { "http/1.1" };
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Ok(config)
    }
}

/// Connects as the request is to come.
pub(super) fn open(
    place: &Place,
    request: &Request,
    credentials: &Credentials,
) -> anyhow::Result<Opened> {
    let mut opened = match place {
        Place::Unix(path) => {
            let socket = UnixStream::connect(path)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Opened {
                wire: Box::new(socket),
                from: "127.0.0.1".to_owned(),
            }
        }
        Place::Tcp(address) => {
            let socket = connect(request.from, *address)?;
            let from = socket.local_addr()?.to_string();
            Opened {
                wire: Box::new(socket),
                from,
            }
        }
    };
    if let (Some(told), Place::Tcp(address)) = (&request.proxied, place) {
        let header = format!(
            "PROXY TCP4 {} {} {} {}\r\n",
            told.ip(),
            address.ip(),
            told.port(),
            address.port()
        );
        opened.wire.write_all(header.as_bytes())?;
        opened.from = told.to_string();
    }
    if request.tls {
        let name = ServerName::try_from(request.bare_host().to_owned())?;
        let config = Arc::new(credentials.config(request)?);
        let connection = ClientConnection::new(config, name)?;
        opened.wire = Box::new(StreamOwned::new(connection, opened.wire));
    }
    Ok(opened)
}

fn connect(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    let socket = TcpStream::from(socket);
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

impl Opened {
    /// Sends the request and reads the head of the answer.
    pub(super) fn ask(mut self, request: &Request) -> io::Result<Answered> {
        if request.http2 {
            self.ask_http2(request)
        } else {
            self.ask_http1(request)
        }
    }

    fn ask_http1(&mut self, request: &Request) -> io::Result<Answered> {
        self.wire.write_all(&request.http1())?;
        let mut head = Vec::new();
        loop {
            let mut byte = [0];
            if !read(&mut self.wire, &mut byte)? {
                return Ok(Answered::default());
            }
            head.push(byte[0]);
            if head.ends_with(b"\r\n\r\n") {
                match answered(&String::from_utf8_lossy(&head)) {
                    Answered {
                        status: Some(100), ..
                    } => head.clear(),
                    answered => return Ok(answered),
                }
            }
        }
    }

    fn ask_http2(&mut self, request: &Request) -> io::Result<Answered> {
        let fields = request.http2_fields();
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect();
        let (last, more) = match request.body.is_empty() && !request.is_tunnel() {
            true => (END_STREAM, Vec::new()),
            false if request.is_tunnel() => (0, Vec::new()),
            false => (0, frame(kind::DATA, END_STREAM, 1, &request.body)),
        };
        let head = frame(kind::HEADERS, END_HEADERS | last, 1, &block(&fields));
        let all = [http2::opening(65_535), head, more].concat();
        self.wire.write_all(&all)?;
        loop {
            let mut header = [0; 9];
            if !read(&mut self.wire, &mut header)? {
                return Ok(Answered::default());
            }
            let [a, b, c, kind, ..] = header;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            if !read(&mut self.wire, &mut payload)? {
                return Ok(Answered::default());
            }
            match kind {
                kind::HEADERS => match http2::status(&payload) {
                    Some(100) => {}
                    status => {
                        return Ok(Answered {
                            status,
                            ..Answered::default()
                        });
                    }
                },
                // A connection that takes no further requests still answers this one.
                kind::GOAWAY if payload[4..8] == [0; 4] => {}
                kind::RST_STREAM | kind::GOAWAY => {
                    let code = payload.last_chunk().map(|it| u32::from_be_bytes(*it));
                    return Ok(Answered {
                        code,
                        ..Answered::default()
                    });
                }
                _ => {}
            }
        }
    }
}

/// Fills `bytes`; `false` at the end of the connection.
fn read(wire: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match wire.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(false),
            _ => Err(error),
        },
    }
}

fn answered(head: &str) -> Answered {
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let field = |wanted: &str| {
        head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case(wanted).then_some(value)
        })
    };
    Answered {
        status,
        location: field("location").map(str::to_owned),
        length: field("content-length").and_then(|it| it.parse().ok()),
        code: None,
    }
}

/// How long an answer may take; none should.
const PATIENCE: Duration = Duration::from_secs(30);
