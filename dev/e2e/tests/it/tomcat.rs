//! That the harness itself works: what these tests show of Tomcat, others assert through a front.

use catamaran_e2e::Tomcat;
use catamaran_testkit::{HttpClient, Pattern};

#[test]
fn serves_the_webapp() {
    let tomcat = Tomcat::shared().unwrap();
    let page = tomcat.get("/page.html").unwrap();
    assert_eq!(page.status, 200);
    assert!(page.text().contains("A static page"));
    let snoop = tomcat.get("/snoop.jsp?a=1").unwrap().text();
    assert!(snoop.contains("\nquery=a=1\n"), "{snoop}");
}

#[test]
fn the_webapp_makes_the_same_pattern() {
    let tomcat = Tomcat::shared().unwrap();
    let length = 3 * Pattern::PERIOD + 7;
    let answer = tomcat
        .get(&format!("/download.jsp?bytes={length}"))
        .unwrap();
    assert_eq!(answer.body, Pattern::bytes(length));
}

#[test]
fn the_webapp_digests_uploads() {
    let tomcat = Tomcat::shared().unwrap();
    let length = 3_000_000;
    let mut client = HttpClient::connect(tomcat.http()).unwrap();
    let head = format!("POST /upload.jsp HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    client.send(head.as_bytes()).unwrap();
    client.send_from(&mut Pattern::new(length)).unwrap();
    let text = client.receive().unwrap().text();
    assert!(text.contains(&format!("\nlength={length}\n")), "{text}");
    let digest = Pattern::sha256_hex(length);
    assert!(text.contains(&format!("\nsha256={digest}\n")), "{text}");
}
