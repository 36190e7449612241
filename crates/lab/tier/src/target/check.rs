//! Checks values of parameters, and whether the keys of a target's file go together.

use std::time::Duration;

use catamaran_toml_file::report::{Finding, Report};
use minijinja::Value;

use crate::file::{File, Kind, ParamKeys};
use crate::server::Signal;
use crate::template;

/// Converts `text` to the parameter's value in templates, or says why it is not allowed.
pub(super) fn value(name: &str, param: &ParamKeys, text: &str) -> Result<Value, String> {
    let wrong = |what: String| Err(format!("{name} = {text}: {what}"));
    if !param.values.is_empty() && !param.values.iter().any(|value| value == text) {
        return wrong(format!("it is one of {}", param.values.join(" ")));
    }
    match param.kind {
        Kind::Text => Ok(Value::from(text)),
        Kind::Count => match text.parse::<u64>() {
            Ok(count) => Ok(Value::from(count)),
            Err(_) => wrong("it is a whole number from 0".to_owned()),
        },
        Kind::Duration => match catamaran_units::parse_duration(text) {
            Ok(_) => Ok(Value::from(text)),
            Err(error) => wrong(error.to_string()),
        },
        Kind::Urls => {
            let urls: Vec<&str> = text.split_whitespace().collect();
            let faulty = urls.iter().find(|url| template::backend(url).is_none());
            match faulty {
                Some(url) => wrong(format!(
                    "`{url}` is not http://HOST:PORT, ajp://HOST:PORT, http+unix:/PATH or ajp+unix:/PATH"
                )),
                None => Ok(urls.into_iter().map(Value::from).collect()),
            }
        }
    }
}

/// Reports faults of a file's keys that their types do not show, such as two keys of which one is allowed.
pub(super) fn keys(file: &File, report: &mut Report) {
    let mut fault = |what: String| report.push(Finding::absence(what));
    for server_file in &file.file {
        if server_file.text.is_some() == server_file.template.is_some() {
            let path = &server_file.path;
            fault(format!("the file {path} needs either `text` or `template`"));
        }
    }
    for need in &file.needs {
        let keys = (&need.package, &need.proof, &need.program);
        if !matches!(keys, (Some(_), Some(_), None) | (None, None, Some(_))) {
            fault("a need is either `package` with `proof`, or `program`".to_owned());
        }
    }
    if let Some(port) = &file.ready.port
        && !file.ports.contains(port)
    {
        fault(format!("ready: there is no port {port}"));
    }
    if file.ports.is_empty() {
        fault("it has no port".to_owned());
    }
    for (key, text) in [
        ("ready.within", &file.ready.within),
        ("stop.patience", &file.stop.patience),
    ] {
        if let Some(error) = text.as_deref().and_then(|text| duration(text).err()) {
            fault(format!("{key}: {error}"));
        }
    }
    let actions = [&file.reload, &file.upgrade].into_iter().flatten();
    let signals = actions.filter_map(|action| action.signal.as_deref());
    for name in signals.chain(file.stop.signal.as_deref()) {
        if Signal::named(name).is_none() {
            fault(format!(
                "no signal {name}: there are TERM INT QUIT HUP USR1 USR2 WINCH"
            ));
        }
    }
    for (key, action) in [("reload", &file.reload), ("upgrade", &file.upgrade)] {
        if let Some(action) = action {
            let has_command = !action.command.is_empty();
            if action.signal.is_some() == has_command {
                fault(format!("{key} needs either `signal` or `command`"));
            }
        }
    }
}

/// Reads a duration from a key that is not a template.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    catamaran_units::parse_duration(text).map_err(|error| error.to_string())
}
