//! One attempt to get a certificate: from the account to the installed certificate (RFC 8555, section 7.1).
//!
//! What a later attempt needs is stored before the authority is asked for the next step: the order's URL, then the
//! key. An attempt of a process that was killed goes on with both.

use std::cell::RefCell;
use std::io;
use std::time::{Duration, SystemTime};

use catamaran_tls::{Identity, PemFile, RenewalId};
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeStatus,
    ChallengeType, Error, ExternalAccountKey, Identifier, NewAccount, NewOrder, Order, OrderStatus,
    Problem, RetryPolicy,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, RsaKeySize};
use tokio::time::{Instant, sleep, timeout};

use super::challenges;
use super::client::AuthorityClient;
use super::dns_hook::PresentedRecord;
use super::memory::PemPair;
use super::owner::OwnerClaim;
use super::preflight;
use super::schedule::{NameState, RenewalWindow};
use super::store::{self, ChallengeRecord, FileLock, PendingChallenge, Store};
use crate::config::{AcmeChallenge, AcmeConfig, IssuedKeyType};

/// An attempt to get one certificate.
pub(crate) struct Attempt<'a> {
    pub(crate) config: &'a AcmeConfig,
    pub(crate) store: &'a Store,
    /// The name of the TLS profile, for the log.
    pub(crate) profile: &'a str,
    /// The first DNS name, which stands for all.
    pub(crate) name: &'a str,
    /// All DNS names of the certificate.
    names: &'a [String],
    client: AuthorityClient,
    /// What this process orders by; `None`: no other one can take over.
    claim: Option<OwnerClaim>,
    /// The account that it uses, as it is stored; `None`: none yet.
    account_used: RefCell<Option<String>>,
    /// The records that it has put into the DNS, or tried to.
    presented: RefCell<Vec<ChallengeRecord>>,
}

