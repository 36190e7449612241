//! What is said of texts whose truth is known.

use std::time::Duration;

use super::*;

fn judged(names: &[&str]) -> Vec<Judgement> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/published/");
    let texts = names.iter().map(|name| {
        let text = std::fs::read_to_string(format!("{directory}{name}.txt")).unwrap();
        ((*name).to_owned(), text)
    });
    judge(&texts.collect::<Vec<_>>()).unwrap()
}

fn fired(judgement: &Judgement) -> Vec<&str> {
    judgement
        .found
        .iter()
        .map(|fired| fired.gate.as_str())
        .collect()
}

#[test]
fn redirects_without_keep_alive_were_measured() {
    for name in ["002-bio-1", "002-bio-2", "002-nio-1", "002-nio-2"] {
        let judgement = &judged(&[name])[0];
        let expected = ["status", "keep-alive", "unsteady", "generator", "published"];
        assert_eq!(fired(judgement), expected, "{name}");
        assert!(
            judgement.found[0]
                .words
                .starts_with("5,000 of 5,000 answers were not 2xx")
        );
        assert!(judgement.found[1].words.contains("0 of 5,000"));
        assert_eq!(judgement.found[0].effect, Effect::Void);
    }
}

#[test]
fn heads_of_different_length_were_compared() {
    let judgements = judged(&["000-http", "000-ajp"]);
    let pair = &judgements[2];
    assert!(fired(pair).contains(&"unequal-answers"), "{pair}");
    assert!(pair.to_string().contains("differ by 27.0 bytes"), "{pair}");
}

#[test]
fn maxima_were_compared() {
    let judgements = judged(&["004-off", "004-on"]);
    assert_eq!(fired(&judgements[0]), ["generator", "published"]);
    assert_eq!(fired(&judgements[1]), ["maximum", "generator", "published"]);
    let pair = judgements[2].to_string();
    assert!(
        pair.contains("Connections were to be kept in 004-on alone"),
        "{pair}"
    );
    assert!(pair.contains("a factor of 14 (101 and 1409 ms)"), "{pair}");
}

#[test]
fn a_table_of_calls_has_counts_only() {
    let judgements = judged(&["004-off.strace", "004-on.strace"]);
    assert_eq!(judgements.len(), 2);
    assert!(
        judgements[0]
            .title
            .contains("375,310 system calls, most of them read (67,716)")
    );
    assert_eq!(fired(&judgements[0]), ["strace-times"]);
}

#[test]
fn what_is_no_report_is_named() {
    let texts = [("notes.md".to_owned(), "# Notes".to_owned())];
    let fault = judge(&texts).unwrap_err().to_string();
    assert!(
        fault.starts_with("notes.md: this is no text of ab"),
        "{fault}"
    );
    let texts = [("a.json".to_owned(), "{\"schema\": \"x/1\"}".to_owned())];
    let fault = judge(&texts).unwrap_err().to_string();
    assert!(
        fault.starts_with("a.json: this report is of the version"),
        "{fault}"
    );
}

/// A text of `published/`.
fn text(name: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/published/");
    std::fs::read_to_string(format!("{path}{name}.txt")).unwrap()
}

fn judged_text(name: &str, text: &str) -> Vec<Judgement> {
    judge(&[(name.to_owned(), text.to_owned())]).unwrap()
}

/// What the judgements of a page say of its runs and pairs, without the names of lines.
fn say(judgements: &[Judgement]) -> String {
    judgements.iter().map(Judgement::to_string).collect()
}

