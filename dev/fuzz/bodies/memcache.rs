//! Checks the client of memcached with any bytes of a server.
//!
//! A plain function that panics on a finding: the fuzz target calls it, and so does the replay of the committed
//! corpus in the crate's own tests.

use catamaran_memcache::{Dialect, Fault, Key, MemcacheSkim, Reply, Skimmer};

/// What was read on a connection: values, replies, the number of bytes of first lines, and the fault that ended it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    values: Vec<u8>,
    data: usize,
    lines: usize,
    replies: Vec<Reply>,
    fault: Option<Fault>,
}

/// Reads any bytes as replies to gets and sets, whose order the first byte gives. Cuts must change nothing, every
/// byte of a value must be shown once, and a fault must stay.
pub(crate) fn reply(input: &[u8]) {
    let Some((order, bytes)) = input.split_first() else {
        return;
    };
    for dialect in [Dialect::Meta, Dialect::Text] {
        let whole = read(dialect, *order, bytes, bytes.len());
        assert_eq!(whole.data, whole.values.len());
        assert!(whole.lines + whole.data <= bytes.len());
        for size in [1, 2, 7] {
            assert_eq!(
                read(dialect, *order, bytes, size),
                whole,
                "pieces of {size}"
            );
        }
    }
}

fn read(dialect: Dialect, order: u8, bytes: &[u8], size: usize) -> Read {
    let mut skimmer = Skimmer::new(dialect);
    let mut found = Read::default();
    expect(&mut skimmer, order, 0);
    let mut kept = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        kept.extend_from_slice(piece);
        let mut input = &kept[..];
        loop {
            let values = &mut found.values;
            match skimmer.receive(&mut input, |data| values.extend_from_slice(data)) {
                Ok(Some(MemcacheSkim::Line(len))) => found.lines += len,
                Ok(Some(MemcacheSkim::Data(len))) => found.data += len,
                Ok(Some(MemcacheSkim::End(reply))) => {
                    found.replies.push(reply);
                    assert!(skimmer.is_idle());
                    expect(&mut skimmer, order, found.replies.len());
                }
                Ok(None) => break,
                Err(fault) => {
                    assert_eq!(skimmer.receive(&mut input, |_| {}), Err(fault));
                    assert!(
                        skimmer
                            .error_message()
                            .bytes()
                            .all(|byte| (b' '..=b'~').contains(&byte))
                    );
                    found.fault = Some(fault);
                    return found;
                }
            }
        }
        kept = input.to_vec();
    }
    found
}

fn expect(skimmer: &mut Skimmer, order: u8, number: usize) {
    match order >> (number % 8) & 1 {
        0 => skimmer.expect_get(Key::new(b"key").expect("it is one")),
        _ => skimmer.expect_set(),
    }
}