/// An answer to a challenge, which is taken back when this is dropped.
enum PendingAnswer<'a> {
    File { _guard: PendingChallenge },
    Record { _guard: PresentedRecord<'a> },
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttemptFault {
    /// The step that failed.
    pub(crate) step: &'static str,
    /// The authority's type of problem, a URN (RFC 8555, section 6.7); `None`: the authority did not say one.
    pub(crate) problem: Option<String>,
    /// The status of the authority's answer; `None`: it did not answer, or was not asked.
    pub(crate) status: Option<u16>,
    /// What went wrong.
    pub(crate) detail: String,
    /// The seconds that the authority asked to wait.
    pub(crate) retry_after: Option<u64>,
}

impl<'a> Attempt<'a> {
    /// An attempt for these names, of which there is one at least.
    pub(crate) fn new(
        config: &'a AcmeConfig,
        store: &'a Store,
        profile: &'a str,
        names: &'a [String],
    ) -> Self {
        let client = AuthorityClient::new(config.roots.clone());
        Self {
            config,
            store,
            profile,
            name: names.first().map_or("", |name| name),
            names,
            client,
            claim: None,
            account_used: RefCell::default(),
            presented: RefCell::default(),
        }
    }

    /// The attempt of a process with this claim, which ends once another machine has taken it over.
    pub(crate) fn under(self, claim: Option<OwnerClaim>) -> Self {
        Self { claim, ..self }
    }

    /// Fails once another machine has taken over, of which a process that stood still learns late. It is asked before
    /// anything is stored or changed at the authority. The other machine goes on with the order, so answers stay.
    fn owns(&self, step: &'static str) -> Result<(), AttemptFault> {
        if self.claim.as_ref().is_none_or(OwnerClaim::holds) {
            return Ok(());
        }
        self.store.leave_answers();
        Err(self.own(step, &"another machine has taken over"))
    }

    /// Whether the attempt has put a record into the DNS, which it takes out itself.
    pub(crate) fn has_presented(&self, record: &ChallengeRecord) -> bool {
        self.presented.borrow().contains(record)
    }

    /// Gets a certificate, installs and returns it. `replaces` identifies the one that it renews (RFC 9773, section 4.1).
    ///
    /// # Errors
    /// The step that failed. `state` has the order that a later attempt goes on with, if there is one.
    pub(crate) async fn run(
        &self,
        state: &mut NameState,
        replaces: Option<RenewalId>,
    ) -> Result<Identity, AttemptFault> {
        let account = self.account().await?;
        self.preflight(state).await?;
        let mut order = self.order(&account, state, replaces).await?;
        let authorizations = order.state().authorizations.len();
        if authorizations != self.names.len() {
            state.order = None;
            let names = self.names.len();
            let text = format!("the order has {authorizations} authorizations for {names} names");
            return Err(self.own("order", &text));
        }
        if order.state().status == OrderStatus::Pending {
            self.validate(&mut order, state).await?;
        }
        let issued = self.finalize(&mut order).await?;
        self.install(state, &issued)
    }

    /// Asks the authority when it wants a certificate renewed; returns its window, and the seconds for which that
    /// holds. `None`: it does not say it, or there is no account yet.
    pub(crate) async fn window(&self, of: RenewalId) -> Option<(RenewalWindow, u64)> {
        let json = self.store.account().ok()??;
        let credentials = serde_json::from_str(&json).ok()?;
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let account = builder.from_credentials(credentials).await.ok()?;
        let (info, holds) = account.renewal_info(&identifier(of)).await.ok()?;
        let seconds = |moment: i64| u64::try_from(moment).unwrap_or(0);
        let suggested = info.suggested_window;
        let window = RenewalWindow {
            start: seconds(suggested.start.unix_timestamp()),
            end: seconds(suggested.end.unix_timestamp()),
        };
        Some((window, holds.as_secs()))
    }

    /// The account at the authority, which is made if there is none.
    async fn account(&self) -> Result<Account, AttemptFault> {
        if let Some(account) = self.stored_account().await? {
            return Ok(account);
        }
        let _lock = self.lock_account().await?;
        // Another process may have made it meanwhile.
        match self.stored_account().await? {
            Some(account) => Ok(account),
            None => self.new_account().await,
        }
    }

    async fn stored_account(&self) -> Result<Option<Account>, AttemptFault> {
        const STEP: &str = "account";
        let stored = self.store.account();
        let Some(json) = stored.map_err(|error| self.own(STEP, &error))? else {
            return Ok(None);
        };
        let credentials = serde_json::from_str(&json).map_err(|error| self.own(STEP, &error))?;
        *self.account_used.borrow_mut() = Some(json);
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let account = builder.from_credentials(credentials).await;
        account.map(Some).map_err(|error| self.fault(STEP, error))
    }

    /// Waits until no other process makes the account.
    async fn lock_account(&self) -> Result<FileLock, AttemptFault> {
        const STEP: &str = "account";
        let end = Instant::now() + ACCOUNT_WAIT;
        loop {
            let lock = self.store.lock_account();
            if let Some(lock) = lock.map_err(|error| self.own(STEP, &error))? {
                return Ok(lock);
            }
            if Instant::now() >= end {
                return Err(self.own(STEP, &"another process is making the account"));
            }
            sleep(ACCOUNT_LOOK).await;
        }
    }

    async fn new_account(&self) -> Result<Account, AttemptFault> {
        const STEP: &str = "account";
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let contact: Vec<&str> = self.config.contact.iter().map(|it| &**it).collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let bound_to = self.config.external_account.as_ref();
        let external = bound_to.map(|it| ExternalAccountKey::new(it.key_id.clone(), it.hmac_key()));
        let directory = self.config.directory.clone();
        let made = builder.create(&new, directory, external.as_ref()).await;
        let (account, credentials) = made.map_err(|error| self.fault(STEP, error))?;
        let json = serde_json::to_string(&credentials).map_err(|error| self.own(STEP, &error))?;
        if self.store.keep_account(&json) {
            *self.account_used.borrow_mut() = Some(json);
            self.say(STEP);
            return Ok(account);
        }
        // A process of another machine, which the lock does not exclude, has stored one meanwhile: it is everybody's.
        if let Err(error) = account.deactivate().await {
            tracing::warn!(profile = self.profile, %error, "an account that nobody uses stays at the authority");
        }
        let stored = self.stored_account().await?;
        stored.ok_or_else(|| self.own(STEP, &"another process has removed the account"))
    }

    /// Forgets the account, because the authority does not know it any more, unless another process has stored another one.
    pub(crate) fn forget_account(&self) {
        let stored = self.store.account().ok().flatten();
        if stored == *self.account_used.borrow() {
            self.store.forget_account();
        }
    }

    /// Looks whether the name leads to this front, unless an order is under way. Each third attempt goes on all the same: a
    /// front behind address translation may not reach itself by its name.
    async fn preflight(&self, state: &NameState) -> Result<(), AttemptFault> {
        const STEP: &str = "preflight";
        if !self.config.preflight || state.order.is_some() {
            return Ok(());
        }
        let is_by_file =
            |name: &&String| self.challenge_of(name, state) == Some(AcmeChallenge::Http01);
        let look = async {
            for name in self.names.iter().filter(is_by_file) {
                preflight::look(self.store, name).await?;
            }
            io::Result::Ok(())
        };
        let looked = timeout(PREFLIGHT_MAX, look).await;
        let too_long = || {
            Err(io::Error::other(format!(
                "it has not ended within {PREFLIGHT_MAX:?}"
            )))
        };
        let Err(error) = looked.unwrap_or_else(|_elapsed| too_long()) else {
            return Ok(());
        };
        if state.failures.is_multiple_of(3) {
            let (profile, name, step) = (self.profile, self.name, STEP);
            tracing::warn!(profile, name, step, detail = %error, "acme; a certificate is ordered all the same");
            return Ok(());
        }
        Err(self.own(STEP, &error))
    }

    /// The order that is under way, if it can still lead to a certificate; else a new one. Its URL is stored.
    async fn order(
        &self,
        account: &Account,
        state: &mut NameState,
        replaces: Option<RenewalId>,
    ) -> Result<Order, AttemptFault> {
        const STEP: &str = "order";
        if state.order_names != self.names {
            // It was made for what the configuration had before.
            state.order = None;
        }
        if let Some(url) = state.order.clone() {
            match account.order(url).await {
                Ok(mut order) => {
                    if order.state().status != OrderStatus::Invalid {
                        return Ok(order);
                    }
                    state.order = None;
                }
                Err(error) => {
                    let fault = self.fault(STEP, error);
                    if !fault.ends_order(state.failures) {
                        return Err(fault);
                    }
                    state.order = None;
                }
            }
        }
        self.owns(STEP)?;
        // The key of an order is of no other.
        self.store.forget_next_key(self.name);
        let names = self.names.iter().cloned();
        let identifiers: Vec<Identifier> = names.map(Identifier::Dns).collect();
        let new = |replaces: Option<RenewalId>| {
            let mut order = NewOrder::new(&identifiers);
            if let Some(profile) = &self.config.profile {
                order = order.profile(profile);
            }
            match replaces {
                Some(certificate) => order.replaces(identifier(certificate)),
                None => order,
            }
        };
        let ordered = match account.new_order(&new(replaces.clone())).await {
            // An authority without renewalInfo, or one that does not accept what this order says it replaces.
            Err(error)
                if replaces.is_some()
                    && may_be_about_replacing(&error, self.client.last_status()) =>
            {
                account.new_order(&new(None)).await
            }
            ordered => ordered,
        };
        let order = ordered.map_err(|error| self.fault(STEP, error))?;
        self.owns(STEP)?;
        state.order = Some(order.url().to_owned());
        state.order_names = self.names.to_vec();
        self.store.keep_state(self.name, state);
        self.say(STEP);
        Ok(order)
    }

    /// The challenge by which the attempt proves that its names, but for wildcards, are this front's; `None`: the front
    /// can answer none.
    pub(crate) fn challenge(&self, state: &NameState) -> Option<AcmeChallenge> {
        let mut names = self.names.iter();
        let name = names.find(|name| !name.starts_with("*."));
        self.challenge_of(name.map_or(self.name, |name| name), state)
    }

    fn challenge_of(&self, name: &str, state: &NameState) -> Option<AcmeChallenge> {
        if name.starts_with("*.") {
            return Some(AcmeChallenge::Dns01);
        }
        state.challenge(&self.config.challenges)
    }

    /// Proves that the names are this front's.
    async fn validate(&self, order: &mut Order, state: &NameState) -> Result<(), AttemptFault> {
        const STEP: &str = "validate";
        // Each is answered until this is dropped.
        let _pending = self.answer_challenges(order, state).await?;
        let (profile, name, step) = (self.profile, self.name, "challenge");
        let challenge = self.challenge(state).map_or("none", AcmeChallenge::name);
        tracing::info!(profile, name, step, challenge, "acme");
        let decided = order.poll_ready(&POLL).await;
        let is_refused = order.state().error.is_some();
        match decided {
            Ok(OrderStatus::Ready) => Ok(()),
            Err(error) if !is_refused => Err(self.fault(STEP, error)),
            Ok(_) | Err(_) => Err(self.refusal(order).await),
        }
    }

    async fn answer_challenges(
        &self,
        order: &mut Order,
        state: &NameState,
    ) -> Result<Vec<PendingAnswer<'_>>, AttemptFault> {
        const STEP: &str = "challenge";
        let mut pending = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| self.fault(STEP, error))?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let asked = authorization.identifier().to_string();
            let Some(name) = self.names.iter().find(|it| **it == asked) else {
                let text = format!("the authority wants `{}` proved", asked.escape_debug());
                return Err(self.own(STEP, &text));
            };
            let Some(by) = self.challenge_of(name, state) else {
                return Err(self.own(STEP, &"the front can answer no challenge"));
            };
            let Some(mut challenge) = authorization.challenge(kind_of(by)) else {
                let by = by.name();
                let text = format!("the authority offers no challenge {by} for {name}");
                return Err(self.own(STEP, &text));
            };
            let answer = self.answer(name, by, &challenge).await;
            pending.push(answer.map_err(|error| self.own(STEP, &error))?);
            self.owns(STEP)?;
            // In an order that another attempt began, it may be under way.
            if challenge.status == ChallengeStatus::Pending {
                let ready = challenge.set_ready().await;
                ready.map_err(|error| self.fault(STEP, error))?;
            }
        }
        Ok(pending)
    }

    /// Answers a challenge until the guard is dropped.
    async fn answer(
        &self,
        name: &str,
        by: AcmeChallenge,
        challenge: &ChallengeHandle<'_>,
    ) -> io::Result<PendingAnswer<'_>> {
        let answer = challenge.key_authorization();
        let guard = match by {
            AcmeChallenge::Http01 => self.store.answer(&challenge.token, answer.as_str())?,
            AcmeChallenge::TlsAlpn01 => {
                let pem = challenges::certificate(name, answer.digest().as_ref());
                let pem = pem.map_err(io::Error::other)?;
                self.store.answer_by_certificate(name, &pem)
            }
            AcmeChallenge::Dns01 => {
                let domain = name.strip_prefix("*.").unwrap_or(name);
                let record = ChallengeRecord {
                    name: format!("_acme-challenge.{domain}"),
                    value: answer.dns_value(),
                };
                self.presented.borrow_mut().push(record.clone());
                let stored = self.store.keep_record(self.name, record);
                let (hook, stays) = (&self.config.dns_hook, self.store.leaves_answers());
                return Ok(PendingAnswer::Record {
                    _guard: PresentedRecord::present(hook, stored, stays).await?,
                });
            }
        };
        Ok(PendingAnswer::File { _guard: guard })
    }

    /// Why the authority refused the order: what it says of the challenge, else of the order.
    async fn refusal(&self, order: &mut Order) -> AttemptFault {
        const STEP: &str = "validate";
        let of_order = order.state().error.clone();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let Ok(mut authorization) = authorization else {
                break;
            };
            let Ok(state) = authorization.refresh().await else {
                continue;
            };
            let mut problems = state.challenges.iter().filter_map(|it| it.error.clone());
            if let Some(problem) = problems.next() {
                let mut fault = self.fault(STEP, Error::Api(problem));
                if self.names.len() > 1 {
                    fault.detail = format!("{}: {}", state.identifier(), fault.detail);
                }
                return fault;
            }
        }
        match of_order {
            Some(problem) => self.fault(STEP, Error::Api(problem)),
            None => self.own(STEP, &"the authority refused the order and did not say why"),
        }
    }

    /// Sends the request for the certificate, and waits for it.
    async fn finalize(&self, order: &mut Order) -> Result<PemPair, AttemptFault> {
        const STEP: &str = "finalize";
        self.owns(STEP)?;
        let stored = self.store.next_key(self.name);
        let stored = stored.map_err(|error| self.own(STEP, &error))?;
        let key = match stored {
            Some(pem) => KeyPair::from_pem(&pem),
            None => new_key(self.config.key_type),
        };
        let key = key.map_err(|error| self.own(STEP, &error))?;
        let pem = key.serialize_pem();
        self.store.keep_next_key(self.name, &pem);
        if order.state().status == OrderStatus::Ready {
            let request = self.request(&key).map_err(|error| self.own(STEP, &error))?;
            let finalized = order.finalize_csr(&request).await;
            finalized.map_err(|error| self.fault(STEP, error))?;
        }
        self.say(STEP);
        let chain = order.poll_certificate(&POLL).await;
        Ok(PemPair {
            chain: chain.map_err(|error| self.fault("certificate", error))?,
            key: pem,
        })
    }

    /// The request for the certificate (CSR), as DER.
    fn request(&self, key: &KeyPair) -> Result<Vec<u8>, rcgen::Error> {
        let mut params = CertificateParams::new(self.names)?;
        params.distinguished_name = DistinguishedName::new();
        Ok(params.serialize_request(key)?.der().to_vec())
    }

    /// Puts the certificate in place, if it is for these names and this key, and valid.
    fn install(&self, state: &mut NameState, issued: &PemPair) -> Result<Identity, AttemptFault> {
        const STEP: &str = "install";
        self.owns(STEP)?;
        let file = |name: &str, text: &str| PemFile {
            path: name.into(),
            bytes: text.into(),
            is_public: false,
        };
        let (of_chain, of_key) = (
            file("chain.pem", &issued.chain),
            file("key.pem", &issued.key),
        );
        let now = SystemTime::now();
        let unusable = |fault: &str| self.own(STEP, &fault);
        let checked = store::identity_for(self.names, &of_chain, &of_key, now)
            .map_err(|fault| unusable(&fault))
            .and_then(|identity| {
                let is_over = identity.facts.not_after <= now;
                let ended = || unusable("the certificate that was issued has ended already");
                if is_over { Err(ended()) } else { Ok(identity) }
            });
        let identity = checked.inspect_err(|_| state.order = None)?;
        // If the disk does not take it, it is served from memory.
        self.store.install(self.name, issued);
        state.order = None;
        self.say("issued");
        Ok(identity)
    }

    fn say(&self, step: &str) {
        tracing::info!(profile = self.profile, name = self.name, step, "acme");
    }

    /// A fault that the authority did not cause.
    fn own(&self, step: &'static str, what: &impl ToString) -> AttemptFault {
        AttemptFault {
            step,
            problem: None,
            status: self.client.last_status(),
            detail: what.to_string(),
            retry_after: self.client.asked_to_wait(),
        }
    }

    fn fault(&self, step: &'static str, error: Error) -> AttemptFault {
        match error {
            Error::Api(problem) => AttemptFault {
                detail: detail(&problem),
                status: problem.status.or_else(|| self.client.last_status()),
                problem: problem.r#type,
                step,
                retry_after: self.client.asked_to_wait(),
            },
            error => self.own(step, &error),
        }
    }
}

