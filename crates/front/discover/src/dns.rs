//! Discovers members by DNS names: from addresses (A, AAAA), or from services (SRV).
//!
//! Each name is looked up again when the answer's time to live is over, at the servers that `resolv.conf` names
//! at that moment, over UDP and, if the answer does not fit, over TCP. Turning records into members needs no
//! network.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::{Resolver, ResolverBuilder, TokioResolver};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::back_off::{back_off, spread};
use crate::member::{FoundMember, Place, Speech};
use crate::merge::Answer;

/// A DNS name whose records are the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSource {
    /// The name to look up.
    pub name: String,
    /// The kind of records to look up.
    pub kind: DnsKind,
    /// The protocol that members speak.
    pub speech: Speech,
    /// The name servers to ask; empty: those of `/etc/resolv.conf`.
    pub resolvers: Vec<SocketAddr>,
}

/// The kind of records that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsKind {
    /// Addresses (A, AAAA); all members have the same port.
    Addresses {
        /// The port, never 0.
        port: u16,
    },
    /// Services (SRV), whose records contain ports.
    Services,
}

/// The members in an answer, and how long the answer is valid.
struct DnsAnswer {
    members: Vec<FoundMember>,
    valid_for: Duration,
}

/// An SRV record with the addresses of its target.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Service {
    priority: u16,
    weight: u16,
    port: u16,
    /// The target's name without its closing dot.
    target: String,
    addresses: BTreeSet<IpAddr>,
}

impl DnsSource {
    /// Looks the name up again and again, and sends the answers; see [`crate::MemberSource::run`]. The pause is the
    /// answer's time to live; after failures it grows.
    pub(crate) async fn run(self, answers: mpsc::Sender<Answer>, ask_again: Arc<Notify>) {
        let mut failures = 0_u32;
        loop {
            let (answer, pause) = match self.resolve().await {
                Ok(resolved) => {
                    failures = 0;
                    let pause = resolved.valid_for.clamp(PAUSE_MIN, PAUSE_MAX);
                    (Answer::members(resolved.members), pause)
                }
                Err(reason) => {
                    failures = failures.saturating_add(1);
                    (Answer::Failed(reason), back_off(failures))
                }
            };
            if answers.send(answer).await.is_err() {
                return;
            }
            tokio::select! {
                () = sleep(spread(pause, fastrand::f64())) => {}
                () = ask_again.notified() => {}
                () = answers.closed() => return,
            }
        }
    }

    /// Looks the name up once.
    pub(crate) async fn ask(&self) -> Answer {
        match self.resolve().await {
            Ok(resolved) => Answer::members(resolved.members),
            Err(reason) => Answer::Failed(reason),
        }
    }

    /// Looks the name up with a new resolver.
    async fn resolve(&self) -> Result<DnsAnswer, String> {
        // A new one each time reads `resolv.conf` anew, and keeps no answers.
        let resolver = self.resolver().map_err(|error| error.to_string())?;
        match self.kind {
            DnsKind::Addresses { port } => {
                let (addresses, valid_for) = addresses(&resolver, &self.name).await?;
                if addresses.is_empty() {
                    return Err(format!("{} has no addresses", self.name));
                }
                let members = addresses
                    .into_iter()
                    .map(|ip| self.member_at(ip, port))
                    .collect();
                Ok(DnsAnswer { members, valid_for })
            }
            DnsKind::Services => self.services(&resolver).await,
        }
    }

    /// Looks up SRV records, and the addresses of their targets that the answer lacks.
    async fn services(&self, resolver: &TokioResolver) -> Result<DnsAnswer, String> {
        let Some(answer) = look_up(resolver, &self.name, RecordType::SRV).await? else {
            return Err(format!("{} has no services", self.name));
        };
        let mut valid_for = time_to_live(&answer);
        let additional = additional_addresses(&answer);
        let mut services = Vec::new();
        for record in answer.answers() {
            let RData::SRV(srv) = &record.data else {
                continue;
            };
            let target = trimmed(&srv.target.to_ascii());
            // A dot alone says that there is no such service (RFC 2782).
            if target.is_empty() || srv.port == 0 {
                continue;
            }
            let target_addresses = match additional.get(&target) {
                Some(known) => known.clone(),
                None => {
                    // With the dot, no search domain is appended.
                    let absolute_name = format!("{target}.");
                    let (found, found_valid_for) = addresses(resolver, &absolute_name).await?;
                    valid_for = valid_for.min(found_valid_for);
                    found
                }
            };
            services.push(Service {
                priority: srv.priority,
                weight: srv.weight,
                port: srv.port,
                target,
                addresses: target_addresses,
            });
            if services.len() >= SERVICES_MAX {
                break;
            }
        }
        let members = members(services, self.speech);
        if members.is_empty() {
            return Err(format!("no service of {} has an address", self.name));
        }
        Ok(DnsAnswer { members, valid_for })
    }

