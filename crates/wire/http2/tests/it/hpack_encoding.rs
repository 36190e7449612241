//! What is written of fields, and that it is read again.

use bytes::BytesMut;
use catamaran_http2::hpack::{Decoder, Encoder, FieldLine, Pseudo};
use catamaran_message::NameRef;
use catamaran_message::name::SERVER;
use catamaran_testkit::replay_corpus;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bodies::{self, decode_all};
use crate::hpack_decoding::bytes;

/// Writes a block of fields; a name may be a pseudo-field's.
fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = BytesMut::new();
    let mut block = encoder.block(&mut out);
    for (name, value) in fields {
        let value = value.as_bytes();
        match *name {
            ":status" => block.field(Pseudo::Status, value),
            ":method" => block.field(Pseudo::Method, value),
            ":scheme" => block.field(Pseudo::Scheme, value),
            ":path" => block.field(Pseudo::Path, value),
            ":authority" => block.field(Pseudo::Authority, value),
            name => block.field(NameRef::read(name.as_bytes()), value),
        }
    }
    out.to_vec()
}

/// Appendix C.4: our rules index the same fields.
#[test]
fn requests_of_the_rfc() {
    let request = |encoder: &mut Encoder, scheme, path, field: &[(&str, &str)]| {
        let pseudo = [
            (":method", "GET"),
            (":scheme", scheme),
            (":path", path),
            (":authority", "www.example.com"),
        ];
        block(encoder, &[&pseudo[..], field].concat())
    };
    let mut encoder = Encoder::new();
    let first = request(&mut encoder, "http", "/", &[]);
    assert_eq!(first, bytes("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"));
    let second = request(&mut encoder, "http", "/", &[("cache-control", "no-cache")]);
    assert_eq!(second, bytes("8286 84be 5886 a8eb 1064 9cbf"));
    let third = request(
        &mut encoder,
        "https",
        "/index.html",
        &[("Custom-Key", "custom-value")],
    );
    let expected = "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf";
    assert_eq!(third, bytes(expected));
}

/// Appendix C.2.
#[test]
fn what_is_secret_or_unique_is_in_no_table() {
    let mut encoder = Encoder::new();
    for _ in 0..2 {
        let secret = [
            ("Set-Cookie", "a=b"),
            ("cookie", "*"),
            ("authorization", "x"),
        ];
        let expected = b"\x1f\x28\x03a=b\x1f\x11\x01*\x1f\x08\x01x";
        assert_eq!(block(&mut encoder, &secret), expected);
        let unique = [(":path", "/sample/path"), ("ETag", "\"\"")];
        let expected = b"\x04\x89\x61\x03\xa6\xba\x0a\xc5\x63\x4c\xff\x0f\x13\x02\"\"";
        assert_eq!(block(&mut encoder, &unique), expected);
    }
    let mut out = BytesMut::new();
    encoder.block(&mut out).line(&FieldLine {
        name: NameRef::from(SERVER).into(),
        value: b"x",
        is_never_indexed: true,
    });
    assert_eq!(&out[..], b"\x1f\x27\x01x");
    let mut decoder = Decoder::new();
    assert!(decode_all(&mut decoder, &out).unwrap().0[0].2);
}

#[test]
fn what_repeats_takes_a_byte() {
    let mut encoder = Encoder::new();
    let fields = [
        (":status", "200"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Server", "catamaran"),
        ("X-Content-Type-Options", "nosniff"),
        ("Vary", "Accept-Encoding, Origin"),
        ("X-Some", "x"),
        ("X-Other", "x"),
    ];
    let first = block(&mut encoder, &fields);
    let (shown, _) = decode_all(&mut Decoder::new(), &first).unwrap();
    let names: Vec<String> = fields.iter().map(|it| it.0.to_ascii_lowercase()).collect();
    let shown_names = shown.iter().map(|it| it.0.to_ascii_lowercase());
    assert!(shown_names.eq(names.iter().map(|it| it.as_bytes().to_vec())));
    let again = block(&mut encoder, &fields);
    assert_eq!(again, b"\x88\xc3\xc2\xc1\xc0\xbf\xbe");
    // Another value of a known name.
    assert_eq!(block(&mut encoder, &[("x-some", "y")]), b"\x7f\x00\x01y");
    assert_eq!(block(&mut encoder, &[("X-SOME", "x")]), b"\xc0");
}

#[test]
fn a_name_whose_values_never_repeat_is_given_up() {
    let mut encoder = Encoder::new();
    for number in 0..4 {
        let out = block(&mut encoder, &[("x-trace", &number.to_string())]);
        assert_eq!(out[0] & 0xc0, 0x40);
    }
    let out = block(&mut encoder, &[("x-trace", "4")]);
    assert_eq!(out, b"\x0f\x2f\x014");
    // Until one comes again.
    assert_eq!(block(&mut encoder, &[("x-trace", "2")]), b"\xbf");
    assert_eq!(block(&mut encoder, &[("x-trace", "5")])[0] & 0xc0, 0x40);
}

#[test]
fn large_values_are_not_kept() {
    let mut encoder = Encoder::new();
    for (len, first) in [(1024 - 38, 0x76), (1025 - 38, 0x0f)] {
        let out = block(&mut encoder, &[("server", &"x".repeat(len))]);
        assert_eq!(out[0], first);
    }
}

#[test]
fn the_size_that_the_peer_allows_is_heeded_and_said() {
    let mut encoder = Encoder::new();
    let fields = [("server", "x")];
    let literal = block(&mut encoder, &fields);
    // Ours stays the smaller one.
    encoder.set_table_size(65_536);
    assert_eq!(block(&mut encoder, &fields), b"\xbe");
    // What was lower in between empties the table.
    encoder.set_table_size(0);
    encoder.set_table_size(4096);
    assert_eq!(
        block(&mut encoder, &fields),
        [b"\x20\x3f\xe1\x1f", &literal[..]].concat()
    );
    encoder.set_table_size(0);
    assert_eq!(block(&mut encoder, &fields), b"\x20\x0f\x27\x01x");
    assert_eq!(block(&mut encoder, &fields), b"\x0f\x27\x01x");
    encoder.set_table_size(200);
    assert_eq!(
        block(&mut encoder, &fields),
        [b"\x3f\xa9\x01", &literal[..]].concat()
    );
}

#[test]
fn corpus_of_encoding() {
    replay_corpus("hpack_round_trip", bodies::round_trip);
}

proptest! {
    #[test]
    fn what_is_written_is_read(input in vec(any::<u8>(), 0..1500)) {
        bodies::round_trip(&input);
    }

    /// Thousands of entries, so that numbers of entries begin anew.
    #[test]
    fn long_connections_stay_right(steps in vec(any::<[u8; 4]>(), 2000)) {
        // A block of one known name, and a value of one byte.
        let input: Vec<u8> = steps
            .iter()
            .flat_map(|[name, value, ..]| [1, name % 0x80, 1, value % 8])
            .collect();
        bodies::round_trip(&input);
    }
}
