//! Directories that the front serves, and those that it must not.

use super::*;

#[test]
fn a_document_root_is_served_with_the_guards_of_its_directories() {
    let conf = "Listen 80\nDocumentRoot /srv\nDirectoryIndex index.html start.html\nProxyPass /app ajp://t:8009/app\n\
                Alias /pics /var/pics\n<Directory />\nRequire all denied\n</Directory>\n\
                <Directory /srv>\nRequire all granted\n</Directory>\n\
                <Directory /srv/private>\nRequire ip 10.0.0.1\n</Directory>\n\
                <Directory /var/pics>\nRequire all granted\n</Directory>\n<Files \"*.bak\">\nRequire all denied\n</Files>\n\
                <FilesMatch \"^\\.ht\">\nRequire all denied\n</FilesMatch>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/app.css", ""),
        ("/srv/private/x.html", ""),
        ("/var/pics/a.png", ""),
    ];
    let import = with_directories(&files, None);
    let keys = "charset = \"off\"; hide = \"*.bak\"; index = [\"index.html\", \"start.html\"]";
    assert_eq!(
        routes(&import),
        [
            "path = \"/app\"; upstream = \"t\"".to_owned(),
            format!("path = \"/pics\"; files = \"/var/pics\"; rewrite = \"/\"; {keys}"),
            format!("path = \"/private\"; files = \"/srv\"; {keys}; allow = \"10.0.0.1\""),
            format!("path = \"/\"; files = \"/srv\"; {keys}"),
        ]
    );
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
}

#[test]
fn files_have_the_charset_of_their_server() {
    let conf = "Listen 80\nDocumentRoot /srv\nAddDefaultCharset UTF-8\nAddCharset ISO-8859-2 .pl\n\
                <Directory /srv>\nRequire all granted\n</Directory>\n";
    let files = [
        ("/httpd.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/app.css", ""),
    ];
    let import = with_directories(&files, None);
    assert!(
        import.text.contains("charset = \"utf-8\""),
        "{}",
        import.text
    );
    let fate = |name: &str| {
        let found = import.directives.iter().find(|it| it.name == name);
        found
            .map(|it| (it.fate, it.reason.contains("`types`")))
            .unwrap()
    };
    assert_eq!(fate("AddDefaultCharset"), (Fate::Mapped, false));
    assert_eq!(fate("AddCharset"), (Fate::Dropped, true));
}

#[test]
fn what_the_front_would_show_too_much_of_is_not_served() {
    for (name, section) in [
        ("/srv/index.php", ""),
        (
            "/srv/sub/.htaccess",
            "<Directory /srv>\nAllowOverride All\n</Directory>\n",
        ),
        (
            "/srv/page.html",
            "<Directory /srv>\nRequire valid-user\n</Directory>\n",
        ),
        (
            "/srv/page.html",
            "<FilesMatch \"secret|key\">\nRequire all denied\n</FilesMatch>\n",
        ),
        (
            "/srv/page.html",
            "<Directory /srv>\nRewriteRule x y\n</Directory>\n",
        ),
    ] {
        let conf =
            format!("Listen 80\nDocumentRoot /srv\n{section}ProxyPass /app ajp://t:8009/app\n");
        let import = with_directories(&[("/httpd.conf", &conf), (name, "")], None);
        assert!(
            !import.text.contains("files = "),
            "{name} {section}\n{}",
            import.text
        );
        assert!(import.risks() > 0, "{name} {section}");
        let kept = with_directories(
            &[("/httpd.conf", &conf), (name, "")],
            Some("http://127.0.0.1:8081"),
        );
        assert!(
            kept.text.contains("path = \"/\"\nupstream = \"kept\""),
            "{}",
            kept.text
        );
    }
}

#[test]
fn files_of_nginx_go_before_an_application_or_have_a_page() {
    let conf = "server {\nlisten 80;\nroot /srv;\nproxy_set_header Host $host;\n\
                location / { try_files $uri $uri/ /index.html; }\n\
                location /app/ { try_files $uri @tomcat; }\n\
                location /pics/ { alias /var/pics/; expires 30d; }\n\
                location @tomcat { proxy_pass http://t:80; }\n}\n";
    let files = [
        ("/nginx.conf", conf),
        ("/srv/index.html", ""),
        ("/srv/app.css", ""),
        ("/var/pics/a.png", ""),
    ];
    let import = with_directories(&files, None);
    assert_eq!(
        routes(&import),
        [
            "path = \"/pics\"; exact = true; files = \"/srv\"; charset = \"off\"; fallback = \"index.html\"",
            "path = \"/pics\"; files = \"/var/pics\"; rewrite = \"/\"; cache_control = \"max-age=2592000\"; charset = \"off\"",
            "path = \"/app\"; exact = true; files = \"/srv\"; charset = \"off\"; fallback = \"index.html\"",
            "path = \"/app\"; files = \"/srv\"; charset = \"off\"; upstream = \"t\"",
            "path = \"/\"; files = \"/srv\"; charset = \"off\"; fallback = \"index.html\"",
        ]
    );
}
