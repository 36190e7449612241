//! Random configurations of httpd: virtual hosts with sections of paths, directories and files, access rules of
//! versions 2.2 and 2.4, rewrites, conditions on modules, `.htaccess`.

use fastrand::Rng;

use super::{filled, lines, one, one_of_sizes, section};
use crate::tree::Node;

/// The kind of section that a directive is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The server or a virtual host.
    Host,
    /// A section of paths.
    Location,
    /// A section of folders or files.
    Folder,
    /// `.htaccess`.
    Htaccess,
}

/// A random configuration: rules for all directories, directives outside of hosts, up to four hosts, sometimes a
/// `.htaccess`.
pub(super) fn tree(random: &mut Rng) -> Vec<Node> {
    let mut nodes = Vec::new();
    let size = one_of_sizes(random);
    let hosts = random.usize(..=size + 1);
    let has_second = hosts > 0 && random.usize(..3) == 0;
    nodes.push(Node::Line("Listen {a}".to_owned()));
    if has_second {
        nodes.push(Node::Line("Listen {b}".to_owned()));
    }
    nodes.extend(match random.usize(..5) {
        0 => lines(random, &["<Directory /> | Require all denied | </Directory>"]),
        1 => lines(random, &["<Directory /> | AllowOverride All | </Directory>"]),
        2 => lines(random, &["<Directory /> | AllowOverride None | Require all denied | </Directory> | <Directory {place}/site> | AllowOverride All | Require all granted | </Directory>"]),
        _ => Vec::new(),
    });
    // Directives outside of hosts. Without hosts they are all that there is, so they are more.
    let overall = if hosts == 0 {
        2 + random.usize(..2 + 2 * size)
    } else {
        random.usize(..=size)
    };
    if hosts == 0 || random.bool() {
        nodes.push(Node::Line("DocumentRoot {place}/site".to_owned()));
    }
    for _ in 0..overall {
        nodes.extend(directive(random, Level::Host, 0));
    }
    for index in 0..hosts {
        nodes.push(host(random, index, has_second, size));
    }
    if random.usize(..4) == 0 {
        let folder = one(
            random,
            &["site", "site/admin", "site/app", "site/up", "other"],
        );
        let count = 1 + random.usize(..3);
        let inner = (0..count).flat_map(|_| directive(random, Level::Htaccess, 1));
        nodes.push(Node::File {
            name: format!("{folder}/.htaccess"),
            included_by: String::new(),
            inner: inner.collect(),
        });
    }
    nodes
}

/// A virtual host. `has_second`: the server listens at a second address, too. Sometimes a part of it is in a file
/// of its own.
fn host(random: &mut Rng, index: usize, has_second: bool, size: usize) -> Node {
    let address = match random.usize(..6) {
        0 => "*:{port_a}",
        1 if has_second => "{b}",
        2 if has_second => "*:{port_b}",
        3 if has_second => "{a} {b}",
        4 => "_default_:{port_a}",
        _ => "{a}",
    };
    let mut inner = Vec::new();
    if random.usize(..6) > 0 {
        inner.push(Node::Line(filled(random, "ServerName <host>")));
    }
    if random.usize(..3) == 0 {
        inner.push(Node::Line(filled(random, "ServerAlias <hosts>")));
    }
    if random.usize(..3) > 0 {
        inner.push(Node::Line("DocumentRoot {place}/site".to_owned()));
    }
    for _ in 0..1 + random.usize(..2 + 2 * size) {
        inner.extend(directive(random, Level::Host, 0));
    }
    if random.usize(..8) == 0 {
        let at = random.usize(..inner.len());
        let moved = inner.split_off(at);
        inner.push(Node::File {
            name: format!("inc{index}.conf"),
            included_by: format!("Include {{place}}/inc{index}.conf"),
            inner: moved,
        });
    }
    section(format!("<VirtualHost {address}>"), inner, "</VirtualHost>")
}

