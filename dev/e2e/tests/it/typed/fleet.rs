//! Commands and configurations of docs/fleet.md.

use super::{Reader, block, blocks, line};

#[test]
fn a_node_of_mod_cluster_announces_itself() {
    let page = include_str!("../../../../../docs/fleet.md");
    let reader = Reader::new();
    let mut tables = blocks(page, "toml").into_iter();
    let mcmp = tables.find(|it| it.contains("[mcmp]")).unwrap();
    let rest = "[[listen]]\naddress = \"127.0.0.1:80\"\n\
                [admin]\naddress = \"127.0.0.1:9090\"\n";
    reader.saves("catamaran.toml", &format!("{rest}{mcmp}"));
    let printed = reader.types(
        "for host in 1 2; do ip addr add 10.0.0.$host/24 dev lo; done
         catamaran app --http 10.0.0.2:8080 2> app.log &
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         says() {
             curl --silent --show-error --fail --request $1 --data \"$2\" \"http://10.0.0.1:6666${3:-/}\"
         }
         status() {
             curl --silent --output /dev/null --write-out '%{http_code}\\n' http://127.0.0.1$1
         }
         becomes() { until [ $(status $1) = $2 ]; do sleep 0.1; done; echo $1 $2; }
         until says CONFIG 'JVMRoute=n1&Host=10.0.0.2&Port=8080&Type=http' 2> /dev/null; do sleep 0.1; done
         says ENABLE-APP 'JVMRoute=n1&Alias=localhost&Context=%2Fecho' > /dev/null
         becomes /echo 200
         becomes /status/200 404
         says ENABLE-APP 'JVMRoute=n1&Alias=localhost&Context=%2Fstatus' > /dev/null
         becomes /status/200 200
         says STATUS 'JVMRoute=n1&Load=50'
         echo
         says STOP-APP 'JVMRoute=n1&Alias=localhost&Context=%2Fecho'
         echo
         becomes /echo 503
         becomes /status/200 200
         says REMOVE-APP 'JVMRoute=n1' '/*'
         becomes /status/200 404
         curl --silent http://127.0.0.1:9090/metrics | grep '^catamaran_mcmp_messages_total.*config'",
    );
    let expected = "/echo 200\n/status/200 404\n/status/200 200\n\
                    Type=STATUS-RSP&JVMRoute=n1&State=OK&id=1\n\
                    Type=STOP-APP-RSP&JvmRoute=n1&Alias=localhost&Context=%2Fecho&Requests=0\n\
                    /echo 503\n/status/200 200\n/status/200 404\n\
                    catamaran_mcmp_messages_total{upstream=\"wildfly\",command=\"config\"} 1\n";
    assert_eq!(printed, expected);
}

#[test]
fn two_fronts_share_an_address_by_keepalived() {
    let page = include_str!("../../../../../docs/fleet.md");
    let reader = Reader::new();
    let mut tables = blocks(page, "toml").into_iter();
    let config = tables.find(|it| it.contains("drain_delay")).unwrap();
    reader.saves("catamaran.toml", config);
    let (_, keepalived) = page.split_once("```\nglobal_defs").unwrap();
    let (keepalived, _) = keepalived.split_once("```").unwrap();
    let first = format!("global_defs{keepalived}");
    reader.saves("keepalived1.conf", &first);
    reader.saves(
        "keepalived2.conf",
        &first.replace("priority 200", "priority 100"),
    );
    for (route, host) in [("a", 3), ("b", 4)] {
        let connector = format!(
            "<Connector protocol=\"AJP/1.3\" address=\"10.78.0.{host}\" port=\"8009\" secret=\"change me\"/>"
        );
        let engine = format!("defaultHost=\"localhost\" jvmRoute=\"{route}\"");
        reader.saves_tomcat(route, &connector, &engine);
        reader.saves(
            &format!("{route}/webapps/ROOT/session.jsp"),
            include_str!("../../../webapp/session.jsp"),
        );
    }
    let printed = reader.types(TWO_FRONTS);
    let lines: Vec<&str> = printed.lines().collect();
    let [visitors @ .., planned, killed] = &lines[..] else {
        panic!("{printed}")
    };
    assert_eq!(visitors.len(), 4, "{printed}");
    for (visitor, route) in visitors.iter().zip(["a", "b", "a", "b"]) {
        let start = format!("visitor of {route} with ");
        assert!(
            visitor.starts_with(&start) && visitor.ends_with(" visits lost 0"),
            "{printed}"
        );
    }
    // What is under way when the address moves is cut, and nothing else: at most one visit of each visitor.
    let most: u64 = planned.trim_start_matches("planned ").parse().unwrap();
    assert!(most <= 1, "{printed}");
    let outage: u64 = killed.trim_start_matches("killed ").parse().unwrap();
    // 6 s on a machine that does nothing else; here only against one that never ends.
    assert!(outage <= 30_000, "{printed}");
}

