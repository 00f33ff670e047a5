//! MySQL's words: how a data directory is made, how the server is started and stopped, and which settings a version knows.

use super::ServerSpec;
use super::guard::Guarded;
use super::secret::{self, Secret};
use outcrop_lab_sql::Address;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of an initialised server's only user.
const USER: &str = "root";
const PORT: u16 = 3306;
/// An orderly end.
pub(super) const STOP: Signal = Signal::TERM;

/// The program: archives have it in `bin`, packages in `sbin`, one of npm beside all else.
pub(super) fn program(basedir: &Path) -> PathBuf {
    const PLACES: [&str; 6] =
        ["bin/mysqld", "sbin/mysqld", "libexec/mysqld", "bin/mariadbd", "sbin/mariadbd", "mysqld"];
    let places = PLACES.map(|place| basedir.join(place));
    places.iter().find(|place| place.exists()).unwrap_or(&places[0]).clone()
}

/// Libraries that an archive brings along.
fn libraries(basedir: &Path) -> (String, String) {
    // In `libs` if the archive is one of MariaDB's, beside the program in a package of npm.
    let mut places = vec![basedir.join("lib"), basedir.join("libs")];
    if basedir.join("mysqld").exists() {
        places.push(basedir.to_path_buf());
    }
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    ("LD_LIBRARY_PATH".to_string(), places.join(":"))
}

/// Directory of messages and of the statements that make system tables: packages have one of their own.
fn share(basedir: &Path) -> PathBuf {
    let places = ["share/mysql", "share/mariadb"].map(|place| basedir.join(place));
    places
        .into_iter()
        .find(|place| place.join("errmsg-utf8.txt").exists() || place.join("english").is_dir())
        .unwrap_or_else(|| basedir.join("share"))
}

/// Statements that make system tables: MariaDB and MySQL before 5.7 make none by themselves.
///
/// # Errors
/// If their files are not there.
fn system_tables(basedir: &Path) -> Result<String, String> {
    let share = share(basedir);
    let mut text =
        "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\nSET @skip_auth_anonymous = 1;\n"
            .to_string();
    for part in ["system_tables", "performance_tables", "system_tables_data"] {
        let files = ["mariadb", "mysql"].map(|name| share.join(format!("{name}_{part}.sql")));
        match files.iter().find(|file| file.exists()) {
            Some(file) => {
                let sql =
                    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
                text.push_str(&sql);
                text.push('\n');
            }
            // MySQL 5.6 has this one within the first.
            None if part == "performance_tables" => {}
            None => {
                return Err(format!(
                    "{}: there is no mysql_{part}.sql to make its system tables",
                    share.display()
                ));
            }
        }
    }
    Ok(text)
}

/// The command that makes a data directory.
///
/// # Errors
/// If what its statements are read from is not there or cannot be written.
pub(super) fn initialise(
    spec: &ServerSpec,
    basedir: &Path,
    data: &Path,
    base: Guarded,
) -> Result<Vec<Guarded>, String> {
    let old = spec
        .version
        .as_deref()
        .is_some_and(|version| version.starts_with("5.5.") || version.starts_with("5.6."));
    if spec.name == "mariadb" || old {
        let file = data.with_file_name("bootstrap.sql");
        std::fs::write(&file, system_tables(basedir)?)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let arguments = vec![
            "--no-defaults".to_string(),
            "--bootstrap".to_string(),
            format!("--basedir={}", basedir.display()),
            format!("--datadir={}", data.display()),
            format!("--lc-messages-dir={}", share(basedir).display()),
        ];
        let environment = vec![libraries(basedir)];
        return Ok(vec![Guarded {
            program: program(basedir),
            arguments,
            environment,
            input: Some(file),
            ..base
        }]);
    }
    Ok(vec![Guarded {
        program: program(basedir),
        arguments: vec![
            "--no-defaults".to_string(),
            "--initialize-insecure".to_string(),
            format!("--basedir={}", basedir.display()),
            format!("--datadir={}", data.display()),
        ],
        environment: vec![libraries(basedir)],
        ..base
    }])
}

