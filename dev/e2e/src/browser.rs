//! Headless Chromium, driven by its DevTools protocol: tests click, type and read as a user does.
//!
//! Messages are JSON and end in a zero byte. Chromium reads and writes them at the descriptors 3 and 4, to which a
//! shell connects the pipes of standard input and output.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use anyhow::{Context as _, bail, ensure};
use catamaran_testkit::Deadline;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser with one page. Dropping it ends the process.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    last_id: u64,
    /// The page's session; empty until there is one.
    session: String,
    /// Exceptions on the page, and errors in its console.
    complaints: VecDeque<String>,
    /// Whether the page has begun to load another one since the last click.
    is_leaving: bool,
    _profile: TempDir,
}

impl Browser {
    /// Starts the browser with an empty page. `hosts` are names that lead to this machine.
    ///
    /// # Errors
    /// The browser does not start, or does not answer.
    pub fn start(hosts: &[&str]) -> anyhow::Result<Self> {
        let profile = tempfile::tempdir()?;
        let rules = hosts.iter().map(|host| format!("MAP {host} 127.0.0.1"));
        let rules = rules.collect::<Vec<_>>().join(",");
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 1>&2", "sh", "chromium"])
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--no-first-run", "--disable-background-networking"])
            .args([
                "--disable-component-update",
                "--disable-sync",
                "--disable-quic",
            ])
            // Certificates of tests have no known authority.
            .args(["--disable-dev-shm-usage", "--ignore-certificate-errors"])
            .arg("--remote-debugging-pipe")
            .arg(format!("--host-resolver-rules={rules}"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("chromium")?;
        let input = process.stdin.take().context("a pipe")?;
        let output = process.stdout.take().context("a pipe")?;
        let (sender, messages) = sync_channel(MESSAGES_MAX);
        thread::spawn(move || {
            // A zero byte ends each message.
            for bytes in BufReader::new(output).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&bytes) else {
                    break;
                };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            process,
            input,
            messages,
            last_id: 0,
            session: String::new(),
            complaints: VecDeque::new(),
            is_leaving: false,
            _profile: profile,
        };
        browser.open_page()?;
        Ok(browser)
    }

    fn open_page(&mut self) -> anyhow::Result<()> {
        let target = self.call("Target.createTarget", &json!({"url": "about:blank"}))?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call("Target.attachToTarget", &attach)?;
        let session = attached["sessionId"].as_str().context("a session")?;
        session.clone_into(&mut self.session);
        for domain in ["Page", "Runtime", "Log"] {
            self.call(&format!("{domain}.enable"), &json!({}))?;
        }
        Ok(())
    }

    /// Opens a URL and waits until the page is complete.
    ///
    /// # Errors
    /// The page cannot be loaded.
    pub fn open(&mut self, url: &str) -> anyhow::Result<()> {
        let opened = self.call("Page.navigate", &json!({"url": url}))?;
        ensure!(
            opened["errorText"].is_null(),
            "{url}: {}",
            opened["errorText"]
        );
        let is_there = format!(
            "document.readyState == 'complete' && (location.href != 'about:blank' || {url:?} == location.href)"
        );
        self.wait(&is_there).map(|_| ())
    }

    /// Evaluates an expression in the page, and returns its value. If it is a promise, waits for its result.
    ///
    /// # Errors
    /// The expression throws.
    pub fn evaluate(&mut self, expression: &str) -> anyhow::Result<Value> {
        let wanted = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut result = self.call("Runtime.evaluate", &wanted)?;
        if let Some(thrown) = result.get("exceptionDetails") {
            bail!("{expression}: {thrown}");
        }
        Ok(result["result"]["value"].take())
    }

    /// Evaluates the expression again and again until it is neither false nor empty, and returns its value.
    ///
    /// # Errors
    /// The deadline passed.
    pub fn wait(&mut self, expression: &str) -> anyhow::Result<Value> {
        let mut last = String::new();
        let waited = Deadline::default().poll(expression, || match self.evaluate(expression) {
            Ok(Value::Null | Value::Bool(false)) => None,
            Ok(Value::String(text)) if text.is_empty() => None,
            Ok(value) => Some(value),
            Err(error) => {
                last = error.to_string();
                None
            }
        });
        waited.with_context(|| format!("{last} {}", self.text().unwrap_or_default()))
    }

    /// The visible text of the page.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn text(&mut self) -> anyhow::Result<String> {
        let text = self.evaluate("document.body.innerText")?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Clicks with the mouse at the middle of the first element that the selector finds, once that is visible and not
    /// covered. If the page changed at that moment, so that another element was hit, it tries again. If the click
    /// loads another page, it waits until that is complete.
    ///
    /// # Errors
    /// There is no such element, or the other page is not loaded in time.
    pub fn click(&mut self, selector: &str) -> anyhow::Result<()> {
        let place = format!(
            "(() => {{ const it = document.querySelector({selector:?});
                if (!it || it.disabled) return null;
                it.scrollIntoView({{block: 'center', behavior: 'instant'}});
                const at = it.getBoundingClientRect();
                const [x, y] = [at.x + at.width / 2, at.y + at.height / 2];
                const hit = document.elementFromPoint(x, y);
                if (!it.contains(hit)) return null;
                window.wasClicked = false;
                it.addEventListener('click', () => {{ window.wasClicked = true; }}, {{once: true, capture: true}});
                return [x, y]; }})()"
        );
        let mut last_try = Ok(());
        let clicked = Deadline::default().poll(format!("a click at {selector}"), || {
            let (result, has_hit) = match self.click_at(&place) {
                Ok(has_hit) => (Ok(()), has_hit),
                Err(error) => (Err(error.to_string()), false),
            };
            last_try = result;
            has_hit.then_some(())
        });
        clicked.with_context(|| format!("{last_try:?} {}", self.text().unwrap_or_default()))?;
        self.arrive()
    }

    /// If the click loads another page, waits until that is complete.
    fn arrive(&mut self) -> anyhow::Result<()> {
        let mut seen = Ok(Value::Null);
        let arrived = Deadline::default().poll("the next page", || {
            let has_come = if self.is_leaving { HAS_COME } else { "true" };
            seen = self.evaluate(&format!("{has_come} && document.readyState == 'complete'"));
            matches!(seen, Ok(Value::Bool(true))).then_some(())
        });
        arrived.with_context(|| format!("{seen:?}"))
    }

    /// Clicks at the position that the expression gives; `false` if it gives none, or if the click hit another
    /// element.
    fn click_at(&mut self, expression: &str) -> anyhow::Result<bool> {
        let place = self.evaluate(expression)?;
        if place.is_null() {
            return Ok(false);
        }
        self.is_leaving = false;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", &event)?;
        }
        // At this moment the other page may already be there.
        let hit = Deadline::default().poll("an answer to a click", || {
            self.evaluate(&format!("{HAS_COME} || window.wasClicked"))
                .ok()
        })?;
        Ok(hit == true)
    }

    /// Presses a key such as `Enter` or `Tab`.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn press(&mut self, key: &str) -> anyhow::Result<()> {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            " " => 32,
            "ArrowUp" => 38,
            "ArrowDown" => 40,
            other => bail!("the key {other:?} is not known here"),
        };
        // A form is submitted only if Enter brings its character.
        let text = (key == "Enter").then_some("\r");
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown"
                && let Some(text) = text
            {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &event)?;
        }
        Ok(())
    }

    /// Replaces the content of the field that the selector finds.
    ///
    /// # Errors
    /// There is no such field.
    pub fn type_into(&mut self, selector: &str, text: &str) -> anyhow::Result<()> {
        self.click(selector)?;
        self.evaluate(&format!("document.querySelector({selector:?}).select()"))?;
        self.call("Input.insertText", &json!({"text": text}))?;
        Ok(())
    }

    /// Sets the size of the window in pixels, and `light` or `dark` as the colour scheme.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn look(&mut self, width: u32, height: u32, scheme: &str) -> anyhow::Result<()> {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", &size)?;
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}))?;
        Ok(())
    }

    /// A screenshot of the whole page, as PNG in base64.
    ///
    /// # Errors
    /// The browser does not answer.
    pub fn picture(&mut self) -> anyhow::Result<String> {
        let wanted = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.call("Page.captureScreenshot", &wanted)?;
        Ok(picture["data"].as_str().unwrap_or_default().to_owned())
    }

    /// Takes the exceptions, and the errors of the console, since the last call.
    pub fn complaints(&mut self) -> Vec<String> {
        self.complaints.drain(..).collect()
    }

    fn call(&mut self, method: &str, parameters: &Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let mut message = json!({"id": self.last_id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(message.to_string().as_bytes())?;
        self.input.write_all(&[0])?;
        self.input.flush()?;
        loop {
            let mut answer = self
                .messages
                .recv_timeout(Deadline::DEFAULT)
                .with_context(|| format!("no answer to {method}"))?;
            // Events come between answers.
            if answer["id"] != self.last_id {
                self.note(&answer);
                continue;
            }
            ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
            return Ok(answer["result"].take());
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Page.frameRequestedNavigation") => {
                self.is_leaving |= parameters["disposition"] == "currentTab";
            }
            // This event is about a place in the same page, or about a file to save.
            Some("Page.navigatedWithinDocument" | "Page.downloadWillBegin") => {
                self.is_leaving = false;
            }
            Some("Runtime.exceptionThrown") => {
                let details = &parameters["exceptionDetails"];
                self.complaints.push_back(details.to_string());
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                let entry = &parameters["entry"];
                self.complaints
                    .push_back(format!("{} {}", entry["text"], entry["url"]));
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser may have ended already. If it is asked to end, it also ends its child processes.
        self.session.clear();
        if self.call("Browser.close", &json!({})).is_err() {
            self.process.kill().ok();
        }
        self.process.wait().ok();
    }
}

/// An expression that is true if the page is not the one that was clicked.
const HAS_COME: &str = "window.wasClicked === undefined";

/// How many messages of the browser may wait to be read.
const MESSAGES_MAX: usize = 1024;
