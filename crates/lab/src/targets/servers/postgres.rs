//! PostgreSQL's words: how a cluster is made, started and stopped, and which settings a version knows.

use super::guard::Guarded;
use super::secret::Secret;
use outcrop_lab_sql::Address;
use rustix::process::Signal;
use std::path::Path;
use std::process::{Command, Stdio};

/// The user that owns a cluster of the lab.
pub(super) const USER: &str = "outcrop";
/// A part of the socket's name.
const PORT: u16 = 5432;
/// Ends transactions and stops, as users do who want their server down.
pub(super) const STOP: Signal = Signal::INT;

/// The commands that make a cluster in `data`, whose user has `secret`, if there is one.
pub(super) fn initialise(
    basedir: &Path,
    data: &Path,
    secret: Option<&Secret>,
    base: Guarded,
) -> Vec<Guarded> {
    let mut arguments =
        ["-D", &text(data), "-U", USER, "-E", "UTF8", "--locale=C", "--no-sync"].map(str::to_string).to_vec();
    arguments.extend(match secret {
        Some(secret) => {
            vec!["-A".to_string(), "scram-sha-256".to_string(), format!("--pwfile={}", text(&secret.file))]
        }
        None => vec!["-A".to_string(), "trust".to_string()],
    });
    vec![Guarded { program: basedir.join("bin/initdb"), arguments, ..base }]
}

/// The command that starts the server on `data` with the settings of `config`.
///
/// # Errors
/// If the settings cannot be written.
pub(super) fn start(
    basedir: &Path,
    data: &Path,
    sockets: &Path,
    port: Option<u16>,
    config: &str,
    base: Guarded,
) -> Result<Guarded, String> {
    let file = data.join("postgresql.conf");
    std::fs::write(&file, config).map_err(|error| format!("{}: {error}", file.display()))?;
    let listen = if port.is_some() { "127.0.0.1" } else { "" };
    let arguments = [
        "-D".to_string(),
        text(data),
        "-k".to_string(),
        text(sockets),
        "-p".to_string(),
        port.unwrap_or(PORT).to_string(),
        "-c".to_string(),
        format!("listen_addresses={listen}"),
    ];
    Ok(Guarded { program: basedir.join("bin/postgres"), arguments: arguments.to_vec(), ..base })
}

/// Where clients connect.
pub(super) fn address(sockets: &Path, port: Option<u16>, secret: Option<&Secret>) -> Address {
    Address {
        product: outcrop_lab_sql::Product::Postgres,
        socket: port.is_none().then(|| sockets.to_path_buf()),
        host: "127.0.0.1".to_string(),
        port: port.unwrap_or(PORT),
        user: USER.to_string(),
        password: secret.map(|secret| secret.password.clone()),
        database: "postgres".to_string(),
    }
}

/// Names of the settings that the server knows, as it lists them itself.
///
/// # Errors
/// A sentence if it cannot be asked.
pub(super) fn known_settings(basedir: &Path) -> Result<Vec<String>, String> {
    let program = basedir.join("bin/postgres");
    let output = Command::new(&program)
        .arg("--describe-config")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> =
        listed.lines().filter_map(|line| line.split('\t').next()).map(str::to_ascii_lowercase).collect();
    match names.is_empty() {
        true => Err(format!(
            "{} --describe-config says nothing: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        false => Ok(names),
    }
}

/// Whether the server knows a setting that it does not list: those for its developers.
///
/// # Errors
/// A sentence if it cannot be asked.
pub(super) fn knows(basedir: &Path, name: &str) -> Result<bool, String> {
    let program = basedir.join("bin/postgres");
    // A directory that nobody else can have made.
    let asked = tempfile::tempdir().and_then(|scratch| {
        std::fs::write(scratch.path().join("postgresql.conf"), "")?;
        // In this order: only as the first argument is it allowed to root.
        Command::new(&program).args(["-C", name, "-D"]).arg(scratch.path()).stdin(Stdio::null()).output()
    });
    asked.map(|output| output.status.success()).map_err(|error| format!("{}: {error}", program.display()))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
