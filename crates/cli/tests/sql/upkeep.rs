//! The lab's database on servers of others, and their settings.

use super::foreign::Foreign;
use super::{one_of_each, server};
use outcrop_lab_sql::Connection;
use outcrop_lab_sql::upkeep::{own_database, rest};

#[test]
fn a_database_that_was_made_and_never_marked_is_taken_and_any_other_is_not() {
    for server in one_of_each() {
        let foreign = Foreign::start(&server, &[]);
        let mut owner = Connection::open(&foreign.address).unwrap();
        // A run was killed before it could make its mark.
        owner.run("CREATE DATABASE outcrop_lab").unwrap();
        let own = own_database(&foreign.address).unwrap();
        assert_eq!(own_database(&foreign.address).unwrap(), own, "{server}: it is marked now");
        owner.run("DROP DATABASE outcrop_lab").unwrap();
        owner.run("CREATE DATABASE outcrop_lab").unwrap();
        let mut inside = Connection::open(&own).unwrap();
        inside.run("CREATE VIEW precious AS SELECT 1 AS one").unwrap();
        let why = own_database(&foreign.address).unwrap_err();
        assert!(why.contains("not the lab's own"), "{server}: {why}");
    }
}

#[test]
fn settings_of_a_server_are_what_they_were_even_after_upkeep_that_failed() {
    let Some(server) = server("mysql") else { return };
    let foreign = Foreign::start(&server, &[]);
    let own = own_database(&foreign.address).unwrap();
    let mut owner = Connection::open(&own).unwrap();
    owner.run("CREATE TABLE sbtest1 (id INTEGER PRIMARY KEY)").unwrap();
    owner.run("SET GLOBAL innodb_max_dirty_pages_pct = 73").unwrap();
    let mut settings = || -> Vec<Option<String>> {
        let names = ["innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm"];
        names.map(|name| owner.value(&format!("SELECT @@{name}")).unwrap()).to_vec()
    };
    let before = settings();
    rest(&own, 0.0).unwrap();
    assert_eq!(settings(), before);
    // The owner's connection, that of the upkeep, and none for a table.
    Connection::open(&own).unwrap().run("SET GLOBAL max_connections = 1").unwrap();
    let why = rest(&own, 0.0).unwrap_err();
    assert!(why.contains("Too many connections"), "{why}");
    assert_eq!(settings(), before);
}