/// A random directive that is allowed at `level`, or a section with more of them, at most three deep.
fn directive(random: &mut Rng, level: Level, depth: usize) -> Vec<Node> {
    if depth < 3 && random.usize(..4) == 0 {
        return vec![inner_section(random, level, depth)];
    }
    match (level, random.usize(..20)) {
        (Level::Host, 0..=3) => vec![place(random, depth)],
        (Level::Host, 4..=7) => lines(random, PASSES),
        (Level::Host, 8 | 9) => lines(random, ALIASES),
        (_, 10) => lines(random, REDIRECTS),
        (Level::Host, 11 | 12) => rewrites(random, REWRITES),
        (Level::Htaccess, 0..=3) => rewrites(random, REWRITES_OF_FOLDERS),
        (Level::Folder, 0) => rewrites(random, REWRITES_OF_FOLDERS),
        (Level::Location, 0..=3) => lines(random, PASSES_OF_LOCATIONS),
        (Level::Host, 19) => lines(random, SETTINGS_OF_HOSTS),
        (_, 13 | 14) => lines(random, REQUEST_FIELDS),
        (_, 15) => lines(random, RESPONSE_FIELDS),
        (_, 16) => lines(random, TYPES),
        (_, 17) => lines(random, SETTINGS),
        (Level::Host, _) => vec![place(random, depth)],
        (_, 18) => lines(random, SETTINGS),
        _ => lines(random, GUARDS),
    }
}

/// A section of paths, folders or files.
fn place(random: &mut Rng, depth: usize) -> Node {
    let (open, close, level) = match random.usize(..16) {
        0..=3 => ("<Location <path>>", "</Location>", Level::Location),
        4 => ("<Location \"<path>*\">", "</Location>", Level::Location),
        5 => ("<Location ~ \"<regex>\">", "</Location>", Level::Location),
        6 | 7 => (
            "<LocationMatch \"<regex>\">",
            "</LocationMatch>",
            Level::Location,
        ),
        8 | 9 => (
            "<Directory {place}/site<below>>",
            "</Directory>",
            Level::Folder,
        ),
        10 => ("<Directory {place}/other>", "</Directory>", Level::Folder),
        11 => (
            "<DirectoryMatch \"<regex>\">",
            "</DirectoryMatch>",
            Level::Folder,
        ),
        12 => ("<Files \"<file>\">", "</Files>", Level::Folder),
        13 => (
            "<LocationMatch \"<odd>\">",
            "</LocationMatch>",
            Level::Location,
        ),
        14 => ("<Location \"<odd path>\">", "</Location>", Level::Location),
        _ => ("<FilesMatch \"<regex>\">", "</FilesMatch>", Level::Folder),
    };
    let count = 1 + random.usize(..3);
    let mut inner = Vec::new();
    if random.bool() {
        inner.extend(lines(random, GUARDS));
    }
    for _ in 0..count {
        inner.extend(directive(random, level, depth + 1));
    }
    section(filled(random, open), inner, close)
}

