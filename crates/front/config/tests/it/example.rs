//! The example in `docs/examples`, read and compared field by field.

use std::path::{Path, PathBuf};
use std::time::Duration;

use catamaran_config::{load, parse};
use catamaran_proxy::config::{
    AccessLogFormat, AccessLogTarget, Address, Config, ListenAddress, Policy, Protocol,
    RouteTarget, Secret,
};

fn example() -> Config {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/examples/tomcat.toml");
    let loaded = load(&path).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        loaded.report.to_string(),
        "",
        "the example is without warnings"
    );
    loaded.config
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn server_log_and_admin() {
    let config = example();
    assert_eq!(config.server.drain_timeout, secs(20));
    assert_eq!(config.server.connections_max, None);
    assert_eq!(config.server.via.as_deref(), Some("catamaran"));
    let trusted: Vec<String> = config
        .server
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(trusted, ["10.0.0.0/8", "127.0.0.1/32"]);
    assert_eq!(config.log.access, AccessLogTarget::Stdout);
    assert_eq!(config.log.format, AccessLogFormat::Json);
    let admin = config.admin.expect("[admin]");
    let local = ListenAddress::Tcp(([127, 0, 0, 1], 9090).into());
    assert_eq!(admin.addresses, [local]);
}

#[test]
fn listeners() {
    let config = example();
    let [tcp, unix] = &config.listeners[..] else {
        panic!("two listeners")
    };
    assert_eq!(
        tcp.address,
        ListenAddress::Tcp("0.0.0.0:8080".parse().unwrap())
    );
    assert_eq!(
        (tcp.body_max, tcp.keep_alive_timeout),
        (Some(100 << 20), secs(60))
    );
    let path = PathBuf::from("/run/catamaran/front.sock");
    assert_eq!(unix.address, ListenAddress::Unix(path));
    assert_eq!((unix.body_max, unix.keep_alive_timeout), (None, secs(300)));
    assert_eq!((unix.head_timeout, unix.limits.fields), (secs(10), 94));
}

#[test]
fn upstream_with_overrides() {
    let config = example();
    let tomcat = config
        .upstreams
        .iter()
        .find(|upstream| upstream.name == "tomcat")
        .unwrap();
    assert_eq!((tomcat.policy, tomcat.retries), (Policy::LeastInFlight, 1));
    let [blue, green] = &tomcat.backends[..] else {
        panic!("two backends")
    };
    for (backend, name, host) in [(blue, "blue", "10.1.0.11"), (green, "green", "10.1.0.12")] {
        assert_eq!(backend.name, name);
        assert_eq!(backend.protocol, Protocol::Ajp);
        assert_eq!(
            backend.address,
            Address::Tcp {
                host: host.to_owned(),
                port: 8009
            }
        );
        assert_eq!(backend.first_byte_timeout, secs(120));
        assert_eq!(backend.ajp.packet_size.bytes(), 65_536);
        assert_eq!(
            backend.ajp.secret,
            Some(Secret::new("change me, and Tomcat's".to_owned()))
        );
        assert_eq!(backend.exchange_timeout, None);
    }
    assert_eq!((blue.weight, blue.connections_max), (2, 200));
    assert_eq!((green.weight, green.connections_max), (1, 100));
}

#[test]
fn other_upstreams() {
    let config = example();
    assert_eq!(config.upstreams.len(), 3);
    let first = |name: &str| {
        let upstream = config
            .upstreams
            .iter()
            .find(|upstream| upstream.name == name)
            .unwrap();
        assert_eq!(
            (upstream.policy, upstream.backends.len()),
            (Policy::RoundRobin, 1)
        );
        assert_eq!(upstream.retries, 2);
        upstream.backends[0].clone()
    };
    let reports = first("reports");
    assert_eq!(reports.name, "ajp+unix:/run/reports/ajp.sock");
    assert_eq!(
        reports.address,
        Address::Unix(PathBuf::from("/run/reports/ajp.sock"))
    );
    assert_eq!(reports.exchange_timeout, Some(secs(600)));
    assert_eq!(
        (reports.ajp.ping_after_idle, reports.ajp.secret),
        (None, None)
    );
    let search = first("search");
    assert_eq!(
        (search.protocol, search.idle_timeout),
        (Protocol::Http, secs(15))
    );
}

#[test]
fn routes() {
    let routes: Vec<String> = example()
        .routes
        .iter()
        .map(|route| {
            let target = match &route.target {
                RouteTarget::Upstream(name) => name.clone(),
                RouteTarget::Split(parts) => format!("{parts:?}"),
                RouteTarget::Status(status) => status.as_str().to_owned(),
                RouteTarget::Redirect(redirect) => redirect.status.as_str().to_owned(),
                RouteTarget::Files => "files".to_owned(),
            };
            let suffix = route.suffix.as_deref().unwrap_or("");
            assert!(!route.exact);
            format!("{}{}*{suffix} {target}", route.hosts.join(","), route.path)
        })
        .collect();
    let expected = [
        "/* tomcat",
        "/manager* 404",
        "search.example.org,*.search.example.org/* search",
        "/reports*.jsp reports",
    ];
    assert_eq!(routes, expected);
}

/// `catamaran bench` and `catamaran app` read the same texts with the same code.
#[test]
fn durations_and_sizes_may_have_fractions() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\nhead_timeout = \"1.5m\"\nbody_max = \"1.5KiB\"\n\
                [[route]]\npath = \"/\"\nstatus = 404\n";
    let loaded = parse("catamaran.toml", text).unwrap_or_else(|report| panic!("{report}"));
    let listener = &loaded.config.listeners[0];
    assert_eq!(listener.head_timeout, secs(90));
    assert_eq!(listener.body_max, Some(1536));
}
