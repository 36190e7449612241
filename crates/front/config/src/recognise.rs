//! Files of other servers, recognised as such.
//!
//! Read as TOML such a file has a fault on every line, and none of them helps. It is looked at only when
//! its syntax is broken, and taken for another server's only if most of its lines are.

use crate::report::Finding;

/// What a file is, if it is plainly no TOML.
pub(crate) fn foreign(text: &str) -> Option<Finding> {
    let lines: Vec<Line<'_>> = Lines::new(text).take(LINES_MAX).collect();
    let first = lines.first()?;
    let kind = KINDS.iter().find(|kind| (kind.has)(&lines))?;
    let place = first.start..first.start + first.text.len();
    let message = format!("this is {}, not TOML", kind.what);
    Some(Finding::fault(message, place).hint(kind.hint))
}

/// A line with something on it, and where it begins.
struct Line<'t> {
    start: usize,
    text: &'t str,
    is_indented: bool,
}

impl Line<'_> {
    fn first(&self) -> &str {
        self.text.split_whitespace().next().unwrap_or_default()
    }
}

/// The lines of a text that are no comments.
struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let line = rest.lines().next().unwrap_or_default();
            let start = self.at;
            self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
            let text = line.trim();
            if !text.is_empty() && !text.starts_with('#') {
                let blank = line.len() - line.trim_start().len();
                return Some(Line {
                    start: start + blank,
                    text,
                    is_indented: blank > 0,
                });
            }
        }
        None
    }
}

