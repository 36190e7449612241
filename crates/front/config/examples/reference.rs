//! Writes the reference page of the configuration file to standard output.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(catamaran_config::reference().as_bytes())
}
