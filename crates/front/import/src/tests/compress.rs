//! Tests that responses are compressed as the source compresses them.

use super::*;

#[test]
fn gzip_of_nginx_is_that_of_its_routes() {
    let conf = "http { include mime.types;\n  gzip on;\n  gzip_types text/css application/json;\n  gzip_min_length 2048;\n  \
                gzip_vary on;\n  gzip_comp_level 5;\n  gzip_proxied any;\n  server {\n  listen 80;\n  \
                proxy_set_header Host $host;\n  \
                location = /a { proxy_pass http://a:80; proxy_cache c; proxy_cache_valid 200 1m; }\n  \
                location = /b { gzip off; proxy_pass http://a:80; }\n  \
                location = /c { gzip_types *; proxy_pass http://a:80; }\n  \
                location = /d { return 404; }\n  location / { root /srv; }\n}\n}\n";
    let import = with_directories(&[("/nginx.conf", conf), ("/srv/x.css", "")], None);
    let types = "compress_types = [\"text/html\", \"text/css\", \"application/json\"]";
    let on = format!("compress = \"gzip\"; compress_min = 2048; {types}");
    assert_eq!(
        routes(&import),
        [
            format!("path = \"/a\"; exact = true; upstream = \"a\"; {on}"),
            "path = \"/b\"; exact = true; upstream = \"a\"".to_owned(),
            "path = \"/c\"; exact = true; upstream = \"a\"; compress = \"gzip\"; compress_min = 2048".to_owned(),
            "path = \"/d\"; exact = true; status = 404".to_owned(),
            format!("path = \"/\"; files = \"/srv\"; charset = \"off\"; {on}"),
        ]
    );
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
    let notes = said(&import, Weight::Note);
    let cache = |it: &String| it.starts_with("/nginx.conf:11: ") && it.contains("`cache`");
    assert!(notes.iter().any(cache), "{notes:?}");
}

#[test]
fn types_without_gzip_compress_nothing() {
    let conf = "server {\n  listen 80;\n  gzip_types text/css;\n  proxy_set_header Host $host;\n  \
                location / { proxy_pass http://a:80; }\n}\n";
    let import = converted(&[("/nginx.conf", conf)], None);
    assert_eq!(routes(&import), ["path = \"/\"; upstream = \"a\""]);
    assert_eq!((import.risks(), import.sums.dropped), (0, 1));
}

#[test]
fn mod_deflate_compresses_by_type_or_all_texts() {
    let conf = "Listen 80\nAddOutputFilterByType DEFLATE text/html text/css\nDeflateCompressionLevel 6\n\
                AddOutputFilterByType DEFLATE application/json\n\
                SetEnvIfNoCase Request_URI \\.(?:gif|jpe?g)$ no-gzip dont-vary\n\
                ProxyPass /a ajp://t:8009/a\nProxyPass /b ajp://t:8009/b\n\
                <Location /b>\nSetOutputFilter DEFLATE\n</Location>\n";
    let import = converted(&[("/httpd.conf", conf)], None);
    let types = "compress_types = [\"text/html\", \"text/css\", \"application/json\"]";
    assert_eq!(
        routes(&import),
        [
            format!("path = \"/a\"; upstream = \"t\"; compress = \"gzip\"; {types}"),
            "path = \"/b\"; upstream = \"t\"; compress = \"gzip\"".to_owned(),
            "path = \"/\"; status = 404".to_owned(),
        ]
    );
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
}
