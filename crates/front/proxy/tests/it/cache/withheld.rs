//! What a backend is told in another form than the client's fields, or not at all, and what a cache makes of it.

use catamaran_proxy::config::{AttributeSource, FieldName, RequestAttributes};
use catamaran_testkit::ajp;

use super::*;

/// Attributes that take a tenant, and what a client authenticates itself by, out of the fields.
fn attributes() -> Arc<RequestAttributes> {
    let header = |name| AttributeSource::Header(FieldName::from_static(name));
    Arc::new(RequestAttributes {
        remote_user: None,
        auth_type: None,
        named: vec![
            ("TENANT".to_owned(), header("x-tenant")),
            ("TOKEN".to_owned(), header("authorization")),
            ("COOKIES".to_owned(), header("cookie")),
        ],
    })
}

/// A front before a backend that is told these attributes.
fn telling(backend: BackendConfig, pages: CacheConfig) -> Front {
    let mut config = cached(backend, pages);
    config.server.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    config.upstreams[0].attributes = Some(attributes());
    start(config).unwrap()
}

/// A backend over AJP13 that names the tenant that it was told.
fn serve_ajp(mut socket: TcpStream) {
    let mut head = [0; 4];
    while socket.read_exact(&mut head).is_ok() {
        let mut packet = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
        socket.read_exact(&mut packet).unwrap();
        let mut tenants = ["alpha", "beta"].into_iter();
        let is_told = |tenant: &&str| {
            let attribute = ajp::named("TENANT", tenant);
            packet.windows(attribute.len()).any(|it| it == attribute)
        };
        let tenant = tenants.find(is_told).unwrap_or("none");
        let fields = [("Cache-Control", "max-age=60"), ("Content-Length", "9")];
        let fields = fields.map(|(name, value)| ajp::field(name, value));
        let page = format!("{tenant:9}");
        let answer = [
            ajp::send_headers(200, &fields),
            ajp::chunk(page.as_bytes()),
            ajp::end_response(1),
        ];
        socket.write_all(&answer.concat()).unwrap();
    }
}

#[test]
fn a_page_of_one_tenant_is_not_another_ones() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        while let Ok((socket, _)) = listener.accept() {
            thread::spawn(move || serve_ajp(socket));
        }
    });
    let host = "127.0.0.1".to_owned();
    let backend = BackendConfig::new(Protocol::Ajp, Address::Tcp { host, port });
    let front = telling(backend, cache());
    for _ in 0..2 {
        for (fields, expected) in [
            ("X-Tenant: alpha\r\n", "alpha"),
            ("X-Tenant: beta\r\n", "beta"),
            ("", "none"),
        ] {
            let page = get_as(&front, "/", fields);
            assert_eq!(body(&page).trim_end(), expected);
        }
    }
    assert!(status(&get_as(&front, "/", "X-Tenant: beta\r\n")).contains("hit"));
}

#[test]
fn what_clients_send_tells_them_apart_though_backends_do_not_get_it() {
    for by_vary in [true, false] {
        let fields = if by_vary {
            "Cache-Control: max-age=60\r\nVary: X-Tenant, X_Under, X-Real-IP\r\n"
        } else {
            FRESH
        };
        let origin = Origin::start(move |asked| {
            let got = ["x-tenant", "x_under", "x-real-ip"].map(|name| asked.field(name));
            let page = format!("{:?} {}", got.iter().flatten().next(), asked.count);
            (ok(fields, &page), false)
        });
        let mut pages = cache();
        if !by_vary {
            pages.key_fields = ["x-tenant", "x_under", "x-real-ip"]
                .map(FieldName::from_static)
                .to_vec();
        }
        let mut config = cached(origin.backend(), pages);
        config.upstreams[0].attributes = Some(attributes());
        let front = start(config).unwrap();
        let sent = [
            "",
            "X-Tenant: alpha\r\n",
            "X-Tenant: beta\r\n",
            "X-Tenant: beta\r\nX-Tenant: alpha\r\n",
            "X_Under: a\r\n",
            "X-Real-IP: 192.0.2.1\r\n",
        ];
        for _ in 0..2 {
            for (at, fields) in sent.iter().enumerate() {
                let page = get_as(&front, "/", fields);
                assert_eq!(body(&page), format!("None {}", at + 1), "{fields}");
            }
        }
    }
}

/// A field that the client has the front remove does not put a page in the place of another's.
#[test]
fn what_a_backend_did_not_get_is_not_what_it_got() {
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=60\r\nVary: X-Tenant\r\n";
        let tenant = asked.field("x-tenant").unwrap_or("none").to_owned();
        (ok(fields, &tenant), false)
    });
    let front = front(&origin, cache());
    let hidden = "X-Tenant: beta\r\nConnection: X-Tenant\r\n";
    for _ in 0..2 {
        assert_eq!(body(&get_as(&front, "/", hidden)), "none");
        assert_eq!(body(&get_as(&front, "/", "X-Tenant: beta\r\n")), "beta");
    }
}

#[test]
fn credentials_that_become_attributes_are_credentials() {
    let origin = Origin::start(|asked| (ok(FRESH, &asked.count.to_string()), false));
    let front = telling(origin.backend(), cache());
    for (target, fields) in [
        ("/a", "Authorization: Basic YTpi\r\n"),
        ("/b", "Cookie: JSESSIONID=ann\r\n"),
    ] {
        assert_eq!(body(&get_as(&front, target, fields)), "1");
        assert_eq!(body(&get_as(&front, target, fields)), "2", "{fields}");
        assert_eq!(body(&get(&front, target)), "3", "{fields}");
    }
}
