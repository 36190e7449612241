//! Waits that end when the client leaves.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::client::ClientError;
use crate::deadlines::Tick;
use crate::exchange::downstream::Downstream;
use crate::exchange::scene::Scene;

/// Waits for a connection to a backend, or for a disk, unless the client leaves. Then the place in the
/// queue is freed, or the dial cancelled.
pub(crate) async fn unless_left<T>(
    mut awaited: impl Future<Output = T> + Unpin,
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
) -> Result<T, ClientError> {
    poll_fn(|cx| match Pin::new(&mut awaited).poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => poll_left(cx, scene, down, Tick::NEVER),
    })
    .await
}

/// Does the same as [`unless_left`], but no longer than `until`; `None`: the time is over.
pub(crate) async fn in_time<T>(
    mut awaited: impl Future<Output = T> + Unpin,
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
    until: Tick,
) -> Result<Option<T>, ClientError> {
    poll_fn(|cx| match Pin::new(&mut awaited).poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(Some(done))),
        Poll::Pending if scene.now() >= until => Poll::Ready(Ok(None)),
        Poll::Pending => poll_left(cx, scene, down, until),
    })
    .await
}

/// Ready if the client has left. Otherwise the task is woken when that is to be checked again, `until` at the latest.
fn poll_left<T>(
    cx: &mut Context<'_>,
    scene: Scene<'_>,
    down: &mut Downstream<'_>,
    until: Tick,
) -> Poll<Result<T, ClientError>> {
    match down.poll_left(cx, scene.now()) {
        Ok(next_check) => {
            let wake_at = next_check.map_or(until, |time| time.min(until));
            scene.deadline.set(wake_at);
            Poll::Pending
        }
        Err(error) => Poll::Ready(Err(error)),
    }
}
