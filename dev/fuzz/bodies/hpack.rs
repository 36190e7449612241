//! Checks HPACK with any blocks of header fields, and with any fields.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so do the tests of the crate.

use std::ops::ControlFlow;

use bytes::BytesMut;
use catamaran_http2::hpack::{Decoder, Encoder, Fault, FieldLine, LineName, Scratch};
use catamaran_message::NameRef;

/// A decoded field: name, value, and whether it is never indexed.
pub(crate) type Shown = (Vec<u8>, Vec<u8>, bool);

/// Decodes all fields of a block, with names in lower case; returns them and the size of the list.
pub(crate) fn decode_all(
    decoder: &mut Decoder,
    block: &[u8],
) -> Result<(Vec<Shown>, usize), Fault> {
    let mut fields = Vec::new();
    let size = decoder.decode(block, usize::MAX, &mut Scratch::default(), |line| {
        let mut name = line.name.as_bytes().to_vec();
        if !is_as_it_came(line.name) {
            name.make_ascii_lowercase();
        }
        fields.push((name, line.value.to_vec(), line.is_never_indexed));
        ControlFlow::Continue(())
    })?;
    Ok((fields, size))
}

fn is_as_it_came(name: LineName<'_>) -> bool {
    matches!(name, LineName::Field(NameRef::Other(_)))
}

/// The input is blocks, each after its length. One decoder reads all fields; two others read only some of each block,
/// because of a limit or because the visitor stops. They must have the same size and faults in later blocks.
pub(crate) fn decode(input: &[u8]) {
    let Some(([table_size, limit], mut blocks)) = input.split_first_chunk() else {
        return;
    };
    let table_size = u32::from(*table_size) * 32;
    let limit = usize::from(*limit) * 8;
    let mut decoders = [const { Decoder::new() }; 3];
    for decoder in &mut decoders {
        decoder.set_table_size(table_size);
    }
    let [complete, limited, stopping] = &mut decoders;
    let mut scratch = Scratch::default();
    while let Some((len, behind)) = blocks.split_first() {
        let (block, further) = behind.split_at(behind.len().min(usize::from(*len)));
        blocks = further;
        let all_fields = decode_all(complete, block);
        let mut shown = 0;
        let limited_size = limited.decode(block, limit, &mut scratch, |line| {
            shown += line.size();
            ControlFlow::Continue(())
        });
        assert!(shown <= limit);
        let mut visits = 0;
        let stopping_size = stopping.decode(block, usize::MAX, &mut scratch, |_| {
            visits += 1;
            ControlFlow::Break(())
        });
        match all_fields {
            Ok((fields, total)) => {
                // Each field counts for 32 bytes more (RFC 7541, section 4.1).
                let sizes = fields
                    .iter()
                    .map(|(name, value, _)| name.len() + value.len() + 32);
                assert_eq!(sizes.sum::<usize>(), total);
                assert_eq!((limited_size, stopping_size), (Ok(total), Ok(total)));
                assert!(visits == fields.len().min(1) && (shown == total || total > limit));
            }
            Err(fault) => {
                assert_eq!((limited_size, stopping_size), (Err(fault), Err(fault)));
                return;
            }
        }
    }
}

/// The input is steps of an encoder: blocks of fields, and between them sizes of the table that the peer sets. The
/// decoder must return the same fields.
pub(crate) fn round_trip(input: &[u8]) {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
    let mut steps = Steps { rest: input };
    while let Some(step) = steps.byte() {
        if step & 0x80 != 0 {
            for _ in 0..1 + (step >> 5 & 3) {
                let size = u32::from(steps.byte().unwrap_or(0)) * 40;
                encoder.set_table_size(size);
                decoder.set_table_size(size);
            }
        }
        let mut expected = Vec::new();
        let mut out = BytesMut::from("before");
        let mut block = encoder.block(&mut out);
        for _ in 0..step & 0x1f {
            let name = steps.name();
            let value = steps.text();
            let is_never_indexed = step & 0x40 != 0;
            block.line(&FieldLine {
                // A sender recognises the names of the static table in lower and upper case.
                name: match LineName::read(&name) {
                    LineName::Field(_) => LineName::Field(NameRef::read(&name)),
                    pseudo => pseudo,
                },
                value: &value,
                is_never_indexed,
            });
            let secrets: [&[u8]; 4] = [
                b"authorization",
                b"proxy-authorization",
                b"cookie",
                b"set-cookie",
            ];
            let lower_name = name.to_ascii_lowercase();
            let is_secret = is_never_indexed || secrets.contains(&&lower_name[..]);
            expected.push((lower_name, value, is_secret));
        }
        let encoded = &out[b"before".len()..];
        let (mut fields, _) = decode_all(&mut decoder, encoded).expect("a good block");
        for (name, ..) in &mut fields {
            name.make_ascii_lowercase();
        }
        assert_eq!(fields, expected);
    }
}

/// Reads the input of `round_trip` as steps.
struct Steps<'i> {
    rest: &'i [u8],
}

impl Steps<'_> {
    fn byte(&mut self) -> Option<u8> {
        self.rest.split_off_first().copied()
    }

    /// A name of one of the kinds that HPACK treats differently, or any bytes.
    fn name(&mut self) -> Vec<u8> {
        match self.byte() {
            Some(at) if at < 0xC0 => NAMES[usize::from(at) % NAMES.len()].to_vec(),
            _ => self.text(),
        }
    }

    /// Any bytes, or one byte many times.
    fn text(&mut self) -> Vec<u8> {
        let len = usize::from(self.byte().unwrap_or(0));
        match len {
            0xC0.. => vec![self.byte().unwrap_or(0); (len - 0xC0) * 40],
            _ => {
                let (text, rest) = self.rest.split_at(self.rest.len().min(len % 24));
                self.rest = rest;
                text.to_vec()
            }
        }
    }
}

const NAMES: [&[u8]; 16] = [
    b":status",
    b":path",
    b":method",
    b":authority",
    b":protocol",
    b"Content-Type",
    b"accept-encoding",
    b"Server",
    b"date",
    b"set-cookie",
    b"authorization",
    b"x-frame-options",
    b"X-Request-Id",
    b"x-unknown",
    b"y-unknown",
    b"X-OTHER",
];
