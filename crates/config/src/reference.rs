//! The reference page, written from the descriptions of the keys.
//!
//! `cargo run -p catamaran-config --example reference > docs/reference.md` writes it anew; a test
//! fails while the page in the repository differs.

use std::fmt::Write as _;

use crate::file::{SECTIONS, upstream};
use crate::key::{Described, Preset, Section};

/// The page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut page = INTRO.to_owned();
    for section in SECTIONS {
        section_entry(section, &mut page);
    }
    page
}

fn section_entry(section: &Section, page: &mut String) {
    let text = format!("\n## `{}`\n\n{}\n\n", section.header, section.intro);
    page.push_str(&text);
    page.push_str("| Key | Value | Default |\n|---|---|---|\n");
    let keys = || section.keys.iter().filter(|key| own(section, **key));
    for key in keys() {
        let row = format!(
            "| `{}` | {} | {} |\n",
            key.name(),
            values(*key),
            preset(*key)
        );
        page.push_str(&row);
    }
    for key in keys() {
        key_entry(*key, page);
    }
}

/// Whether a section describes the key, rather than sharing it with the section that does.
pub(crate) fn own(section: &Section, key: &dyn Described) -> bool {
    let group = section.header == upstream::SECTION.header;
    !group || !crate::file::backend::SECTION.has(key.name())
}

fn key_entry(key: &dyn Described, page: &mut String) {
    let doc = key.doc();
    let (name, values, preset) = (key.name(), values(key), preset(key));
    write!(page, "\n### `{name}`\n\n{}\n\n", doc.effect).expect("a string takes all");
    write!(
        page,
        "- Value: {values}. Default: {preset}.\n- {}\n",
        doc.extremes
    )
    .expect("a string takes all");
    if !doc.elsewhere.is_empty() {
        writeln!(page, "- Elsewhere: {}.", doc.elsewhere).expect("a string takes all");
    }
    write!(page, "\n```toml\n{name} = {}\n```\n", doc.sample).expect("a string takes all");
}

/// Quoted values in code type; a `|` would end a cell of the table.
fn values(key: &dyn Described) -> String {
    let mut code = false;
    let mut text = String::new();
    for (at, part) in key.values().split('"').enumerate() {
        if at > 0 {
            text.push_str(if code { "\"`" } else { "`\"" });
            code = !code;
        }
        text.push_str(part);
    }
    text.replace('|', "\\|")
}

fn preset(key: &dyn Described) -> String {
    match key.doc().preset {
        Preset::Required => "none, it is needed".to_owned(),
        Preset::Value(value) => format!("`{value}`"),
        Preset::Unset(meaning) => meaning.to_owned(),
    }
}

const INTRO: &str = "\
<!-- Generated: cargo run -p catamaran-config --example reference > docs/reference.md -->

# The configuration file

The file is [TOML](https://toml.io). `catamaran check --config FILE` prints every fault in it at
once; `catamaran serve --config FILE` refuses a file that has any. Unknown keys are faults.
[`examples`](examples/README.md) has files to start from. Of directives of mod_jk, httpd, nginx, HAProxy and
Tomcat, `check` says what stands for them here.

- **Durations** are texts of a number and a unit: `\"200ms\"`, `\"5s\"`, `\"1.5m\"`, `\"2h\"`.
- **Sizes** are bytes, as a number (`8192`) or as a text with a unit: `\"64KiB\"` (1024), `\"64kB\"`
  (1000), likewise `MiB`, `GiB`, `MB`, `GB`; `\"1.5MiB\"` is a size, too.
- Flags of the command line take durations and sizes in the same form.
- `\"off\"` turns a limit off where that is possible.
- Relative paths start from the directory of the file that `--config` names, those of included files,
  too.
- **Upstream URLs** are `ajp://host:port`, `http://host:port`, `ajp+unix:/path`, `http+unix:/path`.

## Variables

`${NAME}` in a text is the value of an environment variable; `$${` is a literal `${`. A name has letters,
digits and `_`. A variable that is not set is a fault.

```toml
secret = \"${AJP_SECRET}\"
url = \"ajp://${TOMCAT_HOST}:8009\"
connections_max = \"${TOMCAT_THREADS}\" # a number
```

- Values are put in after the file was read as TOML: no value can end a text or add a key.
- A value that is one `${NAME}` and nothing else may also stand for a number, or for `true` or `false`.
- Messages show `${NAME}` for the value of a variable whose name has `SECRET`, `PASSWORD`, `PASSWD`,
  `TOKEN`, `KEY` or `CREDENTIAL` in it.
- Names of tables and keys have no variables, nor has what a `secret_file` holds.
- `serve` reads the environment it was started with. To change a variable, restart it; a new value in the
  file itself needs only a reload.

## `include`

Other files that belong to this one, at the top of the file, before the first table:

```toml
include = [\"conf.d/*.toml\"]
```

- A relative path starts from the directory of the file that the line stands in. `*`, `?`, `[a-z]` and
  `**` match as in a shell, no hidden files; what matches is read in the order of its name. A pattern may
  match nothing; a path without them must exist.
- Lists such as `[[listen]]`, `[[route]]` and `[[upstream.NAME.backend]]` go on in included files, behind
  the including file's. A table or key that two files define is a fault.
- Included files may include others, over 10 steps. A file that is included twice, or by itself, is a
  fault. All files together may have 16 MiB.
- A reload reads all of them again. Faults name the file and the line.
- Elsewhere: nginx `include`; httpd `IncludeOptional`, `Include`.
";
