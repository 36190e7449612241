//! `[kubernetes]`: the API server that is asked for members.

use std::ops::Range;
use std::path::PathBuf;

use catamaran_proxy::config::{ApiConfig, ApiUrl};
use toml::Spanned;
use toml::de::DeValue;

use super::Surroundings;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::Report;
use crate::table::{Table, table};
use crate::value::text::file_path;
use crate::value::{Optional, Syntax};

/// The API server, and the place of the table; `None`: there is no table, and what a pod has applies.
#[derive(Debug)]
pub(crate) struct Kubernetes {
    pub(crate) api: ApiConfig,
    pub(crate) place: Option<Range<usize>>,
}

/// Reads `[kubernetes]`, if there is one.
pub(crate) fn read(
    value: Option<&Spanned<DeValue<'_>>>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Kubernetes {
    let mut api = ApiConfig {
        server: None,
        token_file: PathBuf::from(TOKEN_FILE),
        ca_file: PathBuf::from(CA_FILE),
    };
    let mut place = None;
    if let Some((header, entries)) = value.and_then(|it| table(SECTION.header, it, report)) {
        place = Some(header.clone());
        let mut table = Table::new(&SECTION, header, entries);
        table.read(KEYS, &mut api);
        table.finish(report);
        api.token_file = surroundings.base.join(api.token_file);
        api.ca_file = surroundings.base.join(api.ca_file);
    }
    if api.server.is_none() {
        api.server = server_of_pod(surroundings);
    }
    Kubernetes { api, place }
}

/// The API server by the environment of a pod; `None`: this is no pod.
fn server_of_pod(surroundings: &Surroundings<'_>) -> Option<ApiUrl> {
    let variable = |name: &str| (surroundings.variables)(name)?.into_string().ok();
    let (host, port) = (variable(HOST_VARIABLE)?, variable(PORT_VARIABLE)?);
    let url = if host.contains(':') {
        format!("https://[{host}]:{port}")
    } else {
        format!("https://{host}:{port}")
    };
    ApiUrl::parse(&url).ok()
}

/// The variables that each pod has.
const HOST_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";
const PORT_VARIABLE: &str = "KUBERNETES_SERVICE_PORT";

/// The files of a pod's service account.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const CA_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

pub(crate) static SECTION: Section = Section {
    header: "[kubernetes]",
    intro: "The API server of Kubernetes, for upstreams with from = \"kubernetes\". A pod needs none of it: it has \
            the address of the server in its environment, and the files of its service account. \
            [kubernetes.md](kubernetes.md) has the rights that the account needs.",
    keys: &[Part::all(&KEYS)],
    later: &[("kubeconfig", "write `server`, `token_file` and `ca_file`")],
};

static KEYS: &[Key<ApiConfig>] = &[
    Key {
        name: "server",
        group: ALL,
        value: fill!(
            Optional(Syntax {
                what: "a URL such as \"https://10.0.0.1:6443\"",
                parse: ApiUrl::parse,
            }),
            ApiConfig.server
        ),
        preset: Preset::Unset(
            "`KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT` of the environment",
        ),
        sample: "\"https://10.0.0.1:6443\"",
        effect: "The API server. Its certificate must have this host. `http://` is for a loopback address alone, such \
                 as that of `kubectl proxy`; no token is then sent.",
        extremes: "While it cannot be reached, the last list of members stays; the front asks again after 1 s to 30 s.",
        elsewhere: "kubeconfig `server`",
    },
    Key {
        name: "token_file",
        group: ALL,
        value: fill!(file_path("a path such as \"token\""), ApiConfig.token_file),
        preset: Preset::Value("\"/var/run/secrets/kubernetes.io/serviceaccount/token\""),
        sample: "\"token\"",
        effect: "The file with the token of a service account. It is read for each request, so a rotated one is used \
                 at once.",
        extremes: "A token that the server does not accept (401) or whose account may not list and watch (403) is \
                   named in the log with what it lacks.",
        elsewhere: "kubeconfig `tokenFile`",
    },
    Key {
        name: "ca_file",
        group: ALL,
        value: fill!(file_path("a path such as \"ca.crt\""), ApiConfig.ca_file),
        preset: Preset::Value("\"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt\""),
        sample: "\"ca.crt\"",
        effect: "The file with the authorities, in PEM, that may issue the server's certificate. It is read for each \
                 connection.",
        extremes: "With another authority the server is not asked at all, and sees no token.",
        elsewhere: "kubeconfig `certificate-authority`",
    },
];
