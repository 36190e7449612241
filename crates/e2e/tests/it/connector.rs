//! The built-in application behind the web servers that people have: Apache httpd with
//! mod_proxy_ajp and with mod_jk.

use catamaran_e2e::{Httpd, catamaran};
use catamaran_testkit::{HttpClient, Pattern};

#[test]
fn httpd_speaks_ajp_with_the_application() {
    let arguments = [
        "app",
        "--ajp",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
        "--io",
        "epoll",
    ];
    let process = catamaran(&arguments).unwrap();
    let ajp: std::net::SocketAddr = process
        .wait_for_line("the address of AJP", |line| {
            line.split_once("listening on ajp://")?
                .1
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap();
    for httpd in [
        Httpd::with_mod_proxy_ajp(ajp).unwrap(),
        Httpd::with_mod_jk(ajp).unwrap(),
    ] {
        let mut client = HttpClient::connect(httpd.address()).unwrap();
        let head = |method: &str, target: &str, fields: &str| {
            format!("{method} {target} HTTP/1.1\r\nHost: app.example\r\n{fields}\r\n").into_bytes()
        };
        for length in [0, 1, 8183, 8184, 8185, 65_536, 1_000_000] {
            client
                .send(&head("GET", &format!("/bytes/{length}"), ""))
                .unwrap();
            let answer = client.receive().unwrap();
            assert!(answer.body == Pattern::bytes(length), "{length}");
        }
        for length in [0, 1, 8185, 8186, 8187, 65_536] {
            let fields = format!("Content-Length: {length}\r\n");
            client.send(&head("POST", "/echo", &fields)).unwrap();
            client.send_from(&mut Pattern::new(length)).unwrap();
            let answer = client.receive().unwrap();
            assert_eq!(answer.status, 200);
            assert!(answer.body.ends_with(&Pattern::bytes(length)), "{length}");

            client
                .send(&head("POST", "/echo", "Transfer-Encoding: chunked\r\n"))
                .unwrap();
            client
                .send_chunked(&mut Pattern::new(length), 5000)
                .unwrap();
            let answer = client.receive().unwrap();
            assert_eq!(answer.status, 200);
            assert!(
                answer.body.ends_with(&Pattern::bytes(length)),
                "chunked {length}"
            );
        }
        client.send(&head("GET", "/status/404", "")).unwrap();
        assert_eq!(client.receive().unwrap().status, 404);
    }
}
