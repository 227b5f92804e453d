//! The official SBE tool: Maven fetches it, and it generates codecs from a schema.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs, io};

/// Timeout in seconds of a program; Maven may have to wait for a registry.
const MOST_SECONDS: &str = "120";
const MOST_FETCH_SECONDS: &str = "300";

/// File in the tool's jar: the standard's XSD of a schema.
const XSD: &str = "fpl/sbe.xsd";

/// Options for Java programs that run for a second: light compilation and little memory.
const JAVA: [&str; 3] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"];

/// Folder of the tool with its dependencies and the XSD.
pub struct Tool {
    home: PathBuf,
}

impl Tool {
    /// Returns the tool, if the tool and these programs are available. Otherwise reports the skipped test, which is a
    /// failure in CI.
    pub fn have(what: &str, programs: &[&str]) -> Option<&'static Self> {
        static TOOL: OnceLock<Result<Tool, String>> = OnceLock::new();
        let missing = ["java", "jar", "mvn"].iter().chain(programs).copied().find(|program| !is_here(program));
        let why = match missing {
            Some(program) => format!("no {program} here"),
            None => match TOOL.get_or_init(Self::fetched) {
                Ok(tool) => return Some(tool),
                Err(why) => why.clone(),
            },
        };
        let sentence = format!("left out: {what} by the official SBE tool ({why})");
        assert!(env::var_os("CI").is_none(), "{sentence}");
        eprintln!("{sentence}");
        None
    }

    /// Fetches the tool once, and again after a change of the list of libraries.
    fn fetched() -> Result<Self, String> {
        let pom = schema().with_file_name("pom.xml");
        let wanted = fs::read(&pom).map_err(error_text)?;
        let made_by_tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let home = made_by_tests.join("sbe-tool");
        if fs::read(home.join("pom.xml")).is_ok_and(|kept| kept == wanted) {
            return Ok(Self { home });
        }
        fs::create_dir_all(made_by_tests).map_err(error_text)?;
        let folder = tempfile::tempdir_in(made_by_tests).map_err(error_text)?;
        let mut fetch = ended_after(MOST_FETCH_SECONDS, "mvn");
        fetch.args(["-B", "-q", "-Dstyle.color=never", "-f"]).arg(&pom).arg("dependency:copy-dependencies");
        fetch.arg(format!("-DoutputDirectory={}", folder.path().display()));
        run(&mut fetch).map_err(|output| format!("Maven: {}", first_error(&output)))?;
        let files = fs::read_dir(folder.path()).map_err(error_text)?;
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let jar = names.find(|name| name.starts_with("sbe-tool-")).ok_or("Maven fetched something else")?;
        run(bounded("jar").args(["--extract", "--file", jar.as_str(), XSD]).current_dir(folder.path()))?;
        fs::write(folder.path().join("pom.xml"), &wanted).map_err(error_text)?;
        // The last of two concurrent fetches wins.
        let _ = fs::remove_dir_all(&home);
        fs::rename(folder.path(), &home).map_err(error_text)?;
        Ok(Self { home })
    }

    /// Generates codecs in a language, `Java` or `Cpp`. Any output of the tool is a fault of the schema: for faults
    /// against the XSD it prints a message and continues.
    pub fn generate(&self, language: &str, schema: &Path, folder: &Path) -> Result<(), String> {
        let mut tool = java();
        tool.arg("-Dsbe.validation.stop.on.error=true").arg("-Dsbe.validation.warnings.fatal=true");
        tool.arg(format!("-Dsbe.validation.xsd={}", self.home.join(XSD).display()));
        tool.arg(format!("-Dsbe.target.language={language}"));
        tool.arg(format!("-Dsbe.output.dir={}", folder.display()));
        tool.arg("-cp").arg(self.class_path()).arg("uk.co.real_logic.sbe.SbeTool").arg(schema);
        let all = run(&mut tool)?.concat();
        if all.is_empty() { Ok(()) } else { Err(all) }
    }

    /// Returns the class path of the tool and of generated code.
    pub fn class_path(&self) -> String {
        self.home.join("*").display().to_string()
    }
}

/// Returns the schema of the messages.
pub fn schema() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/tickpath.xml")
}

/// Returns a Java command with a timeout.
pub fn java() -> Command {
    let mut command = bounded("java");
    // Java would report that it has read this variable.
    command.args(JAVA).env_remove("JAVA_TOOL_OPTIONS");
    command
}

/// Returns a command with a timeout.
pub fn bounded(program: impl AsRef<OsStr>) -> Command {
    ended_after(MOST_SECONDS, program)
}

/// Returns a command's output; the command must succeed.
pub fn output(command: &mut Command) -> String {
    let [output, _] = run(command).unwrap_or_else(|all| panic!("{command:?}: {all}"));
    output
}

fn ended_after(seconds: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after", "10", seconds]).arg(program).stdin(Stdio::null());
    command
}

/// Returns a command's two outputs; on failure, both with the exit status.
fn run(command: &mut Command) -> Result<[String; 2], String> {
    let ended = command.output().map_err(error_text)?;
    let output = [ended.stdout, ended.stderr].map(|output| String::from_utf8_lossy(&output).into_owned());
    if ended.status.success() { Ok(output) } else { Err(format!("{}{}", output.concat(), ended.status)) }
}

/// Returns the first error in Maven's output.
fn first_error(output: &str) -> &str {
    let rest = output.split_once("[ERROR] ").map_or(output, |(_, rest)| rest);
    rest.trim().lines().next().unwrap_or_default()
}

fn error_text(error: io::Error) -> String {
    error.to_string()
}

fn is_here(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