/// The command that starts the server on `data` with the settings of `config`; the user has `secret` before anybody
/// can connect.
///
/// # Errors
/// If the settings cannot be written.
pub(super) fn start(
    basedir: &Path,
    data: &Path,
    sockets: &Path,
    (port, secret): (Option<u16>, Option<&Secret>),
    config: &str,
    base: Guarded,
) -> Result<Guarded, String> {
    let file = sockets.join("lab.cnf");
    let text = if config.contains("[mysqld]") { config.to_string() } else { format!("[mysqld]\n{config}") };
    std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut arguments = vec![
        format!("--defaults-file={}", file.display()),
        format!("--basedir={}", basedir.display()),
        format!("--datadir={}", data.display()),
        format!("--socket={}", socket(sockets).display()),
        format!("--pid-file={}", sockets.join("mysqld.pid").display()),
        format!("--tmpdir={}", sockets.display()),
        format!("--lc-messages-dir={}", share(basedir).display()),
    ];
    match port {
        Some(port) => arguments.extend(["--bind-address=127.0.0.1".to_string(), format!("--port={port}")]),
        None => arguments.push("--skip-networking".to_string()),
    }
    if let Some(secret) = secret {
        let first = sockets.join("first.sql");
        let sql = format!("ALTER USER '{USER}'@'localhost' IDENTIFIED BY '{}';\n", secret.password);
        secret::write(&first, &sql)?;
        arguments.push(format!("--init-file={}", first.display()));
    }
    // MySQL 8 listens for its own second protocol unless told not to; older versions would not know the name.
    arguments.push("--loose-mysqlx=OFF".to_string());
    Ok(Guarded { program: program(basedir), arguments, environment: vec![libraries(basedir)], ..base })
}

fn socket(sockets: &Path) -> PathBuf {
    sockets.join("mysql.sock")
}

/// Where clients connect.
pub(super) fn address(sockets: &Path, port: Option<u16>, secret: Option<&Secret>) -> Address {
    Address {
        product: outcrop_lab_sql::Product::MySql,
        socket: port.is_none().then(|| socket(sockets)),
        host: "127.0.0.1".to_string(),
        port: port.unwrap_or(PORT),
        user: USER.to_string(),
        password: secret.map(|secret| secret.password.clone()),
        database: String::new(),
    }
}

/// Names of the settings that the server knows, as its help lists them.
///
/// # Errors
/// A sentence if it cannot be asked.
pub(super) fn known_settings(basedir: &Path) -> Result<Vec<String>, String> {
    help(basedir).map(|text| named(&text))
}

/// The help of the server, which lists its options and the values of its variables.
fn help(basedir: &Path) -> Result<String, String> {
    let program = program(basedir);
    let (name, value) = libraries(basedir);
    let output = Command::new(&program)
        .args(["--no-defaults", "--verbose", "--help", "--user=nobody"])
        .arg(format!("--basedir={}", basedir.display()))
        .arg(format!("--lc-messages-dir={}", share(basedir).display()))
        .env(name, value)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match named(&text).is_empty() {
        true => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("nothing").to_string();
            let advice =
                package_of_missing(&last).map(|package| format!("; on Debian: apt-get install {package}"));
            let advice = advice.unwrap_or_default();
            Err(format!("{} --verbose --help lists no settings: {last}{advice}", program.display()))
        }
        false => Ok(text),
    }
}

/// Debian's package of the system library that `said`, the loader's message, misses.
fn package_of_missing(said: &str) -> Option<&'static str> {
    let (_, rest) = said.split_once("error while loading shared libraries: ")?;
    match rest.split_once(':')?.0 {
        "libaio.so.1" => Some("libaio1"),
        "libnuma.so.1" => Some("libnuma1"),
        "libncurses.so.5" => Some("libncurses5"),
        "libtinfo.so.5" => Some("libtinfo5"),
        _ => None,
    }
}

/// Why the server cannot take the settings of `config`: a plugin that they load and that is not there.
///
/// # Errors
/// A sentence if the server cannot be asked where its plugins are.
pub(super) fn missing_plugin(basedir: &Path, config: &str) -> Result<Option<String>, String> {
    let libraries = plugins(config);
    if libraries.is_empty() {
        return Ok(None);
    }
    let own =
        super::config::settings(config).into_iter().rev().find(|(_, name, _)| is_named(name, "plugin_dir"));
    let dir = match own {
        Some((_, _, value)) => PathBuf::from(value),
        None => {
            let text = help(basedir)?;
            let value = variable(&text, "plugin-dir");
            PathBuf::from(
                value.ok_or_else(|| format!("{}: it does not say where plugins are", basedir.display()))?,
            )
        }
    };
    let missing = libraries.into_iter().find(|library| !dir.join(library).exists());
    Ok(missing.map(|library| {
        let package = match library.as_str() {
            "ha_rocksdb.so" => "; of Debian's MariaDB: apt-get install mariadb-plugin-rocksdb",
            _ => "",
        };
        format!("its plugin {library} is not in {}{package}", dir.display())
    }))
}

