//! Senders of another machine: what is asked of them goes over TCP, and is done there on its device.
//!
//! A question and an answer are each a length of four bytes and so many bytes; of these the first is the question's word,
//! or 0 for an answer and 1 for a complaint. All numbers are big-endian. Only SENDs are not waited for: what becomes of
//! them is said with the next answer.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::Senders;
use super::senders::{LocalSenders, Place};
use crate::port::PortError;

/// See the module.
#[derive(Debug)]
pub struct RemoteSenders {
    name: String,
    socket: TcpStream,
}

impl RemoteSenders {
    /// Where [`serve`] listens, or soon will.
    ///
    /// # Errors
    /// Nobody listens there in time: a text.
    pub fn connect(address: &str) -> Result<Self, String> {
        let start = Instant::now();
        loop {
            let tried = resolve(address).and_then(|to| TcpStream::connect_timeout(&to, PATIENCE));
            match tried.and_then(|socket| socket.set_nodelay(true).map(|()| socket)) {
                Ok(socket) => return Ok(Self { name: address.to_owned(), socket }),
                Err(error) if start.elapsed() > PATIENCE => {
                    return Err(format!("no senders at {address}: {error}"));
                }
                Err(_) => std::thread::yield_now(),
            }
        }
    }

    fn say(&mut self, word: u8, sender: u8, rest: &[u8]) -> Result<(), PortError> {
        write_frame(&mut self.socket, &[&[word, sender], rest].concat()).map_err(lost)
    }

    fn ask(&mut self, word: u8, sender: u8, rest: &[u8]) -> Result<Answer, PortError> {
        self.say(word, sender, rest)?;
        let answer = read_frame(&mut self.socket).map_err(lost)?.unwrap_or_default();
        match answer.split_first() {
            Some((0, rest)) => Ok(Answer(rest.to_vec())),
            Some((_, complaint)) => Err(PortError(String::from_utf8_lossy(complaint).into_owned())),
            None => Err(PortError("the senders are gone".to_owned())),
        }
    }
}

impl Drop for RemoteSenders {
    fn drop(&mut self) {
        let _gone = self.socket.shutdown(Shutdown::Both);
    }
}

impl Senders for RemoteSenders {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn add(&mut self, sender: u8) -> Result<Place, PortError> {
        let mut answer = self.ask(ADD, sender, &[])?;
        answer.place()
    }

    fn connect(&mut self, sender: u8, to: Place) -> Result<(), PortError> {
        self.ask(CONNECT, sender, &bytes_of(&to)).map(|_| ())
    }

    fn send(&mut self, sender: u8, bytes: &[u8], immediate: Option<u32>) -> Result<(), PortError> {
        let head =
            [&[u8::from(immediate.is_some())], &immediate.unwrap_or_default().to_be_bytes()[..]].concat();
        self.say(SEND, sender, &[&head, bytes].concat())
    }

    fn sent(&mut self, sender: u8) -> Result<usize, PortError> {
        let count = u32::from_be_bytes(self.ask(SENT, sender, &[])?.take()?);
        Ok(count as usize)
    }

    fn source(&mut self, sender: u8, bytes: &[u8]) -> Result<u64, PortError> {
        Ok(u64::from_be_bytes(self.ask(SOURCE, sender, bytes)?.take()?))
    }

    fn received(&mut self, sender: u8) -> Result<Vec<Vec<u8>>, PortError> {
        let mut answer = self.ask(RECEIVED, sender, &[])?;
        let mut received = Vec::new();
        while !answer.0.is_empty() {
            let length = u32::from_be_bytes(answer.take()?) as usize;
            received.push(answer.0.drain(..length.min(answer.0.len())).collect());
        }
        Ok(received)
    }

    fn clear(&mut self) -> Result<(), PortError> {
        self.ask(CLEAR, 0, &[]).map(|_| ())
    }
}