/// A section that may be inside of others.
fn inner_section(random: &mut Rng, level: Level, depth: usize) -> Node {
    let choice = random.usize(..10);
    let (open, close) = match (level, choice) {
        (Level::Folder | Level::Htaccess, 0 | 1) => ("<Files \"<file>\">", "</Files>"),
        (Level::Folder | Level::Htaccess, 2) => ("<FilesMatch \"<regex>\">", "</FilesMatch>"),
        (_, 3) => ("<IfModule mod_rewrite.c>", "</IfModule>"),
        (_, 4) => ("<IfModule !mod_rewrite.c>", "</IfModule>"),
        (_, 5) => {
            let modules = ["<IfModule mod_php.c>", "<IfModule !mod_php.c>"];
            (one(random, &modules), "</IfModule>")
        }
        (_, 6) => {
            let defines = [
                "<IfDefine ONE>",
                "<IfDefine !ONE>",
                "<IfDefine TWO>",
                "<IfDefine !TWO>",
            ];
            (one(random, &defines), "</IfDefine>")
        }
        (_, 7) => {
            let versions = ["<IfVersion >= 2.4>", "<IfVersion < 2.4>"];
            (one(random, &versions), "</IfVersion>")
        }
        (_, 8) => ("<If \"<condition>\">", "</If>"),
        (Level::Host, _) => return place(random, depth),
        (_, 9) => ("<Limit <method>>", "</Limit>"),
        (_, 0) => ("<LimitExcept <method>>", "</LimitExcept>"),
        (_, 1) => ("<RequireAny>", "</RequireAny>"),
        (_, 2) => ("<RequireAll>", "</RequireAll>"),
        _ => ("<RequireNone>", "</RequireNone>"),
    };
    let template = open.replace("<condition>", one(random, EXPRESSIONS));
    let first_line = filled(random, &template);
    let inner = if first_line.starts_with("<Require") {
        // A negated condition is allowed only together with others.
        let requirements = if first_line.contains("All") {
            REQUIREMENTS
        } else {
            &REQUIREMENTS[..POSITIVE]
        };
        let count = 1 + random.usize(..3);
        let inner = (0..count).flat_map(|_| lines(random, requirements));
        inner.collect()
    } else if first_line.starts_with("<Limit") || first_line.starts_with("<If ") {
        lines(random, GUARDS)
    } else {
        let inner_level = if first_line.starts_with("<Files") {
            Level::Folder
        } else {
            level
        };
        let count = 1 + random.usize(..2);
        let inner = (0..count).flat_map(|_| directive(random, inner_level, depth + 1));
        inner.collect()
    };
    section(first_line, inner, close)
}

/// A random rule of `rules`, with up to two conditions before it.
fn rewrites(random: &mut Rng, rules: &[&str]) -> Vec<Node> {
    let mut nodes = vec![Node::Line("RewriteEngine on".to_owned())];
    for _ in 0..random.usize(..3) {
        let flag = one(random, &["", "", " [NC]", " [OR]"]);
        let test = one(random, CONDITIONS);
        let condition = filled(random, test);
        nodes.push(Node::Line(format!("RewriteCond {condition}{flag}")));
    }
    nodes.extend(lines(random, rules));
    nodes
}

const REQUIREMENTS: &[&str] = &[
    "Require all granted",
    "Require all denied",
    "Require ip <client>",
    "Require local",
    "Require method <method>",
    "Require valid-user",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | Order deny,allow | Deny from all | Allow from <client> | Require valid-user",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | AuthGroupFile {place}/groups | Require group staff",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | <RequireAny> | Require user user | Require ip <client> | </RequireAny>",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | <RequireAll> | Require valid-user | Require not ip <client> | </RequireAll>",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd",
    "Require valid-user",
    "AuthName y | AuthUserFile {place}/fast.htpasswd",
    "AuthType None",
    "Satisfy all",
    "Require env admin",
    "Require expr \"%{REQUEST_URI} =~ m#^/app#\"",
    "Require host localhost",
    "Require not ip <client>",
    "Require not method <method>",
];

/// The first rules of the list, as many as are not negated.
const POSITIVE: usize = 9;

const GUARDS: &[&str] = &[
    "Require all denied",
    "Require all denied",
    "Require all granted",
    "Require ip <client>",
    "Require local",
    "Require method <method>",
    "Require ip <client> | Require ip <client>",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | Require valid-user",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | Require user user",
    "AuthType Basic | AuthName x | AuthUserFile {place}/htpasswd | Require valid-user | Order deny,allow | Deny from all | Satisfy any",
    "Require env admin",
    "Require expr \"%{REQUEST_URI} =~ m#^/app#\"",
    "Order deny,allow | Deny from all",
    "Order allow,deny | Allow from all | Deny from <client>",
    "Order allow,deny | Allow from <client>",
    "Order deny,allow | Deny from all | Allow from <client>",
    "Order allow,deny",
    "Deny from all",
    "Deny from env=admin",
    "Allow from env=admin | Order deny,allow | Deny from all",
    "Satisfy any",
    "AuthMerging And",
    "AuthMerging Or | Require ip <client>",
    "AllowMethods GET",
    "AllowMethods GET HEAD POST",
    "<RequireAll> | Require all granted | Require not ip <client> | </RequireAll>",
    "<RequireAny> | Require ip <client> | Require method <method> | </RequireAny>",
    "<Limit <method>> | Require all denied | </Limit>",
    "<LimitExcept <method>> | Require all denied | </LimitExcept>",
    "Redirect 403",
    "Redirect 404",
];

