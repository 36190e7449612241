//! Tests of names with a scripted resolver.

use std::collections::VecDeque;
use std::io::ErrorKind;

use super::*;

type Answer = io::Result<Vec<SocketAddr>>;

/// The answers that the scripted resolver will give.
#[derive(Debug, Default)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    added: Notify,
}

impl Script {
    fn send(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
        self.added.notify_one();
    }

    async fn next(&self) -> Answer {
        loop {
            let next = self.answers.lock().unwrap().pop_front();
            match next {
                Some(answer) => return answer,
                None => self.added.notified().await,
            }
        }
    }
}

/// Makes a name, and the script of its resolver.
fn scripted() -> (Arc<Name>, Arc<Script>) {
    let script = Arc::<Script>::default();
    let name = Name::new("app.test");
    name.is_kept.store(true, Ordering::Relaxed);
    let own = Arc::clone(&script);
    let resolve = move |_| {
        let own = Arc::clone(&own);
        async move { own.next().await }
    };
    tokio::spawn(keep(Arc::downgrade(&name), resolve, Duration::ZERO));
    (name, script)
}

fn addresses(list: &[&str]) -> Vec<SocketAddr> {
    let parse = |it: &&str| SocketAddr::new(it.parse().unwrap(), 0);
    list.iter().map(parse).collect()
}

async fn until(name: &Name, what: impl Fn(&Resolution) -> bool) -> Resolution {
    let mut known = name.known.subscribe();
    loop {
        let now = name.resolution();
        if what(&now) {
            return now;
        }
        // So that no test waits for the time to pass.
        name.note_dial(None);
        known.changed().await.unwrap();
    }
}

#[tokio::test]
async fn the_last_good_addresses_stay_in_use_while_resolving_fails_however_it_fails() {
    let (name, answers) = scripted();
    answers.send(Ok(addresses(&["10.0.0.1"])));
    let at = addresses(&["10.0.0.1"])[0].ip();
    assert_eq!(
        name.addresses(80).await.unwrap(),
        [SocketAddr::new(at, 80)],
        "waited for"
    );
    for failure in [
        Err(io::Error::other("Temporary failure in name resolution")),
        Err(io::Error::new(
            ErrorKind::NotFound,
            "Name or service not known",
        )),
        Ok(Vec::new()),
    ] {
        answers.send(failure);
        let failing = until(&name, |it| it.failed.is_some()).await;
        assert_eq!((failing.addresses, name.lack()), (vec![at], None));
        assert!(failing.age.is_some());
        assert_eq!(name.addresses(80).await.unwrap().len(), 1);
        answers.send(Ok(addresses(&["10.0.0.1"])));
        until(&name, |it| it.failed.is_none()).await;
    }
    answers.send(Ok(addresses(&["10.0.0.2", "10.0.0.3"])));
    let moved = until(&name, |it| it.addresses.len() == 2).await;
    assert_eq!(moved.failed, None);
    // The address that gave a connection comes first from then on.
    name.note_dial(Some(moved.addresses[1]));
    let order = name.addresses(80).await.unwrap();
    assert_eq!(order[0].ip(), moved.addresses[1]);
}

#[tokio::test]
async fn a_name_that_never_resolved_says_why() {
    let (name, answers) = scripted();
    answers.send(Err(io::Error::other("Temporary failure")));
    let why = name.addresses(80).await.unwrap_err();
    assert_eq!(
        (why.as_str(), name.lack()),
        ("Temporary failure", Some(why.clone()))
    );
    answers.send(Ok(addresses(&["10.0.0.1"])));
    until(&name, |it| it.age.is_some()).await;
    assert_eq!(
        (name.lack(), name.addresses(80).await.unwrap().len()),
        (None, 1)
    );
}

/// The name is like one for which no thread could be started.
#[tokio::test]
async fn a_name_that_nobody_resolves_yet_is_resolved_once_it_is_dialled() {
    let name = Name::new("localhost");
    name.fail("Resource temporarily unavailable");
    name.addresses(80).await.unwrap_err();
    let mut known = name.known.subscribe();
    let resolved = known.wait_for(|known| known.good.is_some());
    let resolved = timeout(Duration::from_secs(30), resolved).await;
    assert!(resolved.is_ok(), "not resolved");
}

#[test]
fn families_take_turns() {
    let turns = |list: &[&str]| by_turns(addresses(list));
    assert_eq!(
        turns(&["::1", "::2", "::3", "10.0.0.1"]),
        addresses(&["::1", "10.0.0.1", "::2", "::3"])
    );
    assert_eq!(
        turns(&["10.0.0.1", "10.0.0.2", "::1"]),
        addresses(&["10.0.0.1", "::1", "10.0.0.2"])
    );
    assert_eq!(turns(&[]), []);
}
