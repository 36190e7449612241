//! Random configurations of nginx: servers with locations, access rules at each level, rewrites, fields.

use fastrand::Rng;

use super::{filled, lines, one, one_of_sizes, section};
use crate::tree::Node;

/// The level at which a directive is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Http,
    Server,
    Location,
}

/// A random configuration: an upstream, directives outside of servers, and one to four servers.
pub(super) fn tree(random: &mut Rng) -> Vec<Node> {
    let mut nodes = Vec::new();
    nodes.push(Node::Line("upstream app { server {one}; }".to_owned()));
    // Most are small: the more rules there are, the likelier one of them refuses everything.
    let size = one_of_sizes(random);
    // The larger the configuration, the likelier each of these is in it.
    if random.usize(..4) < size {
        nodes.extend(inherited(random, Level::Http));
    }
    if random.usize(..8) < size {
        nodes.extend(lines(random, VARIABLES));
    }
    let servers = 1 + random.usize(..=size);
    for index in 0..servers {
        nodes.push(server(random, index, size));
    }
    nodes
}

/// A server with locations. The first one listens at the first address, so that requests always reach one.
/// Sometimes a part of it is in a file of its own.
fn server(random: &mut Rng, index: usize, size: usize) -> Node {
    let mut inner = Vec::new();
    let listen = match (index, random.usize(..6)) {
        (0, 0) => "listen {a} default_server;",
        (0, _) => "listen {a};",
        (_, 0) => "listen {b};",
        (_, 1) => "listen {a}; listen {b};",
        (1, 2) => "listen {a} default_server;",
        _ => "listen {a};",
    };
    let name = one(
        random,
        &[
            "server_name <hosts>;",
            "server_name <hosts>;",
            "server_name ~^www\\.;",
            "",
        ],
    );
    if !name.is_empty() {
        inner.push(Node::Line(filled(random, name)));
    }
    if random.usize(..3) > 0 {
        inner.push(Node::Line("root {place}/site;".to_owned()));
    }
    for _ in 0..random.usize(..=size) {
        inner.extend(inherited(random, Level::Server));
    }
    if random.usize(..8) <= size {
        inner.extend(processed(random, Level::Server));
    }
    let named_locations = [("@one", "{one}"), ("@two", "{two}")];
    for (name, backend) in named_locations {
        if random.usize(..2) == 0 {
            let mut body = vec![Node::Line(format!("proxy_pass http://{backend};"))];
            if random.usize(..4) == 0 {
                body.extend(inherited(random, Level::Location));
            }
            inner.push(section(format!("location {name} {{"), body, "}"));
        }
    }
    if random.usize(..12) == 0 {
        // The only location beside that of all paths, which gets what this one rewrites.
        inner.push(section(
            "location ~ ^/app/(.*)$ {".to_owned(),
            lines(random, &["rewrite ^/app/(.*)$ /$1 last;"]),
            "}",
        ));
        inner.extend(location(random, "/", 0, &mut Vec::new()));
        return section(format!("server {{ {listen}"), inner, "}");
    }
    // nginx refuses two locations with one key.
    let mut keys = Vec::new();
    for _ in 0..1 + random.usize(..2 + size) {
        inner.extend(location(random, "", 0, &mut keys));
    }
    if random.usize(..2) == 0 {
        inner.extend(location(random, "/", 0, &mut keys));
    }
    if random.usize(..6) == 0 {
        let at = random.usize(..inner.len());
        let moved = inner.split_off(at);
        inner.push(Node::File {
            name: format!("inc{index}.conf"),
            included_by: format!("include {{place}}/inc{index}.conf;"),
            inner: moved,
        });
    }
    // Without `listen`, nginx would listen on port 80 of all addresses.
    section(format!("server {{ {listen}"), inner, "}")
}

