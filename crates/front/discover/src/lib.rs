//! Discovers members of upstreams that come and go: sources that name them, and rules for joining and leaving.
//!
//! A source gives [`Answer`]s, each with all members that it knows. [`merge()`] makes the next list of members
//! from the last list and an answer, and has all rules: what an error changes, what happens to a member that is
//! no longer named, which addresses are refused. It is pure: the time is an argument. What a member means to an
//! upstream, and how requests reach it, is decided in the front.

pub(crate) mod api;
mod back_off;
pub mod dns;
pub mod file;
pub mod kubernetes;
pub mod mcmp;
pub mod member;
pub mod merge;

use std::sync::Arc;

pub use api::error::ApiErrorKind;
pub use api::{ApiConfig, ApiUrl};
pub use dns::{DnsKind, DnsSource};
pub use file::FileSource;
pub use kubernetes::facts::WatchFacts;
pub use kubernetes::{KubernetesSource, ServicePort};
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

/// A source of members, with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberSource {
    /// A file that lists the members.
    File(FileSource),
    /// A DNS name, whose records are the members.
    Dns(DnsSource),
    /// Nodes that announce themselves by MCMP.
    Mcmp(McmpSource),
    /// A Service of Kubernetes, whose pods are the members.
    Kubernetes(KubernetesSource),
}

impl MemberSource {
    /// The source's word in the configuration, logs and metrics.
    #[must_use]
    pub fn token(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Dns(DnsSource { kind, .. }) => match kind {
                DnsKind::Addresses { .. } => "dns",
                DnsKind::Services => "srv",
            },
            Self::Mcmp(_) => "mcmp",
            Self::Kubernetes(_) => "kubernetes",
        }
    }

    /// Whether any address in the source's answers is accepted, because their writer could change this machine's
    /// configuration anyway.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// A text that identifies the source and its main settings: sources with different texts are different. It
    /// is compared with that of another process, which may have read another configuration.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::File(file) => format!("file {}", file.path.display()),
            Self::Dns(dns) => format!("{} {} {:?}", self.token(), dns.name, dns.kind),
            Self::Mcmp(_) => "mcmp".to_owned(),
            Self::Kubernetes(KubernetesSource {
                api,
                namespace,
                service,
                port,
                ..
            }) => format!("kubernetes {:?} {namespace}/{service} {port:?}", api.server),
        }
    }

    /// Asks the source once, for a caller that does not serve. Nodes that announce themselves cannot be asked.
    pub async fn ask(&self) -> Answer {
        match self {
            Self::File(file) => file.ask(),
            Self::Dns(dns) => dns.ask().await,
            Self::Kubernetes(service) => service.ask().await,
            Self::Mcmp(_) => {
                Answer::Failed("nodes announce themselves to a front that serves".to_owned())
            }
        }
    }

    /// Asks the source again and again and sends each answer, the first at once. `ask_again` makes it ask at once;
    /// it is for doubts about the last answer, so an answer follows even if nothing has changed. Ends when the
    /// receiver is dropped. `hooks` are for [`Self::Mcmp`] alone, and `facts` for [`Self::Kubernetes`].
    pub async fn run(
        self,
        answers: mpsc::Sender<Answer>,
        ask_again: Arc<Notify>,
        hooks: Arc<McmpHooks>,
        facts: Arc<WatchFacts>,
    ) {
        match self {
            Self::File(file) => file.run(answers, ask_again).await,
            Self::Dns(dns) => dns.run(answers, ask_again).await,
            Self::Mcmp(mcmp) => mcmp.run(answers, ask_again, hooks).await,
            Self::Kubernetes(service) => service.run(answers, ask_again, facts).await,
        }
    }
}
