//! The objects of the admin API: what a front answers under `/api/v1`, as types.
//!
//! The front makes these objects, the commands read them, and docs/admin-api.md is written from them, so a member
//! has one name and one meaning. Objects are declared by the macro of `object`, which keeps the text of each
//! member for the page. The page in the browser is JavaScript: a test of the front holds its names against
//! [`objects`].
//!
//! A member that is missing in an answer has its default, so that a command can ask an older front. Moments are in
//! UTC, as `2030-01-31T04:00:00Z`.

#![forbid(unsafe_code)]

#[macro_use]
mod object;
mod backend;
mod cache;
mod endpoint;
mod explain;
mod limit;
mod operation;
mod reference;
mod site;
mod status;
mod tls;

pub use backend::{
    Backend, BackendBytes, BackendConnections, BackendControls, BackendFailure, BackendLatency,
    BackendMember, BackendProbe, BackendRates, DrainProgress, FailureCounts, MemberOrigin,
    NameResolution, Override, ProbeCounts, ServerErrors,
};
pub use cache::{CacheKey, CacheKeyList, CacheList, CacheReason, CacheStatus, PurgeResult};
pub use endpoint::{ENDPOINTS, Endpoint};
pub use explain::{
    AffinityStep, AuthOutlook, BackendRequest, CacheOutlook, ExplainedRequest, Explanation,
    FrontAnswer, MemberShare, OtherRoute, PathForms, RouteList, RouteStatus, SessionAffinity,
    UpstreamOutlook,
};
pub use limit::{ForgottenKey, LimitList, LimitOutlook, LimitStatus, RefusedKey};
pub use object::{MemberDoc, ObjectDoc};
pub use operation::{OperationReport, ProbeResult, Problem, UpgradeStart};
pub use reference::reference;
pub use site::{ListenerList, ListenerStatus};
pub use status::{
    ClientConnections, Event, EventList, FoundMembers, FrontStatus, InFlight, MemberAnswers,
    ReachedLimit, RefusedMember, ReloadCounts, RequestInFlight, ResponseCounts, RetryBudgetStatus,
    UpgradeStatus, UpstreamStatus,
};
pub use tls::{
    CertificateStatus, IssuedNameStatus, ProfileList, ProfileStatus, ReplacedCertificate,
};

/// Every object, in the order of the reference.
#[must_use]
pub fn objects() -> Vec<ObjectDoc> {
    [
        status::OBJECTS,
        backend::OBJECTS,
        cache::OBJECTS,
        limit::OBJECTS,
        site::OBJECTS,
        tls::OBJECTS,
        explain::OBJECTS,
        operation::OBJECTS,
    ]
    .concat()
}
