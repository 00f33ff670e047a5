//! From an experiment on servers to the same plan as for engines: blocks, twins, orders and slices are those of `plan.rs`.

use crate::experiment::compaction::open_options;
use crate::experiment::sql::{self, Commit, EmbeddedSet, ServerConfig, ServerSet, SqlExperiment};
use crate::experiment::{Config, DataSource, Order, WorkloadKind};
use crate::planning::order;
use crate::planning::plan::{Plan, PlannedTarget, base_of, block_orders, checked};
use crate::planning::scale::{Machine, Scale, Scaled};
use crate::report::text::amount;
use crate::run::child::{self, Source};
use crate::run::sysbench;
use crate::targets::builds::Built;
use crate::targets::maven::{self, ReferenceError};
use crate::targets::servers::{Runner, ServerLocation, ServerSpec, catalogue, config, program_of};
use outcrop_lab_sql::{Address, Load, Product, SqlStep};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Plans the experiment `text` of `file` for `machine`, changed as `scale` says. May fetch servers.
///
/// # Errors
/// One sentence that says what to change.
pub fn plan(file: &Path, text: &str, seed: u64, machine: Machine, scale: &Scale) -> Result<Plan, String> {
    let read = sql::parse(&file.display().to_string(), text)?;
    let mut experiment = read.clone();
    let mut changes = apply(scale, &mut experiment)?;
    let mut plan = unscaled(&experiment, file, seed, machine)?;
    if let Some(budget) = scale.budget {
        let given = experiment.workload.rows;
        if scale.keys.is_none() {
            fit_rows(&mut plan, &mut experiment, budget as f64, || (file, seed, machine))?;
        }
        if experiment.workload.rows != given {
            changes.push(format!("rows of a table {given} -> {}", experiment.workload.rows));
        }
    }
    // Rests are as many as sessions or blocks, so the order is decided before the time is held against the budget. Seconds
    // of steps change nothing about it.
    order::decide_order_as_asked(&mut plan, experiment.design.order)?;
    if let Some(budget) = scale.budget {
        fit(&mut plan, budget as f64)?;
    }
    if !scale.is_none() {
        if plan.sizes.seconds != read.workload.seconds {
            changes.insert(
                0,
                format!(
                    "seconds of a step {} -> {}",
                    amount(read.workload.seconds),
                    amount(plan.sizes.seconds)
                ),
            );
        }
        plan.scaled = Some(Scaled { budget_seconds: scale.budget, changes, asked: scale.clone() });
    }
    check_places(&plan)?;
    Ok(plan)
}

/// Refuses targets that would meet on one server or at one port, and data of others that cannot be copied.
fn check_places(plan: &Plan) -> Result<(), String> {
    let places: Vec<(&str, &ServerLocation)> = plan
        .targets
        .iter()
        .filter_map(|target| match &target.source {
            Source::Server(spec) => Some((target.name.as_str(), &spec.place)),
            _ => None,
        })
        .collect();
    if let Some((name, _)) = places.iter().find(|(_, place)| matches!(place, ServerLocation::Remote(_)))
        && plan.data == DataSource::Restored
    {
        return Err(format!(
            "{name}: the data of a server by url cannot be copied; use data = \"fresh\" in [design]"
        ));
    }
    if plan.order == Order::Sessions {
        return Ok(());
    }
    // All are up at once, and do their steps in turn.
    for (index, (name, place)) in places.iter().enumerate() {
        let met = places[..index].iter().find(|(_, other)| meet(other, place));
        if let Some((other, _)) = met {
            return Err(format!(
                "{other} and {name} would use one {} at the same time; use order = \"sessions\" in [design], or leave one of \
                 them out (of a twin: aa = false)",
                if matches!(place, ServerLocation::Remote(_)) { "server" } else { "port" }
            ));
        }
    }
    Ok(())
}

/// Whether two servers are one, or want the same port.
fn meet(one: &ServerLocation, other: &ServerLocation) -> bool {
    match (one, other) {
        (ServerLocation::Remote(one), ServerLocation::Remote(other)) => {
            (&host(one), one.port, &one.socket) == (&host(other), other.port, &other.socket)
        }
        (ServerLocation::Own { port: Some(one), .. }, ServerLocation::Own { port: Some(other), .. }) => {
            one == other
        }
        _ => false,
    }
}

