//! The failures of requests: each request once, with its cause.

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureKind {
    /// The host name was not found. Ends the run: there is nothing to connect to.
    Name,
    /// The connect was refused (ECONNREFUSED), or there is no such Unix socket.
    Refused,
    /// There is no way to the address (EHOSTUNREACH, ENETUNREACH, ETIMEDOUT of a connect).
    Unreachable,
    /// No descriptor for a socket (EMFILE, ENFILE): raise the limit or lower the concurrency.
    Descriptors,
    /// A source address of the plan cannot be bound: it is not of this machine, or of another
    /// family than the server's.
    Source,
    /// No local port left (EADDRNOTAVAIL of a connect, EADDRINUSE of a bind): too many connections
    /// in TIME_WAIT; keep them alive or use more source addresses.
    Ports,
    /// Another error of a connect.
    Connect,
    /// TLS could not be agreed on, or broke later.
    Tls,
    /// A send failed.
    Write,
    /// The peer reset the connection (ECONNRESET), or the stream (RST_STREAM), before the answer was
    /// complete.
    Reset,
    /// Another error of a receive.
    Receive,
    /// The peer closed before the first byte of an answer.
    EarlyClose,
    /// The peer closed amid a head.
    TruncatedHead,
    /// The peer closed amid a body.
    TruncatedBody,
    /// Bytes beyond the end of the answer, or before any was due.
    Excess,
    /// A head that is not HTTP, or one that HTTP forbids.
    BadHead,
    /// A body whose chunks are malformed.
    BadBody,
    /// An AJP13 packet that is malformed or out of turn.
    BadPacket,
    /// A reply that memcached's protocol does not have there.
    BadReply,
    /// memcached answered SERVER_ERROR, CLIENT_ERROR or ERROR.
    ServerError,
    /// memcached did not store a value, without an error.
    NotStored,
    /// A value that was not stored under the key that was asked for, or not as it was stored.
    WrongValue,
    /// The body was not as long as the first one; see
    /// [`Checks::body_length`](crate::plan::Checks::body_length).
    BodyLength,
    /// No answer within [`Timeouts::request`](crate::plan::Timeouts::request).
    Timeout,
    /// Due while the most requests that may wait were waiting already (open loop).
    Backlog,
}

impl FailureKind {
    /// All of them, in the order of a connection's life.
    pub const ALL: [Self; 25] = [
        Self::Name,
        Self::Refused,
        Self::Unreachable,
        Self::Descriptors,
        Self::Source,
        Self::Ports,
        Self::Connect,
        Self::Tls,
        Self::Write,
        Self::Reset,
        Self::Receive,
        Self::EarlyClose,
        Self::TruncatedHead,
        Self::TruncatedBody,
        Self::Excess,
        Self::BadHead,
        Self::BadBody,
        Self::BadPacket,
        Self::BadReply,
        Self::ServerError,
        Self::NotStored,
        Self::WrongValue,
        Self::BodyLength,
        Self::Timeout,
        Self::Backlog,
    ];

    /// Its name in files: kebab-case, never changed.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Descriptors => "descriptors",
            Self::Source => "source",
            Self::Ports => "ports",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::Write => "write",
            Self::Reset => "reset",
            Self::Receive => "receive",
            Self::EarlyClose => "early-close",
            Self::TruncatedHead => "truncated-head",
            Self::TruncatedBody => "truncated-body",
            Self::Excess => "excess",
            Self::BadHead => "bad-head",
            Self::BadBody => "bad-body",
            Self::BadPacket => "bad-packet",
            Self::BadReply => "bad-reply",
            Self::ServerError => "server-error",
            Self::NotStored => "not-stored",
            Self::WrongValue => "wrong-value",
            Self::BodyLength => "body-length",
            Self::Timeout => "timeout",
            Self::Backlog => "backlog",
        }
    }

    /// The kind with this token.
    pub fn named(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.token() == token)
    }

    /// The failure in words, for a reader.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Name => "the host name was not found",
            Self::Refused => "the connection was refused",
            Self::Unreachable => "there is no way to the address",
            Self::Descriptors => "no file descriptor was left for a connection",
            Self::Source => "the local address of -B could not be bound",
            Self::Ports => "no local port was left for a connection",
            Self::Connect => "the connection could not be made",
            Self::Tls => "TLS failed",
            Self::Write => "the request could not be sent",
            Self::Reset => "the server reset the connection",
            Self::Receive => "the answer could not be received",
            Self::EarlyClose => "the server closed before it answered",
            Self::TruncatedHead => "the server closed amid the head of its answer",
            Self::TruncatedBody => "the server closed amid the body of its answer",
            Self::Excess => "the server sent bytes that were not due",
            Self::BadHead => "the head of the answer was malformed",
            Self::BadBody => "the body of the answer was malformed",
            Self::BadPacket => "the answer was no valid AJP13",
            Self::BadReply => "the answer was no valid reply of memcached",
            Self::ServerError => "the server refused the operation",
            Self::NotStored => "the server did not store the value",
            Self::WrongValue => "the value was another key's, or not as it was stored",
            Self::BodyLength => "the body was not as long as the first one",
            Self::Timeout => "there was no answer in time",
            Self::Backlog => "too many requests were waiting for a connection",
        }
    }

    /// Whether it is a lack of this machine or a mistake of the plan, and not the server's doing.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Descriptors | Self::Source | Self::Ports)
    }

    /// Whether the error that came with it says more than the kind does.
    pub const fn has_reason(self) -> bool {
        matches!(
            self,
            Self::Source
                | Self::Connect
                | Self::Tls
                | Self::Write
                | Self::Receive
                | Self::ServerError
        )
    }

    /// Whether it befell a connect, so that nothing was sent.
    pub const fn is_connect(self) -> bool {
        matches!(
            self,
            Self::Name
                | Self::Refused
                | Self::Unreachable
                | Self::Descriptors
                | Self::Source
                | Self::Ports
                | Self::Connect
                | Self::Tls
        )
    }
}

/// Failed requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures([u64; FailureKind::ALL.len()]);

impl Failures {
    /// One more of `kind`.
    pub fn add(&mut self, kind: FailureKind) {
        self.0[kind as usize] += 1;
    }

    pub(super) fn set(&mut self, kind: FailureKind, count: u64) {
        self.0[kind as usize] = count;
    }

    /// The number of failures of `kind`.
    pub fn of(&self, kind: FailureKind) -> u64 {
        self.0[kind as usize]
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The kinds that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (FailureKind, u64)> + '_ {
        FailureKind::ALL
            .into_iter()
            .map(|kind| (kind, self.of(kind)))
            .filter(|(_, count)| *count > 0)
    }

    /// Adds another thread's.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_and_token() {
        let mut tokens = Vec::new();
        for (place, kind) in FailureKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
            tokens.push(kind.token());
        }
        tokens.sort_unstable();
        tokens.dedup();
        assert_eq!(tokens.len(), FailureKind::ALL.len());
    }
}