/// A location whose key is not among `keys`, those of the same level; `None` if the random choice is among them.
/// `within` is empty for any location of a server, `/` for the one of all paths, `~` for any inside an expression, and
/// else the prefix of the outer location.
fn location(random: &mut Rng, within: &str, depth: usize, keys: &mut Vec<String>) -> Option<Node> {
    let place = match (within, random.usize(..8)) {
        ("/", _) => "/".to_owned(),
        ("", 0 | 1) => filled(random, "~ <regex>"),
        ("", 2) => filled(random, "~* <regex>"),
        ("", 3) => filled(random, "^~ <path>"),
        ("", 4) => filled(random, "= <path>"),
        ("", 5) if random.bool() => filled(random, "~ \"<odd>\""),
        ("", 6) if random.usize(..3) == 0 => filled(random, "\"<odd path>\""),
        ("", _) => filled(random, "<path>"),
        (outer, 0..=3) if outer.starts_with('/') => {
            format!(
                "{outer}{}",
                one(random, &["admin/", "secret.txt", "1", "x"])
            )
        }
        _ => filled(random, "~ <regex>"),
    };
    // nginx refuses two prefixes that differ only by `^~`.
    let key = place.trim_start_matches("^~ ").to_owned();
    if keys.contains(&key) {
        return None;
    }
    keys.push(key.clone());
    let is_prefix = !place.starts_with(['~', '=', '^']);
    let is_expression = place.starts_with('~');
    let mut body = Vec::new();
    for _ in 0..random.usize(..3) / 2 + random.usize(..2) {
        body.extend(inherited(random, Level::Location));
    }
    if random.usize(..4) == 0 {
        body.extend(processed(random, Level::Location));
    }
    body.extend(match random.usize(..10) {
        0..=3 if is_expression => lines(random, PASSES_OF_EXPRESSIONS),
        0..=3 => lines(random, PASSES),
        4..=6 => lines(random, FILES),
        7 if is_expression => lines(random, ALIASES_OF_EXPRESSIONS),
        7 => lines(random, ALIASES),
        8 => lines(random, ANSWERS),
        _ => Vec::new(),
    });
    if depth == 0 && random.usize(..5) == 0 && (is_prefix || is_expression) {
        let outer = match key.as_str() {
            _ if is_expression => "~",
            // A `/` would ask for the location of all paths.
            "/" => "//",
            prefix => prefix,
        };
        body.extend(location(random, outer, 1, &mut Vec::new()));
    }
    Some(section(format!("location {place} {{"), body, "}"))
}

/// A directive that inner levels inherit unless they have their own.
fn inherited(random: &mut Rng, level: Level) -> Vec<Node> {
    match random.usize(..12) {
        0..=3 => lines(random, GUARDS),
        4 if level == Level::Location => {
            let inner = lines(
                random,
                &[
                    "deny all;",
                    "allow <client>; | deny all;",
                    "auth_basic x; | auth_basic_user_file {place}/htpasswd;",
                ],
            );
            vec![section(
                filled(random, "limit_except <method> {"),
                inner,
                "}",
            )]
        }
        5 | 6 => lines(random, REQUEST_FIELDS),
        7 => lines(random, RESPONSE_FIELDS),
        8 => lines(random, PAGES),
        9 => lines(random, SETTINGS),
        10 => lines(random, TYPES),
        _ if level == Level::Location => lines(
            random,
            &["internal;", "satisfy any; | allow <client>; | deny all;"],
        ),
        _ => lines(random, SETTINGS_OF_SERVERS),
    }
}

/// A directive of the rewrite module.
fn processed(random: &mut Rng, level: Level) -> Vec<Node> {
    if random.bool() {
        let test = one(random, CONDITIONS);
        let condition = filled(random, test);
        let inner = match random.usize(..4) {
            0 if level == Level::Location => lines(random, &["proxy_pass http://<backend>;"]),
            1 => lines(random, REWRITES),
            _ => lines(random, ANSWERS),
        };
        return vec![section(format!("if ({condition}) {{"), inner, "}")];
    }
    lines(random, REWRITES)
}

const VARIABLES: &[&str] = &[
    "map $http_x_role $is_admin { default 0; admin 1; }",
    "map $uri $is_admin { default 0; ~^/admin 1; }",
    "geo $is_admin { default 0; 127.0.0.2 1; }",
    "map $request_method $is_admin { default 1; GET 0; }",
    "limit_req_zone $binary_remote_addr zone=z:1m rate=1000r/s;",
];

const GUARDS: &[&str] = &[
    "deny all;",
    "allow <client>; | deny all;",
    "deny <client>; | allow all;",
    "deny <client>;",
    "allow <client>; | allow <client>; | deny all;",
    "auth_basic x; | auth_basic_user_file {place}/htpasswd;",
    "auth_basic x; | auth_basic_user_file {place}/htpasswd; | proxy_set_header X-User $remote_user;",
    "auth_basic y; | auth_basic_user_file {place}/fast.htpasswd;",
    "auth_basic off;",
    "satisfy any;",
    "satisfy any; | allow <client>; | auth_basic x; | auth_basic_user_file {place}/htpasswd;",
    "satisfy any; | deny <client>; | auth_basic x; | auth_basic_user_file {place}/htpasswd;",
    "satisfy any; | deny all; | auth_basic x; | auth_basic_user_file {place}/htpasswd;",
    "auth_request /auth;",
    "auth_request off;",
    "disable_symlinks on;",
    "allow all;",
];

