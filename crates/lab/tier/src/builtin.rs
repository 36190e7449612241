//! The target files of this project, from `targets/`, compiled in.

use crate::target::Target;

/// The target of this project that is called `name`; `None` if there is none.
#[must_use]
pub fn builtin(name: &str) -> Option<Target> {
    let (_, text, templates) = BUILTIN.iter().find(|(known, ..)| *known == name)?;
    Some(Target::parse(&format!("{name}.toml"), text, templates).expect("a test parses each"))
}

/// The names of this project's targets.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    BUILTIN.iter().map(|(name, ..)| *name)
}

/// A target's name, its file's text, and its templates: name and text.
type Builtin = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const BUILTIN: &[Builtin] = &[
    ("app", include_str!("../targets/app.toml"), &[]),
    ("bare", include_str!("../targets/bare.toml"), &[]),
    (
        "echo",
        include_str!("../targets/echo.toml"),
        &[("Echo.java", include_str!("../java/Echo.java"))],
    ),
    (
        "front",
        include_str!("../targets/front.toml"),
        &[
            ("front.toml.j2", include_str!("../targets/front.toml.j2")),
            LOCALHOST,
        ],
    ),
    (
        "gateway",
        include_str!("../targets/gateway.toml"),
        &[(
            "Launcher.java",
            concat!(
                include_str!("../java/Tomcat.java"),
                include_str!("../java/Gateway.java"),
                include_str!("../java/GatewayToday.java")
            ),
        )],
    ),
    (
        "gateway-then",
        include_str!("../targets/gateway-then.toml"),
        &[
            (
                "Launcher.java",
                concat!(
                    include_str!("../java/Tomcat6.java"),
                    include_str!("../java/Gateway.java")
                ),
            ),
            ("Application.java", include_str!("../java/GatewayThen.java")),
        ],
    ),
    (
        "haproxy",
        include_str!("../targets/haproxy.toml"),
        &[("haproxy.cfg.j2", include_str!("../targets/haproxy.cfg.j2"))],
    ),
    (
        "httpd",
        include_str!("../targets/httpd.toml"),
        &[("httpd.conf.j2", include_str!("../targets/httpd.conf.j2"))],
    ),
    (
        "httpd-then",
        include_str!("../targets/httpd-then.toml"),
        &[(
            "httpd-then.conf.j2",
            include_str!("../targets/httpd-then.conf.j2"),
        )],
    ),
    ("link", include_str!("../targets/link.toml"), &[]),
    ("memcached", include_str!("../targets/memcached.toml"), &[]),
    (
        "memcached-clients",
        include_str!("../targets/memcached-clients.toml"),
        &[(
            "MemcachedClients.java",
            include_str!("../java/MemcachedClients.java"),
        )],
    ),
    (
        "nginx",
        include_str!("../targets/nginx.toml"),
        &[
            ("nginx.conf.j2", include_str!("../targets/nginx.conf.j2")),
            LOCALHOST,
        ],
    ),
    (
        "nginx-then",
        include_str!("../targets/nginx-then.toml"),
        &[(
            "nginx-then.conf.j2",
            include_str!("../targets/nginx-then.conf.j2"),
        )],
    ),
    (
        "tomcat-then",
        include_str!("../targets/tomcat-then.toml"),
        &[(
            "Launcher.java",
            concat!(
                include_str!("../java/Tomcat.java"),
                include_str!("../java/TomcatPages.java")
            ),
        )],
    ),
    (
        "tomcat10",
        include_str!("../targets/tomcat10.toml"),
        &[
            ("server.xml.j2", include_str!("../targets/server.xml.j2")),
            ("web.xml.j2", include_str!("../targets/web.xml.j2")),
            (
                "catalina.properties.j2",
                include_str!("../targets/catalina.properties.j2"),
            ),
        ],
    ),
    (
        "tomcat7",
        include_str!("../targets/tomcat7.toml"),
        &[(
            "Launcher.java",
            concat!(
                include_str!("../java/Tomcat.java"),
                include_str!("../java/TomcatPages.java")
            ),
        )],
    ),
    (
        "tomcat10-war",
        include_str!("../targets/tomcat10-war.toml"),
        &[(
            "catalina.properties.j2",
            include_str!("../targets/catalina.properties.j2"),
        )],
    ),
    (
        "undertow",
        include_str!("../targets/undertow.toml"),
        &[(
            "Launcher.java",
            concat!(
                include_str!("../java/Undertow.java"),
                include_str!("../java/UndertowPages.java")
            ),
        )],
    ),
    (
        "varnish",
        include_str!("../targets/varnish.toml"),
        &[("cache.vcl.j2", include_str!("../targets/cache.vcl.j2"))],
    ),
];

/// The template with the certificate that servers use in measurements.
const LOCALHOST: (&str, &str) = ("localhost.pem", include_str!("../targets/localhost.pem"));
