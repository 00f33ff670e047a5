//! `outcrop lab servers`: the servers that can be fetched, and those that are here.

use crate::targets::servers::catalogue;

/// Commands for servers.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Servers {
    /// Lists the servers of the shipped lock file and of your own, and where those are that were fetched.
    List,
    /// Fetches servers, each NAME@VERSION or NAME@18.x; all of the shipped lock file if none is named.
    Fetch {
        /// Servers.
        names: Vec<String>,
    },
}

/// Does what the verb says.
///
/// # Errors
/// The first server that cannot be had, with what to do.
pub fn run(verb: &Servers) -> Result<(), String> {
    match verb {
        Servers::List => {
            let own = catalogue::own().map_err(|error| error.to_string())?;
            for server in catalogue::locked().into_iter().chain(own) {
                let name = format!("{}@{}", server.archive.name, server.archive.version);
                let state = match catalogue::unpacked(&server) {
                    Some(home) => home.display().to_string(),
                    None => format!("not here: outcrop lab servers fetch {name}"),
                };
                println!("{name:<18} {state}");
            }
        }
        Servers::Fetch { names } => {
            let wanted = match names.as_slice() {
                [] => catalogue::locked(),
                names => names
                    .iter()
                    .map(|name| {
                        let (name, version) = name
                            .split_once('@')
                            .ok_or_else(|| format!("{name}: servers are named NAME@VERSION"))?;
                        catalogue::find(name, version)
                    })
                    .collect::<Result<_, String>>()?,
            };
            for server in wanted {
                let home = catalogue::obtain(&server).map_err(|error| error.to_string())?.home;
                println!("{}@{}  {}", server.archive.name, server.archive.version, home.display());
            }
        }
    }
    Ok(())
}
