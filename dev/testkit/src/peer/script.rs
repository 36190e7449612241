//! What a scripted peer does on one connection, step by step.
//!
//! A script that ends closes the connection in both directions; [`Script::reset`] makes that end a
//! reset, [`Script::stall`] puts it off until the other side closes.

use std::time::Duration;

/// The steps for one connection, in order. Its methods add steps.
#[derive(Clone, Debug, Default)]
pub struct Script {
    steps: Vec<Step>,
    resets: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Expect(usize),
    ExpectUntil(Vec<u8>),
    ExpectPacket,
    ExpectEnd,
    /// Sends these pieces, each by one write.
    Send(Vec<Vec<u8>>),
    FinishSending,
    Pause(Duration),
    Stall,
}

impl Script {
    /// A script without steps, which closes each connection at once.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Receives `count` bytes beyond those that earlier steps took.
    #[must_use]
    pub fn expect(self, count: usize) -> Self {
        self.step(Step::Expect(count))
    }

    /// Receives up to and including the next `pattern`, such as `b"\r\n\r\n"`.
    ///
    /// # Panics
    /// When `pattern` is empty.
    #[must_use]
    pub fn expect_until(self, pattern: &[u8]) -> Self {
        assert!(!pattern.is_empty(), "an empty pattern is everywhere");
        self.step(Step::ExpectUntil(pattern.to_vec()))
    }

    /// Receives one whole AJP packet, by the length in its four-byte prefix.
    #[must_use]
    pub fn expect_packet(self) -> Self {
        self.step(Step::ExpectPacket)
    }

    /// Receives until the other side closes cleanly.
    #[must_use]
    pub fn expect_end(self) -> Self {
        self.step(Step::ExpectEnd)
    }

    /// Sends `bytes` in one write.
    #[must_use]
    pub fn send(self, bytes: &[u8]) -> Self {
        self.step(Step::Send(vec![bytes.to_vec()]))
    }

    /// Sends `bytes` in writes of at most `piece` bytes; the receiver may or may not see them in
    /// one read.
    ///
    /// # Panics
    /// When `piece` is 0.
    #[must_use]
    pub fn send_in_pieces(self, bytes: &[u8], piece: usize) -> Self {
        self.step(Step::Send(
            bytes.chunks(piece).map(<[u8]>::to_vec).collect(),
        ))
    }

    /// Ends the sending direction and goes on receiving.
    #[must_use]
    pub fn finish_sending(self) -> Self {
        self.step(Step::FinishSending)
    }

    /// Sends nothing for `duration` but records what arrives. The script ends if the other side closes.
    #[must_use]
    pub fn pause(self, duration: Duration) -> Self {
        self.step(Step::Pause(duration))
    }

    /// Plays this script `times` times in a row on the connection.
    #[must_use]
    pub fn repeat(mut self, times: usize) -> Self {
        let turns = std::iter::repeat_n(&self.steps, times);
        self.steps = turns.flatten().cloned().collect();
        self
    }

    /// Sends nothing more and keeps the connection open until the other side closes it or the
    /// peer is dropped; what arrives is recorded.
    #[must_use]
    pub fn stall(self) -> Self {
        self.step(Step::Stall)
    }

    /// Ends the script with a close. This is what every script does at its end; saying it makes a
    /// test read better.
    #[must_use]
    pub fn finish(self) -> Self {
        self
    }

    /// Ends the script with a reset instead of a close.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.resets = true;
        self
    }

    /// Plays all steps of `next` after those of this script.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.steps.extend(next.steps);
        self.resets |= next.resets;
        self
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn resets(&self) -> bool {
        self.resets
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}
