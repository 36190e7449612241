//! Blocks that are decoded, and blocks that are refused.

use std::ops::ControlFlow;

use catamaran_http2::hpack::{Decoder, Fault, LineName, Pseudo, Scratch};
use catamaran_message::NameRef;
use catamaran_message::name::Protocol;
use catamaran_testkit::replay_corpus;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bodies::{self, decode_all};

pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// The fields of a block as lines.
fn text_of(decoder: &mut Decoder, block: &[u8]) -> Result<String, Fault> {
    let (shown, _) = decode_all(decoder, block)?;
    let lines = shown.iter().map(|(name, value, is_never_indexed)| {
        let never = if *is_never_indexed { " (never)" } else { "" };
        format!("{}: {}{never}\n", name.escape_ascii(), value.escape_ascii())
    });
    Ok(lines.collect())
}

/// Decodes blocks in order, each with what it means.
fn check(table_size: u32, blocks: &[(&str, &str)]) {
    let mut decoder = Decoder::new();
    decoder.set_table_size(table_size);
    if table_size < 4096 {
        // The RFC's examples do not say the size that they begin with.
        let update = [
            0x3f,
            (table_size - 31) as u8 | 0x80,
            ((table_size - 31) >> 7) as u8,
        ];
        decode_all(&mut decoder, &update).unwrap();
    }
    for (hex, expected) in blocks {
        let text = text_of(&mut decoder, &bytes(hex)).unwrap();
        let expected: Vec<&str> = expected.lines().map(str::trim_start).collect();
        assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{hex}");
    }
}

fn fault(blocks: &[&[u8]]) -> Option<Fault> {
    let mut decoder = Decoder::new();
    let mut found = blocks.iter().map(|block| decode_all(&mut decoder, block));
    found.find_map(Result::err)
}

/// RFC 7541, appendix C.2.
#[test]
fn representations() {
    let literal = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(
        4096,
        &[
            (literal, "custom-key: custom-header"),
            ("be", "custom-key: custom-header"),
        ],
    );
    check(
        4096,
        &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path")],
    );
    let never = "1008 7061 7373 776f 7264 0673 6563 7265 74";
    check(4096, &[(never, "password: secret (never)")]);
    check(4096, &[("82", ":method: GET")]);
}

/// Appendices C.3 and C.4.
#[test]
fn requests_of_the_rfc() {
    let [first, second, third] = REQUESTS;
    check(
        4096,
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first),
            ("8286 84be 5808 6e6f 2d63 6163 6865", second),
            (
                "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
                third,
            ),
        ],
    );
    check(
        4096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first),
            ("8286 84be 5886 a8eb 1064 9cbf", second),
            (
                "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
                third,
            ),
        ],
    );
}

/// Appendices C.5 and C.6: entries are evicted.
#[test]
fn responses_of_the_rfc() {
    let [first, second, third] = RESPONSES;
    check(
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
             2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
             6c65 2e63 6f6d",
                first,
            ),
            ("4803 3330 37c1 c0bf", second),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
             54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
             5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
             3d31",
                third,
            ),
        ],
    );
    check(
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                first,
            ),
            ("4883 640e ffc1 c0bf", second),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
             77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
             9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                third,
            ),
        ],
    );
}

#[test]
fn names_are_known_by_numbers() {
    let mut names = Vec::new();
    let block = b"\x82\x00\x09:protocol\x01x\x00\x03:no\x01x\x40\x06server\x01x\xbe\x00\x04eTag\x01x\x40\x06Server\x01x\xbe";
    let visit = |line: catamaran_http2::hpack::FieldLine<'_>| {
        names.push(match line.name {
            LineName::Pseudo(pseudo) => format!("{pseudo:?}"),
            LineName::Field(NameRef::Known(id)) => format!("{id:?}"),
            LineName::Field(NameRef::Other(text)) => format!("'{}'", text.escape_ascii()),
        });
        ControlFlow::Continue(())
    };
    let mut decoder = Decoder::new();
    decoder
        .decode(block, usize::MAX, &mut Scratch::default(), visit)
        .unwrap();
    let expected = [
        "Method", "Protocol", "':no'", "Server", "Server", "'eTag'", "'Server'", "'Server'",
    ];
    assert_eq!(names, expected);
    assert_eq!(Pseudo::Method.as_bytes(), b":method");
}

