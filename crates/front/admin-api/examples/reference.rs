//! Writes the page of the admin API to standard output.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(catamaran_admin_api::reference().as_bytes())
}
