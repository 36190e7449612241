//! Faults in the files of a profile, in words, with the setting that each concerns.

use std::path::PathBuf;

use rustls::{CertificateError, Error};

/// The text of a rustls error for readers, without the names of rustls' types.
pub(crate) fn in_words(error: &Error) -> String {
    let (Error::InvalidCertificate(CertificateError::Other(other)) | Error::Other(other)) = error
    else {
        return error.to_string();
    };
    let text = other.to_string();
    // Names of variants of `webpki::Error`, which rustls passes on as a text only.
    match text.as_str() {
        "CaUsedAsEndEntity" => {
            "the certificate is that of an authority, and only a certificate that stands in the \
                                file of trusted ones may be"
                .to_owned()
        }
        "EndEntityUsedAsCa" => "a certificate of the chain is not that of an authority".to_owned(),
        "UnsupportedCertVersion" => "the certificate is not of version 3".to_owned(),
        _ => format!("the certificate is not acceptable: {text}"),
    }
}

/// A PEM file that the caller has read.
#[derive(Clone, Debug)]
pub struct PemFile {
    /// The file's path, for messages.
    pub path: PathBuf,
    /// The file's contents.
    pub bytes: Vec<u8>,
    /// Whether every user of the machine may read the file.
    pub is_public: bool,
}

/// The setting of a profile that a fault concerns. Certificates are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The `chain` of the certificate with this number.
    Chain(usize),
    /// The `key` of the certificate with this number.
    Key(usize),
    /// The `default` of the certificate with this number.
    Default(usize),
    /// The setting `client_ca`.
    ClientCa,
    /// The setting `client_crl`.
    ClientCrl,
    /// The setting `ticket_keys_file`.
    TicketKeys,
    /// The profile as a whole.
    Profile,
}

/// A fault in a file of a profile, or a warning about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The setting that the fault is about.
    pub part: Part,
    /// The fault, in words.
    pub message: String,
    /// What the operator should do.
    pub hint: String,
}

impl Fault {
    pub(crate) fn new(part: Part, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            part,
            message: message.into(),
            hint: hint.into(),
        }
    }
}
