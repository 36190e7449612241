//! Containers that accept connections and do not answer: hung ones, and ones whose threads are all
//! busy.

use std::thread;

use catamaran_e2e::{App, Connector, Front, Tomcat};
use catamaran_testkit::{Deadline, Signal, signal_process};

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let so = || is_so().then_some(());
    Deadline::default().poll(what, so).unwrap();
}

#[test]
fn clients_of_a_stopped_container_are_served_by_the_other() {
    let apps = [(); 2].map(|()| App::start("epoll", &["--workers=1"]).unwrap());
    let backend = |app: &App| format!("[[upstream.app.backend]]\nurl = \"ajp://{}\"\n", app.ajp());
    let tables: String = apps.iter().map(backend).collect();
    // Whoever is not served by the other waits for longer than the test does.
    let keys = "[upstream.app]\nfirst_byte_timeout = \"1h\"\n";
    let front = Front::to_app(&format!("{keys}{tables}{ADMIN}")).unwrap();
    signal_process(apps[0].id(), Signal::Stop).unwrap();
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(front.get("/").unwrap().status, 200);
                }
            });
        }
    });
    until("the stopped one to be out", || {
        front.metric("catamaran_backend_unwell").unwrap() == [1.0, 0.0]
    });
    assert_eq!(front.metric("catamaran_backend_up").unwrap(), [0.0, 1.0]);
    assert!(front.metric("catamaran_retries_total").unwrap() > vec![0.0]);
    let line = front.wait_for_log("backend is out").unwrap();
    assert!(line.contains("it does not answer CPING"), "{line}");
    assert!(line.contains("upstream=\"app\" backend=\"ajp://"), "{line}");
    signal_process(apps[0].id(), Signal::Continue).unwrap();
    until("both to be up", || {
        front.metric("catamaran_backend_up").unwrap() == [1.0, 1.0]
    });
}

#[test]
fn a_tomcat_whose_threads_are_all_busy_is_not_put_out() {
    const THREADS: usize = 3;
    let tomcat = Tomcat::shared().unwrap();
    let url = tomcat.url(Connector::AjpNarrow);
    let front = Front::to_app(&format!(
        "[upstream.app]\nunwell_max = \"off\"\nsuspect_after = \"200ms\"\n\
         ping_timeout = \"200ms\"\nconnections_max = {THREADS}\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n{ADMIN}"
    ))
    .unwrap();
    thread::scope(|scope| {
        for index in 0..THREADS {
            let target = format!("/gate.jsp?wait&name=busy{index}");
            let front = &front;
            scope.spawn(move || assert_eq!(front.get(&target).unwrap().text(), "passed\n"));
        }
        let at_each_gate = |action: &str| {
            for index in 0..THREADS {
                let target = format!("/gate.jsp?{action}&name=busy{index}");
                assert_eq!(tomcat.get(&target).unwrap().status, 200);
            }
        };
        at_each_gate("arrived");
        // Of its probes, one is `answered` and the other `failed`.
        until("silence to be noticed twice", || {
            front.metric("catamaran_backend_probes_total").unwrap()[1] >= 2.0
        });
        assert_eq!(front.metric("catamaran_backend_suspect").unwrap(), [1.0]);
        assert_eq!(front.metric("catamaran_backend_up").unwrap(), [1.0]);
        front
            .wait_for_log("backend is suspect: no answer to CPING")
            .unwrap();
        at_each_gate("open");
    });
    assert_eq!(front.get("/page.html").unwrap().status, 200);
    until("the end of suspicion", || {
        front.metric("catamaran_backend_suspect").unwrap() == [0.0]
    });
    assert_eq!(
        front.metric("catamaran_backend_ejections_total").unwrap(),
        [0.0]
    );
}

/// The admin listener on a free port.
const ADMIN: &str = "[admin]\naddress = \"127.0.0.1:0\"\n";
