//! The requests of [`FileCase`]: once as they are looked up, and once more as they are remembered.

use catamaran_proxy::config::FilesConfig;
use catamaran_testkit::files::FileCase;

use super::{Client, Tree, address, front};

#[test]
fn every_kind_of_request_is_answered_as_the_standard_says() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let address = address(&running);
    let mut wrong = Vec::new();
    for client in [Client::BOTH, Client::BOTH].concat() {
        for case in FileCase::ALL {
            let fields = case.fields(|fields| {
                let head = client.ask(address, "HEAD", case.path, fields);
                head.response()
            });
            let got = client.ask(address, case.method, case.path, &fields);
            if let Err(why) = case.judge(&got.response()) {
                wrong.push(format!("{client:?} {}: {why}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(FileCase::ALL.len(), 126);
    let [hit, open, ..] = running.counters().files;
    assert!(hit > open, "{hit} {open}");
}
