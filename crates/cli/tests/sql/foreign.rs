//! A server of somebody else: started by the tests themselves, with a password where the product makes one at once.

use super::{FAR, Lab, experiment};
use outcrop_lab_sql::{Address, Connection, Product};
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The password of PostgreSQL's; MySQL's has none.
pub const PASSWORD: &str = "a-very-secret-word";

/// A server that runs until this is dropped.
pub struct Foreign {
    child: Child,
    pub address: Address,
    /// Its output.
    pub log: PathBuf,
    _dir: tempfile::TempDir,
}

impl Foreign {
    /// Starts `name@version` with further arguments.
    pub fn start(server: &str, arguments: &[&str]) -> Foreign {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        let place =
            ServerFiles { basedir: basedir(server), dir: dir.path().to_path_buf(), port: free_port() };
        let postgres = server.starts_with("postgres");
        let (mut command, address) = if postgres { place.postgres() } else { place.mysql() };
        let log = dir.path().join("log");
        let child = command.args(arguments).stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut foreign = Foreign { child, address, log, _dir: dir };
        let deadline = Instant::now() + FAR;
        while let Err(why) = Connection::open(&foreign.address) {
            let ended = foreign.child.try_wait().unwrap();
            assert!(Instant::now() < deadline && ended.is_none(), "{why} {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        foreign
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // Its children end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on, as far as that can be known.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Where the files of a server are that the lab has fetched: its plan says so.
pub fn basedir(server: &str) -> PathBuf {
    let lab = Lab::new(&experiment(&[server.to_string()], "sysbench", "'load', 'scan'", 0.2, ""));
    let plan: serde_json::Value = serde_json::from_str(&lab.text(&["plan", "t.toml", "--json"])).unwrap();
    plan["targets"][0]["source"]["Server"]["place"]["Own"]["basedir"].as_str().unwrap().into()
}

struct ServerFiles {
    basedir: PathBuf,
    dir: PathBuf,
    port: u16,
}

impl ServerFiles {
    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// A program of the server, which runs as nobody if the test runs as root: no server runs as that.
    fn program(&self, name: &str) -> Command {
        let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
        let nobody = root.then_some(65534);
        std::os::unix::fs::chown(self.data(), nobody, nobody).unwrap();
        let mut command = Command::new(self.basedir.join("bin").join(name));
        command.current_dir(&self.dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(nobody) = nobody {
            command.uid(nobody).gid(nobody);
        }
        command
    }

    fn address(&self, product: Product, user: &str, password: Option<&str>, database: &str) -> Address {
        Address {
            product,
            socket: None,
            host: "127.0.0.1".into(),
            port: self.port,
            user: user.into(),
            password: password.map(str::to_string),
            database: database.into(),
        }
    }

    fn postgres(&self) -> (Command, Address) {
        let word = self.dir.join("word");
        std::fs::write(&word, PASSWORD).unwrap();
        let mut initdb = self.program("initdb");
        initdb.arg("-D").arg(self.data()).args(["-U", "me", "-A", "scram-sha-256", "--no-sync", "--pwfile"]);
        assert!(initdb.arg(&word).status().unwrap().success());
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-k", ""]);
        (server, self.address(Product::Postgres, "me", Some(PASSWORD), "postgres"))
    }

    fn mysql(&self) -> (Command, Address) {
        let path = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let program = || {
            let mut command = self.program("mysqld");
            command
                .arg("--no-defaults")
                .arg(path("basedir", &self.basedir))
                .arg(path("datadir", &self.data()));
            command.arg(path("lc-messages-dir", &self.basedir.join("share")));
            command.env("LD_LIBRARY_PATH", self.basedir.join("lib"));
            command
        };
        assert!(program().arg("--initialize-insecure").status().unwrap().success());
        let mut server = program();
        server.args(["--bind-address=127.0.0.1", "--loose-mysqlx=OFF"]).arg(format!("--port={}", self.port));
        server.arg(path("socket", &self.data().join("s"))).arg(path("pid-file", &self.data().join("pid")));
        (server, self.address(Product::MySql, "root", None, ""))
    }
}
