//! The steps of the run, and what must be true after each.

use anyhow::ensure;
use catamaran_e2e::{Front, catamaran};
use catamaran_nights::Verdict;
use catamaran_testkit::{Deadline, Process, Signal};

use crate::node::{Node, NodePlan, PATIENCE};
use crate::standing::{self, context, stands, wait_for_context, wait_until_active};
use crate::transcript::Transcript;
use crate::visitor::{Seen, Stream, Visitor};
use crate::{hostile, network};

/// Runs all steps.
pub(crate) fn run() -> anyhow::Result<Verdict> {
    network::build(&PLANS.map(|plan| plan.host))?;
    let [first, second] = PLANS;
    let mut story = Story {
        transcript: Transcript::begin(),
        verdict: Verdict::default(),
        front: Front::with_config(CONFIG)?,
        nodes: [Node::prepare(first)?, Node::prepare(second)?],
        visitors: Vec::new(),
    };
    let result = story.tell();
    for line in standing::summary(&story.front).unwrap_or_default() {
        println!("{line}");
    }
    if result.is_err() {
        story.verdict.print();
        println!("the front:\n{}", story.front.log());
        for node in &story.nodes {
            println!("{}:\n{}", node.name, node.log());
        }
    }
    result.map(|()| story.verdict)
}

struct Story {
    transcript: Transcript,
    verdict: Verdict,
    front: Front,
    nodes: [Node; 2],
    /// The visitors that return.
    visitors: Vec<Visitor>,
}

impl Story {
    /// The steps in their order. An error ends the story; a criterion that is not met does not.
    fn tell(&mut self) -> anyhow::Result<()> {
        self.join()?;
        self.keep_sessions()?;
        self.transcript.say("what others in the network may send");
        hostile::attack(&self.front, &mut self.verdict)?;
        self.all_return("after what others sent")?;
        for plan in PLANS {
            self.suspend(plan)?;
        }
        for plan in PLANS {
            self.leave(plan)?;
        }
        self.restart()?;
        self.upgrade()?;
        self.transcript.say("over");
        Ok(())
    }

    /// Both nodes start, find the front and join it.
    fn join(&mut self) -> anyhow::Result<()> {
        self.transcript.say("both nodes start");
        for node in &mut self.nodes {
            node.start()?;
        }
        for plan in PLANS {
            let found = wait_until_active(&self.front, plan.name)?;
            self.transcript
                .say(format!("{} joined: {found:?}", plan.name));
            self.judge_place(plan, &found);
        }
        Ok(())
    }

    /// Judges that the front knows the node by the announcement alone, with the address and protocol of `plan`.
    fn judge_place(&mut self, plan: NodePlan, found: &standing::Standing) {
        let NodePlan {
            name,
            speech,
            address,
            ..
        } = plan;
        self.verdict.judge(
            &format!("{name} announced itself over {speech} at {address}"),
            format!("{} at {}, by {}", found.speech, found.address, found.source),
            (&found.speech[..], &found.address[..], &found.source[..]) == (speech, address, "mcmp"),
        );
    }

    /// Visitors are spread over both nodes, and each stays at its node.
    fn keep_sessions(&mut self) -> anyhow::Result<()> {
        self.arrive()?;
        let visitors_at = |plan: NodePlan| {
            let visitors = self.visitors.iter();
            visitors.filter(|visitor| visitor.node == plan.name).count()
        };
        let [first, second] = PLANS.map(visitors_at);
        self.verdict.judge(
            "new sessions are spread over both nodes",
            format!("{first} and {second}"),
            first > 0 && second > 0,
        );
        self.all_return_often("after many visits", RETURNS)
    }

    /// Adds visitors until there are [`VISITORS`].
    fn arrive(&mut self) -> anyhow::Result<()> {
        while self.visitors.len() < VISITORS {
            self.visitors.push(Visitor::arrive()?);
        }
        Ok(())
    }

    /// Each visitor returns, and must find its session at the same node.
    fn all_return(&mut self, when: &str) -> anyhow::Result<()> {
        self.all_return_often(when, 1)
    }

    /// Lets all visitors come back so often, and judges that each finds its session.
    fn all_return_often(&mut self, when: &str, times: usize) -> anyhow::Result<()> {
        let visits = self.visitors.len() * times;
        ensure!(!self.visitors.is_empty(), "there are no visitors");
        let mut errors = Vec::new();
        for _ in 0..times {
            for visitor in &mut self.visitors {
                errors.extend(visitor.return_to_session().err());
            }
        }
        let claim = format!("{when}: every session is where it was");
        let mut figure = format!("{} of {visits} visits found another one", errors.len());
        if let Some(first) = errors.first() {
            figure += &format!(": {first:#}");
        }
        self.verdict.judge(&claim, figure, errors.is_empty());
        Ok(())
    }