/// A host by one name, where this machine has several for itself.
fn host(address: &Address) -> String {
    match address.host.to_ascii_lowercase().as_str() {
        "localhost" | "127.0.0.1" | "::1" => "localhost".to_string(),
        other => other.to_string(),
    }
}

/// Puts plain numbers in place of the file's; gives what was changed, but for seconds.
fn apply(scale: &Scale, experiment: &mut SqlExperiment) -> Result<Vec<String>, String> {
    if scale.keys == Some(0) || scale.rounds == Some(0) {
        return Err("--keys and --rounds must be above zero".to_string());
    }
    let mut changes = Vec::new();
    let (workload, design) = (&mut experiment.workload, &mut experiment.design);
    if let Some(keys) = scale.keys {
        let rows = (keys / u64::from(workload.tables())).max(1);
        if rows > sql::MOST_ROWS {
            return Err(format!("--keys: a table has at most {} rows", sql::MOST_ROWS));
        }
        changes.push(format!("rows of a table {} -> {rows}", workload.rows));
        let share = rows as f64 / workload.rows as f64;
        workload.write_rows = workload.write_rows.map(|rows| ((rows as f64 * share) as u64).max(5));
        workload.rows = rows;
    }
    if let Some(seconds) = scale.seconds {
        if !seconds.is_finite() || seconds <= 0.0 {
            return Err("--seconds must be above zero".to_string());
        }
        let share = seconds / workload.seconds;
        workload.seconds = seconds;
        workload.write_seconds = workload.write_seconds.map(|seconds| seconds * share);
        workload.postwrite_seconds = workload.postwrite_seconds.map(|seconds| seconds * share.min(1.0));
        let own = experiment.step.values_mut().filter_map(|step| step.seconds.as_mut());
        own.for_each(|seconds| *seconds *= share);
    }
    if let Some(rounds) = scale.rounds {
        if rounds > outcrop_lab_stats::rank::MAX_EXACT {
            return Err(format!("--rounds: at most {} can be judged", outcrop_lab_stats::rank::MAX_EXACT));
        }
        changes.push(format!("rounds {} -> {rounds}", design.rounds));
        (design.rounds, design.max_rounds) = (rounds, None);
    }
    Ok(changes)
}

/// Takes rows while loads, which take time for every row, leave less than half of `budget` seconds for what is measured.
fn fit_rows<'f>(
    plan: &mut Plan,
    experiment: &mut SqlExperiment,
    budget: f64,
    place: impl Fn() -> (&'f Path, u64, Machine),
) -> Result<(), String> {
    /// Rows of a table below which nothing of a server is measured.
    const LEAST_ROWS: u64 = 10_000;
    /// Share of the budget that fewer rows must gain to be worth it.
    const GAIN: f64 = 0.05;
    loop {
        let least = least_of(plan).estimate().seconds;
        let mut fewer = experiment.clone();
        let workload = &mut fewer.workload;
        workload.rows /= 2;
        workload.write_rows = workload.write_rows.map(|rows| (rows / 2).max(5));
        if least <= budget / 2.0 || workload.rows < LEAST_ROWS {
            return Ok(());
        }
        let (file, seed, machine) = place();
        let smaller = unscaled(&fewer, file, seed, machine)?;
        let gained = least - least_of(&smaller).estimate().seconds;
        if least <= budget && gained < GAIN * budget {
            return Ok(());
        }
        (*plan, *experiment) = (smaller, fewer);
    }
}

/// `plan` with as few seconds of steps as anything can be measured in.
fn least_of(plan: &Plan) -> Plan {
    scaled(plan, 0.0)
}

/// `plan` with a share of the seconds of steps that time ends, and of those that tables are given to come to rest.
fn scaled(plan: &Plan, share: f64) -> Plan {
    /// Seconds of a step below which nothing is measured.
    const LEAST: f64 = 0.2;
    let mut smaller = plan.clone();
    for planned in &mut smaller.steps {
        if planned.step.ops.is_none() {
            planned.step.seconds = (planned.step.seconds * share).max(LEAST);
        }
        if let Some(SqlStep { load: Load::Postwrite(seconds), .. }) = &mut planned.sql {
            // The work itself takes what it takes.
            *seconds *= share;
            planned.step.seconds = *seconds;
        }
    }
    smaller.sizes.seconds = (smaller.sizes.seconds * share).max(LEAST);
    smaller
}

