//! The sign-ons of a site, prepared for use: names are resolved, and results are counted.
//!
//! A site without sign-ons has none of this, and its requests pay nothing.

use std::sync::Arc;
use std::time::Duration;

use catamaran_message::FieldName;
use catamaran_transport::{Count, PerWorker};
use catamaran_upstream::{BucketSums, Buckets};

use crate::config::{AttributeSource, AuthConfig, AuthKind, AuthSource, Config, ForwardAuth};
use crate::path::{self, NormalPath};
use crate::users::LiveUsers;

/// The sign-ons of a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteAuths {
    auths: Vec<SiteAuth>,
    /// The fields in which backends are told who has signed on. Nobody else may send them.
    claims: Box<[FieldName]>,
    /// The values of answers that become attributes of AJP13.
    told: Box<[AuthSource]>,
}

/// A sign-on of a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteAuth {
    pub(crate) config: Arc<AuthConfig>,
    pub(crate) kind: SiteAuthKind,
    counts: Arc<PerWorker<AuthCounts>>,
}

/// Who says whether a client has signed on.
#[derive(Clone, Debug)]
pub(crate) enum SiteAuthKind {
    Forward(Box<AskedService>),
    Users(Arc<LiveUsers>),
}

/// A service, and where it is asked.
#[derive(Clone, Debug)]
pub(crate) struct AskedService {
    pub(crate) config: ForwardAuth,
    /// The index of its upstream in the site.
    pub(crate) upstream: usize,
    pub(crate) path: NormalPath,
}

/// One worker's counts of requests, by what the sign-on answered, and how long that took.
#[derive(Debug, Default)]
struct AuthCounts {
    results: [Count; AuthResult::ALL.len()],
    waits: Buckets,
}

/// The result of asking a sign-on about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthResult {
    /// The client has signed on.
    Granted,
    /// The client has not signed on, or may not have what it asks for.
    Denied,
    /// The client was sent to the page where it can sign on.
    SignIn,
    /// There was no valid answer.
    Failed,
}

/// What the admin listener reports about one sign-on.
#[derive(Clone, Debug)]
pub(crate) struct AuthFigures {
    pub(crate) name: String,
    /// Requests by result, in the order of [`AuthResult::ALL`].
    pub(crate) requests: [u64; AuthResult::ALL.len()],
    /// How long answers took.
    pub(crate) waits: BucketSums,
}

impl AuthResult {
    pub(crate) const ALL: [Self; 4] = [Self::Granted, Self::Denied, Self::SignIn, Self::Failed];

    /// The place in [`Self::ALL`].
    fn position(self) -> usize {
        match self {
            Self::Granted => 0,
            Self::Denied => 1,
            Self::SignIn => 2,
            Self::Failed => 3,
        }
    }

    /// The name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::SignIn => "sign-in",
            Self::Failed => "failed",
        }
    }
}

impl SiteAuths {
    /// The sign-ons of a configuration; `None`: it has none. `upstream` returns the index of an upstream, by its name.
    /// The error is the name of an upstream that does not exist, or a path that is not valid.
    pub(crate) fn new(
        config: &Config,
        workers: usize,
        upstream: impl Fn(&str) -> Option<usize>,
    ) -> Result<Option<Self>, String> {
        if config.auths.is_empty() {
            return Ok(None);
        }
        let mut auths = Vec::with_capacity(config.auths.len());
        let mut claims = Vec::new();
        for auth in &config.auths {
            let kind = match &auth.kind {
                AuthKind::Forward(service) => {
                    claims.extend(service.fields.iter().map(|(name, _)| name.clone()));
                    SiteAuthKind::Forward(Box::new(AskedService::new(service, &upstream)?))
                }
                AuthKind::Users(users) => {
                    claims.extend_from_slice(&users.fields);
                    SiteAuthKind::Users(Arc::new(LiveUsers::unread(&auth.name, users)))
                }
            };
            auths.push(SiteAuth {
                config: Arc::new(auth.clone()),
                kind,
                counts: Arc::new(PerWorker::new(workers, |_| AuthCounts::default())),
            });
        }
        Ok(Some(Self {
            auths,
            claims: claims.into(),
            told: told(config).into(),
        }))
    }

