//! A non-blocking TCP stream that keeps the kernel's receive time of the bytes that it read last.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::sockopt::Timestamping;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, RecvMsg, TimestampingFlag, Timestamps, recvmsg, setsockopt};
use nix::sys::time::TimeValLike;
use tickpath_clock::{Clock, HostClock, utc_ns};

/// Stamps of a frame's arrival, in ticks of the host's clock.
///
/// Both belong to the read that brought the frame's last byte. A single read may bring several packets and frames: all
/// of these frames have the stamps of the last packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameArrival {
    /// Receive time in the kernel; zero if the kernel gives none.
    pub wire: u64,
    /// Return of the call that read the bytes.
    pub read: u64,
}

/// A non-blocking TCP stream, which stamps what it reads and writes.
pub struct TimedStream {
    transport: Transport,
    clock: HostClock,
    /// Room for the kernel's times; on the heap, where it is aligned.
    control: Vec<u8>,
    last: FrameArrival,
    /// Begin of the last write, in ticks.
    last_ready: u64,
}

enum Transport {
    Tcp(TcpStream),
    Memory(Box<MemoryPipe>),
}

/// Bytes in place of a socket's.
pub(crate) struct MemoryPipe {
    pub(crate) incoming: VecDeque<u8>,
    pub(crate) outgoing: Vec<u8>,
    /// Stands for the socket, where there must be one.
    null: File,
}

impl TimedStream {
    /// Makes a stream whose other side is this thread.
    pub(crate) fn in_memory(clock: HostClock) -> io::Result<Self> {
        let (incoming, outgoing, null) = (VecDeque::new(), Vec::new(), File::open("/dev/null")?);
        let transport = Transport::Memory(Box::new(MemoryPipe { incoming, outgoing, null }));
        Ok(Self { transport, clock, control: cmsg_space!(Timestamps), last: FrameArrival::default(), last_ready: 0 })
    }

    /// Returns the bytes of a stream in memory; none of a socket.
    pub(crate) fn memory(&mut self) -> Option<&mut MemoryPipe> {
        match &mut self.transport {
            Transport::Tcp(_) => None,
            Transport::Memory(pipe) => Some(pipe),
        }
    }

    /// Wraps a non-blocking stream. A kernel that has no receive times is no error: their stamps are zero.
    pub fn new(tcp: TcpStream, clock: HostClock) -> Self {
        let wanted = TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        let _ = setsockopt(&tcp, Timestamping, &wanted);
        Self {
            transport: Transport::Tcp(tcp),
            clock,
            control: cmsg_space!(Timestamps),
            last: FrameArrival::default(),
            last_ready: 0,
        }
    }

    /// Returns the stamps of the last read that brought bytes.
    #[inline]
    pub fn arrival(&self) -> FrameArrival {
        self.last
    }

    /// Returns the begin of the last write, in ticks; zero before the first.
    #[inline]
    pub fn last_ready(&self) -> u64 {
        self.last_ready
    }

    /// Returns the time of the stream's clock.
    #[inline]
    pub(crate) fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    /// Ends the output.
    pub fn finish(&self) -> io::Result<()> {
        match &self.transport {
            Transport::Tcp(tcp) => tcp.shutdown(Shutdown::Write),
            Transport::Memory(_) => Ok(()),
        }
    }
}

impl Read for TimedStream {
    #[inline]
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let (bytes, kernel_ns) = match &mut self.transport {
            Transport::Tcp(tcp) => receive(tcp, room, &mut self.control)?,
            Transport::Memory(pipe) if pipe.incoming.is_empty() => return Err(io::ErrorKind::WouldBlock.into()),
            Transport::Memory(pipe) => (pipe.incoming.read(room)?, None),
        };
        if bytes > 0 {
            let read = self.clock.ticks();
            // The kernel's time follows the steps of UTC; its age does not, and is subtracted from the ticks of now.
            let age_ns = kernel_ns.map(|ns| utc_ns().saturating_sub(ns));
            let wire = age_ns.map_or(0, |ns| read.saturating_sub(self.clock.calibration().ticks_of_ns(ns)));
            self.last = FrameArrival { wire, read };
        }
        Ok(bytes)
    }
}

/// Without `write_vectored`: the standard library's would raise SIGPIPE on a closed connection, `write` does not.
impl Write for TimedStream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.last_ready = self.clock.ticks();
        let tcp = match &mut self.transport {
            Transport::Tcp(tcp) => tcp,
            Transport::Memory(pipe) => return pipe.outgoing.write(bytes),
        };
        loop {
            match tcp.write(bytes) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TimedStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.transport {
            Transport::Tcp(tcp) => tcp.as_fd(),
            Transport::Memory(pipe) => pipe.null.as_fd(),
        }
    }
}

/// Reads from a socket. Returns the number of bytes, and the kernel's time of them if it has any.
#[inline]
fn receive(tcp: &TcpStream, room: &mut [u8], control: &mut Vec<u8>) -> io::Result<(usize, Option<u64>)> {
    let mut rooms = [IoSliceMut::new(room)];
    loop {
        match recvmsg::<()>(tcp.as_raw_fd(), &mut rooms, Some(&mut *control), MsgFlags::MSG_DONTWAIT) {
            Ok(message) => return Ok((message.bytes, kernel_time_ns(&message))),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Returns the receive time in the kernel, in nanoseconds since the Unix epoch.
#[inline]
fn kernel_time_ns(message: &RecvMsg<'_, '_, ()>) -> Option<u64> {
    let times = message.cmsgs().ok()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampsns(times) => Some(times),
        _ => None,
    })?;
    u64::try_from(times.system.num_nanoseconds()).ok().filter(|ns| *ns > 0)
}