    /// The member at one of the name's addresses. It is named after the address.
    fn member_at(&self, ip: IpAddr, port: u16) -> FoundMember {
        let address = SocketAddr::new(ip, port);
        FoundMember {
            server_name: Some(trimmed(&self.name)),
            ..FoundMember::new(address.to_string(), Place::at(ip, port), self.speech)
        }
    }

    /// A resolver that asks the configured servers or, without any, those of this machine.
    fn resolver(&self) -> Result<TokioResolver, NetError> {
        let provider = TokioRuntimeProvider::default();
        let mut builder = if self.resolvers.is_empty() {
            system_resolver(provider)?
        } else {
            let servers = self.resolvers.iter().map(|address| server(*address));
            let config = ResolverConfig::from_name_servers(servers.collect());
            Resolver::builder_with_config(config, provider)
        };
        let options: &mut ResolverOpts = builder.options_mut();
        if !self.resolvers.is_empty() {
            // Configured servers alone decide.
            options.use_hosts_file = ResolveHosts::Never;
        }
        // The resolver is dropped after this look-up.
        options.cache_size = 0;
        options.timeout = options.timeout.min(ASK_MAX);
        options.attempts = 2;
        builder.build()
    }
}

/// A resolver with the servers, search domains and options of this machine's `resolv.conf`.
fn system_resolver(provider: TokioRuntimeProvider) -> Result<Builder, NetError> {
    let text = std::fs::read(RESOLV_CONF)?;
    // Lines with errors are left out, as by the system's resolver.
    let (system, _) = resolv_conf::Config::parse_with_errors(&text);
    let addresses = system.nameservers.iter();
    let servers: Vec<NameServerConfig> = addresses
        .map(|ip| NameServerConfig::udp_and_tcp(ip.into()))
        .collect();
    if servers.is_empty() {
        return Err(NetError::from(format!("{RESOLV_CONF} names no server")));
    }
    let domains = system.get_last_search_or_domain();
    let search = domains.filter_map(|domain| Name::from_str_relaxed(domain).ok());
    let config = ResolverConfig::from_parts(None, search.collect(), servers);
    let mut builder = Resolver::builder_with_config(config, provider);
    let options = builder.options_mut();
    options.ndots = usize::try_from(system.ndots).unwrap_or(1);
    options.timeout = Duration::from_secs(u64::from(system.timeout));
    Ok(builder)
}

type Builder = ResolverBuilder<TokioRuntimeProvider>;

fn server(address: SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = address.port();
    }
    // As hickory does for servers of `resolv.conf`: an answer that a name does not exist is believed.
    let trusts_negative_responses = true;
    NameServerConfig::new(address.ip(), trusts_negative_responses, connections)
}

/// Looks up the addresses of a name, and how long they are valid, at most [`PAUSE_MAX`]; empty if it has none.
async fn addresses(
    resolver: &TokioResolver,
    name: &str,
) -> Result<(BTreeSet<IpAddr>, Duration), String> {
    let (ipv4, ipv6) = tokio::join!(
        look_up(resolver, name, RecordType::A),
        look_up(resolver, name, RecordType::AAAA),
    );
    let mut addresses = BTreeSet::new();
    let mut valid_for = PAUSE_MAX;
    // If one of the two lookups fails, both do: members of the other family would seem to have left.
    for answer in [ipv4?, ipv6?].into_iter().flatten() {
        valid_for = valid_for.min(time_to_live(&answer));
        for record in answer.answers() {
            addresses.extend(address(&record.data));
        }
    }
    Ok((addresses, valid_for))
}

/// Looks up records of one type; `None` if there are none.
async fn look_up(
    resolver: &TokioResolver,
    name: &str,
    kind: RecordType,
) -> Result<Option<Lookup>, String> {
    match resolver.lookup(name, kind).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_no_records_found() => Ok(None),
        Err(error) => Err(format!("{kind} of {name}: {error}")),
    }
}

/// The addresses in the additional section of an answer, by name.
fn additional_addresses(answer: &Lookup) -> BTreeMap<String, BTreeSet<IpAddr>> {
    let mut by_name: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
    for record in answer.additionals() {
        if let Some(ip) = address(&record.data) {
            let name = trimmed(&record.name.to_ascii());
            by_name.entry(name).or_default().insert(ip);
        }
    }
    by_name
}