#[test]
fn every_static_entry() {
    let mut decoder = Decoder::new();
    for index in 1..=61 {
        let (shown, _) = decode_all(&mut decoder, &[0x80 | index]).unwrap();
        let [(shown_name, value, false)] = &shown[..] else {
            panic!("{shown:?}");
        };
        match index {
            1..=14 => assert!(shown_name.starts_with(b":")),
            16 => assert_eq!(value, b"gzip, deflate"),
            _ => assert!(value.is_empty()),
        }
        if let Some(id) = Protocol::Hpack.names()[usize::from(index)] {
            assert_eq!(id.code(Protocol::Hpack), Some(index));
        }
    }
    let text = text_of(&mut decoder, b"\x81\x8e\x8f\x90\xa0\xb3\xbd").unwrap();
    let expected = ":authority: \n:status: 500\naccept-charset: \naccept-encoding: gzip, deflate\ncookie: \n\
                    referer: \nwww-authenticate: \n";
    assert_eq!(text, expected);
}

#[test]
fn indices_and_integers_are_strict() {
    for (block, expected) in [
        (&b"\x80"[..], Fault::Index),
        (b"\xbe", Fault::Index),
        (b"\xff\x00", Fault::Index),
        (b"\x7f\x00\x01x", Fault::Index),
        (b"\xff\xff\xff\xff\x7f", Fault::Index),
        // Bits beyond the 28th, even if they are zeros.
        (b"\xff\xff\xff\xff\xff\x00", Fault::Integer),
        (b"\xff\x80\x80\x80\x80\x00", Fault::Integer),
        (
            b"\x00\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            Fault::Integer,
        ),
        (b"\x3f\xff\xff\xff\xff\xff\x0f", Fault::Integer),
        (b"\x00\x7f\xff\xff\xff\x7f", Fault::Truncated),
        (b"\x00\x01x\x81\x00", Fault::Huffman),
        (b"\x00\x81\xff\x01x", Fault::Huffman),
    ] {
        assert_eq!(fault(&[block]), Some(expected), "{block:x?}");
    }
    // More bytes than it needs are allowed.
    assert_eq!(
        fault(&[b"\x0f\x80\x80\x00\x01x", b"\x3f\x80\x80\x00"]),
        None
    );
    let tokens = [
        Fault::Truncated,
        Fault::Integer,
        Fault::Index,
        Fault::Huffman,
        Fault::TableSize,
    ];
    assert!(
        tokens
            .iter()
            .all(|fault| fault.token().starts_with("hpack-"))
    );
}

#[test]
fn a_size_stands_at_the_beginning_and_below_the_setting() {
    let to_4096 = &b"\x3f\xe1\x1f"[..];
    assert_eq!(fault(&[to_4096, b"\x20\x3f\xe1\x1f\x82"]), None);
    assert_eq!(fault(&[b"\x3f\xe2\x1f"]), Some(Fault::TableSize));
    assert_eq!(fault(&[b"\x82\x20"]), Some(Fault::TableSize));
    // A size of nothing empties the table, and an entry that is too large does.
    assert_eq!(
        fault(&[b"\x40\x01a\x01b", b"\x20", b"\xbe"]),
        Some(Fault::Index)
    );
    let large = [b"\x40\x01a\x7f\xa1\x1f", &[b'x'; 4128][..]].concat();
    assert_eq!(
        fault(&[b"\x40\x01a\x01b", &large, b"\xbe"]),
        Some(Fault::Index)
    );

    let after = |sizes: &[u32], block: &[u8]| {
        let mut decoder = Decoder::new();
        sizes.iter().for_each(|size| decoder.set_table_size(*size));
        text_of(&mut decoder, block).err()
    };
    assert_eq!(after(&[100], b"\x82"), Some(Fault::TableSize));
    assert_eq!(after(&[100], b"\x3f\x46\x82"), Some(Fault::TableSize));
    assert_eq!(after(&[100], b"\x3f\x45\x82"), None);
    assert_eq!(after(&[100], b"\x20\x3f\x45\x82"), None);
    assert_eq!(after(&[10_000], b"\x82"), None);
    assert_eq!(after(&[10_000], b"\x3f\xf1\x4d\x82"), None);
    assert_eq!(
        after(&[10_000], b"\x3f\xf2\x4d\x82"),
        Some(Fault::TableSize)
    );
    // Lowered and raised in between: the lower one has to be said.
    assert_eq!(after(&[100, 4096], to_4096), Some(Fault::TableSize));
    assert_eq!(after(&[100, 4096], b"\x3f\x45\x3f\xe1\x1f"), None);
}

