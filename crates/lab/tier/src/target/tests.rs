use super::*;
use crate::builtin::{builtin, builtin_names};
use crate::server::Server;
use crate::then;

fn faults(text: &str) -> String {
    Target::parse("a.toml", text, &[]).unwrap_err().to_string()
}

fn rendered(target: &Target, set: &[(&str, &str)]) -> Result<Server, Report> {
    let mut names = vec!["catamaran", "jars", "clients", "memcached_clients", "jdk"];
    names.extend(then::all().iter().map(|software| software.name.as_str()));
    with_programs(target, set, &names)
}

fn with_programs(target: &Target, set: &[(&str, &str)], names: &[&str]) -> Result<Server, Report> {
    let settings = target.settings(set)?;
    let address = |(number, name): (u16, String)| (name, ([127, 0, 0, 1], number).into());
    let ports: Vec<_> = (1..).zip(target.ports(&settings)?).map(address).collect();
    let program = |name: &&str| ((*name).to_owned(), PathBuf::from("/c"));
    let programs: Programs = names.iter().map(program).collect();
    let place = Place {
        directory: Path::new("/d"),
        ports: &ports,
        programs: &programs,
    };
    target.render(&settings, &place)
}

fn httpd(set: &[(&str, &str)]) -> Result<Server, Report> {
    rendered(&builtin("httpd").unwrap(), set)
}

/// The text of the server's configuration file.
fn conf(server: &Server) -> &str {
    let file = server
        .files
        .iter()
        .find(|file| file.path.ends_with("httpd.conf"));
    &file.unwrap().text
}

#[test]
fn each_of_ours_renders_by_its_defaults() {
    for name in builtin_names() {
        let target = builtin(name).unwrap();
        assert_eq!(target.name(), name);
        let backend = [("backend", "http://127.0.0.1:80")];
        let set = if name == "front" { &backend[..] } else { &[] };
        let server = rendered(&target, set).unwrap();
        assert!(
            !server.command.is_empty() && !server.needs.is_empty(),
            "{name}"
        );
        assert!(!server.version.is_empty(), "{name}");
        assert!(target.port_names().contains(&server.ready.port), "{name}");
        for param in target.params() {
            assert!(!param.meaning.is_empty(), "{name}: {}", param.name);
            assert!(!target.ignores(param.name), "{name}: {}", param.name);
        }
    }
}

#[test]
fn servers_of_then_refuse_what_their_release_cannot() {
    let target = builtin("httpd-then").unwrap();
    let server = rendered(
        &target,
        &[("release", "2.0.52-worker"), ("max_workers", "8000")],
    )
    .unwrap();
    assert!(
        conf(&server).contains("ServerLimit 320\n"),
        "{}",
        conf(&server)
    );
    let jk = [
        ("release", "2.2.21"),
        ("module", "mod_jk"),
        ("backend", "ajp://127.0.0.1:1 ajp://127.0.0.1:2"),
    ];
    let server = rendered(&target, &jk).unwrap();
    assert!(
        conf(&server).contains("worker.app.lock=O\n"),
        "{}",
        conf(&server)
    );
    let worker = [
        ("release", "2.2.21-worker"),
        ("threads_per_child", "32"),
        ("max_workers", "4096"),
        ("backend", "ajp://127.0.0.1:1"),
    ];
    let server = rendered(&target, &worker).unwrap();
    for line in ["ServerLimit 128\n", "JkMount /* app\n"] {
        assert!(conf(&server).contains(line), "{}", conf(&server));
    }
    assert!(server.command[2].contains("-DFOREGROUND"), "{server:?}");
    let old = [
        ("release", "2.0.63"),
        ("module", "mod_proxy_ajp"),
        ("backend", "ajp://127.0.0.1:1"),
    ];
    let fault = rendered(&target, &old).unwrap_err().to_string();
    assert!(
        fault.contains("httpd 2.0.63 is built without mod_proxy_ajp: 2.2.21 has it"),
        "{fault}"
    );
}

