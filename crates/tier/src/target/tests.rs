use super::*;

fn faults(text: &str) -> String {
    Target::parse("a.toml", text, &[]).unwrap_err().to_string()
}

fn place(ports: &[(&'static str, SocketAddr)]) -> Place<'static> {
    let ports = ports.to_vec().leak();
    Place {
        directory: Path::new("/d"),
        ports,
    }
}

fn http() -> (&'static str, SocketAddr) {
    ("http", "127.0.0.1:80".parse().unwrap())
}

fn httpd(set: &[(&str, &str)]) -> Result<Server, Faults> {
    let httpd = builtin("httpd").unwrap();
    let settings = httpd.settings(set)?;
    httpd.render(&settings, &place(&[http()]))
}

#[test]
fn each_of_ours_renders_by_its_defaults() {
    for (name, ..) in BUILTIN {
        let target = builtin(name).unwrap();
        assert_eq!(target.name(), *name);
        let settings = target.settings(&[]).unwrap();
        let server = target.render(&settings, &place(&[http()])).unwrap();
        assert!(
            !server.command.is_empty() && !server.needs.is_empty() && !server.version.is_empty()
        );
    }
}

#[test]
fn a_faulty_file_is_told_with_its_lines() {
    let base = "name = \"a\"\nports = []\ncommand = []\n";
    assert_eq!(
        faults("name = \"a\"\nports = 3\n"),
        "a.toml:2: invalid type: integer `3`, expected a sequence"
    );
    let both = format!(
        "{base}[param.one]\ntype = \"count\"\ndefault = -1\nmeaning = \"\"\n[param.two]\nvalues = \
         [\"on\"]\ndefault = \"off\"\nmeaning = \"\"\n[[file]]\npath = \"a\"\ntemplate = \"a.j2\"\n"
    );
    assert_eq!(
        faults(&both),
        "a.toml:4: one = -1: it is a whole number from 0\na.toml:8: two = off: it is one of on\n\
         a.toml: there is no template a.j2"
    );
    let neither = format!("{base}[[file]]\npath = \"a\"\n");
    assert_eq!(
        faults(&neither),
        "a.toml: the file a needs either `text` or `template`"
    );
}

#[test]
fn all_faulty_settings_are_told_at_once() {
    let nginx = builtin("nginx").unwrap();
    let set = [
        ("workers", "two"),
        ("head_timeout", "soon"),
        ("worker", "2"),
    ];
    let told = nginx.settings(&set).unwrap_err().to_string();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    assert!(
        lines[0].starts_with("nginx.toml: head_timeout = soon: "),
        "{told}"
    );
    assert_eq!(
        lines[1],
        "nginx.toml: workers = two: it is a whole number from 0"
    );
    assert!(
        lines[2].starts_with("nginx.toml: no parameter `worker`; there are backend "),
        "{told}"
    );
}

#[test]
fn what_a_template_does_not_know_is_a_fault() {
    let text = "name = \"a\"\nports = [\"http\"]\ncommand = [\"{{ program }}\"]\n[[file]]\npath = \
                \"../a\"\ntext = \"{{ http }}\"\n";
    let target = Target::parse("a.toml", text, &[]).unwrap();
    let settings = target.settings(&[]).unwrap();
    let told = target
        .render(&settings, &place(&[]))
        .unwrap_err()
        .to_string();
    assert_eq!(
        told,
        "a.toml: no address for port http\na.toml: `program` is undefined, in {{ program }}\n\
         a.toml: the path ../a leads out of the directory"
    );
}

#[test]
fn httpd_reaches_a_backend_in_three_ways() {
    let backend = ("backend", "127.0.0.1:8009");
    for (module, expected, packages) in [
        ("mod_jk", "JkWorkerProperty worker.app.port=8009\n", 2),
        (
            "mod_proxy_ajp",
            "ProxyPass / \"ajp://127.0.0.1:8009/\" retry=0 secret=x\n",
            1,
        ),
        (
            "mod_proxy_http",
            "ProxyPass / \"http://127.0.0.1:8009/\" retry=0 secret=x\n",
            1,
        ),
    ] {
        let server = httpd(&[("module", module), backend, ("options", "secret=x")]).unwrap();
        assert!(
            server.files[0].text.contains(expected),
            "{}",
            server.files[0].text
        );
        assert!(server.files[0].text.contains("secret=x"));
        assert_eq!(server.needs.len(), packages);
    }
    let unix = httpd(&[("module", "mod_proxy_ajp"), ("backend", "unix:/a")]).unwrap();
    assert!(unix.files[0].text.contains("\"unix:/a|ajp://localhost/\""));
    let fault = httpd(&[("module", "mod_jk"), ("backend", "unix:/a")])
        .unwrap_err()
        .to_string();
    assert!(fault.contains("`unix:/a` is not HOST:PORT"), "{fault}");
}
