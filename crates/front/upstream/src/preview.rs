//! Shows the head that a backend would get for a request, without sending it.
//!
//! The request is encoded as for a lease and then decoded as a container does, so that the preview
//! equals what would be sent.

use bytes::{Bytes, BytesMut};
use catamaran_ajp as ajp;
use catamaran_http1 as http1;
use catamaran_message::{BodyLength, Fields, Request};

use crate::client_facts::ClientFacts;
use crate::config::{BackendConfig, Protocol};
use crate::error::RequestError;
use crate::wire;

/// The head of a request as a backend reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// The request line: method, path and query.
    pub line: String,
    /// The header fields in order, including those for framing, with names in lower case.
    pub fields: Vec<(String, String)>,
    /// The attributes of AJP13, by the names in its specification; the secret's value is not shown.
    /// Empty over HTTP/1.1.
    pub attributes: Vec<(String, String)>,
}

/// Shows the head that a backend with this configuration would get.
///
/// # Errors
/// The request cannot be sent over the backend's protocol.
pub fn preview(
    request: &Request<'_>,
    facts: &ClientFacts<'_>,
    config: &BackendConfig,
) -> Result<Preview, RequestError> {
    let mut bytes = BytesMut::new();
    Ok(match config.protocol {
        Protocol::Ajp => {
            let mut client = wire::ajp_client(config);
            wire::send_ajp(&mut client, request, facts, config, &mut bytes)?;
            read_ajp(&mut bytes, config)
        }
        Protocol::Http => {
            let mut client = http1::Client::new(http1::Limits::response());
            client.send_request(request, &mut bytes)?;
            read_http(&bytes)
        }
    })
}

/// Shows the head of a request for a tunnel, which goes over HTTP/1.1 to every backend.
///
/// # Errors
/// The request cannot be sent over HTTP/1.1.
pub fn preview_upgrade(request: &Request<'_>, token: &str) -> Result<Preview, RequestError> {
    let mut bytes = BytesMut::new();
    let mut client = http1::Client::new(http1::Limits::response());
    client.send_upgrade(request, token.as_bytes(), &mut bytes)?;
    Ok(read_http(&bytes))
}

/// Decodes an AJP13 request that this crate encoded, which cannot fail.
fn read_ajp(bytes: &mut BytesMut, config: &BackendConfig) -> Preview {
    let mut server = ajp::Server::new(ajp::ServerConfig {
        packet_size: config.ajp.packet_size,
        // The preview refuses nothing that the front would send.
        fields_max: usize::MAX,
        ..ajp::ServerConfig::default()
    });
    let Ok(Some(ajp::ServerEvent::Request(head))) = server.receive(bytes, &mut BytesMut::new())
    else {
        return Preview::default();
    };
    let mut fields = fields(&head.headers);
    // The reader takes the fields of framing out; the writer puts them at the end.
    match head.body {
        BodyLength::Known(length) => {
            fields.push(("content-length".to_owned(), length.to_string()));
        }
        BodyLength::Unknown if head.is_chunked => {
            fields.push(("transfer-encoding".to_owned(), "chunked".to_owned()));
        }
        BodyLength::Unknown => {}
    }
    Preview {
        line: line(head.method.as_str(), &head.path, head.query.as_ref()),
        fields,
        attributes: ajp_attributes(&head),
    }
}

