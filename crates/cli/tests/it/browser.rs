//! A headless Chromium, driven by its own protocol through a pipe: no driver program and no port.
//!
//! ```text
//! test -> JSON \0 -> file descriptor 3 of the browser
//! test <- JSON \0 <- file descriptor 4
//! ```
//! The browser is `$OUTCROP_BROWSER`, or the first of the usual names on the path.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any page takes, on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    /// Messages that answer nothing and were not looked at yet.
    events: Vec<Value>,
    last_id: u64,
    session: String,
    _profile: tempfile::TempDir,
}

/// The look of a page to its reader.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// CSS pixels.
    pub width: u32,
    pub phone: bool,
    pub dark: bool,
    pub scripts: bool,
}

/// Programs that will do, one a line.
const NAMES: &str = include_str!("browsers.txt");

/// The browser's program, or why there is none.
pub fn program() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os("OUTCROP_BROWSER") {
        let named = PathBuf::from(named);
        return if named.exists() { Ok(named) } else { Err(format!("there is no {}", named.display())) };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|dir| NAMES.lines().map(move |name| dir.join(name)))
        .find(|program| program.is_file());
    found.ok_or_else(|| "no Chromium is installed (on Debian: apt-get install chromium)".to_string())
}

impl Browser {
    /// Starts `program` with a profile of its own.
    pub fn start(program: &Path) -> Result<Browser, String> {
        let profile = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut child = Command::new("sh")
            // The shell moves the pipes to the descriptors that the browser speaks on.
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run"])
            // Only files of this test are opened, and the sandbox refuses to run as root, as CI does.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, from) = channel();
        // Ends with the browser.
        std::thread::spawn(move || {
            let mut out = BufReader::new(out);
            loop {
                let mut message = Vec::new();
                match out.read_until(0, &mut message) {
                    Ok(got) if got > 0 => {}
                    _ => break,
                }
                message.pop();
                if let Ok(message) = serde_json::from_slice(&message)
                    && sender.send(message).is_err()
                {
                    break;
                }
            }
        });
        let session = String::new();
        let mut browser =
            Browser { child, to, from, events: Vec::new(), last_id: 0, session, _profile: profile };
        let page = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", attach)?;
        browser.session = attached["sessionId"].as_str().unwrap_or_default().to_string();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.ask(domain, json!({}))?;
        }
        Ok(browser)
    }

    /// Sends a command; gives its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.last_id += 1;
        let mut message = json!({ "id": self.last_id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to
            .write_all(&bytes)
            .and_then(|()| self.to.flush())
            .map_err(|error| format!("{method}: {error}"))?;
        loop {
            let answer = self.next(method)?;
            if answer["id"] != self.last_id {
                self.events.push(answer);
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(format!("{method}: {error}")),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    fn next(&mut self, waiting_for: &str) -> Result<Value, String> {
        self.from
            .recv_timeout(PATIENCE)
            .map_err(|error| format!("the browser said nothing to {waiting_for}: {error}"))
    }

    /// Opens a file as a reader with `view` sees it; gives what went wrong, and every address it asked for.
    pub fn open(&mut self, file: &Path, view: View) -> Result<Opened, String> {
        self.events.clear();
        let height = if view.phone { 844 } else { 900 };
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": view.width, "height": height, "deviceScaleFactor": 1, "mobile": view.phone }),
        )?;
        let scheme = if view.dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "features": features }))?;
        self.ask("Emulation.setScriptExecutionDisabled", json!({ "value": !view.scripts }))?;
        let url = format!("file://{}", file.display());
        let gone = self.ask("Page.navigate", json!({ "url": url }))?;
        if let Some(error) = gone["errorText"].as_str() {
            return Err(format!("{url}: {error}"));
        }
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.next("Page.navigate")?;
            self.events.push(event);
        }
        let mut opened = Opened::default();
        for event in self.events.drain(..) {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => opened.errors.push(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" => {
                    opened.errors.push(params["args"].to_string())
                }
                "Log.entryAdded" => opened.errors.push(params["entry"]["text"].to_string()),
                "Network.requestWillBeSent" => {
                    opened.requests.extend(params["request"]["url"].as_str().map(str::to_string));
                }
                _ => {}
            }
        }
        Ok(opened)
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Result<Value, String> {
        let answer =
            self.ask("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }))?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{details}")),
            None => Ok(answer["result"]["value"].clone()),
        }
    }
}

/// The result of opening a page.
#[derive(Debug, Default)]
pub struct Opened {
    /// Errors of the page, its scripts and its resources.
    pub errors: Vec<String>,
    /// Addresses asked for.
    pub requests: Vec<String>,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends its helpers itself if asked; killed, it leaves them to notice.
        let asked = self.ask("Browser.close", json!({}));
        if asked.is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
