//! An axum application behind Apache, IIS or nginx, over AJP13.
//!
//! ```text
//! ProxyPass "/" "ajp://127.0.0.1:8009/"
//! ```

use std::error::Error;
use std::time::Duration;

use axum::extract::Path;
use axum::routing::get;
use axum::{Extension, Router};
use catamaran_connector::{Address, Application, Config, Listener, Origin, Protocol, start};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Router::new()
        .route("/", get(hello))
        .route("/greet/{name}", get(greet));
    let config = Config {
        listeners: vec![Listener {
            protocol: Protocol::Ajp,
            address: Address::Tcp("127.0.0.1:8009".parse()?),
        }],
        ..Config::default()
    };
    let running = start(config, Application::service(app))?;
    tokio::signal::ctrl_c().await?;
    running.shutdown(Duration::from_secs(10));
    Ok(tokio::task::spawn_blocking(|| running.join()).await?)
}

async fn hello(Extension(origin): Extension<Origin>) -> String {
    let client = origin.remote_addr.as_deref().unwrap_or(b"somewhere");
    format!(
        "hello from {}, you at {}\n",
        origin.scheme(),
        String::from_utf8_lossy(client)
    )
}

async fn greet(Path(name): Path<String>) -> String {
    format!("hello, {name}\n")
}
