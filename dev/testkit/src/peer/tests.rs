use super::*;

fn connect(peer: &Peer) -> Socket {
    let socket = peer.address().connect(Duration::from_secs(10)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket
}

fn read_to_end(mut socket: Socket) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).map(|_| bytes)
}

#[test]
fn plays_the_steps_in_order() {
    let script = Script::new()
        .expect(2)
        .send(b"one ")
        .expect_until(b"!")
        .send_in_pieces(b"two", 1);
    let peer = Peer::start(script);
    let mut socket = connect(&peer);
    socket.write_all(b"abc").unwrap();
    socket.write_all(b"d! rest").unwrap();
    assert_eq!(read_to_end(socket).unwrap(), b"one two");
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
    assert!(peer.received(0).starts_with(b"abcd!"));
}

#[test]
fn takes_one_packet_by_its_length() {
    let peer = Peer::start(Script::new().expect_packet().send(b"got it"));
    let mut socket = connect(&peer);
    socket.write_all(b"\x12\x34\x00\x01\x0a").unwrap();
    assert_eq!(read_to_end(socket).unwrap(), b"got it");
}

#[test]
fn chooses_a_script_for_each_connection() {
    let peer = Peer::start_with(|index| Script::new().send(format!("{index}").as_bytes()));
    assert_eq!(read_to_end(connect(&peer)).unwrap(), b"0");
    assert_eq!(read_to_end(connect(&peer)).unwrap(), b"1");
    peer.wait_connections(2);
}

#[test]
fn resets_when_told() {
    let peer = Peer::start(Script::new().expect(1).send(b"x").reset());
    let mut socket = connect(&peer);
    socket.write_all(b"a").unwrap();
    let error = read_to_end(socket).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn says_when_the_other_side_left_early() {
    let peer = Peer::start(Script::new().expect(10));
    let mut socket = connect(&peer);
    socket.write_all(b"short").unwrap();
    drop(socket);
    assert_eq!(peer.wait_outcome(0), Outcome::ClosedEarly);
    assert_eq!(peer.wait_received(0, 5), b"short");
}

#[test]
fn stalls_until_the_other_side_closes() {
    let peer = Peer::start(Script::new().send(b"x").stall());
    let mut socket = connect(&peer);
    socket.read_exact(&mut [0]).unwrap();
    socket.write_all(b"late").unwrap();
    drop(socket);
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
    assert_eq!(peer.received(0), b"late");
}

#[test]
fn pauses_between_steps_and_plays_them_again() {
    let pause = Duration::from_millis(30);
    let turn = Script::new().expect(1).pause(pause).send(b"x");
    let peer = Peer::start(turn.repeat(3));
    let mut socket = connect(&peer);
    let pauses = Deadline::after(3 * pause);
    socket.write_all(b"abc").unwrap();
    assert_eq!(read_to_end(socket).unwrap(), b"xxx");
    assert_eq!(pauses.remaining(), None);
}

#[test]
fn finishing_leaves_the_other_direction_open() {
    let peer = Peer::start(
        Script::new()
            .send(b"x")
            .finish_sending()
            .expect(4)
            .expect_end(),
    );
    let mut socket = connect(&peer);
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).unwrap();
    socket.write_all(b"more").unwrap();
    drop(socket);
    assert_eq!(peer.wait_outcome(0), Outcome::Completed);
}

#[test]
fn serves_a_unix_socket_and_removes_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("peer.sock");
    let peer = Peer::start_unix(&path, |_| Script::new().send(b"hi"));
    assert_eq!(read_to_end(connect(&peer)).unwrap(), b"hi");
    drop(peer);
    assert!(!path.exists());
}

#[test]
fn dropping_ends_stalled_connections() {
    let peer = Peer::start(Script::new().stall());
    let socket = connect(&peer);
    peer.wait_connections(1);
    drop(peer);
    assert_eq!(read_to_end(socket).unwrap(), b"");
}