#[test]
fn a_page_that_lists_each_line_with_a_bullet() {
    let bullets = |name: &str| -> String {
        let text = text(name);
        let lines = text.lines().map(|line| format!("- {line}\n"));
        lines.collect()
    };
    let page = format!(
        "Two ways to the same server\n1. over AJP, ab -n 100000 -c 100\n- Finished 100000 requests\n{}\
         2. over HTTP\nComplete requests: is what to look at, Total: too.\n{}In the end AJP was faster, and \
         Total transferred differs.\n",
        bullets("000-ajp"),
        bullets("000-http")
    );
    let judgements = judged_text("page.txt", &page);
    let all = say(&judgements);
    assert_eq!(judgements.len(), 3, "{all}");
    assert!(
        judgements[0]
            .title
            .starts_with("page.txt:4: ab, 100 clients, 100,000 answers, 50.3 s, 1989.2/s"),
        "{all}"
    );
    assert!(judgements[1].title.contains("1805.3/s"), "{all}");
    assert!(
        judgements[0]
            .found
            .iter()
            .all(|it| it.effect == Effect::Note),
        "{all}"
    );
    assert!(all.contains("differ by 27.0 bytes"), "{all}");
    assert!(
        all.contains(
            "The line `Server: Apache-Coyote/1.1` has 27 bytes, and only the answers of line "
        ),
        "{all}"
    );
    assert!(all.contains("One run each"), "{all}");
}

#[test]
fn all_runs_of_a_page_are_compared_with_each_other() {
    let names = ["002-bio-1", "002-bio-2", "002-nio-1", "002-nio-2"];
    let runs: String = names
        .map(|name| format!("C:\\> ab -k -n 5000 -c 500 http://localhost:8080/x\nThis is ApacheBench, Version 2.3 <$Revision: 655654 $>\n....\n{}\nthe longest was slow\n", text(name)))
        .concat();
    let judgements = judged_text("page.txt", &runs);
    let all = say(&judgements);
    assert_eq!(judgements.len(), 4 + 6, "{all}");
    for judgement in &judgements[..4] {
        let voids = judgement
            .found
            .iter()
            .filter(|it| it.effect == Effect::Void);
        let voids: Vec<&str> = voids.map(|it| it.gate.as_str()).collect();
        assert_eq!(voids, ["status", "keep-alive"], "{all}");
    }
    // All are void, so that no ratio is printed, also not of BIO and NIO after their first runs, which do not follow each
    // other.
    let pairs = &judgements[4..];
    assert!(
        pairs
            .iter()
            .all(|pair| pair.title.ends_with(": no comparison")),
        "{all}"
    );
    let words = " is not that of a server (status, keep-alive): no ratio follows.";
    assert_eq!(all.matches(words).count(), 2 * pairs.len(), "{all}");
}

#[test]
fn listings_that_stand_twice_and_tables_in_one_line() {
    let squeezed = |name: &str| -> String {
        let text = text(name);
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n");
        lines.collect()
    };
    let mut page = String::new();
    for name in ["004-off", "004-on"] {
        page += &format!("{name}:\n\n{}\n{}\n", squeezed(name), text(name));
    }
    for name in ["004-off.strace", "004-on.strace"] {
        let joined = squeezed(name).replace('\n', " ");
        page += &format!("{name}:\n\n{joined}\n\n{}\nso there\n", text(name));
    }
    let judgements = judged_text("page.txt", &page);
    let all = say(&judgements);
    assert_eq!(judgements.len(), 5, "{all}");
    assert!(
        judgements[0].title.starts_with(
            "page.txt:3: ab, 100 clients, 1,000,000 answers, 190.8 s, 5242.3/s; again in line 21"
        ),
        "{all}"
    );
    assert!(
        judgements[2]
            .title
            .contains("375,310 system calls, most of them read (67,716), 37,725 failed"),
        "{all}"
    );
    assert!(
        judgements[3].title.contains("288,408 system calls"),
        "{all}"
    );
    assert!(judgements[4].title.ends_with("no comparison"), "{all}");
    assert!(all.contains("a factor of 14"), "{all}");
}

