//! The negotiated parameters of TLS, in OpenSSL's names, which readers of ab's report know.

use rustls::{CipherSuite, ClientConnection, NamedGroup, ProtocolVersion};

use crate::report::TlsFacts;

/// The negotiated parameters of `session`; `sni` is the name that it has sent.
pub(super) fn of(session: &ClientConnection, sni: Option<String>) -> TlsFacts {
    let suite = session.negotiated_cipher_suite().map(|suite| suite.suite());
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let kx_group = session.negotiated_key_exchange_group();
    let group = kx_group.and_then(|group| temp_key(group.name()));
    TlsFacts {
        version: match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2".to_owned(),
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3".to_owned(),
            other => format!("{other:?}"),
        },
        cipher: suite.map_or_else(String::new, openssl_name),
        key_bits: certificate.and_then(|certificate| key_bits(certificate)),
        cipher_bits: suite.map_or(0, cipher_bits),
        temp_key: group.map(|(name, _)| name.to_owned()),
        temp_key_bits: group.map(|(_, bits)| bits),
        server_name: sni,
    }
}

/// OpenSSL's name of a cipher suite: for TLS 1.3 the same as IANA's, for TLS 1.2 another one.
pub(crate) fn openssl_name(suite: CipherSuite) -> String {
    let iana = format!("{suite:?}");
    if let Some(rest) = iana.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let tls12_name = iana.strip_prefix("TLS_").unwrap_or(&iana);
    tls12_name
        .replace("_WITH_", "_")
        .replace("AES_", "AES")
        // OpenSSL's names of ChaCha20 suites leave out the digest.
        .replace("POLY1305_SHA256", "POLY1305")
        .replace('_', "-")
}

/// The size in bits of the suite's key. Suites without AES-128 have AES-256 or ChaCha20.
fn cipher_bits(suite: CipherSuite) -> u32 {
    let name = format!("{suite:?}");
    if name.contains("AES_128") { 128 } else { 256 }
}

/// OpenSSL's name of a key exchange group, and its size in bits; `None` for others.
fn temp_key(group: NamedGroup) -> Option<(&'static str, u32)> {
    match group {
        NamedGroup::X25519 => Some(("X25519", 253)),
        NamedGroup::secp256r1 => Some(("ECDH P-256", 256)),
        NamedGroup::secp384r1 => Some(("ECDH P-384", 384)),
        NamedGroup::secp521r1 => Some(("ECDH P-521", 521)),
        _ => None,
    }
}

/// The size in bits of the public key in a certificate (RFC 5280 section 4.1): for RSA that of the
/// modulus, for curves what OpenSSL prints; `None` if it is not known.
fn key_bits(certificate: &[u8]) -> Option<u32> {
    let signed_certificate = element(certificate)?.content;
    let mut fields = element(signed_certificate)?.content;
    if fields.first() == Some(&0xA0) {
        // The version, which only certificates of version 1 leave out.
        fields = element(fields)?.rest;
    }
    // Serial number, signature, issuer, validity and subject stand before the key.
    for _ in 0..5 {
        fields = element(fields)?.rest;
    }
    let algorithm = element(element(fields)?.content)?;
    let oid = element(algorithm.content)?;
    match oid.content {
        RSA => rsa_bits(algorithm.rest),
        EC => match element(oid.rest)?.content {
            P256 => Some(256),
            P384 => Some(384),
            P521 => Some(521),
            _ => None,
        },
        ED25519 => Some(253),
        _ => None,
    }
}

/// The size in bits of an RSA key: a BIT STRING, whose first byte counts unused bits, of a SEQUENCE that begins with
/// the modulus.
fn rsa_bits(bit_string: &[u8]) -> Option<u32> {
    let key = element(bit_string)?.content.get(1..)?;
    let modulus = element(element(key)?.content)?.content;
    // A zero may stand before the number, so that it is not negative.
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    let bytes = u32::try_from(modulus.len() - zeros).ok()?;
    Some(bytes * 8 - first.leading_zeros())
}

/// The first element of some DER, without its tag and length.
struct Element<'a> {
    content: &'a [u8],
    /// The bytes behind the element.
    rest: &'a [u8],
}

/// Reads the first element of `der` (X.690, sections 8.1.3 and 10.1), whatever its tag; `None` if it is malformed, or
/// longer than certificates need: 64 KiB or more.
fn element(der: &[u8]) -> Option<Element<'_>> {
    // The tag is the first byte. Up to 0x7F the next one is the length; 0x81 and 0x82 say that the length has one or
    // two bytes of its own.
    let (len, behind_length) = match der.get(1)? {
        short @ 0..=0x7F => (usize::from(*short), der.get(2..)?),
        0x81 => (usize::from(*der.get(2)?), der.get(3..)?),
        0x82 => {
            let len = u16::from_be_bytes([*der.get(2)?, *der.get(3)?]);
            (usize::from(len), der.get(4..)?)
        }
        _ => return None,
    };
    let (content, rest) = behind_length.split_at_checked(len)?;
    Some(Element { content, rest })
}

const RSA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01];
const P256: &[u8] = &[0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2B, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2B, 0x81, 0x04, 0x00, 0x23];
const ED25519: &[u8] = &[0x2B, 0x65, 0x70];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_the_names_that_openssl_gives_them() {
        for (suite, expected) in [
            (
                CipherSuite::TLS13_AES_256_GCM_SHA384,
                "TLS_AES_256_GCM_SHA384",
            ),
            (
                CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
                "TLS_CHACHA20_POLY1305_SHA256",
            ),
            (
                CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
                "ECDHE-RSA-AES128-GCM-SHA256",
            ),
            (
                CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                "ECDHE-ECDSA-AES256-GCM-SHA384",
            ),
            (
                CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
                "ECDHE-RSA-CHACHA20-POLY1305",
            ),
        ] {
            assert_eq!(openssl_name(suite), expected);
        }
        assert_eq!(cipher_bits(CipherSuite::TLS13_AES_128_GCM_SHA256), 128);
        assert_eq!(cipher_bits(CipherSuite::TLS13_AES_256_GCM_SHA384), 256);
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_key() {
        for bytes in [
            &b""[..],
            b"0",
            &[0x30, 0x82],
            &[0x30, 0x03, 0x30, 0x01, 0xA0],
            &[0xFF; 40],
        ] {
            assert_eq!(key_bits(bytes), None, "{bytes:?}");
        }
    }
}
