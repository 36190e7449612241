//! One exchange: what may come next, from either side.
//!
//! The state machine follows the messages themselves, not a role: the client role records what it
//! sends and checks what it receives, the server role the other way round, and both run this code.
//! So the rules of AJP13 stand once, and both ends cannot disagree about them.
//!
//! ```text
//! request body          Known(0) ------------------------------------------> ended
//!   FORWARD_REQUEST --> Known(n): one DATA is owed unasked --+               ^
//!                       Unknown ---------------------------> quiet           | all n came, or
//!                         quiet --GET_BODY_CHUNK--> asked --DATA--> quiet ---+ an empty DATA
//! response              awaiting --SEND_HEADERS--> body --END_RESPONSE--> over
//! ```
//!
//! The body halves are independent: a response may start, and end, before the body is read; what
//! is owed then stays owed. Bytes, buffers and events belong to the roles.

use http::StatusCode;

use crate::BodyLength;
use crate::error::Violation;
use crate::packet::PacketSize;

/// One request and its response.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: RequestBody,
    pub(crate) response: Response,
}

impl Exchange {
    /// FORWARD_REQUEST passed.
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

/// The body of the request, and the packets that carry it.
#[derive(Clone, Debug)]
pub(crate) struct RequestBody {
    /// Bytes still to come, if the length is known.
    left: Option<u64>,
    /// No further byte will come.
    ended: bool,
    /// The first packet of a body of known length is owed without being asked for.
    unasked: bool,
    /// Packets asked for and not sent yet.
    asked: u8,
    /// The most bytes that the next packet asked for may carry.
    asked_bytes: u16,
    /// GET_BODY_CHUNKs after the end.
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

    /// Body packets that the web server has to send yet: unasked, or asked for.
    pub(crate) fn owed(&self) -> u8 {
        self.asked + u8::from(self.unasked)
    }

    /// Bytes still missing, as far as that is known.
    pub(crate) fn missing(&self) -> u64 {
        self.left.unwrap_or(0)
    }

    /// The most bytes that the next packet may carry; 0 if none is owed or the body has ended.
    pub(crate) fn credit(&self, size: PacketSize) -> usize {
        let packet = match (self.ended, self.unasked, self.asked) {
            (true, _, _) | (_, false, 0) => 0,
            (_, true, _) => size.data_max(),
            _ => size.data_max().min(usize::from(self.asked_bytes)),
        };
        self.at_most_left(packet)
    }

    /// The most bytes that all packets owed may carry together; 0 as for [`Self::credit`].
    pub(crate) fn wanted(&self, size: PacketSize) -> usize {
        if self.ended {
            return 0;
        }
        let unasked = usize::from(self.unasked) * size.data_max();
        let asked = size.data_max().min(usize::from(self.asked_bytes));
        self.at_most_left(unasked + usize::from(self.asked) * asked)
    }

    /// How many bytes it makes sense to ask for, if `ahead` packets may be under way besides the one
    /// that is awaited; 0 if as many are owed, if they may bring all the rest, or after the end.
    pub(crate) fn demand(&self, size: PacketSize, ahead: u8) -> usize {
        let packet = size.data_max();
        let owed = self.owed();
        match self.left {
            _ if self.ended => 0,
            None if owed > 0 => 0,
            None => packet,
            Some(_) if owed > ahead => 0,
            Some(left) => {
                let rest = left.saturating_sub(u64::from(owed) * packet as u64);
                usize::try_from(rest).map_or(packet, |rest| rest.min(packet))
            }
        }
    }

    fn at_most_left(&self, bytes: usize) -> usize {
        match self.left {
            Some(left) => usize::try_from(left).map_or(bytes, |left| left.min(bytes)),
            None => bytes,
        }
    }

    /// GET_BODY_CHUNK passed. `surplus_max` of them are borne after the end of the body.
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

    /// DATA with `len` bytes passed; none mean the end.
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

    /// The source of the body has no more bytes: what is asked for from now on gets an empty
    /// packet.
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

/// The response and how far it got.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    is_head: bool,
    interims: u8,
    stage: ResponseStage,
}

#[derive(Clone, Debug)]
enum ResponseStage {
    /// No final head yet.
    Awaiting,
    /// The head passed; a body may follow.
    Body {
        /// Bytes still to come, if the head told.
        left: Option<u64>,
    },
    /// The head passed and rules out a body: HEAD, 204, 205, 304.
    Bodiless,
}

/// What becomes of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    /// Its bytes belong to the body.
    Body,
    /// It asks for a flush.
    Flush,
    /// It means nothing: bytes where there is no body, or a flush with nothing to flush.
    Nothing,
}

impl Response {
    /// Whether the final head passed.
    pub(crate) fn has_head(&self) -> bool {
        !matches!(self.stage, ResponseStage::Awaiting)
    }

    /// An interim head passed; `max` of them are borne.
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

    /// SEND_HEADERS with a final status passed.
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

    /// SEND_BODY_CHUNK with `len` bytes passed.
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

    /// The most bytes that the next chunk may carry, of `max` that fit.
    pub(crate) fn room(&self, max: usize) -> usize {
        match self.stage {
            ResponseStage::Awaiting | ResponseStage::Bodiless => 0,
            ResponseStage::Body { left: None } => max,
            ResponseStage::Body { left: Some(left) } => {
                usize::try_from(left).map_or(max, |left| left.min(max))
            }
        }
    }

    /// Whether the body has come as long as its head said; END_RESPONSE may pass then.
    pub(crate) fn end(&self) -> Result<(), Violation> {
        match self.stage {
            ResponseStage::Awaiting => Err(Violation::EndBeforeHead),
            ResponseStage::Body {
                left: Some(missing @ 1..),
            } => Err(Violation::ChunkShort { missing }),
            _ => Ok(()),
        }
    }

    /// Bytes of the body still to come, as far as the head told.
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
