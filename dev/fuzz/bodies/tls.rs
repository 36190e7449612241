//! Checks the record layer of TLS with any bytes.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpora in the crate's own tests.

use std::sync::OnceLock;

use catamaran_testkit::tls::{End, Pair, files, profile, settings};
use catamaran_tls::{Connection, Profile, Protocols, Roots, Trust, TrustSettings};

/// What the ends of connections are made from.
struct Ends {
    profile: Profile,
    trust: Trust,
}

fn ends() -> &'static Ends {
    static ENDS: OnceLock<Ends> = OnceLock::new();
    ENDS.get_or_init(|| {
        let files = files(&[Pair::self_signed(&["a.test"])]);
        Ends {
            profile: profile(&settings(), &files),
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

/// Gives any bytes to a server, in pieces of any length: the handshake must never be complete.
pub(crate) fn raw(input: &[u8]) {
    let Some((&step, bytes)) = input.split_first() else {
        return;
    };
    let server = Connection::server(&ends().profile, Protocols::Http1).expect("a connection");
    let mut server = End::new(server);
    for piece in bytes.chunks(usize::from(step) + 1) {
        server.receive(piece).ok();
    }
    assert!(!server.is_open);
    assert!(server.plain.is_empty());
}

/// Plays both ends against each other, with their bytes cut as the input says. If one byte is flipped, an end must
/// notice, or nothing must change; bytes that arrive must always be those that were sent.
pub(crate) fn dialogue(input: &[u8]) {
    let [flip, high, low, mask, cuts @ ..] = input else {
        return;
    };
    let has_flip = flip % 2 == 1 && *mask != 0;
    let flip_at = usize::from(u16::from_be_bytes([*high, *low]));
    let mut wire = Wire {
        cuts: if cuts.is_empty() { &[255] } else { cuts },
        at: 0,
        passed: 0,
        flip: has_flip.then_some((flip_at, *mask)),
    };
    let ends = ends();
    let mut client = End::new(Connection::client(&ends.trust).expect("a connection"));
    let mut server =
        End::new(Connection::server(&ends.profile, Protocols::Http1).expect("a connection"));
    client.receive(&[]).expect("a greeting");
    wire.pump(&mut client, &mut server);
    let (up, down) = (vec![b'u'; 40_000], vec![b'd'; 20_000]);
    for (end, bytes) in [(&mut client, &up), (&mut server, &down)] {
        if end.is_open && !end.failed {
            end.seal(bytes);
        }
    }
    wire.pump(&mut client, &mut server);
    assert!(up.starts_with(&server.plain));
    assert!(down.starts_with(&client.plain));
    if !has_flip {
        assert!(!client.failed && !server.failed);
        assert_eq!(
            (server.plain.len(), client.plain.len()),
            (up.len(), down.len())
        );
        assert!(server.rest.is_empty() && client.rest.is_empty());
    }
}

/// Carries the bytes of both ends.
struct Wire<'a> {
    cuts: &'a [u8],
    at: usize,
    /// The number of bytes passed so far, of both ends.
    passed: usize,
    /// The position of the byte to change, and its mask.
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

    /// Passes on what an end has written, in pieces; `false` if that is nothing.
    fn pass(&mut self, from: &mut End, to: &mut End) -> bool {
        let mut bytes = std::mem::take(&mut from.out);
        // The place of the flipped byte is counted from the first byte that this wire passed on.
        if let Some((at, mask)) = self.flip
            && let Some(index) = at.checked_sub(self.passed)
            && let Some(byte) = bytes.get_mut(index)
        {
            *byte ^= mask;
            self.flip = None;
        }
        self.passed += bytes.len();
        let mut unpassed = &bytes[..];
        while !unpassed.is_empty() {
            let cut = self.cuts[self.at % self.cuts.len()];
            self.at += 1;
            // Some pieces are long, because 60,000 bytes would otherwise need as many calls.
            let length = if cut > 200 {
                17_000
            } else {
                usize::from(cut) + 1
            };
            let (piece, further) = unpassed.split_at(length.min(unpassed.len()));
            to.receive(piece).ok();
            unpassed = further;
        }
        !bytes.is_empty()
    }
}
