//! An experiment on one server of ours, which is held against another binary, or against itself.

/// What a test changes of it.
pub(crate) struct OneServer<'a> {
    pub(crate) name: &'a str,
    /// `app` or `bare`.
    pub(crate) target: &'a str,
    /// Least and most of the warm-up, and the measured span.
    pub(crate) times: [&'a str; 2],
    pub(crate) rounds: u32,
    /// What the claim is on.
    pub(crate) claims: &'a str,
    /// The keys of `[measure]`.
    pub(crate) measure: &'a str,
}

impl OneServer<'_> {
    /// The experiment's file.
    pub(crate) fn text(&self) -> String {
        let Self {
            name,
            target,
            times: [warm, time],
            rounds,
            claims,
            measure,
        } = self;
        format!(
            r#"
name = "{name}"
question = "What does one server take?"
control = {{ side = "one" }}
[factor]
side = ["one"]
[[server]]
name = "app"
target = "{target}"
core = 1
[load]
url = "{{{{ server.app.http }}}}/"
core = 0
clients = 8
keep_alive = "on"
time = "{time}"
warm = {{ at_least = "{warm}", at_most = "{warm}" }}
[expect]
status = 200
body_bytes = 347
kept = "on"
[measure]
{measure}
[run]
rounds = {rounds}
seed = 1
[[claim]]
says = "One is one"
measure = "{claims}"
level = {{ side = "one" }}
over = {{ side = "one" }}
expect = "same"
"#
        )
    }
}
