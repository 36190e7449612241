//! Limits, shares and log formats of nginx.

use super::*;

/// Converts an `http` block, which has a server on port 80 with these directives.
fn of_http(outer: &str, server: &str) -> Import {
    let conf = format!(
        "events {{ }}\nhttp {{\n{outer}\nserver {{ listen 80; server_name a.org;\n\
         proxy_set_header Host $host;\n{server}\n}}\n}}\n"
    );
    converted(&[("/nginx.conf", &conf)], None)
}

/// The tables of limits, each on one line.
fn limits(import: &Import) -> Vec<String> {
    let blocks = import
        .text
        .split("\n[")
        .filter(|it| it.starts_with("limit."));
    let line = |block: &str| {
        let lines = block.lines().filter(|it| !it.is_empty());
        lines.collect::<Vec<_>>().join("; ")
    };
    blocks.map(line).collect()
}

#[test]
fn zones_become_limits_that_routes_name() {
    let import = of_http(
        ZONES,
        "location /a/ { limit_req zone=one burst=20 nodelay; limit_conn addr 8; proxy_pass http://t:80; }\n\
         location /b/ { limit_req zone=one burst=20 nodelay; limit_req zone=keys; proxy_pass http://t:80; }\n\
         location /c/ { limit_req zone=site; limit_conn hosts 100; proxy_pass http://t:80; }\n\
         location /d/ { proxy_pass http://t:80; }",
    );
    assert_eq!(
        limits(&import),
        [
            "limit.one]; burst = 21; rate = \"10/s\"",
            "limit.addr]; in_flight = 8",
            "limit.keys]; by = \"header:x-api-key\"; rate = \"90/m\"",
            "limit.site-a-org]; by = \"all\"; rate = \"5/s\"",
            "limit.hosts]; by = \"host\"; in_flight = 100",
        ],
        "{}",
        import.text
    );
    let routes = routes(&import);
    for expected in [
        "path = \"/a\"; upstream = \"t\"; limits = [\"one\", \"addr\"]",
        "path = \"/b\"; upstream = \"t\"; limits = [\"one\", \"keys\"]",
        "path = \"/c\"; upstream = \"t\"; limits = [\"site-a-org\", \"hosts\"]",
        "path = \"/d\"; upstream = \"t\"",
    ] {
        assert!(
            routes.iter().any(|it| it == expected),
            "{expected}\n{routes:#?}"
        );
    }
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
    let notes = said(&import, Weight::Note).join("\n");
    assert!(
        notes.contains("64 bits") && notes.contains("without the field"),
        "{notes}"
    );
    assert!(
        !notes.contains("429") && !notes.contains("delays"),
        "{notes}"
    );
}

#[test]
fn what_is_refused_otherwise_is_said() {
    let import = of_http(
        "limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;",
        "limit_req zone=one burst=5; limit_req_dry_run on;\n\
         location / { proxy_pass http://t:80; }\nlocation /r/ { return 301 https://$host$request_uri; }",
    );
    assert_eq!(
        limits(&import),
        ["limit.one]; burst = 6; enforce = false; rate = \"1/s\""]
    );
    let notes = said(&import, Weight::Note).join("\n");
    assert!(
        notes.contains("answered 429") && notes.contains("nginx delays"),
        "{notes}"
    );
    // nginx returns before it counts.
    let redirect = routes(&import)
        .into_iter()
        .find(|it| it.contains("redirect"));
    assert!(!redirect.unwrap().contains("limits"));
}

#[test]
fn a_zone_with_two_bursts_is_two_limits() {
    let import = of_http(
        ZONES,
        "location /a/ { limit_req zone=one burst=20 nodelay; proxy_pass http://t:80; }\n\
         location /b/ { limit_req zone=one nodelay; proxy_pass http://t:80; }",
    );
    assert_eq!(
        limits(&import),
        [
            "limit.one]; burst = 21; rate = \"10/s\"",
            "limit.one-2]; rate = \"10/s\"",
        ]
    );
    let risks = said(&import, Weight::Risk).join("\n");
    assert!(risks.contains("counts by itself"), "{risks}");
}

