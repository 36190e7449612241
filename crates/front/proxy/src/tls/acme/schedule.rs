//! When the next step for a name's certificate is due: what is stored of the name and the time in, the step out.
//!
//! All moments are seconds of the Unix epoch, because they are stored and outlive the process: neither a restart nor a
//! reload resets a pause after a failure. An attempt counts as a failure from its begin on, so that a process that is
//! killed within one does not begin at once again.

use serde::{Deserialize, Serialize};

use crate::config::AcmeChallenge;

/// What is stored of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct NameState {
    /// How many attempts failed in a row; one that is under way is among them.
    pub(crate) failures: u32,
    /// The moment before which no attempt begins.
    pub(crate) next_attempt: u64,
    /// The URL of the order that is under way.
    pub(crate) order: Option<String>,
    /// The names of that order.
    pub(crate) order_names: Vec<String>,
    /// When the certificate is renewed, as chosen from the authority's window; `None`: by its lifetime.
    pub(crate) renew_at: Option<u64>,
    /// When the authority is asked for its window next.
    pub(crate) ask_window_at: u64,
    /// Why the last attempt failed.
    pub(crate) problem: Option<String>,
    /// How many attempts in a row this process ended.
    pub(crate) interruptions: u32,
    /// When an administrator last asked for a new certificate; 0: never.
    pub(crate) asked_at: u64,
}

/// When a certificate is valid, in seconds of the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: u64,
    pub(crate) not_after: u64,
}

/// The next step for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Get a certificate, the first or the next one.
    Order,
    /// Ask the authority when it wants the certificate renewed.
    AskWindow,
    /// Nothing is due before this moment.
    Wait(u64),
}

/// The time in which an authority wants a certificate renewed (RFC 9773, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RenewalWindow {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Validity {
    /// The seconds between two lines in the log about the end of a certificate, which is near or over; `None`: it is
    /// neither.
    pub(crate) fn alarm_pause(self, now: u64) -> Option<u64> {
        let left = self.not_after.saturating_sub(now);
        let lifetime = self.not_after.saturating_sub(self.not_before);
        if left == 0 {
            Some(ENDED_PAUSE)
        } else {
            (left < lifetime / ALARM_SHARE).then_some(ENDING_PAUSE)
        }
    }
}

impl NameState {
    /// The next step at the time `now`. `certificate`: the one that is stored; `None`: there is none.
    pub(crate) fn next_step(&self, certificate: Option<Validity>, now: u64) -> NextStep {
        let renewal = certificate.map_or(0, |validity| self.renewal(validity));
        if now >= renewal {
            return if is_due(self.next_attempt, now) {
                NextStep::Order
            } else {
                NextStep::Wait(self.next_attempt)
            };
        }
        if is_due(self.ask_window_at, now) {
            return NextStep::AskWindow;
        }
        NextStep::Wait(renewal.min(self.ask_window_at))
    }

    /// When a certificate is renewed: at the moment chosen from the authority's window, else when a third of its
    /// lifetime is left, or half of a lifetime under ten days.
    pub(crate) fn renewal(&self, certificate: Validity) -> u64 {
        let Validity {
            not_before,
            not_after,
        } = certificate;
        let chosen = self.renew_at.filter(|moment| *moment < not_after);
        chosen.unwrap_or_else(|| {
            let lifetime = not_after.saturating_sub(not_before);
            let share = if lifetime < SHORT_LIFETIME { 2 } else { 3 };
            not_after - lifetime / share
        })
    }

    /// The challenge of the attempt under way: after two failures in a row the next one of `known` is tried, after the
    /// last one the first again.
    pub(crate) fn challenge(&self, known: &[AcmeChallenge]) -> Option<AcmeChallenge> {
        let failed = usize::try_from(self.failures.saturating_sub(1)).unwrap_or(usize::MAX);
        let index = (failed / FAILURES_OF_A_CHALLENGE).checked_rem(known.len())?;
        known.get(index).copied()
    }

    /// Notes that an administrator asked for a new certificate: it is due at once, whatever was waited for.
    pub(crate) fn ask(&mut self, now: u64) {
        self.asked_at = now;
        self.renew_at = Some(now);
        self.next_attempt = now;
    }

    /// Notes that an attempt begins. `random`, of 0 to 1, spreads long pauses.
    pub(crate) fn begin(&mut self, now: u64, random: f64) {
        self.failures = self.failures.saturating_add(1);
        self.next_attempt = now + pause(self.failures, random);
    }