struct Kind {
    what: &'static str,
    hint: &'static str,
    has: fn(&[Line<'_>]) -> bool,
}

/// In the order in which they are tried.
static KINDS: &[Kind] = &[
    Kind {
        what: "an XML file such as Tomcat's server.xml",
        hint: "name each <Connector> of it by the `url` of a [[upstream.NAME.backend]]; \
               docs/containers.md has the settings of both sides",
        has: |lines| {
            let starts = [
                "<?xml",
                "<!--",
                "<!DOCTYPE",
                "<Server",
                "<Context",
                "<web-app",
            ];
            starts.iter().any(|start| lines[0].text.starts_with(start))
        },
    },
    Kind {
        what: "a `workers.properties` of mod_jk",
        hint: "`catamaran import FILE...` converts it, beside `uriworkermap.properties` or httpd's files; \
               docs/import.md shows how",
        has: |lines| {
            most(lines, |line| {
                line.text.starts_with("worker.") && line.text.contains('=')
            })
        },
    },
    Kind {
        what: "a `uriworkermap.properties` of mod_jk",
        hint: "`catamaran import FILE...` converts it, beside `workers.properties`; docs/import.md shows how",
        has: |lines| {
            most(lines, |line| {
                line.text.starts_with(['/', '!', '*']) && line.text.contains('=')
            })
        },
    },
    Kind {
        what: "a unit of systemd",
        hint: "name the file that its ExecStart has behind --config; docs/systemd.md has a unit",
        has: |lines| {
            let sections = ["[Unit]", "[Service]", "[Socket]", "[Install]"];
            sections.contains(&lines[0].text)
        },
    },
    Kind {
        what: "the properties of a Spring Boot application",
        hint: "the front has a file of its own, with the application's address as `url` of a \
               [[upstream.NAME.backend]]; docs/containers.md has the settings of both sides",
        has: |lines| {
            let names = ["server.", "spring.", "management.", "logging."];
            most(lines, |line| {
                names.iter().any(|name| line.text.starts_with(name)) && line.text.contains('=')
            })
        },
    },
    Kind {
        what: "a VCL of Varnish",
        hint: "write each of its `backend`s as an [upstream.NAME]; docs/examples has files to begin with",
        has: |lines| lines[0].first() == "vcl",
    },
    Kind {
        what: "a configuration of lighttpd",
        hint: "write its `proxy.server` as an [upstream.NAME] with [[route]]s; docs/reference.md names the \
               directives of lighttpd beside the keys",
        has: |lines| {
            let names = [
                "server.", "$HTTP[", "$SERVER[", "proxy.", "mod_", "include ",
            ];
            let is_its = |line: &Line<'_>| names.iter().any(|name| line.text.starts_with(name));
            let has_sign = |line: &Line<'_>| {
                ["= (", "+=", "=> ", "=="]
                    .iter()
                    .any(|it| line.text.contains(it))
            };
            lines.iter().any(|line| is_its(line) && has_sign(line))
        },
    },
    Kind {
        what: "a configuration of nginx",
        hint: "`catamaran import FILE` converts it; docs/import.md shows how, and docs/reference.md names the \
               directives of nginx beside the keys",
        has: |lines| {
            let is_block = |line: &Line<'_>| {
                line.text.ends_with('{') || line.text == "}" || line.text.ends_with("; }")
            };
            let is_statement = |line: &Line<'_>| line.text.contains(';');
            most(lines, |line| line.text.ends_with(';') || is_block(line))
                && lines.iter().any(is_statement)
        },
    },
    Kind {
        what: "a configuration of HAProxy",
        hint: "write its `frontend` as a [[listen]] with [[route]]s, and its `backend` as an \
               [upstream.NAME]; docs/reference.md names the keywords of HAProxy beside the keys",
        has: |lines| {
            let sections = [
                "global", "defaults", "frontend", "backend", "listen", "userlist",
            ];
            let opens = |line: &Line<'_>| !line.is_indented && sections.contains(&line.first());
            let is_plain = |line: &Line<'_>| !line.text.contains('=') || line.is_indented;
            let is_ours = |line: &Line<'_>| line.text.starts_with('[') || line.text.contains(" = ");
            lines.first().is_some_and(opens)
                && lines.iter().all(is_plain)
                && !most(lines, is_ours)
                && !lines.iter().any(|line| line.text.ends_with('{'))
        },
    },
    Kind {
        what: "a Caddyfile",
        hint: "write its sites as a [[listen]] with [[route]]s, and each `reverse_proxy` as an \
               [upstream.NAME]; docs/examples has files to begin with",
        has: |lines| {
            let is_site = |line: &Line<'_>| line.text.ends_with('{') && !line.text.contains('=');
            let has_blocks = lines.iter().any(is_site) && lines.iter().any(|line| line.text == "}");
            // A single site needs no braces: its address stands alone on the first line.
            let words = [
                "reverse_proxy",
                "file_server",
                "php_fastcgi",
                "respond",
                "encode",
                "root",
            ];
            let is_word = |line: &Line<'_>| words.contains(&line.first());
            let is_short = lines[0].text == lines[0].first() && lines.iter().any(is_word);
            (has_blocks || is_short)
                && !lines
                    .iter()
                    .any(|line| line.text.starts_with(['[', '"']) || line.text.contains(" = "))
        },
    },
    Kind {
        what: "a configuration of Apache httpd",
        hint: "`catamaran import FILE` converts it; docs/import.md shows how, and docs/reference.md names the \
               directives of httpd beside the keys",
        has: |lines| {
            most(lines, |line| {
                let is_name = line
                    .first()
                    .starts_with(|first: char| first.is_ascii_uppercase())
                    && !line.text.contains(" = ");
                line.text.starts_with(['<', '&']) || is_name
            })
        },
    },
    Kind {
        what: "JSON",
        hint: "write it in TOML: docs/examples has files to begin with",
        has: |lines| {
            let opens =
                |text: &str| ["{", "[", "[{", "{}"].contains(&text) || text.starts_with("{\"");
            opens(lines[0].text)
        },
    },
    Kind {
        what: "YAML",
        hint: "write it in TOML: docs/examples has files to begin with",
        has: |lines| {
            let is_key = |text: &str| {
                let key = text.split_once(':').map(|(key, rest)| (key.trim(), rest));
                key.is_some_and(|(key, rest)| {
                    let is_word = |it: u8| it.is_ascii_alphanumeric() || b"_-.\"' /".contains(&it);
                    !key.is_empty()
                        && key.bytes().all(is_word)
                        && (rest.is_empty() || rest.starts_with(' '))
                })
            };
            most(lines, |line| {
                let text = line.text.strip_prefix("- ").unwrap_or(line.text);
                line.text == "---" || line.text.starts_with("- ") || is_key(text)
            })
        },
    },
];

fn most(lines: &[Line<'_>], is: impl Fn(&Line<'_>) -> bool) -> bool {
    2 * lines.iter().filter(|line| is(line)).count() > lines.len()
}

/// Lines that are looked at.
const LINES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        let finding = foreign(text)?;
        assert_eq!(finding.span.map(|it| it.is_empty()), Some(false));
        Some(finding.message)
    }