#[test]
fn what_cannot_be_limited_alike_is_closed() {
    for limit in [
        "limit_req zone=mapped;",
        "limit_req zone=nowhere;",
        "limit_req burst=3;",
        "limit_req zone=one burst=many;",
        "limit_req zone=one odd;",
        "limit_conn addr;",
        "limit_conn addr 0;",
        "limit_conn one 1;",
        "limit_req zone=one; limit_req zone=keys; limit_req zone=site; limit_conn addr 1; limit_conn hosts 1;",
    ] {
        let import = of_http(
            ZONES,
            &format!(
                "location /a/ {{ {limit} proxy_pass http://t:80; }}\nlocation / {{ proxy_pass http://t:80; }}"
            ),
        );
        let routes = routes(&import);
        assert!(
            routes.iter().any(|it| it == "path = \"/a\"; status = 403"),
            "{limit}\n{routes:#?}"
        );
        assert!(!said(&import, Weight::Risk).is_empty());
    }
}

#[test]
fn the_limits_of_a_place_that_tries_files_are_its_own() {
    let conf = "http { limit_conn_zone $server_name zone=s:1m; limit_conn_status 429;\n\
        include mime.types; server { listen 80; server_name a.org; root /srv; proxy_set_header Host $host;\n\
        location / { limit_conn s 4; try_files $uri @app; }\n\
        location @app { limit_conn s 9; proxy_pass http://t:80; } } }";
    let import = with_directories(&[("/nginx.conf", conf), ("/srv/a.css", "")], None);
    let routes = routes(&import);
    let limited = routes.iter().find(|it| it.contains("files = "));
    assert!(
        limited.unwrap().contains("limits = \"s-a-org\""),
        "{routes:#?}"
    );
    assert!(import.text.contains("in_flight = 4") && !import.text.contains("in_flight = 9"));
}

#[test]
fn parts_of_clients_share_a_route() {
    let import = of_http(
        "upstream one { server 10.0.0.1:80; }\nupstream two { server 10.0.0.2:80; server 10.0.0.3:80; }\n\
         split_clients \"${remote_addr}x\" $variant { 90% one; * two; }\n\
         split_clients $request_id $url { 0.5% http://10.0.0.9:80; * http://one; }",
        "location / { proxy_pass http://$variant; }\nlocation /u/ { proxy_pass ${url}; }",
    );
    let routes = routes(&import);
    for expected in [
        "path = \"/\"; split = { one = 9, two = 1 }",
        "path = \"/u\"; split = { 10-0-0-9 = 1, one = 199 }",
    ] {
        assert!(
            routes.iter().any(|it| it == expected),
            "{expected}\n{routes:#?}"
        );
    }
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
    let notes = said(&import, Weight::Note).join("\n");
    assert!(notes.contains("by the shares"), "{notes}");
}

#[test]
fn a_share_that_is_not_sure_is_closed() {
    let split = "split_clients $remote_addr $v { 50% one; * two; }";
    for (outer, server) in [
        (
            "",
            "location /x { set $V two; } location / { proxy_pass http://$v; }",
        ),
        (
            "map $host $v { default two; }",
            "location / { proxy_pass http://$v; }",
        ),
        (
            "",
            "location ~ ^/(?<v>[a-z]+) { proxy_pass http://$v; } location / { proxy_pass http://$v; }",
        ),
        // nginx sends the path as it is written.
        ("", "location / { proxy_pass http://$v/app/; }"),
        ("", "location / { proxy_pass http://$v$w; }"),
        (split, "location / { proxy_pass http://$v; }"),
    ] {
        let outer = format!(
            "upstream one {{ server 10.0.0.1:80; }}\nupstream two {{ server 10.0.0.2:80; }}\n{split}\n{outer}"
        );
        let import = of_http(&outer, server);
        let routes = routes(&import);
        assert!(!import.text.contains("split ="), "{server}\n{routes:#?}");
        assert!(
            routes.iter().any(|it| it == "path = \"/\"; status = 403"),
            "{server}\n{routes:#?}"
        );
    }
}