/// Takes seconds from steps until the plan fits `budget` seconds.
fn fit(plan: &mut Plan, budget: f64) -> Result<(), String> {
    plan.budget_seconds = Some(budget as u64);
    let whole = plan.estimate().seconds;
    if whole <= budget {
        return Ok(());
    }
    // The estimate is linear in the seconds of steps.
    let least = least_of(plan).estimate().seconds;
    if least > budget {
        return Err(format!(
            "{} targets do not fit {budget:.0} s: the least is about {least:.0}; use fewer --keys, or leave targets or \
             steps out",
            plan.targets.len()
        ));
    }
    *plan = scaled(plan, (budget - least) / (whole - least));
    Ok(())
}

fn unscaled(experiment: &SqlExperiment, file: &Path, seed: u64, machine: Machine) -> Result<Plan, String> {
    let sizes = experiment.sizes(machine.memory);
    let steps = experiment.planned_steps(machine.cores);
    let oversubscribed = steps.iter().any(|step| step.oversubscribed);
    if let Some(step) = steps.iter().find(|step| step.oversubscribed && step.step.threads > 1)
        && !experiment.design.allow_oversubscription
    {
        return Err(format!(
            "step {}: {} clients have {} connections, which leave none of {} cores for the server's background work; use \
             fewer clients, or set allow_oversubscription = true in [design]",
            step.step.name,
            step.step.threads,
            step.step.threads * step.sql.as_ref().map_or(1, SqlStep::connections_of_a_client),
            machine.cores
        ));
    }
    if !steps.first().is_some_and(|step| step.is_load()) {
        return Err("the first step must load: begin steps with load, or l.i0".to_string());
    }
    let (mut targets, left_out) = resolve(experiment, file, machine)?;
    targets.iter_mut().for_each(|target| target.open.cache_size = sizes.cache);
    let wanted = experiment.base.as_deref().map(with_newest);
    let base = base_of(wanted.as_deref(), &targets, &left_out)?;
    let design = &experiment.design;
    if design.aa {
        let mut twin = targets[base].clone();
        twin.name += " (A/A)";
        twin.twin_of = Some(base);
        targets.push(twin);
    }
    let seed = design.seed.unwrap_or(seed);
    let (order, run_in, slice_seconds) = order::tried(design);
    // sysbench's program does whole steps, and its time is in seconds; all targets do a step in the same way.
    let whole = experiment.target.iter().any(|set| set.runner == Runner::Sysbench);
    let slice_seconds = if whole { 0.0 } else { slice_seconds };
    Ok(Plan {
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        base,
        kind: WorkloadKind::Byos,
        blocks: block_orders(targets.len(), design.max_rounds.unwrap_or(design.rounds), seed),
        sizes,
        steps,
        targets,
        left_out,
        seed,
        rounds: design.rounds,
        width: design.width,
        delta: design.delta,
        budget_seconds: design.budget_seconds,
        rest_seconds: design.rest_seconds,
        data: design.data,
        warmup: design.warmup,
        order,
        order_reason: None,
        run_in,
        slice_seconds,
        oversubscribed,
        memory: machine.memory,
        scaled: None,
        balanced: true,
        whole: None,
    })
}

/// A target's name with the version that `18.x` stands for.
fn with_newest(name: &str) -> String {
    let newest = || {
        let (server, rest) = name.split_once('@')?;
        let version = rest.split(['/', '@']).next()?;
        let found = version.ends_with(".x").then(|| catalogue::find(server, version).ok())??;
        Some(format!("{server}@{}{}", found.archive.version, &rest[version.len()..]))
    };
    newest().unwrap_or_else(|| name.to_string())
}

type Resolved = (Vec<PlannedTarget>, Vec<(String, String)>);

