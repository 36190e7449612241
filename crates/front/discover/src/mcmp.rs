//! Discovers members by MCMP: mod_cluster nodes of WildFly and Tomcat announce themselves.
//!
//! [`message`] parses the nodes' messages, [`nodes`] keeps what is known of nodes, [`table`] preserves that for the
//! next listener, [`advert`] tells nodes where the front is. This module is the listener. A client that is not among
//! `peers` is closed at once; each connection is limited in bytes, in time and in messages, and everything refused is
//! counted by its reason.

pub mod advert;
pub mod message;
pub mod nodes;
pub mod table;

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use catamaran_http1::{Limits, Response, Server, ServerEvent};
use catamaran_message::name::CONTENT_TYPE;
use catamaran_message::{BodyLength, Fields, RequestHead};
use http::StatusCode;
use ipnet::IpNet;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::advert::{AdvertConfig, advertise};
use self::message::{BYTES_MAX, Message, SyntaxFault};
use self::nodes::{McmpRefusal, NodeRules};
use self::table::NodeTable;
use crate::merge::Answer;

/// The address at which nodes announce themselves, and which of them are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McmpSource {
    /// The address that nodes connect to.
    pub listen: SocketAddr,
    /// The networks from which nodes may connect.
    pub peers: Vec<IpNet>,
    /// The networks in which members may be. A host name instead of an address is never accepted.
    pub members: Vec<IpNet>,
    /// The paths below which contexts become routes.
    pub paths: Vec<String>,
    /// The most nodes that are accepted.
    pub nodes_max: usize,
    /// How the front advertises itself to nodes by multicast; `None`: it does not.
    pub advertise: Option<AdvertConfig>,
}

/// Functions and state that the owner of the listener passes to it.
pub struct McmpHooks {
    /// Returns the number of requests that the member with this name has in flight.
    pub in_flight: Box<dyn Fn(&str) -> u64 + Send + Sync>,
    /// Called for each message and each refusal, so that the owner counts them.
    pub count: Box<dyn Fn(McmpCount) + Send + Sync>,
    /// The table of nodes, which may already contain some.
    pub nodes: Arc<NodeTable>,
    /// The number of the listener's last answer that is in force, so that requests are served by it.
    pub in_force: watch::Receiver<u64>,
}

impl fmt::Debug for McmpHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McmpHooks(..)")
    }
}

/// An event that the listener reports to [`McmpHooks::count`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McmpCount {
    /// A message that was parsed, by its command.
    Message(&'static str),
    /// A message or connection that was refused, by its reason.
    Refused(&'static str),
}

/// The state that the connections of all nodes share. Its methods count what they refuse by [`Self::refuse`].
struct Desk {
    config: McmpSource,
    /// Wakes [`send_lists`] when the list of nodes has changed.
    changed: Notify,
    /// The number of answers made so far. It changes only while the nodes are locked, so that the answer that contains
    /// a change is known.
    answers: AtomicU64,
    /// The number of open connections of each address.
    open: Mutex<HashMap<IpAddr, usize>>,
    hooks: Arc<McmpHooks>,
}

impl McmpSource {
    /// Whether a node may connect from this address.
    fn hears(&self, peer: IpAddr) -> bool {
        self.peers.iter().any(|network| network.contains(&peer))
    }

    /// Whether a member may have this host: an address in one of the networks.
    fn may_be_member(&self, host: &str) -> bool {
        let Ok(ip) = host.parse::<IpAddr>() else {
            return false;
        };
        let ip = ip.to_canonical();
        self.members.iter().any(|network| network.contains(&ip))
    }

    /// Listens, advertises and sends answers until `answers` is closed; see [`crate::MemberSource::run`].
    pub(crate) async fn run(
        self,
        answers: mpsc::Sender<Answer>,
        ask_again: Arc<Notify>,
        hooks: Arc<McmpHooks>,
    ) {
        let desk = Arc::new(Desk {
            config: self,
            changed: Notify::new(),
            answers: AtomicU64::new(0),
            open: Mutex::default(),
            hooks,
        });
        desk.forget_strangers();
        tokio::select! {
            () = listen(&desk, &answers) => {}
            () = advertise(desk.config.advertise.clone(), desk.config.listen) => {}
            () = send_lists(&desk, &answers, &ask_again) => {}
            () = answers.closed() => {}
        }
    }
}

/// Sends the list of nodes: at once if nodes are known, when the list changes, and when nodes were silent for too long.
async fn send_lists(desk: &Desk, answers: &mpsc::Sender<Answer>, ask_again: &Notify) {
    let mut has_sent = false;
    let mut is_due = desk.knows_nodes();
    loop {
        if is_due {
            has_sent = true;
            if answers.send(desk.list()).await.is_err() {
                return;
            }
        }
        let table = &desk.hooks.nodes;
        let deadline = table.nodes().deadline().map(|at| table.at(at));
        is_due = tokio::select! {
            () = desk.changed.notified() => true,
            // Doubts about the last answer need one. Before any node is known, an empty list would be wrong.
            () = ask_again.notified() => has_sent,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                let now = table.now();
                table.nodes().expire(now)
            }
        };
    }
}