    /// Notes why the attempt that began failed. `retry_after`: the seconds that the authority asked to wait.
    pub(crate) fn fail(&mut self, now: u64, problem: String, retry_after: Option<u64>) {
        self.problem = Some(problem);
        self.interruptions = 0;
        if let Some(seconds) = retry_after {
            let asked = now + seconds.clamp(HOUR, PAUSE_MAX);
            self.next_attempt = self.next_attempt.max(asked);
        }
    }

    /// Notes that a certificate was issued: everything begins anew. The next attempt waits for a quarter of the
    /// certificate's lifetime, at most a day, even if the certificate is due at once: the clock may be ahead, or the authority
    /// may name a window that is over.
    pub(crate) fn succeed(&mut self, now: u64, certificate: Validity) {
        let lifetime = certificate.not_after.saturating_sub(certificate.not_before);
        *self = Self {
            next_attempt: now + (lifetime / 4).min(PAUSE_MAX),
            asked_at: self.asked_at,
            ..Self::default()
        };
    }

    /// Notes that the certificate lacks a name. The next attempt does not wait as it does after a certificate was issued,
    /// but after a failure.
    pub(crate) fn note_other_names(&mut self) {
        if self.failures == 0 {
            self.next_attempt = 0;
        }
    }

    /// Notes that this process ended the attempt, whose end is not the authority's fault. The first in a row does not count,
    /// and goes on from the moment `now` on; further ones wait as after a failure, because a front that is stopped again and
    /// again asks the authority each time.
    pub(crate) fn interrupt(&mut self, now: u64) {
        self.interruptions = self.interruptions.saturating_add(1);
        if self.interruptions == 1 {
            self.failures = self.failures.saturating_sub(1);
            self.next_attempt = now;
        }
    }

    /// Notes the authority's answer to when it wants the certificate renewed, and for how many seconds that holds. A
    /// moment that lies in the window stays; else `random`, of 0 to 1, chooses one. `None`: the authority says no window.
    pub(crate) fn note_window(
        &mut self,
        window: Option<RenewalWindow>,
        asked: u64,
        holds: Option<u64>,
        random: f64,
    ) {
        let seconds = holds.unwrap_or(WINDOW_HOLDS);
        self.ask_window_at = asked + seconds.clamp(WINDOW_HOLDS_MIN, PAUSE_MAX);
        let Some(RenewalWindow { start, end }) = window else {
            return;
        };
        let stays = self.renew_at.is_some_and(|at| (start..=end).contains(&at));
        if !stays {
            self.renew_at = Some(start + share(end.saturating_sub(start), random));
        }
    }
}

/// Whether a stored moment has come. One that lies further ahead than any pause was stored under another clock.
fn is_due(moment: u64, now: u64) -> bool {
    now >= moment || moment - now > PAUSE_MAX
}

/// The seconds between the begin of an attempt that was the `failures`th in a row and the next one.
fn pause(failures: u32, random: f64) -> u64 {
    let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    match PAUSES.get(index) {
        Some(seconds) => *seconds,
        // 12 hours, 20 % more or less.
        None => LONG_PAUSE * 4 / 5 + share(LONG_PAUSE * 2 / 5, random),
    }
}

/// A part of some seconds; `part` is from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "seconds of at most some years, times a number of 0 to 1"
)]
fn share(seconds: u64, part: f64) -> u64 {
    (seconds as f64 * part.clamp(0.0, 1.0)) as u64
}

/// How many failures in a row lead from one challenge to the next.
const FAILURES_OF_A_CHALLENGE: usize = 2;

const HOUR: u64 = 60 * 60;

/// The pauses after the first failures. At most three attempts begin within the first hour: Let's Encrypt allows five
/// failed validations of a name.
const PAUSES: [u64; 5] = [60, 600, HOUR, 3 * HOUR, 6 * HOUR];

/// The pause after further failures, which is spread by a fifth.
const LONG_PAUSE: u64 = 12 * HOUR;

/// The longest pause, whatever the authority asks for.
const PAUSE_MAX: u64 = 24 * HOUR;

/// Certificates that live for less than ten days are renewed at half of their lifetime.
const SHORT_LIFETIME: u64 = 10 * 24 * HOUR;

/// The part of its lifetime in which a certificate should have been renewed long ago.
const ALARM_SHARE: u64 = 6;

/// The pause between two lines in the log about a certificate in that part of its lifetime.
const ENDING_PAUSE: u64 = 24 * HOUR;

/// The pause between two lines in the log about a certificate that has ended.
const ENDED_PAUSE: u64 = HOUR;

/// How long a window holds if the authority does not say it (RFC 9773, section 4.3.3: six hours).
const WINDOW_HOLDS: u64 = 6 * HOUR;

