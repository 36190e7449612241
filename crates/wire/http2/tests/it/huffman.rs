//! The code of strings.

use bytes::BytesMut;
use catamaran_http2::huffman::{InvalidCode, decode, encode, encoded_len};
use proptest::collection::vec;
use proptest::prelude::*;

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut code = BytesMut::new();
    encode(text.iter().copied(), &mut code);
    assert_eq!(code.len(), encoded_len(text.iter().copied()));
    code.to_vec()
}

fn decoded(code: &[u8]) -> Result<Vec<u8>, InvalidCode> {
    let mut text = b"before ".to_vec();
    decode(code, &mut text)?;
    Ok(text.split_off(7))
}

/// The strings of RFC 7541, appendix C.
#[test]
fn examples_of_the_rfc() {
    for (text, code) in [
        ("", &[][..]),
        ("www.example.com", b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"),
        ("no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
        ("custom-key", b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f"),
        ("302", b"\x64\x02"),
        ("private", b"\xae\xc3\x77\x1a\x4b"),
        (
            "Mon, 21 Oct 2013 20:13:21 GMT",
            b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
        ),
        (
            "https://www.example.com",
            b"\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
        ),
    ] {
        assert_eq!(encoded(text.as_bytes()), code, "{text}");
        assert_eq!(decoded(code).unwrap(), text.as_bytes());
    }
}

/// Some codes of appendix B, of many lengths; what follows them are ones.
#[test]
fn codes_are_those_of_the_rfc() {
    for (byte, code) in [
        (b'0', &[0x07][..]),
        (b' ', &[0x53]),
        (b'&', &[0xf8]),
        (b'?', &[0xff, 0x3f]),
        (b'#', &[0xff, 0xaf]),
        (b'\\', &[0xff, 0xfe, 0x1f]),
        (0, &[0xff, 0xc7]),
        (1, &[0xff, 0xff, 0xb1]),
        (b'\n', &[0xff, 0xff, 0xff, 0xf3]),
        (22, &[0xff, 0xff, 0xff, 0xfb]),
        (249, &[0xff, 0xff, 0xff, 0xef]),
        (255, &[0xff, 0xff, 0xfb, 0xbf]),
    ] {
        assert_eq!(encoded(&[byte]), code, "{byte}");
    }
}

#[test]
fn every_byte_at_every_offset() {
    for byte in 0..=u8::MAX {
        for before in 0..8 {
            // Five bits each.
            let text = [&vec![b'0'; before], &[byte][..], b"0"].concat();
            assert_eq!(decoded(&encoded(&text)).unwrap(), text);
        }
    }
}

#[test]
fn the_end_symbol_and_bad_padding_are_refused() {
    for code in [
        // Whole bytes of padding.
        &[0xff][..],
        &[0x07, 0xff],
        &[0xff, 0xff, 0xff],
        // The end symbol, alone, behind a symbol, and in front of one.
        &[0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x07, 0xff, 0xff, 0xff, 0xff],
        &[0xff, 0xff, 0xff, 0xfc, 0x1f],
        &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfc],
        // Padding of zeros, and with one.
        &[0x00],
        &[0x50],
        &[0x52],
        // A symbol that is cut off.
        &[0xff, 0xff, 0xff, 0xf0],
        &[0xfe],
    ] {
        assert_eq!(decoded(code), Err(InvalidCode), "{code:x?}");
    }
}

proptest! {
    #[test]
    fn texts_arrive(text in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(decoded(&encoded(&text)).unwrap(), text);
    }

    /// No string has two codes.
    #[test]
    fn what_is_taken_is_what_would_be_written(code in vec(any::<u8>(), 0..40)) {
        if let Ok(text) = decoded(&code) {
            prop_assert_eq!(encoded(&text), code);
        }
    }
}
