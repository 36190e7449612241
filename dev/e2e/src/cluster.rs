//! Several of Debian's Tomcat 10 as one cluster, each with a `jvmRoute` of its own.
//!
//! Each has the webapp of `cluster/` of this crate three times: `/plain`, whose sessions stay in one Tomcat;
//! `/shared`, whose sessions are replicated to all (DeltaManager); and `/app`, of which a second version can be
//! deployed while the first serves. A Tomcat that has ended can be started again on the same ports.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::{fs, thread};

use anyhow::Context;
use catamaran_testkit::{Deadline, Process, Signal, address};

use crate::tomcat;

/// Tomcats that replicate sessions to each other.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Node>,
}

/// A Tomcat of a [`Cluster`].
#[derive(Debug)]
pub struct Node {
    route: String,
    ports: Ports,
    process: Process,
    /// The orders that earlier processes of this node took.
    earlier: Vec<u64>,
}

/// How a Tomcat joins the cluster.
#[derive(Clone, Copy)]
enum Beginning {
    /// Together with all the others, and with version 1 of the webapps.
    Together,
    /// While the others run; its webapps have this version.
    Joining { version: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    ajp: SocketAddr,
    http: SocketAddr,
    cluster: SocketAddr,
}

impl Cluster {
    /// Starts a Tomcat for each of `routes`, all at once, and waits until all of them serve.
    ///
    /// # Errors
    /// Tomcat or Java is not installed, or one did not come up; the message has its log.
    pub fn start(routes: &[&str]) -> anyhow::Result<Self> {
        tomcat::is_installed()?;
        let mut ports: Vec<Ports> = Vec::new();
        for _ in routes {
            ports.push(Ports::unused()?);
        }
        let start_node = |own: usize| {
            let node = Node::launch(
                routes[own],
                &ports,
                own,
                Beginning::Together,
                WITHOUT_SECRET,
            )?;
            tomcat::wait_for_start(&node.process)?;
            anyhow::Ok(node)
        };
        let start_node = &start_node;
        let nodes = thread::scope(|scope| {
            let threads = (0..routes.len()).map(|own| scope.spawn(move || start_node(own)));
            // All threads are started before the first is waited for.
            let threads: Vec<_> = threads.collect();
            let nodes = threads.into_iter().map(|thread| thread.join());
            nodes
                .map(|node| node.expect("a start does not panic"))
                .collect::<anyhow::Result<_>>()
        })?;
        Ok(Self { nodes })
    }

    /// The Tomcat with this `jvmRoute`.
    ///
    /// # Panics
    /// No Tomcat has this `jvmRoute`.
    #[must_use]
    pub fn node(&self, route: &str) -> &Node {
        let mut nodes = self.nodes.iter();
        nodes.find(|node| node.route == route).expect("a node")
    }

    /// Ends the Tomcat with this `jvmRoute` in order, if it still runs, and starts one with `version` of
    /// `/plain` and `/shared` in its place.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn redeploy(&mut self, route: &str, version: u32) -> anyhow::Result<()> {
        self.stop(route)?;
        self.launch(route, version)?;
        tomcat::wait_for_start(&self.node(route).process)
    }

