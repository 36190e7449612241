//! Checks the reader of the PROXY protocol with any bytes.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpora in the crate's own tests.

use std::net::SocketAddr;

use catamaran_transport::{PROXY_HEADER_MAX, ProxyAddresses, parse_proxy_header};

/// Cuts must not change the result, a header must not need more bytes than it may have, and addresses that were read
/// must be the same after being written and read again.
pub(crate) fn header(input: &[u8]) {
    let whole = parse_proxy_header(input);
    for cut in 0..=input.len().min(2 * PROXY_HEADER_MAX) {
        match parse_proxy_header(&input[..cut]) {
            Ok(None) => assert!(cut < PROXY_HEADER_MAX, "{cut} bytes and no verdict"),
            Ok(Some(header)) => {
                assert!(header.len <= cut, "{header:?} of {cut} bytes");
                assert_eq!(whole, Ok(Some(header)));
            }
            Err(fault) => assert_eq!(whole, Err(fault), "{cut} of {} bytes", input.len()),
        }
    }
    if let Ok(Some(header)) = whole {
        assert!(header.len <= PROXY_HEADER_MAX);
        if let Some(addresses) = header.addresses {
            again(addresses);
        }
    }
}

/// Checks that the addresses are the same after being written as a line of version 1.
fn again(addresses: ProxyAddresses) {
    let ProxyAddresses {
        source,
        destination,
    } = addresses;
    let family = match source {
        SocketAddr::V4(_) => "TCP4",
        SocketAddr::V6(_) => "TCP6",
    };
    let line = format!(
        "PROXY {family} {} {} {} {}\r\n",
        source.ip(),
        destination.ip(),
        source.port(),
        destination.port()
    );
    let header = parse_proxy_header(line.as_bytes())
        .expect("a line as specified")
        .expect("a whole line");
    assert_eq!(header.addresses, Some(addresses), "{line}");
}
