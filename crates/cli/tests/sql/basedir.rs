//! Servers of one's own: by the directory of an installation, and by address.

use super::foreign::{Foreign, basedir};
use super::{Lab, experiment, server, servers};
use std::path::{Path, PathBuf};

/// Where Debian has what the lab does not fetch.
const POSTGRES: &str = "/usr/lib/postgresql/15";
const MARIADB: &str = "/usr";
/// The directory of MariaDB's plugins; `OUTCROP_PLUGINS` names another one.
const PLUGINS: &str = "/usr/lib/mysql/plugin";

/// Installations that are here: their name in experiments, and their directory.
fn installations() -> Vec<(&'static str, PathBuf)> {
    let fetched = server("postgres").map(|server| ("postgres", basedir(&server)));
    let debian = [("postgres", POSTGRES, "bin/postgres"), ("mariadb", MARIADB, "sbin/mariadbd")];
    let debian = debian.into_iter().filter(|(name, dir, program)| {
        let is_here = Path::new(dir).join(program).exists();
        if !is_here {
            println!("skipped: there is no {name} in {dir}");
        }
        is_here && !servers().is_empty()
    });
    fetched.into_iter().chain(debian.map(|(name, dir, _)| (name, PathBuf::from(dir)))).collect()
}

/// Runs `steps` of `kind` on a server with `more` in its target; gives what was recorded, all of it done.
fn run(name: &str, kind: &str, steps: &str, more: &str) -> [serde_json::Value; 4] {
    let lab = Lab::new(&experiment(&[name.to_string()], kind, steps, 0.3, more));
    lab.text(&["run", "t.toml"]);
    let recorded = lab.recorded();
    let [experiment, sessions, _, events] = &recorded;
    assert_eq!(
        (&experiment["status"], &sessions[0]["outcome"]),
        (&"done".into(), &"done".into()),
        "{name}: {events}"
    );
    recorded
}

#[test]
fn installations_of_one_s_own_run_both_benchmarks() {
    for (name, dir) in installations() {
        let more = format!("basedir = '{}'\n", dir.display());
        let steps = "'load', 'postwrite', 'point-query', 'read-only-distinct', 'read-write_range=10', 'scan', 'insert'";
        let [_, sessions, measured, _] = run(name, "sysbench", steps, &more);
        let rows = measured.as_array().unwrap();
        assert_eq!(rows.len(), 6, "{name}: {measured}");
        assert!(rows.iter().all(|row| row["result"]["ops"].as_u64() > Some(0)), "{name}: {measured}");
        assert!(rows.iter().all(|row| row["metrics"]["server_cpu_us/o"].is_number()), "{name}: {measured}");
        let version = sessions[0]["engine_version"].as_str().unwrap();
        assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{name} says it is {version}");
        let [_, _, measured, _] = run(name, "insert-benchmark", "", &more);
        assert_eq!(measured.as_array().unwrap().len(), 10, "{name}: {measured}");
    }
}

#[test]
fn a_mysql_by_url_runs_both_benchmarks_in_the_lab_s_own_database() {
    let Some(server) = server("mysql") else { return };
    let foreign = Foreign::start(&server, &[]);
    let more = format!("url = 'mysql://root@127.0.0.1:{}/'\n", foreign.address.port);
    let steps = "'load', 'postwrite', 'point-query', 'read-write_range=10', 'insert'";
    let [_, _, measured, _] = run("mysql", "sysbench", steps, &more);
    let rows = measured.as_array().unwrap();
    assert_eq!(rows.len(), 4, "{measured}");
    // Processes of others are not looked at, their redo log and what their connections do are asked for.
    assert!(rows.iter().all(|row| row["metrics"]["server_cpu_us/o"].is_null()), "{measured}");
    assert!(rows.iter().any(|row| row["metrics"]["redo_KB/o"].as_f64() > Some(0.0)), "{measured}");
    let [_, _, measured, _] = run("mysql", "insert-benchmark", "", &more);
    assert_eq!(measured.as_array().unwrap().len(), 10, "{measured}");
}

#[test]
fn myrocks_is_left_out_with_a_reason_or_comes_to_rest_in_its_own_way() {
    let Some((_, dir)) = installations().into_iter().find(|(name, _)| *name == "mariadb") else { return };
    let plugins = std::env::var_os("OUTCROP_PLUGINS").map_or_else(|| PathBuf::from(PLUGINS), PathBuf::from);
    let target = |plugins: &Path| {
        format!(
            "basedir = '{}'\nconfigs = ['innodb', 'myrocks']\n[config.innodb]\n[config.myrocks]\nsettings = '''\n\
             plugin_dir = {}\nplugin_load_add = ha_rocksdb\nplugin_maturity = gamma\ndefault_storage_engine = rocksdb\n\
             character_set_server = latin1\n'''\n",
            dir.display(),
            plugins.display()
        )
    };
    let nowhere = tempfile::tempdir().unwrap();
    let lab = Lab::new(&experiment(
        &["mariadb".into()],
        "sysbench",
        "'load', 'scan'",
        0.2,
        &target(nowhere.path()),
    ));
    let plan = lab.text(&["plan", "t.toml"]);
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains("mariadb/myrocks left out: its plugin ha_rocksdb.so is not in"), "{plan}");
    assert!(plan.contains("apt-get install mariadb-plugin-rocksdb"), "{plan}");
    if !plugins.join("ha_rocksdb.so").exists() {
        return println!("skipped: there is no MyRocks in {}", plugins.display());
    }
    let steps = "'load', 'postwrite', 'point-query', 'update-index', 'postwrite.2', 'scan'";
    let [_, sessions, measured, events] = run("mariadb", "sysbench", steps, &target(&plugins));
    assert_eq!(sessions[1]["outcome"], "done", "{events}");
    let of = |name: &str| {
        let rows = measured.as_array().unwrap().iter();
        rows.filter(|row| row["name"] == name && row["target"] == 1).collect::<Vec<_>>()
    };
    let updated = of("update-index");
    assert!(updated[0]["metrics"]["redo_KB/o"].as_f64() > Some(0.0), "its WAL is counted: {updated:?}");
    assert_eq!(of("scan").len(), 1);
}