    /// A node is suspended: first it serves only the sessions that it has, then nobody.
    fn suspend(&mut self, plan: NodePlan) -> anyhow::Result<()> {
        let name = plan.name;
        let ((), seen) = Stream::during(|stream| {
            self.transcript.say(format!("{name} is suspended"));
            let mut command = self.node(plan).tell(":suspend")?;
            wait_for_context(name, Some("DISABLED"))?;
            self.judge_disabled(name)?;
            wait_for_context(name, Some("STOPPED"))?;
            let gets_nothing = nobody_new_at(name, "STOPPED")?;
            self.verdict.judge(
                &format!("{name}, stopped, gets nothing"),
                gets_nothing,
                gets_nothing,
            );
            succeeded(&mut command)?;
            self.transcript.say(format!("{name} is resumed"));
            let mut command = self.node(plan).tell(":resume")?;
            wait_until_active(&self.front, name)?;
            gets_new(stream, name)?;
            succeeded(&mut command)?;
            self.all_return(&format!("{name} was suspended and resumed"))
        })?;
        self.judge_stream(&format!("{name} was suspended and resumed"), &seen);
        Ok(())
    }

    /// Judges that a disabled node serves the sessions that it has, and gets no others.
    fn judge_disabled(&mut self, name: &str) -> anyhow::Result<()> {
        let gets_nothing = nobody_new_at(name, "DISABLED")?;
        let no_new = format!("{name}, disabled, gets no new sessions");
        self.verdict.judge(&no_new, gets_nothing, gets_nothing);
        let own = self
            .visitors
            .iter_mut()
            .filter(|visitor| visitor.node == name);
        let visits: anyhow::Result<Vec<()>> = own.map(Visitor::return_to_session).collect();
        // After the context has been stopped, sessions would move to the other node.
        let is_still_disabled = context(name)?.as_deref() == Some("DISABLED");
        let (figure, holds) = match visits {
            Err(error) => (format!("{error:#}"), false),
            Ok(_) if !is_still_disabled => ("it was stopped before all had come".to_owned(), false),
            Ok(visits) => (format!("{} sessions", visits.len()), !visits.is_empty()),
        };
        let serves_own = format!("{name}, disabled, serves the sessions that it has");
        self.verdict.judge(&serves_own, figure, holds);
        Ok(())
    }

    /// A node is ended in order, and started again.
    fn leave(&mut self, plan: NodePlan) -> anyhow::Result<()> {
        let name = plan.name;
        let ((), seen) = Stream::during(|stream| {
            self.transcript.say(format!("{name} is shut down"));
            let _command = self.node(plan).tell(":shutdown")?;
            wait_for_context(name, None)?;
            self.node(plan).wait_for_end()?;
            let gone = standing::wait_until_gone(&self.front, name);
            self.verdict.judge(
                &format!("{name}, shut down, is no member"),
                format!("{gone:?}"),
                gone.is_ok(),
            );
            // Its sessions have ended with it.
            self.visitors.retain(|visitor| visitor.node != name);
            self.all_return(&format!("{name} was shut down"))?;
            self.transcript.say(format!("{name} starts again"));
            self.node(plan).start()?;
            let member = wait_until_active(&self.front, name)?;
            self.judge_place(plan, &member);
            gets_new(stream, name)?;
            self.all_return(&format!("{name} started again"))
        })?;
        self.judge_stream(&format!("{name} was shut down and started"), &seen);
        self.arrive()
    }

    /// The front is killed and started again; the nodes must announce themselves again.
    fn restart(&mut self) -> anyhow::Result<()> {
        self.transcript.say("the front is killed");
        self.front.process().signal(Signal::Kill)?;
        self.front.process().wait(Deadline::default())?;
        self.transcript.say("the front starts again");
        self.front = Front::with_config(CONFIG)?;
        for plan in PLANS {
            let found = wait_until_active(&self.front, plan.name)?;
            self.transcript.say(format!("{} returned", plan.name));
            self.judge_place(plan, &found);
        }
        self.all_return("the front was killed and started again")
    }