const PASSES: &[&str] = &[
    "ProxyPass <path> http://<backend><path>",
    "ProxyPass / http://<backend>/",
    "ProxyPass /app http://<backend>/app",
    "ProxyPass /app/ http://<backend>/",
    "ProxyPass <path> !",
    "ProxyPassMatch <regex> http://<backend>",
    "ProxyPassMatch ^/app/(.*)$ http://<backend>/$1",
    "ProxyPassMatch <regex> !",
    "ProxyPass /shop/ http://<backend>/shop/ | ProxyPassReverse /shop/ http://<backend>/shop/",
];

const PASSES_OF_LOCATIONS: &[&str] = &[
    "ProxyPass http://<backend>/",
    "ProxyPass http://<backend>/app/",
    "ProxyPass !",
    "ProxyPassMatch http://<backend>/$1",
];

const ALIASES: &[&str] = &[
    "Alias <path> {place}/other",
    "Alias <path> {place}/other/",
    "Alias /other {place}/other",
    "Alias <path> {place}/site/admin/",
    "AliasMatch <regex> {place}/other/secret.txt",
    "AliasMatch ^/app/(.*)$ {place}/site/$1",
    "ScriptAlias /cgi {place}/other",
    "ScriptAlias /other/ {place}/other/",
    "ScriptAlias /cgi/ {place}/empty/",
    "DocumentRoot {place}/other",
];

const REDIRECTS: &[&str] = &[
    "Redirect 403 <path>",
    "Redirect gone <path>",
    "Redirect 404 <path>",
    "Redirect <path> https://a.org<path>",
    "Redirect permanent <path> http://<host>/",
    "RedirectMatch 403 <regex>",
    "RedirectMatch 404 <regex>",
    "RedirectMatch <regex> https://a.org/",
    "RedirectMatch 404 \"<odd>\"",
];

const CONDITIONS: &[&str] = &[
    "%{HTTP_HOST} ^www\\.",
    "%{HTTP_HOST} !^www\\.",
    "%{HTTP_HOST} =b.org",
    "%{SERVER_NAME} !=a.org",
    "%{REQUEST_URI} <regex>",
    "%{REQUEST_URI} !<regex>",
    "%{THE_REQUEST} admin",
    "%{REQUEST_METHOD} ^(TRACE|<method>)",
    "%{REQUEST_METHOD} !^(GET|HEAD)$",
    "%{REQUEST_METHOD} =POST",
    "%{REMOTE_ADDR} !^127\\.0\\.0\\.1$",
    "%{REMOTE_ADDR} ^127\\.0\\.0\\.2",
    "%{REMOTE_ADDR} =127.0.0.1",
    "%{HTTP:X-Role} !=admin",
    "%{HTTP:X-Role} admin",
    "%{HTTP_USER_AGENT} forged",
    "%{HTTP_USER_AGENT} ^$",
    "%{QUERY_STRING} admin",
    "%{QUERY_STRING} !admin",
    "%{HTTP_COOKIE} !role",
    "%{HTTPS} !=on",
    "%{HTTPS} off",
    "%{SERVER_PORT} !443",
    "%{HTTP:X-Forwarded-Proto} !https",
    "%{HTTP:X-Forwarded-For} 192\\.0\\.2\\.66",
    "%{HTTP_REFERER} !a\\.org",
    "%{REQUEST_FILENAME} -f",
    "%{REQUEST_FILENAME} !-f",
    "%{REQUEST_FILENAME} !-d",
    "%{DOCUMENT_ROOT}%{REQUEST_URI} -f",
    "%{REQUEST_FILENAME} secret",
    "%{ENV:admin} !1",
    "%{IS_SUBREQ} false",
    "%{HTTP:Range} bytes",
    "%{HTTP:Upgrade} websocket",
    "%{HTTP:Connection} !upgrade",
    "%{HTTP:If-None-Match} .",
    "%{HTTP:X-Forwarded-Port} !=443",
    "%{HTTP:X-Role} ^guest",
    "%{SERVER_PROTOCOL} HTTP/1\\.0",
];