fn resolve(experiment: &SqlExperiment, file: &Path, machine: Machine) -> Result<Resolved, String> {
    let (mut targets, mut left_out) = (Vec::<PlannedTarget>::new(), Vec::new());
    for set in &experiment.target {
        if set.runner == Runner::Sysbench
            && let Err(why) = find_sysbench()
        {
            left_out.push((format!("{}@sysbench", set.server), why));
            continue;
        }
        let found = match place(set) {
            Ok(found) => found,
            Err(ReferenceError::Unavailable(why)) => {
                left_out.push((set.server.clone(), why));
                continue;
            }
            Err(error) => return Err(error.to_string()),
        };
        let none = ServerConfig::default();
        let configs: Vec<(&str, &ServerConfig)> = match set.configs.as_slice() {
            [] => vec![("", &none)],
            names => names.iter().map(|name| (name.as_str(), &experiment.config[name])).collect(),
        };
        for (name, config) in configs {
            let planned = target(experiment, set, &found, name, config, file, machine)?;
            match config::missing(&planned.source)? {
                Some(why) => left_out.push((planned.name, why)),
                None => targets.push(planned),
            }
        }
    }
    for set in &experiment.embedded {
        match engines_of(experiment, set, machine) {
            Ok(found) => targets.extend(found),
            Err(ReferenceError::Unavailable(why)) => left_out.push((set.engine.clone(), why)),
            Err(error) => return Err(error.to_string()),
        }
    }
    for (index, target) in targets.iter().enumerate() {
        if targets[..index].iter().any(|other| other.name == target.name) {
            return Err(format!("two targets are called {}; tell them apart with build", target.name));
        }
    }
    match left_out.first() {
        Some((name, why)) if targets.is_empty() => {
            Err(format!("no target is left to measure; {name}: {why}"))
        }
        _ => Ok((targets, left_out)),
    }
}

/// The targets of an embedded engine: one for each way to commit.
fn engines_of(
    experiment: &SqlExperiment,
    set: &EmbeddedSet,
    machine: Machine,
) -> Result<Vec<PlannedTarget>, ReferenceError> {
    let (engine, version) = match set.engine.split_once('@') {
        Some((engine, version)) => (engine, Some(version)),
        None => (set.engine.as_str(), None),
    };
    let source = match version {
        Some(version) => Source::Library(maven::obtain(engine, version)?),
        None => Source::InProcess,
    };
    let (program, sha256) = match &source {
        Source::Library(path) => (path.as_path(), Some(checked(path).map_err(ReferenceError::Unavailable)?)),
        Source::InProcess | Source::Server(_) => (Path::new("/proc/self/exe"), None),
    };
    child::try_load(&source, None).map_err(ReferenceError::Unavailable)?;
    let sizes = experiment.sizes(machine.memory);
    let target = |commit: &Commit| PlannedTarget {
        name: format!("{}/{}", set.engine, commit.name()),
        engine: engine.to_string(),
        version: version.map(str::to_string),
        line: format!("{engine}/{}", commit.name()),
        source: source.clone(),
        sha256: sha256.clone(),
        built: Built::read(program),
        allocator: "system".to_string(),
        preload: None,
        config: commit.name().to_string(),
        open: open_options(WorkloadKind::Byrx, &sizes, &Config::default()),
        options: String::new(),
        twin_of: None,
        planted: 0.0,
        beside_servers: Some(commit.durability()),
    };
    Ok(set.commit.iter().map(target).collect())
}

/// Whether sysbench's program is installed; if not, what to do.
fn find_sysbench() -> Result<(), String> {
    let program = Path::new(sysbench::PROGRAM);
    let said = Command::new(program).arg("--version").output();
    said.map(|_| ()).map_err(|error| sysbench::missing(program, &error.to_string()))
}

/// A set of targets before its settings.
struct ResolvedServer {
    name: String,
    version: Option<String>,
    product: Product,
    /// Directory of its files; without one it is somebody else's.
    basedir: Option<PathBuf>,
    sha256: Option<String>,
    address: Option<Address>,
}

fn place(set: &ServerSet) -> Result<ResolvedServer, ReferenceError> {
    let (name, version) = match set.server.split_once('@') {
        Some((name, version)) => (name, Some(version.to_string())),
        None => (set.server.as_str(), None),
    };
    let product = if name == "postgres" { Product::Postgres } else { Product::MySql };
    let found = |version, basedir, sha256, address| ResolvedServer {
        name: name.to_string(),
        version,
        product,
        basedir,
        sha256,
        address,
    };
    if let Some(url) = &set.url {
        let address = address_of(product, url).map_err(ReferenceError::Unknown)?;
        return Ok(found(version, None, None, Some(address)));
    }
    if let Some(basedir) = &set.basedir {
        let there = basedir.join("bin").is_dir() || basedir.join("sbin").is_dir();
        if !there {
            let why = format!("{}: there is no bin in it", basedir.display());
            return Err(ReferenceError::Unavailable(why));
        }
        let absolute = std::path::absolute(basedir).unwrap_or_else(|_| basedir.clone());
        return Ok(found(version, Some(absolute), None, None));
    }
    let wanted = version.unwrap_or_default();
    let locked = catalogue::find(name, &wanted).map_err(ReferenceError::Unknown)?;
    let fetched = catalogue::obtain(&locked)?;
    Ok(found(Some(locked.archive.version), Some(fetched.home), Some(fetched.sha256), None))
}

