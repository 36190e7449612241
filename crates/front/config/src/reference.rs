//! Generates the reference page from the descriptions of the keys.
//!
//! `cargo run -p catamaran-config --example reference > docs/reference.md` writes it; a test
//! fails if the page in the repository differs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::file::{OTHER_SECTIONS, SECTIONS, upstream};
use crate::key::{AnyKey, Preset, Section};

/// The reference page in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRO.to_owned();
    let entries = entries();
    for entry in &entries {
        entry.index_line(&mut page);
    }
    page.push_str(FORMS);
    for entry in &entries {
        entry.write(&mut page);
    }
    page
}

/// The entry of one table of the file on the page.
struct SectionEntry {
    section: &'static Section,
    anchor: String,
    /// The keys described in this entry, each with its anchor.
    keys: Vec<(AnyKey, String)>,
}

/// The entries of all tables, in the order of the page.
fn entries() -> Vec<SectionEntry> {
    let mut anchors = Anchors::default();
    let headings = INTRO.lines().chain(FORMS.lines());
    for heading in headings.filter(|line| line.starts_with('#')) {
        anchors.next(heading);
    }
    let entry = |section: &'static Section| SectionEntry {
        section,
        anchor: anchors.next(section.header),
        keys: (section.keys())
            .filter(|key| own(section, *key))
            .map(|key| (key, anchors.next(key.name)))
            .collect(),
    };
    let sections = SECTIONS.iter().chain(OTHER_SECTIONS);
    sections.copied().map(entry).collect()
}

/// Computes the anchors that GitHub gives to the headings of a page, in their order.
#[derive(Default)]
struct Anchors {
    /// How many headings had each text so far.
    uses: BTreeMap<String, usize>,
}

impl Anchors {
    /// The anchor of the next heading: its letters, digits, `_` and `-` in lower case, with `-`
    /// for spaces. The second heading of the same text gets `-1` at its end.
    fn next(&mut self, heading: &str) -> String {
        let mut anchor = String::new();
        for c in heading.trim_start_matches('#').trim().chars() {
            match c {
                ' ' => anchor.push('-'),
                '_' | '-' => anchor.push(c),
                c if c.is_alphanumeric() => anchor.push(c.to_ascii_lowercase()),
                _ => {}
            }
        }
        let uses = self.uses.entry(anchor.clone()).or_default();
        *uses += 1;
        match *uses {
            1 => anchor,
            count => format!("{anchor}-{}", count - 1),
        }
    }
}

impl SectionEntry {
    /// Adds the line of the index: the header of the table, and a link to each key.
    fn index_line(&self, page: &mut String) {
        let links: Vec<String> = (self.keys.iter())
            .map(|(key, anchor)| format!("[`{}`](#{anchor})", key.name))
            .collect();
        writeln!(
            page,
            "- **[`{}`](#{})**: {}",
            self.section.header,
            self.anchor,
            links.join(", ")
        )
        .expect("a string takes all");
    }

    /// Adds the section of the table: its introduction, a table of its keys, and an entry for each.
    fn write(&self, page: &mut String) {
        let text = format!(
            "\n## `{}`\n\n{}\n\n",
            self.section.header, self.section.intro
        );
        page.push_str(&text);
        page.push_str("| Key | Value | Default |\n|---|---|---|\n");
        for (key, anchor) in &self.keys {
            let row = format!(
                "| [`{}`](#{anchor}) | {} | {} |\n",
                key.name,
                values(*key),
                preset(*key)
            );
            page.push_str(&row);
        }
        for (key, _) in &self.keys {
            key_entry(*key, page);
        }
    }
}

/// Whether the key is described in this section, and not in another one with which this section
/// shares it.
pub(crate) fn own(section: &Section, key: AnyKey) -> bool {
    let group = section.header == upstream::SECTION.header;
    !group || !crate::file::backend::SECTION.has(key.name)
}

/// Adds the entry of a key: its effect, its values, its default and a sample.
fn key_entry(key: AnyKey, page: &mut String) {
    let (name, values, preset) = (key.name, values(key), preset(key));
    write!(page, "\n### `{name}`\n\n{}\n\n", key.effect).expect("a string takes all");
    write!(
        page,
        "- Value: {values}. Default: {preset}.\n- {}\n",
        key.extremes
    )
    .expect("a string takes all");
    if !key.elsewhere.is_empty() {
        writeln!(page, "- Elsewhere: {}.", key.elsewhere).expect("a string takes all");
    }
    write!(page, "\n```toml\n{name} = {}\n```\n", key.sample).expect("a string takes all");
}

