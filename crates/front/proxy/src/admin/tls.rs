//! The TLS profiles and their certificates, as the API shows them.

use std::time::SystemTime;

use catamaran_admin_api::{
    CertificateStatus, IssuedNameStatus, OperationReport, ProfileList, ProfileStatus,
    ReplacedCertificate,
};
use catamaran_tls::CertificateFacts;
use http::StatusCode;

use super::reply::Reply;
use crate::config::ClientCertificate;
use crate::date::{show_moment, unix_seconds};
use crate::tls::acme::{IssuedName, NameFigures, RenewalRefusal};
use crate::tls::{self, LiveProfile};
use crate::worker::FrontState;

/// `GET /api/v1/tls`: every profile with its certificates.
pub(super) fn all(shared: &FrontState) -> ProfileList {
    let loaded = shared.profiles.load_full();
    let mut sorted: Vec<_> = loaded.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    let issuance = shared.issuance.all();
    let profiles = sorted.into_iter().map(|(name, live)| ProfileStatus {
        acme: names_of(name, live, &issuance),
        ..profile(name, live)
    });
    ProfileList {
        profiles: profiles.collect(),
    }
}

/// `POST /api/v1/tls/N/renew`: has a new certificate ordered for a DNS name.
pub(super) fn renew(shared: &FrontState, name: &str) -> Reply {
    let name = name.to_ascii_lowercase();
    let wrong = |status, detail: &str| Reply::problem(status, "renew", detail);
    let profiles = shared.profiles.load();
    let mut configs = profiles.values().filter_map(|it| it.config.acme.as_ref());
    let first = configs.find_map(|acme| acme.first_name_of(&name));
    let first = first.unwrap_or(&name);
    match shared.issuance.ask(first, unix_seconds(SystemTime::now())) {
        Ok(()) => {
            tracing::info!(name, "an administrator asked for a new certificate");
            let report = format!(
                "a new certificate of {name} is ordered as soon as no other attempt is under way"
            );
            Reply::json(&OperationReport { report }).status(StatusCode::ACCEPTED)
        }
        Err(RenewalRefusal::Unknown) => {
            Reply::not_found("no [tls.NAME.acme] has this name, or the front has just started")
        }
        Err(RenewalRefusal::Elsewhere) => {
            let detail = "another process orders the certificates of this name";
            wrong(StatusCode::CONFLICT, detail)
        }
        Err(RenewalRefusal::Unready) => {
            let detail = "nothing can be ordered for this name now; `problem` of GET /tls says why";
            wrong(StatusCode::SERVICE_UNAVAILABLE, detail)
        }
        Err(RenewalRefusal::TooSoon(left)) => {
            let detail = "a certificate of this name was asked for within the last hour";
            wrong(StatusCode::TOO_MANY_REQUESTS, detail)
                .retry_after(left.as_secs().saturating_add(1))
        }
    }
}

fn profile(name: &str, live: &LiveProfile) -> ProfileStatus {
    let served = live.current();
    let read_at = live.read();
    let all_facts = served.certificates().iter();
    let certificates = all_facts
        .zip(live.replaced())
        .map(|(facts, replaced)| certificate(facts, replaced.as_ref()));
    // The default, 0, holds if the clock was set back.
    let since_read = SystemTime::now().duration_since(read_at);
    let age = since_read.unwrap_or_default();
    let client_certificate = match live.config.settings.client_certificate {
        ClientCertificate::Off => "off",
        ClientCertificate::Optional => "optional",
        ClientCertificate::Required => "required",
    };
    ProfileStatus {
        name: name.to_owned(),
        client_certificate: client_certificate.to_owned(),
        read: show_moment(unix_seconds(read_at)),
        age_s: age.as_secs(),
        refused: live.refused().map(|reason| reason.as_str().to_owned()),
        certificates: certificates.collect(),
        acme: Vec::new(),
    }
}

/// The names of a profile that get certificates by ACME.
fn names_of(
    profile: &str,
    live: &LiveProfile,
    issuance: &[(IssuedName, NameFigures)],
) -> Vec<IssuedNameStatus> {
    let served = live.current();
    let has_certificate = |name: &String| {
        served
            .certificates()
            .iter()
            .any(|it| it.names.contains(name))
    };
    let certificates = live.config.acme.iter().flat_map(|acme| acme.certificates());
    let of_each = certificates.flat_map(|names| {
        let of_first = |it: &IssuedName| it.profile == profile && names.first() == Some(&it.name);
        let tended = issuance.iter().find(|(it, _)| of_first(it));
        let figures = tended.map(|(_, figures)| figures);
        names.iter().filter_map(move |name| Some((name, figures?)))
    });
    let status = of_each.map(|(name, figures)| {
        let state = match (has_certificate(name), figures.is_followed) {
            (true, _) => "served",
            (false, true) => "followed",
            (false, false) => "awaited",
        };
        IssuedNameStatus {
            name: name.clone(),
            state: state.to_owned(),
            failures: figures.failures,
            problem: figures.problem.clone(),
            next_attempt: (!figures.is_followed).then(|| show_moment(figures.next_attempt)),
            unstored: figures.is_unstored,
        }
    });
    status.collect()
}

fn certificate(
    facts: &CertificateFacts,
    replaced: Option<&tls::ReplacedCertificate>,
) -> CertificateStatus {
    CertificateStatus {
        names: facts.names.clone(),
        issuer: facts.issuer.clone(),
        not_after: show_moment(unix_seconds(facts.not_after)),
        sha256: facts.sha256.clone(),
        key_type: facts.key_type.to_owned(),
        file: facts.chain_file.display().to_string(),
        key_file: facts.key_file.display().to_string(),
        replaced: replaced.map(replaced_certificate),
    }
}

fn replaced_certificate(replaced: &tls::ReplacedCertificate) -> ReplacedCertificate {
    ReplacedCertificate {
        not_after: show_moment(unix_seconds(replaced.not_after)),
        sha256: replaced.sha256.clone(),
        at: show_moment(unix_seconds(replaced.at)),
    }
}
