//! Recipes of docs/sign-on.md: services that sign users on, each before the front as the page has it.

use super::{Reader, block, blocks, line};

/// The section of the page with this heading.
fn section(heading: &str) -> &'static str {
    let page = include_str!("../../../../../docs/sign-on.md");
    let (_, section) = page.split_once(&format!("\n{heading}\n")).unwrap();
    section.split("\n## ").next().unwrap()
}

/// A reader with a Tomcat whose application `/app` tells who the user is, over AJP at 8009 and over HTTP at 8081.
fn reader() -> Reader {
    let reader = Reader::new();
    let connectors = "<Connector protocol=\"AJP/1.3\" address=\"127.0.0.1\" port=\"8009\" secretRequired=\"false\" \
                      tomcatAuthentication=\"false\"/><Connector port=\"8081\"/>";
    reader.saves_tomcat("base", connectors, "defaultHost=\"localhost\"");
    let page = include_str!("../../../webapp/attributes.jsp");
    reader.saves("base/webapps/app/index.jsp", page);
    let welcome = "<web-app xmlns=\"https://jakarta.ee/xml/ns/jakartaee\" version=\"6.0\"><welcome-file-list>\
                   <welcome-file>index.jsp</welcome-file></welcome-file-list></web-app>";
    reader.saves("base/webapps/app/WEB-INF/web.xml", welcome);
    reader
}

#[test]
fn oauth2_proxy_signs_a_user_on() {
    let page = include_str!("../../../../../docs/sign-on.md");
    let section = section("## oauth2-proxy");
    let reader = reader();
    reader.has_go_program("oauth2-proxy");
    let by_ajp = block(page, "toml", 0);
    reader.saves("catamaran.toml", by_ajp);
    let by_http = by_ajp.replace("ajp://127.0.0.1:8009", "http://127.0.0.1:8081");
    reader.saves("http.toml", &by_http.replace(":8080\"", ":8090\""));
    let starts = block(section, "sh", 0);
    let (signs_in, asks) = block(section, "sh", 1).split_once('\n').unwrap();
    let asks_by_http = asks.replace(":8080", ":8090");
    let printed = reader.types(&format!(
        "{TOMCAT}{starts}
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         catamaran serve --config http.toml > access2.log 2> front2.log &
         answer http://127.0.0.1:4180/ping > /dev/null
         says 'listening on'
         until grep --quiet 'listening on' front2.log; do sleep 0.1; done
         status --header 'X-User: root' http://127.0.0.1:8080/app/
         {signs_in}
         {asks}
         echo
         {asks_by_http}"
    ));
    let (by_ajp, by_http) = printed.split_once("\n\n").unwrap();
    assert!(by_ajp.starts_with("401\nremote_user=ann\n"), "{printed}");
    // Nobody tells a servlet behind HTTP its user but by the field.
    assert!(by_http.starts_with("remote_user=null\n"), "{printed}");
    for told in [by_ajp, by_http] {
        assert!(told.contains("header.x-user=ann"), "{printed}");
        assert!(
            !told.contains("_oauth2_proxy"),
            "the cookie is hidden: {printed}"
        );
    }
}

