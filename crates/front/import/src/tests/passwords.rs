//! Sign-ons by password (`auth_basic`, `AuthType Basic`): each is one of the front, or closes its place.

use super::doors::routes_of_files;
use super::sign_on::sign_ons;
use super::*;

/// The import of a server of nginx on port 80, beside these users.
fn of_nginx(lines: &str, users: &str) -> Import {
    let conf = format!("server {{\nlisten 80;\n{lines}\n}}\n");
    converted(&[("/c.conf", &conf), ("/users", users)], None)
}

fn has(import: &Import, route: &str) -> bool {
    routes(import).iter().any(|it| it == route)
}

#[test]
fn passwords_that_nginx_asks_for_are_asked_for_by_the_front() {
    let import = of_nginx(
        &format!(
            "location / {{ auth_basic \"Staff only\"; auth_basic_user_file /users; auth_delay 1s;\n\
             proxy_set_header X-User $remote_user; {PASS} }}"
        ),
        USERS,
    );
    assert_eq!(
        sign_ons(&import),
        [
            "auth.Staff-only: fields = { X-User = \"user\" }; pass_credentials = true; realm = \"Staff only\"; \
             users_file = \"/users\""
        ]
    );
    assert!(
        has(
            &import,
            "path = \"/\"; upstream = \"app\"; auth = \"Staff-only\""
        ),
        "{}",
        import.text
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    assert_eq!(import.sums.decided, 0, "{:?}", import.directives);
    assert!(
        import
            .remarks
            .iter()
            .any(|it| it.text.contains("`failures`"))
    );
}

#[test]
fn a_password_is_asked_for_where_nginx_asks() {
    let import = of_nginx(
        &format!(
            "auth_basic staff; auth_basic_user_file /users;\nlocation / {{ {PASS} }}\n\
             location /open/ {{ auth_basic off; {PASS} }}\nlocation /text {{ return 200 ok; }}\n\
             location /ops/ {{ auth_basic ops; {PASS} }}\n\
             location /ip/ {{ allow 10.0.0.0/8; deny all; satisfy all; {PASS} }}"
        ),
        USERS,
    );
    for route in [
        "path = \"/\"; upstream = \"app\"; auth = \"staff\"",
        "path = \"/open\"; upstream = \"app\"",
        "path = \"/ops\"; upstream = \"app\"; auth = \"ops\"",
        "path = \"/ip\"; upstream = \"app\"; auth = \"staff\"; allow = \"10.0.0.0/8\"",
    ] {
        let pattern = route
            .replacen("\";", "/*\";", 1)
            .replacen("path", "pattern", 1);
        assert!(
            has(&import, route) || has(&import, &pattern),
            "{route}\n{}",
            import.text
        );
    }
    let text = routes(&import);
    let text = text.iter().find(|it| it.contains("text = ")).unwrap();
    assert!(!text.contains("auth"), "{text}");
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
}

#[test]
fn a_named_location_is_told_the_user_that_has_signed_on() {
    let of = |named: &str| {
        let conf = format!(
            "server {{\nlisten 80;\n{BASIC}\nlocation / {{ root /srv; try_files $uri @app; }}\n\
             location @app {{ {named} {PASS} }}\n}}\n"
        );
        with_directories(
            &[("/c.conf", &conf), ("/users", USERS), ("/srv/a.css", "")],
            None,
        )
    };
    let import = of("proxy_set_header X-User $remote_user;");
    let route = routes(&import)
        .into_iter()
        .find(|it| it.contains("files = "));
    assert!(
        route.is_some_and(|it| it.contains("auth = \"staff")),
        "{}",
        import.text
    );
    assert!(
        sign_ons(&import).concat().contains("fields = { X-User"),
        "{}",
        import.text
    );
    // With other passwords it is closed.
    let import = of("auth_basic other;");
    assert!(!import.text.contains("files = "), "{}", import.text);
}

#[test]
fn what_is_asked_for_beside_an_address_is_the_same_or_closed() {
    let of = |lines: &str| of_nginx(&format!("location / {{ {BASIC} {lines} {PASS} }}"), USERS);
    let asking = "path = \"/\"; upstream = \"app\"; auth = \"staff\"";
    for lines in [
        "",
        "satisfy any;",
        "satisfy any; deny all;",
        "satisfy any; deny 10.0.0.1; deny all; allow 10.0.0.2;",
        "satisfy any; deny 10.0.0.1;",
    ] {
        let import = of(lines);
        assert!(has(&import, asking), "{lines}\n{}", import.text);
        assert_eq!(import.risks(), 0, "{lines} {:?}", import.remarks);
    }
    for lines in [
        "satisfy any; allow 10.0.0.0/8; deny all;",
        "satisfy any; allow all;",
        "satisfy any; deny 10.0.0.1; allow all;",
        "auth_jwt x;",
        "auth_request /auth;",
    ] {
        let import = of(lines);
        assert!(
            !import.text.contains("upstream = \"app\""),
            "{lines}\n{}",
            import.text
        );
        assert!(import.risks() > 0, "{lines}");
    }
    // Without a sign-on it is one guard.
    let import = of_nginx(
        &format!("location / {{ satisfy any; allow 10.0.0.0/8; deny all; {PASS} }}"),
        USERS,
    );
    assert!(has(
        &import,
        "path = \"/\"; upstream = \"app\"; allow = \"10.0.0.0/8\""
    ));
}

#[test]
fn passwords_that_the_front_cannot_compare_close_the_place() {
    let closed = |lines: &str, users: &str, said: &str| {
        let import = of_nginx(&format!("location / {{ {lines} {PASS} }}"), users);
        assert!(
            !import.text.contains("upstream = \"app\""),
            "{lines}\n{}",
            import.text
        );
        let is_said = |it: &Remark| it.weight == Weight::Risk && it.text.contains(said);
        assert!(
            import.remarks.iter().any(is_said),
            "{said} {:?}",
            import.remarks
        );
        let named = ["auth_basic", "auth_basic_user_file"];
        let mut own = import
            .directives
            .iter()
            .filter(|it| named.contains(&&*it.name));
        assert!(
            own.all(|it| it.fate != Fate::Mapped),
            "{:?}",
            import.directives
        );
    };
    for (users, said) in [
        (
            "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n",
            "line 1 of `/users`: a hash in braces",
        ),
        (
            &format!("{USERS}bob:3vMC8hAUhgEOU\n"),
            "line 2 of `/users`: a DES hash",
        ),
        (
            &format!("#\n{USERS}bob:secret\ncat:x\n"),
            "line 3 of `/users`, and 1 more lines: this is no hash",
        ),
        (&format!("{USERS}{USERS}"), "has a line already"),
        (
            "ann:$argon2id$v=19$m=16,t=2,p=1$MTIzNDU2Nzg$6YEHHKfTDyGmKMQvqTdWEQ\n",
            "argon2",
        ),
    ] {
        closed(BASIC, users, said);
    }
    for (lines, said) in [
        ("auth_basic staff;", "no `auth_basic_user_file`"),
        (
            "auth_basic staff; auth_basic_user_file /none;",
            "`/none` cannot be read",
        ),
        (
            "auth_basic $realm; auth_basic_user_file /users;",
            "depends on the request",
        ),
        (
            "auth_basic staff; auth_basic_user_file /users.$host;",
            "depends on the request",
        ),
        (
            "auth_basic_user_file /users; limit_except GET { auth_basic staff; }",
            "limit_except",
        ),
    ] {
        closed(lines, USERS, said);
    }
}

#[test]
fn white_space_around_a_user_of_nginx_closes_the_place() {
    for (users, line) in [
        (format!("#\n {USERS}"), 2),
        (format!("#\n{}\t\n", USERS.trim_end()), 2),
        (format!(" # old\n{USERS}"), 1),
    ] {
        let import = of_nginx(&format!("location / {{ {BASIC} {PASS} }}"), &users);
        assert!(!import.text.contains("upstream = \"app\""), "{users}");
        let said = format!("line {line} white space");
        let is_said = |it: &Remark| it.weight == Weight::Risk && it.text.contains(&said);
        assert!(import.remarks.iter().any(is_said), "{:?}", import.remarks);
    }
    let ends = USERS.replace('\n', "\r\n\r\n  \n");
    let import = of_nginx(&format!("location / {{ {BASIC} {PASS} }}"), &ends);
    assert_eq!(sign_ons(&import).len(), 1, "{}", import.text);
}

#[test]
fn a_user_whom_a_client_claims_is_told_to_nobody() {
    let field = "proxy_set_header X-User $remote_user;";
    // Without a password nginx passes on whom the client claims to be.
    for off in ["", "auth_basic off;"] {
        let import = of_nginx(&format!("location / {{ {off} {field} {PASS} }}"), USERS);
        assert_eq!(sign_ons(&import), Vec::<String>::new());
        assert!(
            import.text.contains("remove = \"X-User\""),
            "{}",
            import.text
        );
    }
    let overwritten = |value: &str| {
        let lines =
            format!("location / {{ {BASIC} proxy_set_header Authorization {value}; {PASS} }}");
        of_nginx(&lines, USERS)
    };
    for (value, passes) in [
        ("$http_authorization", true),
        ("\"\"", false),
        ("\"Basic eDp5\"", false),
    ] {
        let import = overwritten(value);
        let table = sign_ons(&import).concat();
        assert_eq!(
            table.contains("pass_credentials"),
            passes,
            "{value}\n{}",
            import.text
        );
    }
}

/// The import of a server of httpd that passes `/in` to a servlet container, with these sections.
fn of_httpd(sections: &str, users: &str) -> Import {
    let conf = format!(
        "Listen 80\nProxyPreserveHost On\n{sections}\nProxyPass /in ajp://t:8009/in\nProxyPass /out ajp://t:8009/out\n"
    );
    let files = [
        ("/httpd.conf", conf.as_str()),
        ("/users", users),
        ("/groups", "ops: ann bob\n"),
    ];
    converted(&files, None)
}

fn of_location(lines: &str) -> Import {
    of_httpd(&format!("<Location /in>\n{lines}\n</Location>"), USERS)
}

#[test]
fn passwords_that_httpd_asks_for_are_asked_for_by_the_front() {
    let import = of_location(&format!(
        "{HTTPD}\nAuthBasicProvider file\nRequire valid-user"
    ));
    assert_eq!(
        sign_ons(&import),
        ["auth.staff: pass_credentials = true; realm = \"staff\"; users_file = \"/users\""]
    );
    assert!(
        has(
            &import,
            "path = \"/in\"; upstream = \"t\"; auth = \"staff\""
        ),
        "{}",
        import.text
    );
    assert!(
        has(&import, "path = \"/out\"; upstream = \"t\""),
        "{}",
        import.text
    );
    // Only who has signed on is a user of the container.
    assert!(
        import
            .text
            .contains("auth_type = \"text:Basic\"\nremote_user = \"auth\"\n"),
        "{}",
        import.text
    );
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    assert_eq!(import.sums.decided, 0, "{:?}", import.directives);
}

#[test]
fn the_users_of_a_require_are_those_of_the_sign_on() {
    for (requires, keys, guard) in [
        ("Require user ann Bob", "users = [\"ann\", \"Bob\"]", ""),
        (
            "Require user ann\nRequire user bob",
            "users = [\"ann\", \"bob\"]",
            "",
        ),
        (
            "AuthGroupFile /groups\nRequire group ops",
            "groups = \"ops\"; groups_file = \"/groups\"",
            "",
        ),
        (
            "AuthGroupFile /groups\n<RequireAny>\nRequire user cat\nRequire group ops\n</RequireAny>",
            "groups = \"ops\"; groups_file = \"/groups\"",
            "",
        ),
        (
            "<RequireAny>\nRequire user ann\nRequire valid-user\n</RequireAny>",
            "",
            "",
        ),
        (
            "<RequireAll>\nRequire valid-user\nRequire user ann\n</RequireAll>",
            "users = \"ann\"",
            "",
        ),
        (
            "<RequireAll>\nRequire valid-user\nRequire ip 10.0.0.0/8\n</RequireAll>",
            "",
            "; allow = \"10.0.0.0/8\"",
        ),
        (
            "<RequireAll>\nRequire valid-user\nRequire not ip 10.0.0.0/8\n</RequireAll>",
            "",
            "; deny = \"10.0.0.0/8\"",
        ),
        (
            "Require valid-user\nOrder deny,allow\nDeny from all\nAllow from 10.0.0.0/8",
            "",
            "; allow = \"10.0.0.0/8\"",
        ),
        (
            "Require valid-user\nOrder deny,allow\nDeny from all\nSatisfy any",
            "",
            "",
        ),
        (
            "Require valid-user\nOrder deny,allow\nAllow from all\nSatisfy all",
            "",
            "",
        ),
        ("<Limit GET POST>\nRequire valid-user\n</Limit>", "", ""),
    ] {
        let import = of_location(&format!("{HTTPD}\n{requires}"));
        let table = sign_ons(&import).concat();
        assert!(table.contains(keys), "{requires}\n{}", import.text);
        assert_eq!(
            table.contains("users = "),
            keys.contains("users = ") || requires.contains("cat"),
            "{table}"
        );
        let route = format!("path = \"/in\"; upstream = \"t\"; auth = \"staff\"{guard}");
        assert!(has(&import, &route), "{requires}\n{}", import.text);
        assert_eq!(import.risks(), 0, "{requires} {:?}", import.remarks);
    }
}

#[test]
fn what_sections_say_of_passwords_is_merged_as_httpd_does() {
    for (sections, guard) in [
        // The directives of one sign-on may stand in several sections.
        (
            format!(
                "<Location />\n{HTTPD}\n</Location>\n<Location /in>\nRequire valid-user\n</Location>"
            ),
            "; auth = \"staff\"",
        ),
        (
            format!(
                "<Location />\n{HTTPD}\nRequire valid-user\n</Location>\n<Location /in>\nAuthName ops\n</Location>"
            ),
            "; auth = \"ops\"",
        ),
        (
            format!(
                "<Location />\n{HTTPD}\nRequire valid-user\n</Location>\n<Location /in>\nRequire all granted\n</Location>"
            ),
            "",
        ),
        (
            format!("<Location />\n{HTTPD}\nRequire all granted\n</Location>"),
            "",
        ),
        (
            format!("<Proxy *>\n{HTTPD}\nRequire valid-user\n</Proxy>"),
            "; auth = \"staff\"",
        ),
        // A directory is asked for its own files.
        (
            format!("<Directory /in>\n{HTTPD}\nRequire valid-user\n</Directory>"),
            "",
        ),
    ] {
        let import = of_httpd(&sections, USERS);
        let route = format!("path = \"/in\"; upstream = \"t\"{guard}");
        assert!(has(&import, &route), "{sections}\n{}", import.text);
    }
    // httpd looks for files below its root.
    let rooted = HTTPD.replace("/users", "users");
    let section =
        format!("ServerRoot /\n<Location /in>\n{rooted}\nRequire valid-user\n</Location>");
    let import = of_httpd(&section, USERS);
    assert!(
        import.text.contains("users_file = \"/users\""),
        "{}",
        import.text
    );
    for sections in [
        format!(
            "<Location />\n{HTTPD}\nRequire valid-user\n</Location>\n<Location /in>\nAuthUserFile /none\n</Location>"
        ),
        format!(
            "<Location />\n{HTTPD}\nRequire valid-user\n</Location>\n<Location /in>\nAuthType None\n</Location>"
        ),
        format!(
            "<Location />\n{HTTPD}\nRequire valid-user\nDeny from all\nSatisfy any\n</Location>\n<Location /in>\nSatisfy all\n</Location>"
        ),
        format!(
            "<Location />\n{HTTPD}\nRequire valid-user\n</Location>\n<LocationMatch \"^/in(?!x)\">\nAuthUserFile /others\n</LocationMatch>"
        ),
    ] {
        let import = of_httpd(&sections, USERS);
        let mut all = routes(&import).into_iter();
        let own = all.find(|it| it.contains("/in")).unwrap();
        assert!(own.contains("status = 403"), "{sections}\n{}", import.text);
    }
}

#[test]
fn a_sign_on_of_httpd_that_the_front_has_not_closes_the_place() {
    for lines in [
        format!("{HTTPD}\nRequire valid-user extra"),
        format!("{HTTPD}\nRequire group ops"),
        format!("{HTTPD}\nRequire user %{{env:X}}"),
        format!("{HTTPD}\nRequire not user ann"),
        format!("{HTTPD}\nRequire expr true"),
        format!("{HTTPD}\nRequire ldap-user ann"),
        format!("{HTTPD}\nRequire valid-user\nAuthBasicProvider file ldap"),
        format!("{HTTPD}\nRequire valid-user\nAuthBasicProvider dbm"),
        format!("{HTTPD}\nRequire valid-user\nAuthBasicAuthoritative off"),
        format!("{HTTPD}\nRequire valid-user\nAuthBasicFake ann x"),
        format!("{HTTPD}\nRequire valid-user\nAuthBasicUseDigestAlgorithm MD5"),
        format!("{HTTPD}\nRequire valid-user\nAuthType Digest"),
        format!("{HTTPD}\nRequire valid-user\nAuthLDAPURL ldap://x"),
        format!("{HTTPD}\n<RequireAny>\nRequire ip 10.0.0.1\nRequire valid-user\n</RequireAny>"),
        format!("{HTTPD}\n<RequireAny>\nRequire all granted\nRequire valid-user\n</RequireAny>"),
        format!("{HTTPD}\n<RequireAll>\nRequire user ann\nRequire user bob\n</RequireAll>"),
        format!(
            "{HTTPD}\n<RequireAll>\nRequire all granted\n<RequireNone>\nRequire user ann\n</RequireNone>\n</RequireAll>"
        ),
        format!("{HTTPD}\nRequire valid-user\nSatisfy any"),
        format!("{HTTPD}\nRequire valid-user\nAllow from 10.0.0.1\nDeny from all\nSatisfy any"),
        "AuthType Basic\nAuthUserFile /users\nRequire valid-user".to_owned(),
        "AuthType Basic\nAuthName x\nRequire valid-user".to_owned(),
        "AuthName x\nAuthUserFile /users\nRequire valid-user".to_owned(),
        "AuthType Basic\nAuthName x\nAuthUserFile users\nRequire valid-user".to_owned(),
        "AuthType Basic\nAuthName %{HTTP_HOST}\nAuthUserFile /users\nRequire valid-user".to_owned(),
    ] {
        let import = of_location(&lines);
        assert!(
            has(&import, "path = \"/in\"; status = 403"),
            "{lines}\n{}",
            import.text
        );
        assert!(import.risks() > 0, "{lines}");
        let mut own = import
            .directives
            .iter()
            .filter(|it| it.name.starts_with("Auth"));
        assert!(
            own.all(|it| it.fate != Fate::Mapped),
            "{lines} {:?}",
            import.directives
        );
    }
}

/// httpd answers 500 to all requests there.
#[test]
fn an_auth_type_without_a_require_closes_the_place() {
    let in_location =
        |path: &str, lines: &str| format!("<Location {path}>\n{lines}\n</Location>\n");
    let of = |sections: &str| {
        let import = of_httpd(sections, USERS);
        let is_open = has(&import, "path = \"/in\"; upstream = \"t\"");
        (is_open, import.risks() > 0)
    };
    for closed in [
        in_location("/in", HTTPD),
        in_location("/", HTTPD),
        in_location("/in", &format!("{HTTPD}\nDeny from all\nSatisfy Any")),
        in_location("/in", "AuthType shibboleth"),
        format!("<Proxy *>\n{HTTPD}\n</Proxy>"),
    ] {
        assert_eq!(of(&closed), (false, true), "{closed}");
    }
    for open in [
        in_location("/in", "AuthType None"),
        in_location("/in", "AuthName x"),
        in_location("/in", &format!("{HTTPD}\nRequire all granted")),
        in_location("/", "Require all granted") + &in_location("/in", HTTPD),
        in_location("/", HTTPD) + &in_location("/in", "AuthType None"),
        in_location("/out", HTTPD),
    ] {
        assert!(of(&open).0, "{open}");
    }
    let files = routes_of_files(&format!("<Directory /srv>\n{HTTPD}\n</Directory>"));
    assert_eq!(files, ["path = \"/\"; status = 403"]);
}

#[test]
fn who_httpd_takes_for_the_user_otherwise_closes_the_place() {
    let basic = format!("{HTTPD}\nRequire valid-user");
    let section = format!("<Location /in>\n{basic}\n</Location>");
    for sections in [
        format!("SSLOptions +StdEnvVars +FakeBasicAuth\n{section}"),
        format!("SSLOptions fakebasicauth\n{section}"),
        format!("<Location /in>\nSSLOptions +FakeBasicAuth\n{basic}\n</Location>"),
        format!("<Directory />\nSSLOptions +FakeBasicAuth\n</Directory>\n{section}"),
        format!("SSLUserName SSL_CLIENT_S_DN_CN\n{section}"),
        format!("<Location /in>\nSSLUserName SSL_CLIENT_S_DN_CN\n{basic}\n</Location>"),
        format!("JkRemoteUserIndicator X\n{section}"),
        format!("SetEnv JK_REMOTE_USER root\n{section}"),
        format!("SetEnvIf X-User (.*) JK_REMOTE_USER=$1\n{section}"),
    ] {
        let import = of_httpd(&sections, USERS);
        let route = "path = \"/in\"; status = 403";
        assert!(has(&import, route), "{sections}\n{}", import.text);
        let is_said = |it: &Remark| it.text.contains("decides who the user is");
        assert!(import.remarks.iter().any(is_said), "{:?}", import.remarks);
    }
    let import = of_httpd(&format!("SSLOptions -FakeBasicAuth\n{section}"), USERS);
    assert_eq!(sign_ons(&import).len(), 1, "{}", import.text);
    // The front would take these files for others than httpd does.
    for (users, said) in [
        (USERS.replace("ann", "/CN=ann"), "subject of a certificate"),
        (format!("# old \\\n{USERS}"), "ends with a backslash"),
    ] {
        let import = of_httpd(&section, &users);
        assert!(
            has(&import, "path = \"/in\"; status = 403"),
            "{}",
            import.text
        );
        let is_said = |it: &Remark| it.text.contains(said);
        assert!(import.remarks.iter().any(is_said), "{:?}", import.remarks);
    }
    // httpd takes white space around a line for nothing.
    let import = of_httpd(&section, &format!(" {USERS}"));
    assert_eq!(sign_ons(&import).len(), 1, "{}", import.text);
}

#[test]
fn satisfy_any_ends_where_a_deeper_section_orders() {
    let any = format!("{HTTPD}\nRequire valid-user\nOrder deny,allow\nDeny from all\nSatisfy Any");
    let of = |deeper: &str| {
        of_httpd(
            &format!("<Location />\n{any}\n</Location>\n{deeper}"),
            USERS,
        )
    };
    let closed = |deeper: &str| {
        let import = of(deeper);
        let mut all = routes(&import).into_iter();
        let own = all.find(|it| it.contains("/in")).unwrap();
        assert!(own.contains("status = 403"), "{deeper}\n{}", import.text);
    };
    closed("<Location /in>\nOrder allow,deny\nDeny from all\n</Location>");
    closed("<Location /in>\nSatisfy Any\n</Location>\n<Location /in>\nDeny from all\n</Location>");
    closed(
        "<LocationMatch \"^/in(?!x)\">\nOrder deny,allow\nAllow from all\nRequire valid-user\n</LocationMatch>",
    );
    let import = of("<Location /in>\nOrder allow,deny\nAllow from all\n</Location>");
    let route = "path = \"/in\"; upstream = \"t\"; auth = \"staff\"";
    assert!(has(&import, route), "{}", import.text);
    let open = "<Location />\nRequire all denied\nSatisfy Any\nAllow from all\n</Location>";
    for deeper in [
        "<Location /in>\nAllow from all\n</Location>",
        "<LocationMatch \"^/in(?!x)\">\nAllow from all\n</LocationMatch>",
    ] {
        let import = of_httpd(&format!("{open}\n{deeper}"), USERS);
        let mut all = routes(&import).into_iter();
        let own = all.find(|it| it.contains("/in")).unwrap();
        assert!(own.contains("status = 403"), "{deeper}\n{}", import.text);
    }
}

#[test]
fn a_redirect_of_a_section_is_sent_only_where_all_are_let_in() {
    let redirect = "Redirect https://elsewhere.example/";
    let asking = format!("{HTTPD}\nRequire valid-user");
    for (sections, is_sent) in [
        (format!("<Location /in>\n{redirect}\n</Location>"), true),
        (
            format!("<Location /in>\nRequire all granted\n{redirect}\n</Location>"),
            true,
        ),
        (
            format!("<Location /in>\nRequire ip 10.0.0.1\n{redirect}\n</Location>"),
            false,
        ),
        (
            format!("<Location /in>\nRequire all denied\n{redirect}\n</Location>"),
            false,
        ),
        (
            format!("<Location />\n{asking}\n</Location>\n<Location /in>\n{redirect}\n</Location>"),
            false,
        ),
        (
            format!(
                "<Location /in>\n{redirect}\n</Location>\n<Location /in>\n{asking}\n</Location>"
            ),
            false,
        ),
        // httpd redirects by those outside of sections before it asks.
        (
            format!("Redirect /x https://elsewhere.example/\n<Location /x>\n{asking}\n</Location>"),
            true,
        ),
        (
            format!(
                "Redirect /x https://else.example/\n<Location />\n{asking}\n</Location>\n<Location /x>\n{redirect}\n</Location>"
            ),
            false,
        ),
    ] {
        let import = of_httpd(&sections, USERS);
        let is_found = import.text.contains("https://elsewhere.example");
        assert_eq!(is_found, is_sent, "{sections}\n{}", import.text);
        let says =
            |it: &Remark| it.weight == Weight::Risk && it.text.contains("a redirect is closed");
        assert_eq!(
            import.remarks.iter().any(says),
            !is_sent,
            "{:?}",
            import.remarks
        );
    }
}

#[test]
fn files_behind_a_password_are_served_behind_it() {
    let of = |sections: &str| {
        let conf = format!("Listen 80\nDocumentRoot /srv\n{sections}");
        let files = [
            ("/httpd.conf", conf.as_str()),
            ("/users", USERS),
            ("/srv/a.css", ""),
            ("/srv/in/a.css", ""),
        ];
        with_directories(&files, None)
    };
    let import = of(&format!(
        "<Directory /srv>\nAllowOverride None\n</Directory>\n<Directory /srv/in>\n{HTTPD}\nRequire valid-user\n</Directory>\n"
    ));
    assert_eq!(sign_ons(&import).len(), 1, "{}", import.text);
    // Files of other passwords than those around them are closed.
    let import = of(&format!(
        "<Directory /srv>\nAllowOverride None\n{HTTPD}\nRequire valid-user\n<Files secret.css>\nAuthUserFile /others\n</Files>\n</Directory>\n"
    ));
    let closed = |it: &String| it.contains("secret") && it.contains("status = 403");
    assert!(routes(&import).iter().any(closed), "{}", import.text);
}

#[test]
fn the_user_in_a_field_is_the_one_that_has_signed_on() {
    let field = "RequestHeader set X-User expr=%{REMOTE_USER}";
    let import = of_location(&format!(
        "{HTTPD}\nRequire valid-user\n{field}\nRequestHeader unset Authorization"
    ));
    assert_eq!(
        sign_ons(&import),
        ["auth.staff: fields = { X-User = \"user\" }; realm = \"staff\"; users_file = \"/users\""]
    );
    assert!(!import.text.contains("\"X-User\""), "{}", import.text);
    assert_eq!(import.risks(), 0, "{:?}", import.remarks);
    // Without a sign-on there is no user, whatever a client says.
    let import = of_location(field);
    assert!(
        import.text.contains("remove = \"X-User\""),
        "{}",
        import.text
    );
}

#[test]
fn the_user_of_a_certificate_is_told_where_all_clients_have_one() {
    let of = |lines: &str| {
        let conf = format!(
            "Listen 443\n<VirtualHost *:443>\nSSLEngine on\nSSLCertificateFile /c.pem\nSSLCertificateKeyFile /k.pem\n\
             SSLCACertificateFile /ca.pem\n{lines}\nProxyPreserveHost On\nProxyPass / ajp://t:8009/\n</VirtualHost>\n"
        );
        converted(
            &[
                ("/httpd.conf", &conf),
                ("/ca.pem", "x"),
                ("/c.pem", "x"),
                ("/k.pem", "x"),
            ],
            None,
        )
    };
    for (lines, user) in [
        (
            "SSLVerifyClient require\nSSLUserName SSL_CLIENT_S_DN_CN",
            Some("tls:subject_cn"),
        ),
        (
            "SSLVerifyClient require\nSSLUserName SSL_CLIENT_SAN_Email_0",
            Some("tls:san_email"),
        ),
        ("SSLVerifyClient require\nSSLUserName SSL_CLIENT_S_DN", None),
        (
            "SSLVerifyClient optional\nSSLUserName SSL_CLIENT_S_DN_CN",
            None,
        ),
        ("SSLUserName SSL_CLIENT_S_DN_CN", None),
        ("SSLVerifyClient require", None),
    ] {
        let import = of(lines);
        let found = import
            .text
            .lines()
            .find_map(|it| it.strip_prefix("remote_user = "));
        let expected = user.map(|it| format!("\"{it}\""));
        assert_eq!(found, expected.as_deref(), "{lines}\n{}", import.text);
        let name = "SSLUserName";
        let fate = import
            .directives
            .iter()
            .find(|it| it.name == name)
            .map(|it| it.fate);
        assert_eq!(
            fate == Some(Fate::Mapped),
            user.is_some(),
            "{lines} {:?}",
            import.directives
        );
    }
}

#[test]
fn the_user_of_a_certificate_has_no_kind_of_password() {
    let tls = "SSLEngine on\nSSLCertificateFile /c.pem\nSSLCertificateKeyFile /k.pem";
    let conf = format!(
        "Listen 443\nProxyPreserveHost On\n\
         <VirtualHost *:443>\nServerName a.example\n{tls}\nProxyPass / ajp://t:8009/\n\
         <Location />\n{HTTPD}\nRequire valid-user\n</Location>\n</VirtualHost>\n\
         <VirtualHost *:443>\nServerName b.example\n{tls}\nSSLCACertificateFile /ca.pem\nSSLVerifyClient require\n\
         SSLUserName SSL_CLIENT_S_DN_CN\nProxyPass / ajp://t:8009/\n</VirtualHost>\n"
    );
    let files = [
        ("/httpd.conf", conf.as_str()),
        ("/users", USERS),
        ("/ca.pem", "x"),
        ("/c.pem", "x"),
        ("/k.pem", "x"),
    ];
    let import = converted(&files, None);
    let mut upstreams = import
        .text
        .split("\n[")
        .filter(|it| it.contains("tls:subject_cn"));
    let of_certificate = upstreams.next().unwrap();
    assert!(!of_certificate.contains("auth_type"), "{}", import.text);
    assert!(
        import.text.contains("auth_type = \"text:Basic\""),
        "{}",
        import.text
    );
}

const USERS: &str = "ann:$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.\n";
const BASIC: &str = "auth_basic staff; auth_basic_user_file /users;";
const PASS: &str = "proxy_set_header Host $host; proxy_pass http://app:80;";
const HTTPD: &str = "AuthType Basic\nAuthName staff\nAuthUserFile /users";