#[test]
fn a_page_in_html() {
    let cells = |name: &str| -> String {
        let text = text(name);
        let rows = text.lines().map(|line| match line.split_once(": ") {
            Some((label, value)) => {
                format!("<tr><td>{label}:</td><td><b>{}</b></td></tr>", value.trim())
            }
            None => format!("<tr><td colspan=2>{line}</td></tr>\n"),
        });
        rows.collect()
    };
    let listing = text("000-http")
        .replace('\n', "<br>")
        .replace(' ', "&nbsp;");
    let page = format!(
        "<!DOCTYPE html><html><head><title>A test</title><style>td {{ x: 1 }}</style></head><body><h1>A&amp;B</h1>\
         <table>{}</table><p>and</p><div class=\"code\">{listing}</div><pre>{}</pre></body></html>",
        cells("000-ajp"),
        text("004-off.strace")
    );
    let judgements = judged_text("page.html", &page);
    let all = say(&judgements);
    assert_eq!(judgements.len(), 4, "{all}");
    assert!(judgements[0].title.contains("1989.2/s"), "{all}");
    assert!(judgements[1].title.contains("1805.3/s"), "{all}");
    assert!(
        judgements[2].title.contains("375,310 system calls"),
        "{all}"
    );
    assert!(all.contains("differ by 27.0 bytes"), "{all}");
}

#[test]
fn logs_put_words_before_each_line() {
    for prefix in [
        "bench-1  | ",
        "2026-11-23T20:08:28.123456789Z ",
        "Nov 23 20:08:28 host ab[812]: ",
        "[pod/bench-x2k/ab] 12 ",
        "> ",
    ] {
        for end in ["\n", "\r\n"] {
            let text = text("004-on");
            let lines = text
                .lines()
                .map(|line| format!("{prefix}\u{1b}[32m{line}\u{1b}[0m{end}"));
            let judgement = &judged_text("log", &lines.collect::<String>())[0];
            assert_eq!(
                fired(judgement),
                ["maximum", "generator", "published"],
                "{judgement}"
            );
            assert!(
                judgement
                    .title
                    .contains("100 clients, 1,000,000 answers, 59.5 s, 16804.0/s"),
                "{judgement}"
            );
        }
        let text = text("004-on.strace");
        let lines = text.lines().map(|line| format!("{prefix}{line}\n"));
        let judgement = &judged_text("log", &lines.collect::<String>())[0];
        assert!(
            judgement.title.contains("288,408 system calls"),
            "{judgement}"
        );
    }
}

#[test]
fn a_report_that_was_cut_is_named_beside_those_that_were_not() {
    let whole = text("004-off");
    let cut: String = whole
        .lines()
        .take(4)
        .map(|line| format!("{line}\n"))
        .collect();
    let judgements = judged_text("page", &format!("{cut}\nand\n{whole}"));
    assert_eq!(fired(&judgements[0]), ["cut"]);
    assert!(
        judgements[0]
            .to_string()
            .contains("`Requests per second` is missing"),
        "{}",
        judgements[0]
    );
    assert_eq!(judgements.len(), 2);
    let fault = judge(&[("page".to_owned(), cut)]).unwrap_err().to_string();
    assert_eq!(
        fault,
        "page: the report of ab is not complete: `Requests per second` is missing"
    );
}

#[test]
fn what_ab_calls_failed_is_not_all_without_an_answer() {
    let with = |causes: &str| {
        let text = AB.replace(
            "Failed requests:        0\n",
            &format!("Failed requests:        40\n{causes}"),
        );
        judged_text("ab", &text).remove(0)
    };
    let usual = ["generator", "published"];
    assert_eq!(fired(&judged_text("ab", AB)[0]), usual);
    let length = with("   (Connect: 0, Receive: 0, Length: 40, Exceptions: 0)\n");
    assert_eq!(
        fired(&length),
        ["body", "generator", "published"],
        "{length}"
    );
    assert!(
        length.found.iter().all(|it| it.effect == Effect::Note),
        "{length}"
    );
    // ab 2.0 has no word for what was not received.
    let length = with("   (Connect: 0, Length: 40, Exceptions: 0)\n");
    assert_eq!(
        fired(&length),
        ["body", "generator", "published"],
        "{length}"
    );
    let received = with("   (Connect: 0, Receive: 40, Length: 40, Exceptions: 0)\n");
    assert_eq!(
        fired(&received),
        ["failed", "generator", "published"],
        "{received}"
    );
    assert_eq!(received.found[0].effect, Effect::Void);
    assert!(
        received.found[0].words.starts_with("40 of 2,000 requests"),
        "{received}"
    );
    let unexplained = with("");
    assert_eq!(
        fired(&unexplained),
        ["failed", "generator", "published"],
        "{unexplained}"
    );
    assert_eq!(unexplained.found[0].effect, Effect::Note);
}

