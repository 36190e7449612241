//! A safe wrapper around io_uring: each operation owns the memory that the kernel uses for it.
//!
//! This module and [`buffers`] are the only code of the project that is `unsafe`. The danger of a
//! completion interface is memory that the kernel still writes or reads after its owner has freed
//! it. Here every operation has an entry in [`Ring`]'s table, from before it is submitted until its
//! last completion has been taken from the queue, and the entry owns all of it: the descriptor, the
//! bytes to be sent, the message that lists them. Received bytes go to memory of the ring itself.
//! The owner of an operation keeps only its number, and may be dropped at any time. When the ring is
//! dropped it cancels what is left and waits for it; should that fail, it leaks the memory.
//!
//! The entry owns the descriptor as well, because the number of a descriptor that is closed while an
//! operation on it is queued could by then mean another connection.

#![expect(
    unsafe_code,
    reason = "what the kernel does with memory is beyond the compiler; see above"
)]

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, ptr};

use bytes::BytesMut;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;

mod buffers;

use buffers::Buffers;
pub(super) use buffers::Chunk;

use crate::output::{Output, SLICES_MAX};

/// An io_uring with its buffers, and the operations under way on it.
pub(super) struct Ring {
    ring: IoUring,
    /// Operations by their number, which is their `user_data`. Freed by hand, see [`Drop`].
    operations: ManuallyDrop<Slab<Operation>>,
    buffers: ManuallyDrop<Buffers>,
    /// Whether one receive may fill several buffers (Linux 6.10).
    bundles: bool,
    /// Completions taken from the queue and not yet handled.
    arrived: VecDeque<cqueue::Entry>,
    /// Operations that found no room in the submission queue, in order.
    waiting: VecDeque<squeue::Entry>,
    wakes: Rc<OwnedFd>,
    waker: Waker,
}

/// The number of an operation under way in the ring's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OperationId(usize);

/// The result of an operation, for the `owner` that started it.
#[derive(Debug)]
pub(super) enum Completion {
    /// A connection was accepted, or accepting failed.
    Accepted {
        owner: usize,
        socket: io::Result<OwnedFd>,
        /// Whether the operation has no further results.
        last: bool,
    },
    /// Bytes or the end of the stream were received.
    Received {
        owner: usize,
        result: ReceiveResult,
        /// Whether the operation has no further results.
        last: bool,
    },
    /// Bytes were sent, or sending failed; `out` is given back.
    Sent {
        owner: usize,
        out: Output,
        sent: io::Result<usize>,
    },
    /// The peer has left: closed its half or, if `gone`, all of the connection.
    HungUp { owner: usize, gone: bool },
    /// A [`Waker`] woke this thread.
    Woken,
}

/// The result of a receive.
#[derive(Debug)]
pub(super) enum ReceiveResult {
    /// Received bytes, which must be given to [`Ring::take`] or [`Ring::discard`].
    Chunk(Chunk),
    /// The peer's end of stream.
    End,
    /// Nothing yet: no buffer was free, or the operation was cancelled. No bytes are lost.
    Nothing,
    /// The connection is broken.
    Failed,
}

/// Wakes the ring's thread from other threads.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

#[derive(Debug)]
struct Operation {
    /// The task that gets the completion; `None` if no task wants it any more.
    owner: Option<usize>,
    kind: OperationKind,
    /// The socket, kept open so that its number means nothing else meanwhile.
    _socket: Rc<OwnedFd>,
}

#[derive(Debug)]
enum OperationKind {
    Accept,
    Receive,
    Hangup,
    Send {
        out: Output,
        /// The list of slices in `out`, if there are several.
        _message: Option<Box<Message>>,
    },
    Wake {
        /// Where the kernel writes the eventfd's count.
        _count: Box<[u8; 8]>,
    },
}

/// A list of slices in the form that the kernel reads.
#[derive(Debug)]
struct Message {
    header: libc::msghdr,
    slices: [libc::iovec; SLICES_MAX],
}

impl Ring {
    /// Creates a ring for the calling thread, which alone may use it.
    pub(super) fn new() -> io::Result<Self> {
        let io_uring = build(QUEUE_LEN)?;
        let buffers = Buffers::register(&io_uring)?;
        let wakes = eventfd(0, EventfdFlags::CLOEXEC)?;
        let waker = Waker(Arc::new(wakes.try_clone()?));
        let mut ring = Self {
            bundles: io_uring.params().is_feature_recvsend_bundle(),
            ring: io_uring,
            operations: ManuallyDrop::new(Slab::new()),
            buffers: ManuallyDrop::new(buffers),
            arrived: VecDeque::new(),
            waiting: VecDeque::new(),
            wakes: Rc::new(wakes),
            waker,
        };
        ring.watch();
        Ok(ring)
    }