const PASSES: &[&str] = &[
    "proxy_pass http://<backend>;",
    "proxy_pass http://<backend>;",
    "proxy_pass http://app;",
    "proxy_pass http://<backend>/;",
    "proxy_pass http://<backend><path>;",
    "proxy_pass http://<backend>$request_uri;",
    "proxy_pass http://<backend>$uri;",
];

const PASSES_OF_EXPRESSIONS: &[&str] = &[
    "proxy_pass http://<backend>;",
    "proxy_pass http://<backend>;",
    "proxy_pass http://app;",
    "proxy_pass http://<backend>/app/$1;",
    "proxy_pass http://<backend>$uri;",
];

const FILES: &[&str] = &[
    "root {place}/site;",
    "root {place}/other;",
    "root {place}/site; | index a.html index.html;",
    "root {place}/site; | index secret.txt /admin/secret.txt;",
    "root {place}/site; | try_files $uri =404;",
    "root {place}/site; | try_files $uri $uri/ /index.html;",
    "root {place}/site; | try_files $uri @one;",
    "root {place}/site; | try_files $uri $uri/index.html @two;",
    "root {place}/site; | try_files /admin/secret.txt =403;",
    "root {place}/site; | try_files $uri =403;",
    "root {place}/site; | autoindex on;",
    "try_files /nothing @one;",
    "root {place}/other; | try_files $uri <path>;",
];

const ALIASES: &[&str] = &[
    "alias {place}/other/;",
    "alias {place}/other;",
    "alias {place}/site/admin/;",
    "alias {place}/site/; | index a.html;",
    "alias {place}/other/secret.txt;",
];

const ALIASES_OF_EXPRESSIONS: &[&str] =
    &["alias {place}/site/$1;", "alias {place}/other/secret.txt;"];

const ANSWERS: &[&str] = &[
    "return 403;",
    "return 404;",
    "return 444;",
    "return 401;",
    "return 200 text;",
    "return 301 https://$host$request_uri;",
    "return 302 <path>;",
    "return 302 http://<host>$uri;",
];

const REWRITES: &[&str] = &[
    "rewrite <regex> <path> last;",
    "rewrite <regex> <path> break;",
    "rewrite <regex> <path>;",
    "rewrite <regex> <path> permanent;",
    "rewrite ^/$ /app/ redirect;",
    "rewrite ^/admin/secret.txt$ <path> permanent;",
    "rewrite ^/app/(.*)$ /$1 last;",
    "rewrite ^/app/(.*)$ /$1 break;",
    "rewrite ^/shop/(.*)$ /admin/$1 last;",
    "rewrite ^(.*)$ /app$1 break;",
    "set $role guest;",
    "return 403;",
    "break;",
];

const CONDITIONS: &[&str] = &[
    "$request_method = <method>",
    "$request_method != <method>",
    "$request_method !~ ^(GET|HEAD)$",
    "$request_method ~* post",
    "$host = <host>",
    "$host != <host>",
    "$http_host !~ ^www\\.",
    "$host ~* ^www\\.(.+)$",
    "$http_x_role = admin",
    "$http_x_role != admin",
    "$http_x_role",
    "$http_user_agent ~ forged",
    "$http_user_agent = \"\"",
    "$args ~ admin",
    "$arg_role != admin",
    "$request_uri ~ <regex>",
    "$uri ~ <regex>",
    "$uri ~* <regex>",
    "$uri !~ <regex>",
    "$uri ~ \"<odd>\"",
    "$request_uri ~ \"<odd>\"",
    "$document_uri ~ <regex>",
    "$remote_addr = 127.0.0.2",
    "$remote_addr != 127.0.0.1",
    "$http_x_forwarded_for ~ 192\\.0\\.2\\.66",
    "$http_x_forwarded_proto != https",
    "$scheme = http",
    "$scheme != https",
    "$server_port = {port_a}",
    "$http_cookie !~ role",
    "$http_authorization = \"\"",
    "-f $request_filename",
    "!-f $request_filename",
    "!-e $request_filename",
    "-d $request_filename",
    "$is_args",
    "$http_referer !~ a\\.org",
    "$http_origin ~ forged",
    "$http_range",
    "$http_upgrade ~* websocket",
    "$http_connection ~* upgrade",
    "$http_if_none_match",
    "$http_x_forwarded_port != 443",
    "$http_x_role ~ guest",
    "$server_protocol = HTTP/1.0",
];

