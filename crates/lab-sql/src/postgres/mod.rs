//! PostgreSQL's protocol, version 3, by hand: a statement is one write and, where the answer fits, one read.
//!
//! ```text
//! mod.rs: statements      login.rs: the start of a connection      wire.rs: messages on a socket      said.rs: errors
//! ```
//! A prepared statement goes out as Bind, Execute and Sync; rows come back in binary and are counted where they lie in the
//! buffer, never copied. An asynchronous client that is waited for costs several times as much for a point query.
//! Source: PostgreSQL's documentation, "Frontend/Backend Protocol".

mod login;
mod said;
mod wire;

use crate::address::Address;
use crate::connection::{Answer, Refused, Value};
use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use said::Said;
use std::error::Error;
use wire::{Wire, cells, command_rows, oids};

pub(crate) struct Client {
    wire: Wire,
    /// Statements that were prepared: their names are numbers.
    prepared: u64,
}

pub(crate) struct Prepared {
    name: String,
    parameters: Vec<Parameter>,
    returns_rows: bool,
}

/// How a parameter is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Parameter {
    Int2,
    Int4,
    Int8,
    Text,
}

impl Parameter {
    /// The one for a type of the server.
    fn of(oid: u32) -> Result<Parameter, String> {
        match oid {
            21 => Ok(Parameter::Int2),
            23 => Ok(Parameter::Int4),
            20 => Ok(Parameter::Int8),
            // text, bpchar, varchar
            25 | 1042 | 1043 => Ok(Parameter::Text),
            _ => Err(format!("a parameter is of type {oid}: only whole numbers and texts are sent")),
        }
    }
}

type Conversion = Result<IsNull, Box<dyn Error + Sync + Send>>;

