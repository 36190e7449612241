//! The header of the PROXY protocol, by which a TCP proxy says who the client is.
//!
//! Reads versions 1 (a line of text) and 2 (binary) of HAProxy's `proxy-protocol.txt`, without I/O: bytes in,
//! addresses and facts about TLS out. The bytes after the header are ignored. The caller decides which proxies to
//! trust.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use thiserror::Error;

/// A complete header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The length of the header in bytes; the client's own bytes follow.
    pub len: usize,
    /// Whether the connection is the proxy's own, such as a health check (`LOCAL`, in version 2 only).
    pub is_local: bool,
    /// The addresses of the client's connection. `None` if the connection is the proxy's own, or the proxy does
    /// not know them (`UNKNOWN`, a Unix socket): then the addresses of this connection apply.
    pub addresses: Option<ProxyAddresses>,
    /// The TLS of the client's connection, which the proxy ended (`PP2_TYPE_SSL`, in version 2 only).
    pub tls: Option<ProxyTls>,
}

/// The TLS between a client and a proxy. Texts with control characters are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyTls {
    /// Whether the client used TLS to the proxy.
    pub is_used: bool,
    /// The version of TLS, such as `TLSv1.3`.
    pub version: Option<String>,
    /// The cipher suite as OpenSSL names it.
    pub cipher: Option<String>,
    /// The common name of the client's certificate, if the client presented one and the proxy verified it.
    pub certificate_cn: Option<String>,
}

/// The two ends of the client's connection to the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyAddresses {
    /// The client's address.
    pub source: SocketAddr,
    /// The address that the client connected to.
    pub destination: SocketAddr,
}

/// Why bytes are no header of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProxyFault {
    /// The bytes do not begin like either version.
    #[error("no header of the PROXY protocol")]
    Signature,
    /// A line of version 1 that is not as specified.
    #[error("a malformed header of PROXY protocol 1")]
    Line,
    /// A header of version 2 that is not as specified.
    #[error("a malformed header of PROXY protocol 2")]
    Binary,
    /// More than 107 bytes in version 1, or 536 in version 2.
    #[error("a header of the PROXY protocol that is too long")]
    TooLong,
    /// The CRC32C of a header of version 2 does not match.
    #[error("a header of PROXY protocol 2 with a wrong checksum")]
    Checksum,
}

/// The length of the longest header, in bytes.
pub const PROXY_HEADER_MAX: usize = V2_MAX;

