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
    let mut result = Read::default();
    expect(&mut skimmer, order, 0);
    let mut unread = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        unread.extend_from_slice(piece);
        let mut input = &unread[..];
        loop {
            let values = &mut result.values;
            match skimmer.receive(&mut input, |data| values.extend_from_slice(data)) {
                Ok(Some(MemcacheSkim::Line(len))) => result.lines += len,
                Ok(Some(MemcacheSkim::Data(len))) => result.data += len,
                Ok(Some(MemcacheSkim::End(reply))) => {
                    result.replies.push(reply);
                    assert!(skimmer.is_idle());
                    expect(&mut skimmer, order, result.replies.len());
                }
                Ok(None) => break,
                Err(fault) => {
                    assert_eq!(skimmer.receive(&mut input, |_| {}), Err(fault));
                    let is_printable = |byte: u8| (b' '..=b'~').contains(&byte);
                    assert!(skimmer.error_message().bytes().all(is_printable));
                    result.fault = Some(fault);
                    return result;
                }
            }
        }
        unread = input.to_vec();
    }
    result
}

fn expect(skimmer: &mut Skimmer, order: u8, number: usize) {
    match order >> (number % 8) & 1 {
        0 => skimmer.expect_get(Key::new(b"key").expect("it is one")),
        _ => skimmer.expect_set(),
    }
}