    /// A handle by which other threads wake this one.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Starts to accept connections, until it is cancelled or fails.
    pub(super) fn accept(&mut self, owner: usize, socket: &Rc<OwnedFd>) -> OperationId {
        let entry = opcode::AcceptMulti::new(fd(socket))
            .flags(libc::SOCK_CLOEXEC)
            .build();
        self.start(Some(owner), OperationKind::Accept, socket, entry)
    }

    /// Starts to receive, until the stream ends, it is cancelled, or it fails.
    pub(super) fn receive(&mut self, owner: usize, socket: &Rc<OwnedFd>) -> OperationId {
        let socket_fd = fd(socket);
        let entry = if self.bundles {
            opcode::RecvMultiBundle::new(socket_fd, buffers::GROUP).build()
        } else {
            opcode::RecvMulti::new(socket_fd, buffers::GROUP).build()
        };
        self.start(Some(owner), OperationKind::Receive, socket, entry)
    }

    /// Starts to watch once for the peer's close, without reading.
    pub(super) fn watch_for_hangup(&mut self, owner: usize, socket: &Rc<OwnedFd>) -> OperationId {
        let events = libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR;
        let entry = opcode::PollAdd::new(fd(socket), events as u32).build();
        self.start(Some(owner), OperationKind::Hangup, socket, entry)
    }

    /// Starts to send as much of `out` as the socket takes at once, when it has room.
    pub(super) fn send(&mut self, owner: usize, socket: &Rc<OwnedFd>, out: Output) -> OperationId {
        // Boxed, because the kernel keeps its address until the last completion.
        let mut list: Option<Box<Message>> = None;
        let entry = {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            match out.slices(&mut slices) {
                [slice] => {
                    let len = u32::try_from(slice.len()).unwrap_or(u32::MAX);
                    opcode::Send::new(fd(socket), slice.as_ptr(), len)
                        .flags(libc::MSG_NOSIGNAL)
                        .build()
                }
                slices => {
                    let message = &**list.insert(Message::new(slices));
                    opcode::SendMsg::new(fd(socket), &raw const message.header)
                        .flags(libc::MSG_NOSIGNAL as u32)
                        .build()
                }
            }
        };
        // Moving `out` into the table does not move its bytes: `Output::slices` promises that.
        self.start(
            Some(owner),
            OperationKind::Send {
                out,
                _message: list,
            },
            socket,
            entry,
        )
    }

    /// Cancels an operation. Its owner still gets results up to then, and the last completion.
    pub(super) fn cancel(&mut self, id: OperationId) {
        if !self.operations.contains(id.0) {
            return;
        }
        let entry = opcode::AsyncCancel2::new(CancelBuilder::user_data(id.0 as u64))
            .build()
            .user_data(IGNORED)
            .flags(squeue::Flags::SKIP_SUCCESS);
        self.submit(entry);
    }

    /// Cancels an operation. Its owner gets no further completion of it.
    pub(super) fn abandon(&mut self, id: OperationId) {
        if let Some(operation) = self.operations.get_mut(id.0) {
            operation.owner = None;
            self.cancel(id);
        }
    }