/// Accepts connections for ever, and serves those that are admitted.
async fn listen(desk: &Arc<Desk>, answers: &mpsc::Sender<Answer>) {
    let Some(listener) = bind_at_last(desk, answers).await else {
        return;
    };
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, from)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Dropping the stream of a peer that is refused closes it.
        let peer = from.ip().to_canonical();
        if !desk.config.hears(peer) {
            desk.refuse("peer");
        } else if !desk.admit(peer) {
            desk.refuse("connections-max");
        } else {
            connections.spawn(serve_connection(Arc::clone(desk), stream, peer));
        }
    }
}

/// Binds the listener's address. While the address is taken, it tries again, and reports that once: at once if no nodes
/// are known, else after the time that the previous process, which handed them over, needs to end. `None` if `answers`
/// is closed.
async fn bind_at_last(desk: &Desk, answers: &mpsc::Sender<Answer>) -> Option<TcpListener> {
    let mut failures = 0;
    let reported_failure = if desk.knows_nodes() { BIND_TRIES } else { 1 };
    loop {
        match bind(desk.config.listen) {
            Ok(listener) => {
                if failures >= reported_failure {
                    // Sends an answer, so that the failure that was reported does not stay in force.
                    desk.changed.notify_one();
                }
                return Some(listener);
            }
            Err(error) => {
                failures += 1;
                if failures == reported_failure {
                    let reason = format!("cannot listen at {}: {error}", desk.config.listen);
                    // A failure is an answer, too.
                    desk.answers.fetch_add(1, Ordering::Relaxed);
                    answers.send(Answer::Failed(reason)).await.ok()?;
                }
                sleep(BIND_PAUSE).await;
            }
        }
    }
}

/// Binds an address, also if earlier connections to it are in TIME_WAIT (`SO_REUSEADDR`).
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn serve_connection(desk: Arc<Desk>, mut stream: TcpStream, peer: IpAddr) {
    // A node that breaks off connects again.
    serve_messages(&desk, &mut stream, peer).await.ok();
    desk.release(peer);
}

/// Receives messages and answers each, until the connection ends. A fault is counted by its reason and ends it.
async fn serve_messages(desk: &Desk, stream: &mut TcpStream, peer: IpAddr) -> std::io::Result<()> {
    let mut server = Server::new(Limits::request());
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut pace = Pace::new(desk.hooks.nodes.now());
    loop {
        let receiving = receive(&mut server, &mut input, stream);
        let Ok(received) = timeout(IDLE_MAX, receiving).await else {
            desk.refuse("idle");
            return Ok(());
        };
        let node_input = received?;
        if matches!(node_input, NodeInput::End) {
            return Ok(());
        }
        if !pace.takes(desk.hooks.nodes.now()) {
            desk.refuse("flood");
            return Ok(());
        }
        let NodeInput::Message(head, form) = node_input else {
            desk.refuse("garbage");
            return Ok(());
        };
        let answer = desk.answer(&head, &form, peer).await;
        write(&mut server, answer, &mut output);
        server.recycle(head);
        timeout(WRITE_MAX, stream.write_all(&output)).await??;
        output.clear();
        if !server.can_reuse() {
            return Ok(());
        }
    }
}

/// The next input from a node's connection: a message, the end, or garbage.
enum NodeInput {
    Message(Box<RequestHead>, Vec<u8>),
    /// The node closed the connection between messages.
    End,
    /// The bytes are not HTTP/1.1, or too many.
    Garbage,
}

