//! The state of one exchange: which message may come next, from either side.
//!
//! The state machine follows the messages themselves, not a role: the client role records what it
//! sends and checks what it receives, the server role the other way round, and both run this code.
//! So each rule of AJP13 is in one place, and both roles have the same.
//!
//! ```text
//! request body          Known(0) ------------------------------------------> ended
//!   FORWARD_REQUEST --> Known(n): one DATA is owed unasked --+               ^
//!                       Unknown ---------------------------> quiet           | all n came, or
//!                         quiet --GET_BODY_CHUNK--> asked --DATA--> quiet ---+ an empty DATA
//! response              awaiting --SEND_HEADERS--> body --END_RESPONSE--> over
//! ```
//!
//! The two bodies are independent: a response may start, and end, before the request's body is read;
//! packets owed then are still owed. The roles handle bytes, buffers and events.

use http::StatusCode;

use crate::BodyLength;
use crate::error::Violation;
use crate::packet::PacketSize;

/// The state of one request and its response.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: RequestBody,
    pub(crate) response: Response,
}

impl Exchange {
    /// The state after a FORWARD_REQUEST with this body.
    pub(crate) fn new(body: BodyLength, is_head: bool) -> Self {
        Self {
            request: RequestBody::new(body),
            response: Response {
                is_head,
                interims: 0,
                stage: ResponseStage::Awaiting,
            },
        }
    }
}

/// The state of the request's body and of the packets that carry it.
#[derive(Clone, Debug)]
pub(crate) struct RequestBody {
    /// The number of bytes still to come; `None` if the length is unknown.
    left: Option<u64>,
    /// Whether no further byte will come.
    ended: bool,
    /// Whether the first packet of a body of known length is still owed, without being asked for.
    unasked: bool,
    /// The number of packets asked for and not sent yet.
    asked: u8,
    /// The most bytes that the next packet asked for may carry.
    asked_bytes: u16,
    /// The number of GET_BODY_CHUNKs after the end of the body.
    surplus: u8,
}

impl RequestBody {
    fn new(body: BodyLength) -> Self {
        let left = match body {
            BodyLength::Known(length) => Some(length),
            BodyLength::Unknown => None,
        };
        Self {
            left,
            ended: left == Some(0),
            unasked: left.is_some_and(|left| left > 0),
            asked: 0,
            asked_bytes: 0,
            surplus: 0,
        }
    }

    /// Whether all of the body has passed.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The number of body packets that the web server has yet to send: unasked, or asked for.
    pub(crate) fn owed(&self) -> u8 {
        self.asked + u8::from(self.unasked)
    }

    /// The number of bytes still missing; 0 if the length is unknown.
    pub(crate) fn missing(&self) -> u64 {
        self.left.unwrap_or(0)
    }

    /// The most bytes that the next packet may carry; 0 if none is owed or the body has ended.
    pub(crate) fn credit(&self, size: PacketSize) -> usize {
        if self.ended {
            return 0;
        }
        let packet_max = if self.unasked {
            size.data_max()
        } else if self.asked > 0 {
            size.data_max().min(usize::from(self.asked_bytes))
        } else {
            0
        };
        self.at_most_left(packet_max)
    }

    /// The most bytes that all owed packets may carry together; 0 as for [`Self::credit`].
    pub(crate) fn wanted(&self, size: PacketSize) -> usize {
        if self.ended {
            return 0;
        }
        let unasked = usize::from(self.unasked) * size.data_max();
        let asked = size.data_max().min(usize::from(self.asked_bytes));
        self.at_most_left(unasked + usize::from(self.asked) * asked)
    }

    /// The number of bytes to ask for next, if `ahead` packets may be under way besides the one that
    /// is awaited; 0 if as many are owed, if they may bring all the rest, or after the end.
    pub(crate) fn demand(&self, size: PacketSize, ahead: u8) -> usize {
        if self.ended {
            return 0;
        }
        let packet_max = size.data_max();
        let owed = self.owed();
        let Some(left) = self.left else {
            // The next packet may be the last, so none is asked for ahead.
            return if owed > 0 { 0 } else { packet_max };
        };
        if owed > ahead {
            return 0;
        }
        let unclaimed = left.saturating_sub(u64::from(owed) * packet_max as u64);
        usize::try_from(unclaimed).map_or(packet_max, |unclaimed| unclaimed.min(packet_max))
    }

