//! Files of settings: which lines count, sizes that follow the machine, and settings that a version does not know.
//!
//! ```text
//! # comments and empty lines             shared_buffers = {memory 0.25}     -> shared_buffers = 6144MB
//! name = value                           workers = {cores 0.5}              -> workers = 1
//! ```

use super::{ServerLocation, ServerSpec, mysql, postgres};
use crate::run::child::Source;
use outcrop_lab_sql::Product;
use std::path::Path;

/// The machine that sizes are taken from.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Bytes of memory that one server may have.
    pub memory: u64,
    /// Processors.
    pub cores: usize,
    /// The unit of megabytes: `MB`, and `M` by MySQL.
    pub megabytes: &'static str,
}

/// Reads the file of settings at `path` for a machine.
///
/// # Errors
/// A sentence with file and line.
pub fn read(path: &Path, machine: Machine) -> Result<String, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    scaled(&path.display().to_string(), &text, machine)
}

/// `text`, called `file`, with its sizes filled in.
///
/// # Errors
/// A sentence with file and line.
pub fn scaled(file: &str, text: &str, machine: Machine) -> Result<String, String> {
    let line = |(number, line): (usize, &str)| {
        fill_in(line, machine).map_err(|why| format!("{file}:{}: {why}", number + 1))
    };
    let lines: Vec<String> = text.lines().enumerate().map(line).collect::<Result<_, _>>()?;
    Ok(lines.join("\n") + "\n")
}

fn fill_in(line: &str, machine: Machine) -> Result<String, String> {
    let Some((before, rest)) = line.split_once('{').filter(|_| !line.trim_start().starts_with('#')) else {
        return Ok(line.to_string());
    };
    let (inside, after) = rest.split_once('}').ok_or("there is no } to the {")?;
    let wrong = || format!("{{{inside}}}: write {{memory SHARE}} or {{cores SHARE}}");
    let (what, share) = inside.split_once(' ').ok_or_else(wrong)?;
    let share: f64 = share.trim().parse().ok().filter(|share| *share > 0.0).ok_or_else(wrong)?;
    let value = match what {
        "memory" => format!("{}{}", ((machine.memory as f64 * share) as u64 >> 20).max(1), machine.megabytes),
        "cores" => ((machine.cores as f64 * share).round() as u64).max(1).to_string(),
        _ => return Err(wrong()),
    };
    Ok(format!("{before}{value}{after}"))
}

/// The settings of a text, name and value, with their lines.
pub fn settings(text: &str) -> Vec<(usize, &str, &str)> {
    let of_line = |(number, line): (usize, &'_ str)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with('[') || line.starts_with(';') {
            return None;
        }
        let end = line.find(['=', ' ', '\t']).unwrap_or(line.len());
        let value = line[end..].trim_start_matches(['=', ' ', '\t']);
        Some((number + 1, &text[offset(text, line)..][..end], &text[offset(text, value)..][..value.len()]))
    };
    text.lines().enumerate().filter_map(of_line).collect()
}

fn offset(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

/// Why a server cannot run with its settings, although it knows them: a plugin that they load is not there.
///
/// # Errors
/// A sentence if the server cannot be asked.
pub fn missing(source: &Source) -> Result<Option<String>, String> {
    let Source::Server(spec) = source else { return Ok(None) };
    match (&spec.place, spec.product) {
        (ServerLocation::Own { basedir, config, .. }, Product::MySql) => {
            mysql::missing_plugin(basedir, config)
        }
        _ => Ok(None),
    }
}

/// Refuses settings that the server at `basedir` does not know; `file` is what the text is called.
///
/// # Errors
/// A sentence with file, line and the nearest name.
pub fn check(spec: &ServerSpec, basedir: &Path, file: &str, text: &str) -> Result<(), String> {
    let wanted = settings(text);
    if wanted.is_empty() {
        return Ok(());
    }
    let known = match spec.product {
        Product::Postgres => postgres::known_settings(basedir)?,
        Product::MySql => mysql::known_settings(basedir)?,
    };
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    for (line, name, _) in wanted {
        let plain_name = plain(name);
        // Settings of modules have a dot, and are known once the module is loaded.
        let of_module = plain_name.contains('.') || plain_name.starts_with("loose_");
        // MySQL: `skip-log-bin` is `log_bin`, turned off.
        let turned_off =
            || plain_name.strip_prefix("skip_").is_some_and(|name| known.iter().any(|known| known == name));
        if of_module || known.contains(&plain_name) || (spec.product == Product::MySql && turned_off()) {
            continue;
        }
        if spec.product == Product::Postgres && postgres::knows(basedir, name)? {
            continue;
        }
        let version = spec.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
        let nearest = known
            .iter()
            .map(|known| (strsim::levenshtein(&plain_name, known), known))
            .min()
            .filter(|(distance, _)| *distance <= plain_name.len() / 2);
        let hint = nearest.map_or(String::new(), |(_, known)| format!("; did you mean \"{known}\"?"));
        return Err(format!("{file}:{line}: {}{version} knows no setting \"{name}\"{hint}", spec.name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine { memory: 8 << 30, cores: 3, megabytes: "MB" };

    #[test]
    fn sizes_follow_the_machine_and_mistakes_have_their_line() {
        let text = "# {memory 1} stays\nshared_buffers = {memory 0.25} # a quarter\nworkers = {cores 0.5}\n";
        let filled = scaled("x.conf", text, MACHINE).unwrap();
        assert_eq!(filled, "# {memory 1} stays\nshared_buffers = 2048MB # a quarter\nworkers = 2\n");
        for wrong in ["a = {memory}", "a = {disk 1}", "a = {memory -1}", "a = {memory 1"] {
            let error = scaled("x.conf", &format!("\n{wrong}"), MACHINE).unwrap_err();
            assert!(error.starts_with("x.conf:2: "), "{error}");
        }
    }

    #[test]
    fn settings_are_found_with_their_lines() {
        let text = "# a\n[mysqld]\nshared_buffers=1GB # x\n\nwork_mem 4MB\nskip-log-bin\n";
        assert_eq!(
            settings(text),
            [(3, "shared_buffers", "1GB"), (5, "work_mem", "4MB"), (6, "skip-log-bin", "")]
        );
    }
}
