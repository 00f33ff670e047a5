//! A server of a session: its directory, its start, its stop.
//!
//! ```text
//! session-N/data      what the server stores            session-N/socket    where it listens
//! session-N/server.log    what it prints; the last lines are shown if it does not come up
//! session-N/password      of one that listens on a port
//! ```
//! Invariants: a data directory is initialised once, and taken as it is if it is there (a copy of a loaded one).
//! Dropping a [`Server`] closes the guard's pipe: nothing of the server is left.

use super::catalogue::closed_to_others;
use super::guard::{Guarded, NOBODY, NOTED};
use super::patience::Patience;
use super::secret::Secret;
use super::{PASSWORD, ServerLocation, ServerSpec, group, leftovers, mysql, postgres, tree};
use crate::run::data_dir;
use outcrop_lab_load::process::ProcessUsage;
use outcrop_lab_sql::{Address, Connection, Product, upkeep};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

/// Called now and then while a server that somebody waits for makes progress.
///
/// # Errors
/// A sentence if nobody waits any more.
pub type Alive<'a> = &'a mut dyn FnMut() -> Result<(), String>;

/// Between two looks at who is waited for, and between two attempts to connect.
const LOOK: Duration = Duration::from_millis(100);
const AGAIN: Duration = Duration::from_millis(20);
/// Lines of a log that messages show.
const SHOWN: usize = 12;
/// Bytes of a socket's path that the kernel takes, and the longest name that a server appends to its directory.
const SOCKET_PATH: usize = 107;
const SOCKET_NAME: usize = 20;

/// A server that runs, or one that is only spoken to.
pub struct Server {
    spec: ServerSpec,
    /// The lab's database on it.
    address: Address,
    guarded: Option<GuardedProcess>,
}

struct GuardedProcess {
    guard: Child,
    /// Closed to have everything killed.
    pipe: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Number of the server's own process.
    server: u32,
    log: PathBuf,
}

impl Server {
    /// Starts the server of `spec` in `dir`, which is the session's own, or finds one that runs; the lab's database is there
    /// afterwards. However long it takes: `alive` is called about once a second while the server makes progress.
    ///
    /// # Errors
    /// A sentence; with the last lines of the server's log if it did not come up.
    pub fn start(spec: &ServerSpec, dir: &Path, alive: Alive<'_>) -> Result<Server, String> {
        let (guarded, admin) = match &spec.place {
            ServerLocation::Remote(address) => {
                let password = std::env::var(PASSWORD).ok();
                (None, Address { password, ..address.clone() })
            }
            ServerLocation::Own { basedir, config, port } => {
                let (process, address) = start_own(spec, dir, basedir, config, *port, alive)?;
                (Some(process), address)
            }
        };
        let address = upkeep::own_database(&admin)?;
        let server = Server { spec: spec.clone(), address, guarded };
        server.check_version()?;
        Ok(server)
    }

    /// The lab's database.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops all its processes, where they are the lab's.
    ///
    /// # Errors
    /// A sentence if one will not.
    pub fn pause(&self) -> Result<(), String> {
        self.guarded.as_ref().map_or(Ok(()), |guarded| tree::pause(guarded.guard.id()))
    }

    /// Lets them go on.
    ///
    /// # Errors
    /// A sentence if one will not.
    pub fn go_on(&self) -> Result<(), String> {
        self.guarded.as_ref().map_or(Ok(()), |guarded| tree::go_on(guarded.guard.id()))
    }

    /// Number of the process whose descendants are all of its processes, where they are the lab's.
    pub fn guard(&self) -> Option<u32> {
        self.guarded.as_ref().map(|guarded| guarded.guard.id())
    }

    /// The usage of all its processes, where they are the lab's.
    pub fn usage(&self) -> Option<ProcessUsage> {
        let guard = self.guard()?;
        let mut usage = tree::usage(guard);
        if let Some([user_seconds, system_seconds]) = group::processor_seconds(guard) {
            usage = ProcessUsage { user_seconds, system_seconds, ..usage };
        }
        Some(usage)
    }