    /// Another process takes over from the front, and must know the nodes at once.
    fn upgrade(&mut self) -> anyhow::Result<()> {
        let ((), seen) = Stream::during(|stream| {
            self.transcript.say("the front is upgraded");
            let socket = self.front.directory().join("admin.sock");
            let admin = format!("unix:{}", socket.display());
            let mut command = catamaran(&["upgrade", "--admin", &admin])?;
            succeeded(&mut command)?;
            let states = PLANS.map(|plan| Some(stands(&self.front, plan.name)?.state));
            let is_active = |state: &Option<String>| state.as_deref() == Some("active");
            self.verdict.judge(
                "the next process knows both nodes at once",
                format!("{states:?}"),
                states.iter().all(is_active),
            );
            self.all_return("the front was upgraded")?;
            let before = stream.seen().total();
            let have_come = || (stream.seen().total() >= before + MORE).then_some(());
            Deadline::after(PATIENCE).poll("more new visitors", have_come)?;
            // Both nodes find the new process.
            standing::wait_for_messages(&self.front, "status", 2 * PLANS.len() as u64)?;
            for plan in PLANS {
                wait_until_active(&self.front, plan.name)?;
            }
            self.all_return("when nodes had found the next process")
        })?;
        self.judge_stream("the front was upgraded", &seen);
        Ok(())
    }

    /// Judges that new visitors came while something happened, and that none failed.
    fn judge_stream(&mut self, when: &str, seen: &Seen) {
        let (failed, total) = (seen.failed.len(), seen.total());
        let first = seen.failed.first().map_or("", String::as_str);
        self.transcript
            .say(format!("new visitors: {:?}, {failed} failed", seen.served));
        let claim = format!("{when}: no new visitor failed");
        let figure = format!("{failed} of {total} {first}");
        self.verdict.judge(&claim, figure, failed == 0 && total > 0);
    }

    fn node(&mut self, plan: NodePlan) -> &mut Node {
        let mut nodes = self.nodes.iter_mut();
        nodes
            .find(|it| it.name == plan.name)
            .expect("one for each plan")
    }
}

/// Whether other nodes serve all new visitors while the node's context has this status; `false` if the status
/// changes.
fn nobody_new_at(name: &str, status: &str) -> anyhow::Result<bool> {
    let has_status = || anyhow::Ok(context(name)?.as_deref() == Some(status));
    while has_status()? {
        let batch: anyhow::Result<Vec<Visitor>> = (0..BATCH).map(|_| Visitor::arrive()).collect();
        let elsewhere = batch?.iter().all(|visitor| visitor.node != name);
        // The front may have got the status just before, so that a new visitor may still come to the node.
        if elsewhere && has_status()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits until the node serves a new visitor.
fn gets_new(stream: &Stream, name: &str) -> anyhow::Result<()> {
    let count = || stream.seen().served.get(name).copied().unwrap_or_default();
    let before = count();
    let has_more = || (count() > before).then_some(());
    let event = format!("new visitors at {name}");
    Ok(Deadline::after(PATIENCE).poll(event, has_more)?)
}

/// Waits for the end of a command, which must succeed.
fn succeeded(command: &mut Process) -> anyhow::Result<()> {
    let status = command.wait(Deadline::after(PATIENCE))?;
    let said = || command.stdout() + &command.stderr();
    ensure!(status.success(), "{status}: {}", said());
    Ok(())
}

/// The node over AJP13, and the one over HTTP/1.1.
const PLANS: [NodePlan; 2] = [
    NodePlan {
        name: "node1",
        host: 2,
        listener: "ajp",
        speech: "ajp",
        address: "10.77.0.2:8009",
    },
    NodePlan {
        name: "node2",
        host: 3,
        listener: "default",
        speech: "http",
        address: "10.77.0.3:8080",
    },
];

const CONFIG: &str = r#"
[[listen]]
address = "10.77.0.1:8000"

[mcmp]
listen = "10.77.0.1:6666"
peers = "10.77.0.0/24"
paths = "/"
advertise = true

[upstream.wildfly.sticky]

[upstream.wildfly.members]
from = "mcmp"

[admin]
address = ["unix:admin.sock", "127.0.0.1:9090"]
"#;

/// The number of visitors that return, and how often they do at the beginning.
const VISITORS: usize = 24;
const RETURNS: usize = 20;

/// The number of new visitors of whom none may come to a node.
const BATCH: usize = 12;

/// The number of new visitors after an upgrade.
const MORE: u64 = 50;