/// Whether a setting has this name, in any of its spellings.
fn is_named(setting: &str, name: &str) -> bool {
    let plain = setting.replace('-', "_");
    plain.strip_prefix("loose_").unwrap_or(&plain) == name
}

/// The files of the plugins that `config` loads: `plugin_load_add = a;name=b.so`.
fn plugins(config: &str) -> Vec<String> {
    let loads = |name: &str| is_named(name, "plugin_load_add") || is_named(name, "plugin_load");
    let settings = super::config::settings(config).into_iter().filter(|(_, name, _)| loads(name));
    let entries = settings.flat_map(|(_, _, value)| value.trim_matches('"').split(';'));
    let file = |entry: &str| {
        let library = entry.rsplit('=').next().unwrap_or_default().trim();
        if library.contains('.') { library.to_string() } else { format!("{library}.so") }
    };
    entries.filter(|entry| !entry.trim().is_empty()).map(file).collect()
}

/// The value of a variable in the help of a server.
fn variable(help: &str, name: &str) -> Option<String> {
    let mut lines = help.lines().skip_while(|line| !line.starts_with("---"));
    let line = lines.find(|line| line.split_whitespace().next() == Some(name))?;
    Some(line[name.len()..].trim().to_string()).filter(|value| !value.is_empty())
}

/// Names in the help of a server: of its options, `  -p, --port=#  ..` or `  --plugin-load-add=name`, and of the variables that it lists
/// below a line.
fn named(help: &str) -> Vec<String> {
    let plain = |name: &str| name.replace('-', "_");
    let variables = help.lines().skip_while(|line| !line.starts_with("---")).skip(1);
    let variables =
        variables.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let variables: Vec<String> = variables.map(plain).collect();
    if variables.is_empty() {
        return variables;
    }
    let option = |line: &str| {
        let words = line.strip_prefix("  ")?;
        let name = words.split_whitespace().take(2).find_map(|word| word.strip_prefix("--"))?;
        let end =
            name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(name.len());
        (end > 0).then(|| plain(&name[..end]))
    };
    let options = help.lines().take_while(|line| !line.starts_with("---")).filter_map(option);
    variables.iter().cloned().chain(options).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_its_package() {
        let said = "mysqld: error while loading shared libraries: libaio.so.1: cannot open shared object file: No such file";
        assert_eq!(package_of_missing(said), Some("libaio1"));
        assert_eq!(package_of_missing("mysqld: error while loading shared libraries: libx.so.1: gone"), None);
        assert_eq!(package_of_missing("mysqld: unknown option"), None);
    }

    #[test]
    fn names_are_those_of_options_and_of_listed_variables() {
        let help = "Usage: mysqld [OPTIONS]\n  -P, --port=#        Port number\n  --plugin-load-add=name \n                      \
                    more words --not-one\n\nVariables (--variable-name=value)\nand boolean\n\
                    ------------ ---\nback-log   80\nport  3306\n\nTo see\n";
        assert_eq!(named(help), ["back_log", "port", "port", "plugin_load_add"]);
        assert!(named("mysqld: cannot start\n").is_empty());
        assert_eq!(variable(help, "port").as_deref(), Some("3306"));
        assert_eq!((variable(help, "back"), variable(help, "-P,")), (None, None));
    }

    #[test]
    fn plugins_of_settings_are_looked_for_before_anything_is_started() {
        let config =
            "[mysqld]\n# plugin_load_add = no\nplugin_load_add = ha_rocksdb\nplugin-load=\"x=auth.so;b\"\n";
        assert_eq!(plugins(config), ["ha_rocksdb.so", "auth.so", "b.so"]);
        let temp = tempfile::tempdir().unwrap();
        let config = format!("plugin_load_add = ha_rocksdb\nloose-plugin-dir = {}\n", temp.path().display());
        let why = missing_plugin(Path::new("/none"), &config).unwrap().unwrap();
        assert!(why.contains("ha_rocksdb.so is not in") && why.contains("mariadb-plugin-rocksdb"), "{why}");
        std::fs::write(temp.path().join("ha_rocksdb.so"), "").unwrap();
        assert_eq!(missing_plugin(Path::new("/none"), &config), Ok(None));
        assert_eq!(missing_plugin(Path::new("/none"), "port = 1\n"), Ok(None), "and is not asked");
    }
}
