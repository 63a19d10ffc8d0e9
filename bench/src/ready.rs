//! Connections and which of them have something to read.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// Waits for many sockets at once, each known by its number.
pub struct Ready {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

impl Ready {
    /// With no socket yet.
    ///
    /// # Errors
    /// When the system gives no epoll instance.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, events: Vec::with_capacity(256) })
    }

    /// Watches a socket for something to read, until it is closed.
    ///
    /// # Errors
    /// When the system refuses to watch it.
    pub fn watch(&self, socket: &impl AsFd, number: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?)
    }

    /// Waits, and hands back the numbers of sockets that can be read.
    ///
    /// # Errors
    /// When waiting fails for a reason other than a signal.
    pub fn wait(&mut self) -> io::Result<Vec<usize>> {
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.events.drain(..).map(|event| event.data.u64() as usize).collect())
    }
}

/// Something to read at a given time.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// Not set.
    ///
    /// # Errors
    /// When the system gives no timer.
    pub fn new() -> io::Result<Self> {
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)? })
    }

    /// Sets it anew; a time that has passed is now.
    ///
    /// # Errors
    /// When the timer refuses.
    pub fn set(&self, at: Instant) -> io::Result<()> {
        let wait = at.saturating_duration_since(Instant::now());
        // Zero would unset it.
        let wait = Timespec::try_from(wait.max(std::time::Duration::from_nanos(1))).map_err(io::Error::other)?;
        let once = Itimerspec { it_interval: Timespec::default(), it_value: wait };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Takes what there was to read.
    ///
    /// # Errors
    /// When the timer cannot be read.
    pub fn heard(&self) -> io::Result<()> {
        rustix::io::read(&self.timer, &mut [0; 8])?;
        Ok(())
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// One connection and what has come on it so far.
#[derive(Debug)]
pub struct Connection {
    /// The socket, blocking, without Nagle's delay.
    pub socket: TcpStream,
    /// What was read and not yet taken.
    pub received: Vec<u8>,
}

impl Connection {
    /// Takes over a connected socket.
    ///
    /// # Errors
    /// When the socket is gone already.
    pub fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, received: Vec::with_capacity(64 * 1024) })
    }

    /// Reads once what is there; `false` at the end of the stream.
    ///
    /// # Errors
    /// When the connection broke.
    pub fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        let length = self.socket.read(&mut buffer)?;
        self.received.extend_from_slice(buffer.get(..length).unwrap_or_default());
        Ok(length > 0)
    }
}
