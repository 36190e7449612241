//! Writes the secrets of sessions in the format that Wireshark reads.

use std::fmt;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// A log of session secrets, one per line.
pub struct KeyLog(Mutex<Box<dyn Write + Send>>);

impl KeyLog {
    /// A log that writes to `sink`.
    #[must_use]
    pub fn new(sink: impl Write + Send + 'static) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Box::new(sink))))
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog")
    }
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let line = line(label, client_random, secret);
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A session continues even if its secret cannot be logged.
        sink.write_all(line.as_bytes()).ok();
    }
}

/// A line in NSS's format: a label, the client's random, and the secret, in hexadecimal.
fn line(label: &str, client_random: &[u8], secret: &[u8]) -> String {
    let mut line =
        String::with_capacity(label.len() + 2 * (client_random.len() + secret.len()) + 3);
    line.push_str(label);
    for bytes in [client_random, secret] {
        line.push(' ');
        for byte in bytes {
            // Writing to a text cannot fail.
            let _ = write!(line, "{byte:02x}");
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_label_random_and_secret() {
        let line = line("CLIENT_RANDOM", &[1, 0xab], &[0xff, 0]);
        assert_eq!(line, "CLIENT_RANDOM 01ab ff00\n");
    }
}