#[test]
fn a_few_failures_are_a_remark() {
    let text = AB.replace(
        "Failed requests:        0\n",
        "Failed requests:        5\n   (Connect: 0, Receive: 5, Length: 0, Exceptions: 0)\nNon-2xx responses:      7\n",
    );
    let judgement = judged_text("ab", &text).remove(0);
    assert_eq!(
        fired(&judgement),
        ["status", "failed", "generator", "published"]
    );
    assert!(
        judgement.found.iter().all(|it| it.effect == Effect::Note),
        "{judgement}"
    );
}

#[test]
fn a_server_that_answers_nothing_is_no_fast_one() {
    let text = AB
        .replace("1174000 bytes", "0 bytes")
        .replace("694000 bytes", "0 bytes");
    let judgement = judged_text("ab", &text).remove(0);
    assert!(
        judgement
            .to_string()
            .contains("void      failed: 2,000 of 2,000 requests had no good answer"),
        "{judgement}"
    );
}

#[test]
fn requests_that_one_other_held_up() {
    let text = AB
        .replace("   40.000 seconds", "   4.000 seconds")
        .replace("    50.00 [", "    500.00 [")
        .replace("    200     301", "     19    3019")
        .replace(
            "100  200   9.0    200     300",
            "1  20   9.0    20     3019",
        )
        .replace("Total:        100  200   9.0", "Total:        1  20   9.0");
    let judgement = judged_text("ab", &text).remove(0);
    assert_eq!(
        fired(&judgement),
        ["maximum", "longest", "unsteady", "generator", "published"],
        "{judgement}"
    );
    // The same times without the long one: then clients were idle.
    let text = text.replace("3019", "25");
    let judgement = judged_text("ab", &text).remove(0);
    assert_eq!(fired(&judgement)[..1], ["unsteady"], "{judgement}");
    let text = text.replace("500.00 [", "250.00 [");
    let judgement = judged_text("ab", &text).remove(0);
    assert_eq!(fired(&judgement)[..1], ["littles-law"], "{judgement}");
}

#[test]
fn runs_that_were_not_asked_alike_are_no_comparison() {
    let kept = AB.replace(
        "Total transferred",
        "Keep-Alive requests:    2000\nTotal transferred",
    );
    let large = AB.replace("347 bytes", "29000 bytes");
    let crowd = AB.replace("Concurrency Level:      10", "Concurrency Level:      20");
    for (other, words) in [
        (kept, "Connections were to be kept in page:"),
        (
            large,
            "Bodies of 347 bytes in one run, of 29,000 in the other",
        ),
        (crowd, "10 clients in one run, 20 in the other"),
    ] {
        let judgements = judged_text("page", &format!("{AB}\n{other}"));
        let pair = &judgements[2];
        assert!(pair.title.ends_with("no comparison"), "{pair}");
        let unequal = pair
            .found
            .iter()
            .find(|it| it.gate == UNEQUAL_LOAD)
            .unwrap();
        assert_eq!(unequal.effect, Effect::Claim, "{pair}");
        assert!(unequal.words.contains(words), "{pair}");
    }
    let alike = AB
        .replace("347 bytes", "350 bytes")
        .replace("  200   9.0", "  167   9.0")
        .replace("50.00 [", "60.00 [");
    let judgements = judged_text("page", &format!("{AB}\n{alike}"));
    assert!(
        judgements[2].title.ends_with("ratio 1.20"),
        "{}",
        judgements[2]
    );
}

