use super::*;

/// A file of performance data with these `entries`, each a name, a kind and the data.
fn file(entries: &[(&str, u8, &[u8])]) -> Vec<u8> {
    let mut file = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
    file.resize(32, 0);
    file[24..28].copy_from_slice(&32_u32.to_le_bytes());
    file[28..32].copy_from_slice(&u32::try_from(entries.len()).unwrap().to_le_bytes());
    for (name, kind, data) in entries {
        let length = if *kind == b'J' { 0 } else { data.len() };
        let data_at = (20 + name.len() + 1).next_multiple_of(8);
        let total = (data_at + data.len()).next_multiple_of(8);
        let start = file.len();
        for number in [total, 20, length] {
            file.extend(u32::try_from(number).unwrap().to_le_bytes());
        }
        file.extend([*kind, 0, 1, 1]);
        file.extend(u32::try_from(data_at).unwrap().to_le_bytes());
        file.extend(name.as_bytes());
        file.resize(start + data_at, 0);
        file.extend(*data);
        file.resize(start + total, 0);
    }
    file
}

fn long(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn whole() -> Vec<u8> {
    file(&[
        ("sun.os.hrt.frequency", b'J', &long(1_000)),
        ("sun.gc.generation.0.space.0.used", b'J', &long(100)),
        ("sun.gc.generation.0.space.0.capacity", b'J', &long(400)),
        ("sun.gc.generation.1.space.0.used", b'J', &long(20)),
        ("sun.gc.generation.1.space.0.capacity", b'J', &long(600)),
        ("sun.gc.collector.0.name", b'B', b"Copy\0\0\0"),
        ("sun.gc.collector.0.invocations", b'J', &long(3)),
        ("sun.gc.collector.0.time", b'J', &long(250)),
        ("java.ci.totalTime", b'J', &long(4_500)),
    ])
}

#[test]
fn spaces_are_summed_and_ticks_are_time() {
    let jvm = interpret(&parse(&whole()).unwrap()).unwrap();
    assert_eq!((jvm.heap_used, jvm.heap_committed), (120, 1000));
    assert_eq!(jvm.compiling, Some(Duration::from_millis(4500)));
    let expected = Collector {
        name: "Copy".to_owned(),
        collections: 3,
        took: Duration::from_millis(250),
    };
    assert_eq!(jvm.collectors, [expected]);
}

#[test]
fn a_file_that_is_cut_or_damaged_is_refused_or_read_in_part() {
    let whole = whole();
    for length in 0..whole.len() {
        assert!(parse(&whole[..length]).is_err(), "{length} bytes");
    }
    for place in 0..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[place] = byte;
            // It ends without a panic, whatever it says.
            let _ = parse(&damaged).and_then(|values| interpret(&values));
        }
    }
}

#[test]
fn a_process_without_performance_data_is_named() {
    let fault = read(std::process::id()).unwrap_err();
    assert!(matches!(fault, JvmFault::NoFile(_)), "{fault}");
}