    /// Bytes of the lab's database, which is `known` if the server said it itself, and of all its files; `None` of a server that is
    /// somebody else's.
    pub fn database_bytes(&self, known: Option<u64>) -> Option<[u64; 2]> {
        let data = self.guarded.as_ref()?.log.with_file_name("data");
        let database = known.unwrap_or_else(|| {
            // MyRocks has one directory for all databases, of which the lab's is the only one with rows.
            let places = [upkeep::DATABASE, ".rocksdb", "#rocksdb"].map(|name| data.join(name));
            places.iter().map(|place| data_dir::bytes_below(place)).sum()
        });
        Some([database, data_dir::bytes_below(&data)])
    }

    /// The version text of the server, and all its settings as `name=value` lines.
    ///
    /// # Errors
    /// The server's words.
    pub fn facts(&self) -> Result<(String, String), String> {
        let mut connection = Connection::open(&self.address)?;
        let version = version_of(&mut connection)?;
        let settings = match self.spec.product {
            Product::Postgres => "SELECT name, setting FROM pg_settings ORDER BY name",
            Product::MySql => "SHOW GLOBAL VARIABLES",
        };
        let line = |row: Vec<Option<String>>| {
            let [name, value] = [row.first(), row.get(1)].map(|cell| cell.cloned().flatten());
            format!("{}={}\n", name.unwrap_or_default(), value.unwrap_or_default())
        };
        Ok((version, connection.rows(settings)?.into_iter().map(line).collect()))
    }

    fn check_version(&self) -> Result<(), String> {
        let Some(wanted) = &self.spec.version else { return Ok(()) };
        let version = version_of(&mut Connection::open(&self.address)?)?;
        // Artefacts may count a third number that servers do not have.
        let says =
            |version: &str, wanted: &str| version == wanted || version.starts_with(&format!("{wanted}."));
        if says(&version, wanted) || says(wanted, &version) || version.starts_with(&format!("{wanted}-")) {
            return Ok(());
        }
        Err(format!("{} is asked for and says that it is {version}: {}", wanted, self.spec.name))
    }

    /// Stops it in its own orderly way, so that its files can be copied. However long it takes: `alive` is called about once a
    /// second while the server makes progress.
    ///
    /// # Errors
    /// A sentence if it does not stop; it is killed then.
    pub fn stop(mut self, alive: Alive<'_>) -> Result<(), String> {
        let Some(guarded) = self.guarded.take() else { return Ok(()) };
        tree::go_on(guarded.guard.id())?;
        let signal = match self.spec.product {
            Product::Postgres => postgres::STOP,
            Product::MySql => mysql::STOP,
        };
        if let Some(pid) = rustix::process::Pid::from_raw(guarded.server as i32) {
            // It may have ended by itself: its last messages say how.
            let _ = rustix::process::kill_process(pid, signal);
        }
        match guarded.wait_for_line(alive) {
            Ok(line) if line.starts_with("ended exit status: 0") => Ok(()),
            Ok(line) => Err(format!("{} {line} when it was stopped{}", self.spec.name, guarded.last_words())),
            Err(why) => Err(format!("{} did not stop: {why}", self.spec.name)),
        }
    }

    /// Why it is gone, if it is.
    pub fn ended(&self) -> Option<String> {
        let guarded = self.guarded.as_ref()?;
        match guarded.lines.try_recv() {
            Err(TryRecvError::Empty) => None,
            Ok(line) => Some(format!("the server {line}{}", guarded.last_words())),
            Err(TryRecvError::Disconnected) => Some(format!("the server is gone{}", guarded.last_words())),
        }
    }
}

fn version_of(connection: &mut Connection) -> Result<String, String> {
    let sql = match connection.product() {
        Product::Postgres => "SHOW server_version",
        Product::MySql => "SELECT version()",
    };
    let said = connection.value(sql)?.unwrap_or_default();
    // Packages append their own: 15.18 (Debian 15.18-0+deb12u1).
    Ok(said.split(' ').next().unwrap_or_default().to_string())
}

impl GuardedProcess {
    /// Has the guard note the memory of the server, which is up.
    fn note_memory(&mut self, alive: Alive<'_>) -> Result<(), String> {
        // A guard that is gone does not answer.
        let _ = self.pipe.as_mut().map(|pipe| pipe.write_all(b"."));
        match self.wait_for_line(alive)? {
            line if line == NOTED => Ok(()),
            line => Err(format!("it {line}{}", self.last_words())),
        }
    }