/// The values of a key in Markdown: quoted values as code, and without `|`, which would end a
/// cell of the table.
fn values(key: AnyKey) -> String {
    let mut code = false;
    let mut text = String::new();
    for (at, part) in key.kind.describe().split('"').enumerate() {
        if at > 0 {
            text.push_str(if code { "\"`" } else { "`\"" });
            code = !code;
        }
        text.push_str(part);
    }
    text.replace('|', "\\|")
}

fn preset(key: AnyKey) -> String {
    match key.preset {
        Preset::Required => "none, it is needed".to_owned(),
        Preset::Value(value) => format!("`{value}`"),
        Preset::Unset(meaning) => meaning.to_owned(),
    }
}

const INTRO: &str = "\
<!-- Generated: cargo run -p catamaran-config --example reference > docs/reference.md -->

# The configuration file

The file is [TOML](https://toml.io). `catamaran check --config FILE` prints every fault in the file with its
line. If the file is no TOML, it prints the first places where it is not, and checks the rest once they are right.
`catamaran serve --config FILE` does not start with a faulty file. A key that is not on this page is a fault. If
it has the name of a directive of mod_jk, httpd, nginx, HAProxy or Tomcat, `check` names the key that stands for
it. [`examples`](examples/README.md) has files to start from.

## Index

- [Forms of values](#forms-of-values), [variables](#variables), [`include`](#include)
";

const FORMS: &str = "
## Forms of values

- A **duration** is a text of a number and a unit: `\"200ms\"`, `\"5s\"`, `\"1.5m\"`, `\"2h\"`.
- A **size** is a number of bytes (`8192`) or a text with a unit. `\"64KiB\"` is 64 times 1024 bytes,
  `\"64kB\"` is 64 times 1000. The other units are `MiB`, `GiB`, `MB` and `GB`. `\"1.5MiB\"` is valid.
- Flags of the command line take durations and sizes in the same form.
- `\"off\"` turns a limit off if the key lists it as a value.
- A relative path starts from the directory of the file that `--config` names. This also holds for paths
  in included files.
- An **upstream URL** is `ajp://host:port`, `http://host:port`, `ajp+unix:/path` or `http+unix:/path`.
  [`url`](#url) of a backend also takes `https://`.

## Variables

`${NAME}` in a text is the value of an environment variable. `$${` is a literal `${`. A name has letters,
digits and `_`. A variable that is not set is a fault.

```toml
secret = \"${AJP_SECRET}\"
url = \"ajp://${TOMCAT_HOST}:8009\"
connections_max = \"${TOMCAT_THREADS}\" # a number
```

- The front reads the file as TOML first and then puts the values in. So no value can end a text or add a
  key.
- A value that is one `${NAME}` and nothing else may also stand for a number, for `true` or for `false`.
- If the name of a variable contains `SECRET`, `PASSWORD`, `PASSWD`, `TOKEN`, `KEY` or `CREDENTIAL`,
  messages show `${NAME}` instead of its value.
- Names of tables and keys cannot have variables, and neither can the content of a `secret_file`.
- `serve` reads its environment once, when it starts. To change a variable, restart `serve`. To change a
  value in the file, reload.

## `include`

`include` names other files that belong to this one. It stands at the top of the file, before the first
table:

```toml
include = [\"conf.d/*.toml\"]
```

- A relative path starts from the directory of the file that has the line.
- `*`, `?`, `[a-z]` and `**` match as in a shell, without hidden files. Matching files are read in the
  order of their names. A pattern may match nothing; a path without a pattern must exist.
- Lists such as `[[listen]]`, `[[route]]` and `[[upstream.NAME.backend]]` continue in included files: their
  elements follow those of the including file. A table or key that two files define is a fault.
- Included files may include others, up to 10 levels deep. A file that is included twice, or by itself, is
  a fault. All files together may have 16 MiB.
- A reload reads all of them again. Messages name the file and the line.
- Elsewhere: nginx `include`; httpd `IncludeOptional`, `Include`.
";
