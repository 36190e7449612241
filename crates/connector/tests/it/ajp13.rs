//! AJP13 on a socket, played by a client of our own codec.

use std::io::{Cursor, Read};

use catamaran_ajp::{Attribute, BodyLength};
use catamaran_connector::Secret;
use catamaran_testkit::Pattern;
use http::Method;

use super::*;
use crate::ajp_client::Exchange;

#[test]
fn pages_and_pings_share_a_connection() {
    on_each_tier(|tier| {
        let mut client = tier.ajp();
        for _ in 0..3 {
            client.ping();
            let page = client.get("/");
            assert_eq!((page.status, page.body.len(), page.reuse), (200, 347, true));
        }
    });
}

#[test]
fn downloads_of_any_size_are_exact() {
    on_each_tier(|tier| {
        let mut client = tier.ajp();
        for length in [0, 1, 8183, 8184, 8185, 65_536, 5_000_000] {
            let answer = client.get(&format!("/bytes/{length}"));
            assert_eq!(answer.content_length, Some(length));
            assert!(
                answer.body == Pattern::bytes(length),
                "{length} bytes differ"
            );
            assert!(answer.reuse);
        }
    });
}

#[test]
fn uploads_come_back_as_they_were() {
    on_each_tier(|tier| {
        let mut client = tier.ajp();
        for length in [1, 8185, 8186, 8187, 65_536, 2_000_000] {
            let body = Pattern::bytes(length);
            for length in [BodyLength::Known(length), BodyLength::Unknown] {
                let exchange = Exchange::post("/echo", length);
                let echo = client.exchange(&exchange, &mut Cursor::new(&body));
                assert!(echo.body.ends_with(&body), "{length:?} differs");
                assert!(echo.reuse);
            }
        }
    });
}

#[test]
fn an_empty_body_is_neither_waited_for_nor_asked_for() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let mut client = tier.ajp();
        for method in [Method::GET, Method::POST] {
            let exchange = Exchange {
                method,
                ..Exchange::get("/echo")
            };
            let echo = client.exchange(&exchange, &mut std::io::empty());
            assert_eq!((echo.status, echo.asked, echo.reuse), (200, false, true));
        }
    });
}

#[test]
fn the_owed_packet_of_an_unread_body_may_come_late() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let mut client = tier.ajp();
        let body = b"late but complete";
        client.send_head(&Exchange::post("/", BodyLength::Known(body.len() as u64)));
        // The response starts without the body; only its end waits.
        let mut peek = [std::mem::MaybeUninit::uninit(); 4];
        client
            .socket
            .set_read_timeout(Deadline::default().remaining())
            .unwrap();
        assert_eq!(client.socket.peek(&mut peek).unwrap(), 4);
        client.send_body(&mut &body[..]);
        let page = client.receive(&mut std::io::empty());
        assert_eq!((page.status, page.body.len(), page.reuse), (200, 347, true));
        assert_eq!(client.get("/status/404").status, 404);
    });
}

#[test]
fn most_of_a_large_unread_body_is_never_sent() {
    on_each_tier(|tier| {
        let mut client = tier.ajp();
        let mut body = Pattern::new(1 << 30);
        let exchange = Exchange::post("/status/403", BodyLength::Known(1 << 30));
        let answer = client.exchange(&exchange, &mut body);
        assert_eq!((answer.status, answer.asked), (403, false));
        let mut left = [0; 1];
        assert_eq!(body.read(&mut left).unwrap(), 1);
    });
}

#[test]
fn head_has_the_length_and_no_body() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let mut client = tier.ajp();
        let exchange = Exchange {
            method: Method::HEAD,
            ..Exchange::get("/bytes/123456789012")
        };
        let head = client.exchange(&exchange, &mut std::io::empty());
        assert_eq!(
            (head.content_length, head.body.len(), head.reuse),
            (Some(123_456_789_012), 0, true)
        );
    });
}

