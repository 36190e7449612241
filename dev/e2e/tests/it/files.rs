//! Files before a real Tomcat, and the commands of `docs/files.md` as they are printed there.

use std::fs;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{Connector, Front, Tomcat, catamaran};
use catamaran_testkit::{Deadline, Process};

use crate::through::value;

/// A front that serves the files of this directory before a Tomcat.
fn beside_tomcat(files: &Path) -> Front {
    let tomcat = Tomcat::shared().unwrap();
    let tables = format!(
        "[[route]]\npath = \"/\"\nfiles = \"{}\"\nupstream = \"app\"\n{}",
        files.display(),
        tomcat.backend_table("app", Connector::Ajp)
    );
    Front::with_tables(&tables).unwrap()
}

/// An exploded WAR: its pages are the front's, what runs is Tomcat's.
#[test]
fn files_of_a_war_are_served_and_its_application_runs() {
    let war = tempfile::tempdir().unwrap();
    fs::create_dir(war.path().join("WEB-INF")).unwrap();
    for (name, text) in [
        ("page.html", "of the front"),
        ("snoop.jsp", "source of a JSP"),
        ("WEB-INF/web.xml", "descriptor"),
    ] {
        fs::write(war.path().join(name), text).unwrap();
    }
    let front = beside_tomcat(war.path());
    assert_eq!(front.get("/page.html").unwrap().text(), "of the front");
    let jsp = front.get("/snoop.jsp?a=1").unwrap().text();
    assert_eq!(value(&jsp, "query"), "a=1");
    let of_tomcat = include_str!("../../webapp/page.html");
    let with_session = front.get("/page.html;jsessionid=1").unwrap();
    assert_eq!(with_session.text(), of_tomcat);
    for path in ["/WEB-INF/web.xml", "/none.html"] {
        let missing = front.get(path).unwrap();
        assert_eq!(missing.status, 404, "{path}");
        assert!(missing.text().contains("Apache Tomcat"), "{path}");
    }
    let posted = front.head("POST", "/method.jsp", "Content-Length: 0\r\n");
    assert_eq!(value(&front.ask(posted).unwrap().text(), "method"), "POST");
}

/// The lines of the page that release a version, in a directory of this test.
#[test]
fn a_release_is_the_swap_of_a_link() {
    let top = tempfile::tempdir().unwrap();
    let app = top.path();
    for release in ["release-1", "release-2"] {
        fs::create_dir(app.join(release)).unwrap();
        fs::write(app.join(release).join("index.html"), release).unwrap();
    }
    std::os::unix::fs::symlink(app.join("release-1"), app.join("current")).unwrap();
    let front = Front::with_tables(&format!(
        "[[route]]\nfiles = \"{}\"\nfallback = \"index.html\"\n",
        app.join("current").display()
    ))
    .unwrap();
    assert_eq!(front.get("/").unwrap().text(), "release-1");
    let lines = DOCUMENT
        .lines()
        .filter(|line| line.starts_with("ln -s") || line.starts_with("mv -T"));
    let script: Vec<String> = lines
        .map(|line| line.replace("/srv/app", &app.display().to_string()))
        .collect();
    assert_eq!(script.len(), 2);
    let mut shell = Process::spawn(Command::new("sh").arg("-ec").arg(script.join("\n"))).unwrap();
    assert!(shell.wait(Deadline::default()).unwrap().success());
    // Each worker remembers for a moment where the link led.
    for path in ["/", "/orders/7"] {
        let is_new = || {
            let page = front.ask(front.head("GET", path, "Accept: text/html\r\n"));
            (page.unwrap().text() == "release-2").then_some(())
        };
        Deadline::default().poll("the new release", is_new).unwrap();
    }
}

#[test]
fn explain_names_the_file() {
    let top = tempfile::tempdir().unwrap();
    let front = Front::with_tables(&format!(
        "[[route]]\nfiles = \"{}\"\n",
        top.path().display()
    ))
    .unwrap();
    let line = DOCUMENT
        .lines()
        .find(|line| line.starts_with("catamaran explain"));
    let url = line.unwrap().rsplit(' ').next().unwrap();
    let config = front
        .directory()
        .join("catamaran.toml")
        .display()
        .to_string();
    let mut process = catamaran(&["explain", url, "--config", &config]).unwrap();
    assert!(process.wait(Deadline::default()).unwrap().success());
    let file = top.path().join("assets/app.js");
    let said = process.stdout();
    assert!(said.contains(&file.display().to_string()), "{said}");
}

const DOCUMENT: &str = include_str!("../../../../docs/files.md");
