//! Tests what follows from Tomcat's connectors (`--tomcat`).

use super::*;

/// Converts a balancer with two members, together with these `server.xml` files.
fn before(servers: &[&str]) -> Import {
    let workers = "worker.list=lb\nworker.lb.type=lb\nworker.lb.balance_workers=blue,green\n\
                   worker.blue.host=10.0.0.1\nworker.blue.reply_timeout=1000\nworker.blue.max_packet_size=65536\n\
                   worker.green.host=10.0.0.2\nworker.green.reply_timeout=1000\n";
    let names: Vec<String> = (0..servers.len()).map(|it| format!("/{it}.xml")).collect();
    let texts = [("/w.properties", workers), ("/u.properties", "/*=lb\n")];
    let texts = texts.into_iter().chain(
        names
            .iter()
            .map(String::as_str)
            .zip(servers.iter().copied()),
    );
    let files = texts
        .map(|(name, text)| (PathBuf::from(name), text.to_owned()))
        .collect();
    let options = Options {
        files: vec![
            PathBuf::from("/w.properties"),
            PathBuf::from("/u.properties"),
        ],
        tomcats: names.iter().map(PathBuf::from).collect(),
        inline_secrets: true,
        ..Options::default()
    };
    let import = import(&Memory(files), &options).unwrap();
    if let Err(report) = catamaran_config::parse("catamaran.toml", &import.text) {
        panic!("{report}\n{}", import.text);
    }
    adds_up(import)
}

fn server(route: &str, attributes: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<Server port='8005'>\n<!-- <Connector port='1' protocol='AJP/1.3'/> -->\n\
         <Service name='Catalina'>\n<Executor name='pool' maxThreads='150'/>\n\
         <Connector protocol='AJP/1.3' port='8009' {attributes}/>\n\
         <Engine name='Catalina' jvmRoute='{route}'/>\n</Service>\n</Server>\n"
    )
}

#[test]
fn each_member_gets_what_its_tomcat_demands() {
    let blue = server(
        "blue",
        "secret='s1' packetSize='16384' maxThreads='40' keepAliveTimeout='10000'",
    );
    let green = server("green", "secret='s2' executor='pool'");
    let import = before(&[&blue, &green]);
    let blocks: Vec<&str> = import
        .text
        .split("[[upstream.lb.backend]]")
        .skip(1)
        .collect();
    let (blue, green) = (blocks[0], blocks[1].split("[[route]]").next().unwrap());
    for line in [
        "secret = \"s1\"",
        "packet_size = 16384",
        "connections_max = 40",
        "idle_timeout = \"9s\"",
    ] {
        assert!(
            blue.contains(line) && !green.contains(line),
            "{line}\n{}",
            import.text
        );
    }
    for line in ["secret = \"s2\"", "connections_max = 150"] {
        assert!(
            green.contains(line) && !blue.contains(line),
            "{line}\n{}",
            import.text
        );
    }
    let notes = said(&import, Weight::Note);
    let packet = |it: &String| it.starts_with("/0.xml:6: ") && it.contains("packetSize");
    assert!(notes.iter().any(packet), "{notes:?}");
    // `keepAliveTimeout` of AJP is for ever.
    assert!(!green.contains("idle_timeout"), "{}", import.text);
    assert_eq!(said(&import, Weight::Risk), Vec::<String>::new());
}

#[test]
fn a_route_that_no_member_has_is_a_risk_with_its_line() {
    let import = before(&[&server("red", "secret='s'")]);
    let risks = said(&import, Weight::Risk);
    assert_eq!(risks.len(), 1, "{risks:?}");
    assert!(
        risks[0].starts_with("/0.xml:7: ") && risks[0].contains("`red`"),
        "{risks:?}"
    );
    assert_eq!(
        import.text.matches("secret = \"s\"").count(),
        1,
        "{}",
        import.text
    );
}

#[test]
fn tomcats_that_cannot_be_told_apart_give_nothing() {
    let import = before(&[&server("x", "secret='s1'"), &server("y", "secret='s2'")]);
    assert!(!import.text.contains("secret ="), "{}", import.text);
    let notes = said(&import, Weight::Note);
    assert!(
        notes.iter().any(|it| it.contains("several of --tomcat")),
        "{notes:?}"
    );
}

#[test]
fn what_is_no_xml_is_refused_with_its_line() {
    let options = Options {
        files: vec![PathBuf::from("/u.properties")],
        tomcats: vec![PathBuf::from("/t.xml")],
        ..Options::default()
    };
    let texts = [
        ("/u.properties", "/*=lb\n"),
        ("/t.xml", "<Server>\n<Service>\n</Server>\n"),
    ];
    let files = texts.map(|(name, text)| (PathBuf::from(name), text.to_owned()));
    let error = import(&Memory(files.into()), &options).unwrap_err();
    assert!(error.to_string().starts_with("/t.xml:3: "), "{error}");
}
