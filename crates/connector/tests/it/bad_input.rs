//! Bad input over AJP13, as far as it shows at a socket: each case whole and byte by byte.
//!
//! What can be answered is answered with a well-formed head and END_RESPONSE(0), because balancers
//! take a bare close for a dead container; what cannot be read as AJP13 at all is dropped.

use super::*;

enum Expect {
    /// A head with this status, END_RESPONSE(0), end of stream.
    Refusal(u16),
    /// The end of stream and nothing before it.
    Drop,
}

struct Case {
    name: &'static str,
    input: Vec<u8>,
    expect: Expect,
}

fn packet(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    [&[0x12, 0x34][..], &length.to_be_bytes(), payload].concat()
}

fn string(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    [&length.to_be_bytes()[..], text, &[0]].concat()
}

/// A FORWARD_REQUEST with these header fields and attributes, both encoded.
fn forward(method: u8, path: &[u8], fields: &[Vec<u8>], attributes: &[u8]) -> Vec<u8> {
    let count = u16::try_from(fields.len()).unwrap();
    let payload = [
        &[2, method][..],
        &string(b"HTTP/1.1"),
        &string(path),
        &string(b"192.0.2.7"),
        &[0xff, 0xff],
        &string(b"a.example"),
        &80u16.to_be_bytes(),
        &[0],
        &count.to_be_bytes(),
        &fields.concat(),
        attributes,
        &[0xff],
    ];
    packet(&payload.concat())
}

fn field(name: &[u8], value: &[u8]) -> Vec<u8> {
    [string(name), string(value)].concat()
}

fn attribute(name: &[u8]) -> Vec<u8> {
    [&[0x0a][..], &string(name), &string(b"x")].concat()
}

const GET: u8 = 2;
const POST: u8 = 4;

#[expect(clippy::too_many_lines, reason = "a table, one row for each case")]
fn cases() -> Vec<Case> {
    let length = |value: &[u8]| field(b"content-length", value);
    let plain = forward(GET, b"/", &[], &[]);
    let with_tail = {
        let mut payload = plain[4..].to_vec();
        payload.push(0);
        packet(&payload)
    };
    let lying_count = {
        let mut packet = plain.clone();
        let count = packet.len() - 3;
        packet[count..count + 2].copy_from_slice(&[0xff, 0xff]);
        packet
    };
    let refusal = |name, status, input| Case {
        name,
        input,
        expect: Expect::Refusal(status),
    };
    let drop = |name, input| Case {
        name,
        input,
        expect: Expect::Drop,
    };
    let fields = |count: usize| vec![field(b"x", b"y"); count];
    vec![
        drop("S01 foreign magic", b"\x12\x35\x00\x01\x0a".to_vec()),
        drop("S01 HTTP", get("/")),
        drop("S02 the container's magic", b"AB\x00\x01\x09".to_vec()),
        refusal("S04 payload too large", 400, b"\x12\x34\x1f\xfd".to_vec()),
        refusal("S04 payload of 65535", 400, b"\x12\x34\xff\xff".to_vec()),
        drop("S05 shutdown", packet(&[7])),
        drop("S05 unknown code", packet(&[77])),
        refusal("S08 head cut short", 400, packet(&plain[4..20])),
        refusal("S10 bytes behind the end", 400, with_tail),
        refusal("S13 NUL in the path", 400, forward(GET, b"/a\0b", &[], &[])),
        refusal("S14 method 0", 400, forward(0, b"/", &[], &[])),
        refusal("S14 method 28", 400, forward(28, b"/", &[], &[])),
        refusal("S16 GET and a stored method", 400, {
            forward(GET, b"/", &[], &[&[0x0d][..], &string(b"DELETE")].concat())
        }),
        refusal("S17 empty path", 400, forward(GET, b"", &[], &[])),
        refusal("S17 relative path", 400, forward(GET, b"foo", &[], &[])),
        refusal(
            "S17 line break in the path",
            400,
            forward(GET, b"/a\r\nb", &[], &[]),
        ),
        refusal("S17 asterisk with GET", 400, forward(GET, b"*", &[], &[])),
        refusal("S20 more fields announced than sent", 400, lying_count),
        refusal("S22 unknown field code", 400, {
            forward(
                GET,
                b"/",
                &[[&[0xa0, 0x0f][..], &string(b"v")].concat()],
                &[],
            )
        }),
        refusal(
            "S23 field name with a space",
            400,
            forward(GET, b"/", &[field(b"a b", b"v")], &[]),
        ),
        refusal(
            "S25 too many fields",
            431,
            forward(GET, b"/", &fields(101), &[]),
        ),
        refusal(
            "S26 two lengths",
            400,
            forward(POST, b"/", &[length(b"5"), length(b"5")], &[]),
        ),
        refusal(
            "S26 signed length",
            400,
            forward(POST, b"/", &[length(b"+5")], &[]),
        ),
        refusal("S26 length of 2^63", 400, {
            forward(POST, b"/", &[length(b"9223372036854775808")], &[])
        }),
        refusal(
            "S28 unknown attribute code",
            400,
            forward(GET, b"/", &[], &[0x20, 0, 0, 0]),
        ),
        refusal(
            "S29 unknown attribute name",
            403,
            forward(GET, b"/", &[], &attribute(b"unknown")),
        ),
        refusal("S29 include path", 403, {
            forward(
                GET,
                b"/",
                &[],
                &attribute(b"javax.servlet.include.path_info"),
            )
        }),
    ]
}

