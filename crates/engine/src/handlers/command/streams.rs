//! The three pipes of a running command.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use bytes::buf::Chain;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use rustix::fs::{OFlags, fcntl_setfl};
use tokio::net::unix::pipe::{Receiver, Sender};

/// Bytes a command may write to each of stdout and stderr.
pub(super) const OUTPUT_LIMIT: usize = 1 << 20;

const FIRST_READ: usize = 8 << 10;

/// What is still to be written to stdin. A command that does not read it is fine.
pub(super) struct Feed {
    pipe: Sender,
    rest: Chain<Bytes, Bytes>,
}

impl Feed {
    /// Writes what the pipe takes at once; a line that fits costs no registration with the runtime.
    pub(super) fn start(pipe: OwnedFd, line: Bytes) -> io::Result<Option<Self>> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let mut rest = line.chain(Bytes::from_static(b"\n"));
        let mut slices = [IoSlice::new(&[]); 2];
        let count = rest.chunks_vectored(&mut slices);
        match rustix::io::writev(&pipe, slices.get(..count).unwrap_or_default()) {
            Ok(written) => rest.advance(written),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(_nobody_reads) => return Ok(None),
        }
        if rest.has_remaining() {
            Ok(Some(Self { pipe: Sender::from_owned_fd_unchecked(pipe)?, rest }))
        } else {
            Ok(None)
        }
    }

    /// Writes more, and closes stdin at the end. Waits for ever once that is done. Cancel safe.
    pub(super) async fn go_on(feed: &mut Option<Self>) {
        let Some(Self { pipe, rest }) = feed else { return std::future::pending().await };
        let more = match pipe.writable().await {
            Ok(()) => {
                let mut slices = [IoSlice::new(&[]); 2];
                let count = rest.chunks_vectored(&mut slices);
                match pipe.try_write_vectored(slices.get(..count).unwrap_or_default()) {
                    Ok(written) => {
                        rest.advance(written);
                        rest.has_remaining()
                    }
                    Err(error) => error.kind() == io::ErrorKind::WouldBlock,
                }
            }
            Err(_) => false,
        };
        if !more {
            *feed = None;
        }
    }
}

/// What a command wrote to stdout or stderr.
pub(super) struct Capture {
    pipe: Option<Receiver>,
    pub(super) data: BytesMut,
    /// Bytes it may have; [`OUTPUT_LIMIT`] unless it is set.
    pub(super) limit: usize,
}

impl Capture {
    pub(super) fn new(pipe: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Self { pipe: Some(Receiver::from_owned_fd_unchecked(pipe)?), data: BytesMut::new(), limit: OUTPUT_LIMIT })
    }

    /// One of nothing.
    pub(super) fn closed() -> Self {
        Self { pipe: None, data: BytesMut::new(), limit: OUTPUT_LIMIT }
    }

    /// Nobody holds the other end any more.
    pub(super) fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    pub(super) fn is_over_limit(&self) -> bool {
        self.data.len() > self.limit
    }

    /// Waits for bytes and takes them. Waits for ever once the pipe is closed. Cancel safe.
    pub(super) async fn fill(&mut self) {
        let Some(pipe) = &self.pipe else { return std::future::pending().await };
        if pipe.readable().await.is_err() {
            self.pipe = None;
        }
        self.read();
    }

    /// Takes what is there, up to one byte over the limit, and waits for nothing.
    pub(super) fn drain(&mut self) {
        while !self.is_over_limit() && self.read() {}
    }

    /// Hands on what was taken, and forgets it.
    pub(super) fn hand_on(&mut self, into: &mut (dyn FnMut(&[u8]) + Send)) {
        if !self.data.is_empty() {
            into(&self.data);
            self.data.clear();
        }
    }

    /// Forgets what is over the limit, so that the writer can go on.
    pub(super) fn discard_excess(&mut self) {
        self.data.truncate(self.limit);
    }

    /// Takes one read's worth; false where nothing was there.
    fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        let room = (self.limit + 1).saturating_sub(self.data.len());
        self.data.reserve(room.min(FIRST_READ));
        match pipe.try_read_buf(&mut (&mut self.data).limit(room)) {
            Ok(0) => self.pipe = None,
            Ok(_) => return true,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.pipe = None,
        }
        false
    }
}
