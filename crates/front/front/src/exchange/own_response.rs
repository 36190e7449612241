//! Responses that no backend gives: the front's own pages, and sources of its own.
//!
//! They pass through the same policy and the same relay as those of backends.

use catamaran_message::BodyLength;
use http::StatusCode;

use crate::deadlines::Tick;
use crate::exchange::downstream::Downstream;
use crate::exchange::failure::Failure;
use crate::exchange::relay::{Relay, RelayError, Terms};
use crate::exchange::response_policy::ResponsePolicy;
use crate::exchange::source::{Answer, Source};
use crate::exchange::{After, Exchange};

impl Exchange<'_> {
    /// Sends an answer of ours.
    pub(super) async fn send(&mut self, down: &mut Downstream<'_>, answer: Answer) -> After {
        let status = answer.status();
        match self.serve_own(down, Source::Answer(answer)).await {
            Err(_) => After::Cut,
            Ok(()) if status == StatusCode::REQUEST_TIMEOUT => After::Late,
            Ok(()) => After::Done,
        }
    }

    /// Serves the request from a source that is the front's own, which takes nothing of its body.
    pub(super) async fn serve_own(
        &mut self,
        down: &mut Downstream<'_>,
        source: Source<'_, '_>,
    ) -> Result<(), Failure> {
        let relayed = self.relay_own(down, true, source).await;
        relayed.map_err(|error| Failure::from_relay(&error))
    }

    /// As [`Self::serve_own`], for those who go on after a failure.
    pub(super) async fn relay_own(
        &mut self,
        down: &mut Downstream<'_>,
        takes_interims: bool,
        source: Source<'_, '_>,
    ) -> Result<(), RelayError> {
        if !self.progress.body_complete {
            down.abandon_upload();
        }
        let policy = ResponsePolicy {
            backend: None,
            passage: self.decided.passage.as_deref(),
            request: None,
        };
        let terms = Terms {
            policy: &policy,
            takes_interims,
            body: BodyLength::Known(0),
            body_max: u64::MAX,
            expect_continue: false,
            deadline: Tick::NEVER,
            timed: false,
        };
        let relayed = Relay::new(self.scene, down, source, terms, &mut self.progress)
            .run()
            .await;
        relayed.map_err(|error| *error)
    }
}
