//! Configurations that use every key of listener and route, made from a number.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::path::Path;

use fastrand::Rng;

use super::file;
use super::recorder::Recorder;

/// A configuration file, and the keys in it.
#[derive(Default)]
pub(super) struct Configuration {
    /// `{directory}` in it stands for the directory of the file.
    pub(super) text: String,
    /// Tables with their keys, as the reference calls them.
    pub(super) keys: BTreeSet<(String, String)>,
    header: String,
}

/// What is the same for all configurations.
pub(super) struct Surroundings<'s> {
    pub(super) recorder: &'s Recorder,
    /// Has `chain.pem`, `key.pem`, `clients.pem`, `page.html` and the folders `acme` and [`file::ROOT`].
    pub(super) files: &'s Path,
}

/// A listener, as its clients have to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) name: &'static str,
    pub(super) tls: bool,
    /// Whether it asks for certificates of clients.
    pub(super) verifies: bool,
    pub(super) http1: bool,
    pub(super) http2: bool,
    pub(super) proxied: bool,
    pub(super) unix: bool,
}

/// Every configuration has these, in this order.
pub(super) const LISTENERS: [Listener; 8] = [
    CLEAR,
    Listener {
        name: "both",
        http2: true,
        ..CLEAR
    },
    Listener {
        name: "h2",
        http1: false,
        http2: true,
        ..CLEAR
    },
    Listener {
        name: "tls",
        tls: true,
        http2: true,
        ..CLEAR
    },
    Listener {
        name: "partners",
        tls: true,
        verifies: true,
        http2: true,
        ..CLEAR
    },
    Listener {
        name: "proxied",
        proxied: true,
        ..CLEAR
    },
    Listener {
        name: "redirecting",
        ..CLEAR
    },
    Listener {
        name: "unix",
        unix: true,
        ..CLEAR
    },
];

/// The first segments of routes, each of one route.
pub(super) const PATHS: [&str; 10] = [
    "/app",
    "/app/deep",
    "/shop",
    "/old",
    "/api/v1",
    "/chat",
    "/x%20y",
    "/adm@in",
    "/static",
    "/",
];

impl Configuration {
    /// The configuration of that number.
    pub(super) fn new(number: u64, surroundings: &Surroundings<'_>) -> Self {
        let mut rng = Rng::with_seed(number);
        let mut it = Self::default();
        it.server(&mut rng);
        it.of_all_routes(&mut rng, surroundings);
        it.upstreams(&mut rng, surroundings);
        for listener in LISTENERS {
            it.listener(&mut rng, listener, surroundings);
        }
        it.profiles(surroundings);
        let mut paths = PATHS;
        rng.shuffle(&mut paths);
        for (index, path) in paths.into_iter().enumerate() {
            it.route(&mut rng, index, path, surroundings);
        }
        it
    }

    fn table(&mut self, header: &str) {
        header.clone_into(&mut self.header);
        writeln!(self.text, "{header}").expect("a string takes all");
    }

    fn key(&mut self, name: &str, value: impl Display) {
        self.keys.insert((self.header.clone(), name.to_owned()));
        writeln!(self.text, "{name} = {value}").expect("a string takes all");
    }

    /// Now and then.
    fn maybe(&mut self, rng: &mut Rng, name: &str, values: &[&str]) {
        if rng.u8(..5) < 2 {
            self.key(name, rng.choice(values).expect("a value"));
        }
    }

