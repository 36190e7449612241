use catamaran_cache::freshness::LifetimeSource;
use catamaran_testkit::Wakes;
use catamaran_upstream::Culprit;

use super::*;

fn fill() -> Arc<Fill> {
    Arc::new(Fill::new(Arc::default()))
}

fn head(content_length: Option<u64>, is_stored: bool) -> FillHead {
    FillHead {
        status: StatusCode::OK,
        reason: None,
        headers: Fields::new(),
        content_length,
        age: 0,
        storing: if is_stored {
            Ok(Audience {
                selection: Selection::new(Vec::new(), &Fields::new()),
                terms: TERMS,
            })
        } else {
            Err("no-store")
        },
        cookie: None,
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

fn read_all(reader: &mut FillReader, cx: &Context<'_>) -> (Vec<u8>, Poll<bool>) {
    let mut read = Vec::new();
    loop {
        match reader.poll_body(cx) {
            Poll::Ready(Ok(Some(piece))) => read.extend_from_slice(&piece),
            Poll::Ready(Ok(None)) => return (read, Poll::Ready(true)),
            Poll::Ready(Err(_)) => return (read, Poll::Ready(false)),
            Poll::Pending => return (read, Poll::Pending),
        }
    }
}

#[test]
fn all_readers_get_all_of_it() {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let cx = Context::from_waker(&waker);
    let (fill, body) = (fill(), pattern(100_000));
    let mut first = fill.read(true);
    assert!(first.poll_news(&cx).is_pending());
    assert!(fill.begin(head(Some(100_000), true), MOST.fills_max));
    assert!(matches!(
        first.poll_news(&cx),
        Poll::Ready(FillNews::Head(_))
    ));
    let mut got = Vec::new();
    for piece in body.chunks(700) {
        assert_eq!(fill.push(Bytes::copy_from_slice(piece), MOST), Ok(()));
        let (read, more) = read_all(&mut first, &cx);
        got.extend(read);
        assert!(more.is_pending());
    }
    let mut second = fill.read(false);
    assert!(matches!(
        second.poll_news(&cx),
        Poll::Ready(FillNews::Head(_))
    ));
    assert_eq!(read_all(&mut second, &cx), (body.clone(), Poll::Pending));
    let stored = fill.collect_body().unwrap();
    fill.finish(None, false);
    assert_eq!(read_all(&mut second, &cx), (Vec::new(), Poll::Ready(true)));
    assert_eq!(read_all(&mut first, &cx), (Vec::new(), Poll::Ready(true)));
    assert_eq!(got, body);
    assert_eq!(stored.len(), 7);
    assert_eq!(stored.concat(), body);
}

#[test]
fn what_is_cut_is_seen_to_be_cut() {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let cx = Context::from_waker(&waker);
    let fill = fill();
    let mut reader = fill.read(false);
    fill.begin(head(Some(10), true), MOST.fills_max);
    fill.push(Bytes::from(pattern(5)), MOST).unwrap();
    let failure = FillFailure {
        status: StatusCode::BAD_GATEWAY,
        reason: Reason::new(Culprit::Backend, "cut"),
    };
    fill.fail(failure);
    assert_eq!(read_all(&mut reader, &cx), (pattern(5), Poll::Ready(false)));
    let late = fill.read(false);
    assert!(matches!(late.poll_news(&cx), Poll::Ready(FillNews::Failed(it)) if it == failure));
}

#[test]
fn what_is_not_stored_is_for_one_at_its_pace() {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let cx = Context::from_waker(&waker);
    let fill = fill();
    let (mut first, second) = (fill.read(true), fill.read(false));
    assert!(!fill.begin(head(None, false), MOST.fills_max));
    assert!(matches!(
        second.poll_news(&cx),
        Poll::Ready(FillNews::NotShared(_))
    ));
    drop(second);
    fill.push(Bytes::from(pattern(AHEAD_MAX)), MOST).unwrap();
    assert!(fill.poll_room(&cx).is_pending());
    let before = wakes.count();
    assert_eq!(read_all(&mut first, &cx).0.len(), AHEAD_MAX);
    assert!(wakes.count() > before && fill.poll_room(&cx).is_ready());
    assert!(fill.collect_body().is_none());
    drop(first);
    assert!(fill.is_abandoned());
}

#[test]
fn what_is_not_stored_is_not_wanted() {
    let fill = fill();
    fill.want();
    assert!(!fill.is_abandoned(), "it may be one to be stored");
    fill.begin(head(None, false), MOST.fills_max);
    assert!(fill.is_abandoned());
}

#[test]
fn the_front_does_not_wait_for_itself_for_ever() {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let cx = Context::from_waker(&waker);
    let at = |seconds| Tick::START + Duration::from_secs(seconds);
    let passed = fill();
    let mut reader = passed.read(true);
    passed.begin(head(None, false), MOST.fills_max);
    assert_eq!(passed.idle_ends(at(1)), None);
    passed.push(Bytes::from(pattern(AHEAD_MAX)), MOST).unwrap();
    // Whenever it is looked at, the wait began when nothing more was taken.
    for seconds in 1..4 {
        assert_eq!(passed.idle_ends(at(seconds)), Some(at(1) + IDLE_MAX));
    }
    assert_eq!(read_all(&mut reader, &cx).0.len(), AHEAD_MAX);
    assert_eq!(passed.idle_ends(at(4)), None);
    // The front waits for the backend, which has timeouts of its own.
    let kept = fill();
    kept.want();
    kept.begin(head(Some(10), true), MOST.fills_max);
    assert_eq!(kept.idle_ends(at(5)), None, "nobody reads it");
    let _reader = kept.read(false);
    assert_eq!(kept.idle_ends(at(6)), None);
}

#[test]
fn a_body_that_turns_out_too_long_goes_on_for_the_one_that_asked() {
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let cx = Context::from_waker(&waker);
    let (fill, body) = (fill(), pattern(60_000));
    let (mut first, second) = (fill.read(true), fill.read(false));
    assert!(fill.begin(head(None, true), MOST.fills_max));
    let push = |from: usize, to: usize| {
        let data = Bytes::copy_from_slice(&body[from..to]);
        fill.push(data, limits(50_000, MOST.fills_max))
    };
    assert_eq!(push(0, 20_000), Ok(()));
    assert!(second.poll_news(&cx).is_pending());
    let (mut got, _) = read_all(&mut first, &cx);
    assert_eq!(push(20_000, 40_000), Ok(()));
    assert_eq!(push(40_000, 60_000), Err("object-max"));
    assert!(matches!(
        second.poll_news(&cx),
        Poll::Ready(FillNews::NotShared(_))
    ));
    got.extend(read_all(&mut first, &cx).0);
    assert_eq!(got, body);
}

#[test]
fn what_is_received_is_bounded() {
    let room = Arc::<FillRoom>::default();
    let new = || Arc::new(Fill::new(Arc::clone(&room)));
    let (one, other) = (new(), new());
    assert!(one.begin(head(Some(600), true), 1000));
    assert!(!other.begin(head(Some(600), true), 1000));
    // Who reads it takes no room once all of it is there.
    let _reader = one.read(true);
    one.finish(None, false);
    assert_eq!(room.taken(), 0);
    let long = new();
    assert!(long.begin(head(None, true), 1000));
    let piece = Bytes::from(pattern(600));
    assert_eq!(long.push(piece.clone(), limits(2000, 1000)), Ok(()));
    assert_eq!(long.push(piece, limits(2000, 1000)), Err("fills-max"));
    assert_eq!(room.taken(), 0, "nobody reads it");
}

#[test]
fn what_goes_at_the_pace_of_a_client_makes_room() {
    let room = Arc::<FillRoom>::default();
    let beside = || Arc::new(Fill::beside(Arc::clone(&room)));
    let (known, long, last) = (beside(), beside(), beside());
    assert!(known.begin(head(Some(600), true), 1000));
    assert!(long.begin(head(None, true), 1000));
    let piece = || Bytes::from(pattern(300));
    assert_eq!(long.push(piece(), limits(2000, 1000)), Ok(()));
    // The oldest goes first, and it may be the one that needs room.
    assert_eq!(long.push(piece(), limits(2000, 1000)), Ok(()));
    assert_eq!(
        (room.taken(), known.push(piece(), MOST)),
        (600, Err("fills-max"))
    );
    assert_eq!(long.push(piece(), limits(2000, 700)), Err("fills-max"));
    assert_eq!((room.taken(), long.collect_body()), (0, None));
    // One that is whole leaves, and none makes room for what has none.
    assert!(last.begin(head(Some(600), true), 1000));
    assert!(!beside().begin(head(Some(1001), true), 1000));
    assert_eq!(room.taken(), 600);
    last.finish(None, false);
    drop((known, long, last));
    assert_eq!(room.taken(), 0);
}

#[test]
fn nothing_is_given_up_for_room_that_cannot_be_made() {
    let room = Arc::<FillRoom>::default();
    let new = || Arc::new(Fill::new(Arc::clone(&room)));
    let (fast, slow) = (new(), Arc::new(Fill::beside(Arc::clone(&room))));
    assert!(fast.begin(head(Some(700), true), 1000));
    assert!(slow.begin(head(Some(200), true), 1000));
    assert!(!new().begin(head(Some(500), true), 1000));
    assert_eq!(room.taken(), 900);
    assert!(slow.collect_body().is_some(), "it goes on");
    let last = new();
    assert!(last.begin(head(Some(300), true), 1000));
    assert_eq!((room.taken(), slow.collect_body()), (1000, None));
    // Those that make room for others may come again.
    drop((fast, last));
    let (one, other) = (Fill::beside(Arc::clone(&room)), new());
    assert!(Arc::new(one).begin(head(Some(900), true), 1000));
    assert!(other.begin(head(Some(1000), true), 1000));
}

#[test]
fn a_body_is_compacted_to_full_blocks_and_stays_whole() {
    for len in [BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 3 * BLOCK + 7] {
        let body = pattern(len);
        let pieces: Vec<Bytes> = body.chunks(1000).map(Bytes::copy_from_slice).collect();
        let compacted = compact(&pieces, len as u64);
        assert_eq!(compacted.concat(), body, "{len}");
        assert_eq!(compacted.len(), len.div_ceil(BLOCK), "{len}");
    }
}

const fn limits(object_max: u64, fills_max: u64) -> FillLimits {
    FillLimits {
        object_max,
        fills_max,
    }
}

const MOST: FillLimits = limits(1 << 20, 1 << 20);

const TERMS: Terms = Terms {
    lifetime: 60,
    source: LifetimeSource::Explicit,
    stale_while_revalidate: 0,
    stale_if_error: 0,
    no_cache: false,
    never_stale: false,
    for_sessions: false,
    for_authorization: false,
};