const REWRITES: &[&str] = &[
    "RewriteRule <regex> - [F]",
    "RewriteRule <regex> - [F,NC]",
    "RewriteRule <regex> - [G]",
    "RewriteRule <regex> - [R=404]",
    "RewriteRule <regex> - [L]",
    "RewriteRule <regex> <path> [L]",
    "RewriteRule <regex> <path> [PT]",
    "RewriteRule <regex> <path>",
    "RewriteRule !<regex> - [F]",
    "RewriteRule <regex> http://<backend>%{REQUEST_URI} [P]",
    "RewriteRule ^/app/(.*)$ http://<backend>/$1 [P,L]",
    "RewriteRule ^/app/(.*)$ /$1 [PT]",
    "RewriteRule ^/shop/(.*)$ /admin/$1 [L]",
    "RewriteRule ^ https://%{HTTP_HOST}%{REQUEST_URI} [R=301,L]",
    "RewriteRule <regex> https://a.org/ [R]",
    "RewriteRule <regex> - [E=admin:1]",
    "RewriteRule <regex> - [S=1] | RewriteRule <regex> - [F]",
    "RewriteRule <regex> - [END] | RewriteRule ^ - [F]",
    "RewriteRule <regex> - [C] | RewriteRule <regex> - [F]",
    "RewriteRule ^ - [F]",
    "RewriteRule \"<odd>\" - [F]",
    "RewriteRule ^/Shop/(.*)$ /admin/$1 [NC,R]",
    "RewriteRule <regex> http://<backend>/x/$1 [P,NC]",
    "RewriteRule ^/shop/([0-9]+)$ http://<backend>/app/$1?id=$1 [P]",
    "RewriteOptions Inherit",
];

const REWRITES_OF_FOLDERS: &[&str] = &[
    "RewriteRule ^admin - [F]",
    "RewriteRule ^secret - [F]",
    "RewriteRule \\.txt$ - [F]",
    "RewriteRule ^ - [F]",
    "RewriteRule ^(.*)$ /index.html [L]",
    "RewriteRule ^shop/(.*)$ /admin/secret.txt [L]",
    "RewriteRule ^ https://a.org/ [R]",
    "RewriteRule ^(.*)$ http://<backend>/$1 [P]",
    "RewriteRule .* - [L]",
];

const EXPRESSIONS: &[&str] = &[
    "%{REMOTE_ADDR} == '127.0.0.2'",
    "-R '127.0.0.2'",
    "%{REQUEST_METHOD} == 'POST'",
    "%{HTTP_HOST} != 'a.org'",
    "%{REQUEST_URI} =~ m#^/admin#",
    "%{HTTP:X-Role} != 'admin'",
    "req('X-Role') == 'admin'",
    "true",
    "%{QUERY_STRING} =~ /admin/",
];

const REQUEST_FIELDS: &[&str] = &[
    "RequestHeader set X-Role guest",
    "RequestHeader unset X-Role",
    "RequestHeader unset X-Role early",
    "RequestHeader add X-Role guest",
    "RequestHeader append X-Role guest",
    "RequestHeader merge X-Role guest",
    "RequestHeader setifempty X-Role guest",
    "RequestHeader edit X-Role admin guest",
    "RequestHeader set X-Role guest env=admin",
    "RequestHeader set X-Role guest \"expr=%{REQUEST_URI} =~ m#^/app#\"",
    "RequestHeader set X-User %{REMOTE_USER}s",
    "RequestHeader set X-User \"expr=%{REMOTE_USER}\"",
    "RequestHeader set Remote-User %{REMOTE_USER}e",
    "RequestHeader unset Remote-User",
    "RequestHeader unset Authorization",
    "RequestHeader set Authorization \"Basic dXNlcjpwYXNzd29yZA==\"",
    "RequestHeader set X-Forwarded-Proto https",
    "RequestHeader set X-Forwarded-Proto http",
    "RequestHeader unset X-Forwarded-For",
    "RequestHeader set X-Real-IP %{REMOTE_ADDR}s",
    "RequestHeader set Host b.org",
    "RequestHeader unset Cookie",
    "SetEnvIf X-Role admin admin",
    "SetEnvIf Request_URI ^/app admin",
    "SetEnvIfNoCase User-Agent FORGED admin",
    "SetEnv admin 1",
    "SetEnv proxy-nokeepalive 1",
    "ProxyPreserveHost On",
    "ProxyAddHeaders Off",
];