/// Reads the header at the beginning of `input`; `None` if it is not complete.
///
/// # Errors
/// The bytes are no header; returned as soon as that is certain.
pub fn parse_proxy_header(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyFault> {
    let begins_as = |start: &[u8]| {
        let len = start.len().min(input.len());
        input[..len] == start[..len]
    };
    match input {
        [] => Ok(None),
        _ if begins_as(SIGNATURE) => version_2(input),
        _ if begins_as(b"PROXY ") => version_1(input),
        _ => Err(ProxyFault::Signature),
    }
}

/// Reads a header of version 1, a line of text; `None` if it is not complete.
fn version_1(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyFault> {
    let longest_line = &input[..input.len().min(V1_MAX)];
    let line_end = longest_line.windows(2).position(|pair| pair == b"\r\n");
    let Some(end) = line_end else {
        return if input.len() < V1_MAX {
            Ok(None)
        } else {
            Err(ProxyFault::TooLong)
        };
    };
    let line = std::str::from_utf8(&input[..end]).map_err(|_| ProxyFault::Line)?;
    Ok(Some(ProxyHeader {
        len: end + 2,
        is_local: false,
        addresses: line_addresses(line)?,
        tls: None,
    }))
}

/// The addresses in a line of version 1; `None` for `UNKNOWN`.
fn line_addresses(line: &str) -> Result<Option<ProxyAddresses>, ProxyFault> {
    let mut words = line.split(' ').skip(1);
    let family = words.next().ok_or(ProxyFault::Line)?;
    if family == "UNKNOWN" {
        return Ok(None);
    }
    let mut next_word = || words.next().ok_or(ProxyFault::Line);
    let source_ip = line_ip(family, next_word()?)?;
    let destination_ip = line_ip(family, next_word()?)?;
    let source_port = line_port(next_word()?)?;
    let destination_port = line_port(next_word()?)?;
    if words.next().is_some() {
        return Err(ProxyFault::Line);
    }
    Ok(Some(ProxyAddresses {
        source: SocketAddr::new(source_ip, source_port),
        destination: SocketAddr::new(destination_ip, destination_port),
    }))
}

fn line_ip(family: &str, word: &str) -> Result<IpAddr, ProxyFault> {
    let ip = match family {
        "TCP4" => word.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        "TCP6" => word.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        _ => None,
    };
    ip.ok_or(ProxyFault::Line)
}

fn line_port(word: &str) -> Result<u16, ProxyFault> {
    // `parse` would accept a sign and leading zeros.
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit());
    let is_shortest = word == "0" || !word.starts_with('0');
    if !is_plain || !is_shortest {
        return Err(ProxyFault::Line);
    }
    word.parse().map_err(|_| ProxyFault::Line)
}

/// Reads a header of version 2: the signature (12 bytes), the version and the command, the family of the addresses,
/// the length of what follows (2 bytes), the addresses, and type-length-values. `None` if it is not complete.
fn version_2(input: &[u8]) -> Result<Option<ProxyHeader>, ProxyFault> {
    // The byte after the signature: version 2, and LOCAL (0) or PROXY (1).
    if let Some(version) = input.get(SIGNATURE.len())
        && !matches!(version, 0x20 | 0x21)
    {
        return Err(ProxyFault::Binary);
    }
    let Some((head, _)) = input.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let len = HEAD + usize::from(u16::from_be_bytes([head[14], head[15]]));
    if len > V2_MAX {
        return Err(ProxyFault::TooLong);
    }
    let Some(header) = input.get(..len) else {
        return Ok(None);
    };
    let is_local = head[12] == 0x20;
    let family = head[13];
    let tlvs = match family {
        TCP_V4 => Some(HEAD + 12),
        TCP_V6 => Some(HEAD + 36),
        UNIX_STREAM => Some(HEAD + 216),
        // Unspecified, or UDP, which has no place here. The TLVs of an unknown family cannot be found, because the
        // length of its addresses is not known.
        _ => None,
    };
    let tls = match tlvs {
        Some(offset) if offset > len => return Err(ProxyFault::Binary),
        Some(offset) => read_tlvs(header, offset)?,
        None => None,
    };
    let addresses = block_addresses(&header[HEAD..], family);
    Ok(Some(ProxyHeader {
        len,
        is_local,
        // The proxy's own connection has no client.
        addresses: addresses.filter(|_| !is_local),
        tls: tls.filter(|_| !is_local),
    }))
}

/// The addresses of version 2: both IP addresses, then both ports. `None` for a Unix socket.
fn block_addresses(block: &[u8], family: u8) -> Option<ProxyAddresses> {
    let port = |offset: usize| Some(u16::from_be_bytes(*block.get(offset..)?.first_chunk()?));
    let ipv4 = |offset: usize| Some(Ipv4Addr::from(*block.get(offset..)?.first_chunk::<4>()?));
    let ipv6 = |offset: usize| Some(Ipv6Addr::from(*block.get(offset..)?.first_chunk::<16>()?));
    match family {
        TCP_V4 => Some(ProxyAddresses {
            source: (ipv4(0)?, port(8)?).into(),
            destination: (ipv4(4)?, port(10)?).into(),
        }),
        TCP_V6 => Some(ProxyAddresses {
            source: (ipv6(0)?, port(32)?).into(),
            destination: (ipv6(16)?, port(34)?).into(),
        }),
        _ => None,
    }
}

/// Reads the type-length-values from `offset` on, and verifies the checksum if there is one.
fn read_tlvs(header: &[u8], mut offset: usize) -> Result<Option<ProxyTls>, ProxyFault> {
    let mut tls = None;
    while let Some((kind, value)) = next_tlv(header, offset)? {
        offset = value.end;
        let bytes = &header[value.clone()];
        match kind {
            TLV_CRC32C => {
                let stated = <[u8; 4]>::try_from(bytes).map_err(|_| ProxyFault::Binary)?;
                // It is computed over the whole header, with zeros in its own place.
                let begin = crc32c::crc32c(&header[..value.start]);
                let with_gap = crc32c::crc32c_append(begin, &[0; 4]);
                let computed = crc32c::crc32c_append(with_gap, &header[value.end..]);
                if computed != u32::from_be_bytes(stated) {
                    return Err(ProxyFault::Checksum);
                }
            }
            TLV_SSL => tls = Some(read_tls(bytes)?),
            _ => {}
        }
    }
    Ok(tls)
}

/// The kind of the type-length-value at an offset, and the range of its value; `None` at the end.
fn next_tlv(bytes: &[u8], offset: usize) -> Result<Option<(u8, Range<usize>)>, ProxyFault> {
    if offset == bytes.len() {
        return Ok(None);
    }
    let [kind, high, low] = bytes[offset..].first_chunk().ok_or(ProxyFault::Binary)?;
    let start = offset + 3;
    let end = start + usize::from(u16::from_be_bytes([*high, *low]));
    if end > bytes.len() {
        return Err(ProxyFault::Binary);
    }
    Ok(Some((*kind, start..end)))
}

/// Reads the value of `PP2_TYPE_SSL`: a byte of flags, the result of verifying the certificate, and
/// type-length-values.
fn read_tls(value: &[u8]) -> Result<ProxyTls, ProxyFault> {
    let [flags, verify_result @ ..] = value.first_chunk::<5>().ok_or(ProxyFault::Binary)?;
    let is_verified = flags & CLIENT_CERT != 0 && *verify_result == [0; 4];
    let mut tls = ProxyTls {
        is_used: flags & CLIENT_SSL != 0,
        ..ProxyTls::default()
    };
    let mut offset = 5;
    while let Some((kind, range)) = next_tlv(value, offset)? {
        offset = range.end;
        let utf8 = std::str::from_utf8(&value[range]).ok();
        let text = utf8.filter(|text| !text.is_empty() && !text.contains(char::is_control));
        match kind {
            SUBTYPE_VERSION => tls.version = text.map(str::to_owned),
            SUBTYPE_CN if is_verified => tls.certificate_cn = text.map(str::to_owned),
            SUBTYPE_CIPHER => tls.cipher = text.map(str::to_owned),
            _ => {}
        }
    }
    Ok(tls)
}

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The length of version 2's fixed part, in bytes.
const HEAD: usize = 16;

/// The longest line of version 1, including its ending, in bytes.
const V1_MAX: usize = 107;

/// The longest header of version 2 that a receiver must accept, in bytes.
const V2_MAX: usize = 536;

/// The families of version 2 that are read: address family and transport in one byte.
const TCP_V4: u8 = 0x11;
const TCP_V6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;

/// The type `PP2_TYPE_CRC32C`.
const TLV_CRC32C: u8 = 3;

/// The type `PP2_TYPE_SSL`.
const TLV_SSL: u8 = 0x20;

/// The types `PP2_SUBTYPE_SSL_VERSION`, `_CN` and `_CIPHER`.
const SUBTYPE_VERSION: u8 = 0x21;
const SUBTYPE_CN: u8 = 0x22;
const SUBTYPE_CIPHER: u8 = 0x23;

/// The flag `PP2_CLIENT_SSL`.
const CLIENT_SSL: u8 = 1;

/// The flags `PP2_CLIENT_CERT_CONN` and `PP2_CLIENT_CERT_SESS`: the client presented a certificate now, or when
/// its session began.
const CLIENT_CERT: u8 = 2 | 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of version 2 with these TLVs; a checksum among them is filled in.
    fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
        let mut header = SIGNATURE.to_vec();
        header.extend([0x20 | command, family]);
        header.extend(u16::try_from(block.len()).unwrap().to_be_bytes());
        header.extend(block);
        header
    }

    const V4: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0x30, 0x39, 1, 0xbb];

    fn v4() -> Option<ProxyAddresses> {
        Some(ProxyAddresses {
            source: "192.0.2.7:12345".parse().unwrap(),
            destination: "198.51.100.1:443".parse().unwrap(),
        })
    }

    fn v6() -> Option<ProxyAddresses> {
        Some(ProxyAddresses {
            source: "[2001:db8::7]:1".parse().unwrap(),
            destination: "[2001:db8::1]:65535".parse().unwrap(),
        })
    }

    fn v6_block() -> Vec<u8> {
        let ip = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        let ips = [ip("2001:db8::7"), ip("2001:db8::1")].concat();
        [&ips[..], &[0, 1, 0xff, 0xff]].concat()
    }

    /// A header of version 2 with IPv4 addresses, a checksum and another TLV after it.
    fn checked() -> Vec<u8> {
        let block = [&V4[..], &[3, 0, 4, 0, 0, 0, 0], &[4, 0, 2, 9, 9]].concat();
        let mut header = binary(1, 0x11, &block);
        let crc = crc32c::crc32c(&header).to_be_bytes();
        header[31..35].copy_from_slice(&crc);
        header
    }

    #[test]
    fn whole_headers_are_read_and_every_part_of_one_asks_for_more() {
        let line = |text: &str| format!("{text}\r\n").into_bytes();
        let mut unix = vec![0; 216];
        unix[0] = b'/';
        for (header, addresses) in [
            (line("PROXY TCP4 192.0.2.7 198.51.100.1 12345 443"), v4()),
            (line("PROXY TCP6 2001:db8::7 2001:db8::1 1 65535"), v6()),
            (line("PROXY UNKNOWN"), None),
            (line("PROXY UNKNOWN ffff::1 ffff::2 1 2 and whatever"), None),
            (binary(1, 0x11, &V4), v4()),
            (binary(1, 0x21, &v6_block()), v6()),
            (binary(0, 0x00, &[]), None),
            (binary(0, 0x11, &V4), None),
            (binary(1, 0x00, &[1, 2, 3]), None),
            (binary(1, 0x31, &unix), None),
            (binary(1, 0x11, &[&V4[..], &[0xe0, 0, 1, 7]].concat()), v4()),
            (checked(), v4()),
        ] {
            for cut in 0..header.len() {
                assert_eq!(
                    parse_proxy_header(&header[..cut]),
                    Ok(None),
                    "{cut} of {header:?}"
                );
            }
            let expected = ProxyHeader {
                len: header.len(),
                is_local: header.get(12) == Some(&0x20),
                addresses,
                tls: None,
            };
            let followed = [&header[..], b"GET / HTTP/1.1\r\n"].concat();
            assert_eq!(parse_proxy_header(&followed), Ok(Some(expected)));
        }
    }

    /// A TLV of TLS with this value, behind addresses of IPv4.
    fn of_tls(command: u8, value: &[u8]) -> Result<Option<ProxyHeader>, ProxyFault> {
        let len = u8::try_from(value.len()).unwrap();
        let block = [&V4[..], &[TLV_SSL, 0, len], value].concat();
        parse_proxy_header(&binary(command, 0x11, &block))
    }

    #[test]
    fn what_is_told_of_tls_is_read() {
        let told = |command, client, verify, subs: &[u8]| {
            let value = [&[client, 0, 0, 0, verify], subs].concat();
            of_tls(command, &value).unwrap().unwrap().tls
        };
        let subs = [
            &[SUBTYPE_VERSION, 0, 7][..],
            b"TLSv1.3",
            &[SUBTYPE_CN, 0, 3],
            b"ann",
            &[SUBTYPE_CIPHER, 0, 6],
            b"CIPHER",
        ];
        let subs = subs.concat();
        let whole = ProxyTls {
            is_used: true,
            version: Some("TLSv1.3".to_owned()),
            cipher: Some("CIPHER".to_owned()),
            certificate_cn: Some("ann".to_owned()),
        };
        let nameless = ProxyTls {
            certificate_cn: None,
            ..whole.clone()
        };
        assert_eq!(told(1, 3, 0, &subs), Some(whole.clone()));
        assert_eq!(told(1, 5, 0, &subs), Some(whole));
        assert_eq!(told(1, 1, 0, &subs), Some(nameless.clone()), "none shown");
        assert_eq!(told(1, 3, 1, &subs), Some(nameless), "not verified");
        let line_break = [&[SUBTYPE_CN, 0, 3][..], b"a\nb"].concat();
        let name = told(1, 3, 0, &line_break).unwrap().certificate_cn;
        assert_eq!(name, None);
        assert_eq!(told(1, 0, 0, &[]), Some(ProxyTls::default()));
        assert_eq!(told(0, 1, 0, &[]), None, "LOCAL");
        for malformed in [&[][..], &[1, 0, 0, 0], &[1, 0, 0, 0, 0, 0x21, 0, 1]] {
            assert_eq!(of_tls(1, malformed), Err(ProxyFault::Binary));
        }
    }

    #[test]
    fn what_is_no_header_is_a_fault_at_once() {
        use ProxyFault::{Binary, Checksum, Line, Signature, TooLong};
        let line = |text: &str| format!("{text}\r\n").into_bytes();
        let mut wrong = checked();
        wrong[20] ^= 1;
        let mut version = binary(1, 0x11, &V4);
        version[12] = 0x31;
        for (bytes, fault) in [
            (b"G".to_vec(), Signature),
            (b"PROXX".to_vec(), Signature),
            (vec![0x16, 3, 1], Signature),
            (b"\r\n\r\nQ".to_vec(), Signature),
            (line("PROXY TCP4 192.0.2.7 198.51.100.1 12345"), Line),
            (line("PROXY TCP4 192.0.2.7 198.51.100.1 12345 443 "), Line),
            (line("PROXY TCP4 192.0.2.7 198.51.100.1 +1 443"), Line),
            (line("PROXY TCP4 192.0.2.7 198.51.100.1 012 443"), Line),
            (line("PROXY TCP4 192.0.2.7 198.51.100.1 65536 443"), Line),
            (line("PROXY TCP4 ::1 ::1 1 443"), Line),
            (line("PROXY TCP6 1.2.3.4 ::1 1 443"), Line),
            (line("PROXY UDP4 1.2.3.4 1.2.3.4 1 443"), Line),
            (line("PROXY  TCP4 1.2.3.4 1.2.3.4 1 443"), Line),
            (line(&format!("PROXY UNKNOWN {}", "x".repeat(100))), TooLong),
            (b"PROXY UNKNOWN \xff\r\n".to_vec(), Line),
            (version, Binary),
            (binary(2, 0x11, &V4), Binary),
            (binary(1, 0x11, &V4[..11]), Binary),
            (binary(1, 0x11, &[&V4[..], &[4, 0]].concat()), Binary),
            (binary(1, 0x11, &[&V4[..], &[4, 0, 9, 1]].concat()), Binary),
            (binary(1, 0x11, &[&V4[..], &[3, 0, 1, 1]].concat()), Binary),
            (binary(1, 0x11, &vec![0; 521]), TooLong),
            (wrong, Checksum),
        ] {
            assert_eq!(parse_proxy_header(&bytes), Err(fault), "{bytes:?}");
        }
    }
}
