//! The commands of docs/install.md and docs/tls.md, so that they can be run as a reader would type them.

/// The commands of all blocks for a shell; what a command is given as its input belongs to it.
pub(super) fn commands(page: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_block = false;
    let mut input = None;
    for line in page.lines() {
        if let Some(end_mark) = input {
            let command = commands.last_mut().expect("an input belongs to a command");
            command.push('\n');
            command.push_str(line);
            input = (line != end_mark).then_some(end_mark);
        } else if line.starts_with("```") {
            is_block = !is_block && line == "```sh";
        } else if is_block {
            commands.push(line.to_owned());
            // `<<'END'` begins an input that a line `END` ends.
            let mark = line.split_once("<<'").map(|(_, mark)| mark);
            input = mark.and_then(|mark| mark.strip_suffix('\''));
        }
    }
    commands
}

/// The file of docs/tls.md for a certificate by ACME, and the commands that have the package serve it, one a line; `None`:
/// the page has another form.
pub(super) fn by_acme(page: &str) -> Option<(&str, String)> {
    let (_, section) = page.split_once("## Certificates by ACME\n")?;
    let (_, from_file) = section.split_once("```toml\n")?;
    let (file, from_text) = from_file.split_once("```")?;
    let (_, from_commands) = from_text.split_once("```\napt-get ")?;
    let (commands, _) = from_commands.split_once("```")?;
    Some((file, format!("apt-get {commands}")))
}

/// The path of docs/install.md in the repository.
pub(super) const PAGE: &str = "docs/install.md";

/// The path of docs/tls.md in the repository.
pub(super) const TLS_PAGE: &str = "docs/tls.md";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_belongs_to_its_command() {
        let page = "```\nnot this\n```\n```sh\none\ncat > x <<'END'\na = 1\n\nEND\n```\ntext\n```sh\ntwo\n```\n";
        assert_eq!(
            commands(page),
            ["one", "cat > x <<'END'\na = 1\n\nEND", "two"]
        );
    }

    #[test]
    fn five_commands_lead_to_a_certificate() {
        let page = include_str!("../../../../docs/tls.md");
        let (file, commands) = by_acme(page).unwrap();
        assert!(file.contains("[tls.www.acme]\n"), "{file}");
        let package = concat!("./catamaran_", env!("CARGO_PKG_VERSION"), "_amd64.deb");
        let commands: Vec<&str> = commands.lines().collect();
        assert_eq!(commands.len(), 5, "{commands:?}");
        assert!(commands[0].ends_with(package), "{}", commands[0]);
    }

    #[test]
    fn the_page_has_fewer_than_ten_commands_and_names_this_version() {
        let commands = commands(include_str!("../../../../docs/install.md"));
        assert!((2..10).contains(&commands.len()), "{commands:?}");
        let package = concat!("./catamaran_", env!("CARGO_PKG_VERSION"), "_amd64.deb");
        assert!(commands[0].ends_with(package), "{}", commands[0]);
    }
}
