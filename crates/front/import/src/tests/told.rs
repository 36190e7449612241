//! What the report says: nothing is lost without a word, and what means nothing is no risk.

use super::*;

/// The risks of a server that passes everything to Tomcat, with these directives beside that.
fn risks_beside(directives: &str) -> Vec<String> {
    let conf =
        format!("Listen 80\nProxyPreserveHost On\n{directives}\nProxyPass / ajp://t:8009/\n");
    let import = converted(&[("/c.conf", &conf)], None);
    let is_open = routes(&import).iter().any(|it| it.contains("upstream ="));
    assert!(is_open, "{directives}: {}", import.text);
    said(&import, Weight::Risk)
}

#[test]
fn harmless_directives_are_no_risk() {
    for directive in [
        "MinSpareServers 5",
        "LockFile /var/lock/a",
        "AcceptMutex pthread",
        "UserDir disabled",
        "CGIDScriptTimeout 20",
        "WSGIScriptReloading On",
        "ScoreBoardFile logs/s",
        "CoreDumpDirectory /tmp",
        "SendBufferSize 0",
        "SSLCompression off",
        "SSLSessionTickets off",
        "SSLCertificateFile /none.pem",
        "H2Direct on",
        "HttpProtocolOptions Strict",
        "MergeSlashes On",
        "AllowEncodedSlashes NoDecode",
        "BufferedLogs On",
        "ForensicLog /x",
        "LogIOTrackTTFB on",
        "MaxMemFree 2048",
        "AsyncRequestWorkerFactor 2",
        "PassEnv LANG",
        "DAVLockDB /x",
        "AcceptPathInfo On",
        "<Proxy *>\nAddDefaultCharset Off\nOptions None\n</Proxy>",
        "SSLProxyEngine On",
        "SSLProxyCipherSuite HIGH",
        "SSLProxyProtocol all",
        "<Location />\nFileETag None\n</Location>",
        "ErrorLog ${NOWHERE}/error.log",
        "SetEnvIf User-Agent \".*MSIE.*\" nokeepalive ssl-unclean-shutdown downgrade-1.0",
    ] {
        assert_eq!(risks_beside(directive), [""; 0], "{directive}");
    }
    for directive in [
        "SetEnvIf User-Agent MSIE nokeepalive is_old",
        "UserDir public_html",
        "ServerAdmin ${A}\nServerName ${A}",
    ] {
        assert_eq!(risks_beside(directive).len(), 1, "{directive}");
    }
}

#[test]
fn a_mount_of_a_worker_that_is_not_listed_is_said() {
    let import = converted(
        &[
            (
                "w.properties",
                "worker.list=work1\nworker.work1.host=10.0.0.1\n",
            ),
            ("u.properties", "/a/*=ajp13\n/b/*=work1\n"),
        ],
        None,
    );
    let notes = said(&import, Weight::Note).join("\n");
    let expected = "no worker `ajp13`; its list is `work1`";
    assert!(notes.contains(expected), "{notes}");
    assert!(notes.contains("only files of mod_jk were read"), "{notes}");
}

#[test]
fn the_own_page_of_a_source_is_no_default_page() {
    let conf = "Listen 80\nDocumentRoot /srv\n";
    for (page, is_served) in [
        ("<html><body><h1>It works!</h1></body></html>", false),
        ("<h1>Our shop</h1>", true),
    ] {
        let import = with_directories(&[("/c.conf", conf), ("/srv/index.html", page)], None);
        assert_eq!(import.text.contains("\nfiles = "), is_served, "{page}");
    }
}

