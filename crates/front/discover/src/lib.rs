//! Members of upstreams that come and go: sources that name them, and the rules by which they join and leave.
//!
//! A source gives [`Answer`]s, each with all members that it knows. [`merge()`] makes a list of members of
//! the last list and an answer, and holds every rule: what an error changes, what becomes of a member that
//! is no longer named, which addresses are refused. It is pure: the time is an argument. What a member is
//! to an upstream, and how requests reach it, is the front's business.

pub mod dns;
pub mod file;
pub mod mcmp;
pub mod member;
pub mod merge;

use std::sync::Arc;

pub use dns::{DnsKind, DnsSource};
pub use file::FileSource;
pub use mcmp::advert::AdvertConfig;
pub use mcmp::nodes::record::NodeRecord;
pub use mcmp::table::NodeTable;
pub use mcmp::{McmpCount, McmpHooks, McmpSource};
pub use member::{FoundContext, FoundMember, FoundState, Place, Speech};
pub use merge::record::MemberRecord;
pub use merge::{
    Answer, Deadlines, Member, MemberPresence, Members, MergeResult, Refusal, Rules, merge,
};
use tokio::sync::{Notify, mpsc};

/// Where members are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberSource {
    /// A file that lists them.
    File(FileSource),
    /// A name in DNS.
    Dns(DnsSource),
    /// Nodes that announce themselves.
    Mcmp(McmpSource),
}

impl MemberSource {
    /// Its name in the configuration, for logs and metrics.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Dns(DnsSource { kind, .. }) => match kind {
                DnsKind::Addresses { .. } => "dns",
                DnsKind::Services => "srv",
            },
            Self::Mcmp(_) => "mcmp",
        }
    }

    /// Whether the writer of its answers may change this machine's configuration anyway, so that any address
    /// is believed.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// What stands for whom it asks: a source of another text is another source. For another process, which may
    /// have read another configuration.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::File(file) => format!("file {}", file.path.display()),
            Self::Dns(dns) => format!("{} {} {:?}", self.token(), dns.name, dns.kind),
            Self::Mcmp(_) => "mcmp".to_owned(),
        }
    }

    /// Asks once, for somebody who does not serve. Nodes that announce themselves cannot be asked.
    pub async fn ask(&self) -> Answer {
        match self {
            Self::File(file) => file.ask(),
            Self::Dns(dns) => dns.ask().await,
            Self::Mcmp(_) => {
                Answer::Failed("nodes announce themselves to a front that serves".to_owned())
            }
        }
    }

    /// Asks for ever and passes each answer on, the first at once. `again` asks at once; it is for doubts
    /// about the last answer, so that an answer follows even if nothing has changed. Ends when nobody listens.
    pub async fn run(
        self,
        answers: mpsc::Sender<Answer>,
        again: Arc<Notify>,
        hooks: Arc<McmpHooks>,
    ) {
        match self {
            Self::File(file) => file.run(answers, again).await,
            Self::Dns(dns) => dns.run(answers, again).await,
            Self::Mcmp(mcmp) => mcmp.run(answers, again, hooks).await,
        }
    }
}
