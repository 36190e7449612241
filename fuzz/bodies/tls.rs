//! What must hold for any bytes at the record layer of TLS.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpora in the crate's own tests.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use catamaran_tls::{
    CertificateFiles, ClientCertificate, Connection, PemFile, Profile, ProfileFiles,
    ProfileSettings, Protocols, Roots, TicketKeys, TlsError, Trust, TrustSettings, Version,
};
use rcgen::{CertificateParams, KeyPair};

/// What both ends are made of.
struct Ends {
    profile: Profile,
    trust: Trust,
}

fn ends() -> &'static Ends {
    static ENDS: OnceLock<Ends> = OnceLock::new();
    ENDS.get_or_init(|| {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["a.test".to_owned()]).expect("a name");
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = |text: String| PemFile {
            path: PathBuf::from("a"),
            bytes: text.into(),
            is_public: false,
        };
        let files = ProfileFiles {
            certificates: vec![CertificateFiles {
                chain: file(certificate.pem()),
                key: file(key.serialize_pem()),
                default: true,
            }],
            ..ProfileFiles::default()
        };
        let settings = ProfileSettings {
            strict_sni: false,
            version_min: Version::Tls12,
            client_certificate: ClientCertificate::Off,
            client_certificate_chain: false,
            tickets: true,
            ticket_rotation: Duration::from_secs(3600),
        };
        let keys: Arc<TicketKeys> = TicketKeys::generate().expect("random bytes");
        let built = Profile::build(&settings, &files, &keys, None, SystemTime::now());
        Ends {
            profile: built.expect("a profile").profile,
            trust: Trust::new(TrustSettings {
                server_name: "a.test".to_owned(),
                verify: false,
                roots: Roots::none(),
                identity: None,
            })
            .expect("trust"),
        }
    })
}

/// One end: its connection, and what it received and did not use up.
struct End {
    connection: Connection,
    rest: Vec<u8>,
    plain: BytesMut,
    out: Vec<u8>,
    is_open: bool,
    failed: bool,
}

impl End {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            rest: Vec::new(),
            plain: BytesMut::new(),
            out: Vec::new(),
            is_open: false,
            failed: false,
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let before = self.rest.len();
        let received: Result<_, TlsError> =
            self.connection
                .receive(&mut self.rest, &mut self.plain, &mut self.out);
        match received {
            Ok(received) => {
                assert!(!self.failed, "nothing is received after a failure");
                assert!(received.consumed <= before);
                assert!(!self.is_open || received.is_open, "what is open stays so");
                self.is_open = received.is_open;
                self.rest.drain(..received.consumed);
            }
            Err(error) => {
                self.failed = true;
                assert!(error.client_token().starts_with("tls-"));
                assert!(error.server_token().starts_with("tls-"));
            }
        }
    }
}

/// Any bytes at a server, in pieces of any length: it never takes them for a handshake that is over.
pub(crate) fn raw(input: &[u8]) {
    let Some((&step, bytes)) = input.split_first() else {
        return;
    };
    let server = Connection::server(&ends().profile, Protocols::Http1).expect("a connection");
    let mut server = End::new(server);
    for piece in bytes.chunks(usize::from(step) + 1) {
        server.receive(piece);
    }
    assert!(!server.is_open);
    assert!(server.plain.is_empty());
}

/// Both ends against each other, with their bytes cut as the input has it. If one byte is flipped on
/// its way, an end notices, or nothing is changed by it; what arrives is never anything else than
/// what was sent.
pub(crate) fn dialogue(input: &[u8]) {
    let [flip, high, low, mask, cuts @ ..] = input else {
        return;
    };
    let flip_at =
        (flip % 2 == 1 && *mask != 0).then(|| usize::from(u16::from_be_bytes([*high, *low])));
    let mut wire = Wire {
        cuts: if cuts.is_empty() { &[255] } else { cuts },
        at: 0,
        passed: 0,
        flip: flip_at.map(|at| (at, *mask)),
    };
    let ends = ends();
    let mut client = End::new(Connection::client(&ends.trust).expect("a connection"));
    let mut server =
        End::new(Connection::server(&ends.profile, Protocols::Http1).expect("a connection"));
    client.receive(&[]);
    wire.pump(&mut client, &mut server);
    let (up, down) = (vec![b'u'; 40_000], vec![b'd'; 20_000]);
    for (end, bytes) in [(&mut client, &up), (&mut server, &down)] {
        if end.is_open && !end.failed {
            let sealed = end.connection.seal(bytes, &mut end.rest, &mut end.out);
            sealed.expect("an open connection");
        }
    }
    wire.pump(&mut client, &mut server);
    assert!(up.starts_with(&server.plain));
    assert!(down.starts_with(&client.plain));
    if flip_at.is_none() {
        assert!(!client.failed && !server.failed);
        assert_eq!(
            (server.plain.len(), client.plain.len()),
            (up.len(), down.len())
        );
        assert!(server.rest.is_empty() && client.rest.is_empty());
    }
}

/// What carries the bytes of both ends.
struct Wire<'a> {
    cuts: &'a [u8],
    at: usize,
    /// Bytes passed so far, of both ends.
    passed: usize,
    /// Where a byte is changed, and how.
    flip: Option<(usize, u8)>,
}

impl Wire<'_> {
    /// Passes bytes on until neither end has any.
    fn pump(&mut self, client: &mut End, server: &mut End) {
        loop {
            let moved = self.pass(client, server) | self.pass(server, client);
            if !moved {
                return;
            }
        }
    }

    fn pass(&mut self, from: &mut End, to: &mut End) -> bool {
        let mut bytes = std::mem::take(&mut from.out);
        if let Some((at, mask)) = self.flip
            && let Some(place) = at.checked_sub(self.passed)
            && let Some(byte) = bytes.get_mut(place)
        {
            *byte ^= mask;
            self.flip = None;
        }
        self.passed += bytes.len();
        let moved = !bytes.is_empty();
        let mut left = &bytes[..];
        while !left.is_empty() {
            let cut = self.cuts[self.at % self.cuts.len()];
            self.at += 1;
            // Some pieces are long, or 60,000 bytes would take as many calls.
            let length = if cut > 200 {
                17_000
            } else {
                usize::from(cut) + 1
            };
            let (piece, rest) = left.split_at(length.min(left.len()));
            to.receive(piece);
            left = rest;
        }
        moved
    }
}