/// Starts an httpd by the page, with this way to sign on, and then Tomcat and a front with this file.
fn httpd(reader: &Reader, kind: &str, config: &str) -> String {
    let page = section("## httpd");
    reader.saves("sso.conf", block(page, "apache", 0));
    reader.saves("sso-by.conf", block(section(kind), "apache", 0));
    reader.saves("catamaran.toml", config);
    let (_, starts) = line_with(page, "apache2 -f ");
    format!(
        "mount -t tmpfs tmpfs /etc/apache2
         mount -t tmpfs tmpfs /var/log
         mkdir /var/log/apache2
         cp sso.conf sso-by.conf /etc/apache2
         {TOMCAT}starts() {{ {starts}; }}
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         says 'listening on'
         up() {{ until [ \"$(status http://127.0.0.1:4181/auth)\" = 401 ]; do sleep 0.1; done; }}
        "
    )
}

/// The text before the first use of a command of the page, and the command.
fn line_with<'p>(page: &'p str, start: &str) -> (&'p str, &'p str) {
    let (before, _) = page.split_once(start).unwrap();
    let command = page[before.len()..].split(['\n', '`']).next().unwrap();
    (before, command)
}

#[test]
fn an_httpd_signs_a_user_on_by_a_password() {
    let page = section("## httpd");
    let reader = reader();
    let prepared = httpd(&reader, "### A password", block(page, "toml", 0));
    let commands = block(section("### A password"), "sh", 0);
    let printed = reader.types(&format!(
        "{prepared}{commands}
         up
         status http://127.0.0.1:8080/app/
         status --user ann:guess http://127.0.0.1:8080/app/
         curl --silent --fail --user 'ann:correct horse' --header 'X-User: root' http://127.0.0.1:8080/app/"
    ));
    assert!(
        printed.starts_with("401\n401\nremote_user=ann\n"),
        "{printed}"
    );
    assert!(printed.contains("header.x-user=ann"), "{printed}");
}

#[test]
fn an_httpd_signs_a_user_on_at_a_provider_of_openid_connect() {
    let page = section("## httpd");
    let reader = reader();
    let base = block(page, "toml", 0);
    let (common, _) = base.split_once("[auth.staff]").unwrap();
    let (_, route) = base.split_once("[[route]]").unwrap();
    let own = block(section("### OpenID Connect"), "toml", 0);
    let config = format!("{common}{own}[[route]]{route}");
    let prepared = httpd(&reader, "### OpenID Connect", &config);
    reader.saves("provider.py", include_str!("provider.py"));
    let printed = reader.types(&format!(
        "{prepared}python3 provider.py 2> provider.log &
         answer http://127.0.0.1:8085/jwks > /dev/null
         starts
         up
         status http://www.example.org:8080/app/
         curl --silent --fail --location --cookie-jar jar --cookie jar --header 'Accept: text/html' 'http://www.example.org:8080/app/?a=1'"
    ));
    assert!(printed.starts_with("401\nremote_user=ann\n"), "{printed}");
    assert!(printed.contains("header.x-user=ann"), "{printed}");
    assert!(
        !printed.contains("mod_auth_openidc"),
        "the cookies are hidden: {printed}"
    );
}

#[test]
fn an_httpd_signs_a_user_of_a_kerberos_realm_on() {
    let page = section("## httpd");
    let reader = reader();
    let prepared = httpd(&reader, "### Kerberos", block(page, "toml", 0));
    let asks = line(section("### Kerberos"), "curl --negotiate");
    reader.saves("krb5.conf", KERBEROS);
    let printed = reader.types(&format!(
        "{prepared}export KRB5_CONFIG=$PWD/krb5.conf KRB5CCNAME=FILE:$PWD/tickets
         mount -t tmpfs tmpfs /etc/krb5kdc
         mount -t tmpfs tmpfs /var/lib/krb5kdc
         {{
             kdb5_util create -s -r EXAMPLE.ORG -P master
             kadmin.local addprinc -pw secret ann
             kadmin.local addprinc -randkey HTTP/www.example.org
             kadmin.local ktadd -k /etc/apache2/http.keytab HTTP/www.example.org
             chown www-data /etc/apache2/http.keytab
             krb5kdc
             kinit ann <<< secret
             cp krb5.conf /run
         }} > kerberos.log 2>&1
         KRB5_CONFIG=/run/krb5.conf starts
         up
         status http://www.example.org:8080/app/
         {asks}app/"
    ));
    assert!(printed.starts_with("401\nremote_user=ann\n"), "{printed}");
    assert!(printed.contains("header.x-user=ann"), "{printed}");
}

/// The provider is missing: only a client without a session is answered.
#[test]
fn an_httpd_with_shibboleth_lets_nobody_in_without_a_session() {
    let page = section("## httpd");
    let reader = reader();
    let prepared = httpd(&reader, "### Shibboleth", block(page, "toml", 0));
    let printed = reader.types(&format!(
        "{prepared}mkdir /run/shibboleth /var/log/shibboleth
         shibd -f -F > shibd.log 2>&1 &
         until test -S /run/shibboleth/shibd.sock; do sleep 0.1; done
         starts
         up
         status --header 'Shib-Session-ID: 1' --header 'Remote-User: root' http://127.0.0.1:8080/app/"
    ));
    assert_eq!(printed, "401\n");
}

#[test]
fn each_recipe_of_httpd_has_a_test() {
    assert_eq!(blocks(section("## httpd"), "apache").len(), 5);
}

/// Starts Tomcat and waits for it; `status URL` is the status of its response.
const TOMCAT: &str = "mkdir base/temp base/logs base/work
    CATALINA_BASE=$PWD/base /usr/share/tomcat10/bin/catalina.sh run > tomcat.log 2>&1 &
    answer http://127.0.0.1:8081/app/ > /dev/null
    status() { curl --silent --output /dev/null --write-out '%{http_code}\\n' \"$@\"; }
";

const KERBEROS: &str = "[libdefaults]
default_realm = EXAMPLE.ORG
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
[realms]
EXAMPLE.ORG = {
kdc = 127.0.0.1
}
";
