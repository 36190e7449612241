//! Waits that end when the client leaves.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

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
    poll_fn(|cx| {
        if let Poll::Ready(done) = Pin::new(&mut awaited).poll(cx) {
            return Poll::Ready(Ok(done));
        }
        match down.poll_left(cx, scene.now()) {
            Ok(look_again) => {
                scene.deadline.set(look_again.unwrap_or(Tick::NEVER));
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    })
    .await
}
