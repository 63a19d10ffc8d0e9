//! `load ADDRESS WORD CONNECTIONS SECONDS`: keeps that many connections busy, one request after the other on each, for
//! half a second unmeasured and then for that long. Prints one line of JSON:
//!
//! `{"requests":…,"rate":…,"p50_us":…,"p99_us":…,"first_byte_p50_us":…}`
//!
//! `rate` is per second; the first byte is the first one of the response's body. A response that is not 200, breaks
//! off, or says another text than was sent ends the run with an error.
//!
//! Of streams the line says more: `frames` (all that came, unmeasured ones too), `first_text_p50_us` (from the request
//! to the first frame with text), and where frames leave the upstream one by one, of those with text: `delay_p50_us`,
//! `delay_p99_us`, `delay_max_us` (from leaving the upstream to their arrival) and `together` (the share of them that
//! came in one read with the one before).
//!
//! Paced streams begin evenly over the time that one takes, up to a second, so that few end and begin at once. With `slow` it says `open` and how many
//! streams there are five seconds after the last has begun, and holds them until it is ended.

#![allow(clippy::print_stdout, reason = "its result goes to standard output")]

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gatehook_bench::exchange::Exchange;
use gatehook_bench::ready::{Alarm, Connection, Ready};
use gatehook_bench::response::Response;
use gatehook_bench::stream::{self, Frame};

/// Over which paced streams begin, at most.
const SPREAD: Duration = Duration::from_secs(1);
const WARM_UP: Duration = Duration::from_millis(500);
/// How long streams that stand open have to send some frames.
const OPENING: Duration = Duration::from_secs(5);

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = || format!("usage: load ADDRESS {} CONNECTIONS SECONDS", Exchange::words());
    let [address, exchange, connections, seconds] = arguments.as_slice() else { return Err(usage().into()) };
    let exchange = Exchange::named(exchange).ok_or_else(usage)?;
    let mut load = Load::open(address.parse()?, exchange, connections.parse()?)?;
    if exchange == Exchange::Slow {
        return load.hold();
    }
    let seconds = Duration::from_secs_f64(seconds.parse()?);
    load.run(seconds)?;
    println!("{}", load.measured.json(seconds));
    Ok(())
}

struct Load {
    request: Vec<u8>,
    text: Option<String>,
    /// Between two connections' first requests.
    apart: Duration,
    ready: Ready,
    clients: Vec<Client>,
    measured: Measured,
}

struct Client {
    connection: Connection,
    response: Response,
    sent: Instant,
    first_byte: Option<Instant>,
    first_text: Option<Instant>,
    /// What the model has said so far.
    text: String,
}

#[derive(Default)]
struct Measured {
    whole: Vec<Duration>,
    first_byte: Vec<Duration>,
    first_text: Vec<Duration>,
    frames: usize,
    delays: Vec<Duration>,
    together: usize,
}

impl Load {
    fn open(address: SocketAddr, exchange: Exchange, connections: usize) -> Outcome<Self> {
        let body = exchange.request();
        let head =
            format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n");
        let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes();
        let ready = Ready::new()?;
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            let connection = Connection::new(TcpStream::connect(address)?)?;
            ready.watch(&connection.socket, number)?;
            clients.push(Client::new(connection));
        }
        let text = exchange.frames().map(stream::text);
        let apart = exchange.pace().and_then(|pace| {
            let between = u32::try_from(pace.frames.saturating_sub(1)).ok()?;
            pace.every.saturating_mul(between).min(SPREAD).checked_div(u32::try_from(connections).ok()?)
        });
        let apart = apart.unwrap_or_default();
        Ok(Self { request, text, apart, ready, clients, measured: Measured::default() })
    }

    fn start(&mut self) -> io::Result<()> {
        for client in &mut self.clients {
            client.send(&self.request)?;
            sleep(self.apart);
        }
        Ok(())
    }

    fn run(&mut self, measure: Duration) -> Outcome {
        self.start()?;
        let start = Instant::now() + WARM_UP;
        while start.elapsed() < measure {
            for number in self.ready.wait()? {
                let Some(client) = self.clients.get_mut(number) else { continue };
                let over = client.receive(&mut self.measured, start)?;
                if !over {
                    continue;
                }
                if self.text.as_ref().is_some_and(|text| *text != client.text) {
                    return Err(format!("another text was answered than was sent: {}", client.text).into());
                }
                client.send(&self.request)?;
            }
        }
        Ok(())
    }

    /// Opens every stream, says so, and reads on.
    fn hold(mut self) -> Outcome {
        self.start()?;
        let (start, alarm, opened) = (Instant::now(), Alarm::new()?, self.clients.len());
        self.ready.watch(&alarm, opened)?;
        alarm.set(start + OPENING)?;
        loop {
            for number in self.ready.wait()? {
                let Some(client) = self.clients.get_mut(number) else {
                    alarm.heard()?;
                    println!("open {opened}");
                    continue;
                };
                if client.receive(&mut self.measured, start)? {
                    return Err("a stream has ended".into());
                }
            }
        }
    }
}

