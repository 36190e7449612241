use proptest::prelude::*;

use super::*;

/// The command that was sent: a get of `key`, or a set.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Get,
    Set,
}

/// Feeds `bytes` to a skimmer in pieces of `size`, and returns the values, the replies and the fault
/// that it finds.
fn skimmed(
    dialect: Dialect,
    asked: &[Asked],
    bytes: &[u8],
    size: usize,
) -> (Vec<u8>, Vec<Reply>, Option<Fault>) {
    let mut skimmer = Skimmer::new(dialect);
    let mut asked = asked.iter();
    let mut expect = |skimmer: &mut Skimmer| match asked.next() {
        Some(Asked::Get) => skimmer.expect_get(Key::new(b"key").unwrap()),
        Some(Asked::Set) => skimmer.expect_set(),
        None => {}
    };
    expect(&mut skimmer);
    let (mut value, mut replies, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        kept.extend_from_slice(piece);
        let mut input = &kept[..];
        loop {
            match skimmer.receive(&mut input, |data| value.extend_from_slice(data)) {
                Ok(Some(MemcacheSkim::End(reply))) => {
                    replies.push(reply);
                    expect(&mut skimmer);
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(fault) => return (value, replies, Some(fault)),
            }
        }
        kept = input.to_vec();
    }
    (value, replies, None)
}

/// Checks that `bytes` mean this value and these replies, however they are cut.
fn check(dialect: Dialect, asked: &[Asked], bytes: &[u8], value: &[u8], replies: &[Reply]) {
    for size in 1..=bytes.len() {
        let found = skimmed(dialect, asked, bytes, size);
        let expected = (value.to_vec(), replies.to_vec(), None);
        assert_eq!(found, expected, "{bytes:?} by {size}");
    }
}

#[test]
fn replies_in_the_meta_dialect() {
    let check = |asked: &[Asked], bytes: &[u8], value: &[u8], replies: &[Reply]| {
        check(Dialect::Meta, asked, bytes, value, replies);
    };
    let other = Reply::Value { is_own: false };
    let missed = [Reply::Miss, Reply::Stored];
    let refused = b"SERVER_ERROR out of memory storing object\r\nEN\r\n";
    check(&[Asked::Get], b"VA 5 kkey\r\nhello\r\n", b"hello", &[OWN]);
    check(&[Asked::Get], b"VA 0 kkey\r\n\r\n", b"", &[OWN]);
    check(
        &[Asked::Get],
        b"VA 2 s2 kkeyy W\r\n\r\n\r\n",
        b"\r\n",
        &[other],
    );
    check(&[Asked::Get, Asked::Set], b"EN\r\nHD\r\n", b"", &missed);
    check(
        &[Asked::Get, Asked::Set],
        b"EN kkey\r\nHD\r\n",
        b"",
        &missed,
    );
    check(&[Asked::Set], b"NS\r\n", b"", &[Reply::NotStored]);
    check(
        &[Asked::Set, Asked::Get],
        refused,
        b"",
        &[Reply::Refused, Reply::Miss],
    );
}

#[test]
fn replies_in_the_text_dialect() {
    let check = |asked: &[Asked], bytes: &[u8], value: &[u8], replies: &[Reply]| {
        check(Dialect::Text, asked, bytes, value, replies);
    };
    let (own, other) = (
        b"VALUE key 0 5\r\nhello\r\nEND\r\n",
        b"VALUE other 0 1\r\nx\r\nEND\r\n",
    );
    check(&[Asked::Get], own, b"hello", &[OWN]);
    check(
        &[Asked::Get],
        other,
        b"x",
        &[Reply::Value { is_own: false }],
    );
    check(
        &[Asked::Get, Asked::Set],
        b"END\r\nSTORED\r\n",
        b"",
        &[Reply::Miss, Reply::Stored],
    );
    check(&[Asked::Set], b"NOT_STORED\r\n", b"", &[Reply::NotStored]);
}

#[test]
fn what_is_no_reply_is_a_fault() {
    let check = |dialect: Dialect, asked: &[Asked], bytes: &[u8], fault: Fault| {
        for size in [1, 3, bytes.len()] {
            let (_, replies, found) = skimmed(dialect, asked, bytes, size);
            assert_eq!(
                (replies, found),
                (vec![], Some(fault)),
                "{bytes:?} by {size}"
            );
        }
    };
    for bytes in [
        &b"HD\r\n"[..],
        b"EN \r\n",
        b"EN kother\r\n",
        b"VA 5\r\n",
        b"VA -5 kkey\r\n",
        b"VA 99999999999 kkey\r\n",
        b"EN\n",
    ] {
        check(Dialect::Meta, &[Asked::Get], bytes, Fault::Reply);
    }
    let misunderstood = b"CLIENT_ERROR bad command line format\r\n";
    check(
        Dialect::Meta,
        &[Asked::Get],
        b"VA 1 kkey\r\nxy\r\n",
        Fault::ValueEnd,
    );
    check(
        Dialect::Meta,
        &[Asked::Get],
        misunderstood,
        Fault::Misunderstood,
    );
    check(
        Dialect::Meta,
        &[Asked::Get],
        &[b'x'; LINE_BYTES_MAX],
        Fault::LineTooLong,
    );
    check(Dialect::Meta, &[], b"EN\r\n", Fault::Unsolicited);
    let two = b"VALUE key 0 1\r\nx\r\nVALUE k 0 1\r\n";
    check(Dialect::Text, &[Asked::Get], two, Fault::ValueEnd);
    check(
        Dialect::Text,
        &[Asked::Get],
        b"VALUE key 0 1 7\r\n",
        Fault::Reply,
    );
    check(
        Dialect::Text,
        &[Asked::Set],
        b"ERROR\r\n",
        Fault::Misunderstood,
    );
    check(
        Dialect::Text,
        &[Asked::Set],
        b"HTTP/1.1 400 Bad Request\r\n",
        Fault::Reply,
    );
}

#[test]
fn the_servers_words_are_kept_as_text() {
    let mut skimmer = Skimmer::new(Dialect::Meta);
    skimmer.expect_set();
    let mut input = &b"SERVER_ERROR object too large\x1b[2J for cache\r\n"[..];
    assert!(skimmer.receive(&mut input, |_| {}).is_ok());
    let end = skimmer.receive(&mut input, |_| {});
    assert_eq!(end, Ok(Some(MemcacheSkim::End(Reply::Refused))));
    assert_eq!(
        skimmer.error_message(),
        "SERVER_ERROR object too large?[2J for cache"
    );
    assert!(skimmer.is_idle());
}

proptest! {
    /// Any bytes have the same result in whatever pieces they arrive.
    #[test]
    fn pieces_do_not_matter(bytes in "(EN|HD|VA 3 kkey|END|VALUE key 0 3|\r\n|abc| |[ -~]{0,3}){0,9}", size in 1..9_usize) {
        for dialect in [Dialect::Meta, Dialect::Text] {
            let asked = [Asked::Get, Asked::Set, Asked::Get];
            let whole = skimmed(dialect, &asked, bytes.as_bytes(), bytes.len());
            prop_assert_eq!(skimmed(dialect, &asked, bytes.as_bytes(), size), whole);
        }
    }
}

const OWN: Reply = Reply::Value { is_own: true };