    /// Submits the operations that were started, and waits for a completion, `timeout` at the
    /// longest.
    pub(super) fn enter(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        // While more is waiting than fits in the queue, a submission makes room. Should one fail, the wait below fails
        // as well.
        while !self.queue_waiting() && self.ring.submit().is_ok_and(|count| count > 0) {}
        let submitter = self.ring.submitter();
        let entered = match timeout {
            None => submitter.submit_and_wait(1),
            Some(timeout) => {
                let timeout = Timespec::from(timeout);
                submitter.submit_with_args(1, &SubmitArgs::new().timespec(&timeout))
            }
        };
        self.arrived.extend(self.ring.completion());
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The time is over; a signal; no memory for what was submitted, or too many
                // completions to be looked at first. What is queued is submitted the next time.
                Some(libc::ETIME | libc::EINTR | libc::EAGAIN | libc::EBUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// The next completion, in order; `None` if [`enter`](Self::enter) has to be called again.
    pub(super) fn next(&mut self) -> Option<Completion> {
        loop {
            let entry = self.arrived.pop_front()?;
            if let Some(completion) = self.complete(&entry) {
                return Some(completion);
            }
        }
    }

    /// Appends received bytes to `to`.
    pub(super) fn take(&mut self, chunk: Chunk, to: &mut BytesMut) {
        self.buffers.take(chunk, to);
    }

    /// Throws received bytes away.
    pub(super) fn discard(&mut self, chunk: Chunk) {
        self.buffers.discard(chunk);
    }

    /// The number of operations under way, without the one that waits for wakes.
    #[cfg(test)]
    pub(super) fn in_flight(&self) -> usize {
        self.operations.len() - 1
    }

    /// Starts to wait for a wake.
    fn watch(&mut self) {
        let wakes = Rc::clone(&self.wakes);
        let mut count = Box::new([0; 8]);
        let entry = opcode::Read::new(fd(&wakes), count.as_mut_ptr(), 8).build();
        self.start(None, OperationKind::Wake { _count: count }, &wakes, entry);
    }

    /// Enters an operation into the table and submits it. `owner` gets its completions; the ring itself if `None`.
    fn start(
        &mut self,
        owner: Option<usize>,
        kind: OperationKind,
        socket: &Rc<OwnedFd>,
        entry: squeue::Entry,
    ) -> OperationId {
        let id = self.operations.insert(Operation {
            owner,
            kind,
            _socket: Rc::clone(socket),
        });
        self.submit(entry.user_data(id as u64));
        OperationId(id)
    }

    /// Queues an operation after those already queued.
    fn submit(&mut self, entry: squeue::Entry) {
        self.waiting.push_back(entry);
        if self.waiting.len() == 1 {
            self.queue_waiting();
        }
    }

    /// Moves waiting operations into the submission queue as far as there is room. Returns whether
    /// none is left.
    fn queue_waiting(&mut self) -> bool {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.waiting.front() {
            // SAFETY: all memory that the entry points to, and the descriptor, belong to the entry
            // of the table that its `user_data` names (cancellations point to nothing). That entry
            // stays until the kernel has said its last word on the operation: see `complete`.
            if unsafe { queue.push(entry) }.is_err() {
                return false;
            }
            self.waiting.pop_front();
        }
        true
    }

    /// Converts a completion of the kernel; `None` if it concerns no owner.
    fn complete(&mut self, entry: &cqueue::Entry) -> Option<Completion> {
        // Cancellations have no entry in the table.
        let id = usize::try_from(entry.user_data()).ok()?;
        let operation = self.operations.get(id)?;
        let last = !cqueue::more(entry.flags());
        let owner = operation.owner;
        let value = match entry.result() {
            error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            count => Ok(count),
        };
        let completion = match operation.kind {
            OperationKind::Accept => {
                // SAFETY: the kernel has just opened this descriptor for us, and told nobody else.
                let socket = value.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
                owner.map(|owner| Completion::Accepted {
                    owner,
                    socket,
                    last,
                })
            }
            OperationKind::Receive => {
                let result = Self::received(value, entry.flags());
                match owner {
                    Some(owner) => Some(Completion::Received {
                        owner,
                        result,
                        last,
                    }),
                    // The connection is gone. The kernel needs its buffer again.
                    None => {
                        if let ReceiveResult::Chunk(chunk) = result {
                            self.discard(chunk);
                        }
                        None
                    }
                }
            }
            OperationKind::Hangup => owner.map(|owner| {
                let is_gone = |events| events & i32::from(libc::POLLHUP | libc::POLLERR) != 0;
                let gone = value.is_ok_and(is_gone);
                Completion::HungUp { owner, gone }
            }),
            OperationKind::Send { .. } => {
                // The one completion of a send is its last, so what it used comes back.
                let OperationKind::Send { out, .. } = self.operations.remove(id).kind else {
                    return None;
                };
                let sent = value.map(|sent| sent as usize);
                return owner.map(|owner| Completion::Sent { owner, out, sent });
            }
            OperationKind::Wake { .. } => value.ok().map(|_| Completion::Woken),
        };
        if last {
            // This was the last completion: the kernel does not use the operation's memory any more.
            self.operations.remove(id);
        }
        if matches!(completion, Some(Completion::Woken)) {
            // An operation waits for one wake only.
            self.watch();
        }
        completion
    }

    /// The result of a receive, from a completion's value and flags. Errors that pass are [`ReceiveResult::Nothing`].
    fn received(result: io::Result<i32>, flags: u32) -> ReceiveResult {
        let len = result.as_ref().map_or(0, |len| *len as usize);
        if len > 0
            && let Some(index) = cqueue::buffer_select(flags)
        {
            return ReceiveResult::Chunk(Chunk::new(index, len));
        }
        // Without bytes no buffer has been used up, whatever the flags say.
        match result {
            Ok(_) => ReceiveResult::End,
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOBUFS | libc::ECANCELED | libc::EAGAIN | libc::EINTR) => {
                    ReceiveResult::Nothing
                }
                _ => ReceiveResult::Failed,
            },
        }
    }

