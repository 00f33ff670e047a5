//! Messages on a socket: those of a request go out in one write, those of an answer are shown where they lie in the buffer.

use crate::address::Address;
use bytes::BytesMut;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(30);
/// Bytes that a read asks for at least.
const READ: usize = 16 << 10;
/// No message is longer: PostgreSQL's own limit of a row.
const LONGEST: usize = 1 << 30;

trait Socket: Read + Write + Send {}
impl Socket for UnixStream {}
impl Socket for TcpStream {}

pub(super) struct Wire {
    socket: Box<dyn Socket>,
    out: BytesMut,
    /// Bytes that were read; those from `at` to `end` are not shown yet.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl Wire {
    pub fn open(address: &Address) -> io::Result<Wire> {
        let socket: Box<dyn Socket> = match &address.socket {
            Some(dir) => Box::new(UnixStream::connect(dir.join(format!(".s.PGSQL.{}", address.port)))?),
            None => Box::new(connect(&address.host, address.port)?),
        };
        Ok(Wire::on(socket))
    }

    fn on(socket: Box<dyn Socket>) -> Wire {
        Wire { socket, out: BytesMut::with_capacity(READ), buffer: vec![0; READ], at: 0, end: 0 }
    }

    /// Forgets what was to be sent.
    pub fn begin(&mut self) {
        self.out.clear();
    }

    /// Where messages are put together.
    pub fn out(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Sends what was put together.
    pub fn send(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.out)
    }

    /// The next message: its kind, and what is in it.
    pub fn next(&mut self) -> io::Result<(u8, &[u8])> {
        /// Bytes of the kind and the length.
        const HEAD: usize = 5;
        self.fill(HEAD)?;
        let tag = self.buffer[self.at];
        let length = number(&self.buffer[self.at + 1..]) as usize;
        if !(4..=LONGEST).contains(&length) {
            return Err(io::Error::other(format!("a message of {length} bytes: this is no PostgreSQL")));
        }
        self.fill(1 + length)?;
        let body = self.at + HEAD..self.at + 1 + length;
        self.at = body.end;
        Ok((tag, &self.buffer[body]))
    }

    /// Reads until `wanted` bytes are there.
    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        while self.end - self.at < wanted {
            if self.at == self.end {
                (self.at, self.end) = (0, 0);
            } else if self.at + wanted > self.buffer.len() {
                self.buffer.copy_within(self.at..self.end, 0);
                (self.at, self.end) = (0, self.end - self.at);
            }
            if self.at + wanted > self.buffer.len() {
                self.buffer.resize((self.at + wanted).max(2 * self.buffer.len()), 0);
            }
            match self.socket.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server closed the connection",
                    ));
                }
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The first address of `host` that takes a connection.
fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A big-endian number of four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_be_bytes(*four))
}

/// The types of a statement's parameters.
pub(super) fn oids(body: &[u8]) -> Vec<u32> {
    body.get(2..).unwrap_or_default().chunks_exact(4).map(number).collect()
}

/// Rows that a command says it changed: the last number of its tag, such as `INSERT 0 3`.
pub(super) fn command_rows(body: &[u8]) -> u64 {
    let digits = body.strip_suffix(&[0]).unwrap_or(body).rsplit(|byte| *byte == b' ').next();
    digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

/// The columns of a row, as text.
pub(super) fn cells(body: &[u8]) -> Vec<Option<String>> {
    let mut rest = body.get(2..).unwrap_or_default();
    let mut cells = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk() {
        // -1 is NULL.
        let cell = usize::try_from(i32::from_be_bytes(*length)).ok().and_then(|length| tail.get(..length));
        rest = &tail[cell.map_or(0, <[u8]>::len)..];
        cells.push(cell.map(|text| String::from_utf8_lossy(text).into_owned()));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[tag], length.as_slice(), body].concat()
    }

    #[test]
    fn messages_are_whole_however_the_socket_cuts_them() {
        let long = vec![7; 3 * READ];
        let sent = [message(b'D', &long), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat();
        for cut in [1, 4, 6, READ - 1, READ, sent.len() - 2] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let mut wire = Wire::on(Box::new(ours));
            let sent = sent.clone();
            let writer = std::thread::spawn(move || {
                sent.chunks(cut).for_each(|part| theirs.write_all(part).unwrap());
            });
            assert_eq!(wire.next().unwrap(), (b'D', long.as_slice()));
            assert_eq!(wire.next().unwrap(), (b'C', b"SELECT 1\0".as_slice()));
            assert_eq!(wire.next().unwrap(), (b'Z', b"I".as_slice()));
            writer.join().unwrap();
            assert!(wire.next().unwrap_err().to_string().contains("closed the connection"));
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused() {
        for length in [3_u32, u32::MAX] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            theirs.write_all(&[b"D".as_slice(), &length.to_be_bytes()].concat()).unwrap();
            assert!(Wire::on(Box::new(ours)).next().unwrap_err().to_string().contains("no PostgreSQL"));
        }
    }

    #[test]
    fn a_request_goes_out_as_it_was_put_together() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut wire = Wire::on(Box::new(ours));
        wire.out().extend_from_slice(b"forgotten");
        wire.begin();
        wire.out().extend_from_slice(b"sent");
        wire.send().unwrap();
        drop(wire);
        let mut got = String::new();
        theirs.read_to_string(&mut got).unwrap();
        assert_eq!(got, "sent");
    }

    #[test]
    fn bodies_are_read() {
        assert_eq!(oids(&[0, 2, 0, 0, 0, 23, 0, 0, 4, 19]), [23, 1043]);
        assert_eq!(
            [b"INSERT 0 3\0".as_slice(), b"UPDATE 5\0", b"BEGIN\0", b""].map(command_rows),
            [3, 5, 0, 0]
        );
        let row = [0, 2, 0, 0, 0, 1, b'x', 255, 255, 255, 255];
        assert_eq!(cells(&row), [Some("x".to_string()), None]);
        assert_eq!(cells(&[0, 1, 0, 0, 0, 9, b'x']), [None], "a length beyond the message");
    }
}
