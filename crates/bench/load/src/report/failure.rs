//! The kinds of failures of requests, and their counts; each failed request has one kind.

/// The kind of a request's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureKind {
    /// The host name could not be resolved. This ends the run: there is nothing to connect to.
    Name,
    /// The connect was refused (ECONNREFUSED), or the Unix socket does not exist.
    Refused,
    /// There is no route to the address, or no response (EHOSTUNREACH, ENETUNREACH, ETIMEDOUT of a connect).
    Unreachable,
    /// There was no descriptor for a socket (EMFILE, ENFILE): raise the limit or lower the concurrency.
    Descriptors,
    /// A source address of the plan cannot be bound: it does not belong to this machine, or is of
    /// another family than the server's.
    Source,
    /// No local port was left (EADDRNOTAVAIL of a connect, EADDRINUSE of a bind), because too many
    /// connections are in TIME_WAIT; keep connections alive or use more source addresses.
    Ports,
    /// A connect failed with an error that no other kind of failure covers.
    Connect,
    /// The TLS handshake failed, or TLS broke later.
    Tls,
    /// A send failed with an error that no other kind of failure covers.
    Write,
    /// The peer reset the connection (ECONNRESET), or the stream (RST_STREAM), before the response was complete.
    Reset,
    /// A receive failed with an error that no other kind of failure covers.
    Receive,
    /// The peer closed the connection before the first byte of a response.
    EarlyClose,
    /// The peer closed the connection within a head.
    TruncatedHead,
    /// The peer closed the connection within a body.
    TruncatedBody,
    /// The peer sent bytes beyond the end of the response, or before any was due.
    Excess,
    /// The response's head is not HTTP, or not allowed by HTTP.
    BadHead,
    /// The response's body has malformed chunks.
    BadBody,
    /// An AJP13 packet is malformed, or not allowed when it arrives.
    BadPacket,
    /// memcached's protocol does not allow this reply to the operation.
    BadReply,
    /// memcached answered SERVER_ERROR, CLIENT_ERROR or ERROR.
    ServerError,
    /// memcached did not store a value, and gave no error.
    NotStored,
    /// The value was stored under another key, or is damaged.
    WrongValue,
    /// The body was not as long as the first one of the same request; see
    /// [`Checks::body_length`](crate::plan::Checks::body_length).
    BodyLength,
    /// There was no response within [`Timeouts::request`](crate::plan::Timeouts::request).
    Timeout,
    /// The request was due while the backlog of waiting requests was full (open loop).
    Backlog,
}

impl FailureKind {
    /// All kinds, in the order of a connection's life.
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

    /// The kind's name in files: kebab-case, never changed.
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

    /// The kind whose token is `token`; `None` if there is none.
    pub fn named(token: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.token() == token)
    }

    /// The failure as words for a reader.
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

    /// Whether the cause is a lack of this machine or a mistake in the plan, and not the server.
    pub const fn is_own(self) -> bool {
        matches!(self, Self::Descriptors | Self::Source | Self::Ports)
    }

    /// Whether the error of such a failure says more than the kind does.
    pub const fn has_reason(self) -> bool {
        matches!(
            self,
            Self::Source
                | Self::Connect
                | Self::Tls
                | Self::Write
                | Self::Receive
                | Self::BadHead
                | Self::BadBody
                | Self::ServerError
        )
    }

    /// Whether the kind is a failure of a connect, so that nothing was sent.
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

/// The numbers of failed requests by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures([u64; FailureKind::ALL.len()]);

impl Failures {
    /// Counts one more failure of `kind`.
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

    /// The number of all failures.
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

    /// Adds the counts of another thread.
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
