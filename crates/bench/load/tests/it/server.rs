//! A server that gives the same answer to every request, for as long as it is asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::{self, JoinHandle};

use catamaran_testkit::{Address, address};

/// A running server. Dropping it ends its accepting; connections end with their clients.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    stopping: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers each request head, of which none has a body, with `answer`. `per_connection`: closes
    /// after so many.
    pub(crate) fn start(answer: &'static [u8], per_connection: u64) -> Self {
        // One that nobody takes when this server is gone while it is still asked.
        let address = address::unused().unwrap();
        let listener = TcpListener::bind(address).unwrap();
        let (requests, stopping) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counter, flag) = (Arc::clone(&requests), Arc::clone(&stopping));
        let acceptor = thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(SeqCst) {
                    return;
                }
                let (stream, counter) = (stream.unwrap(), Arc::clone(&counter));
                thread::spawn(move || serve(stream, answer, per_connection, &counter));
            }
        });
        Self {
            address,
            requests,
            stopping,
            acceptor: Some(acceptor),
        }
    }

    pub(crate) fn address(&self) -> Address {
        self.address.into()
    }

    /// Requests received so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, SeqCst);
        // Wakes the acceptor; if that fails, it has ended already.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn serve(mut stream: TcpStream, answer: &[u8], per_connection: u64, counter: &AtomicU64) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    let mut served = 0;
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        head.extend_from_slice(&buffer[..len]);
        while let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.drain(..end + 4);
            counter.fetch_add(1, SeqCst);
            served += 1;
            if stream.write_all(answer).is_err() || served == per_connection {
                return;
            }
        }
    }
}