#[test]
fn a_rule_with_conditions_is_one_risk_that_says_what_it_does() {
    for (flags, expected) in [
        ("[F]", "which requests this RewriteRule refuses"),
        ("[P]", "[P]"),
        ("[CO=a:b:c]", "[CO]"),
        ("[R]", "no redirect"),
        ("[PT]", "change paths"),
    ] {
        let rule = format!(
            "RewriteEngine On\nRewriteCond %{{REMOTE_USER}} a\nRewriteCond %{{ENV:x}} b\nRewriteRule ^/x(.*) /y$1 {flags}"
        );
        let risks = risks_beside(&rule);
        assert_eq!(risks.len(), 1, "{risks:?}");
        assert!(risks[0].contains(expected), "{risks:?}");
    }
}

#[test]
fn a_sign_on_is_one_risk_that_says_whether_clients_must() {
    for (directives, expected) in [
        (
            "ShibRequireSession Off\nAuthType shibboleth\nAuthName x",
            "clients must sign on",
        ),
        ("ShibRequireSession Off", "learns of none"),
    ] {
        let section = format!("<Location /in>\n{directives}\n</Location>");
        let risks = risks_beside(&section);
        assert_eq!(risks.len(), 1, "{risks:?}");
        assert!(risks[0].contains(expected), "{risks:?}");
    }
}

#[test]
fn what_no_place_of_nginx_uses_is_no_risk() {
    let conf = "server { listen 80; proxy_set_header X-A $a;\n\
        location / { index a.html; proxy_set_header Host $host; proxy_pass_header Set-Cookie; proxy_pass http://t; } }";
    let import = converted(&[("/nginx.conf", conf)], None);
    assert_eq!(said(&import, Weight::Risk), [""; 0]);
}

#[test]
fn another_backend_of_nginx_is_asked_after_the_same_statuses() {
    for (servers, given, expected) in [
        (
            2,
            "error http_502 http_503",
            Some("retry_status = [\"502\", \"503\"]"),
        ),
        (2, "off", Some("retries = 0")),
        (1, "error http_502", None),
    ] {
        let servers = "server 10.0.0.1; server 10.0.0.2;"
            .split_inclusive(';')
            .take(servers);
        let conf = format!(
            "upstream t {{\n{}\n}}\nserver {{\nlisten 80;\nssl off;\nlocation / {{\n\
             proxy_set_header Host $host;\nproxy_next_upstream {given};\nproxy_pass http://t;\n}}\n}}\n",
            servers.collect::<String>()
        );
        let import = converted(&[("/nginx.conf", &conf)], None);
        let has_key = import.text.contains("\nretr");
        assert_eq!(has_key, expected.is_some(), "{}", import.text);
        assert!(
            expected.is_none_or(|it| import.text.contains(it)),
            "{}",
            import.text
        );
        assert_eq!(said(&import, Weight::Risk), [""; 0], "{given}");
    }
}

#[test]
fn the_first_name_of_a_server_is_a_text() {
    for (names, expected) in [
        (
            "a.org b.org",
            Some("redirect = \"https://a.org{path_query}\""),
        ),
        ("*.a.org", None),
    ] {
        let conf = format!(
            "server {{\nlisten 80;\nserver_name {names};\nreturn 301 https://$server_name$request_uri;\n}}\n"
        );
        let import = converted(&[("/nginx.conf", &conf)], None);
        assert_eq!(
            import.text.contains("redirect = "),
            expected.is_some(),
            "{}",
            import.text
        );
        assert!(
            expected.is_none_or(|it| import.text.contains(it)),
            "{}",
            import.text
        );
    }
}

#[test]
fn defines_fill_placeholders_of_nginx() {
    let conf = "server {\nlisten 80;\nlocation / {\nproxy_set_header Host ${host};\nproxy_pass http://${BACKEND}:81;\n}\n}\n";
    let options = Options {
        files: vec![PathBuf::from("/nginx.conf")],
        defines: vec![("BACKEND".to_owned(), "tomcat".to_owned())],
        ..Options::default()
    };
    let memory = Memory([(PathBuf::from("/nginx.conf"), conf.to_owned())].into());
    let import = import(&memory, &options).unwrap();
    assert!(import.text.contains("http://tomcat:81"), "{}", import.text);
}
