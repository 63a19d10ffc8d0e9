//! `load ADDRESS small|large|stream CONNECTIONS SECONDS`: keeps that many connections busy, one request after the
//! other on each, for half a second unmeasured and then for that long. Prints one line of JSON:
//!
//! `{"requests":…,"rate":…,"p50_us":…,"p99_us":…,"first_byte_p50_us":…}`
//!
//! `rate` is per second; the first byte is the first one of the response's body. A response that is not 200 or breaks
//! off ends the run with an error.

#![allow(clippy::print_stdout, reason = "its result goes to standard output")]

use std::error::Error;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use gatehook_bench::exchange::Exchange;
use gatehook_bench::message::Message;
use gatehook_bench::ready::{Connection, Ready};

const WARM_UP: Duration = Duration::from_millis(500);
const USAGE: &str = "usage: load ADDRESS small|large|stream CONNECTIONS SECONDS";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, exchange, connections, seconds] = arguments.as_slice() else { return Err(USAGE.into()) };
    let address: SocketAddr = address.parse()?;
    let body = Exchange::named(exchange).ok_or(USAGE)?.request();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    let measured = Load::open(address, request, connections.parse()?)?.run(seconds)?;
    println!("{}", measured.json(seconds));
    Ok(())
}

struct Load {
    request: Vec<u8>,
    ready: Ready,
    clients: Vec<Client>,
}

struct Client {
    connection: Connection,
    sent: Instant,
    first_byte: Option<Instant>,
}

#[derive(Default)]
struct Measured {
    whole: Vec<Duration>,
    first_byte: Vec<Duration>,
}

impl Load {
    fn open(address: SocketAddr, request: String, connections: usize) -> Result<Self, Box<dyn Error>> {
        let ready = Ready::new()?;
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            let connection = Connection::new(TcpStream::connect(address)?)?;
            ready.watch(&connection.socket, number)?;
            clients.push(Client { connection, sent: Instant::now(), first_byte: None });
        }
        Ok(Self { request: request.into_bytes(), ready, clients })
    }

    fn run(mut self, measure: Duration) -> Result<Measured, Box<dyn Error>> {
        let mut measured = Measured::default();
        for client in &mut self.clients {
            client.send(&self.request)?;
        }
        let start = Instant::now() + WARM_UP;
        loop {
            for number in self.ready.wait()? {
                let Some(client) = self.clients.get_mut(number) else { continue };
                let Some((whole, first_byte)) = client.receive()? else { continue };
                if client.sent >= start {
                    measured.whole.push(whole);
                    measured.first_byte.push(first_byte);
                }
                client.send(&self.request)?;
            }
            if start.elapsed() >= measure {
                return Ok(measured);
            }
        }
    }
}

impl Client {
    fn send(&mut self, request: &[u8]) -> std::io::Result<()> {
        self.sent = Instant::now();
        self.first_byte = None;
        self.connection.socket.write_all(request)
    }

    /// Reads once; how long the response and its first byte took, when this was its end.
    fn receive(&mut self) -> Result<Option<(Duration, Duration)>, Box<dyn Error>> {
        if !self.connection.read()? {
            return Err("the connection was closed".into());
        }
        let received = &self.connection.received;
        let Some(message) = Message::at_start(received) else { return Ok(None) };
        if !received.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(received).into());
        }
        let now = Instant::now();
        if self.first_byte.is_none() && received.len() > message.head {
            self.first_byte = Some(now);
        }
        let Some(length) = message.length else { return Ok(None) };
        if received.len() != length {
            return Err("more was answered than was asked".into());
        }
        self.connection.received.clear();
        Ok(Some((now - self.sent, self.first_byte.unwrap_or(now) - self.sent)))
    }
}

impl Measured {
    fn json(mut self, seconds: Duration) -> String {
        let requests = self.whole.len();
        let rate = requests as f64 / seconds.as_secs_f64();
        let (p50, p99) = (percentile(&mut self.whole, 50), percentile(&mut self.whole, 99));
        let first_byte = percentile(&mut self.first_byte, 50);
        format!(
            r#"{{"requests":{requests},"rate":{rate:.1},"p50_us":{p50:.1},"p99_us":{p99:.1},"first_byte_p50_us":{first_byte:.1}}}"#
        )
    }
}

/// In microseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times.get(times.len() * percent / 100).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}