impl AttemptFault {
    /// Whether no later attempt goes on with the order that was under way. `failures`: how many attempts failed in a
    /// row, this one included.
    ///
    /// An authority that limits requests, or refuses a nonce, says nothing of the order. One that cannot answer, or says
    /// no type of problem, may do so for this order only: each third failure ends it.
    pub(crate) fn ends_order(&self, failures: u32) -> bool {
        let kind = kind(self.problem.as_deref());
        if matches!(kind, "badNonce" | "rateLimited") || self.status == Some(429) {
            return false;
        }
        let is_down = kind == "serverInternal" || self.status.is_some_and(|it| it >= 500);
        if self.problem.is_some() && !is_down {
            return true;
        }
        failures.is_multiple_of(3)
    }

    /// Whether the authority does not know the account any more.
    pub(crate) fn is_of_unknown_account(&self) -> bool {
        kind(self.problem.as_deref()) == "accountDoesNotExist"
    }

    /// Whether the authority refused a request's nonce, which says nothing of the name (RFC 8555, section 6.5).
    pub(crate) fn is_of_nonce(&self) -> bool {
        kind(self.problem.as_deref()) == "badNonce"
    }

    /// What the operator may look at, after an attempt by this challenge; `None`: the fault says all.
    pub(crate) fn hint(&self, challenge: Option<AcmeChallenge>) -> Option<&'static str> {
        if self.step == "preflight" {
            return Some(
                "port 80 of each address of the name must lead to this front; each third attempt goes on all the same",
            );
        }
        Some(match kind(self.problem.as_deref()) {
            "caa" => "the CAA records of the name forbid this authority: dig NAME CAA",
            "connection" if challenge == Some(AcmeChallenge::TlsAlpn01) => {
                "the authority must reach port 443 of every address that the name has"
            }
            "connection" => "the authority must reach port 80 of every address that the name has",
            "externalAccountRequired" => {
                "the authority wants an account of its own: write eab_key_id and eab_hmac_file"
            }
            "dns" => {
                "the name must have an address that everybody can look up: dig NAME A; dig NAME AAAA"
            }
            "rateLimited" => {
                "the authority counts orders of a name: docs/tls.md says when the next one begins"
            }
            "unauthorized" if challenge == Some(AcmeChallenge::Dns01) => {
                "`dns_hook` must end only when every name server of the domain has the record"
            }
            "unauthorized" => {
                "another server answers for the name: is each of its addresses one of this front?"
            }
            _ => return None,
        })
    }
}