#[test]
fn a_faulty_file_is_told_with_its_lines() {
    let base = "name = \"a\"\nports = [\"http\"]\ncommand = []\n";
    assert_eq!(
        faults("name = \"a\"\nports = 3\n"),
        "a.toml:2:9: fault: invalid type: integer `3`, expected a sequence\n    2 | ports = 3\n      |         ^\n"
    );
    let both = format!(
        "{base}[param.one]\ntype = \"count\"\ndefault = -1\nmeaning = \"\"\n[param.two]\nvalues = \
         [\"on\"]\ndefault = \"off\"\nmeaning = \"\"\n[[file]]\npath = \"a\"\ntemplate = \"a.j2\"\n"
    );
    assert_eq!(
        faults(&both),
        "a.toml:4:1: fault: one = -1: it is a whole number from 0\n    4 | [param.one]\n      | ^^^^^^^^^^^\n\
         a.toml:8:1: fault: two = off: it is one of on\n    8 | [param.two]\n      | ^^^^^^^^^^^\n\
         a.toml: fault: there is no template a.j2\n"
    );
    let neither = format!("{base}[[file]]\npath = \"a\"\n");
    assert_eq!(
        faults(&neither),
        "a.toml: fault: the file a needs either `text` or `template`\n"
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
        lines[0].starts_with("nginx.toml: fault: head_timeout = soon: "),
        "{told}"
    );
    assert_eq!(
        lines[1],
        "nginx.toml: fault: workers = two: it is a whole number from 0"
    );
    assert!(
        lines[2].starts_with("nginx.toml: fault: no parameter `worker`; did you mean `workers`?"),
        "{told}"
    );
}

#[test]
fn keys_that_do_not_go_together_are_told() {
    let text = "name = \"a\"\nports = []\ncommand = []\nneeds = [{ package = \"a\" }]\nready = { port \
                = \"http\", within = \"soon\" }\nreload = { done = \"\" }\nstop = { signal = \"STOP\" }\n";
    let told = faults(text);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 6, "{told}");
    assert_eq!(
        lines[0],
        "a.toml: fault: a need is either `package` with `proof`, or `program`"
    );
    assert_eq!(lines[1], "a.toml: fault: ready: there is no port http");
    assert_eq!(lines[2], "a.toml: fault: it has no port");
    assert!(
        lines[3].starts_with("a.toml: fault: ready.within: "),
        "{told}"
    );
    assert!(
        lines[4].starts_with("a.toml: fault: no signal STOP: "),
        "{told}"
    );
    assert_eq!(
        lines[5],
        "a.toml: fault: reload needs either `signal` or `command`"
    );
}

#[test]
fn what_a_template_does_not_know_is_a_fault() {
    let text = "name = \"a\"\nports = [\"http\"]\ncommand = [\"{{ program.a }}\"]\n[[file]]\npath = \
                \"../a\"\ntext = \"{{ http }}\"\n";
    let target = Target::parse("a.toml", text, &[]).unwrap();
    let settings = target.settings(&[]).unwrap();
    let place = Place {
        directory: Path::new("/d"),
        ports: &[],
        programs: &Programs::new(),
    };
    let told = target.render(&settings, &place).unwrap_err().to_string();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    assert_eq!(lines[0], "a.toml: fault: no address for port http");
    assert_eq!(
        lines[1],
        "a.toml: fault: the path ../a leads out of the directory"
    );
    assert!(
        lines[2].ends_with("is undefined, in {{ program.a }}"),
        "{told}"
    );
}

#[test]
fn a_port_is_there_as_often_as_there_are_copies() {
    let text = "name = \"a\"\nports = [\"http\", \"ajp\"]\ncopies = \"{{ pairs }}\"\ncommand = [\"{{ http \
                }}\", \"{{ all.ajp|join(' ') }}\"]\n[param.pairs]\ntype = \"count\"\ndefault = 2\nmeaning \
                = \"\"\n";
    let target = Target::parse("a.toml", text, &[]).unwrap();
    let server = rendered(&target, &[]).unwrap();
    assert_eq!(server.command, ["127.0.0.1:1", "127.0.0.1:3 127.0.0.1:4"]);
    let settings = target.settings(&[("pairs", "3")]).unwrap();
    assert_eq!(target.ports(&settings).unwrap().len(), 6);
}

#[test]
fn servers_that_take_each_others_place_accept_the_same_settings() {
    let set = [
        "mpm",
        "module",
        "backend",
        "protocol",
        "reuse",
        "keep_alive",
        "keep_alive_requests",
        "pool",
        "max_workers",
        "start_workers",
        "trust_cgi_length",
        "workers",
        "connections",
        "head_timeout",
        "balance",
        "access_log",
        "ready_path",
    ];
    for name in ["nginx", "httpd", "front"] {
        let target = builtin(name).unwrap();
        for param in set {
            assert!(target.accepts(param), "{name}: {param}");
        }
    }
    let nginx = builtin("nginx").unwrap();
    let settings = nginx
        .settings(&[("mpm", "event"), ("workers", "2")])
        .unwrap();
    let found: Vec<_> = settings
        .iter()
        .filter(|(name, _)| *name == "workers" || *name == "mpm")
        .collect();
    assert_eq!(found, [("workers", "2".to_owned())]);
}

