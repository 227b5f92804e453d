//! A separate broker for one test, which may configure, alarm and kill it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tickpath_bus_amqp::AmqpBus;
use tickpath_bus_api::conformance::free_port;
use tickpath_clock::sleep_ns;

/// Folder of RabbitMQ's own scripts on Debian, which do not change the user.
const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";

/// A running broker, which ends when dropped.
pub struct DedicatedBroker {
    folder: TempDir,
    port: u16,
    erlang: u16,
    epmd: u16,
    child: Option<Child>,
}

impl DedicatedBroker {
    /// Starts a broker with this configuration, besides its port, and with these plugins.
    pub fn start(configuration: &str, plugins: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let own = Self { folder, port: free_port(), erlang: free_port(), epmd: free_port(), child: None };
        let listener = format!("listeners.tcp.1 = 127.0.0.1:{}\n", own.port);
        fs::write(own.path("rabbitmq.conf"), listener + configuration).unwrap();
        fs::write(own.path("plugins"), format!("[{}].\n", plugins.join(","))).unwrap();
        let mut own = own;
        own.run();
        own
    }

    /// Returns the URL, with `rest` after the port.
    pub fn url(&self, rest: &str) -> String {
        format!("amqp://127.0.0.1:{}{rest}", self.port)
    }

    /// Returns `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the broker.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts the broker with the data on its disk.
    pub fn run(&mut self) {
        let log = fs::File::create(self.path("log")).unwrap();
        // The script becomes the Erlang machine, with which epmd ends.
        let script = "setpriv --pdeathsig KILL epmd & exec \"$0\"";
        let mut command = self.command("setpriv");
        command.args(["--pdeathsig", "KILL", "bash", "-c", script]).arg(Path::new(PROGRAMS).join("rabbitmq-server"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().expect("setpriv is there"));
        for _ in 0..2400 {
            if AmqpBus::connect(&self.url("")).is_ok() {
                return;
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().unwrap());
            assert!(ended.is_none(), "RabbitMQ ended: {}", fs::read_to_string(self.path("log")).unwrap());
            sleep_ns(50_000_000);
        }
        panic!("RabbitMQ does not answer: {}", fs::read_to_string(self.path("log")).unwrap());
    }

    /// Evaluates an Erlang expression in the broker.
    pub fn evaluate(&self, expression: &str) {
        self.control(&["eval", expression]);
    }

    /// Runs a rabbitmqctl command.
    pub fn control(&self, arguments: &[&str]) {
        let mut command = self.command(Path::new(PROGRAMS).join("rabbitmqctl"));
        let output = command.args(["-q", "-n", &self.node()]).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {text}");
    }

    /// Raises the memory alarm, which blocks publishers, or clears it.
    pub fn alarm(&self, is_on: bool) {
        self.evaluate(if is_on {
            "rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []})."
        } else {
            "rabbit_alarm:clear_alarm({resource_limit, memory, node()})."
        });
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn node(&self) -> String {
        format!("tickpath-own-{}@localhost", self.port)
    }

    /// Returns a command in the environment of this broker.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";
        let flags = "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}";
        command.env_clear().env("PATH", path).env("HOME", self.folder.path()).env("LANG", "C.UTF-8");
        command.env("RUNNING_UNDER_SYSTEMD", "1").env("ERL_AFLAGS", flags);
        command.env("ERL_EPMD_ADDRESS", "127.0.0.1").env("ERL_EPMD_PORT", self.epmd.to_string());
        command.env("RABBITMQ_DIST_PORT", self.erlang.to_string()).env("RABBITMQ_NODENAME", self.node());
        command.env("RABBITMQ_CONF_ENV_FILE", "/dev/null").env("RABBITMQ_LOGS", "-");
        for (name, file) in [
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
            ("RABBITMQ_FEATURE_FLAGS_FILE", "feature_flags"),
            ("RABBITMQ_MNESIA_BASE", "mnesia"),
            ("RABBITMQ_PID_FILE", "pid"),
            ("RABBITMQ_LOG_BASE", "logs"),
        ] {
            command.env(name, self.path(file));
        }
        command
    }
}

impl Drop for DedicatedBroker {
    fn drop(&mut self) {
        self.kill();
    }
}
