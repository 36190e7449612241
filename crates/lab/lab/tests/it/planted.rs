//! Texts of load tools with a planted fault, and the words that name each. The figures are invented.

use catamaran_lab::judge::judge;

/// A text, or several that are judged together, with what must be said of them.
struct PlantedText {
    name: &'static str,
    texts: &'static [&'static str],
    words: &'static str,
}

#[test]
fn each_planted_fault_of_a_text_is_named() {
    for fault in FAULTS {
        let texts = fault.texts.iter().enumerate();
        let texts = texts.map(|(number, text)| (format!("{number}.txt"), (*text).to_owned()));
        let judged = judge(&texts.collect::<Vec<_>>());
        let said: String = match judged {
            Ok(judgements) => judgements.iter().map(ToString::to_string).collect(),
            Err(refused) => refused.to_string(),
        };
        assert!(
            said.contains(fault.words),
            "{}: {:?} is not said: {said}",
            fault.name,
            fault.words
        );
        // The page of the method has a table of all planted faults; there blanks are single.
        let words: Vec<&str> = fault.words.split_whitespace().collect();
        let row = format!("| {} | `lab judge` | {} |", fault.name, words.join(" "));
        let page = include_str!("../../../../../docs/lab/method.md");
        assert!(page.contains(&row), "{row}");
    }
}

const FAULTS: &[PlantedText] = &[
    PlantedText {
        name: "vegeta: half of the dials were refused",
        texts: &[
            "Requests      [total, rate, throughput]  6000, 100.02, 50.00\n\
                  Duration      [total, attack, wait]      59.99s, 59.98s, 1.2ms\n\
                  Latencies     [mean, 50, 95, 99, max]    1.1ms, 1.0ms, 2.0ms, 3.0ms, 9.0ms\n\
                  Bytes In      [total, mean]              18000, 3.00\n\
                  Bytes Out     [total, mean]              0, 0.00\n\
                  Success       [ratio]                    50.00%\n\
                  Status Codes  [code:count]               0:3000  200:3000\n\
                  Error Set:\nconnection refused\n",
        ],
        words: "void      failed: 3,000 of 6,000 requests had no good answer",
    },
    PlantedText {
        name: "JMeter: an eighth of the samples failed",
        texts: &[
            "summary =   6000 in 00:01:00 =  100.0/s Avg:    12 Min:     3 Max:   250 Err:   750 (12.50%)\n",
        ],
        words: "void      failed: 750 of 6,000 requests had no good answer",
    },
    PlantedText {
        name: "autocannon: three requests in four were given up",
        texts: &[
            "Running 10s test @ http://localhost:3000\n8 connections\n\n\
                  Stat         Avg     Stdev  Max\nLatency (ms) 9500    300    9990\n\
                  Req/Sec      2       1      4\nBytes/Sec    2 kB    1 kB   4 kB\n\n\
                  20 requests in 10s, 20 kB read\n60 errors (60 timeouts)\n",
        ],
        words: "timeouts: 60 requests took longer than autocannon waits: latencies are of the others",
    },
    PlantedText {
        name: "h2load: the pages were moved",
        texts: &["finished in 2.00s, 5000.00 req/s, 1.10MB/s\n\
                  requests: 10000 total, 10000 started, 10000 done, 0 succeeded, 10000 failed, 0 errored, 0 timeout\n\
                  status codes: 0 2xx, 10000 3xx, 0 4xx, 0 5xx\n\
                  traffic: 2.20MB (2306867) total, 0.10MB (104857) headers (space savings 90.00%), 0B (0) data\n\
                  \x20                    min         max         mean         sd        +/- sd\n\
                  time for request:      474us     16.03ms       758us       800us    97.48%\n\
                  time for connect:       65us        65us        65us         0us   100.00%\n\
                  time to 1st byte:      2.4ms       2.4ms       2.4ms         0us   100.00%\n\
                  req/s           :    5000.00     5000.00     5000.00        0.00   100.00%\n"],
        words: "void      status: 10,000 of 10,000 answers were not 2xx",
    },
    PlantedText {
        name: "siege: a third of the connections broke",
        texts: &[
            "Transactions:\t\t 2000 hits\nAvailability:\t\t 66.67 %\nElapsed time:\t\t 40.00 secs\n\
                  Data transferred:\t 1.00 MB\nResponse time:\t\t 0.10 secs\nTransaction rate:\t 50.00 trans/sec\n\
                  Throughput:\t\t 0.02 MB/sec\nConcurrency:\t\t 5.00\nSuccessful transactions:  2000\n\
                  Failed transactions:\t 1000\nLongest transaction:\t 0.90\nShortest transaction:\t 0.01\n",
        ],
        words: "void      failed: 1,000 of 3,000 requests had no good answer",
    },
    PlantedText {
        name: "a bar is promised of wrk beside vegeta",
        texts: &[
            "Running 30s test @ http://a/\n  2 threads and 20 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
             \x20   Latency     2.00ms    1.00ms  20.00ms   90.00%\n    Req/Sec     5.00k   331.34     6.11k    65.45%\n\
             \x20 300000 requests in 30.00s, 52.83MB read\nRequests/sec:  10000.00\nTransfer/sec:      1.76MB\n",
            "Requests      [total, rate, throughput]  6000, 200.02, 200.00\n\
             Duration      [total, attack, wait]      29.99s, 29.98s, 1.2ms\n\
             Latencies     [mean, 50, 95, 99, max]    1.1ms, 1.0ms, 2.0ms, 3.0ms, 9.0ms\n\
             Bytes In      [total, mean]              18000, 3.00\n\
             Bytes Out     [total, mean]              0, 0.00\n\
             Success       [ratio]                    100.00%\n\
             Status Codes  [code:count]               200:6000\n\
             Error Set:\n",
        ],
        words: "no claim  unequal-load: wrk and vegeta do not count and time alike.",
    },
];