/// What the authority says, with what it says of each name.
fn detail(problem: &Problem) -> String {
    let mut text = problem.detail.clone().unwrap_or_default();
    for subproblem in &problem.subproblems {
        text.push_str(&format!("; {subproblem}"));
    }
    text
}

/// The last part of a type of problem, such as `badNonce`; empty if there is none.
fn kind(problem: Option<&str>) -> &str {
    let parts = problem.and_then(|urn| urn.rsplit_once(':'));
    parts.map_or("", |(_, kind)| kind)
}

/// Whether an order may have been refused because of the certificate that it replaces. Only 409 is specified for that
/// (RFC 9773, section 5), but authorities also refuse, each in its own words, a certificate of another account, another
/// authority or another name. `status`: that of the answer; `None`: there was none.
fn may_be_about_replacing(error: &Error, status: Option<u16>) -> bool {
    match error {
        Error::Unsupported(_) => true,
        // The answer does not repeat what is replaced.
        Error::Other(_) => status.is_some(),
        Error::Api(problem) => {
            let kind = kind(problem.r#type.as_deref());
            let is_of_other_cause =
                matches!(kind, "badNonce" | "rateLimited" | "accountDoesNotExist");
            let status = problem.status.or(status);
            !is_of_other_cause && status.is_none_or(|it| it != 429 && it < 500)
        }
        _ => false,
    }
}

fn kind_of(challenge: AcmeChallenge) -> ChallengeType {
    match challenge {
        AcmeChallenge::Http01 => ChallengeType::Http01,
        AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        AcmeChallenge::Dns01 => ChallengeType::Dns01,
    }
}

fn identifier(certificate: RenewalId) -> CertificateIdentifier<'static> {
    CertificateIdentifier {
        authority_key_identifier: certificate.authority_key.into(),
        serial: certificate.serial.into(),
    }
}

