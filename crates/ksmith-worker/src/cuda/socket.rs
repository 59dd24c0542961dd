//! One end of the socket pair between judge and device worker: framed JSON, descriptors on the side.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message in bytes: a module image of some MiB as JSON numbers.
const LONGEST: usize = 256 << 20;

/// Descriptors that travel with one message.
const MOST_FDS: usize = 128;

/// One end. Bodies are read and written as files: a compiler's box forbids the calls that only sockets have.
pub(crate) struct Socket(File);

impl Socket {
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Self::from_fd(ours.into()), theirs.into()))
    }

    pub(crate) fn from_fd(fd: OwnedFd) -> Self {
        Self(File::from(fd))
    }

    pub(crate) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = timeout.max(Duration::from_millis(1));
        set_socket_timeout(&self.0, Timeout::Recv, Some(timeout)).map_err(io::Error::from)
    }

    /// Sends a message and the descriptors that belong to it, in groups of at most 128.
    pub(crate) fn send<M: Serialize>(&mut self, message: &M, fds: &[OwnedFd]) -> io::Result<()> {
        let body = serde_json::to_vec(message)?;
        let header = [body.len() as u32, fds.len() as u32];
        let bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.0.write_all(&bytes)?;
        self.0.write_all(&body)?;
        for group in fds.chunks(MOST_FDS) {
            let borrowed: Vec<BorrowedFd<'_>> = group.iter().map(AsFd::as_fd).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
                return Err(io::Error::other("too many descriptors in one message"));
            }
            sendmsg(
                &self.0,
                &[IoSlice::new(&[0])],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            )?;
        }
        Ok(())
    }

    /// Receives a message and its descriptors.
    pub(crate) fn receive<M: DeserializeOwned>(&mut self) -> io::Result<(M, Vec<OwnedFd>)> {
        let mut header = [0u8; 8];
        self.0.read_exact(&mut header)?;
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]) as usize
        };
        let (length, count) = (word(0), word(4));
        if length > LONGEST || count > 4096 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a message of impossible size",
            ));
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        let mut fds = Vec::with_capacity(count);
        while fds.len() < count {
            let mut byte = [0u8];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let received = recvmsg(
                &self.0,
                &mut [IoSliceMut::new(&mut byte)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )?;
            let before = fds.len();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            if received.bytes == 0 || fds.len() == before {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok((serde_json::from_slice(&body)?, fds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_arrive_with_their_message_and_in_order() {
        let (mut near, far) = Socket::pair().unwrap();
        let mut far = Socket::from_fd(far);
        let pipes: Vec<(std::io::PipeReader, std::io::PipeWriter)> =
            (0..200).map(|_| std::io::pipe().unwrap()).collect();
        let mut readers = Vec::new();
        let mut writers = Vec::new();
        for (reader, writer) in pipes {
            readers.push(reader);
            writers.push(OwnedFd::from(writer));
        }
        near.send(&"hello", &writers).unwrap();
        drop(writers);
        let (text, fds): (String, _) = far.receive().unwrap();
        assert_eq!((text.as_str(), fds.len()), ("hello", 200));
        for (index, fd) in fds.into_iter().enumerate() {
            std::io::PipeWriter::from(fd).write_all(&[index as u8]).unwrap();
        }
        for (index, reader) in readers.iter_mut().enumerate() {
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            assert_eq!(byte[0], index as u8);
        }
    }

    #[test]
    fn an_impossible_length_is_refused_without_allocating_it() {
        let (near, far) = UnixStream::pair().unwrap();
        (&near).write_all(&[0xff; 8]).unwrap();
        assert!(Socket::from_fd(far.into()).receive::<String>().is_err());
    }
}
