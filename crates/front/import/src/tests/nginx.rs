//! Parts of nginx's configurations that are closed, or done alike, and never opened.

use super::*;

/// A configuration of servers, with files that are there.
fn of_servers(servers: &str, files: &[&str]) -> Import {
    let conf = format!("events {{\n}}\n{servers}");
    let mut texts = vec![("/nginx.conf", conf.as_str())];
    texts.extend(files.iter().map(|it| (*it, "")));
    with_directories(&texts, None)
}

/// A server that listens on port 80.
fn of_server(directives: &str, files: &[&str]) -> (Vec<String>, Import) {
    let import = of_servers(&format!("server {{\nlisten 80;\n{directives}\n}}\n"), files);
    (routes(&import), import)
}

#[test]
fn a_list_of_proxies_is_read_as_nginx_reads_it_or_believed_in_nothing() {
    let guard = "location /x/ { allow 10.0.0.0/8; deny all; proxy_pass http://t:80; }";
    for (proxies, is_plain) in [
        ("set_real_ip_from 10.0.0.5;", true),
        ("set_real_ip_from 10.0.0.5; real_ip_recursive off;", true),
        ("set_real_ip_from 10.0.0.0/8;", false),
        ("set_real_ip_from 10.0.0.0/8; real_ip_recursive off;", false),
        (
            "set_real_ip_from 10.0.0.5; set_real_ip_from 10.0.0.6;",
            false,
        ),
        ("set_real_ip_from 10.0.0.0/8; real_ip_recursive on;", true),
    ] {
        let (routes, import) = of_server(
            &format!("real_ip_header X-Forwarded-For; {proxies}\n{guard}"),
            &[],
        );
        let is_open = routes
            .iter()
            .any(|it| it.contains("allow = \"10.0.0.0/8\""));
        assert_eq!(is_open, is_plain, "{proxies}\n{routes:?}");
        assert_eq!(
            import.text.contains("trusted_proxies = "),
            is_plain,
            "{proxies}"
        );
    }
}

#[test]
fn listeners_take_the_clients_of_the_source() {
    let pass = "location / { return 204; }";
    for (listens, expected) in [
        (&["listen 80;"][..], &["0.0.0.0:80"][..]),
        (&["listen *:80;"], &["0.0.0.0:80"]),
        (&["listen 0.0.0.0:80;"], &["0.0.0.0:80"]),
        (&[""], &["0.0.0.0:80"]),
        (&["listen 80; listen [::]:80;"], &["[::]:80"]),
        (&["listen [::]:80 ipv6only=off;"], &["[::]:80"]),
        (&["listen [::]:80;"], &["[::1]:80"]),
        (
            &["listen 80;", "listen 80; listen [::]:80;"],
            &["0.0.0.0:80", "[::]:80"],
        ),
        (&["listen localhost:80;"], &["127.0.0.1:80"]),
        (&["listen www.example.org:80;"], &["127.0.0.1:80"]),
    ] {
        let server =
            |(at, it): (usize, &&str)| format!("server {{ server_name h{at}.org; {it} {pass} }}\n");
        let servers: String = listens.iter().enumerate().map(server).collect();
        let import = of_servers(&servers, &[]);
        let found = import
            .text
            .lines()
            .filter_map(|it| it.strip_prefix("address = "));
        let expected: Vec<String> = expected.iter().map(|it| format!("\"{it}\"")).collect();
        assert_eq!(found.collect::<Vec<_>>(), expected, "{listens:?}");
    }
}