fn encode((value, parameter): (&Value<'_>, &Parameter), out: &mut BytesMut) -> Conversion {
    match (value, parameter) {
        (Value::Int(number), Parameter::Int2) => out.put_i16(i16::try_from(*number)?),
        (Value::Int(number), Parameter::Int4) => out.put_i32(i32::try_from(*number)?),
        (Value::Int(number), Parameter::Int8) => out.put_i64(*number),
        (Value::Text(text), Parameter::Text) => out.put_slice(text.as_bytes()),
        _ => return Err(format!("{value:?} cannot be sent as {parameter:?}").into()),
    }
    Ok(IsNull::No)
}

impl Client {
    pub fn open(address: &Address) -> Result<Client, String> {
        let mut wire = Wire::open(address).map_err(|error| error.to_string())?;
        login::login(&mut wire, address)?;
        Ok(Client { wire, prepared: 0 })
    }

    pub fn prepare(&mut self, sql: &str) -> Result<Prepared, String> {
        let name = format!("s{}", self.prepared);
        self.prepared += 1;
        let ask = |out: &mut BytesMut| {
            frontend::parse(&name, sql, [], out)?;
            frontend::describe(b'S', &name, out)
        };
        let (mut parameters, mut returns_rows) = (Vec::new(), false);
        let answered = self.ask(ask, |tag, body| match tag {
            b't' => parameters = oids(body),
            b'T' => returns_rows = true,
            _ => {}
        });
        answered.map_err(|refused| refused.text)?;
        let parameters = parameters.into_iter().map(Parameter::of).collect::<Result<_, _>>()?;
        Ok(Prepared { name, parameters, returns_rows })
    }

    pub fn close(&mut self, prepared: &Prepared) -> Result<(), String> {
        let close = |out: &mut BytesMut| frontend::close(b'S', &prepared.name, out);
        self.ask(close, |_, _| ()).map_err(|refused| refused.text)
    }

    pub fn execute(&mut self, prepared: &Prepared, values: &[Value<'_>]) -> Result<Answer, Refused> {
        if values.len() != prepared.parameters.len() {
            let (has, given) = (prepared.parameters.len(), values.len());
            return Err(Refused::of(format!("the statement has {has} parameters, and {given} were given")));
        }
        let ask = |out: &mut BytesMut| {
            let parameters = values.iter().zip(&prepared.parameters);
            // One format for all parameters, and one for all columns: binary.
            let bound = frontend::bind("", &prepared.name, [1], parameters, encode, [1], out);
            bound.map_err(|error| match error {
                frontend::BindError::Conversion(why) => std::io::Error::other(why),
                frontend::BindError::Serialization(error) => error,
            })?;
            frontend::execute("", 0, out)
        };
        let mut answer = Answer::default();
        let mut changed = 0;
        self.ask(ask, |tag, body| match tag {
            b'D' => {
                answer.rows += 1;
                // Without the number of columns.
                answer.bytes += body.len().saturating_sub(2) as u64;
            }
            b'C' => changed = command_rows(body),
            _ => {}
        })?;
        if !prepared.returns_rows {
            answer.rows = changed;
        }
        Ok(answer)
    }

    pub fn run(&mut self, sql: &str) -> Result<(), String> {
        self.text(sql, |_, _| ())
    }

    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, String> {
        let mut rows = Vec::new();
        self.text(sql, |tag, body| {
            if tag == b'D' {
                rows.push(cells(body));
            }
        })?;
        Ok(rows)
    }

    /// Runs statements as text.
    fn text(&mut self, sql: &str, see: impl FnMut(u8, &[u8])) -> Result<(), String> {
        self.wire.begin();
        let sent = frontend::query(sql, self.wire.out()).and_then(|()| self.wire.send());
        sent.map_err(|error| error.to_string())?;
        self.answered(see).map_err(|refused| refused.text)
    }

    /// Sends what `write` makes with a Sync after it, and reads what comes back.
    fn ask(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
        see: impl FnMut(u8, &[u8]),
    ) -> Result<(), Refused> {
        self.wire.begin();
        // Nothing is sent of messages that cannot be made.
        write(self.wire.out()).map_err(|error| Refused::of(error.to_string()))?;
        frontend::sync(self.wire.out());
        self.wire.send().map_err(|error| Refused::of(error.to_string()))?;
        self.answered(see)
    }

    /// Shows `see` every message until the server is ready again; an error that it reported on the way is handed back then.
    fn answered(&mut self, mut see: impl FnMut(u8, &[u8])) -> Result<(), Refused> {
        let mut said: Option<Said> = None;
        loop {
            match self.wire.next() {
                Ok((b'Z', _)) => return said.map_or(Ok(()), |said| Err(said.refused())),
                Ok((b'E', body)) => said = Some(said.unwrap_or_else(|| Said::read(body))),
                Ok((tag, body)) => see(tag, body),
                // A server that ends says why, and closes the connection.
                Err(error) => {
                    return Err(said.map_or_else(|| Refused::of(error.to_string()), Said::refused));
                }
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.wire.begin();
        frontend::terminate(self.wire.out());
        // A connection that is broken is closed all the same.
        let _ = self.wire.send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sent_in_the_width_of_their_column() {
        let sent = |value: Value<'_>, parameter| {
            let mut out = BytesMut::new();
            encode((&value, &parameter), &mut out).map(|_| out.to_vec()).map_err(|error| error.to_string())
        };
        assert_eq!(sent(Value::Int(258), Parameter::Int2), Ok(vec![1, 2]));
        assert_eq!(sent(Value::Int(-1), Parameter::Int4), Ok(vec![255; 4]));
        assert_eq!(sent(Value::Int(1), Parameter::Int8), Ok(vec![0, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(sent(Value::Text("ab"), Parameter::Text), Ok(b"ab".to_vec()));
        assert!(sent(Value::Int(1 << 40), Parameter::Int4).is_err());
        assert!(sent(Value::Text("1"), Parameter::Int4).unwrap_err().contains("cannot be sent as Int4"));
        assert_eq!(Parameter::of(1043), Ok(Parameter::Text));
        assert!(Parameter::of(1114).unwrap_err().contains("type 1114"));
    }
}
