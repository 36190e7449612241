//! A redeploy of a real Tomcat behind the cache, with the keys of docs/cache.md.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use catamaran_e2e::{Deployed, Front, catamaran};
use catamaran_testkit::Deadline;
use serde_json::Value;

/// Requests of a page that is fetched anew each second, and what came of them.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    ok: u64,
    /// The highest of the runs, in microseconds.
    p99_us: u64,
}

impl Seen {
    /// 2,000 requests in 10 s.
    fn add(&mut self, url: &str) {
        let words = "bench --json -q -k -c 20 -n 2000 --rate 200";
        let words: Vec<&str> = words.split(' ').chain([url]).collect();
        let mut process = catamaran(&words).unwrap();
        process.wait(Deadline::default()).unwrap();
        let report: Value = serde_json::from_str(&process.stdout()).unwrap();
        let number = |value: &Value| value.as_u64().unwrap_or_default();
        self.requests += number(&report["requests"]["started"]);
        self.ok += number(&report["statuses"]["200"]);
        self.p99_us = self
            .p99_us
            .max(number(&report["latency"]["total"]["p99_us"]));
        assert_eq!(
            report["statuses"].as_object().unwrap().len(),
            1,
            "{}",
            report["statuses"]
        );
        assert_eq!(report["requests"]["failed"], 0, "{}", report["failures"]);
    }
}

#[test]
fn a_replaced_war_and_a_restart_are_seen_by_none_of_10_000_requests() {
    let tomcat = Deployed::start().unwrap();
    let front = Front::with_tables(&format!(
        "[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nupstream = \"shop\"\ncache = \"pages\"\n\
         [cache.pages]\nstale_if_error = \"10m\"\nstale_status = [\"404\", \"500\", \"502-504\"]\n\
         [upstream.shop]\n[[upstream.shop.backend]]\nurl = \"{}\"\n",
        tomcat.url()
    ))
    .unwrap();
    let url = format!("http://{}/shop/page.html", front.address());
    assert_eq!(front.get("/shop/page.html").unwrap().status, 200);
    let has_happened = AtomicBool::new(false);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        let deploying = scope.spawn(|| {
            let done = tomcat.replace().and_then(|()| tomcat.restart());
            has_happened.store(true, Ordering::Relaxed);
            done
        });
        while seen.requests < 10_000 || !has_happened.load(Ordering::Relaxed) {
            seen.add(&url);
        }
        deploying.join().unwrap().unwrap();
    });
    assert_eq!(seen.ok, seen.requests);
    println!("{seen:?}");
    // The application was away: without stale pages others would have been seen.
    let results = front.ask_admin("/metrics").unwrap().text();
    let stale = results.lines().find_map(|line| {
        let count = line.strip_prefix("catamaran_cache_requests_total{")?;
        let (labels, count) = count.split_once("} ")?;
        labels
            .contains("result=\"stale\"")
            .then(|| count.parse::<f64>().unwrap())
    });
    assert!(
        stale.is_some_and(|count| count > 100.0),
        "{stale:?} stale: {results}"
    );
}