    /// Cancels all operations and waits until the kernel has finished them. Returns whether it has.
    fn cancel_all(&mut self) -> bool {
        for _ in 0..LAST_WAITS {
            let ids: Vec<usize> = self.operations.iter().map(|(id, _)| id).collect();
            for id in ids {
                self.abandon(OperationId(id));
            }
            while self.next().is_some() {}
            if self.operations.is_empty() {
                return true;
            }
            if self.enter(Some(LAST_WAIT)).is_err() {
                break;
            }
        }
        false
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if !self.cancel_all() {
            tracing::error!(
                operations = self.operations.len(),
                "io_uring did not end its operations in time; their memory is not freed"
            );
            return;
        }
        let unregistered = self.ring.submitter().unregister_buf_ring(buffers::GROUP);
        // SAFETY: neither is used after this. The kernel uses neither: no operation is under way,
        // and the buffers are registered no more, for which an operation would be needed anyway.
        unsafe {
            ManuallyDrop::drop(&mut self.operations);
            if unregistered.is_ok() {
                ManuallyDrop::drop(&mut self.buffers);
            }
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("operations", &self.operations.len())
            .finish_non_exhaustive()
    }
}

impl Message {
    /// A message for the kernel, boxed because the kernel is given its address.
    fn new(slices: &[IoSlice<'_>]) -> Box<Self> {
        let nothing = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        let mut list = [nothing; SLICES_MAX];
        for (iovec, slice) in list.iter_mut().zip(slices) {
            // Nothing is written there, whatever the type says.
            iovec.iov_base = slice.as_ptr().cast_mut().cast();
            iovec.iov_len = slice.len();
        }
        // SAFETY: a `msghdr` is integers and pointers, for which zero is a value; it has padding on
        // some systems, so it cannot be written as a literal.
        let header = unsafe { mem::zeroed() };
        let mut message = Box::new(Self {
            header,
            slices: list,
        });
        message.header.msg_iov = message.slices.as_mut_ptr();
        // `usize` by glibc, `i32` by musl.
        message.header.msg_iovlen = slices.len() as _;
        message
    }
}

impl Waker {
    /// Wakes the ring's thread; several wakes before it looks count as one.
    pub(super) fn wake(&self) {
        // Fails only if nobody has listened for 2^64 wakes, and then one more makes no difference.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// Sets up a ring with the best flags that the kernel has: completions run when we ask for them,
/// which saves interrupts, and on this thread alone, which saves locks (Linux 6.1). Multishot
/// receives came with 6.0, as did the single-issuer flag; without that there is no ring.
fn build(entries: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder
        .setup_clamp()
        .setup_submit_all()
        .setup_single_issuer()
        .setup_cqsize(COMPLETIONS_LEN);
    let fallback = builder.clone();
    match builder.setup_defer_taskrun().build(entries) {
        // A kernel before 6.1.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            fallback.clone().setup_coop_taskrun().build(entries)
        }
        built => built,
    }
}

fn fd(socket: &Rc<OwnedFd>) -> Fd {
    Fd(socket.as_raw_fd())
}

/// The most operations submitted by one system call; more take another one.
const QUEUE_LEN: u32 = 1024;
/// The most completions in the queue; the kernel keeps further ones elsewhere.
const COMPLETIONS_LEN: u32 = 4096;
/// The `user_data` of cancellations, whose own completions are ignored.
const IGNORED: u64 = u64::MAX;
/// How often a ring that is dropped waits for its operations, and for how long each time.
const LAST_WAITS: usize = 100;
const LAST_WAIT: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