impl Client {
    fn new(connection: Connection) -> Self {
        let (response, text) = (Response::default(), String::new());
        Self { connection, response, sent: Instant::now(), first_byte: None, first_text: None, text }
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        self.response.clear();
        self.text.clear();
        (self.first_byte, self.first_text) = (None, None);
        self.sent = Instant::now();
        self.connection.socket.write_all(request)
    }

    /// Reads once; whether this was the response's end. What was sent from `start` on is measured.
    fn receive(&mut self, measured: &mut Measured, start: Instant) -> Outcome<bool> {
        if !self.connection.read()? {
            return Err("the connection was closed".into());
        }
        self.response.take(&mut self.connection.received)?;
        let now = Instant::now();
        if self.first_byte.is_none() && !self.response.body.is_empty() {
            self.first_byte = Some(now);
        }
        self.read_frames(measured, now, start)?;
        if !self.response.is_over() {
            return Ok(false);
        }
        if !self.connection.received.is_empty() {
            return Err("more was answered than was asked".into());
        }
        if self.sent >= start {
            measured.whole.push(now - self.sent);
            measured.first_byte.push(self.first_byte.unwrap_or(now) - self.sent);
            measured.first_text.extend(self.first_text.map(|first| first - self.sent));
        }
        Ok(true)
    }

    fn read_frames(&mut self, measured: &mut Measured, now: Instant, start: Instant) -> Outcome {
        let (mut at, mut in_this_read, arrived) = (0, 0, stream::now());
        while let Some((frame, end)) = Frame::first(self.response.body.get(at..).unwrap_or_default()) {
            at += end;
            measured.frames += 1;
            if frame.text.is_empty() {
                continue;
            }
            self.text.push_str(frame.text);
            in_this_read += 1;
            self.first_text.get_or_insert(now);
            let Some(stamp) = frame.stamp.filter(|_| self.sent >= start) else { continue };
            measured.delays.push(Duration::from_micros(arrived.saturating_sub(stamp)));
            measured.together += usize::from(in_this_read > 1);
        }
        self.response.body.drain(..at);
        Ok(())
    }
}

impl Measured {
    fn json(mut self, seconds: Duration) -> String {
        let requests = self.whole.len();
        let rate = requests as f64 / seconds.as_secs_f64();
        let mut line = format!(r#"{{"requests":{requests},"rate":{rate:.1}"#);
        let mut times = |name: &str, times: &mut Vec<Duration>, percents: &[usize]| {
            times.sort_unstable();
            for percent in percents {
                let place = (times.len() * percent / 100).min(times.len().saturating_sub(1));
                if let Some(time) = times.get(place) {
                    let name = if *percent == 100 { format!("{name}max") } else { format!("{name}p{percent}") };
                    // Writing to a String does not fail.
                    let _ = write!(line, r#","{name}_us":{:.1}"#, time.as_secs_f64() * 1e6);
                }
            }
        };
        times("", &mut self.whole, &[50, 99]);
        times("first_byte_", &mut self.first_byte, &[50]);
        times("first_text_", &mut self.first_text, &[50]);
        times("delay_", &mut self.delays, &[50, 99, 100]);
        if self.frames > 0 {
            let _ = write!(line, r#","frames":{}"#, self.frames);
        }
        if !self.delays.is_empty() {
            let _ = write!(line, r#","together":{:.4}"#, self.together as f64 / self.delays.len() as f64);
        }
        line + "}"
    }
}
