use std::collections::BTreeSet;

use super::*;
use crate::file::SECTIONS;

fn is_key(name: &str) -> bool {
    SECTIONS.iter().any(|section| section.has(name))
}

#[test]
fn every_directive_has_an_answer() {
    let unanswered: Vec<&str> = DIRECTIVES
        .split_whitespace()
        .filter(|name| !is_key(name) && answers(name).is_empty())
        .collect();
    assert!(unanswered.is_empty(), "{unanswered:?}");
}

#[test]
fn every_row_is_well_formed_and_names_keys_that_exist() {
    let written = TABLE.lines().filter(|line| {
        let is_row = |first: char| !['#', '['].contains(&first);
        line.chars().next().is_some_and(is_row)
    });
    assert_eq!(rows().count(), written.count(), "each line is a row");
    let mut seen = BTreeSet::new();
    for row in rows() {
        for name in &row.names {
            assert!(!name.is_empty(), "{}: {:?}", row.server, row.names);
            assert!(
                seen.insert((row.server, spelling(name))),
                "{name} stands twice"
            );
        }
        assert!(!row.text.ends_with('.'), "{}", row.text);
        let quoted = row.text.split('`').skip(1).step_by(2);
        let known = |text: &&str| {
            let is_name = text
                .bytes()
                .all(|it| it.is_ascii_lowercase() || it == b'_' || it.is_ascii_digit());
            !is_name || is_key(text) || *text == "include" || *text == "backend"
        };
        let wrong: Vec<&str> = quoted.filter(|text| !known(text)).collect();
        assert!(wrong.is_empty(), "{:?}: {wrong:?}", row.names);
        let headers = row
            .text
            .split('[')
            .skip(1)
            .filter_map(|it| it.split(']').next());
        for header in headers {
            let known = SECTIONS
                .iter()
                .any(|it| it.header.trim_matches(['[', ']']) == header);
            assert!(known || header.is_empty(), "{:?}: [{header}]", row.names);
        }
    }
}

#[test]
fn what_is_not_available_is_no_key() {
    for row in rows().filter(|row| row.kind == DirectiveKind::NotYet) {
        let known: Vec<_> = row.names.iter().filter(|name| is_key(name)).collect();
        assert!(known.is_empty(), "{known:?} are keys");
    }
}

#[test]
fn names_are_compared_loosely() {
    let expected = [
        "nginx's `proxy_pass` is here: `upstream` of a [[route]], and `url` of \
                     [[upstream.NAME.backend]]",
    ];
    for name in ["proxy_pass", "proxy-pass"] {
        assert_eq!(answers(name), expected, "{name}");
    }
    assert!(answers("proxypass")[0].starts_with("httpd's `ProxyPass` is here: "));
    let loose = answers("ProxyReadTimeout");
    assert!(
        loose[0].starts_with("nginx's `proxy_read_timeout` is here: "),
        "{loose:?}"
    );
    assert_eq!(answers("no such directive"), Vec::<String>::new());
}