    #[test]
    fn files_of_others_are_named() {
        for (text, what) in [
            (
                "# mine\nworker.list=lb\nworker.lb.type=lb\n",
                "`workers.properties`",
            ),
            ("/app/*=lb\n!/app/*.gif=lb\n", "`uriworkermap.properties`"),
            ("http {\n  server {\n    listen 80;\n  }\n}\n", "nginx"),
            (
                "upstream a { server 127.0.0.1:8080; }\nserver { listen 80; }\nuser www;\n",
                "nginx",
            ),
            (
                "global\n  daemon\nfrontend f\n  bind :80\n  default_backend b\n",
                "HAProxy",
            ),
            (
                "example.org {\n  reverse_proxy localhost:8080\n}\n",
                "Caddyfile",
            ),
            ("example.org\n\nreverse_proxy localhost:8080\n", "Caddyfile"),
            (
                "vcl 4.1;\nbackend default {\n  .host = \"a\";\n}\n",
                "Varnish",
            ),
            (
                "server.modules = ( \"mod_proxy\" )\n$HTTP[\"host\"] == \"x\" {\n}\n",
                "lighttpd",
            ),
            (
                "server.port=8080\nspring.application.name=shop\n",
                "Spring Boot",
            ),
            (
                "[Unit]\nDescription=A front\n[Service]\nExecStart=/usr/bin/catamaran serve\n",
                "systemd",
            ),
            (
                "<VirtualHost *:80>\n  ProxyPass / ajp://a:8009/\n</VirtualHost>\n",
                "Apache httpd",
            ),
            (
                "LoadModule jk_module mod_jk.so\nJkMount /* lb\n",
                "Apache httpd",
            ),
            (
                "<?xml version='1.0'?>\n<Server port='8005'>\n</Server>\n",
                "server.xml",
            ),
            ("{\n  \"apps\": {}\n}\n", "JSON"),
            ("http:\n  routers:\n    a:\n      rule: Host(`x`)\n", "YAML"),
            ("---\nserver:\n  port: 8080\n", "YAML"),
        ] {
            let said = said(text).unwrap_or_default();
            assert!(said.contains(what), "{text}: {said}");
        }
    }

    #[test]
    fn a_file_of_ours_with_slips_is_none_of_them() {
        for text in [
            "",
            "# nothing\n",
            "[[listen]]\naddress = 127.0.0.1:80\n[[route]]\nupstream = tomcat\n",
            "[server]\nworkers: 2\n[[listen]]\naddress = \"127.0.0.1:80\"\n",
            "[upstream.a]\noption httpchk\n[[upstream.a.backend]]\nurl = \"ajp://a:8009\"\n",
            "[[route]]\nProxyPass / ajp://a:8009/\nupstream = \"a\"\n[upstream.a]\n",
            "[[listen]]\naddress = \"127.0.0.1:80\";\n[[route]]\nstatus = 404\n",
            "[[route]]\nallow = [\n  \"10.0.0.0/8\",\nstatus = 404\n",
        ] {
            assert_eq!(said(text), None, "{text}");
        }
    }
}