/// Do what one who connects asks for, until he goes.
///
/// # Errors
/// Nobody could connect, or he said what means nothing: a text.
pub fn serve(address: &str, senders: &mut LocalSenders) -> Result<(), String> {
    let failed = |error: io::Error| format!("{address}: {error}");
    let listener = resolve(address).and_then(TcpListener::bind).map_err(failed)?;
    let (mut socket, _) = listener.accept().map_err(failed)?;
    socket.set_nodelay(true).map_err(failed)?;
    // What became of SENDs that nobody waited for.
    let mut refused: Option<PortError> = None;
    while let Some(question) = read_frame(&mut socket).map_err(failed)? {
        let (Some(&word), Some(&sender)) = (question.first(), question.get(1)) else {
            return Err(format!("{address}: a question without a word"));
        };
        let done = answer(senders, word, sender, Answer(question.get(2..).unwrap_or_default().to_vec()));
        if word == SEND {
            refused = refused.or(done.err());
            continue;
        }
        let said = match refused.take().map_or(done, Err) {
            Ok(answer) => [&[0], &answer[..]].concat(),
            Err(complaint) => [&[1], complaint.0.as_bytes()].concat(),
        };
        write_frame(&mut socket, &said).map_err(failed)?;
    }
    Ok(())
}

fn answer(senders: &mut LocalSenders, word: u8, sender: u8, mut rest: Answer) -> Result<Vec<u8>, PortError> {
    Ok(match word {
        ADD => bytes_of(&senders.add(sender)?),
        CONNECT => senders.connect(sender, rest.place()?).map(|()| Vec::new())?,
        SEND => {
            let [has_immediate] = rest.take()?;
            let immediate = u32::from_be_bytes(rest.take()?);
            senders.send(sender, &rest.0, (has_immediate != 0).then_some(immediate))?;
            Vec::new()
        }
        SENT => u32::try_from(senders.sent(sender)?).unwrap_or(u32::MAX).to_be_bytes().to_vec(),
        SOURCE => senders.source(sender, &rest.0)?.to_be_bytes().to_vec(),
        RECEIVED => {
            let mut all = Vec::new();
            for received in senders.received(sender)? {
                all.extend_from_slice(&u32::try_from(received.len()).unwrap_or(u32::MAX).to_be_bytes());
                all.extend_from_slice(&received);
            }
            all
        }
        CLEAR => senders.clear().map(|()| Vec::new())?,
        _ => return Err(PortError(format!("the senders do not know word {word}"))),
    })
}

/// What is left of one.
struct Answer(Vec<u8>);

impl Answer {
    fn take<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], PortError> {
        let Some((taken, rest)) = self.0.split_first_chunk() else {
            return Err(PortError("the senders said too little".to_owned()));
        };
        let (taken, rest) = (*taken, rest.to_vec());
        self.0 = rest;
        Ok(taken)
    }

    fn place(&mut self) -> Result<Place, PortError> {
        let qp = u32::from_be_bytes(self.take()?);
        let gid = self.take()?;
        Ok(Place { qp, gid, key: u32::from_be_bytes(self.take()?) })
    }
}

fn bytes_of(place: &Place) -> Vec<u8> {
    [&place.qp.to_be_bytes()[..], &place.gid, &place.key.to_be_bytes()].concat()
}

fn resolve(address: &str) -> io::Result<std::net::SocketAddr> {
    let none = || io::Error::new(io::ErrorKind::InvalidInput, "no address");
    address.to_socket_addrs()?.next().ok_or_else(none)
}

fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    to.write_all(&[&length.to_be_bytes(), bytes].concat())
}

/// `None`: the other side has gone.
fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_be_bytes(length);
    if length > FRAME_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

fn lost(error: io::Error) -> PortError {
    PortError(format!("the senders are lost: {error}"))
}

const ADD: u8 = 1;
const CONNECT: u8 = 2;
const SEND: u8 = 3;
const SENT: u8 = 4;
const SOURCE: u8 = 5;
const RECEIVED: u8 = 6;
const CLEAR: u8 = 7;
const FRAME_MAX: u32 = 1 << 20;
/// How long a machine may take to come up after another.
const PATIENCE: Duration = Duration::from_secs(60);