/// Receives one whole message: a head and a form of at most [`BYTES_MAX`] bytes. After its first byte the time is
/// limited.
async fn receive(
    server: &mut Server,
    input: &mut BytesMut,
    stream: &mut TcpStream,
) -> std::io::Result<NodeInput> {
    let mut head: Option<Box<RequestHead>> = None;
    let mut form = Vec::new();
    loop {
        match server.receive(input) {
            Ok(Some(ServerEvent::Head(received))) => match received.body {
                BodyLength::Known(0) => return Ok(NodeInput::Message(received, form)),
                BodyLength::Known(length) if length > BYTES_MAX as u64 => {
                    return Ok(NodeInput::Garbage);
                }
                BodyLength::Known(_) | BodyLength::Unknown => head = Some(received),
            },
            Ok(Some(ServerEvent::Body(data))) => {
                if form.len() + data.len() > BYTES_MAX {
                    return Ok(NodeInput::Garbage);
                }
                form.extend_from_slice(&data);
            }
            Ok(Some(ServerEvent::BodyEnd)) => match head.take() {
                Some(head) => return Ok(NodeInput::Message(head, form)),
                None => return Ok(NodeInput::Garbage),
            },
            Ok(None) => {
                let is_begun = head.is_some() || !input.is_empty();
                match read_more(stream, input, is_begun).await? {
                    0 if is_begun => return Ok(NodeInput::Garbage),
                    0 => return Ok(NodeInput::End),
                    _ => {}
                }
            }
            Err(_) => return Ok(NodeInput::Garbage),
        }
    }
}

/// Reads more bytes. If a message has begun, they must come within its time.
async fn read_more(
    stream: &mut TcpStream,
    input: &mut BytesMut,
    is_begun: bool,
) -> std::io::Result<usize> {
    let reading = stream.read_buf(input);
    if is_begun {
        timeout(MESSAGE_MAX, reading).await?
    } else {
        reading.await
    }
}

/// The response to a node.
struct NodeResponse {
    status: StatusCode,
    fields: Fields,
    text: String,
}

impl NodeResponse {
    /// The response to a message that is refused, with the fields by which mod_cluster nodes know the fault.
    fn fault(kind: &'static str, words: &'static str) -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            fields: Fields::from_iter([("Version", "0.2.1"), ("Type", kind), ("Mess", words)]),
            text: String::new(),
        }
    }
}

impl Desk {
    /// Parses and executes a message of a node, and counts it. Returns the response to the node.
    async fn answer(&self, head: &RequestHead, form: &[u8], peer: IpAddr) -> NodeResponse {
        let parsed = Message::parse(head.method.as_str(), &head.target.path, form);
        let message = match parsed {
            Ok(parsed) => parsed,
            Err(SyntaxFault(words)) => {
                self.refuse("syntax");
                return NodeResponse::fault("SYNTAX", words);
            }
        };
        (self.hooks.count)(McmpCount::Message(message.command()));
        match self.execute(&message, peer).await {
            Ok(text) => NodeResponse {
                status: StatusCode::OK,
                fields: Fields::new(),
                text,
            },
            Err(refusal) => {
                self.refuse(refusal.token());
                NodeResponse::fault(refusal.kind(), refusal.words())
            }
        }
    }

    /// Executes a node's message. A node that stops a context removes it once no request is in flight there, so the
    /// answer, which contains their number, waits until no further request is sent to it, for [`IN_FORCE_MAX`] at most.
    async fn execute(&self, message: &Message, peer: IpAddr) -> Result<String, McmpRefusal> {
        let (text, answer) = self.handle(message, peer)?;
        if !message.stops() {
            return Ok(text);
        }
        let mut in_force = self.hooks.in_force.clone();
        let until_in_force = in_force.wait_for(|number| *number >= answer);
        // If it takes longer, the node asks again.
        timeout(IN_FORCE_MAX, until_in_force).await.ok();
        // Handled again for the number of requests at this moment.
        self.handle(message, peer).map(|(text, _)| text)
    }

