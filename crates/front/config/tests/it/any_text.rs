//! Whatever the text, reading it ends, and ends in an answer.

use catamaran_config::{parse, parse_listen_address, parse_upstream_url};
use proptest::prelude::*;

/// Pieces of a configuration, so that arbitrary texts get past the syntax.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[server]\n",
        "[[listen]]\n",
        "[upstream.a]\n",
        "[[upstream.a.backend]]\n",
        "[upstream]\n",
        "[[route]]\n",
        "[log]\n",
        "[admin]\n",
        "workers",
        "address",
        "url",
        "secret",
        "host",
        "path",
        "upstream",
        "status",
        "backend",
        "body_max",
        "include",
        "${HOME}",
        "$${",
        " = ",
        "\n",
        "\"",
        "'",
        "\"\"\"",
        "#",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        "5",
        "-1",
        "1e9",
        "true",
        "\"5s\"",
        "\"64KiB\"",
        "\"off\"",
        "\"ajp://10.0.0.1:8009\"",
        "\"127.0.0.1:0\"",
        "\"a\"",
        "ä",
        "\u{0}",
        "\r\n",
        "\t",
        "1979-05-27",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn read(text: &str) {
    match parse("any.toml", text) {
        Ok(loaded) => assert_eq!(loaded.report.faults(), 0),
        Err(report) => {
            assert!(report.faults() > 0);
            assert!(report.to_string().starts_with("any.toml:"));
        }
    }
}

proptest! {
    #[test]
    fn arbitrary_text_is_answered(text in "(?s).{0,300}") {
        read(&text);
    }

    #[test]
    fn arbitrary_configuration_is_answered(text in pieces()) {
        read(&text);
    }

    #[test]
    fn arbitrary_addresses_are_answered(text in "(ajp|http)?(\\+unix)?[:/\\[\\]@.*0-9a-zä]{0,40}") {
        let _ = parse_upstream_url(&text).map_err(|error| error.to_string());
        let _ = parse_listen_address(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn a_cut_or_changed_example_is_answered(
        cut in 0..EXAMPLE.len(),
        byte in any::<u8>(),
        at in 0..EXAMPLE.len(),
    ) {
        read(&EXAMPLE[..EXAMPLE.floor_char_boundary(cut)]);
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        bytes[at] = byte;
        read(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn deep_nesting_is_answered() {
    for text in ["[", "a=[", "a={b=", "a."] {
        read(&text.repeat(50_000));
    }
}

#[test]
fn many_faults_are_answered() {
    for lines in [
        "a\n",
        "a = b\n",
        "[[listen]]\naddress = \"127.0.0.1:80\"\n",
        "[[route]]\nupstream = \"b\"\n",
        "[[upstream.a.backend]]\nurl = \"ajp://a:1\"\n",
    ] {
        read(&lines.repeat(200_000 / lines.len()));
    }
    let upstreams: String = (0..5000).map(|n| format!("[upstream.a{n}]\n")).collect();
    let routes: String = (0..5000)
        .map(|n| format!("[[route]]\nupstream = \"b{n}\"\n"))
        .collect();
    read(&(upstreams + &routes));
}

const EXAMPLE: &str = include_str!("../../../../../docs/examples/tomcat.toml");