#[test]
fn the_secret_is_asked_of_requests_and_not_of_pings() {
    on_each_driver(|io| {
        let tier = Tier::with(io, |config| config.secret = Secret::new("right"));
        let ask = |secret: Option<&[u8]>| {
            let mut client = tier.ajp();
            client.ping();
            let attributes: Vec<_> = secret.map(Attribute::Secret).into_iter().collect();
            let exchange = Exchange {
                attributes: &attributes,
                ..Exchange::get("/")
            };
            let answer = client.exchange(&exchange, &mut std::io::empty());
            if !answer.reuse {
                assert_eq!(client.receive_to_end(), b"", "the connection is closed");
            }
            (answer.status, answer.reuse)
        };
        assert_eq!(ask(Some(b"right")), (200, true));
        assert_eq!(ask(Some(b"wrong")), (403, false));
        assert_eq!(ask(None), (403, false));
        assert_eq!(
            (tier.refused("secret-wrong"), tier.refused("secret-missing")),
            (1, 1)
        );
    });
}

#[test]
fn larger_packets_carry_larger_chunks() {
    on_each_driver(|io| {
        let packet_size = catamaran_ajp::PacketSize::MAX;
        let tier = Tier::with(io, |config| config.packet_size = packet_size);
        let mut client = tier.ajp();
        client.send_head(&Exchange::get("/bytes/60000"));
        let mut received = Vec::new();
        while received.len() < 60_000 {
            let mut buffer = [0; 65_536];
            client
                .socket
                .set_read_timeout(Deadline::default().remaining())
                .unwrap();
            let count = client.socket.read(&mut buffer).unwrap();
            assert!(count > 0);
            received.extend_from_slice(&buffer[..count]);
        }
        let chunk = [b'A', b'B', 0xea, 0x64, 3, 0xea, 0x60];
        assert!(
            received.windows(chunk.len()).any(|window| window == chunk),
            "one chunk of 60000"
        );
    });
}

#[test]
fn fronts_that_leave_midway_harm_nobody() {
    on_each_tier(|tier| {
        let mut uploading = tier.ajp();
        uploading.send_head(&Exchange::post("/echo", BodyLength::Known(1 << 20)));
        uploading.send_body(&mut Pattern::new(1 << 20));
        drop(uploading);
        let mut waiting = tier.ajp();
        waiting.send_head(&Exchange::get("/delay/3600000"));
        drop(waiting);
        let mut downloading = tier.ajp();
        downloading.send_head(&Exchange::get("/bytes/1000000000000"));
        drop(downloading);
        tier.wait_until_quiet();
        assert_eq!(tier.ajp().get("/").status, 200);
    });
}

#[test]
fn five_hundred_connections_are_served_together() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let mut clients: Vec<AjpClient> = (0..500).map(|_| tier.ajp()).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.send_head(&Exchange::get(&format!("/bytes/{index}")));
        }
        for (index, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.receive(&mut std::io::empty()).body.len(), index);
        }
    });
}

#[test]
fn the_fields_of_the_front_reach_the_application() {
    on_each_driver(|io| {
        let tier = Tier::start(io);
        let attributes = [
            Attribute::RemoteUser(b"mary"),
            Attribute::Request {
                name: b"AJP_REMOTE_PORT",
                value: b"4711",
            },
            Attribute::Request {
                name: b"AJP_SSL_PROTOCOL",
                value: b"TLSv1.3",
            },
        ];
        let exchange = Exchange {
            attributes: &attributes,
            ..Exchange::get("/snoop")
        };
        let seen = tier.ajp().exchange(&exchange, &mut std::io::empty()).text();
        for line in [
            "\"remote_addr\": \"192.0.2.7\"",
            "\"remote_port\": 4711",
            "\"peer\": \"127.0.0.1\"",
            "\"user\": \"mary\"",
            "\"tls_protocol\": \"TLSv1.3\"",
        ] {
            assert!(seen.contains(line), "{line} in {seen}");
        }
    });
}
