//! The official tool: Maven fetches it, and it makes codecs of a schema.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs, io};

/// Seconds after which a program that hangs is ended; Maven may have to wait for a registry.
const MOST_SECONDS: &str = "120";
const MOST_FETCH_SECONDS: &str = "300";

/// In the jar of the tool: what the standard says a schema may look like.
const XSD: &str = "fpl/sbe.xsd";

/// Java programs that are over in a second: compiled but lightly, and content with little memory.
const JAVA: [&str; 3] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"];

/// The folder with the tool and all that it needs, and the XSD beside them.
pub struct Tool {
    home: PathBuf,
}

impl Tool {
    /// The tool, where it and these programs are to be had. Else it is said what is left out; in CI that is a failure.
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

    /// Once; and again when the list of libraries has changed.
    fn fetched() -> Result<Self, String> {
        let pom = schema().with_file_name("pom.xml");
        let wanted = fs::read(&pom).map_err(told)?;
        let made_by_tests = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let home = made_by_tests.join("sbe-tool");
        if fs::read(home.join("pom.xml")).is_ok_and(|kept| kept == wanted) {
            return Ok(Self { home });
        }
        fs::create_dir_all(made_by_tests).map_err(told)?;
        let folder = tempfile::tempdir_in(made_by_tests).map_err(told)?;
        let mut fetch = ended_after(MOST_FETCH_SECONDS, "mvn");
        fetch.args(["-B", "-q", "-Dstyle.color=never", "-f"]).arg(&pom).arg("dependency:copy-dependencies");
        fetch.arg(format!("-DoutputDirectory={}", folder.path().display()));
        heard(&mut fetch).map_err(|said| format!("Maven: {}", first_error(&said)))?;
        let files = fs::read_dir(folder.path()).map_err(told)?;
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let jar = names.find(|name| name.starts_with("sbe-tool-")).ok_or("Maven fetched something else")?;
        heard(bounded("jar").args(["--extract", "--file", jar.as_str(), XSD]).current_dir(folder.path()))?;
        fs::write(folder.path().join("pom.xml"), &wanted).map_err(told)?;
        // Of two that fetch at once, the last one wins.
        let _ = fs::remove_dir_all(&home);
        fs::rename(folder.path(), &home).map_err(told)?;
        Ok(Self { home })
    }

    /// Makes codecs in a language, `Java` or `Cpp`. What the tool says is a fault of the schema: of what the XSD refuses it
    /// tells, and goes on.
    pub fn generate(&self, language: &str, schema: &Path, folder: &Path) -> Result<(), String> {
        let mut tool = java();
        tool.arg("-Dsbe.validation.stop.on.error=true").arg("-Dsbe.validation.warnings.fatal=true");
        tool.arg(format!("-Dsbe.validation.xsd={}", self.home.join(XSD).display()));
        tool.arg(format!("-Dsbe.target.language={language}"));
        tool.arg(format!("-Dsbe.output.dir={}", folder.display()));
        tool.arg("-cp").arg(self.class_path()).arg("uk.co.real_logic.sbe.SbeTool").arg(schema);
        let all = heard(&mut tool)?.concat();
        if all.is_empty() { Ok(()) } else { Err(all) }
    }

    /// Where Java finds the tool, and what generated code needs.
    pub fn class_path(&self) -> String {
        self.home.join("*").display().to_string()
    }
}

/// The schema of the messages.
pub fn schema() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/tickpath.xml")
}

/// Java, that is ended if it hangs.
pub fn java() -> Command {
    let mut command = bounded("java");
    // Java would say that it has picked them up.
    command.args(JAVA).env_remove("JAVA_TOOL_OPTIONS");
    command
}

/// A program that is ended if it hangs.
pub fn bounded(program: impl AsRef<OsStr>) -> Command {
    ended_after(MOST_SECONDS, program)
}

/// What a command has to say, which must end well.
pub fn said(command: &mut Command) -> String {
    let [said, _] = heard(command).unwrap_or_else(|all| panic!("{command:?}: {all}"));
    said
}

fn ended_after(seconds: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after", "10", seconds]).arg(program).stdin(Stdio::null());
    command
}

/// What it says on its two outputs; where it ends badly, all that and how.
fn heard(command: &mut Command) -> Result<[String; 2], String> {
    let ended = command.output().map_err(told)?;
    let said = [ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    if ended.status.success() { Ok(said) } else { Err(format!("{}{}", said.concat(), ended.status)) }
}

/// The sentence that matters of all that Maven says.
fn first_error(said: &str) -> &str {
    let rest = said.split_once("[ERROR] ").map_or(said, |(_, rest)| rest);
    rest.trim().lines().next().unwrap_or_default()
}

fn told(error: io::Error) -> String {
    error.to_string()
}

fn is_here(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
