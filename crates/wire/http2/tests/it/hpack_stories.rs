//! What other encoders wrote of the same fields: the stories of hpack-test-case.

use bytes::BytesMut;
use catamaran_http2::hpack::{Decoder, Encoder, LineName};

use crate::bodies::decode_all;
use crate::hpack_decoding::bytes;

/// A block of a story.
#[derive(Default)]
struct StoryBlock<'s> {
    /// The size of the table that was acknowledged before it.
    table_size: Option<u32>,
    block: Vec<u8>,
    fields: Vec<(&'s str, &'s str)>,
}

/// The blocks of each story.
fn stories(text: &str) -> Vec<(&str, Vec<StoryBlock<'_>>)> {
    let mut stories = Vec::new();
    let mut table_size = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("story ") {
            stories.push((name, Vec::new()));
            continue;
        }
        let (_, blocks) = stories.last_mut().unwrap();
        if let Some(size) = line.strip_prefix("size ") {
            table_size = Some(size.parse().unwrap());
        } else if let Some(hex) = line.strip_prefix("block ") {
            blocks.push(StoryBlock {
                table_size: table_size.take(),
                block: bytes(hex),
                fields: Vec::new(),
            });
        } else {
            let field = line.strip_prefix("  ").unwrap();
            // The name of a pseudo-field begins with a colon.
            let (name, value) = field[1..].split_once(": ").unwrap();
            let fields = &mut blocks.last_mut().unwrap().fields;
            fields.push((&field[..=name.len()], value));
        }
    }
    stories
}

/// The fields of a block as pairs.
fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (shown, _) = decode_all(decoder, block).unwrap();
    let shown = shown.iter();
    shown
        .map(|(name, value, _)| (text(name), text(value)))
        .collect()
}

#[test]
fn blocks_of_other_encoders_mean_what_they_say() {
    for (story, blocks) in stories(STORIES) {
        let mut decoder = Decoder::new();
        for (at, block) in blocks.iter().enumerate() {
            if let Some(size) = block.table_size {
                decoder.set_table_size(size);
            }
            let shown = decoded(&mut decoder, &block.block);
            let shown: Vec<_> = shown.iter().map(|(n, v)| (&n[..], &v[..])).collect();
            assert_eq!(shown, block.fields, "{story}, block {at}");
        }
    }
}

#[test]
fn the_same_fields_are_written_and_read_again() {
    for (story, blocks) in stories(STORIES) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (at, block) in blocks.iter().enumerate() {
            let mut out = BytesMut::new();
            let mut written = encoder.block(&mut out);
            for (name, value) in &block.fields {
                written.field(LineName::read(name.as_bytes()), value.as_bytes());
            }
            let shown = decoded(&mut decoder, &out);
            let shown: Vec<_> = shown.iter().map(|(n, v)| (&n[..], &v[..])).collect();
            assert_eq!(shown, block.fields, "{story}, block {at}");
        }
    }
}

const STORIES: &str = include_str!("../hpack_stories.txt");
