//! Tests of the ring alone, on pairs of sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use bytes::Bytes;

use super::*;

fn pair() -> (Rc<OwnedFd>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Rc::new(ours.into()), theirs)
}

fn output(bytes: &'static [u8]) -> Output {
    let mut out = Output::default();
    out.push(Bytes::from_static(bytes));
    out
}

/// Bytes such that neighbouring buffers have different contents.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|place| (place % 251) as u8).collect()
}

/// Returns the next completion, and waits for it if necessary.
fn wait(ring: &mut Ring) -> Completion {
    loop {
        if let Some(completion) = ring.next() {
            return completion;
        }
        ring.enter(Some(Duration::from_secs(10))).unwrap();
    }
}

/// Enters the ring and takes completions until no operation is in flight.
fn settle(ring: &mut Ring) {
    for _ in 0..100 {
        while ring.next().is_some() {}
        if ring.in_flight() == 0 {
            return;
        }
        ring.enter(Some(Duration::from_millis(100))).unwrap();
    }
    panic!("{ring:?}");
}

#[test]
fn receiving_goes_on_until_the_end_of_the_stream() {
    let mut ring = Ring::new().unwrap();
    let (ours, mut theirs) = pair();
    ring.receive(OWNER, &ours);
    for text in [&b"first"[..], b"second"] {
        theirs.write_all(text).unwrap();
        let Completion::Received {
            owner: OWNER,
            result: ReceiveResult::Chunk(chunk),
            last: false,
        } = wait(&mut ring)
        else {
            panic!("no bytes");
        };
        let mut bytes = BytesMut::new();
        ring.take(chunk, &mut bytes);
        assert_eq!(&bytes[..], text);
    }
    drop(theirs);
    let end = wait(&mut ring);
    assert!(
        matches!(
            end,
            Completion::Received {
                result: ReceiveResult::End,
                last: true,
                ..
            }
        ),
        "{end:?}"
    );
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn what_was_sent_comes_back_with_how_much_of_it() {
    let mut ring = Ring::new().unwrap();
    let (ours, mut theirs) = pair();
    let mut slices = output(&[b'x'; 5000]);
    slices.push(Bytes::from_static(&[b'y'; 5000]));
    slices.staging().extend_from_slice(b"z");
    for (out, len) in [(output(b"short"), 5), (slices, 10_001)] {
        ring.send(OWNER, &ours, out);
        let Completion::Sent {
            owner: OWNER,
            mut out,
            sent: Ok(sent),
        } = wait(&mut ring)
        else {
            panic!("not sent");
        };
        assert_eq!(sent, len);
        out.advance(sent);
        assert!(out.is_empty());
        let mut received = vec![0; len];
        theirs.read_exact(&mut received).unwrap();
    }
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn a_cancelled_receive_says_so_and_an_abandoned_one_does_not() {
    let mut ring = Ring::new().unwrap();
    let (ours, _theirs) = pair();
    let cancelled = ring.receive(OWNER, &ours);
    let abandoned = ring.receive(OWNER, &ours);
    ring.enter(Some(Duration::ZERO)).unwrap();
    ring.abandon(abandoned);
    ring.cancel(cancelled);
    let end = wait(&mut ring);
    assert!(
        matches!(
            end,
            Completion::Received {
                result: ReceiveResult::Nothing,
                last: true,
                ..
            }
        ),
        "{end:?}"
    );
    settle(&mut ring);
    // Too late, which does no harm.
    ring.cancel(cancelled);
    assert!(ring.next().is_none());
}

#[test]
fn buffers_are_enough_for_ever_if_they_are_given_back() {
    let mut ring = Ring::new().unwrap();
    let (ours, mut theirs) = pair();
    let abandoned = ring.receive(OWNER, &ours);
    for _ in 0..3 * buffers::COUNT {
        theirs.write_all(b"x").unwrap();
        let Completion::Received {
            result: ReceiveResult::Chunk(chunk),
            ..
        } = wait(&mut ring)
        else {
            panic!("no buffer left");
        };
        ring.discard(chunk);
    }
    // What arrives for nobody gives its buffer back by itself.
    theirs.write_all(b"x").unwrap();
    ring.abandon(abandoned);
    settle(&mut ring);
}

#[test]
fn more_than_fits_in_the_buffers_waits_in_the_socket() {
    let mut ring = Ring::new().unwrap();
    let len = buffers::SIZE * usize::from(buffers::COUNT) * 2;
    let (ours, mut theirs) = pair();
    let sending = std::thread::spawn(move || theirs.write_all(&pattern(len)));
    ring.receive(OWNER, &ours);
    let (mut bytes, mut held, mut starved) = (BytesMut::new(), Vec::new(), false);
    while bytes.len() < len {
        let Completion::Received { result, last, .. } = wait(&mut ring) else {
            panic!("nothing else is under way");
        };
        if let ReceiveResult::Chunk(chunk) = result {
            held.push(chunk);
        }
        // Held for as long as there are any left, which no worker does.
        let complete = held.iter().map(Chunk::len).sum::<usize>() + bytes.len() == len;
        if last || complete {
            for chunk in held.drain(..) {
                ring.take(chunk, &mut bytes);
            }
        }
        if last {
            starved = true;
            ring.receive(OWNER, &ours);
        }
    }
    sending.join().unwrap().unwrap();
    assert!(starved, "the buffers were to run out");
    assert!(bytes[..] == pattern(len)[..]);
}

#[test]
fn more_operations_than_the_queue_holds_are_all_submitted() {
    let mut ring = Ring::new().unwrap();
    let (ours, mut theirs) = pair();
    let count = QUEUE_LEN as usize * 2 + 100;
    for _ in 0..count {
        ring.send(OWNER, &ours, output(b"x"));
    }
    let mut received = vec![0; count];
    let reading = std::thread::spawn(move || theirs.read_exact(&mut received));
    for _ in 0..count {
        let sent = wait(&mut ring);
        assert!(
            matches!(sent, Completion::Sent { sent: Ok(1), .. }),
            "{sent:?}"
        );
    }
    reading.join().unwrap().unwrap();
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn a_ring_that_is_dropped_lets_go_of_everything() {
    let (ours, mut theirs) = pair();
    let mut ring = Ring::new().unwrap();
    ring.receive(OWNER, &ours);
    ring.enter(Some(Duration::ZERO)).unwrap();
    // Queued and not submitted, or submitted and without room: both are taken back.
    for _ in 0..100 {
        ring.send(OWNER, &ours, output(&[b'x'; 64 * 1024]));
    }
    ring.enter(Some(Duration::ZERO)).unwrap();
    ring.receive(OWNER, &ours);
    let waker = ring.waker();
    drop(ring);
    assert_eq!(Rc::strong_count(&ours), 1, "no operation is left");
    waker.wake();
    drop(ours);
    let mut rest = Vec::new();
    theirs.read_to_end(&mut rest).unwrap();
    assert!(rest.len() < 100 * 64 * 1024);
}

#[test]
fn a_wake_is_heard_from_another_thread_and_again() {
    let mut ring = Ring::new().unwrap();
    for _ in 0..3 {
        let waker = ring.waker();
        let waking = std::thread::spawn(move || waker.wake());
        assert!(matches!(wait(&mut ring), Completion::Woken));
        waking.join().unwrap();
    }
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn chunks_given_back_out_of_order_are_used_again_in_order() {
    let mut ring = Ring::new().unwrap();
    let (ours, mut theirs) = pair();
    ring.receive(OWNER, &ours);
    let (mut held, mut bytes) = (Vec::new(), BytesMut::new());
    let mut sent = Vec::new();
    for round in 0..4 * usize::from(buffers::COUNT) {
        let piece = pattern(1 + round % 3 * buffers::SIZE);
        theirs.write_all(&piece).unwrap();
        sent.extend_from_slice(&piece);
        let mut left = piece.len();
        while left > 0 {
            let Completion::Received {
                result: ReceiveResult::Chunk(chunk),
                ..
            } = wait(&mut ring)
            else {
                panic!("no buffer left");
            };
            left -= chunk.len();
            held.push(chunk);
        }
        // The newest first: its buffers wait until the older ones have been given.
        if held.len() > 9 {
            let mut pieces: Vec<BytesMut> = Vec::new();
            while let Some(chunk) = held.pop() {
                let mut piece = BytesMut::new();
                ring.take(chunk, &mut piece);
                pieces.push(piece);
            }
            for piece in pieces.iter().rev() {
                bytes.extend_from_slice(piece);
            }
        }
    }
    for chunk in held {
        ring.take(chunk, &mut bytes);
    }
    assert!(bytes[..] == sent[..]);
}

const OWNER: usize = 7;