#[test]
fn each_case_is_refused_or_dropped_and_never_served() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        for case in cases() {
            for size in [usize::MAX, 1] {
                let mut client = tier.ajp();
                // The connector may close before it has everything, and then writing may fail.
                for piece in case.input.chunks(size) {
                    if std::io::Write::write_all(&mut client.socket, piece).is_err() {
                        break;
                    }
                }
                check(&case, &client.receive_to_end());
            }
        }
        assert!(tier.ajp().get("/").reuse, "the connector is as it was");
    });
}

fn check(case: &Case, answer: &[u8]) {
    let name = case.name;
    match case.expect {
        Expect::Drop => assert_eq!(answer, b"", "{name}"),
        Expect::Refusal(status) => {
            let [high, low] = status.to_be_bytes();
            assert!(
                matches!(answer, [b'A', b'B', _, _, 4, h, l, ..] if (*h, *l) == (high, low)),
                "{name}: {answer:?}"
            );
            assert!(
                answer.ends_with(&[b'A', b'B', 0, 2, 5, 0]),
                "{name}: {answer:?}"
            );
        }
    }
}

#[test]
fn every_cut_head_is_dropped_without_being_served() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let head = forward(GET, b"/", &[field(b"a", b"b")], &[]);
        for length in 1..head.len() {
            let mut client = tier.ajp();
            client.send(&head[..length]);
            client.socket.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(client.receive_to_end(), b"", "{length}");
        }
        assert_eq!(tier.running.counters().requests, 0);
    });
}

#[test]
fn a_request_hidden_in_a_body_is_never_served() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        // Without a length the front may not send body bytes unasked. An attacker's that do come
        // at once are shaped as a request, should anybody read them as one (CVE-2022-26377).
        let hidden = forward(GET, b"/status/299", &[], &[]);
        let request = forward(POST, b"/", &[field(b"transfer-encoding", b"chunked")], &[]);
        let mut client = tier.ajp();
        client.send(&[request, hidden].concat());
        let answer = client.receive_to_end();
        assert!(answer.ends_with(&[b'A', b'B', 0, 2, 5, 0]));
        assert_eq!(tier.running.counters().requests, 1);
    });
}

#[test]
fn tails_of_pings_and_stray_empty_packets_are_tolerated() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let mut client = tier.ajp();
        client.send(&packet(&[10, 0, 0, 0xff]));
        client.send(&packet(&[10]));
        let mut pongs = [0; 10];
        client
            .socket
            .set_read_timeout(Deadline::default().remaining())
            .unwrap();
        std::io::Read::read_exact(&mut client.socket, &mut pongs).unwrap();
        assert_eq!(pongs, *b"AB\x00\x01\x09AB\x00\x01\x09");
        assert!(client.get("/").reuse);
        client.send(&packet(&[]));
        assert!(client.get("/").reuse);
    });
}