#[test]
fn a_log_whose_variables_have_names_is_written_alike() {
    let log = |outer: &str| {
        of_http(
            outer,
            "access_log /var/log/b.log; location / { proxy_pass http://t:80; }",
        )
    };
    let main = "log_format main '$remote_addr - $remote_user [$time_local] \"$request\" '\n\
        '$status $body_bytes_sent {$http_x_forwarded_for} rt=$request_time';\naccess_log /var/log/a.log main;";
    let import = log(main);
    let line = "[log]\nformat = \"{client} - {user} [{time_local}] \\\"{request}\\\" {status} {bytes} \
        {{{header:x-forwarded-for}}} rt={duration}\"\n";
    assert!(import.text.contains(line), "{}", import.text);
    let notes = said(&import, Weight::Note).join("\n");
    assert!(
        notes.contains("standard output") && notes.contains("format `main`"),
        "{notes}"
    );
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());

    let import = log("log_format j escape=json '{\"a\":\"$status\"}'; access_log /a j;");
    assert!(
        import.text.contains("[log]\nformat = \"json\"\n"),
        "{}",
        import.text
    );

    for (outer, reason) in [
        (
            "log_format m '$status $connection'; access_log /a m;",
            Some("`connection`"),
        ),
        ("log_format m 'x'; access_log /a m;", Some("no line")),
        ("log_format m '%$status'; access_log /a m;", Some("no line")),
        ("log_format m '$status'; access_log off;", None),
        ("log_format m '$status';", None),
        ("access_log /a combined;", None),
    ] {
        let import = log(outer);
        assert!(!import.text.contains("[log]"), "{outer}\n{}", import.text);
        let notes = said(&import, Weight::Note).join("\n");
        match reason {
            Some(reason) => assert!(notes.contains(reason), "{outer}\n{notes}"),
            None => assert_eq!(notes, ""),
        }
    }
}

#[test]
fn a_log_of_httpd_whose_parts_have_names_is_written_alike() {
    let log = |lines: &str| {
        let conf = format!(
            "Listen 80\nProxyPreserveHost On\nProxyPass / http://t:80/\n{lines}\nCustomLog logs/b combined\n"
        );
        converted(&[("/httpd.conf", &conf)], None)
    };
    let import = log(
        "LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b {%{X-Tenant}i} %D\\t%{User-agent}i\" mine\nCustomLog logs/a mine",
    );
    let line = "[log]\nformat = \"{client} - {user} [{time_local}] \\\"{request}\\\" {status} {bytes} \
        {{{header:x-tenant}}} {total_us}\\u0009{user_agent}\"\n";
    assert!(import.text.contains(line), "{}", import.text);
    let import = log("CustomLog logs/a \"%m %U %%\"");
    let line = "[log]\nformat = \"{method} {path} %\"\n";
    assert!(import.text.contains(line), "{}", import.text);
    for (lines, reason) in [
        ("LogFormat \"%h %O\" m\nCustomLog logs/a m", Some("`O`")),
        ("CustomLog logs/a \"%400,501{User-agent}i\"", Some("`4`")),
        ("CustomLog logs/a \"%{%d}t\"", Some("`{%d}t`")),
        ("CustomLog logs/a unknown", None),
        ("", None),
    ] {
        let import = log(lines);
        assert!(!import.text.contains("[log]"), "{lines}\n{}", import.text);
        let notes = said(&import, Weight::Note).join("\n");
        assert!(
            notes.contains(reason.unwrap_or_default()),
            "{lines}\n{notes}"
        );
    }
}

const ZONES: &str = "limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;\n\
    limit_req_zone $http_x_api_key zone=keys:1m rate=90r/m;\n\
    limit_req_zone $server_name zone=site:1m rate=5r/s;\n\
    limit_req_zone $limit zone=mapped:1m rate=1r/s;\n\
    limit_conn_zone $binary_remote_addr zone=addr:10m;\n\
    limit_conn_zone $host zone=hosts:10m;\n\
    limit_req_status 429; limit_conn_status 429;";
