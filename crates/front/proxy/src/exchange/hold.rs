//! The wait of a request for a first member of its upstream (`hold`).
//!
//! The member may be one of the request's own site that comes back, or one of a site that came into force meanwhile.
//! The exchange then goes on with the upstream of that site.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use catamaran_upstream::Culprit;
use http::StatusCode;
use tokio::time::{Instant, sleep};

use crate::client::ClientError;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::leaving::in_time;
use crate::exchange::pages::MAINTENANCE;
use crate::exchange::relay::RelayError;
use crate::exchange::scene::Scene;
use crate::exchange::sink::Sink;
use crate::exchange::state::Exchange;
use crate::site::hold::LeftOut;
use crate::site::{Site, Upstream};
use crate::worker::OwnSite;

/// Where a member was found.
enum FirstMember {
    /// In the upstream that was asked.
    Here,
    /// In the upstream of the same name of a later site.
    InSite(Arc<OwnSite>),
}

/// What a request waits for.
#[derive(Clone, Copy)]
struct MemberWait<'e> {
    scene: Scene<'e>,
    upstream: &'e Upstream,
    /// The site with which the exchange began.
    first_site: &'e Site,
    /// The members of the upstream that the route leaves out.
    left_out: LeftOut<'e>,
    /// Who takes the response besides the client.
    sink: Option<&'e Sink>,
}

/// Waits for a member of the upstream that takes new sessions, at most for what is left of the exchange's `hold`.
/// Returns the upstream that has it. `left_out` are the members that the route leaves out.
///
/// # Errors
/// There is none in time, or there will be none; as many requests wait already; the client has left; or the front
/// drains.
pub(super) async fn wait<'a>(
    exchange: &mut Exchange<'a>,
    upstream: &'a Upstream,
    left_out: LeftOut<'_>,
    down: &mut Downstream<'_>,
) -> Result<&'a Upstream, Failure> {
    let Some((hold, queue)) = upstream.hold() else {
        return Err(unavailable("no-backend"));
    };
    let Some(place) = queue.enter(hold.queue_max) else {
        return Err(unavailable("queue-full"));
    };
    let scene = exchange.scene;
    // An exchange that waits again has only the rest of its time.
    let known_end = &mut exchange.attempts.hold_ends;
    let hold_ends = *known_end.get_or_insert_with(|| scene.now() + hold.wait);
    let whole_ends = exchange.ends(None);
    let began = Instant::now();
    let awaited = MemberWait {
        scene,
        upstream,
        first_site: exchange.sites.first(),
        left_out,
        sink: exchange.progress.sink.as_deref(),
    };
    let waited = in_time(
        Box::pin(awaited.first_member()),
        scene,
        down,
        hold_ends.min(whole_ends),
    )
    .await;
    drop(place);
    queue.note(scene.worker.index(), began.elapsed());
    match waited {
        Ok(Some(Ok(FirstMember::Here))) => Ok(upstream),
        Ok(Some(Ok(FirstMember::InSite(site)))) => {
            match exchange.sites.keep(site).upstream(&upstream.name) {
                Some(later) => Ok(later),
                None => Ok(upstream),
            }
        }
        Ok(Some(Err(failure))) => Err(failure),
        Ok(None) if whole_ends <= hold_ends => Err(RelayError::ExchangeTimeout.failure()),
        Ok(None) => Err(unavailable("hold-timeout")),
        Err(error) => Err(Failure::from_client(&error)),
    }
}

impl MemberWait<'_> {
    /// Waits until a member takes new sessions. The error tells why there will be none. Each change that may end the
    /// wait wakes it: the end of a probe, another site in force, a drain, and the leave of all readers of a fetch.
    async fn first_member(self) -> Result<FirstMember, Failure> {
        if self.upstream.has_usable(self.left_out) {
            // It has just failed the request: it gets the time in which it is put out.
            sleep(EJECTION_TIME).await;
        }
        let worker = self.scene.worker;
        loop {
            let site = worker.site();
            let Some(present) = site.upstream(&self.upstream.name) else {
                return Err(unavailable("no-backend"));
            };
            let mut changed = pin!(present.changed.notified());
            // Listening before looking, so that no change in between is missed.
            changed.as_mut().enable();
            if !Arc::ptr_eq(&site, &worker.site()) {
                continue;
            }
            if let Some(first) = self.look(&site, present)? {
                return Ok(first);
            }
            tokio::select! {
                () = changed => {}
                _ = worker.drain().begun() => {}
                () = self.abandoned() => {}
            }
        }
    }

    /// Looks once in the site that is in force, in which operators may have stopped or drained members. `present` is
    /// the upstream there.
    fn look(self, site: &Arc<OwnSite>, present: &Upstream) -> Result<Option<FirstMember>, Failure> {
        let Self {
            scene, upstream, ..
        } = self;
        if self.sink.is_some_and(Sink::is_abandoned) {
            return Err(Failure::from_client(&ClientError::Left));
        }
        let stopped = present.indices_of(upstream, self.left_out.stopped);
        if present.is_stopped(&stopped) {
            return Err(unavailable(MAINTENANCE));
        }
        let drained = present.indices_of(upstream, self.left_out.drained);
        let left_out = LeftOut {
            stopped: &stopped,
            drained: &drained,
        };
        // Members that get fields about the client need a request that was made with these fields.
        let lacks_fields = present.wants_forwarded_fields() && !upstream.wants_forwarded_fields();
        // By a file that was read since, the request may need a sign-on, and may have fields that only that may send.
        let may_need_auth = site.auths.is_some() && !site.is_of_file_of(self.first_site);
        if std::ptr::eq(present, upstream) || lacks_fields || may_need_auth {
            if upstream.has_usable(self.left_out) {
                return Ok(Some(FirstMember::Here));
            }
        } else if present.has_usable(left_out) {
            return Ok(Some(FirstMember::InSite(Arc::clone(site))));
        }
        if scene.worker.drain().has_begun() {
            // A draining front learns of no further members.
            return Err(unavailable("drained"));
        }
        present.want();
        Ok(None)
    }

    /// Ends once nobody wants the response any more that is fetched for a cache.
    async fn abandoned(self) {
        match self.sink {
            Some(sink) => poll_fn(|cx| sink.poll_abandoned(cx)).await,
            None => pending().await,
        }
    }
}

fn unavailable(token: &'static str) -> Failure {
    Failure::new(Culprit::Front, StatusCode::SERVICE_UNAVAILABLE, token)
}

/// How long a member that has just failed a request may take to be put out: a dial to a machine that refuses it takes
/// less.
const EJECTION_TIME: Duration = Duration::from_millis(50);
