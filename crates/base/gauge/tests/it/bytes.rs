//! Bytes of a hop, held against what a client sent and received.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use catamaran_gauge::{Bytes, Hop, Segments, Traffic};
use catamaran_testkit::Deadline;

use crate::{Talker, group};

#[test]
fn bytes_are_those_of_the_client_and_headers() {
    let group = group("bytes");
    let mut server =
        Talker::start(
            group
                .command("perl")
                .args(["-MIO::Socket::INET", "-e", SERVER]),
        );
    let port: u16 = server.line().parse().unwrap();
    let other = port ^ 1;
    let bytes = Bytes::count(&group, &[port, other]).unwrap();
    let segments = Segments::count(&group, &[port, other]).unwrap();
    for _ in 0..CONNECTIONS {
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        for _ in 0..REQUESTS {
            client.write_all(&[b'x'; 100]).unwrap();
            client.read_exact(&mut [0; 1000]).unwrap();
        }
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
    // The last acknowledgement may still be under way.
    let all = || {
        let hop = bytes.of(port).unwrap();
        (payload(hop.received) == CONNECTIONS * REQUESTS * 100).then_some(hop)
    };
    let hop = Deadline::default()
        .poll("the requests' bytes", all)
        .unwrap();
    assert_eq!(payload(hop.sent), CONNECTIONS * REQUESTS * 1000);
    assert!(hop.sent.packets >= CONNECTIONS * (REQUESTS + 2), "{hop:?}");
    assert_eq!(bytes.of(other).unwrap(), Hop::default());
    assert_eq!(segments.received().unwrap(), CONNECTIONS * REQUESTS);
}

/// Without the headers: 20 bytes of IP, 20 of TCP, 12 of its timestamps, and 8 more of options in
/// either side's first packet.
fn payload(traffic: Traffic) -> u64 {
    traffic.bytes - 52 * traffic.packets - 8 * CONNECTIONS
}

const CONNECTIONS: u64 = 3;
const REQUESTS: u64 = 50;

/// Says its port, then answers every 100 bytes with 1,000, one connection after the other.
const SERVER: &str = r#"$| = 1;
    my $l = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1") or die;
    print $l->sockport, "\n";
    while (my $c = $l->accept) {
        while (read($c, my $asked, 100) == 100) { syswrite $c, "y" x 1000; }
    }"#;