    fn server(&mut self, rng: &mut Rng) {
        self.table("[server]");
        self.key("workers", 1);
        self.key("trusted_proxies", r#"["127.0.0.2", "127.0.0.3"]"#);
        self.maybe(rng, "underscore_fields", &[r#""x_known""#]);
        self.maybe(rng, "via", &[r#""off""#, r#""front-1""#]);
        self.maybe(rng, "request_id", &[r#""off""#, r#""X-Correlation-Id""#]);
        self.table("[log]");
        self.key("access", r#""off""#);
        self.table("[admin]");
        self.key("address", r#""unix:{directory}/admin.sock""#);
    }

    /// What holds for all routes.
    fn of_all_routes(&mut self, rng: &mut Rng, surroundings: &Surroundings<'_>) {
        self.table("[cache.pages]");
        self.maybe(rng, "encodings", &[r#"["gzip"]"#]);
        // What it refuses depends on time, so it has room for all.
        self.table("[limit.wide]");
        self.key("rate", r#""1000000/s""#);
        self.key("burst", 1_000_000);
        if rng.bool() {
            self.changes("[server.response_headers]", rng);
        }
        if rng.bool() {
            self.pages("[error_pages]", rng, surroundings);
        }
    }

    fn upstreams(&mut self, rng: &mut Rng, surroundings: &Surroundings<'_>) {
        let Recorder { ajp, http, .. } = surroundings.recorder;
        let (ajp, http) = (format!("\"ajp://{ajp}\""), format!("\"http://{http}\""));
        let upgrade = http.clone();
        for (name, backends) in [
            ("ajp", &[("a", &ajp)][..]),
            ("http", &[("h", &http)]),
            ("mixed", &[("a", &ajp), ("h", &http)]),
            ("placed", &[("a", &ajp), ("h", &http)]),
        ] {
            self.table(&format!("[upstream.{name}]"));
            self.maybe(rng, "retries", &["0", "1"]);
            self.maybe(rng, "retry_sent", &[r#""safe""#, r#""none""#]);
            self.maybe(rng, "remote_user", &[r#""header:X-Remote-User""#]);
            if name == "placed" {
                self.key("policy", r#""hash""#);
                let by = ["address", "path", "cookie:U", "header:X-User", "query:user"];
                self.key("hash_by", format!("\"{}\"", rng.choice(by).expect("one")));
            }
            if name == "mixed" || rng.bool() {
                self.table(&format!("[upstream.{name}.sticky]"));
                self.maybe(rng, "set_cookie", &[r#""OWN""#]);
                self.maybe(rng, "first", &[r#""path""#]);
            }
            if rng.bool() {
                self.table(&format!("[upstream.{name}.attributes]"));
                self.key("TENANT", r#""header:X-Tenant""#);
                self.key("CLIENT", r#""client:address""#);
                self.key("ASKED", r#""client:host""#);
                self.key("CIPHER", r#""tls:cipher""#);
                self.key("SNI", r#""tls:sni""#);
            }
            for (backend, url) in backends {
                self.table(&format!("[[upstream.{name}.backend]]"));
                self.key("name", format!("\"{backend}\""));
                self.key("url", url);
                // A busy machine must not make a backend suspect between a question and its request.
                self.key("suspect_after", r#""off""#);
                self.maybe(rng, "host", &[r#""app.internal""#, r#""backend""#]);
                let forms = [r#""tomcat""#, r#""rfc9440""#];
                if *backend == "h" {
                    self.maybe(rng, "client_cert_fields", &forms);
                } else {
                    self.maybe(rng, "secret", &[r#""hush""#]);
                    self.maybe(rng, "announce_chunked", &["true"]);
                    self.maybe(rng, "upgrade_url", &[&upgrade[..]]);
                }
            }
        }
    }

    fn profiles(&mut self, surroundings: &Surroundings<'_>) {
        let files = surroundings.files.display();
        for name in ["main", "partners"] {
            self.table(&format!("[tls.{name}]"));
            if name == "partners" {
                self.key("client_certificate", r#""optional""#);
                self.key("client_ca", format!("\"{files}/clients.pem\""));
            }
            self.table(&format!("[[tls.{name}.certificate]]"));
            self.key("chain", format!("\"{files}/chain.pem\""));
            self.key("key", format!("\"{files}/key.pem\""));
        }
    }

    fn listener(&mut self, rng: &mut Rng, it: Listener, surroundings: &Surroundings<'_>) {
        self.table("[[listen]]");
        if it.unix {
            self.key("address", r#""unix:{directory}/front.sock""#);
        } else {
            self.key("address", r#""127.0.0.1:0""#);
        }
        self.key("name", format!("\"{}\"", it.name));
        for (name, values) in SETTINGS {
            self.maybe(rng, name, values);
        }
        if it.proxied {
            self.key("proxy_protocol", true);
            self.key("proxy_protocol_from", r#""127.0.0.0/8""#);
            self.maybe(rng, "proxy_protocol_tls", &["true", "false"]);
        }
        match (it.http1, it.http2) {
            (true, true) => self.key("protocols", r#"["h2", "http/1.1"]"#),
            (false, _) => self.key("protocols", r#""h2""#),
            (true, false) => {}
        }
        if it.http2 {
            for (name, values) in HTTP2_SETTINGS {
                self.maybe(rng, name, values);
            }
        }
        if it.tls {
            let profile = if it.verifies { "partners" } else { "main" };
            self.key("tls", format!("\"{profile}\""));
            self.maybe(rng, "hsts", &[r#""max-age=60""#]);
        }
        if it.name == "redirecting" {
            self.key("redirect_https", rng.choice(["true", "8443"]).expect("one"));
            let files = surroundings.files.display();
            self.maybe(rng, "acme_webroot", &[&format!("\"{files}/acme\"")]);
        }
    }

    /// Whom a route is for, besides its path.
    fn conditions(&mut self, rng: &mut Rng) {
        let hosts = [
            r#""www.example.org""#,
            r#"["example.org", "*.example.org"]"#,
            r#""other.test""#,
        ];
        if rng.u8(..4) == 0 {
            self.key("host", rng.choice(hosts).expect("one"));
        }
        if rng.u8(..6) == 0 {
            let listen = [r#""tls""#, r#"["clear", "both", "partners"]"#];
            self.key("listen", rng.choice(listen).expect("one"));
        }
        if rng.u8(..6) == 0 {
            let scheme = [r#""http""#, r#""https""#];
            self.key("scheme", rng.choice(scheme).expect("one"));
        }
    }

    fn route(&mut self, rng: &mut Rng, index: usize, path: &str, surroundings: &Surroundings<'_>) {
        self.table("[[route]]");
        self.maybe(rng, "exclude", &[r#"["/app/static", "*.gif"]"#]);
        let has_prefix = self.place(rng, index, path);
        let forwards = self.target(rng, path, has_prefix, surroundings);
        let networks = [r#"["127.0.0.1", "192.0.2.0/24"]"#, r#""127.0.0.0/8""#];
        if forwards && rng.u8(..6) == 0 {
            self.key("allow", rng.choice(networks).expect("one"));
        }
        if forwards && index % 5 == 3 {
            self.key("deny", r#"["192.0.2.0/24", "127.0.0.2"]"#);
        }
        if rng.u8(..8) == 0 && !self.last_has("listen") && !self.last_has("scheme") {
            self.key("client_certificate", r#""required""#);
        }
        if rng.u8(..5) == 0 {
            self.key(
                "body_max",
                rng.choice([r#""15B""#, r#""off""#]).expect("one"),
            );
        }
        self.maybe(rng, "log", &["false"]);
        self.maybe(rng, "limits", &[r#"["wide"]"#, r#""wide""#]);
        self.maybe(rng, "auth", &[r#""off""#]);
        self.fields(rng, forwards);
        if forwards {
            self.urls(rng);
        }
        if rng.u8(..5) == 0 {
            self.pages("[route.error_pages]", rng, surroundings);
        }
        if rng.u8(..3) == 0 {
            self.table("[route.cors]");
            let origins = [r#"["https://a.test", "https://*.example.org"]"#, r#""*""#];
            let origins = rng.choice(origins).expect("one");
            self.key("origins", origins);
            if !origins.contains("\"*\"") {
                self.maybe(rng, "credentials", &["true"]);
            }
            self.maybe(rng, "methods", &[r#"["GET", "PUT"]"#]);
            self.maybe(rng, "headers", &[r#""X-User""#]);
            self.maybe(rng, "expose", &[r#""X-Total""#]);
            self.maybe(rng, "max_age", &[r#""0s""#]);
        }
        if path != "/" && rng.u8(..6) == 0 {
            self.table("[route.unless]");
            self.key("address", r#""127.0.0.2""#);
            self.maybe(rng, "cookie", &[r#""operator=1""#]);
        }
    }

    /// Which requests it is for. `false` if not for what is below a path.
    fn place(&mut self, rng: &mut Rng, index: usize, path: &str) -> bool {
        let mut has_prefix = true;
        // What is left goes to somebody: the root has no conditions.
        if path != "/" {
            self.conditions(rng);
        }
        match rng.u8(..10) {
            0 if path != "/" => {
                self.key("path", format!("\"{path}\""));
                self.key("exact", true);
                has_prefix = false;
            }
            1 if path != "/" => {
                self.key("path", format!("[\"{path}\", \"{path}2\"]"));
                self.key("suffix", r#"[".jsp", ".do"]"#);
                has_prefix = false;
            }
            2 if path != "/" => {
                self.key("pattern", format!("\"/p{index}*/x?.do\""));
                self.maybe(rng, "before_regex", &["true"]);
                has_prefix = false;
            }
            3 if path != "/" => {
                self.key("regex", format!("'^/r{index}/(?<id>[a-z]+)|{path}$'"));
                self.maybe(rng, "refuse_parameters", &["true"]);
                has_prefix = false;
            }
            _ => {
                self.key("path", format!("\"{path}\""));
                self.maybe(rng, "before_regex", &["true"]);
            }
        }
        if path != "/" && rng.u8(..6) == 0 {
            let methods = [r#""GET""#, r#"["POST", "PUT", "GET"]"#];
            self.key("methods", rng.choice(methods).expect("one"));
        }
        if path != "/" && rng.u8(..6) == 0 {
            self.key("match_headers", r#"{ X-Beta = "yes" }"#);
            self.maybe(rng, "match_query", &[r#"{ v = "2" }"#]);
            self.maybe(rng, "match_cookies", &[r#"{ beta = "1" }"#]);
            self.maybe(rng, "match_regex", &[r#""cookie:beta !~ ^1$""#]);
        }
        has_prefix
    }

    /// What becomes of its requests. `true` if backends get them.
    fn target(
        &mut self,
        rng: &mut Rng,
        path: &str,
        has_prefix: bool,
        surroundings: &Surroundings<'_>,
    ) -> bool {
        match rng.u8(..12) {
            0 if path != "/" => {
                let status = rng.choice([204, 403, 404, 503]).expect("one");
                self.key("status", status);
                if status != 204 && rng.bool() {
                    self.key("text", r#""asked {path_query} of {host}""#);
                    self.maybe(rng, "text_type", &[r#""application/json""#]);
                }
                false
            }
            1 if path != "/" => {
                let rest = if has_prefix { "{rest_query}" } else { "" };
                let to = [
                    "https://moved.test{path_query}".to_owned(),
                    "/{scheme}{path}".to_owned(),
                    format!("http://{{authority}}/new{rest}"),
                ];
                self.key("redirect", format!("\"{}\"", rng.choice(to).expect("one")));
                self.maybe(rng, "status", &["302", "307"]);
                false
            }
            2 if path != "/" => {
                self.compression(rng);
                self.files(rng, surroundings);
                self.maybe(rng, "fallback", &[r#""index.html""#]);
                if has_prefix {
                    self.maybe(rng, "rewrite", &[r#""/""#, r#""/inner""#]);
                }
                false
            }
            _ => {
                self.compression(rng);
                let upstreams = ["ajp", "ajp", "http", "http", "mixed", "placed"];
                let upstream = *rng.choice(&upstreams).expect("one");
                let other = if upstream == "http" { "ajp" } else { "http" };
                if upstream != "mixed" && rng.u8(..6) == 0 {
                    self.key("split", format!("{{ {upstream} = 3, {other} = 0 }}"));
                } else {
                    self.key("upstream", format!("\"{upstream}\""));
                }
                self.forwarding(rng, upstream, has_prefix);
                if rng.u8(..4) == 0 {
                    self.files(rng, surroundings);
                }
                true
            }
        }
    }

    fn compression(&mut self, rng: &mut Rng) {
        if rng.u8(..4) == 0 {
            self.key("compress", r#"["zstd", "gzip"]"#);
            self.maybe(rng, "compress_types", &[r#""text/html""#]);
            self.maybe(rng, "compress_min", &[r#""2KiB""#]);
        }
    }

    /// Files that the front serves itself.
    fn files(&mut self, rng: &mut Rng, surroundings: &Surroundings<'_>) {
        let files = surroundings.files.display();
        self.key("files", format!("\"{files}/{}\"", file::ROOT));
        let index = [r#"["index.html", "index.htm"]"#, r#""index.htm""#, "[]"];
        self.maybe(rng, "index", &index);
        let links = format!("[\"{files}/acme\"]");
        self.maybe(rng, "links", &[r#""off""#, r#""inside""#, &links]);
        self.maybe(rng, "hide", &[r#"["*.gif", "y"]"#, r#""x1.*""#]);
        self.maybe(rng, "etag", &[r#""time""#, r#""content""#]);
        self.maybe(rng, "cache_control", &[r#""max-age=60""#]);
        let by_type = [r#"{ "text/*" = "no-cache", "text/css" = "off" }"#];
        self.maybe(rng, "cache_control_types", &by_type);
        self.maybe(rng, "charset", &[r#""off""#, r#""iso-8859-1""#]);
        self.maybe(rng, "types", &[r#"{ do = "text/plain" }"#]);
        let codings = [r#"["zstd", "br", "gzip"]"#, r#""gzip""#, "[]"];
        self.maybe(rng, "precompressed", &codings);
    }

    /// Pages of the operator's own in place of errors.
    fn pages(&mut self, header: &str, rng: &mut Rng, surroundings: &Surroundings<'_>) {
        let page = format!("\"{}/page.html\"", surroundings.files.display());
        self.table(header);
        self.key("404", &page);
        self.maybe(rng, "maintenance_page", &[&page]);
        self.maybe(rng, "replace_errors", &[r#"["404"]"#]);
    }

    /// Whether the table that is being written has a key.
    fn last_has(&self, name: &str) -> bool {
        let table = self
            .text
            .rsplit(&self.header[..])
            .next()
            .unwrap_or_default();
        table.contains(&format!("\n{name} = "))
    }

    /// What only routes to an upstream have.
    fn forwarding(&mut self, rng: &mut Rng, upstream: &str, has_prefix: bool) {
        if has_prefix && rng.u8(..3) == 0 {
            let to = [r#""/""#, r#""/inner""#, r#""/in%20ner/x""#];
            self.key("rewrite", rng.choice(to).expect("one"));
            if rng.u8(..4) == 0 {
                self.key("rewrite_whole", true);
            } else {
                self.maybe(rng, "reverse", &["true"]);
                self.maybe(rng, "internal_hosts", &[r#""app.internal""#]);
            }
        }
        self.maybe(rng, "forward_host", &[r#""route.internal:81""#]);
        self.maybe(rng, "first_byte_timeout", &[r#""20s""#]);
        self.maybe(rng, "idle_body_timeout", &[r#""20s""#]);
        self.maybe(rng, "exchange_timeout", &[r#""30s""#, r#""off""#]);
        self.maybe(rng, "attempt_timeout", &[r#""25s""#]);
        self.maybe(rng, "retries", &["0", "3"]);
        if upstream == "mixed" {
            self.maybe(rng, "sticky", &["false"]);
            let controls = [r#"{ a = "stopped" }"#, r#"{ a = "drain" }"#];
            self.maybe(rng, "activation", &controls);
        }
        self.maybe(rng, "cookie_flags", &[r#"["Secure", "SameSite=Lax"]"#]);
        self.maybe(rng, "cache", &[r#""pages""#]);
        if rng.bool() {
            self.key("upgrade", r#"["websocket", "other"]"#);
            self.maybe(rng, "tunnel_idle_timeout", &[r#""1m""#]);
        }
    }

    /// Rules for URLs of backends.
    fn urls(&mut self, rng: &mut Rng) {
        for (name, value) in [
            ("prefix", r#""http://app.internal/""#),
            ("regex", r#""^/(x)""#),
        ] {
            if rng.u8(..5) == 0 {
                self.table("[[route.reverse_url]]");
                self.key(name, value);
                self.key("to", r#""/{{x}}""#);
            }
        }
    }

    fn fields(&mut self, rng: &mut Rng, forwards: bool) {
        let placeholders = r#"{ X-Set = "{client_ip} {request_id}", X-User = "{host}" }"#;
        if forwards && rng.u8(..3) == 0 {
            self.table("[route.request_headers]");
            self.maybe(rng, "remove", &[r#"["X-Gone", "Accept-Language"]"#]);
            self.maybe(rng, "set", &[placeholders]);
            self.maybe(rng, "add", &[r#"{ X-Added = "{authority} {scheme}" }"#]);
        }
        if rng.u8(..4) == 0 {
            self.changes("[route.response_headers]", rng);
        }
        if forwards && rng.u8(..4) == 0 {
            self.cookies(rng);
        }
    }

    /// What is changed of cookies of backends.
    fn cookies(&mut self, rng: &mut Rng) {
        self.table("[[route.cookie]]");
        if rng.bool() {
            self.key("name", r#""JSESSIONID""#);
        } else {
            self.key("regex", r#""(?i)^u$""#);
        }
        self.key("flags", r#"["Secure", "SameSite=None"]"#);
        self.maybe(rng, "remove", &[r#""HttpOnly""#]);
        for (header, from, regex) in [
            (
                "[[route.cookie_domain]]",
                r#""app.internal""#,
                r#""(?i)internal$""#,
            ),
            (
                "[[route.cookie_path]]",
                r#""/inner/""#,
                r#""^/inner/(.*)$""#,
            ),
        ] {
            self.table(header);
            if rng.bool() {
                self.key("from", from);
            } else {
                self.key("regex", regex);
            }
            self.key("to", r#""{host}""#);
        }
    }

    /// What is changed of the fields of responses.
    fn changes(&mut self, header: &str, rng: &mut Rng) {
        self.table(header);
        self.maybe(rng, "remove", &[r#""X-Powered-By""#]);
        self.maybe(rng, "set", &[r#"{ X-Frame-Options = "DENY" }"#]);
        self.maybe(rng, "add", &[r#"{ X-Served-By = "{host}" }"#]);
        self.maybe(rng, "statuses", &[r#"["2xx", "404"]"#, r#""500-599""#]);
    }
}

const CLEAR: Listener = Listener {
    name: "clear",
    tls: false,
    verifies: false,
    http1: true,
    http2: false,
    proxied: false,
    unix: false,
};

/// Keys of any listener, with values that some requests exceed.
const SETTINGS: [(&str, &[&str]); 20] = [
    ("keep_alive_timeout", &[r#""20s""#]),
    ("keep_alive_requests", &["1", "100"]),
    ("head_timeout", &[r#""20s""#]),
    ("body_timeout", &[r#""20s""#]),
    ("write_timeout", &[r#""20s""#]),
    ("body_rate_min", &["0"]),
    ("write_rate_min", &["0"]),
    ("body_max", &[r#""25B""#, r#""off""#]),
    ("serve_half_closed", &["true"]),
    ("query", &[r#""escape""#, r#""as-received""#]),
    ("linger_max", &[r#""1MiB""#]),
    ("linger_timeout", &[r#""5s""#]),
    ("connection_rate", &[r#""1000000/s""#]),
    ("limits", &[r#"["wide"]"#]),
    ("head_max", &[r#""1KiB""#, r#""64KiB""#]),
    ("target_max", &[r#""64B""#, r#""4KiB""#]),
    ("line_max", &[r#""200B""#, r#""1KiB""#]),
    ("fields_max", &["12", "200"]),
    ("trailer_max", &[r#""1KiB""#]),
    ("chunk_extensions_max", &[r#""1KiB""#]),
];

const HTTP2_SETTINGS: [(&str, &[&str]); 5] = [
    ("h2_streams_max", &["10"]),
    ("h2_window", &[r#""128KiB""#]),
    ("h2_connection_window", &[r#""256KiB""#]),
    ("h2_resets_per_second", &["100"]),
    ("h2_resets_per_second_trusted", &["100"]),
];