    /// Handles a message; returns the answer to the node, and the number of the list that contains the message's
    /// change.
    fn handle(&self, message: &Message, peer: IpAddr) -> Result<(String, u64), McmpRefusal> {
        let rules = NodeRules {
            may_be_member: &|host| self.config.may_be_member(host),
            in_flight: &self.hooks.in_flight,
            nodes_max: self.config.nodes_max,
        };
        let table = &self.hooks.nodes;
        let now = table.now();
        let mut nodes = table.nodes();
        let reply = nodes.handle(message, peer, now, &rules)?;
        let last = self.answers.load(Ordering::Relaxed);
        if !reply.changed {
            return Ok((reply.text, last));
        }
        self.changed.notify_one();
        // The next list has the change. It is not made before `nodes` is unlocked.
        Ok((reply.text, last + 1))
    }

    /// The list of all nodes, as the next answer.
    fn list(&self) -> Answer {
        let mut nodes = self.hooks.nodes.nodes();
        self.answers.fetch_add(1, Ordering::Relaxed);
        nodes.answer()
    }

    fn refuse(&self, reason: &'static str) {
        (self.hooks.count)(McmpCount::Refused(reason));
    }

    /// Counts one more connection of an address; `false` if it, or all together, has too many.
    fn admit(&self, peer: IpAddr) -> bool {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&peer).copied().unwrap_or_default();
        if own >= PEER_MAX || all >= CONNECTIONS_MAX {
            return false;
        }
        open.insert(peer, own + 1);
        true
    }

    /// Undoes an [`Self::admit`] when the connection is closed.
    fn release(&self, peer: IpAddr) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&peer) {
            *own -= 1;
            if *own == 0 {
                open.remove(&peer);
            }
        }
    }

    fn knows_nodes(&self) -> bool {
        !self.hooks.nodes.nodes().is_empty()
    }

    /// Forgets nodes that the current settings would refuse, and nodes that were silent for too long.
    fn forget_strangers(&self) {
        let table = &self.hooks.nodes;
        let now = table.now();
        let mut nodes = table.nodes();
        nodes.expire(now);
        nodes.retain(|peer, host| self.config.hears(peer) && self.config.may_be_member(host));
    }
}

fn write(server: &mut Server, mut answer: NodeResponse, output: &mut BytesMut) {
    answer.fields.append(CONTENT_TYPE, "text/plain");
    let response = Response {
        status: answer.status,
        reason: None,
        headers: &answer.fields,
        body: BodyLength::Known(answer.text.len() as u64),
    };
    // A head that cannot be written closes the connection: nothing was announced.
    if server.send_head(&response, output).is_ok() {
        server.send_data(answer.text.as_bytes(), output);
        server.send_end(output).ok();
    }
}

/// Limits the rate of messages on a connection: how many it may still send at once.
struct Pace {
    left: f64,
    at: Duration,
}

impl Pace {
    fn new(now: Duration) -> Self {
        Self {
            left: MESSAGES_AT_ONCE,
            at: now,
        }
    }

    /// Whether one more message is within the rate. Each message takes one from `left`, which grows by the second up to
    /// [`MESSAGES_AT_ONCE`].
    fn takes(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.left = (self.left + passed * MESSAGES_A_SECOND).min(MESSAGES_AT_ONCE);
        self.at = now;
        self.left -= 1.0;
        self.left >= 0.0
    }
}

/// The most messages at once: a node sends a few for each of its contexts when it joins.
const MESSAGES_AT_ONCE: f64 = 1000.0;
const MESSAGES_A_SECOND: f64 = 50.0;

/// The longest wait until a change is in force.
const IN_FORCE_MAX: Duration = Duration::from_secs(2);

/// How long a connection may be silent. A node sends a message every 10 s.
const IDLE_MAX: Duration = Duration::from_secs(120);
const MESSAGE_MAX: Duration = Duration::from_secs(10);
const WRITE_MAX: Duration = Duration::from_secs(10);

/// The most connections at a time: from one address, and from all.
const PEER_MAX: usize = 64;
const CONNECTIONS_MAX: usize = 2000;
const BACKLOG: u32 = 1024;

const BIND_PAUSE: Duration = Duration::from_millis(100);

/// How often binding is tried before the failure is reported, if the previous process may still have the address.
const BIND_TRIES: u32 = 50;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_join_is_no_flood_and_a_flood_is() {
        let mut pace = Pace::new(Duration::ZERO);
        assert!((0..1000).all(|_| pace.takes(Duration::ZERO)));
        assert!(!pace.takes(Duration::ZERO));
        assert!(pace.takes(Duration::from_secs(1)));
    }
}
