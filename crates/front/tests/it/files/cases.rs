//! The requests of [`FileCase`], over HTTP/1.1 and HTTP/2 in clear.

use catamaran_front::config::FilesConfig;
use catamaran_testkit::files::FileCase;

use super::{Client, Tree, address, front};
use crate::stop;

#[test]
fn every_kind_of_request_is_answered_as_the_standard_says() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let address = address(&running);
    let mut wrong = Vec::new();
    for client in Client::BOTH {
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
    stop(running);
}