/// The values of an AJP13 head besides its request line and fields, by the names in the specification.
fn ajp_attributes(head: &ajp::RequestHead) -> Vec<(String, String)> {
    let attributes = &head.attributes;
    let is_ssl = if head.is_ssl { "true" } else { "false" };
    let optional = [
        ("protocol", Some(text(&head.protocol))),
        ("remote_addr", head.remote_addr.as_ref().map(text)),
        ("remote_host", head.remote_host.as_ref().map(text)),
        ("server_name", Some(text(&head.server_name))),
        ("server_port", Some(head.server_port.to_string())),
        ("is_ssl", Some(is_ssl.to_owned())),
        ("remote_user", attributes.remote_user.as_ref().map(text)),
        ("auth_type", attributes.auth_type.as_ref().map(text)),
        ("jvm_route", attributes.jvm_route.as_ref().map(text)),
        (
            "secret",
            attributes.secret.as_ref().map(|_| "(set)".to_owned()),
        ),
    ];
    let mut pairs: Vec<_> = present(optional).collect();
    for (name, value) in &attributes.other {
        pairs.push((text(name), text(value)));
    }
    if let Some(ssl) = &attributes.ssl {
        pairs.extend(present([
            ("ssl_cipher", ssl.cipher.as_ref().map(text)),
            ("ssl_key_size", ssl.key_size.map(|bits| bits.to_string())),
            ("ssl_session", ssl.session.as_ref().map(text)),
            ("ssl_cert", ssl.cert.as_ref().map(text)),
        ]));
    }
    pairs
}

/// The pairs that have a value.
fn present<const N: usize>(
    optional: [(&str, Option<String>); N],
) -> impl Iterator<Item = (String, String)> {
    optional
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Reads the lines of an HTTP/1.1 head without decoding them, so that the fields for framing are
/// shown, too.
fn read_http(bytes: &[u8]) -> Preview {
    let head = String::from_utf8_lossy(bytes);
    let mut lines = head.split("\r\n");
    let request_line = lines.next().unwrap_or_default();
    let field = |line: &str| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_ascii_lowercase(), value.to_owned()))
    };
    Preview {
        line: request_line.trim_end_matches(" HTTP/1.1").to_owned(),
        // The empty line at the head's end is no field.
        fields: lines.map_while(field).collect(),
        attributes: Vec::new(),
    }
}

fn line(method: &str, path: &Bytes, query: Option<&Bytes>) -> String {
    let query = query.map_or_else(String::new, |query| format!("?{}", text(query)));
    format!("{method} {}{query}", text(path))
}

fn fields(headers: &Fields) -> Vec<(String, String)> {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .map(|field| (field.lower_name(), lossy(field.value())))
        .collect()
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use catamaran_balance::Activation;
    use http::Method;

    use super::*;
    use crate::config::{Address, Secret};

    fn shown(protocol: Protocol) -> Preview {
        let mut headers = Fields::new();
        headers.insert("cookie", "a=1");
        let request = Request {
            method: &Method::GET,
            path: b"/a%20b",
            query: Some(b"x=1"),
            host: b"h:81",
            headers: &headers,
            body: BodyLength::Known(0),
        };
        let facts = ClientFacts {
            remote_port: Some(4711),
            server_name: b"h",
            server_port: 81,
            jvm_route: Some("blue"),
            activation: Some(Activation::Drain),
            ..ClientFacts::local()
        };
        let mut config = BackendConfig::new(protocol, Address::Unix("/backend".into()));
        config.ajp.secret = Some(Secret::new("hush".to_owned()));
        preview(&request, &facts, &config).expect("it can be sent")
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn over_ajp_it_shows_attributes_and_no_secret() {
        let shown = shown(Protocol::Ajp);
        assert_eq!(shown.line, "GET /a%20b?x=1");
        let expected = pairs(&[("cookie", "a=1"), ("content-length", "0")]);
        assert_eq!(shown.fields, expected);
        let expected = pairs(&[
            ("protocol", "HTTP/1.1"),
            ("remote_addr", "127.0.0.1"),
            ("server_name", "h"),
            ("server_port", "81"),
            ("is_ssl", "false"),
            ("jvm_route", "blue"),
            ("secret", "(set)"),
            ("AJP_LOCAL_ADDR", "127.0.0.1"),
            ("AJP_REMOTE_PORT", "4711"),
            ("JK_LB_ACTIVATION", "DIS"),
        ]);
        assert_eq!(shown.attributes, expected);
    }

    #[test]
    fn over_http_it_shows_fields_alone() {
        let shown = shown(Protocol::Http);
        assert_eq!(shown.line, "GET /a%20b?x=1");
        assert_eq!(shown.fields, pairs(&[("host", "h:81"), ("cookie", "a=1")]));
        assert_eq!(shown.attributes, []);
    }
}
