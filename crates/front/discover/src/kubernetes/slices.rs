//! The EndpointSlices of a Service as members: a pure translation.
//!
//! | endpoint | member |
//! |---|---|
//! | terminating and serving | drains |
//! | terminating, not serving | stopped |
//! | ready | active |
//! | serving, not ready | drains |
//! | neither | stopped |
//!
//! An endpoint that is in no slice is no member. What a condition does not say holds as the API defines it: ready, and
//! not terminating.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;

use super::{KubernetesSource, ServicePort};
use crate::api::ApiObject;
use crate::api::lines::{Metadata, shortened};
use crate::member::{FoundMember, FoundState, Place, Speech};

/// What is read of an EndpointSlice.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndpointSlice {
    metadata: Metadata,
    address_type: String,
    // Both are `null` for none.
    endpoints: Option<Vec<Endpoint>>,
    ports: Option<Vec<EndpointPort>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    addresses: Vec<String>,
    #[serde(default)]
    conditions: Conditions,
    target_ref: Option<TargetRef>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
struct TargetRef {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndpointPort {
    name: Option<String>,
    protocol: Option<String>,
    // The API does not check that it is a port's number.
    port: Option<i64>,
    app_protocol: Option<String>,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    /// The family with this name in the API.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "IPv4" => Some(Self::V4),
            "IPv6" => Some(Self::V6),
            _ => None,
        }
    }

    fn has(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == (self == Self::V4)
    }
}

impl ApiObject for EndpointSlice {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl EndpointSlice {
    /// The family of the slice's addresses; `None` if they are names.
    pub(crate) fn family(&self) -> Option<Family> {
        Family::of(&self.address_type)
    }

    pub(crate) fn has_endpoints(&self) -> bool {
        self.endpoints.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// About how many bytes the slice takes in memory, with what its members take; no less for an endpoint than
    /// [`ENDPOINT_BYTES`].
    pub(crate) fn bytes(&self) -> usize {
        let mut bytes = self.metadata.name.len() + self.metadata.resource_version.len();
        for endpoint in self.endpoints.iter().flatten() {
            let addresses = endpoint.addresses.iter();
            let target = endpoint.target_ref.as_ref();
            bytes += ENDPOINT_BYTES
                + addresses.map(|it| it.len() + TEXT_BYTES).sum::<usize>()
                + target.map_or(0, |it| it.kind.len() + it.name.len());
        }
        for port in self.ports.iter().flatten() {
            let texts = [&port.name, &port.protocol, &port.app_protocol];
            let lengths = texts.map(|it| it.as_ref().map_or(0, String::len) + TEXT_BYTES);
            bytes += lengths.iter().sum::<usize>();
        }
        bytes
    }

    /// The ports that a member may have.
    fn ports(&self) -> impl Iterator<Item = (&EndpointPort, u16)> {
        let ports = self.ports.iter().flatten();
        let over_tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|it| it == "TCP"));
        over_tcp.filter_map(|port| {
            let number = u16::try_from(port.port?).ok()?;
            (number != 0).then_some((port, number))
        })
    }
}

impl EndpointPort {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

impl Conditions {
    fn state(self) -> FoundState {
        let ready = self.ready.unwrap_or(true);
        let serving = self.serving.unwrap_or(ready);
        let terminating = self.terminating.unwrap_or(false);
        match (terminating, ready, serving) {
            (false, true, _) => FoundState::Active,
            (true, _, true) | (false, false, true) => FoundState::Drain,
            (true, _, false) | (false, false, false) => FoundState::Stopped,
        }
    }
}

/// The members that slices of one family of addresses give, in the order of their names. The error says what of a
/// Service is not clear.
pub(crate) fn members<'s>(
    slices: impl Iterator<Item = &'s EndpointSlice>,
    source: &KubernetesSource,
) -> Result<Vec<FoundMember>, String> {
    let mut members: BTreeMap<String, FoundMember> = BTreeMap::new();
    // The ports of slices that lack the one that is asked for.
    let mut others = None;
    for slice in slices {
        let endpoints = slice.endpoints.iter().flatten();
        let Some(family) = slice.family().filter(|_| slice.has_endpoints()) else {
            continue;
        };
        let Some((port, number)) = chosen(slice, source.port.as_ref())? else {
            others = Some(port_names(slice));
            continue;
        };
        let speech = match source.speech {
            Some(speech) => speech,
            None => speech_of(port)?,
        };
        for endpoint in endpoints {
            let found = member(endpoint, family, number, speech, source)?;
            members
                .entry(found.name.clone())
                // While endpoints move between slices, one may be in two: the one that has gone further holds.
                .and_modify(|known| {
                    if found.state > known.state {
                        known.clone_from(&found);
                    }
                })
                .or_insert(found);
        }
    }
    match (others, &source.port) {
        (Some(names), Some(port)) if members.is_empty() => {
            let wanted = match port {
                ServicePort::Name(name) => name.clone(),
                ServicePort::Number(number) => number.to_string(),
            };
            Err(format!(
                "the Service has no port {wanted} over TCP, but {names}"
            ))
        }
        (Some(_), None) if members.is_empty() => Err("the Service has no port over TCP".to_owned()),
        _ => Ok(members.into_values().collect()),
    }
}