fn new_key(key_type: IssuedKeyType) -> Result<KeyPair, rcgen::Error> {
    match key_type {
        IssuedKeyType::P256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        IssuedKeyType::P384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        IssuedKeyType::Rsa2048 => {
            KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048)
        }
    }
}

/// How the authority is asked whether it has decided: after 250 ms, then at doubled pauses, for a minute.
const POLL: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(60));

/// How long the look at all names of a certificate may take: one that does not lead here takes ten seconds.
const PREFLIGHT_MAX: Duration = Duration::from_secs(60);

/// How long an attempt waits for the account that another process makes.
const ACCOUNT_WAIT: Duration = Duration::from_secs(60);

/// How often is looked whether that process has ended it.
const ACCOUNT_LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tls::acme::test_config;

    #[tokio::test]
    async fn one_process_makes_the_account() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = test_config(folder.path());
        // Nobody listens there.
        config.directory = "https://127.0.0.1:1/directory".to_owned();
        let store = Store::new(&config, &Arc::default());
        store.open().unwrap();
        let lock = store.lock_account().unwrap();
        let attempt = Attempt::new(&config, &store, "www", &config.names);
        let made_by_another = async {
            tokio::task::yield_now().await;
            assert!(store.keep_account("of the other one"));
            drop(lock);
        };
        let (account, ()) = tokio::join!(attempt.account(), made_by_another);
        let fault = account.map(|_| ()).unwrap_err();
        assert!(fault.detail.contains("expected value"), "{fault:?}");
    }

    /// The URN of a problem.
    fn urn(kind: &str) -> Option<String> {
        (!kind.is_empty()).then(|| format!("urn:ietf:params:acme:error:{kind}"))
    }

    #[test]
    fn an_order_without_replaces_is_tried_unless_the_refusal_has_another_cause() {
        for (kind, status, retries) in [
            ("alreadyReplaced", Some(409), true),
            ("malformed", Some(400), true),
            ("unauthorized", Some(403), true),
            ("serverInternal", Some(404), true),
            ("", None, true),
            ("badNonce", Some(400), false),
            ("rateLimited", Some(429), false),
            ("", Some(429), false),
            ("accountDoesNotExist", Some(400), false),
            ("serverInternal", Some(500), false),
            ("", Some(503), false),
        ] {
            let problem = |status| {
                Error::Api(Problem {
                    r#type: urn(kind),
                    detail: None,
                    status,
                    subproblems: Vec::new(),
                })
            };
            // The problem says the status, or the answer alone does.
            for (said, answered) in [(status, None), (None, status)] {
                let decided = may_be_about_replacing(&problem(said), answered);
                assert_eq!(decided, retries, "{kind} {status:?}");
            }
        }
        let mismatch = Error::Other("replaces field mismatch".into());
        assert!(may_be_about_replacing(&mismatch, Some(201)));
        assert!(!may_be_about_replacing(&mismatch, None), "no answer at all");
        assert!(may_be_about_replacing(&Error::Unsupported("ARI"), None));
    }

    #[test]
    fn an_order_outlives_what_is_not_its_own_fault_but_not_forever() {
        let ends = |kind: &str, status: Option<u16>| {
            let fault = AttemptFault {
                step: "order",
                problem: urn(kind),
                status,
                detail: String::new(),
                retry_after: None,
            };
            [1, 2, 3, 4, 5, 6].map(|failures| fault.ends_order(failures))
        };
        let third = [false, false, true, false, false, true];
        for (kind, status, expected) in [
            ("malformed", Some(404), [true; 6]),
            ("unauthorized", Some(403), [true; 6]),
            ("accountDoesNotExist", Some(400), [true; 6]),
            ("badNonce", Some(400), [false; 6]),
            ("rateLimited", Some(429), [false; 6]),
            ("malformed", Some(429), [false; 6]),
            ("", Some(429), [false; 6]),
            ("serverInternal", Some(500), third),
            ("malformed", Some(503), third),
            ("", Some(404), third),
            ("", None, third),
        ] {
            assert_eq!(ends(kind, status), expected, "{kind:?} {status:?}");
        }
    }
}
