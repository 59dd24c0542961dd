//! One connection, whatever it came over.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
        })
    }

    /// Both directions get the limit: a peer that stops reading holds a thread as one that stops writing does.
    pub(crate) fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(limit))?;
                socket.set_write_timeout(Some(limit))
            }
            Self::Unix(socket) => {
                socket.set_read_timeout(Some(limit))?;
                socket.set_write_timeout(Some(limit))
            }
        }
    }

    /// Ends one or both directions; a connection that is gone already needs no ending.
    pub(crate) fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(how),
            Self::Unix(socket) => socket.shutdown(how),
        };
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.flush(),
            Self::Unix(socket) => socket.flush(),
        }
    }
}