/// `postgres://user@host:port/database`; the password is not part of it.
fn address_of(product: Product, url: &str) -> Result<Address, String> {
    let wrong = || format!("{}: write SCHEME://USER@HOST:PORT/DATABASE", without_password(url));
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let schemes: &[&str] = match product {
        Product::Postgres => &["postgres", "postgresql"],
        Product::MySql => &["mysql", "mariadb"],
    };
    if !schemes.contains(&scheme) {
        return Err(format!("{}: a url of this server begins with {}://", without_password(url), schemes[0]));
    }
    let (user, rest) = rest.split_once('@').ok_or_else(wrong)?;
    if user.contains(':') {
        return Err(format!(
            "{}: a password in a file is read by others; set {} instead",
            without_password(url),
            crate::targets::servers::PASSWORD
        ));
    }
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let usual = if product == Product::Postgres { 5432 } else { 3306 };
    // An address of IPv6 has brackets, since it has colons of its own.
    let (host, port) = match place.strip_prefix('[').map(|rest| rest.split_once(']').ok_or_else(wrong)) {
        Some(inside) => {
            let (host, rest) = inside?;
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or_else(wrong)?) })
        }
        None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| wrong()))?;
    let database = if database.is_empty() && product == Product::Postgres { "postgres" } else { database };
    Ok(Address {
        product,
        socket: None,
        host: host.to_string(),
        port,
        user: user.to_string(),
        password: None,
        database: database.to_string(),
    })
}

/// A url as messages have it: without what stands before the last `@`, whatever else is wrong with it.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://...@{place}"),
        (None, Some((_, place))) => format!("...@{place}"),
        _ => url.to_string(),
    }
}

fn target(
    experiment: &SqlExperiment,
    set: &ServerSet,
    found: &ResolvedServer,
    name: &str,
    config: &ServerConfig,
    file: &Path,
    machine: Machine,
) -> Result<PlannedTarget, String> {
    let mut spec = ServerSpec {
        name: found.name.clone(),
        product: found.product,
        version: found.version.clone(),
        place: ServerLocation::Remote(found.address.clone().unwrap_or_else(|| nowhere(found.product))),
        runner: set.runner,
    };
    let mut settings = String::new();
    if let Some(basedir) = &found.basedir {
        settings = settings_of(experiment, &spec, basedir, name, config, file, machine)?;
        spec.place =
            ServerLocation::Own { basedir: basedir.clone(), config: settings.clone(), port: set.port };
    }
    let version = found.version.as_ref().map_or(String::new(), |version| format!("@{version}"));
    let client = (set.runner == Runner::Sysbench).then_some("sysbench");
    let build = set.build.as_deref().or(client).map_or(String::new(), |build| format!("@{build}"));
    let tail = if name.is_empty() { String::new() } else { format!("/{name}") };
    let program = found.basedir.as_ref().map(|dir| program_of(found.product, dir));
    let sizes = experiment.sizes(machine.memory);
    Ok(PlannedTarget {
        name: format!("{}{version}{build}{tail}", found.name),
        engine: found.name.clone(),
        version: found.version.clone(),
        line: format!("{}{build}{tail}", found.name),
        source: Source::Server(Box::new(spec)),
        sha256: found.sha256.clone(),
        built: program.map_or_else(Built::default, |program| Built::read(&program)),
        allocator: "system".to_string(),
        preload: None,
        config: name.to_string(),
        open: open_options(WorkloadKind::Byos, &sizes, &Config::default()),
        options: settings,
        twin_of: None,
        planted: config.planted.unwrap_or(0.0),
        beside_servers: None,
    })
}