    fn at_most_left(&self, bytes: usize) -> usize {
        match self.left {
            Some(left) => usize::try_from(left).map_or(bytes, |left| left.min(bytes)),
            None => bytes,
        }
    }

    /// Records a GET_BODY_CHUNK. After the end of the body, `surplus_max` of them are tolerated.
    pub(crate) fn ask(&mut self, bytes: u16, surplus_max: u8) -> Result<(), Violation> {
        if self.ended {
            if self.surplus == surplus_max {
                return Err(Violation::TooManyAsks);
            }
            self.surplus += 1;
        }
        if self.asked == ASKS_MAX {
            return Err(Violation::TooManyAsks);
        }
        self.asked_bytes = match self.asked {
            0 => bytes,
            _ => bytes.min(self.asked_bytes),
        };
        self.asked += 1;
        Ok(())
    }

    /// Records a DATA packet with `len` bytes; 0 means the end.
    pub(crate) fn data(&mut self, len: usize) -> Result<(), Violation> {
        if self.unasked {
            self.unasked = false;
        } else {
            self.asked = self.asked.checked_sub(1).ok_or(Violation::UnaskedData)?;
        }
        if len == 0 {
            self.ended = true;
            return match self.left {
                Some(missing) if missing > 0 => Err(Violation::DataShort { missing }),
                _ => Ok(()),
            };
        }
        if self.ended {
            return Err(Violation::DataExcess);
        }
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(len as u64).ok_or(Violation::DataExcess)?;
            self.ended = *left == 0;
        }
        Ok(())
    }

    /// Ends the body at its source: packets that are asked for from now on are sent empty.
    ///
    /// # Errors
    /// [`Violation::DataShort`] if announced bytes are missing.
    pub(crate) fn finish(&mut self) -> Result<(), Violation> {
        match self.left {
            Some(missing) if missing > 0 => Err(Violation::DataShort { missing }),
            _ => {
                self.ended = true;
                Ok(())
            }
        }
    }
}

/// The state of the response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    is_head: bool,
    interims: u8,
    stage: ResponseStage,
}

#[derive(Clone, Debug)]
enum ResponseStage {
    /// The final head has not passed yet.
    Awaiting,
    /// The head has passed; a body may follow.
    Body {
        /// The number of bytes still to come; `None` if the head did not announce a length.
        left: Option<u64>,
    },
    /// The head has passed, and there is no body: HEAD, 204, 205, 304.
    Bodiless,
}

/// What a received chunk means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// The chunk's bytes belong to the response's body.
    Body,
    /// The chunk asks for a flush.
    Flush,
    /// The chunk means nothing: it has bytes where there is no body, or asks for a flush of nothing.
    Nothing,
}

impl Response {
    /// Whether the final head has passed.
    pub(crate) fn has_head(&self) -> bool {
        !matches!(self.stage, ResponseStage::Awaiting)
    }

    /// Records an interim head; `max` of them are tolerated.
    pub(crate) fn interim(&mut self, max: u8) -> Result<(), Violation> {
        if self.has_head() {
            return Err(Violation::HeadTwice);
        }
        if self.interims == max {
            return Err(Violation::Interim);
        }
        self.interims += 1;
        Ok(())
    }

    /// Records a SEND_HEADERS with a final status.
    pub(crate) fn head(
        &mut self,
        status: StatusCode,
        content_length: Option<u64>,
    ) -> Result<(), Violation> {
        if self.has_head() {
            return Err(Violation::HeadTwice);
        }
        self.stage = if self.is_head || is_bodiless(status) {
            ResponseStage::Bodiless
        } else {
            ResponseStage::Body {
                left: content_length,
            }
        };
        Ok(())
    }

