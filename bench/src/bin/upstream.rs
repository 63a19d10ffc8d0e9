//! `upstream small|large|stream|hook`: an inference server, or webhook, that answers every request alike, at once.
//! Prints its address, then serves until it is ended.

#![allow(clippy::print_stdout, reason = "its address goes to standard output")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};

use gatehook_bench::exchange::Exchange;
use gatehook_bench::message::Message;
use gatehook_bench::ready::{Connection, Ready};

/// The number of the listener; connections count from 1.
const LISTENER: usize = 0;

fn main() -> Result<(), Box<dyn Error>> {
    let word = std::env::args().nth(1).unwrap_or_default();
    let exchange = Exchange::named(&word).ok_or("usage: upstream small|large|stream|hook")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?);
    serve(&listener, &exchange.response())?;
    Ok(())
}

fn serve(listener: &TcpListener, response: &[u8]) -> io::Result<()> {
    let mut ready = Ready::new()?;
    ready.watch(listener, LISTENER)?;
    let mut connections = HashMap::new();
    let mut next = LISTENER + 1;
    loop {
        for number in ready.wait()? {
            if number == LISTENER {
                let connection = Connection::new(listener.accept()?.0)?;
                ready.watch(&connection.socket, next)?;
                connections.insert(next, connection);
                next += 1;
            } else if let Some(connection) = connections.get_mut(&number)
                && !answer(connection, response).unwrap_or(false)
            {
                connections.remove(&number);
            }
        }
    }
}

/// Answers every request that is complete; `false` once the connection has ended.
fn answer(connection: &mut Connection, response: &[u8]) -> io::Result<bool> {
    if !connection.read()? {
        return Ok(false);
    }
    while let Some(Message { length: Some(length), .. }) = Message::at_start(&connection.received) {
        connection.received.drain(..length);
        connection.socket.write_all(response)?;
    }
    Ok(true)
}