const RESPONSE_FIELDS: &[&str] = &[
    "Header set X-Frame-Options DENY",
    "Header always set X-Frame-Options DENY",
    "Header set Content-Security-Policy \"default-src 'self'\"",
    "Header setifempty X-Content-Type-Options nosniff",
    "Header set Content-Disposition attachment",
    "Header append X-Frame-Options DENY",
    "Header set Content-Disposition attachment env=admin",
    "Header unset X-Frame-Options",
    "Header set X-Other y",
    "Header onsuccess set X-Frame-Options SAMEORIGIN",
];

const TYPES: &[&str] = &[
    "ForceType application/octet-stream",
    "ForceType text/plain",
    "ForceType None",
    "AddType text/html .txt",
    "AddType text/plain .html",
    "AddType application/x-httpd-php .html .php",
    "AddHandler cgi-script .cgi .php",
    "AddHandler send-as-is .txt",
    "SetHandler none",
    "SetHandler default-handler",
    "SetHandler \"proxy:http://{one}\"",
    "SetHandler forbidden-handler",
    "RemoveType .html",
    "RemoveHandler .php",
    "AddDefaultCharset utf-8",
    "AddCharset utf-8 .html",
    "AddEncoding x-gzip .txt",
    "Action app /app/",
];

const SETTINGS: &[&str] = &[
    "Options -Indexes",
    "Options +Indexes",
    "Options None",
    "Options FollowSymLinks MultiViews",
    "Options +ExecCGI",
    "DirectoryIndex a.html",
    "DirectoryIndex index.html secret.txt",
    "DirectoryIndex secret.txt",
    "DirectoryIndex /admin/secret.txt",
    "DirectoryIndex disabled",
    "DirectorySlash Off",
    "FallbackResource /index.html",
    "FallbackResource /admin/secret.txt",
    "FallbackResource disabled",
    "ErrorDocument 403 /err.html",
    "ErrorDocument 404 /err.html",
    "ErrorDocument 404 /admin/secret.txt",
    "ErrorDocument 403 https://a.org/login",
    "ErrorDocument 403 text",
    "AcceptPathInfo On",
    "AcceptPathInfo Off",
    "ServerSignature Off",
    "FileETag None",
    "EnableSendfile Off",
    "LimitRequestBody 1000",
    "LimitRequestBody 100",
    "LimitRequestBody 0",
];

const SETTINGS_OF_HOSTS: &[&str] = &[
    "AllowEncodedSlashes On",
    "AllowEncodedSlashes NoDecode",
    "MergeSlashes Off",
    "UseCanonicalName On",
    "TraceEnable On",
    "RemoteIPHeader X-Forwarded-For",
    "RemoteIPHeader X-Forwarded-For | RemoteIPInternalProxy 127.0.0.1",
    "RemoteIPHeader X-Real-IP | RemoteIPTrustedProxy 127.0.0.0/8",
    "ProxyRequests Off",
    "ProxyErrorOverride On",
    "ProxyVia On",
    "ServerTokens Prod",
    "KeepAlive Off",
    "AccessFileName .access",
    "<Proxy *> | Require ip <client> | </Proxy>",
    "<Proxy \"*\"> | Order deny,allow | Deny from all | </Proxy>",
    "<Proxy http://{one}/> | ProxySet timeout=30 | </Proxy>",
    "RewriteEngine off",
    "LimitRequestLine 4000",
];