const REQUEST_FIELDS: &[&str] = &[
    "proxy_set_header X-Role guest;",
    "proxy_set_header X-Role \"\";",
    "proxy_set_header X-Role $http_x_role;",
    "proxy_set_header X-Role $arg_role;",
    "proxy_set_header X-User $remote_user;",
    "proxy_set_header Remote-User $remote_user;",
    "proxy_set_header Authorization \"\";",
    "proxy_set_header Authorization \"Basic dXNlcjpwYXNzd29yZA==\";",
    "proxy_set_header Host $host;",
    "proxy_set_header Host $http_host;",
    "proxy_set_header Host b.org;",
    "proxy_set_header Host $proxy_host; | proxy_set_header X-Role guest;",
    "proxy_set_header X-Real-IP $remote_addr;",
    "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
    "proxy_set_header X-Forwarded-For $remote_addr;",
    "proxy_set_header X-Forwarded-Proto $scheme;",
    "proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto;",
    "proxy_set_header X-Forwarded-Proto https;",
    "proxy_set_header X-Forwarded-Host $host;",
    "proxy_set_header X-Forwarded-Host \"\";",
    "proxy_set_header X-Path $uri;",
    "proxy_set_header Cookie \"\";",
    "proxy_pass_request_headers off;",
    "proxy_method POST;",
    "proxy_set_body x;",
    "proxy_set_header X_Role guest;",
];

const RESPONSE_FIELDS: &[&str] = &[
    "add_header X-Frame-Options DENY;",
    "add_header X-Frame-Options DENY always;",
    "add_header Content-Security-Policy \"default-src 'self'\";",
    "add_header X-Content-Type-Options nosniff always;",
    "add_header Content-Disposition attachment;",
    "add_header X-Where $uri;",
    "add_header X-Other y;",
    "proxy_hide_header X-Frame-Options;",
    "expires 1h;",
    "sub_filter FILE file;",
];

const PAGES: &[&str] = &[
    "error_page 404 /err.html;",
    "error_page 403 404 /err.html;",
    "error_page 404 = @one;",
    "error_page 403 = @two;",
    "error_page 404 =200 /index.html;",
    "error_page 403 =200 /err.html;",
    "error_page 401 403 =404 /err.html;",
    "error_page 403 https://a.org/login;",
    "error_page 404 =403 /err.html;",
    "error_page 405 =200 $uri;",
    "proxy_intercept_errors on;",
    "recursive_error_pages on;",
];

const SETTINGS: &[&str] = &[
    "set_real_ip_from 127.0.0.1; | real_ip_header X-Forwarded-For;",
    "set_real_ip_from 127.0.0.0/8; | real_ip_header X-Real-IP;",
    "set_real_ip_from 127.0.0.1; | set_real_ip_from 127.0.0.2; | real_ip_header X-Forwarded-For; | real_ip_recursive on;",
    "server_tokens off;",
    "client_max_body_size 1k;",
    "client_max_body_size 100;",
    "client_max_body_size 0;",
    "index a.html;",
    "index index.html index.php;",
    "autoindex on;",
    "proxy_read_timeout 30s;",
    "limit_rate 0;",
    "valid_referers a.org;",
    "charset utf-8;",
    "absolute_redirect off;",
    "etag off;",
    "if_modified_since off;",
    "ssi on;",
    "gzip on;",
    "proxy_cookie_path / /app;",
    "proxy_redirect off;",
    "port_in_redirect off;",
    "server_name_in_redirect on;",
];

const SETTINGS_OF_SERVERS: &[&str] = &[
    "merge_slashes off;",
    "underscores_in_headers on;",
    "ignore_invalid_headers off;",
    "large_client_header_buffers 4 16k;",
    "keepalive_timeout 30s;",
    "if ($http_x_forwarded_proto = '') { set $http_x_forwarded_proto $scheme; }",
    "client_header_timeout 30s;",
];

const TYPES: &[&str] = &[
    "types { } | default_type text/plain;",
    "default_type application/octet-stream;",
    "default_type text/html;",
    "types { application/octet-stream html txt; }",
    "types { text/html txt; }",
];
