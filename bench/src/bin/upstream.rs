//! `upstream WORD`: an inference server, or webhook, that answers every request alike, as
//! [`Exchange`] says of the word. Prints its address, then serves until it is ended.

#![allow(clippy::print_stdout, reason = "its address goes to standard output")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Instant;

use gatehook_bench::exchange::{Answer, Exchange, Pace};
use gatehook_bench::message::request;
use gatehook_bench::ready::{Alarm, Connection, Ready};
use gatehook_bench::stream::{HEAD, chunk, now};

/// The number of the listener.
const LISTENER: usize = 0;
/// The number of the alarm; connections count from the next one.
const ALARM: usize = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let exchange = Exchange::named(&word).ok_or_else(|| format!("usage: upstream {}", Exchange::words()))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?);
    Upstream::new(listener, exchange.answer())?.serve()?;
    Ok(())
}

struct Upstream {
    listener: TcpListener,
    ready: Ready,
    alarm: Alarm,
    answer: Answer,
    connections: HashMap<usize, Connection>,
    next: usize,
    /// The next frame of each stream that is under way.
    due: BinaryHeap<Reverse<Due>>,
}

/// A frame that is to leave, the earliest the least.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    connection: usize,
    frame: usize,
}

impl Upstream {
    fn new(listener: TcpListener, answer: Answer) -> io::Result<Self> {
        let (ready, alarm) = (Ready::new()?, Alarm::new()?);
        ready.watch(&listener, LISTENER)?;
        ready.watch(&alarm, ALARM)?;
        let (connections, due) = (HashMap::new(), BinaryHeap::new());
        Ok(Self { listener, ready, alarm, answer, connections, next: ALARM + 1, due })
    }

    fn serve(mut self) -> io::Result<()> {
        loop {
            for number in self.ready.wait()? {
                match number {
                    LISTENER => self.accept()?,
                    ALARM => self.alarm.heard()?,
                    _ if self.read(number).unwrap_or(false) => {}
                    _ => drop(self.connections.remove(&number)),
                }
            }
            self.send_due()?;
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        let connection = Connection::new(self.listener.accept()?.0)?;
        self.ready.watch(&connection.socket, self.next)?;
        self.connections.insert(self.next, connection);
        self.next += 1;
        Ok(())
    }

    /// Answers every request that is complete, or begins to; `false` once the connection has ended.
    fn read(&mut self, number: usize) -> io::Result<bool> {
        let Some(connection) = self.connections.get_mut(&number) else { return Ok(true) };
        if !connection.read()? {
            return Ok(false);
        }
        while let Some(length) = request(&connection.received) {
            connection.received.drain(..length);
            match &self.answer {
                Answer::Whole(response) => connection.socket.write_all(response)?,
                Answer::Paced(pace) => {
                    let first = format!("{HEAD}{}", chunk(0, pace.frames, now()));
                    connection.socket.write_all(first.as_bytes())?;
                    self.due.push(Reverse(Due { at: Instant::now() + pace.every, connection: number, frame: 1 }));
                }
            }
        }
        Ok(true)
    }

    /// Sends what is due by now, and sets the alarm for what comes next.
    fn send_due(&mut self) -> io::Result<()> {
        let Answer::Paced(pace) = self.answer else { return Ok(()) };
        while let Some(Reverse(Due { at, connection, frame })) = self
            .due
            .peek_mut()
            .and_then(|due| (due.0.at <= Instant::now()).then(|| std::collections::binary_heap::PeekMut::pop(due)))
        {
            // A client that has gone needs no more frames.
            let Some(open) = self.connections.get_mut(&connection) else { continue };
            if send(open, frame, pace).is_err() {
                self.connections.remove(&connection);
            } else if frame + 1 < pace.frames {
                self.due.push(Reverse(Due { at: at + pace.every, connection, frame: frame + 1 }));
            }
        }
        match self.due.peek() {
            Some(Reverse(due)) => self.alarm.set(due.at),
            None => Ok(()),
        }
    }
}

fn send(connection: &mut Connection, frame: usize, pace: Pace) -> io::Result<()> {
    connection.socket.write_all(chunk(frame, pace.frames, now()).as_bytes())
}