/// The port of a slice that is asked for; `None`: it has none such.
fn chosen<'s>(
    slice: &'s EndpointSlice,
    wanted: Option<&ServicePort>,
) -> Result<Option<(&'s EndpointPort, u16)>, String> {
    let mut ports = slice.ports();
    match wanted {
        Some(ServicePort::Name(name)) => Ok(ports.find(|(port, _)| port.name() == name)),
        Some(ServicePort::Number(wanted)) => Ok(ports.find(|(_, number)| number == wanted)),
        None => {
            let first = ports.next();
            if ports.next().is_none() {
                return Ok(first);
            }
            let names = port_names(slice);
            Err(format!(
                "the Service has several ports, so `port` must name one: {names}"
            ))
        }
    }
}

/// The names of a slice's ports, or their numbers.
fn port_names(slice: &EndpointSlice) -> String {
    let name = |(port, number): (&EndpointPort, u16)| match port.name() {
        "" => number.to_string(),
        name => name.to_owned(),
    };
    let names: Vec<String> = slice.ports().map(name).collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        shortened(&names.join(", "))
    }
}

/// The protocol that a port's `appProtocol` tells.
fn speech_of(port: &EndpointPort) -> Result<Speech, String> {
    match port.app_protocol.as_deref() {
        Some("ajp") => Ok(Speech::Ajp),
        // A name with the prefix of a domain, as the API asks for.
        Some(name) if name.ends_with("/ajp") => Ok(Speech::Ajp),
        Some("http") => Ok(Speech::Http),
        Some("https") => Ok(Speech::Https),
        Some(other) => Err(format!(
            "the port's appProtocol {} is none of ajp, http and https: write `protocol`",
            shortened(other)
        )),
        None => Err("the port has no appProtocol: write `protocol`".to_owned()),
    }
}

fn member(
    endpoint: &Endpoint,
    family: Family,
    port: u16,
    speech: Speech,
    source: &KubernetesSource,
) -> Result<FoundMember, String> {
    // All addresses of an endpoint are the same pod's (the API has one since 1.28).
    let text = endpoint.addresses.first().map_or("", |text| &text[..]);
    let Some(ip) = text.parse().ok().filter(|ip| family.has(*ip)) else {
        return Err(format!("an endpoint has the address {}", shortened(text)));
    };
    let place = Place::at(ip, port);
    // The API does not check what an endpoint refers to.
    let is_pod = |it: &&TargetRef| it.kind == "Pod" && is_pod_name(&it.name);
    let pod = endpoint.target_ref.as_ref().filter(is_pod);
    let pod_name = pod.map(|pod| pod.name.clone());
    let name = pod_name.clone().unwrap_or_else(|| place.to_string());
    Ok(FoundMember {
        state: endpoint.conditions.state(),
        jvm_route: pod_name,
        server_name: Some(format!("{}.{}.svc", source.service, source.namespace)),
        ..FoundMember::new(name, place, speech)
    })
}

/// Whether a text is the name of a pod: a DNS subdomain.
fn is_pod_name(text: &str) -> bool {
    let is_good =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    (1..=253).contains(&text.len()) && text.bytes().all(is_good)
}

/// What an endpoint takes in memory besides its texts, and its member.
const ENDPOINT_BYTES: usize = 512;

