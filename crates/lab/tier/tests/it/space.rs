//! A space has ports, settings and a group of its own.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use catamaran_gauge::{CpuLimit, Group, network, process};
use catamaran_testkit::Deadline;
use catamaran_tier::{Job, Priority, Space, SpaceFault};

use crate::{own_name, space, start};

#[test]
fn spaces_do_not_see_each_others_ports() {
    let (one, other) = (space("one"), space("other"));
    let nginx = start(&one, "nginx", &[]).unwrap();
    let address = nginx.address("http");
    let connect = || TcpStream::connect(address).is_ok();
    assert!(one.inside(connect).unwrap());
    if one.group().is_some() {
        assert!(!other.inside(connect).unwrap());
        assert_eq!(
            start(&other, "nginx", &[]).unwrap().address("http"),
            address
        );
    }
}

#[test]
fn a_server_that_is_started_again_has_its_address_again() {
    let space = space("again");
    let first = start(&space, "nginx", &[]).unwrap();
    let address = first.address("http");
    first.stop();
    assert_eq!(
        start(&space, "nginx", &[]).unwrap().address("http"),
        address
    );
}

#[test]
fn sysctls_are_those_of_the_space() {
    let space = space("sysctl");
    let name = "net.ipv4.ip_local_port_range";
    let own = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let shared = Space::shared().unwrap();
    let fault = shared
        .set_sysctl(name, "1024 1123")
        .unwrap_err()
        .to_string();
    assert!(fault.contains("for the whole machine"), "{fault}");
    space.set_sysctl(name, "1024 1123").unwrap();
    assert_eq!(space.sysctl(name).unwrap(), "1024\t1123");
    assert_eq!(
        std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap(),
        own
    );
    let port = space.inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    });
    assert!((1024..=1123).contains(&port.unwrap()));
    for refused in ["kernel.pid_max", "net.no.such"] {
        let fault = space.set_sysctl(refused, "1").unwrap_err();
        assert!(matches!(fault, SpaceFault::Sysctl { .. }), "{fault}");
    }
}

#[test]
fn the_anchor_tells_of_the_network_of_the_space() {
    let space = space("network");
    let nginx = start(&space, "nginx", &[]).unwrap();
    let address = nginx.address("http");
    let before = network::of(space.anchor()).unwrap();
    let stream = space.inside(|| TcpStream::connect(address).unwrap());
    let after = network::of(space.anchor()).unwrap();
    let [before, opened] = [&before, &after].map(|it| it.counters.of("Tcp.ActiveOpens"));
    let opened = opened - before;
    assert!(opened >= 1);
    if space.group().is_some() {
        assert_eq!(opened, 1, "nobody else is there");
        assert_eq!(after.interfaces.len(), 1);
    }
    drop(stream);
}

#[test]
fn a_task_is_pinned_and_its_output_is_piped() {
    let space = space("task");
    let command = ["sh", "-c", "taskset -p $$; nice; sleep 600 & echo ready"].map(str::to_owned);
    let job = Job {
        name: "load",
        core: Some(0),
        priority: Priority::Nice(19),
        limit: None,
        command: &command,
    };
    let mut task = space.run(&job).unwrap();
    let mut output = String::new();
    // The pipe ends with the last that holds it.
    let mut pipe = task.child.stdout.take().unwrap();
    let mut byte = [0];
    while !output.ends_with("ready\n") && pipe.read(&mut byte).unwrap() == 1 {
        output.push(char::from(byte[0]));
    }
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines[0].ends_with("current affinity mask: 1"), "{output}");
    assert_eq!(lines[1], "19");
    task.kill();
    assert_eq!(pipe.read(&mut byte).unwrap(), 0, "nobody holds the pipe");
    assert_eq!(task.processes(), Vec::<u32>::new());
}

#[test]
fn a_task_may_go_before_all_others() {
    let space = space("first");
    let command = ["sh", "-c", "chrt -p $$"].map(str::to_owned);
    let job = Job {
        name: "load",
        core: None,
        priority: Priority::First,
        limit: None,
        command: &command,
    };
    let mut task = space.run(&job).unwrap();
    let mut output = String::new();
    let mut pipe = task.child.stdout.take().unwrap();
    pipe.read_to_string(&mut output).unwrap();
    assert!(output.contains("policy: SCHED_FIFO"), "{output}");
}

#[test]
fn a_task_has_a_part_of_its_core() {
    let name = own_name("part");
    let space = Space::isolated(&name).unwrap();
    let quota = CpuLimit::Quota {
        time: Duration::from_millis(3),
        period: Duration::from_millis(10),
    };
    let command = ["sh", "-c", "echo ready; while :; do :; done"].map(str::to_owned);
    let job = Job {
        name: "busy",
        core: Some(0),
        priority: Priority::Inherited,
        limit: Some(quota),
        command: &command,
    };
    let task = space.run(&job).unwrap();
    let stopped = || {
        let stops = task.group().unwrap().stops().unwrap().unwrap();
        (stops.stopped > 0).then_some(())
    };
    Deadline::default()
        .poll("a quota that is used up", stopped)
        .unwrap();
    let twins = [space.group().unwrap(), task.group().unwrap()].map(Group::twin);
    assert!(twins.iter().flatten().all(|twin| twin.exists()));
    drop(task);
    drop(space);
    assert!(!twins.iter().flatten().any(|twin| twin.exists()));
}

#[test]
fn nothing_is_left_of_a_space() {
    let name = own_name("left");
    let space = Space::isolated(&name).unwrap();
    let nginx = start(&space, "nginx", &[]).unwrap();
    let (directory, anchor, id) = (space.directory().to_owned(), space.anchor(), nginx.id());
    let group = space.group().unwrap().path().to_owned();
    assert!(Space::isolated(&name).is_err(), "there is one already");
    assert!(directory.exists() && group.join("nginx").exists());
    drop(space);
    assert!(group.exists(), "a server is still in it");
    drop(nginx);
    assert!(!group.exists() && !directory.exists());
    assert!(!std::path::Path::new("/run/netns").join(&name).exists());
    for id in [anchor, id] {
        assert_eq!(process::tree(id).unwrap(), Vec::<u32>::new());
    }
}

#[test]
fn nothing_is_left_of_a_shared_space() {
    let space = Space::shared().unwrap();
    let nginx = start(&space, "nginx", &[]).unwrap();
    let (directory, ids) = (space.directory().to_owned(), nginx.processes());
    assert!(ids.len() > 1, "{ids:?}");
    drop(nginx);
    for id in ids {
        assert_eq!(process::tree(id).unwrap(), Vec::<u32>::new());
    }
    drop(space);
    assert!(!directory.exists());
}
