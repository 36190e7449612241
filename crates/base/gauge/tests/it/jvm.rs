//! A JVM's heap, held against `jcmd GC.heap_info`.

use std::process::Command;

use catamaran_gauge::jvm::{self, JvmReader};
use catamaran_testkit::Deadline;

use crate::Talker;

#[test]
fn the_heap_is_what_jcmd_says() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("Hold.java");
    std::fs::write(&source, HOLD).unwrap();
    let mut java = Talker::start(
        Command::new("java")
            .args(["-XX:+UseSerialGC", "-Xmx256m"])
            .arg(&source),
    );
    assert_eq!(java.line(), "ready");
    let id = java.child.id();
    // Eden is sampled every 50 ms, and jcmd's own work in the JVM is part of it.
    let reader = JvmReader::new(id);
    let equal = || {
        let (expected, jvm) = (heap_info(id), reader.read().unwrap());
        (jvm.heap_used.abs_diff(expected) <= expected / 100).then_some(jvm)
    };
    let jvm = Deadline::default().poll("what jcmd says", equal).unwrap();
    assert!(jvm.heap_used > 48 << 20, "{jvm:?}");
    assert!(
        jvm.heap_committed >= jvm.heap_used && jvm.heap_committed <= 256 << 20,
        "{jvm:?}"
    );
    assert!(
        jvm.collectors
            .iter()
            .any(|it| it.collections > 0 && !it.took.is_zero()),
        "{jvm:?}"
    );
    assert!(jvm.compiling.is_some_and(|time| !time.is_zero()), "{jvm:?}");
    // What was found once stays true, and does not stand still.
    let [again, anew] = [reader.read(), jvm::read(id)].map(|read| read.unwrap().compiling);
    assert!(
        jvm.compiling <= again && again <= anew,
        "{again:?} {anew:?}"
    );
}

/// `used` of both generations, in bytes.
fn heap_info(id: u32) -> u64 {
    let output = Command::new("jcmd")
        .args([&id.to_string(), "GC.heap_info"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let generations = text.lines().filter(|line| line.contains("generation"));
    let used = generations.map(|line| {
        let (_, used) = line.split_once(" used ").unwrap();
        let (kib, _) = used.split_once('K').unwrap();
        kib.parse::<u64>().unwrap() * 1024
    });
    used.sum()
}

/// Holds 48 MiB, says so, and waits.
const HOLD: &str = r#"
public class Hold {
    static byte[][] held = new byte[48][];
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < held.length; i++) held[i] = new byte[1 << 20];
        System.gc();
        System.out.println("ready");
        System.in.read();
    }
}"#;