    /// As [`Cluster::redeploy`] with version 1; its AJP13 connector then requires this secret.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn redeploy_with_secret(&mut self, route: &str, secret: &str) -> anyhow::Result<()> {
        self.stop(route)?;
        self.launch_with(route, 1, &format!("secret=\"{secret}\""))?;
        tomcat::wait_for_start(&self.node(route).process)
    }

    /// Ends the Tomcat with this `jvmRoute` in order, if it still runs.
    ///
    /// # Errors
    /// The Tomcat does not end.
    pub fn stop(&mut self, route: &str) -> anyhow::Result<()> {
        let own = self.index(route)?;
        self.nodes[own].end()
    }

    /// Starts a Tomcat with `version` of `/plain` and `/shared` in place of one that has ended, and does not
    /// wait until it serves.
    ///
    /// # Errors
    /// The Tomcat cannot be started.
    pub fn launch(&mut self, route: &str, version: u32) -> anyhow::Result<()> {
        self.launch_with(route, version, WITHOUT_SECRET)
    }

    fn launch_with(&mut self, route: &str, version: u32, secret: &str) -> anyhow::Result<()> {
        let ports: Vec<Ports> = self.nodes.iter().map(|node| node.ports).collect();
        let own = self.index(route)?;
        let earlier = self.nodes[own].orders()?;
        let beginning = Beginning::Joining { version };
        self.nodes[own] = Node::launch(route, &ports, own, beginning, secret)?;
        self.nodes[own].earlier = earlier;
        Ok(())
    }

    fn index(&self, route: &str) -> anyhow::Result<usize> {
        let mut nodes = self.nodes.iter();
        let own = nodes.position(|node| node.route == route);
        own.context("there is no such node")
    }

    /// Deploys `version` of `/app` on every Tomcat in addition to the versions that are there, and waits until it is
    /// served.
    ///
    /// # Errors
    /// The files cannot be written, or Tomcat does not deploy them.
    pub fn deploy_beside(&self, version: u32) -> anyhow::Result<()> {
        let folder = format!("app##{version}");
        for node in &self.nodes {
            node.deploy(&folder, version, false)?;
        }
        self.nodes
            .iter()
            .try_for_each(|node| node.wait_for_webapp(&folder))
    }

    /// How often each order was taken, by all processes of all nodes.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn orders(&self) -> anyhow::Result<BTreeMap<u64, u32>> {
        let mut orders = BTreeMap::new();
        for node in &self.nodes {
            for order in node.orders()? {
                *orders.entry(order).or_default() += 1;
            }
        }
        Ok(orders)
    }
}

impl Node {
    fn launch(
        route: &str,
        ports: &[Ports],
        own: usize,
        beginning: Beginning,
        secret: &str,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let version = match beginning {
            Beginning::Together => 1,
            Beginning::Joining { version } => version,
        };
        let server = server(route, ports, own)
            .replace("@TRANSFER_SECONDS@", beginning.transfer())
            .replace("@SECRET@", secret);
        write_base(directory.path(), &server)?;
        let webapps = directory.path().join("webapps");
        write_webapp(&webapps.join("plain"), version, false)?;
        write_webapp(&webapps.join("shared"), version, true)?;
        write_webapp(&webapps.join("app##1"), 1, false)?;
        // A cheap start matters more here than speed afterwards.
        let mut java = tomcat::java(directory.path(), &["-XX:TieredStopAtLevel=1"]);
        let process = Process::spawn_in(&mut java, directory)?;
        Ok(Self {
            route: route.to_owned(),
            ports: ports[own],
            process,
            earlier: Vec::new(),
        })
    }

    /// The address for AJP13.
    #[must_use]
    pub fn ajp(&self) -> SocketAddr {
        self.ports.ajp
    }

    /// The address for HTTP/1.1.
    #[must_use]
    pub fn http(&self) -> SocketAddr {
        self.ports.http
    }

    /// The process, to signal it or to read its log.
    #[must_use]
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Puts a webapp into the directory in which Tomcat looks for new ones each second.
    fn deploy(&self, folder: &str, version: u32, distributable: bool) -> anyhow::Result<()> {
        let base = self.process.directory();
        let (written, target) = (
            base.join("temp").join(folder),
            base.join("webapps").join(folder),
        );
        write_webapp(&written, version, distributable)?;
        // It is renamed when it is complete.
        Ok(fs::rename(written, target)?)
    }

    fn wait_for_webapp(&self, folder: &str) -> anyhow::Result<()> {
        let done = format!("webapps/{folder}] has finished");
        self.process
            .wait_for_line(&done, |line| line.contains(&done).then_some(()))
    }

