//! Tests that the cap holds, the queue is fair, and an exchange that leaves keeps no permit.

use std::task::Waker;

use super::*;

/// A connection in tests: its permit, and a number to identify it.
#[derive(Debug)]
struct Fake(
    u32,
    #[expect(dead_code, reason = "held for its drop")] Permit<Self>,
);

fn granted(queued: &mut QueuePlace<Fake>) -> Option<Grant<Fake>> {
    match Pin::new(queued).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(granted) => granted,
        Poll::Pending => None,
    }
}

fn queue(cap: &Arc<Cap<Fake>>, worker: usize) -> QueuePlace<Fake> {
    match cap.enqueue(worker) {
        Ok(Place::Queued(queued)) => queued,
        other => panic!("expected a place in the queue, not {other:?}"),
    }
}

#[test]
fn never_more_permits_than_the_cap() {
    let cap = Cap::<Fake>::new(2, 10);
    let first = cap.try_permit().expect("free");
    let _second = cap.try_permit().expect("free");
    assert!(cap.try_permit().is_none());
    drop(first);
    assert_eq!(cap.open(), 1);
    assert!(cap.try_permit().is_some());
}

#[test]
fn a_raised_cap_serves_those_who_wait() {
    let cap = Cap::<Fake>::new(1, 10);
    let _held = cap.try_permit().expect("free");
    let mut waiting = [queue(&cap, 0), queue(&cap, 1), queue(&cap, 0)];
    cap.resize(3, 10);
    let granted: Vec<_> = waiting.iter_mut().map(granted).collect();
    assert_eq!(granted.iter().flatten().count(), 2);
    assert_eq!((cap.open(), cap.waiting()), (3, 1));
}

#[test]
fn a_lowered_cap_is_reached_as_permits_come_back() {
    let cap = Cap::<Fake>::new(3, 10);
    let mut held: Vec<_> = (0..3).map(|_| cap.try_permit().expect("free")).collect();
    cap.resize(1, 10);
    assert!(cap.is_exceeded());
    let mut waiting = queue(&cap, 0);
    held.pop();
    held.pop();
    assert!(granted(&mut waiting).is_none(), "nothing is passed on");
    assert_eq!((cap.open(), cap.is_exceeded()), (1, false));
    held.pop();
    assert!(granted(&mut waiting).is_some());
}

#[test]
fn a_dropped_permit_goes_to_the_first_in_the_queue() {
    let cap = Cap::<Fake>::new(1, 10);
    let permit = cap.try_permit().expect("free");
    let mut first = queue(&cap, 0);
    let mut second = queue(&cap, 1);
    drop(permit);
    assert!(cap.try_permit().is_none(), "no overtaking");
    assert!(
        matches!(granted(&mut first), Some(Grant::Permit(_))),
        "then dropped again"
    );
    assert!(matches!(granted(&mut second), Some(Grant::Permit(_))));
    assert_eq!((cap.open(), cap.waiting()), (0, 0));
}

#[test]
fn those_who_left_are_passed_over() {
    let cap = Cap::<Fake>::new(1, 10);
    let permit = cap.try_permit().expect("free");
    drop(queue(&cap, 0));
    let mut stays = queue(&cap, 0);
    drop(permit);
    assert!(granted(&mut stays).is_some());
    assert_eq!(cap.open(), 0);
}

#[test]
fn who_leaves_is_not_counted_as_waiting() {
    let cap = Cap::<Fake>::new(1, 10);
    let _permit = cap.try_permit().expect("free");
    let first = queue(&cap, 0);
    let second = queue(&cap, 0);
    drop(first);
    assert!(cap.is_awaited());
    assert_eq!(cap.waiting(), 1);
    drop(second);
    assert!(!cap.is_awaited());
}

#[test]
fn a_grant_nobody_fetched_comes_back() {
    let cap = Cap::<Fake>::new(1, 10);
    let permit = cap.try_permit().expect("free");
    let receiver = queue(&cap, 0);
    drop(permit);
    assert_eq!(cap.open(), 1, "it is in the channel");
    drop(receiver);
    assert_eq!(cap.open(), 0);
}

#[test]
fn the_queue_is_bounded_and_forgets_those_who_left() {
    let cap = Cap::<Fake>::new(1, 2);
    let _permit = cap.try_permit().expect("free");
    let first = queue(&cap, 0);
    let _second = queue(&cap, 0);
    assert_eq!(cap.enqueue(0).err(), Some(QueueFull));
    drop(first);
    assert!(cap.enqueue(0).is_ok());
    assert_eq!(Cap::<Fake>::new(0, 0).enqueue(0).err(), Some(QueueFull));
}

#[test]
fn a_permit_freed_before_queueing_is_not_missed() {
    let cap = Cap::<Fake>::new(1, 10);
    assert!(matches!(cap.enqueue(0), Ok(Place::Granted(_))));
}

#[test]
fn a_free_connection_goes_to_a_waiter_of_its_worker() {
    let cap = Cap::<Fake>::new(1, 10);
    let conn = Fake(7, cap.try_permit().expect("free"));
    let mut waiter = queue(&cap, 3);
    assert!(cap.is_awaited());
    assert!(cap.hand_over(3, conn).is_none());
    assert!(matches!(
        granted(&mut waiter),
        Some(Grant::Connection(Fake(7, _)))
    ));
    assert!(!cap.is_awaited());
}

#[test]
fn a_free_connection_is_closed_for_a_waiter_of_another_worker() {
    let cap = Cap::<Fake>::new(1, 10);
    let conn = Fake(7, cap.try_permit().expect("free"));
    let mut waiter = queue(&cap, 3);
    assert!(cap.hand_over(0, conn).is_none());
    assert!(matches!(granted(&mut waiter), Some(Grant::Permit(_))));
}

#[test]
fn a_free_connection_comes_back_when_all_have_left() {
    let cap = Cap::<Fake>::new(1, 10);
    let conn = Fake(7, cap.try_permit().expect("free"));
    drop(queue(&cap, 0));
    assert!(matches!(cap.hand_over(0, conn), Some(Fake(7, _))));
    assert_eq!((cap.open(), cap.waiting()), (0, 0));
}