    /// The guard's next line. An error once its directory has no space left: some servers wait for it without end.
    fn wait_for_line(&self, alive: Alive<'_>) -> Result<String, String> {
        let mut patience = self.patience();
        loop {
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Ok("is gone".to_string()),
                Err(RecvTimeoutError::Timeout) => self.still_waits(&mut patience, alive)?,
            }
        }
    }

    fn patience(&self) -> Patience {
        Patience::new(self.guard.id(), self.log.parent().unwrap_or(&self.log))
    }

    /// Whether there is a reason to wait on.
    fn still_waits(&self, patience: &mut Patience, alive: Alive<'_>) -> Result<(), String> {
        check_space(&self.log)?;
        match patience.look() {
            Ok(true) => alive(),
            Ok(false) => Ok(()),
            Err(why) => Err(format!("{why} ({}){}", tree::described(self.guard.id()), self.last_words())),
        }
    }

    /// The end of the server's log, as messages have it.
    fn last_words(&self) -> String {
        last_words(&self.log)
    }
}

impl Drop for GuardedProcess {
    fn drop(&mut self) {
        drop(self.pipe.take());
        let _ = self.guard.wait();
    }
}

/// Whether servers in `dir` can go on.
///
/// # Errors
/// A sentence if next to nothing is free. Some servers then wait without end, so nobody must wait for them.
pub fn check_space(dir: &Path) -> Result<(), String> {
    /// Bytes that are as good as none.
    const NONE: u64 = 16 << 20;
    match data_dir::free(dir) {
        Ok(free) if free < NONE => {
            Err(format!("no space left: {} has {} KB free", dir.display(), free >> 10))
        }
        // A system that does not say so is no full disk.
        _ => Ok(()),
    }
}

fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let text = text.unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    if last.is_empty() { String::new() } else { format!("; the end of its log:\n  {}", last.join("\n  ")) }
}

