//! Decides whether a failed attempt may be repeated, for all methods, in one pure function.
//!
//! A request is sent again only if the failed attempt was certainly not processed (any method), or if the upstream
//! allows it for the method: by default for idempotent ones. It is not sent again after a byte of a response has
//! arrived, if its body is no longer held, or after a timeout, because the backend may still process it. After a
//! timeout it is sent again only if the backend was put out, or if the route limits each attempt.
//!
//! A POST is repeated in two cases only: there was no connection for it ([`Stage::NotSent`]), or it
//! is proved that no byte of it reached the backend ([`Stage::Undelivered`]; `upstream::connection`
//! says what counts as proof). Before a POST is sent, `Reuse::Lasting` keeps it away from connections
//! that are likely to be closed soon.

/// The stage that a failed attempt reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// There was no connection, so nothing was sent.
    NotSent,
    /// The connection broke, and it is proved that no byte of the request reached the backend.
    Undelivered,
    /// At least part of the request was sent, and no byte of a response arrived.
    Sent,
    /// The head of a response arrived, with a status after which another backend is asked. Nothing of it was sent to
    /// the client.
    Declined,
    /// Part of a response arrived.
    Answered,
}

impl Stage {
    /// The stage in one word, for operators.
    pub(crate) fn token(self) -> &'static str {
        match self {
            Self::NotSent => "not-sent",
            Self::Undelivered => "undelivered",
            Self::Sent => "sent",
            Self::Declined => "declined",
            Self::Answered => "answered",
        }
    }
}

/// The facts about a failed attempt from which [`decide`] decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) stage: Stage,
    /// Whether a request of this method may be repeated although a backend may have received it (`retry_sent`).
    pub(crate) repeatable: bool,
    /// Whether the whole body can be sent again; true for a request without one.
    pub(crate) replayable: bool,
    /// Whether the connection broke; `false` if the backend was silent for too long or broke its protocol.
    pub(crate) disconnected: bool,
    /// Whether the front stopped waiting for the backend before a response began: the backend was put out, or the time
    /// of the attempt was over.
    pub(crate) given_up: bool,
    /// Whether the connection was not established in time: a SYN was lost, or a backlog was full.
    pub(crate) dial_timed_out: bool,
    /// Whether the connection had carried an exchange before.
    pub(crate) reused: bool,
    /// The number of further attempts that the upstream allows.
    pub(crate) attempts_left: u32,
    /// Whether there is a backend that was not tried yet.
    pub(crate) others: bool,
    /// Whether the client or its request is to blame, not the backend: another attempt would fail in the same way.
    pub(crate) blameless: bool,
}

/// What to do about a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// Nothing: the client gets the error.
    No,
    /// Try the same backend on a fresh connection.
    Fresh,
    /// Try another backend.
    Other,
}

/// Decides what to do about a failed attempt.
pub(crate) fn decide(attempt: &Attempt) -> Retry {
    let other = if attempt.others {
        Retry::Other
    } else {
        Retry::No
    };
    if attempt.blameless || attempt.attempts_left == 0 || !attempt.replayable {
        return Retry::No;
    }
    match attempt.stage {
        // There is no other backend. A new SYN may get through although the dial before it timed out.
        Stage::NotSent if attempt.dial_timed_out && !attempt.others => Retry::Fresh,
        Stage::NotSent => other,
        // A pooled connection may be closed while the backend is well: it is asked again.
        Stage::Undelivered if attempt.reused => Retry::Fresh,
        Stage::Undelivered => other,
        // The backend may have processed the request.
        Stage::Sent | Stage::Declined if !attempt.repeatable => Retry::No,
        // No answer is to be expected of this backend.
        Stage::Sent if attempt.given_up => other,
        // A timeout or a violation of the protocol: the backend may still process the request.
        Stage::Sent if !attempt.disconnected => Retry::No,
        // The backend most likely closed the connection because it was idle, just as the front wrote.
        Stage::Sent if attempt.reused => Retry::Fresh,
        Stage::Sent | Stage::Declined => other,
        Stage::Answered => Retry::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Attempt = Attempt {
        stage: Stage::Sent,
        repeatable: true,
        replayable: true,
        disconnected: true,
        given_up: false,
        dial_timed_out: false,
        reused: true,
        attempts_left: 2,
        others: true,
        blameless: false,
    };

    #[test]
    #[expect(clippy::too_many_lines, reason = "one flat table")]
    fn table() {
        use Stage::{Answered, Declined, NotSent, Undelivered};
        let rows: &[(&str, Attempt, Retry)] = &[
            ("stale pooled connection", BASE, Retry::Fresh),
            (
                "stale, nobody else",
                Attempt {
                    others: false,
                    ..BASE
                },
                Retry::Fresh,
            ),
            (
                "fresh connection broke",
                Attempt {
                    reused: false,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "fresh connection broke, nobody else",
                Attempt {
                    reused: false,
                    others: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "POST on a stale connection",
                Attempt {
                    repeatable: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "POST on a stale connection that it did not get through",
                Attempt {
                    stage: Undelivered,
                    repeatable: false,
                    ..BASE
                },
                Retry::Fresh,
            ),
            (
                "POST that did not get through, nobody else",
                Attempt {
                    stage: Undelivered,
                    repeatable: false,
                    others: false,
                    ..BASE
                },
                Retry::Fresh,
            ),
            (
                "POST that did not get through a fresh connection",
                Attempt {
                    stage: Undelivered,
                    repeatable: false,
                    reused: false,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "POST that did not get through a fresh connection, nobody else",
                Attempt {
                    stage: Undelivered,
                    repeatable: false,
                    reused: false,
                    others: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "POST that did not get through, its body gone",
                Attempt {
                    stage: Undelivered,
                    repeatable: false,
                    replayable: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "POST that did not get through, no attempts left",
                Attempt {
                    stage: Undelivered,
                    repeatable: false,
                    attempts_left: 0,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "body gone",
                Attempt {
                    replayable: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "timeout",
                Attempt {
                    disconnected: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "the backend was put out",
                Attempt {
                    disconnected: false,
                    given_up: true,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "the backend was put out, nobody else",
                Attempt {
                    disconnected: false,
                    given_up: true,
                    others: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "the backend was put out, a POST",
                Attempt {
                    repeatable: false,
                    disconnected: false,
                    given_up: true,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "the backend was put out, response begun",
                Attempt {
                    stage: Answered,
                    given_up: true,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "response begun",
                Attempt {
                    stage: Answered,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "declined",
                Attempt {
                    stage: Declined,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "declined, nobody else",
                Attempt {
                    stage: Declined,
                    others: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "a POST declined",
                Attempt {
                    stage: Declined,
                    repeatable: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "the client's doing",
                Attempt {
                    stage: NotSent,
                    blameless: true,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "no attempts left",
                Attempt {
                    attempts_left: 0,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "refused",
                Attempt {
                    stage: NotSent,
                    reused: false,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "refused, a POST",
                Attempt {
                    stage: NotSent,
                    repeatable: false,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "refused, nobody else",
                Attempt {
                    stage: NotSent,
                    others: false,
                    ..BASE
                },
                Retry::No,
            ),
            (
                "connect timeout",
                Attempt {
                    stage: NotSent,
                    dial_timed_out: true,
                    ..BASE
                },
                Retry::Other,
            ),
            (
                "connect timeout, nobody else",
                Attempt {
                    stage: NotSent,
                    dial_timed_out: true,
                    others: false,
                    ..BASE
                },
                Retry::Fresh,
            ),
        ];
        for (name, attempt, expected) in rows {
            assert_eq!(decide(attempt), *expected, "{name}");
        }
    }
}
