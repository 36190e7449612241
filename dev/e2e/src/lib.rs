//! The servers and clients of the end-to-end tests, each a child process on ports of its own.
//!
//! [`Tomcat`] is Debian's Tomcat 10 with a small webapp, and [`Cluster`] several of them. [`Front`] and [`App`] are
//! the two sides of the built `catamaran` binary. [`Container`] lists other containers, and [`Payara`] is one for a
//! long run. [`Httpd`] and [`Nginx`] are web servers, [`Memcached`] a cache, [`Pebble`] an authority, [`Browser`] a
//! Chromium, and [`curl()`] a curl. The tests themselves are in `tests/it`. No code of the product is linked here: the tests see bytes and exit
//! codes, as a user does.

mod app;
mod browser;
mod cluster;
mod container;
mod curl;
mod deployed;
mod front;
mod go_program;
mod httpd;
mod memcached;
mod nginx;
mod outcome;
mod payara;
mod pebble;
mod server;
mod tomcat;

pub use app::App;
pub use browser::Browser;
pub use catamaran_testkit::{binary, catamaran};
pub use cluster::{Cluster, Node};
pub use container::{Container, Embedded};
pub use curl::curl;
pub use deployed::Deployed;
pub use front::Front;
pub use go_program::go_program;
pub use httpd::{Httpd, Module};
pub use memcached::Memcached;
pub use nginx::Nginx;
pub use outcome::{bench, outcome};
pub use payara::Payara;
pub use pebble::{Pebble, PebbleSettings};
pub use tomcat::{Connector, Tomcat};