fn address(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(a) => Some(IpAddr::V4(a.0)),
        RData::AAAA(aaaa) => Some(IpAddr::V6(aaaa.0)),
        _ => None,
    }
}

/// The shortest time to live among an answer's records.
fn time_to_live(answer: &Lookup) -> Duration {
    let records = answer.answers().iter().chain(answer.additionals());
    let with_ttl = records.filter(|record| !is_option(record));
    let shortest = with_ttl.map(|record| record.ttl).min();
    Duration::from_secs(u64::from(shortest.unwrap_or_default()))
}

/// Whether the record is EDNS's, whose field for the time to live has another meaning.
fn is_option(record: &Record) -> bool {
    record.record_type() == RecordType::OPT
}

/// Turns services into members. The rank of a priority is the distance; the first label of the target is the name. A
/// service without an address is left out.
fn members(services: Vec<Service>, speech: Speech) -> Vec<FoundMember> {
    let priorities: BTreeSet<u16> = services.iter().map(|service| service.priority).collect();
    let weights = services.iter().map(|service| service.weight);
    let heaviest = weights.max().unwrap_or_default();
    let to_member = |service: Service| {
        let ip = *service.addresses.first()?;
        let name = service.target.split('.').next()?.to_owned();
        let rank = priorities.range(..service.priority).count();
        let distance = u32::try_from(rank).unwrap_or(DISTANCE_MAX);
        Some(FoundMember {
            weight: scaled(service.weight, heaviest),
            distance: distance.min(DISTANCE_MAX),
            jvm_route: Some(name.clone()),
            server_name: Some(service.target),
            ..FoundMember::new(name, Place::at(ip, service.port), speech)
        })
    };
    services.into_iter().filter_map(to_member).collect()
}

/// Scales a DNS weight to one from 1 to 1000. In DNS, 0 is the smallest.
fn scaled(weight: u16, heaviest: u16) -> u32 {
    let (weight, heaviest) = (u32::from(weight), u32::from(heaviest));
    if heaviest > WEIGHT_MAX {
        (weight * WEIGHT_MAX / heaviest).max(1)
    } else {
        weight.max(1)
    }
}

/// Removes a name's closing dot and turns it into lower case, for comparisons.
fn trimmed(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// The file that names this machine's resolvers.
const RESOLV_CONF: &str = "/etc/resolv.conf";

const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// How long to wait for one server's answer.
const ASK_MAX: Duration = Duration::from_secs(2);

/// The most records of one answer that are read.
const SERVICES_MAX: usize = 10_000;

const WEIGHT_MAX: u32 = 1000;
const DISTANCE_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn service(priority: u16, weight: u16, target: &str, ip: &str) -> Service {
        Service {
            priority,
            weight,
            port: 8009,
            target: target.to_owned(),
            addresses: ip.split(' ').filter_map(|it| it.parse().ok()).collect(),
        }
    }

    #[test]
    fn services_are_members_by_their_first_labels() {
        let services = vec![
            service(20, 0, "app-1.app.shop.svc", "10.0.0.2 10.0.0.1"),
            service(10, 5, "app-0.app.shop.svc", "10.0.0.3"),
            service(30, 5, "app-2.app.shop.svc", ""),
            service(40, 7, "far", "fd00::1"),
        ];
        let seen = |found: &FoundMember| {
            let place = found.place.to_string();
            (found.name.clone(), place, found.weight, found.distance)
        };
        let found = members(services, Speech::Https);
        assert_eq!(
            found.iter().map(seen).collect::<Vec<_>>(),
            [
                ("app-1".to_owned(), "10.0.0.1:8009".to_owned(), 1, 1),
                ("app-0".to_owned(), "10.0.0.3:8009".to_owned(), 5, 0),
                ("far".to_owned(), "[fd00::1]:8009".to_owned(), 7, 3),
            ]
        );
        assert_eq!(found[0].jvm_route.as_deref(), Some("app-1"));
        assert_eq!(found[0].server_name.as_deref(), Some("app-1.app.shop.svc"));
    }

    #[test]
    fn weights_fit_into_ours() {
        for (weight, heaviest, expected) in [
            (0, 0, 1),
            (1, 10, 1),
            (1000, 1000, 1000),
            (65535, 65535, 1000),
            (32768, 65535, 500),
            (1, 65535, 1),
        ] {
            assert_eq!(scaled(weight, heaviest), expected, "{weight} of {heaviest}");
        }
    }
}
