//! The start of a connection: who asks, and the password if the server wants one.

use super::said::Said;
use super::wire::Wire;
use crate::address::Address;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

/// Until the server is ready for statements.
pub(super) fn login(wire: &mut Wire, address: &Address) -> Result<(), String> {
    let who = [
        ("user", address.user.as_str()),
        ("database", address.database.as_str()),
        ("application_name", "outcrop-lab"),
        ("client_encoding", "UTF8"),
    ];
    wire.begin();
    frontend::startup_message(who, wire.out()).map_err(words)?;
    wire.send().map_err(words)?;
    let mut scram: Option<ScramSha256> = None;
    loop {
        let (tag, body) = wire.next().map_err(words)?;
        match tag {
            b'Z' => return Ok(()),
            b'E' => return Err(Said::read(body).text()),
            b'R' => {
                let body = body.to_vec();
                authenticate(wire, address, &body, &mut scram)?;
            }
            // Settings, and the key to cancel with.
            _ => {}
        }
    }
}

fn words(error: std::io::Error) -> String {
    error.to_string()
}

/// Answers one request of the server's.
fn authenticate(
    wire: &mut Wire,
    address: &Address,
    body: &[u8],
    scram: &mut Option<ScramSha256>,
) -> Result<(), String> {
    let (kind, rest) = body.split_first_chunk().ok_or("a request for a password that is cut short")?;
    let kind = u32::from_be_bytes(*kind);
    if kind == 0 {
        return Ok(());
    }
    let password = address.password.as_ref().ok_or("the server wants a password")?;
    wire.begin();
    match (kind, scram.as_mut()) {
        (3, _) => frontend::password_message(password.as_bytes(), wire.out()),
        (5, _) => {
            let salt = rest.first_chunk().ok_or("a request for a password without its salt")?;
            let hash = md5_hash(address.user.as_bytes(), password.as_bytes(), *salt);
            frontend::password_message(hash.as_bytes(), wire.out())
        }
        (10, _) => {
            let offered = || rest.split(|byte| *byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes());
            if !offered() {
                return Err(format!(
                    "of the ways to prove a password this client knows {SCRAM_SHA_256} only"
                ));
            }
            let proof = scram.insert(ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported()));
            frontend::sasl_initial_response(SCRAM_SHA_256, proof.message(), wire.out())
        }
        (11, Some(proof)) => {
            proof.update(rest).map_err(words)?;
            frontend::sasl_response(proof.message(), wire.out())
        }
        (12, Some(proof)) => return proof.finish(rest).map_err(words),
        _ => {
            return Err(format!(
                "the server wants a proof of identity that this client does not know ({kind})"
            ));
        }
    }
    .map_err(words)?;
    wire.send().map_err(words)
}
