//! Tests which guards are lost if the front sends all requests to the old server (`--keep`).

use super::*;

#[test]
fn guards_by_addresses_that_only_the_old_server_has_are_risks() {
    let either = "<Location /intern>\nAuthType Basic\nAuthUserFile /p\n<RequireAny>\nRequire ip 127.0.0.1\n\
                  Require valid-user\n</RequireAny>\n</Location>\n";
    let written = "<Location /intern>\nRequire ip 10.0.0.0/8\n</Location>\n";
    let files = "DocumentRoot /srv\n<Directory /srv>\nOrder allow,deny\nDeny from 10.9.0.0/16\nAllow from all\n\
                 </Directory>\n";
    let knows = "RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.1\n";
    for (section, lines) in [
        (either.to_owned(), vec![7]),
        (written.to_owned(), vec![]),
        (files.to_owned(), vec![6]),
        (format!("{knows}{either}"), vec![]),
    ] {
        let conf = format!("Listen 80\nProxyPass /app ajp://t:8009/app\n{section}");
        let import = with_directories(&[("/httpd.conf", &conf), ("/srv/x.php", "")], KEEP);
        let risks = said(&import, Weight::Risk);
        let expected: Vec<String> = lines
            .iter()
            .map(|it| format!("/httpd.conf:{it}: "))
            .collect();
        let fits = risks.iter().zip(&expected).all(|(risk, place)| {
            risk.starts_with(place.as_str()) && risk.contains("RemoteIPInternalProxy 127.0.0.1")
        });
        assert!(fits && risks.len() == expected.len(), "{conf}\n{risks:?}");
    }
}

#[test]
fn guards_of_nginx_by_addresses_that_only_the_old_server_has_are_risks() {
    for (inner, count) in [
        ("satisfy any; auth_basic x;", 2),
        ("auth_basic x;", 2),
        ("", 0),
    ] {
        let conf = format!(
            "server {{\n  listen 80;\n  location / {{\n  deny 10.9.0.1;\n  deny 10.9.0.2;\n  {inner}\n  \
             proxy_pass http://a:80; }}\n  location /php {{ fastcgi_pass p:9000; }}\n}}\n"
        );
        let import = converted(&[("/nginx.conf", &conf)], KEEP);
        let risks = said(&import, Weight::Risk);
        let about = risks.iter().filter(|it| it.contains("set_real_ip_from"));
        assert_eq!(about.count(), count, "{conf}\n{risks:?}");
    }
}

#[test]
fn virtual_hosts_of_one_name_on_two_ports_are_one_at_the_kept_address() {
    let host = |port: u16, inner: &str| {
        format!("<VirtualHost *:{port}>\nServerName x.org\n{inner}</VirtualHost>\n")
    };
    let app = "ProxyPass /app ajp://t:8009/app\n";
    let redirect = "Redirect / https://x.org/\n";
    for (first, risks, note) in [
        (app, vec!["/httpd.conf:7: "], false),
        (redirect, vec![], true),
    ] {
        let conf = format!(
            "Listen 80\nListen 8443\n{}{}",
            host(80, first),
            host(8443, app)
        );
        let import = converted(&[("/httpd.conf", &conf)], KEEP);
        let found = said(&import, Weight::Risk);
        let fits = found.iter().zip(&risks).all(|(one, place)| {
            one.starts_with(place) && one.contains("`x.org`") && one.contains("/httpd.conf:3")
        });
        assert!(fits && found.len() == risks.len(), "{conf}\n{found:?}");
        let notes = said(&import, Weight::Note);
        let moved = notes
            .iter()
            .any(|it| it.starts_with("/httpd.conf:3: move that of /httpd.conf:7"));
        assert_eq!(moved, note, "{notes:?}");
    }
}

const KEEP: Option<&str> = Some("http://127.0.0.1:8081");