/// What a text takes in memory besides its bytes.
const TEXT_BYTES: usize = 48;

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::api::ApiConfig;

    fn source(port: Option<ServicePort>, speech: Option<Speech>) -> KubernetesSource {
        KubernetesSource {
            api: ApiConfig {
                server: None,
                token_file: PathBuf::new(),
                ca_file: PathBuf::new(),
            },
            namespace: "shop".to_owned(),
            service: "app".to_owned(),
            port,
            speech,
        }
    }

    /// A slice with these ports and endpoints, in JSON.
    fn slice(family: &str, ports: &str, endpoints: &str) -> EndpointSlice {
        let text = format!(
            r#"{{"metadata":{{"name":"s"}},"addressType":"{family}","ports":{ports},"endpoints":{endpoints}}}"#
        );
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    const AJP: &str = r#"[{"name":"ajp","port":8009,"protocol":"TCP","appProtocol":"ajp"}]"#;

    fn names(slices: &[EndpointSlice], source: &KubernetesSource) -> Result<Vec<String>, String> {
        let found = members(slices.iter(), source)?;
        let words =
            |it: &FoundMember| format!("{} {:?} {} {:?}", it.name, it.state, it.place, it.speech);
        Ok(found.iter().map(words).collect())
    }

    #[test]
    fn conditions_say_which_requests_a_pod_takes() {
        for (conditions, expected) in [
            (r#"{"ready":true}"#, "Active"),
            (
                r#"{"ready":true,"serving":true,"terminating":false}"#,
                "Active",
            ),
            // Of a Service that publishes addresses which are not ready.
            (
                r#"{"ready":true,"serving":false,"terminating":false}"#,
                "Active",
            ),
            (
                r#"{"ready":true,"serving":true,"terminating":true}"#,
                "Drain",
            ),
            (
                r#"{"ready":false,"serving":true,"terminating":true}"#,
                "Drain",
            ),
            (
                r#"{"ready":false,"serving":true,"terminating":false}"#,
                "Drain",
            ),
            (
                r#"{"ready":false,"serving":false,"terminating":true}"#,
                "Stopped",
            ),
            (
                r#"{"ready":true,"serving":false,"terminating":true}"#,
                "Stopped",
            ),
            (
                r#"{"ready":false,"serving":false,"terminating":false}"#,
                "Stopped",
            ),
            (r#"{"ready":false}"#, "Stopped"),
            ("{}", "Active"),
            (
                r#"{"ready":null,"serving":null,"terminating":null}"#,
                "Active",
            ),
        ] {
            let endpoint = format!(
                r#"[{{"addresses":["10.0.0.1"],"conditions":{conditions},"targetRef":{{"kind":"Pod","name":"app-0"}}}}]"#
            );
            let found = names(&[slice("IPv4", AJP, &endpoint)], &source(None, None));
            assert_eq!(
                found,
                Ok(vec![format!("app-0 {expected} 10.0.0.1:8009 Ajp")]),
                "{conditions}"
            );
        }
    }

    #[test]
    fn names_are_the_pods() {
        let pods = r#"[
            {"addresses":["10.0.0.2"],"targetRef":{"kind":"Pod","name":"b"}},
            {"addresses":["10.0.0.1"]},
            {"addresses":["10.0.0.3"],"targetRef":{"kind":"Node","name":"n"}}]"#;
        let found = members([slice("IPv4", AJP, pods)].iter(), &source(None, None)).unwrap();
        let seen = found
            .iter()
            .map(|it| (&it.name[..], it.jvm_route.as_deref()));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [
                ("10.0.0.1:8009", None),
                ("10.0.0.3:8009", None),
                ("b", Some("b"))
            ]
        );
        assert_eq!(found[0].server_name.as_deref(), Some("app.shop.svc"));
        let six = r#"[{"addresses":["fd00::1"],"targetRef":{"kind":"Pod","name":"a"}}]"#;
        let found = names(&[slice("IPv6", AJP, six)], &source(None, None));
        assert_eq!(found, Ok(vec!["a Active [fd00::1]:8009 Ajp".to_owned()]));
    }

    const ONE: &str = r#"[{"addresses":["10.0.0.1"],"targetRef":{"kind":"Pod","name":"a"}}]"#;

    #[test]
    fn a_port_is_chosen_by_name_or_number() {
        let both = r#"[{"name":"http","port":8080},{"name":"ajp","port":8009,"appProtocol":"example.org/ajp"},
            {"name":"dns","port":53,"protocol":"UDP"},{"name":"any","port":null}]"#;
        let name = |name: &str| Some(ServicePort::Name(name.to_owned()));
        for (ports, port, speech, expected) in [
            (both, name("ajp"), None, Ok("a Active 10.0.0.1:8009 Ajp")),
            (
                both,
                Some(ServicePort::Number(8009)),
                None,
                Ok("a Active 10.0.0.1:8009 Ajp"),
            ),
            (
                both,
                name("http"),
                Some(Speech::Http),
                Ok("a Active 10.0.0.1:8080 Http"),
            ),
            (
                AJP,
                None,
                Some(Speech::Https),
                Ok("a Active 10.0.0.1:8009 Https"),
            ),
            (
                r#"[{"name":"","port":1}]"#,
                None,
                Some(Speech::Ajp),
                Ok("a Active 10.0.0.1:1 Ajp"),
            ),
            (both, name("http"), None, Err("the port has no appProtocol")),
            (
                both,
                None,
                None,
                Err("several ports, so `port` must name one: \"http, ajp\""),
            ),
            (
                both,
                name("dns"),
                None,
                Err("no port dns over TCP, but \"http, ajp\""),
            ),
            (both, name("x"), None, Err("no port x over TCP")),
            ("null", None, None, Err("has no port over TCP")),
            ("[]", name("x"), None, Err("no port x over TCP, but none")),
            (
                r#"[{"port":1,"appProtocol":"kubernetes.io/h2c"}]"#,
                None,
                None,
                Err("\"kubernetes.io/h2c\" is none of ajp, http and https"),
            ),
        ] {
            let found = names(&[slice("IPv4", ports, ONE)], &source(port.clone(), speech));
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, &[expected]),
                (Err(fault), Err(expected)) => assert!(fault.contains(expected), "{fault}"),
                _ => panic!("{ports} {port:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn slices_are_one_list_and_empty_ones_say_nothing() {
        let drains = ONE.replace(
            r#""targetRef""#,
            r#""conditions":{"ready":false,"serving":true,"terminating":true},"targetRef""#,
        );
        let (first, second) = (slice("IPv4", AJP, ONE), slice("IPv4", AJP, &drains));
        let expected = Ok(vec!["a Drain 10.0.0.1:8009 Ajp".to_owned()]);
        assert_eq!(
            names(&[first.clone(), second.clone()], &source(None, None)),
            expected
        );
        assert_eq!(
            names(&[second, first.clone()], &source(None, None)),
            expected
        );
        for endpoints in ["null", "[]"] {
            let empty = slice("IPv4", "null", endpoints);
            assert_eq!(
                names(std::slice::from_ref(&empty), &source(None, None)),
                Ok(Vec::new())
            );
            assert_eq!(
                names(&[empty, first.clone()], &source(None, None))
                    .unwrap()
                    .len(),
                1
            );
        }
        // Names instead of addresses are no members.
        assert_eq!(
            names(&[slice("FQDN", AJP, ONE)], &source(None, None)),
            Ok(Vec::new())
        );
    }

    #[test]
    fn what_no_server_sends_is_refused() {
        for (family, endpoint, expected) in [
            ("IPv4", r#"{"addresses":["x"]}"#, "the address \"x\""),
            ("IPv4", r#"{"addresses":[]}"#, "the address \"\""),
            (
                "IPv6",
                r#"{"addresses":["10.0.0.1"]}"#,
                "the address \"10.0.0.1\"",
            ),
        ] {
            let found = names(
                &[slice(family, AJP, &format!("[{endpoint}]"))],
                &source(None, None),
            );
            let fault = found.unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn what_the_api_does_not_check_harms_nobody() {
        let pod = r#"[{"addresses":["10.0.0.2"],"targetRef":{"kind":"Pod","name":"A b"}}]"#;
        let found = names(&[slice("IPv4", AJP, pod)], &source(None, None));
        let expected = "10.0.0.2:8009 Active 10.0.0.2:8009 Ajp";
        assert_eq!(found, Ok(vec![expected.to_owned()]));
        for number in [70_000, -1, 0] {
            let ports = AJP.replace("8009", &number.to_string());
            let other = ONE.replace("\"a\"", "\"b\"");
            let slices = [slice("IPv4", &ports, &other), slice("IPv4", AJP, ONE)];
            let found = names(&slices, &source(None, None));
            assert_eq!(found, Ok(vec!["a Active 10.0.0.1:8009 Ajp".to_owned()]));
        }
    }
}