fn start_own(
    spec: &ServerSpec,
    dir: &Path,
    basedir: &Path,
    config: &str,
    port: Option<u16>,
    alive: Alive<'_>,
) -> Result<(GuardedProcess, Address), String> {
    let dir = std::path::absolute(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let (data, sockets, log) = (dir.join("data"), dir.join("socket"), dir.join("server.log"));
    if sockets.as_os_str().len() + SOCKET_NAME > SOCKET_PATH {
        return Err(format!(
            "{}: the path is too long for a socket of a server; name a shorter one with --data",
            sockets.display()
        ));
    }
    let user = rustix::process::geteuid().is_root().then_some(NOBODY);
    if user.is_some()
        && let Some(closed) = closed_to_others(&dir)
    {
        return Err(format!(
            "no server runs as root, and {} is closed to other users: name another place with --data",
            closed.display()
        ));
    }
    // Another owner of the port may accept connections and never answer: the port is tested before anybody
    // waits for that.
    if let Some(port) = port
        && let Err(error) = TcpListener::bind(("127.0.0.1", port))
    {
        return Err(format!(
            "port {port} of 127.0.0.1 cannot be had ({error}): name another, or leave port out and it listens on a socket"
        ));
    }
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for path in [&data, &sockets] {
        std::fs::create_dir_all(path).map_err(|error| failed(path, error))?;
        // Its user needs no password on the socket, and nobody else gets there.
        let closed = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(path, closed).map_err(|error| failed(path, error))?;
    }
    let secret = port.map(|_| Secret::of(&dir)).transpose()?;
    let secret = secret.as_ref();
    give(&dir, user)?;
    let base = Guarded {
        program: PathBuf::new(),
        arguments: Vec::new(),
        environment: Vec::new(),
        directory: data.clone(),
        log: log.clone(),
        input: None,
        user,
    };
    if spec.product == Product::Postgres {
        let bytes = leftovers::sweep();
        if bytes > 0 {
            eprintln!("removed {} KB of shared memory that killed servers of the lab had left", bytes >> 10);
        }
    }
    let is_empty = std::fs::read_dir(&data).map_err(|error| failed(&data, error))?.next().is_none();
    if is_empty {
        initialise(spec, basedir, &data, secret, &base, alive)?;
    }
    let (guarded, address) = match spec.product {
        Product::Postgres => (
            postgres::start(basedir, &data, &sockets, port, config, base)?,
            postgres::address(&sockets, port, secret),
        ),
        Product::MySql => (
            mysql::start(basedir, &data, &sockets, (port, secret), config, base)?,
            mysql::address(&sockets, port, secret),
        ),
    };
    give(&dir, user)?;
    let process = spawn(&guarded)?;
    let mut process = wait_until_ready(spec, process, &address, alive)?;
    process.note_memory(alive).map_err(|why| format!("{} did not stay up: {why}", spec.name))?;
    Ok((process, address))
}

/// Runs what makes a data directory, one after the other.
fn initialise(
    spec: &ServerSpec,
    basedir: &Path,
    data: &Path,
    secret: Option<&Secret>,
    base: &Guarded,
    alive: Alive<'_>,
) -> Result<(), String> {
    let each = match spec.product {
        Product::Postgres => postgres::initialise(basedir, data, secret, base.clone()),
        Product::MySql => mysql::initialise(spec, basedir, data, base.clone())?,
    };
    for program in each {
        // Guarded, too: it may wait for ever for space, and must end with the session.
        let process = spawn(&program)?;
        let ended = process
            .wait_for_line(alive)
            .map_err(|why| format!("{} could not be initialised: {why}", spec.name))?;
        if !ended.starts_with("ended exit status: 0") {
            return Err(format!(
                "{} could not be initialised: it {ended}{}",
                spec.name,
                process.last_words()
            ));
        }
    }
    Ok(())
}

/// Makes everything in `dir` the property of `user`, if it is not this program's own.
fn give(dir: &Path, user: Option<(u32, u32)>) -> Result<(), String> {
    let Some((user, group)) = user else { return Ok(()) };
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::os::unix::fs::lchown(dir, Some(user), Some(group)).map_err(|error| failed(dir, error))?;
    for entry in std::fs::read_dir(dir).map_err(|error| failed(dir, error))? {
        let path = entry.map_err(|error| failed(dir, error))?.path();
        if path.is_dir() && !path.is_symlink() {
            give(&path, Some((user, group)))?;
        } else {
            std::os::unix::fs::lchown(&path, Some(user), Some(group))
                .map_err(|error| failed(&path, error))?;
        }
    }
    Ok(())
}

fn spawn(guarded: &Guarded) -> Result<GuardedProcess, String> {
    let mut guard =
        guarded.guard()?.spawn().map_err(|error| format!("cannot start a guard of servers: {error}"))?;
    let pipe = guard.stdin.take();
    let out = guard.stdout.take().expect("its output is piped");
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let mut process = GuardedProcess { guard, pipe, lines, server: 0, log: guarded.log.clone() };
    // It says so, or it ends.
    let first = process.lines.recv().unwrap_or_default();
    match first.strip_prefix("pid ").and_then(|id| id.parse().ok()) {
        Some(id) => process.server = id,
        None => return Err(format!("{} could not be started", guarded.program.display())),
    }
    Ok(process)
}

/// Waits until somebody can connect.
fn wait_until_ready(
    spec: &ServerSpec,
    process: GuardedProcess,
    address: &Address,
    alive: Alive<'_>,
) -> Result<GuardedProcess, String> {
    let mut patience = process.patience();
    let mut attempt = connect(address);
    let mut refused = "nobody has answered".to_string();
    loop {
        match attempt.recv_timeout(LOOK) {
            Ok(Ok(_)) => return Ok(process),
            Ok(Err(why)) => {
                refused = why;
                std::thread::sleep(AGAIN);
                attempt = connect(address);
            }
            Err(_) => {}
        }
        let failed = match process.lines.try_recv() {
            Ok(line) => format!("it {line}{}", process.last_words()),
            Err(TryRecvError::Disconnected) => format!("its guard is gone{}", process.last_words()),
            Err(TryRecvError::Empty) => match process.still_waits(&mut patience, alive) {
                Ok(()) => continue,
                Err(why) => format!("{why}; {refused}"),
            },
        };
        return Err(format!("{} did not come up: {failed}", spec.name));
    }
}

/// Connects from a thread of its own: a server may take a connection and never answer.
fn connect(address: &Address) -> Receiver<Result<Connection, String>> {
    let (sender, attempt) = channel();
    let address = address.clone();
    std::thread::spawn(move || sender.send(Connection::open(&address)));
    attempt
}
