//! Holds back the end of a response with a file, until the front has checked that the file has not changed.

use catamaran_transport::Stream;

/// The state of `TCP_CORK`, by which the kernel holds back segments that are not full.
///
/// Without it the head before a file would be a segment of its own. And the file's last segment must wait for the end
/// of the response: the kernel has all bytes of the file by then, but the client must not get them if the file has
/// changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Cork {
    /// The kernel holds nothing back.
    #[default]
    Off,
    /// The kernel holds segments back until the response has ended.
    On,
    /// The response has ended; the kernel holds segments back until all bytes are written.
    Ended,
}

impl Cork {
    /// Corks the socket before the last part of a file is sent.
    pub(super) fn hold(&mut self, stream: &Stream) {
        if *self == Self::Off {
            *self = Self::On;
            stream.cork(true);
        }
    }

    /// Notes the end of the response. Uncorks the socket if `is_written`, which means that the kernel has all bytes.
    #[inline]
    pub(super) fn end(&mut self, is_written: bool, stream: &Stream) {
        if *self == Self::On {
            *self = Self::Ended;
            self.release(is_written, stream);
        }
    }

    /// Uncorks the socket after the last write of an ended response. `is_written`: nothing is left to write.
    #[inline]
    pub(super) fn release(&mut self, is_written: bool, stream: &Stream) {
        if *self == Self::Ended && is_written {
            *self = Self::Off;
            stream.cork(false);
        }
    }

    /// Whether the end of the response is held back.
    pub(super) fn holds(self) -> bool {
        self == Self::On
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt::tcp_cork;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn stream() -> Stream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Stream::Tcp(TcpStream::connect(address).await.unwrap())
    }

    fn is_corked(stream: &Stream) -> bool {
        let Stream::Tcp(stream) = stream else {
            panic!("{stream:?}")
        };
        tcp_cork(stream).unwrap()
    }

    #[tokio::test]
    async fn the_last_segment_waits_for_the_end_and_for_all_bytes() {
        let stream = stream().await;
        let mut cork = Cork::default();
        // A response without a file.
        cork.release(true, &stream);
        cork.end(true, &stream);
        assert_eq!((cork, is_corked(&stream)), (Cork::Off, false));
        for _ in 0..2 {
            cork.hold(&stream);
            // All that was announced is written, and may be of two versions of the file.
            cork.release(true, &stream);
            assert!(cork.holds() && is_corked(&stream));
            cork.end(false, &stream);
            assert!(!cork.holds() && is_corked(&stream));
            cork.release(false, &stream);
            assert!(is_corked(&stream));
            cork.release(true, &stream);
            assert_eq!((cork, is_corked(&stream)), (Cork::Off, false));
        }
    }
}
