//! CORS as a real browser obeys it: pages of two sites, and an application on a real Tomcat behind the front.

use catamaran_e2e::{Browser, Connector, Front, Tomcat};
use catamaran_testkit::address;
use catamaran_testkit::tls::Authority;
use tempfile::TempDir;

/// A browser, a front that has the pages of all sites, and one before Tomcat that allows those of one site.
struct Sites {
    browser: Browser,
    pages: Front,
    api: Front,
    _certificates: TempDir,
}

/// A front over TLS with these tables.
fn over_tls(certificates: &TempDir, tables: &str) -> Front {
    let at = certificates.path().display();
    Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [tls.www]\n[[tls.www.certificate]]\nchain = \"{at}/www.pem\"\nkey = \"{at}/www.key\"\n{tables}"
    ))
    .unwrap()
}

impl Sites {
    fn start() -> Self {
        let certificates = tempfile::tempdir().unwrap();
        let authority = Authority::new("authority").unwrap();
        authority
            .issue(certificates.path(), "www", &[APP, API, EVIL])
            .unwrap();
        let page = "<!doctype html><link rel=icon href=data:,><title>page</title>";
        let pages = over_tls(
            &certificates,
            &format!("[[route]]\nstatus = 200\ntext = \"{page}\"\ntext_type = \"text/html\"\n"),
        );
        let origin = format!("https://{APP}:{}", pages.address().port());
        let cors = |keys: &str| format!("[route.cors]\norigins = \"{origin}\"\n{keys}\n");
        let tomcat = Tomcat::shared().unwrap();
        let api = over_tls(
            &certificates,
            &[
                "[[route]]\nupstream = \"tomcat\"\n",
                &cors("methods = [\"GET\", \"PUT\"]\nheaders = \"X-Own\"\nexpose = \"X-Total\""),
                "[route.response_headers]\nset = { X-Total = \"7\" }\n",
                "[[route]]\npath = \"/session.jsp\"\nupstream = \"tomcat\"\n",
                &cors("credentials = true"),
                "[[route]]\npath = \"/page.html\"\nupstream = \"tomcat\"\n",
                "[[route]]\npath = \"/dead\"\nupstream = \"dead\"\n",
                &cors(""),
                "[[route]]\npath = \"/none\"\nstatus = 404\n",
                &cors(""),
                &tomcat.backend_table("tomcat", Connector::Ajp),
                &format!(
                    "[[upstream.dead.backend]]\nurl = \"ajp://{}\"\n",
                    address::refusing().unwrap()
                ),
            ]
            .concat(),
        );
        Self {
            browser: Browser::start(&[APP, API, EVIL]).unwrap(),
            pages,
            api,
            _certificates: certificates,
        }
    }

    /// Opens a page of this site.
    fn open(&mut self, site: &str) {
        let url = format!("https://{site}:{}/", self.pages.address().port());
        self.browser.open(&url).unwrap();
        self.browser.wait("document.title").unwrap();
    }

    /// What a script of the page gets of the application: status and text, or why it gets nothing.
    fn fetch(&mut self, path: &str, options: &str) -> String {
        self.read(
            path,
            options,
            "async it => `${it.status} ${await it.text()}`",
        )
    }

    /// What a script makes of a response.
    fn read(&mut self, path: &str, options: &str, read: &str) -> String {
        let port = self.api.address().port();
        let got = self.browser.evaluate(&format!(
            "fetch('https://{API}:{port}{path}', {{{options}}}).then({read}).catch(error => `${{error}}`)"
        ));
        got.unwrap().as_str().unwrap_or("null").to_owned()
    }
}

#[test]
fn a_browser_lets_pages_of_allowed_origins_read_and_no_others() {
    let mut sites = Sites::start();
    sites.open(APP);
    assert_eq!(sites.fetch("/method.jsp", ""), "200 method=GET\n");
    let own = "method: 'PUT', headers: {'X-Own': '1'}";
    assert_eq!(sites.fetch("/method.jsp?own", own), "200 method=PUT\n");
    let total = "it => it.headers.get('x-total') + ' ' + it.headers.get('date')";
    assert_eq!(sites.read("/method.jsp", "", total), "7 null");
    // A script reads an error of the front, too.
    assert!(sites.fetch("/dead", "").starts_with("503 "));
    assert!(sites.fetch("/none", "").starts_with("404 "));
    for (path, options) in [
        ("/method.jsp", "method: 'DELETE'"),
        ("/method.jsp", "method: 'PUT', headers: {'X-Other': '1'}"),
        ("/method.jsp", "credentials: 'include'"),
        ("/page.html", ""),
    ] {
        assert_eq!(sites.fetch(path, options), FAILED, "{path} {options}");
    }
    sites
        .api
        .wait_for_log("reason=client:cors-preflight")
        .unwrap();
    sites.api.wait_for_log("reason=client:cors-method").unwrap();
    sites
        .api
        .wait_for_log("reason=client:cors-headers")
        .unwrap();
    sites.open(EVIL);
    assert_eq!(sites.fetch("/method.jsp", ""), FAILED);
    assert_eq!(sites.fetch("/none", ""), FAILED);
    assert_eq!(sites.fetch("/method.jsp?evil", own), FAILED);
    let line = sites.api.wait_for_log("reason=client:cors-origin").unwrap();
    assert!(line.contains("\"OPTIONS /method.jsp?evil "), "{line}");
    // What needed a preflight was never sent.
    sites.api.wait_for_log("\"PUT /method.jsp?own ").unwrap();
    let log = sites.api.log();
    let count = |what: &str| log.matches(what).count();
    assert_eq!(
        (
            count("\"PUT /method.jsp?own "),
            count("\"PUT /method.jsp?evil ")
        ),
        (1, 0)
    );
}

#[test]
fn a_browser_sends_and_keeps_cookies_where_credentials_are_allowed() {
    let mut sites = Sites::start();
    sites.open(APP);
    let visits = "async it => (await it.text()).match(/visits=(\\d+)/)[1]";
    let with = "credentials: 'include'";
    assert_eq!(sites.read("/session.jsp", with, visits), "1");
    assert_eq!(sites.read("/session.jsp", with, visits), "2");
    assert_eq!(sites.read("/session.jsp", "", visits), "1");
    assert_eq!(sites.read("/session.jsp", with, visits), "3");
    sites.open(EVIL);
    assert_eq!(sites.read("/session.jsp", with, visits), FAILED);
}

const APP: &str = "app.shop.test";
const API: &str = "api.shop.test";
const EVIL: &str = "evil.test";

/// What a script is told of a response that it may not read.
const FAILED: &str = "TypeError: Failed to fetch";