    /// Ends the Tomcat in order if it still runs.
    fn end(&mut self) -> anyhow::Result<()> {
        if self.process.try_wait()?.is_none() {
            self.process.signal(Signal::Terminate)?;
            self.process.wait(Deadline::default())?;
        }
        Ok(())
    }

    /// The orders that this process has taken.
    fn orders(&self) -> anyhow::Result<Vec<u64>> {
        let mut orders = self.earlier.clone();
        let file = self.process.directory().join("orders.txt");
        if file.exists() {
            for line in fs::read_to_string(file)?.lines() {
                orders.push(line.parse().with_context(|| format!("{line:?}"))?);
            }
        }
        Ok(orders)
    }
}

impl Beginning {
    /// How long to wait for the sessions of the others, in seconds. Tomcats that start together would otherwise wait
    /// for one another.
    fn transfer(self) -> &'static str {
        match self {
            Self::Together => "1",
            Self::Joining { .. } => "60",
        }
    }
}

impl Ports {
    fn unused() -> anyhow::Result<Self> {
        Ok(Self {
            ajp: address::unused()?,
            http: address::unused()?,
            cluster: address::unused()?,
        })
    }
}

fn write_base(base: &Path, server: &str) -> anyhow::Result<()> {
    for folder in ["conf", "logs", "temp", "webapps", "work"] {
        fs::create_dir_all(base.join(folder))?;
    }
    for (name, text) in tomcat::CONF {
        fs::write(base.join("conf").join(name), text)?;
    }
    Ok(fs::write(base.join("conf/server.xml"), server)?)
}

/// The text of `server.xml` for the member `own`.
fn server(route: &str, ports: &[Ports], own: usize) -> String {
    let mut text = SERVER
        .replace("@ROUTE@", route)
        .replace("@MEMBERS@", &members(ports, own));
    let Ports { ajp, http, cluster } = ports[own];
    for (name, address) in [("AJP", ajp), ("HTTP", http), ("CLUSTER", cluster)] {
        text = text
            .replace(&format!("@{name}_HOST@"), &address.ip().to_string())
            .replace(&format!("@{name}_PORT@"), &address.port().to_string());
    }
    text
}

/// The elements for the member `own` and for the others; each has a `uniqueId`.
fn members(all: &[Ports], own: usize) -> String {
    let mut members = String::new();
    for (index, ports) in all.iter().enumerate() {
        // An id of only zeroes is invalid.
        let id = index + 1;
        let (element, place) = if index == own {
            ("LocalMember", String::new())
        } else {
            let (host, port) = (ports.cluster.ip(), ports.cluster.port());
            ("Member", format!(" host=\"{host}\" port=\"{port}\""))
        };
        let _ = writeln!(
            members,
            "<{element} className=\"org.apache.catalina.tribes.membership.StaticMember\"{place} \
             uniqueId=\"{{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,{id}}}\"/>"
        );
    }
    members
}

fn write_webapp(folder: &Path, version: u32, distributable: bool) -> anyhow::Result<()> {
    fs::create_dir_all(folder.join("WEB-INF"))?;
    let element = if distributable {
        "<distributable/>"
    } else {
        ""
    };
    let web = WEB
        .replace("<!-- @DISTRIBUTABLE@ -->", element)
        .replace("@VERSION@", &version.to_string());
    fs::write(folder.join("WEB-INF/web.xml"), web)?;
    // Probes ask for this file, which begins no session.
    fs::write(folder.join("health"), "fine\n")?;
    Ok(fs::write(folder.join("shop.jsp"), PAGE)?)
}

/// The attributes of an AJP13 connector that requires no secret.
const WITHOUT_SECRET: &str = "secretRequired=\"false\"";

const SERVER: &str = include_str!("../cluster/server.xml");
const PAGE: &str = include_str!("../cluster/shop.jsp");
const WEB: &str = include_str!("../cluster/WEB-INF/web.xml");
