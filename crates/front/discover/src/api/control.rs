//! What a source's task and the thread that waits for the API server tell each other.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_http_client::ConnectionCloser;

/// The wishes of a task, the connection that is closed so that the thread learns of them, and the server's addresses.
#[derive(Debug, Default)]
pub(crate) struct Control {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wishes {
    has_ended: bool,
    /// Whether the source must be asked anew.
    is_asked: bool,
    /// What closes the thread's last connection.
    open: Option<ConnectionCloser>,
    /// The addresses that the server had at the last connection, sorted.
    server: Vec<SocketAddr>,
}

impl Wishes {
    fn wake(&self) {
        if let Some(open) = &self.open {
            open.close();
        }
    }
}

impl Control {
    /// Ends the thread.
    pub(crate) fn end(&self) {
        let mut wishes = self.lock();
        wishes.has_ended = true;
        wishes.wake();
        self.changed.notify_all();
    }

    /// Has the thread list all objects anew.
    pub(crate) fn ask(&self) {
        let mut wishes = self.lock();
        wishes.is_asked = true;
        wishes.wake();
    }

    /// Whether the thread must end.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().has_ended
    }

    /// Whether the source must be asked anew.
    pub(crate) fn is_asked(&self) -> bool {
        self.lock().is_asked
    }

    /// As [`Self::is_asked`], but `true` once for each wish.
    pub(crate) fn take_asked(&self) -> bool {
        std::mem::take(&mut self.lock().is_asked)
    }

    /// Notes the connection that the thread uses from now on.
    pub(crate) fn note(&self, open: ConnectionCloser) {
        let mut wishes = self.lock();
        wishes.open = Some(open);
        if wishes.has_ended || wishes.is_asked {
            wishes.wake();
        }
    }

    /// Closes the thread's last connection, which is of no use any more.
    pub(crate) fn close(&self) {
        if let Some(open) = self.lock().open.take() {
            open.close();
        }
    }

    /// Notes the addresses that the server has.
    pub(crate) fn note_server(&self, mut addresses: Vec<SocketAddr>) {
        addresses.sort_unstable();
        self.lock().server = addresses;
    }

    /// The addresses that the server had at the last connection, sorted.
    pub(crate) fn server(&self) -> Vec<SocketAddr> {
        self.lock().server.clone()
    }

    /// Waits, at most until the thread must end. A wish to ask anew waits as well: a server that fails is not asked
    /// more often because of it.
    pub(crate) fn pause(&self, pause: Duration) {
        let is_quiet = |wishes: &mut Wishes| !wishes.has_ended;
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), pause, is_quiet);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::thread;

    use catamaran_http_client::{BlockingClient, ServerAddress};
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_wish_to_ask_anew_does_not_cut_a_pause_short() {
        let control = Control::default();
        control.ask();
        let (began, pause) = (Instant::now(), Duration::from_millis(50));
        control.pause(pause);
        assert!(began.elapsed() >= pause);
        assert!(control.take_asked() && !control.is_asked());
    }

    #[test]
    fn a_connection_ends_when_it_is_of_no_use() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ServerAddress::Tcp(listener.local_addr().unwrap());
        let client = BlockingClient::connect(&address, Duration::from_secs(5)).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        let control = Control::default();
        control.note(client.closer().unwrap());
        drop(client);
        control.close();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn the_end_cuts_a_pause_short() {
        let control = Arc::new(Control::default());
        let paused = {
            let control = Arc::clone(&control);
            thread::spawn(move || control.pause(Duration::from_secs(3600)))
        };
        control.end();
        paused.join().unwrap();
    }
}