fn nowhere(product: Product) -> Address {
    let none = String::new;
    Address { product, socket: None, host: none(), port: 0, user: none(), password: None, database: none() }
}

/// The settings of a configuration, scaled, and refused if the server does not know one.
fn settings_of(
    experiment: &SqlExperiment,
    spec: &ServerSpec,
    basedir: &Path,
    name: &str,
    config: &ServerConfig,
    file: &Path,
    machine: Machine,
) -> Result<String, String> {
    let share = experiment.workload.memory_share.unwrap_or(1.0);
    let megabytes = if spec.product == Product::Postgres { "MB" } else { "M" };
    let memory = (machine.memory as f64 * share) as u64;
    let sizes = config::Machine { memory, cores: machine.cores, megabytes };
    let mut all = String::new();
    if let Some(path) = &config.file {
        let path = file.parent().unwrap_or(Path::new("")).join(path);
        let text = config::read(&path, sizes)?;
        config::check(spec, basedir, &path.display().to_string(), &text)?;
        all.push_str(&text);
    }
    let inline = format!("[config.{name}] settings");
    let text = config::scaled(&inline, &config.settings, sizes)?;
    config::check(spec, basedir, &inline, &text)?;
    Ok(all + &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_takes_rows_and_then_seconds() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("bin")).unwrap();
        let text = format!(
            "title = 't'\n[workload]\nkind = 'sysbench'\nrows = 10000000\nseconds = 600\n[[target]]\nserver = 'postgres'\n\
             basedir = '{}'\n[design]\nrounds = 5\n",
            temp.path().display()
        );
        let machine = Machine { memory: 8 << 30, cores: 2 };
        let planned = |budget| {
            let scale = Scale { budget: Some(budget), ..Scale::default() };
            plan(Path::new("t.toml"), &text, 1, machine, &scale)
        };
        let small = planned(900).unwrap();
        assert!(small.estimate().seconds <= 901.0, "{}", small.estimate().seconds);
        let rows = small.steps[0].sql.as_ref().unwrap().rows;
        assert!((10_000..10_000_000).contains(&rows), "{rows}");
        let sentence = small.scaled.unwrap().sentence();
        assert!(
            sentence.contains("rows of a table 10000000 -> ") && sentence.contains("seconds of a step"),
            "{sentence}"
        );
        let long = planned(30 * 86_400).unwrap();
        assert_eq!(long.steps[0].sql.as_ref().unwrap().rows, 10_000_000);
        assert!(planned(60).unwrap_err().contains("do not fit 60 s"));
        // Five blocks of two sessions and one that is thrown away, in a memory that holds one at a time.
        let rests =
            text.replace("rounds = 5", "rounds = 5\nrest_seconds = 60").replace("10000000", "1000000");
        let scale = Scale { budget: Some(1200), keys: Some(1_000_000), ..Scale::default() };
        let tight = Machine { memory: 512 << 20, cores: 2 };
        let by_sessions = plan(Path::new("t.toml"), &rests, 1, tight, &scale).unwrap();
        assert_eq!((by_sessions.order, by_sessions.targets.len()), (Order::Sessions, 2));
        assert!(by_sessions.estimate().seconds <= 1201.0, "{}", by_sessions.estimate().seconds);
    }

    const BY_URL: &str = "title = 't'\nsteps = ['load', 'scan']\n[workload]\nkind = 'sysbench'\nrows = 10\nseconds = 1\n\
        [[target]]\nserver = 'postgres'\nurl = 'postgres://me@localhost/x'\n[design]\n";

    fn planned(text: &str) -> Result<Plan, String> {
        plan(Path::new("t.toml"), text, 1, Machine { memory: 8 << 30, cores: 4 }, &Scale::default())
    }

    #[test]
    fn a_server_by_url_has_one_target_at_a_time_and_no_data_to_copy() {
        let alone = format!("{BY_URL}aa = false\n");
        assert!(planned(&alone).is_ok());
        let twin = planned(&format!("{BY_URL}aa = true\n")).unwrap_err();
        assert!(
            twin.contains("postgres and postgres (A/A) would use one server") && twin.contains("aa = false"),
            "{twin}"
        );
        assert!(planned(&format!("{BY_URL}aa = true\norder = 'sessions'\n")).is_ok(), "one after the other");
        let second =
            "[[target]]\nserver = 'postgres'\nbuild = 'b'\nurl = 'postgres://me@127.0.0.1:5432/other'\n";
        let error = planned(&format!("{alone}{second}")).unwrap_err();
        assert!(error.contains("postgres and postgres@b would use one server"), "{error}");
        assert!(planned(&format!("{alone}{}", second.replace("5432", "5433"))).is_ok());
        let error = planned(&format!("{BY_URL}aa = false\ndata = 'restored'\n")).unwrap_err();
        assert!(error.contains("cannot be copied"), "{error}");
    }

    #[test]
    fn servers_that_are_up_together_have_a_port_each() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("bin")).unwrap();
        let ours = format!("basedir = '{}'\nport = 5444\nconfigs = ['a', 'b']", temp.path().display());
        let text = BY_URL.replace("url = 'postgres://me@localhost/x'", &ours) + "aa = false\n";
        let text = format!("{text}[config.a]\n[config.b]\n");
        let error = planned(&text).unwrap_err();
        assert!(error.contains("postgres/a and postgres/b would use one port"), "{error}");
        assert!(planned(&text.replace("aa = false", "aa = false\norder = 'sessions'")).is_ok());
        let twin = text.replace("['a', 'b']", "['a']").replace("aa = false", "aa = true");
        assert!(planned(&twin).unwrap_err().contains("one port"));
    }

    #[test]
    fn sizes_beyond_those_of_a_file_are_refused_from_the_command_line_too() {
        let scale = Scale { keys: Some(3_000_000_000), ..Scale::default() };
        let machine = Machine { memory: 8 << 30, cores: 4 };
        let text = format!("{BY_URL}aa = false\n");
        let error = plan(Path::new("t.toml"), &text, 1, machine, &scale).unwrap_err();
        assert_eq!(error, "--keys: a table has at most 2000000000 rows");
    }

    #[test]
    fn a_base_may_be_the_newest_of_a_version() {
        let newest = catalogue::find("postgres", "18.x").unwrap().archive.version;
        assert_eq!(with_newest("postgres@18.x/sync"), format!("postgres@{newest}/sync"));
        assert_eq!(with_newest("postgres@18.x@sysbench/sync"), format!("postgres@{newest}@sysbench/sync"));
        for name in ["postgres@12.22/x10a", "postgres@99.x", "outcrop/synced", "mysql"] {
            assert_eq!(with_newest(name), name);
        }
    }

    #[test]
    fn too_many_connections_are_counted_as_such() {
        let text =
            BY_URL.replace("steps = ['load', 'scan']\n", "").replace("'sysbench'", "'insert-benchmark'");
        let error = planned(&text.replace("seconds = 1", "seconds = 1\nclients = 2")).unwrap_err();
        assert!(error.contains("2 clients have 4 connections, which leave none of 4 cores"), "{error}");
    }

    #[test]
    fn urls_become_addresses_and_have_no_password() {
        let address = address_of(Product::Postgres, "postgres://me@db.example:5433/x").unwrap();
        assert_eq!(address.to_string(), "me@db.example:5433/x");
        assert_eq!(address_of(Product::MySql, "mysql://root@h").unwrap().to_string(), "root@h:3306/");
        let error = address_of(Product::Postgres, "postgres://me:secret@h/x").unwrap_err();
        assert!(error.contains("OUTCROP_SQL_PASSWORD") && !error.contains("secret"), "{error}");
        let error = address_of(Product::Postgres, "me:secret@h/x").unwrap_err();
        assert!(error.starts_with("...@h/x: write SCHEME://"), "{error}");
        assert!(address_of(Product::Postgres, "h:5432").unwrap_err().contains("SCHEME://"));
        let v6 = |url| address_of(Product::Postgres, url).map(|address| (address.host, address.port));
        assert_eq!(v6("postgresql://me@[::1]:5433/x"), Ok(("::1".to_string(), 5433)));
        assert_eq!(v6("postgres://me@[::1]/x"), Ok(("::1".to_string(), 5432)));
        assert!(v6("postgres://me@[::1/x").is_err() && v6("postgres://me@[::1]5433/x").is_err());
        let error = address_of(Product::MySql, "postgres://me@h").unwrap_err();
        assert!(error.contains("begins with mysql://"), "{error}");
    }
}
