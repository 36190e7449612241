//! What is wrong with the files of a profile, in words, and which file it is about.

use std::path::PathBuf;

use rustls::{CertificateError, Error};

/// An error of rustls for readers: without the names of its own types.
pub(crate) fn in_words(error: &Error) -> String {
    let (Error::InvalidCertificate(CertificateError::Other(other)) | Error::Other(other)) = error
    else {
        return error.to_string();
    };
    let text = other.to_string();
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

/// A PEM file, read by the caller.
#[derive(Clone, Debug)]
pub struct PemFile {
    /// Its path, for messages.
    pub path: PathBuf,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether every user of the machine may read it.
    pub is_public: bool,
}

/// Which setting of a profile something is about. Certificates are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The `chain` of a certificate.
    Chain(usize),
    /// The `key` of a certificate.
    Key(usize),
    /// The `default` of a certificate.
    Default(usize),
    /// `client_ca`.
    ClientCa,
    /// `client_crl`.
    ClientCrl,
    /// `ticket_keys_file`.
    TicketKeys,
    /// The profile as a whole.
    Profile,
}

/// A fault of a file, or a warning about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The setting that the fault is about.
    pub part: Part,
    /// What is wrong.
    pub message: String,
    /// What to do.
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