#[test]
fn a_backend_is_a_url() {
    for wrong in [
        "127.0.0.1:80",
        "https://127.0.0.1:80",
        "http://127.0.0.1",
        "http+unix:a",
    ] {
        let set = [("backend", wrong)];
        let fault = builtin("nginx")
            .unwrap()
            .settings(&set)
            .unwrap_err()
            .to_string();
        assert!(fault.contains("is not http://HOST:PORT"), "{fault}");
    }
    let fault = rendered(&builtin("nginx").unwrap(), &[("backend", "ajp://a:1")]).unwrap_err();
    let fault = fault.to_string();
    assert!(
        fault.contains("nginx speaks no ajp without its module nginx_ajp"),
        "{fault}"
    );
    let target = builtin("nginx").unwrap();
    let server = with_programs(&target, &[("backend", "ajp://a:1")], &["nginx_ajp"]).unwrap();
    let conf = &server.files[0].text;
    for line in ["load_module /c;", "ajp_pass app;", "server a:1;"] {
        assert!(conf.contains(line), "{conf}");
    }
    let proofs: Vec<_> = server.needs.iter().map(|need| &need.proof).collect();
    assert!(proofs.contains(&&"/c".into()), "{proofs:?}");
}

#[test]
fn httpd_reaches_a_backend_in_three_ways() {
    for (module, backend, expected, packages) in [
        (
            "mod_jk",
            "ajp://127.0.0.1:8009",
            "JkWorkerProperty worker.app.port=8009\n",
            2,
        ),
        (
            "auto",
            "ajp://127.0.0.1:8009",
            "ProxyPass / \"ajp://127.0.0.1:8009/\" retry=0 secret=x\n",
            1,
        ),
        (
            "mod_proxy_http",
            "http://127.0.0.1:8009",
            "ProxyPass / \"http://127.0.0.1:8009/\" retry=0 secret=x\n",
            1,
        ),
        ("auto", "ajp+unix:/a", "\"unix:/a|ajp://localhost/\"", 1),
    ] {
        let set = [
            ("module", module),
            ("backend", backend),
            ("options", "secret=x"),
        ];
        let server = httpd(&set).unwrap();
        assert!(conf(&server).contains(expected), "{}", conf(&server));
        assert!(conf(&server).contains("secret=x"));
        assert_eq!(server.needs.len(), packages);
    }
    let fault = |module, backend| {
        let set = [("module", module), ("backend", backend)];
        httpd(&set).unwrap_err().to_string()
    };
    let told = fault("mod_jk", "ajp+unix:/a");
    assert!(told.contains("`unix:/a` is not HOST:PORT"), "{told}");
    let told = fault("mod_jk", "http://a:1");
    assert!(
        told.contains("mod_jk speaks no http to http://a:1"),
        "{told}"
    );
}

#[test]
fn fronts_speak_tls_if_they_have_a_certificate() {
    for name in ["front", "nginx", "haproxy"] {
        let files = |certificate| {
            let set = [("backend", "http://a:1"), ("certificate", certificate)];
            rendered(&builtin(name).unwrap(), &set).unwrap().files
        };
        let names_it = |certificate| {
            let files = files(certificate);
            files.iter().any(|file| file.text.contains("/d/own.pem"))
        };
        assert!(names_it("/d/own.pem"), "{name}");
        let clear = files("");
        let tls = |text: &str| text.contains("ssl") || text.contains("tls");
        assert!(!clear.iter().any(|file| tls(&file.text)), "{name}");
    }
}

#[test]
fn httpd_has_the_workers_that_are_asked_for() {
    let set = |mpm| {
        [
            ("mpm", mpm),
            ("start_workers", "320"),
            ("max_workers", "410"),
        ]
    };
    let prefork = httpd(&set("prefork")).unwrap();
    assert!(
        conf(&prefork).contains("StartServers 320\n"),
        "{}",
        conf(&prefork)
    );
    assert!(conf(&prefork).contains("MaxRequestWorkers 410\n"));
    for mpm in ["worker", "event"] {
        let mut all = set(mpm).to_vec();
        let few = httpd(&all).unwrap();
        all.push(("threads_per_child", "25"));
        let many = httpd(&all).unwrap();
        for (made, lines) in [
            (
                few,
                ["StartServers 2", "MaxRequestWorkers 410", "ServerLimit 2"],
            ),
            (
                many,
                ["StartServers 13", "MaxRequestWorkers 425", "ServerLimit 17"],
            ),
        ] {
            for line in lines {
                assert!(
                    conf(&made).contains(&format!("{line}\n")),
                    "{}",
                    conf(&made)
                );
            }
        }
    }
}