#[test]
fn every_directive_of_the_servers_has_a_nature() {
    let mut server = "";
    let mut missing = Vec::new();
    let mut count = 0;
    for line in PEERS.lines().filter(|it| !it.starts_with('#')) {
        if let Some(heading) = line.strip_prefix('[') {
            server = heading.trim_end_matches(']');
            continue;
        }
        for name in line.split_whitespace() {
            count += 1;
            if foreign_answer(server, name)
                .and_then(|it| it.nature)
                .is_none()
            {
                missing.push((server, name));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(count, PEERS_COUNT);
}

#[test]
fn a_longer_name_counts_before_a_beginning() {
    let nature = |name: &str| foreign_answer("httpd", name).and_then(|it| it.nature);
    assert_eq!(nature("MDRequireHttps"), Some(Nature::Access));
    assert_eq!(nature("MDStoreDir"), Some(Nature::Harmless));
    assert_eq!(nature("ShibRequestSetting"), Some(Nature::Access));
    assert_eq!(nature("Shi"), None);
    assert!(
        answers("MDStoreDir").is_empty(),
        "a key is not compared with beginnings"
    );
}

#[test]
fn every_heading_with_a_nature_has_a_known_one() {
    let headings = TABLE.lines().filter_map(|line| line.strip_prefix('['));
    for heading in headings {
        let nature = heading
            .trim_end_matches(']')
            .split_once(", ")
            .map(|it| it.1);
        assert!(
            nature.is_none_or(|it| Nature::named(it).is_some()),
            "{heading}"
        );
    }
}

/// The directives of mod_jk, of httpd's mod_proxy, mod_proxy_balancer and mod_proxy_hcheck, of nginx's
/// upstreams, of nginx_ajp_module and of lighttpd's mod_ajp13, taken from their sources.
const DIRECTIVES: &str = "
    reference worker.list worker.maintain type mount
    host port source prefer_ipv6 socket_timeout socket_connect_timeout socket_keepalive socket_buffer
    ping_mode ping_timeout connect_timeout prepost_timeout connection_ping_interval
    connection_pool_size connection_pool_minsize connection_pool_timeout connection_acquire_timeout
    reply_timeout retries retry_interval recovery_options fail_on_status busy_limit max_packet_size
    secret cachesize cache_timeout recycle_timeout
    balance_workers balanced_workers sticky_session sticky_session_force session_cookie session_path
    set_session_cookie session_cookie_path method lock lb_retries recover_time error_escalation_time
    max_reply_timeouts
    lbfactor route jvm_route domain distance redirect activation disabled stopped
    JkUnMount sticky_ignore stateless active use_server_errors
    JkWorkersFile JkWorkerProperty JkMount JkMountFile JkMountFileReload JkMountCopy JkAutoAlias
    JkStripSession JkShmFile JkShmSize JkWatchdogInterval JkLogFile JkLogLevel JkLogStampFormat
    JkRequestLogFormat JkRequestIdIndicator JkEnvVar JkExtractSSL JkHTTPSIndicator JkCERTSIndicator
    JkCIPHERIndicator JkSESSIONIndicator JkKEYSIZEIndicator JkSSLPROTOCOLIndicator JkCERTCHAINPrefix
    JkLocalNameIndicator JkLocalAddrIndicator JkLocalPortIndicator JkRemoteHostIndicator
    JkRemoteAddrIndicator JkRemotePortIndicator JkRemoteUserIndicator JkAuthTypeIndicator
    JkIgnoreCLIndicator JkWorkerIndicator JK_ROUTE JK_REPLY_TIMEOUT JK_STICKY_IGNORE JK_STATELESS
    JK_WORKER_NAME no-jk JkOptions ForwardURIProxy ForwardURICompatUnparsed ForwardURICompat
    ForwardURIEscaped RejectUnsafeURI ForwardDirectories ForwardLocalAddress ForwardPhysicalAddress
    FlushPackets FlushHeader DisableReuse ForwardKeySize ForwardSSLCertChain CollapseSlashesAll
    read_only user user_case_insensitive good bad css prefix ns xmlns doctype
    min smax max ttl acquire connectiontimeout timeout ping retry keepalive disablereuse enablereuse
    addressttl flushpackets flushwait iobuffersize ProxyIOBufferSize loadfactor lbset status upgrade
    mapping nocanon interpolate noquery responsefieldsize receivebuffersize multipathtcp
    lbmethod stickysession stickysessionsep scolonpathdelim nofailover maxattempts failonstatus
    failontimeout forcerecovery growth nonce BalancerPersist BalancerGrowth BalancerInherit ProxyStatus
    ProxyErrorOverride ProxyPassReverse ProxyPassReverseCookieDomain ProxyPassReverseCookiePath
    BALANCER_SESSION_STICKY BALANCER_SESSION_ROUTE BALANCER_NAME BALANCER_WORKER_NAME
    BALANCER_WORKER_ROUTE BALANCER_ROUTE_CHANGED AJP_REMOTE_PORT AJP_LOCAL_ADDR AJP_SSL_PROTOCOL
    hcmethod hcinterval hcpasses hcfails hcuri hcexpr ProxyHCExpr hctemplate ProxyHCTemplate ProxyHCTPsize
    ajp_pass ajp_secret ajp_keep_conn ajp_connect_timeout ajp_send_timeout ajp_read_timeout
    ajp_header_packet_buffer_size ajp_max_data_packet_size ajp_buffers ajp_buffer_size
    ajp_busy_buffers_size ajp_temp_path ajp_max_temp_file_size ajp_temp_file_write_size
    ajp_next_upstream ajp_upstream_max_fails ajp_upstream_fail_timeout ajp_ignore_client_abort
    ajp_intercept_errors ajp_pass_headers ajp_hide_header ajp_ignore_headers ajp_pass_request_headers
    ajp_pass_request_body ajp_cache ajp_cache_key ajp_cache_path ajp_cache_valid ajp_cache_min_uses
    ajp_cache_use_stale ajp_cache_methods ajp_cache_lock ajp_cache_lock_timeout ajp_store
    ajp_store_access ajp_send_lowat
    keepalive_requests keepalive_time keepalive_timeout server weight max_conns max_fails fail_timeout
    backup down drain resolve service sticky learn least_conn least_time hash ip_hash random zone
    ajp13.server ajp13.balance ajp13.map-extensions ajp13.debug AJP13_SECRET
";

const PEERS: &str = include_str!("peers.txt");

const PEERS_COUNT: usize = 1_284;
