//! Recognises stores of certificates and keys that are not PEM, by their first bytes.
//!
//! Messages name the kind of store and the command that converts it to PEM. The stores are never
//! opened: most need a password.

use crate::fault::{Fault, Part, PemFile};

/// A kind of file, other than PEM, for certificates and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// PKCS#12, mostly `.p12` or `.pfx` (RFC 7292).
    Pkcs12,
    /// A Java keystore, or an encrypted one (JCEKS).
    Jks,
    /// PKCS#7, mostly `.p7b`: certificates only (RFC 2315).
    Pkcs7,
}

impl Store {
    /// Recognises a store by the bytes of its file; `None` for any other file.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(&[0xfe, 0xed, 0xfe, 0xed]) || bytes.starts_with(&[0xce; 4]) {
            return Some(Self::Jks);
        }
        let armour = b"-----BEGIN PKCS7-----";
        if bytes.windows(armour.len()).any(|window| window == armour) {
            return Some(Self::Pkcs7);
        }
        // DER: a SEQUENCE with its length.
        let content = match bytes {
            // An indefinite length, as some tools write it.
            [0x30, 0x80, content @ ..] => content,
            // A length of one to four bytes.
            [0x30, length @ 0x81..=0x84, content @ ..] => {
                content.get(usize::from(length - 0x80)..)?
            }
            _ => return None,
        };
        match content {
            // The version of a PFX.
            [2, 1, 3, ..] => Some(Self::Pkcs12),
            // The identifier of signed data.
            [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2, ..] => Some(Self::Pkcs7),
            _ => None,
        }
    }

    /// The kind of store, in words.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Pkcs12 => "a PKCS#12 store",
            Self::Jks => "a keystore of Java",
            Self::Pkcs7 => "PKCS#7",
        }
    }

    /// The fault for a store in the place of a PEM file, with the command that converts it.
    pub(crate) fn fault(self, file: &PemFile, part: Part) -> Fault {
        let path = file.path.display();
        let takes_key = matches!(part, Part::Key(_));
        let hint = match (self, takes_key) {
            (Self::Pkcs12, false) => {
                format!("openssl pkcs12 -in {path} -nokeys -out {path}.pem")
            }
            (Self::Pkcs12, true) => {
                format!("openssl pkcs12 -in {path} -nocerts -nodes -out {path}.key")
            }
            (Self::Jks, _) => format!(
                "keytool -importkeystore -srckeystore {path} -destkeystore {path}.p12 \
                 -deststoretype pkcs12, then openssl pkcs12 -in {path}.p12 -nodes"
            ),
            (Self::Pkcs7, false) => {
                format!("openssl pkcs7 -in {path} -print_certs -out {path}.pem")
            }
            (Self::Pkcs7, true) => {
                "it has certificates alone; name the PEM file with the certificate's key".to_owned()
            }
        };
        Fault::new(part, format!("{path} is {}, not PEM", self.kind()), hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_known_by_its_first_bytes() {
        for (bytes, store) in [
            (&[0x30, 0x82, 4, 0, 2, 1, 3, 0x30][..], Some(Store::Pkcs12)),
            (&[0x30, 0x80, 2, 1, 3, 0x30], Some(Store::Pkcs12)),
            (&[0xfe, 0xed, 0xfe, 0xed, 0, 0], Some(Store::Jks)),
            (b"-----BEGIN PKCS7-----\n", Some(Store::Pkcs7)),
            // A certificate, a key of RSA and one of PKCS#8: DER, and no store.
            (&[0x30, 0x82, 3, 0, 0x30, 0x82], None),
            (&[0x30, 0x82, 4, 0, 2, 1, 0, 2], None),
            (&[0x30, 0x81], None),
            (b"-----BEGIN CERTIFICATE-----\n", None),
            (b"", None),
        ] {
            assert_eq!(Store::of(bytes), store, "{bytes:?}");
        }
    }
}