#[test]
fn members_come_from_etcd_by_a_file() {
    let page = include_str!("../../../../../docs/fleet.md");
    let reader = Reader::new();
    reader.saves("catamaran.toml", block(page, "toml", 0));
    let (_, section) = page.split_once("### From etcd").unwrap();
    let [write, put] = [0, 1].map(|place| block(section, "sh", place));
    let watch = line(section, "etcdctl watch");
    let printed = reader.types(&format!(
        "etcd --data-dir etcd > etcd.log 2>&1 &
         until etcdctl endpoint health > health.log 2>&1; do sleep 0.1; done
         catamaran app --ajp 127.0.0.1:8009 2> app.log &
         {write}
         {put}
         {watch} > watch.log 2>&1 &
         ./write-members
         catamaran serve --config catamaran.toml > access.log 2> front.log &
         answer http://127.0.0.1:8080/ > page
         test $(stat -c %s page) = 347
         stands() {{
             curl --silent http://127.0.0.1:9090/api/v1/upstreams/app/backends/$1 | jq --raw-output .found.state
         }}
         becomes() {{ until [ \"$(stands $1)\" = $2 ]; do sleep 0.1; done; echo $1 $2; }}
         becomes blue active
         green=$(etcdctl get /members/app/blue --print-value-only | sed 's/blue/green/; s/8009/8010/')
         etcdctl put /members/app/green \"$green\" > put.log
         becomes green active
         etcdctl del /members/app/green > del.log
         becomes green leaving
         becomes blue active"
    ));
    assert_eq!(
        printed,
        "OK\nblue active\ngreen active\ngreen leaving\nblue active\n"
    );
}

/// Two fronts behind one address, before two Tomcats: a planned stop of the first front, then its sudden death.
/// Visitors come again and again, each with its session.
const TWO_FRONTS: &str = "ip link add name br0 type bridge
for host in 3 4; do ip addr add 10.78.0.$host/24 dev br0; done
ip link set br0 up
for base in a b; do
    mkdir $base/temp $base/logs $base/work
    CATALINA_BASE=$PWD/$base /usr/share/tomcat10/bin/catalina.sh run > $base.log 2>&1 &
done
front() {
    ip netns exec f$1 catamaran serve --config catamaran.toml > access$1.log 2>> front$1.log &
    echo $! > front$1.pid
}
for n in 1 2; do
    ip netns add f$n
    ip link add v$n type veth peer name eth0 netns f$n
    ip link set v$n master br0 up
    ip -n f$n addr add 10.78.0.1$n/24 dev eth0
    ip -n f$n link set eth0 up
    ip -n f$n link set lo up
    front $n
    ip netns exec f$n keepalived --dont-fork --log-console --use-file $PWD/keepalived$n.conf \
        --pid /run/k$n.pid --vrrp_pid /run/v$n.pid > keepalived$n.log 2>&1 &
done
holds() { ip -n f$1 addr show eth0 | grep --quiet 10.78.0.100; }
until holds 1; do sleep 0.1; done
until [ $(grep --count --no-messages 'Server startup in' a.log b.log | cut -d : -f 2 | paste -s -d +) = 1+1 ]; do
    sleep 0.1
done
answer http://10.78.0.100/session.jsp > /dev/null
# Begins sessions until one is at this Tomcat.
arrive() {
    until [ \"$(curl --silent --cookie-jar jar$1 http://10.78.0.100/session.jsp | sed -n 's/^id=.*[.]//p')\" = $2 ]; do
        rm jar$1
    done
}
arrive 1 a
arrive 2 b
arrive 3 a
arrive 4 b
# Prints the time, the status, the session's id and its visits, if there are any.
visits() {
    until [ -e over ]; do
        page=$(curl --silent --max-time $2 --cookie jar$1 --cookie-jar jar$1 \
            --write-out 'status=%{http_code}\\n' http://10.78.0.100/session.jsp || true)
        echo $(date +%s%3N) $(sed -n 's/^status=//p; s/^id=//p; s/^visits=//p' <<< \"$page\" | tac)
        sleep 0.05
    done
}
begin() {
    visitors=
    for n in 1 2 3 4; do
        visits $n $2 > $1.$n &
        visitors=\"$visitors $!\"
    done
}
end() {
    touch over
    wait $visitors
    rm over
}
# Nobody who waits a second fails because this machine does other work, too.
begin planned 20
until [ $(cat planned.* | wc --lines) -ge 20 ]; do sleep 0.1; done
kill -TERM $(cat front1.pid)
until holds 2; do sleep 0.1; done
while kill -0 $(cat front1.pid) 2> /dev/null; do sleep 0.1; done
sleep 1
end
front 1
until holds 1; do sleep 0.1; done
sleep 2
begin killed 0.5
until [ $(cat killed.* | wc --lines) -ge 20 ]; do sleep 0.1; done
kill -KILL $(cat front1.pid)
until holds 2; do sleep 0.1; done
sleep 2
end
for n in 1 2 3 4; do
    cat planned.$n killed.$n | awk '
        NF == 4 && had && ($4 != id || $3 <= had) { lost++ }
        NF == 4 { id = $4; had = $3 }
        END { sub(/.*[.]/, \"\", id); print \"visitor of\", id, \"with\", had, \"visits lost\", lost + 0 }'
done
for n in 1 2 3 4; do
    awk '$2 != 200 { failed++ } END { print failed + 0 }' planned.$n
done | sort --numeric-sort | tail --lines 1 | sed 's/^/planned /'
for n in 1 2 3 4; do
    awk '$2 == 200 && out { gap = $1 - out; if (gap > most) most = gap; out = 0 }
         $2 != 200 && !out { out = $1 } END { print most + 0 }' killed.$n
done | sort --numeric-sort | tail --lines 1 | sed 's/^/killed /'";