/// The shortest time between two questions for a window (RFC 9773, section 4.3.2: a minute).
const WINDOW_HOLDS_MIN: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_900_000_000;
    const DAY: u64 = 24 * HOUR;

    fn validity(begun: u64, left: u64) -> Option<Validity> {
        Some(Validity {
            not_before: NOW - begun,
            not_after: NOW + left,
        })
    }

    /// A name whose window need not be asked for.
    fn settled() -> NameState {
        NameState {
            ask_window_at: NOW + HOUR,
            ..NameState::default()
        }
    }

    #[test]
    fn after_two_failures_the_other_challenge_is_tried() {
        use AcmeChallenge::{Http01, TlsAlpn01};
        let chosen = |known: &[AcmeChallenge]| {
            [1, 2, 3, 4, 5].map(|failures| {
                let state = NameState {
                    failures,
                    ..NameState::default()
                };
                state.challenge(known)
            })
        };
        let both = [Http01, Http01, TlsAlpn01, TlsAlpn01, Http01];
        assert_eq!(chosen(&[Http01, TlsAlpn01]), both.map(Some));
        assert_eq!(chosen(&[TlsAlpn01]), [Some(TlsAlpn01); 5]);
        assert_eq!(chosen(&[]), [None; 5]);
    }

    #[test]
    fn without_a_certificate_one_is_ordered_at_once() {
        assert_eq!(NameState::default().next_step(None, NOW), NextStep::Order);
    }

    #[test]
    fn without_a_window_the_lifetime_decides() {
        for (begun, left, step) in [
            (59, 31, NextStep::Wait(NOW + HOUR)),
            (60, 30, NextStep::Order),
            (91, 1, NextStep::Order),
            (2, 4, NextStep::Wait(NOW + HOUR)),
            (3, 3, NextStep::Order),
        ] {
            let certificate = validity(begun * DAY, left * DAY);
            assert_eq!(
                settled().next_step(certificate, NOW),
                step,
                "{begun} {left}"
            );
        }
        assert_eq!(
            settled().next_step(validity(90 * DAY, 0), NOW),
            NextStep::Order
        );
    }

    #[test]
    fn what_an_administrator_asks_for_is_due_at_once_and_once() {
        let certificate = validity(DAY, 89 * DAY);
        let mut state = settled();
        state.begin(NOW, 0.0);
        assert_eq!(state.next_step(None, NOW), NextStep::Wait(NOW + 60));
        state.ask(NOW);
        assert_eq!(state.next_step(None, NOW), NextStep::Order);
        assert_eq!(state.next_step(certificate, NOW), NextStep::Order);
        state.begin(NOW, 0.0);
        assert_ne!(
            state.next_step(certificate, NOW),
            NextStep::Order,
            "a failure waits"
        );
        state.succeed(NOW, certificate.unwrap());
        assert_ne!(state.next_step(certificate, NOW), NextStep::Order);
        assert_eq!((state.asked_at, state.renew_at), (NOW, None));
    }

    #[test]
    fn a_front_that_is_stopped_again_and_again_waits() {
        let mut state = NameState::default();
        let mut begun = 0;
        for second in NOW..NOW + HOUR {
            // Each attempt is ended after half a minute, by a stop and a start.
            if second % 30 == 0 && state.next_step(None, second) == NextStep::Order {
                state.begin(second, 0.0);
                state.interrupt(second + 29);
                begun += 1;
            }
        }
        assert_eq!(begun, 4, "at once, and then as after failures");
    }

    #[test]
    fn a_moment_of_the_window_is_chosen_once() {
        let certificate = validity(10 * DAY, 80 * DAY);
        let mut state = NameState::default();
        assert_eq!(state.next_step(certificate, NOW), NextStep::AskWindow);
        let window = |start, end| Some(RenewalWindow { start, end });
        state.note_window(window(NOW + DAY, NOW + 3 * DAY), NOW, Some(7 * HOUR), 0.5);
        assert_eq!(state.renew_at, Some(NOW + 2 * DAY));
        assert_eq!(
            state.next_step(certificate, NOW),
            NextStep::Wait(NOW + 7 * HOUR)
        );
        state.note_window(window(NOW + DAY, NOW + 3 * DAY), NOW, None, 0.9);
        assert_eq!(state.renew_at, Some(NOW + 2 * DAY), "it stays");
        assert_eq!(state.ask_window_at, NOW + 6 * HOUR);
        state.note_window(window(NOW - DAY, NOW - HOUR), NOW, Some(0), 0.0);
        assert_eq!(
            state.next_step(certificate, NOW),
            NextStep::Order,
            "revoked, say"
        );
        assert_eq!(state.ask_window_at, NOW + 60);
        state.note_window(None, NOW, None, 0.0);
        assert_eq!(state.renew_at, Some(NOW - DAY), "no answer changes nothing");
    }

    #[test]
    fn a_name_that_fails_for_a_day_is_tried_seven_times() {
        let mut state = NameState::default();
        let (mut now, mut attempts) = (NOW, Vec::new());
        while now < NOW + DAY {
            match state.next_step(None, now) {
                NextStep::Order => {
                    attempts.push((now - NOW) / 60);
                    state.begin(now, 0.0);
                    // A restart: what is stored is all that is known.
                    let stored = serde_json::to_string(&state).expect("numbers and texts");
                    state = serde_json::from_str(&stored).expect("what was written");
                    state.fail(now, "urn:ietf:params:acme:error:dns".to_owned(), None);
                }
                NextStep::Wait(until) => now = until,
                NextStep::AskWindow => panic!("there is no certificate"),
            }
        }
        assert_eq!(attempts, [0, 1, 11, 71, 251, 611, 1187]);
        state.succeed(now, validity(0, 90 * DAY).expect("a certificate"));
        let begun_anew = NameState {
            next_attempt: now + DAY,
            ..NameState::default()
        };
        assert_eq!(state, begun_anew);
    }

    #[test]
    fn a_new_certificate_that_is_due_at_once_is_not_replaced_at_once() {
        let window = Some(RenewalWindow {
            start: NOW - 9 * DAY,
            end: NOW - 8 * DAY,
        });
        let certificate = Validity {
            not_before: NOW - 80 * DAY,
            not_after: NOW + 10 * DAY,
        };
        let (mut now, mut orders) = (NOW, 0);
        let mut state = NameState::default();
        while now < NOW + 5 * DAY {
            match state.next_step(Some(certificate), now) {
                NextStep::Order => {
                    state.begin(now, 0.0);
                    state.succeed(now, certificate);
                    orders += 1;
                }
                NextStep::Wait(until) => now = until,
                NextStep::AskWindow => state.note_window(window, now, Some(0), 0.0),
            }
        }
        assert_eq!(orders, 5, "one a day");

        // A certificate of a minute is renewed when half of it is left.
        let minute = validity(0, 60);
        state.succeed(NOW, minute.expect("a certificate"));
        state.ask_window_at = NOW + HOUR;
        assert_eq!(state.next_step(minute, NOW), NextStep::Wait(NOW + 30));
        assert_eq!(state.next_step(minute, NOW + 30), NextStep::Order);
    }

    #[test]
    fn a_certificate_that_was_not_renewed_is_told_of() {
        for (left, pause) in [
            (15 * DAY, None),
            (15 * DAY - 1, Some(DAY)),
            (1, Some(DAY)),
            (0, Some(HOUR)),
        ] {
            let certificate = validity(90 * DAY - left, left).expect("a certificate");
            assert_eq!(certificate.alarm_pause(NOW), pause, "{left}");
            assert_eq!(certificate.alarm_pause(NOW + 90 * DAY), Some(HOUR));
        }
    }

    #[test]
    fn an_attempt_that_was_interrupted_does_not_count() {
        let mut state = NameState::default();
        state.begin(NOW, 0.0);
        state.interrupt(NOW);
        assert_eq!(state.failures, 0);
        assert_eq!(state.next_step(None, NOW), NextStep::Order);
    }

    #[test]
    fn long_pauses_are_spread() {
        assert_eq!(pause(6, 0.0), 12 * HOUR * 4 / 5);
        assert_eq!(pause(7, 1.0), 12 * HOUR * 6 / 5);
        assert_eq!(pause(u32::MAX, 0.5), 12 * HOUR);
    }

    #[test]
    fn an_authority_that_asks_to_wait_is_heard_within_limits() {
        let until = |seconds| {
            let mut state = NameState::default();
            state.begin(NOW, 0.0);
            state.fail(NOW, "rateLimited".to_owned(), Some(seconds));
            state.next_attempt - NOW
        };
        assert_eq!(
            [until(1), until(2 * HOUR), until(99 * DAY)],
            [HOUR, 2 * HOUR, DAY]
        );
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_stop_a_name() {
        let mut state = NameState::default();
        state.begin(NOW + 365 * DAY, 0.0);
        assert_eq!(state.next_step(None, NOW), NextStep::Order);
        let certificate = validity(0, 90 * DAY);
        state.note_window(None, NOW + 365 * DAY, None, 0.0);
        assert_eq!(state.next_step(certificate, NOW), NextStep::AskWindow);
    }
}
