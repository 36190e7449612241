//! Writes the page of metrics to standard output.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(catamaran_proxy::metrics_reference().as_bytes())
}