#[test]
fn a_block_that_is_cut_off_is_refused_unless_a_field_ends_there() {
    let block = bytes("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf");
    let before = b"\x40\x01a\x01b\x40\x01a\x01b";
    for end in 0..block.len() {
        let expected = (end > 4).then_some(Fault::Truncated);
        assert_eq!(fault(&[before, &block[..end]]), expected, "{end}");
    }
}

/// An entry of 4,064 bytes that a block names 16,000 times: what is shown stops at the limit.
#[test]
fn a_bomb_stops_at_the_limit_and_the_table_stays_right() {
    let value_len = 4064 - 32 - 1;
    let mut block = vec![0x40, 1, b'a', 0x7f];
    block.extend([
        (value_len - 127) as u8 | 0x80,
        ((value_len - 127) >> 7) as u8,
    ]);
    block.extend(vec![b'x'; value_len]);
    block.extend(vec![0xbe; 16_000]);
    block.extend(b"\x40\x01b\x01c");
    let mut decoder = Decoder::new();
    let mut shown = 0;
    let size = decoder.decode(&block, 65_536, &mut Scratch::default(), |line| {
        shown += line.size();
        ControlFlow::Continue(())
    });
    assert_eq!(size, Ok(4064 * 16_001 + 34));
    assert_eq!(shown, 4064 * 16);
    assert_eq!(text_of(&mut decoder, b"\xbe").unwrap(), "b: c\n");
    assert_eq!(text_of(&mut decoder, b"\xbf"), Err(Fault::Index));
}

/// The oldest entry gives its name to the one that evicts it.
#[test]
fn a_name_may_come_from_the_entry_that_is_evicted() {
    let mut decoder = Decoder::new();
    decoder.set_table_size(70);
    let name = b"\x3f\x27\x40\x05aname\x01b";
    assert_eq!(text_of(&mut decoder, name).unwrap(), "aname: b\n");
    let again = [&b"\x7e\x1e"[..], &[b'x'; 30]].concat();
    let expected = format!("aname: {}\n", "x".repeat(30));
    assert_eq!(text_of(&mut decoder, &again).unwrap(), expected);
    assert_eq!(text_of(&mut decoder, b"\xbe").unwrap(), expected);
    assert_eq!(text_of(&mut decoder, b"\xbf"), Err(Fault::Index));
}

/// Entries of all lengths, thousands of them, beside a list that says what the table should have.
#[test]
fn the_table_has_what_fits() {
    let mut decoder = Decoder::new();
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for number in 0..5000_usize {
        let value = vec![b'a' + (number % 26) as u8; number * 7 % 120];
        let block = [&[0x40, 2, b'n', b'm', value.len() as u8][..], &value].concat();
        decode_all(&mut decoder, &block).unwrap();
        entries.insert(0, value);
        let mut size = 0;
        entries.retain(|value| {
            size += value.len() + 34;
            size <= 4096
        });
        if number % 50 == 0 {
            for (age, value) in entries.iter().enumerate() {
                let index = match age + 62 {
                    index @ ..127 => vec![0x80 | index as u8],
                    index => vec![0xff, (index - 127) as u8],
                };
                let (shown, _) = decode_all(&mut decoder, &index).unwrap();
                assert_eq!(&shown[0].1, value);
            }
        }
    }
}

#[test]
fn corpus_of_decoding() {
    replay_corpus("hpack_decode", bodies::decode);
}

proptest! {
    #[test]
    fn no_bytes_upset_the_decoder(input in vec(any::<u8>(), 0..400)) {
        bodies::decode(&input);
    }

    /// Changes in good blocks reach deeper.
    #[test]
    fn no_damage_upsets_the_decoder(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut input = bytes(
            "ff40 03 3fe11f 12 8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff be
             0c 8286 84be 5886 a8eb 1064 9cbf
             19 8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf be",
        );
        for (index, byte) in changes {
            let at = index.index(input.len());
            input[at] = byte;
        }
        bodies::decode(&input);
    }
}

const REQUESTS: [&str; 3] = [
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
    ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
];

const RESPONSES: [&str; 3] = [
    ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
    ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
    ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: https://www.example.com\n\
     content-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
];