    /// Records a SEND_BODY_CHUNK with `len` bytes.
    pub(crate) fn chunk(&mut self, len: usize) -> Result<Chunk, Violation> {
        match &mut self.stage {
            ResponseStage::Awaiting if len == 0 => Ok(Chunk::Nothing),
            ResponseStage::Awaiting => Err(Violation::ChunkBeforeHead),
            _ if len == 0 => Ok(Chunk::Flush),
            ResponseStage::Bodiless => Ok(Chunk::Nothing),
            ResponseStage::Body { left } => {
                if let Some(left) = left {
                    *left = left.checked_sub(len as u64).ok_or(Violation::ChunkExcess)?;
                }
                Ok(Chunk::Body)
            }
        }
    }

    /// The most bytes that the next chunk may carry, at most `max`.
    pub(crate) fn room(&self, max: usize) -> usize {
        match self.stage {
            ResponseStage::Awaiting | ResponseStage::Bodiless => 0,
            ResponseStage::Body { left: None } => max,
            ResponseStage::Body { left: Some(left) } => {
                usize::try_from(left).map_or(max, |left| left.min(max))
            }
        }
    }

    /// Checks that END_RESPONSE may pass: after the head, and when the body has the length that the head
    /// announced.
    pub(crate) fn end(&self) -> Result<(), Violation> {
        match self.stage {
            ResponseStage::Awaiting => Err(Violation::EndBeforeHead),
            ResponseStage::Body {
                left: Some(missing @ 1..),
            } => Err(Violation::ChunkShort { missing }),
            _ => Ok(()),
        }
    }

    /// The number of body bytes still to come; 0 if the head announced no length.
    pub(crate) fn missing(&self) -> u64 {
        match self.stage {
            ResponseStage::Body { left: Some(left) } => left,
            _ => 0,
        }
    }

    /// Whether the head rules out a body.
    pub(crate) fn is_bodiless(&self) -> bool {
        matches!(self.stage, ResponseStage::Bodiless)
    }
}

/// Whether responses of this status never have a body (RFC 9110, section 6.4.1).
pub(crate) fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational()
        || matches!(
            status,
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
        )
}

/// The most body packets asked for and not sent yet. Deployed containers ask for one at a time.
const ASKS_MAX: u8 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_needs_an_ask_but_the_first_of_a_known_length() {
        let mut unknown = RequestBody::new(BodyLength::Unknown);
        assert_eq!(unknown.data(1), Err(Violation::UnaskedData));
        let mut none = RequestBody::new(BodyLength::Known(0));
        assert_eq!(none.data(0), Err(Violation::UnaskedData));
        let mut known = RequestBody::new(BodyLength::Known(5));
        assert_eq!(known.data(2), Ok(()));
        assert_eq!(known.data(3), Err(Violation::UnaskedData));
        assert_eq!(known.ask(100, 0), Ok(()));
        assert_eq!(known.data(3), Ok(()));
        assert!(known.has_ended());
    }

    #[test]
    fn nothing_follows_the_end() {
        let mut body = RequestBody::new(BodyLength::Unknown);
        for len in [1, 0] {
            assert_eq!(body.ask(100, 0), Ok(()));
            assert_eq!(body.data(len), Ok(()));
        }
        assert!(body.has_ended());
        assert_eq!(body.ask(100, 1), Ok(()));
        assert_eq!(body.data(1), Err(Violation::DataExcess));
        assert_eq!(body.ask(100, 1), Err(Violation::TooManyAsks));
    }

    #[test]
    fn asks_ahead_are_limited_and_the_least_of_them_counts() {
        let mut body = RequestBody::new(BodyLength::Unknown);
        for bytes in (50..).take(usize::from(ASKS_MAX)) {
            assert_eq!(body.ask(bytes, 0), Ok(()));
        }
        assert_eq!(body.ask(50, 0), Err(Violation::TooManyAsks));
        assert_eq!(body.credit(PacketSize::DEFAULT), 50);
    }
}