    /// Takes over the counts of sign-ons with the same name.
    pub(super) fn follow(&mut self, before: &Self) {
        for auth in &mut self.auths {
            let mut known = before.auths.iter();
            if let Some(known) = known.find(|it| it.config.name == auth.config.name) {
                auth.counts = Arc::clone(&known.counts);
            }
        }
    }

    /// The sign-on with this name.
    pub(crate) fn named(&self, name: &str) -> Option<&SiteAuth> {
        self.auths.iter().find(|auth| auth.config.name == name)
    }

    /// The users of all sign-ons that have a file of them.
    pub(crate) fn users(&self) -> impl Iterator<Item = &Arc<LiveUsers>> {
        self.auths.iter().filter_map(|auth| match &auth.kind {
            SiteAuthKind::Forward(_) => None,
            SiteAuthKind::Users(users) => Some(users),
        })
    }

    /// The index of the sign-on with this name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.auths.iter().position(|it| it.config.name == name)
    }

    /// The sign-on with this index.
    pub(super) fn at(&self, index: usize) -> Option<&SiteAuth> {
        self.auths.get(index)
    }

    /// The fields in which backends are told who has signed on. Nobody else may send them.
    pub(crate) fn claims(&self) -> &[FieldName] {
        &self.claims
    }

    /// The values of answers that become attributes of AJP13 for some upstream.
    pub(crate) fn told(&self) -> &[AuthSource] {
        &self.told
    }

    /// The figures of all sign-ons.
    pub(crate) fn figures(&self) -> impl Iterator<Item = AuthFigures> {
        self.auths.iter().map(SiteAuth::figures)
    }
}

impl AskedService {
    fn new(
        config: &ForwardAuth,
        upstream: &impl Fn(&str) -> Option<usize>,
    ) -> Result<Self, String> {
        Ok(Self {
            upstream: upstream(&config.upstream).ok_or_else(|| config.upstream.clone())?,
            path: path::normalise(&config.path).map_err(|fault| fault.to_string())?,
            config: config.clone(),
        })
    }
}

impl SiteAuth {
    /// Counts the result of asking about a request, and the time that it took.
    pub(crate) fn count(&self, worker: usize, result: AuthResult, waited: Duration) {
        let counts = &self.counts[worker];
        counts.results[result.position()].increment();
        counts.waits.record(waited);
    }

    fn figures(&self) -> AuthFigures {
        let mut waits = BucketSums::default();
        let mut requests = [0; AuthResult::ALL.len()];
        for counts in self.counts.iter() {
            waits.add(&counts.waits);
            for (sum, count) in requests.iter_mut().zip(&counts.results) {
                *sum += count.read();
            }
        }
        AuthFigures {
            name: self.config.name.clone(),
            requests,
            waits,
        }
    }
}

/// The values of answers that the attributes of some upstream have.
fn told(config: &Config) -> Vec<AuthSource> {
    let mut sources = Vec::new();
    let attributes = config
        .upstreams
        .iter()
        .filter_map(|it| it.attributes.as_ref());
    for attributes in attributes {
        let named = attributes.named.iter().map(|(_, source)| source);
        for source in attributes.auth_type.iter().chain(named) {
            match source {
                AttributeSource::Auth(source) if !sources.contains(source) => {
                    sources.push(source.clone());
                }
                AttributeSource::Auth(_)
                | AttributeSource::Text(_)
                | AttributeSource::Header(_)
                | AttributeSource::Client(_)
                | AttributeSource::Tls(_) => {}
            }
        }
    }
    sources
}
