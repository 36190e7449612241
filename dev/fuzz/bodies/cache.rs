//! Checks the rules of the cache with the fields of any response and any request.
//!
//! Plain functions that panic on a finding: the fuzz targets call them, and so does the replay of the
//! committed corpora in the crate's own tests.

use catamaran_cache::directives::{Directives, SECONDS_MAX};
use catamaran_cache::freshness::{self, FreshnessRules};
use catamaran_cache::storable::{
    self, Credentials, RequestFacts, RequestScope, ResponseFacts, SetCookie,
};
use catamaran_cache::vary::{self, Selection};
use catamaran_cache::verdict::{Demand, StoredFacts, Verdict};
use catamaran_cache::{merge, object, tags};
use catamaran_message::{FieldName, Fields};
use http::{HeaderValue, Method, StatusCode};

/// The fields of a response and, after an empty line, those of a request.
fn fields(input: &[u8]) -> (Fields, Fields) {
    let (mut response, mut request) = (Fields::new(), Fields::new());
    let mut is_request = false;
    for line in input.split(|byte| *byte == b'\n') {
        if line.is_empty() {
            is_request = true;
            continue;
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = FieldName::parse(parts.next().unwrap_or_default());
        let value = HeaderValue::from_bytes(parts.next().unwrap_or_default().trim_ascii());
        if let (Some(name), Ok(value)) = (name, value) {
            let fields = if is_request {
                &mut request
            } else {
                &mut response
            };
            fields.append(&name, value);
        }
    }
    (response, request)
}

/// A stored response must not stay fresh for longer than the rules allow, must answer only requests that its terms
/// allow, and must be validated if it says so.
pub(crate) fn judge(input: &[u8]) {
    let (response, request) = fields(input);
    let rules = FreshnessRules {
        stale_if_error: 10,
        stale_while_revalidate: 5,
        ttl: vec![(200..=299, 60)],
        ..FreshnessRules::default()
    };
    let now = 784_111_777_000;
    let facts = RequestFacts {
        method: &Method::GET,
        path: b"/a.css",
        has_query: false,
        no_store: false,
        scope: RequestScope::of(&request),
        credentials: Credentials::default(),
    };
    let arrived = ResponseFacts {
        status: StatusCode::OK,
        headers: &response,
        is_framed: true,
        arrived: now,
    };
    let age = freshness::initial_age(&response, now, now);
    assert!(age <= SECONDS_MAX, "{age}");
    let demand = Demand {
        directives: Directives::of_request(&request),
        credentials: Credentials::default(),
    };
    let (directives, _) = freshness::directives(&response, &rules);
    let Ok(terms) = storable::judge(&facts, &arrived, &rules, SetCookie::Refuse) else {
        return;
    };
    assert!(terms.lifetime <= rules.ttl_max, "{terms:?}");
    assert!(!directives.private, "{directives:?}");
    assert_eq!(facts.scope, RequestScope::Whole, "{request:?}");
    assert!(
        !directives.no_store || directives.must_understand,
        "{directives:?}"
    );
    let names = vary::names(&response).expect("what cannot be told apart is not stored");
    let selection = Selection::new(names, &request);
    assert!(selection.matches(&request), "{selection:?}");
    assert!(tags::read(&response).is_some());
    let stored = StoredFacts {
        terms: &terms,
        made: now,
        validated: now,
        is_purged: false,
    };
    // A second after the lifetime and the time for which `rules` let it be used when stale.
    let much_later = now + 1000 * (u64::from(terms.lifetime) + 11);
    let later = stored.judge(&demand, much_later);
    if demand.directives.max_stale.is_none() {
        let Verdict::Stale(usage) = later else {
            panic!("{later:?}");
        };
        let named =
            directives.stale_if_error.is_some() || directives.stale_while_revalidate.is_some();
        assert!(named || !usage.at_once && !usage.on_error, "{usage:?}");
        assert!(!directives.must_revalidate || !usage.on_error, "{usage:?}");
    }
    if directives.no_cache {
        assert!(!matches!(stored.judge(&demand, now), Verdict::Fresh(_)));
    }
}

/// Fields must be the same after being packed and unpacked, and a 304 that repeats them must change nothing.
pub(crate) fn object(input: &[u8]) {
    let (mut response, update) = fields(input);
    assert_eq!(response.packed::<&[u8]>(&[]), response);
    merge::update(&mut response, &update);
    let merged = response.clone();
    merge::update(&mut response, &update);
    assert_eq!(response, merged);
    object::clean(&mut response, SetCookie::Strip, None);
    for name in ["age", "set-cookie", "surrogate-key", "cache-tag"] {
        assert!(!response.contains(name), "{name}");
    }
}