#[test]
fn what_cannot_be_read_names_the_versions_that_can() {
    let fault = judge(&[("notes".to_owned(), "# Notes".to_owned())]).unwrap_err();
    let page = include_str!("../../../../../docs/lab.md");
    for version in published::versions() {
        assert!(fault.to_string().contains(version), "{fault}");
        assert!(page.contains(&format!("`{version}`")), "{version}");
    }
}

#[test]
fn a_list_in_prose_is_no_run() {
    let prose = "We ran wrk:\n- 12 threads and 400 connections\n- Requests/sec: 5000\n- Concurrency Level: 100\n\
                 - **Bytes/Sec**\n- http_req_duration: the time of a request\n";
    let fault = judge(&[("prose".to_owned(), prose.to_owned())]).unwrap_err();
    assert!(fault.to_string().contains("this is no text of"), "{fault}");
}

/// A report of `bench --json`: ten clients for ten seconds, after a warm-up of this length; `opened` connections.
fn of_bench(opened: u64, warm_up_s: u64) -> (String, String) {
    let mut document = Report {
        schema: catamaran_load::report::SCHEMA.to_owned(),
        concurrency: 10,
        elapsed: Duration::from_secs(10),
        ..Report::default()
    };
    document.requests.completed = 5000;
    document.requests.kept_alive = 5000;
    document.connections.opened = opened;
    document.warm_up.duration = Duration::from_secs(warm_up_s);
    let text = serde_json::to_string(&document).unwrap();
    (format!("{opened}.json"), text)
}

#[test]
fn reports_of_bench_say_what_the_run_did() {
    let judgements = judge(&[of_bench(10, 0), of_bench(5000, 5), of_bench(10, 30)]).unwrap();
    let words = |number: usize| judgements[number].to_string();
    assert!(
        words(0).contains("10.0 s, and no warm-up is named"),
        "{}",
        words(0)
    );
    assert!(
        words(1).contains("10.0 s after a warm-up of 5 s"),
        "{}",
        words(1)
    );
    assert!(!fired(&judgements[2]).contains(&"unsteady"), "{}", words(2));
    // The server of the second one closed each connection.
    assert!(
        words(3).contains("Connections were to be kept in 10.json alone"),
        "{}",
        words(3)
    );
}

#[test]
fn json_of_another_tool_is_told_what_can_be_read() {
    let json = "{\"latencies\": {\"mean\": 2539033}, \"status_codes\": {\"200\": 600}}";
    let fault = judge(&[("vegeta.json".to_owned(), json.to_owned())]).unwrap_err();
    assert!(
        fault.to_string().contains("this is no text of ab"),
        "{fault}"
    );
    let later = "{\"schema\": \"catamaran-bench/9\"}";
    let fault = judge(&[("later.json".to_owned(), later.to_owned())]).unwrap_err();
    assert!(fault.to_string().contains("catamaran-bench/9"), "{fault}");
}

/// A report of ab whose figures fit each other.
const AB: &str = "Server Software:        nginx/1.26.3\nDocument Length:        347 bytes\n\n\
                  Concurrency Level:      10\nTime taken for tests:   40.000 seconds\n\
                  Complete requests:      2000\nFailed requests:        0\n\
                  Total transferred:      1174000 bytes\nHTML transferred:       694000 bytes\n\
                  Requests per second:    50.00 [#/sec] (mean)\nTime per request:       200.000 [ms] (mean)\n\n\
                  Connection Times (ms)\n              min  mean[+/-sd] median   max\n\
                  Connect:        0    0   0.1      0       1\nProcessing:   100  200   9.0    200     300\n\
                  Total:        100  200   9.0    200     301\n";
