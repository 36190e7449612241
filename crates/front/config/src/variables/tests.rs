use catamaran_proxy::config::{BackendConfig, ListenAddress};

use super::*;
use crate::load::parse_with;

fn environment(name: &str) -> Option<OsString> {
    let value: OsString = match name {
        "PORT" => "8080".into(),
        "COUNT" => "7".into(),
        "SWITCH" => "false".into(),
        "NAME" => "blue".into(),
        "EMPTY" => "".into(),
        "QUOTE" => "a\"\nweight = 9\n[server]\nvia = \"x".into(),
        "SECRET" => "hunter2".into(),
        "BAD_SECRET" => "hunter2\u{1}".into(),
        "BYTES" => std::os::unix::ffi::OsStringExt::from_vec(vec![0xff]),
        _ => return None,
    };
    Some(value)
}

#[test]
fn variables_stand_in_texts() {
    for (text, expected) in [
        ("plain $NAME {x} $", Ok("plain $NAME {x} $")),
        ("${NAME}", Ok("blue")),
        ("a${NAME}b${PORT}", Ok("ablueb8080")),
        ("${EMPTY}", Ok("")),
        ("$${NAME}", Ok("${NAME}")),
        ("$$${NAME}", Ok("$${NAME}")),
        ("$${${NAME}", Ok("${blue")),
        ("${NAME}}", Ok("blue}")),
        ("${NAME", Err(Fault::Open)),
        ("${}", Err(Fault::Name)),
        ("${1}", Err(Fault::Name)),
        ("${NAME:-x}", Err(Fault::Name)),
        ("${ NAME }", Err(Fault::Name)),
        ("${NONE}", Err(Fault::Unset("NONE".to_owned()))),
        ("${BYTES}", Err(Fault::NotUtf8("BYTES".to_owned()))),
    ] {
        let expanded = expand(text, &environment).map(Cow::into_owned);
        assert_eq!(expanded, expected.map(str::to_owned), "{text}");
    }
}

/// Loads a file whose one backend has these keys, and returns the backend.
fn backend(keys: &str) -> Result<BackendConfig, String> {
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:${{PORT}}\"\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"ajp://127.0.0.1:8009\"\n{keys}\n"
    );
    let loaded = parse_with("x.toml", &text, &environment).map_err(|it| it.to_string())?;
    let local = ListenAddress::Tcp(([127, 0, 0, 1], 8080).into());
    assert_eq!(loaded.config.listeners[0].address, local);
    Ok(loaded.config.upstreams[0].backends[0].clone())
}

#[test]
fn values_are_known_to_be_hidden() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
                [route.request_headers]\nset = { Authorization = \"Basic ${SECRET}\", X-Name = \"${NAME}\" }\n\
                [admin]\naddress = \"127.0.0.1:9090\"\n[[upstream.app.backend]]\nurl = \"http://127.0.0.1:8080\"\n";
    let loaded = parse_with("x.toml", text, &environment).unwrap();
    let hidden = loaded.config.admin.unwrap().hidden;
    let named = hidden.iter().map(|it| (&it.name[..], it.value.as_bytes()));
    let expected: [(&str, &[u8]); 2] = [("${NAME}", b"blue"), ("${SECRET}", b"hunter2")];
    assert!(named.eq(expected), "{hidden:?}");
}

#[test]
fn a_variable_alone_may_be_a_number_or_a_switch() {
    let read = backend("connections_max = \"${COUNT}\"\nping_fresh = \"${SWITCH}\"").unwrap();
    assert_eq!((read.connections_max, read.ajp.ping_fresh), (7, false));
    // A key that takes a text gets one.
    assert_eq!(backend("name = \"${COUNT}\"").unwrap().name, "7");
    assert_eq!(
        backend("name = \"${NAME}-${COUNT}\"").unwrap().name,
        "blue-7"
    );
    for keys in [
        "connections_max = \"1${COUNT}\"",
        "connections_max = \"7\"",
        "connections_max = \"${NAME}\"",
        "connections_max = \"${EMPTY}\"",
    ] {
        let said = backend(keys).unwrap_err();
        assert!(
            said.contains("must be a whole number without quotes"),
            "{said}"
        );
    }
}

#[test]
fn a_value_cannot_become_more_than_a_value() {
    let said = backend("name = \"${QUOTE}\"").unwrap_err();
    assert!(
        said.starts_with("x.toml:7:8: fault: `name` must be"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 3, "one fault: {said}");
}

#[test]
fn an_unset_variable_is_named_with_its_line() {
    let said = backend("name = \"${NONE}\"\nsecret = \"x${NONE_TOO}\"").unwrap_err();
    for expected in [
        "x.toml:7:8: fault: the environment variable `NONE` is not set; set it where",
        "x.toml:8:10: fault: the environment variable `NONE_TOO` is not set",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let said = backend("connections_max = \"${NONE}\"").unwrap_err();
    assert_eq!(
        said.matches("fault").count(),
        1,
        "only the variable: {said}"
    );
}

#[test]
fn no_secret_is_shown() {
    let read = backend("secret = \"${SECRET}\"").unwrap();
    assert_eq!(
        read.ajp.secret.as_ref().map(|it| it.as_bytes()),
        Some(&b"hunter2"[..])
    );
    let said = backend("secret = \"${BAD_SECRET}\"").unwrap_err();
    assert!(
        said.contains("control character") && !said.contains("hunter2"),
        "{said}"
    );
}

/// Secret variables that are used by mistake in the place of others.
#[test]
fn no_secret_is_shown_where_it_does_not_belong() {
    for keys in [
        "fallback = \"${SECRET}\"",
        "[[route]]\npath = \"/x\"\nupstream = \"${SECRET}\"",
        "[server]\ntrusted_proxies = [\"${SECRET}\"]",
    ] {
        let said = backend(keys).unwrap_err();
        assert!(said.contains("`${SECRET}`"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    let said = backend("fallback = \"${NAME}\"").unwrap_err();
    assert!(said.contains("`fallback` is `blue`"), "{said}");
}

#[test]
fn names_of_tables_and_keys_are_no_values() {
    let said = backend("\"${NAME}\" = 1").unwrap_err();
    assert!(said.contains("has no key `${NAME}`"), "{said}");
}
