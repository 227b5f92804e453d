//! A headless browser, driven through the pipe of its protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::logs::until;

/// Time limit of an answer.
const ANSWER: Duration = Duration::from_secs(120);
/// Shell script that starts the browser by its name on different systems.
const BROWSERS: &str = "for browser in chromium chromium-browser google-chrome; do \
     command -v $browser >/dev/null && exec $browser \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null; done; exit 127";

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    last: u64,
}

impl Browser {
    /// Starts a browser that keeps its files in this folder, and opens a page.
    pub fn open(folder: &Path, url: &str) -> Self {
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let mut command = Command::new("sh");
        command.args(["-c", BROWSERS, "sh", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe", &profile]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("there is a shell");
        let (to, out) = (child.stdin.take().expect("it is a pipe"), child.stdout.take().expect("it is a pipe"));
        let (tell, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let _ = serde_json::from_slice(&message).map(|message| tell.send(message));
            }
        });
        let mut browser = Self { child, to, from, session: String::new(), last: 0 };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        attached["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        browser.call("Page.navigate", &json!({ "url": url }));
        browser
    }

    /// Calls a method of the browser's protocol.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to
            .write_all(format!("{message}\0").as_bytes())
            .expect("the browser runs; if there is none, install it with: apt-get install chromium");
        loop {
            let message = self.from.recv_timeout(ANSWER);
            let message = message.expect("no answer of a browser; install one with: apt-get install chromium");
            if message["id"] == json!(self.last) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    /// Returns the value of an expression in the page's JavaScript.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn await_truth(&mut self, expression: &str) {
        let mut text = String::new();
        until(
            || {
                // While a page is being left, it has no body.
                let output = self.evaluate(&format!("[Boolean({expression}), document.body?.innerText ?? '']"));
                text = output[1].to_string();
                output[0] == json!(true)
            },
            || format!("{expression}; the page shows one that it is not"),
        );
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
