//! Writes one answer: whole, or piece by piece.

use std::io::{self, Write};

use crate::socket::Socket;

/// Where the answer to one request goes. Dropped unused, it closes the connection without a word.
#[derive(Debug)]
pub struct Reply<'a> {
    socket: &'a mut Socket,
    is_head: bool,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(socket: &'a mut Socket, method: &str) -> Self {
        Self {
            socket,
            is_head: method == "HEAD",
        }
    }

    /// Sends a whole answer.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn send(self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        let mut bytes = head(status, headers);
        bytes.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        if !self.is_head {
            bytes.extend_from_slice(body);
        }
        self.socket.write_all(&bytes)?;
        self.socket.flush()
    }

    /// Begins an answer whose pieces follow.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn stream(self, status: u16, headers: &[(&str, &str)]) -> io::Result<Stream<'a>> {
        let mut bytes = head(status, headers);
        bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
        self.socket.write_all(&bytes)?;
        self.socket.flush()?;
        Ok(Stream { socket: self.socket })
    }

    /// Sends bytes as they are, instead of an answer: how a test makes a server misbehave.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn raw(self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)?;
        self.socket.flush()
    }
}

/// An answer that is being sent. Dropped before [`Stream::end`], it leaves the peer with an answer that is visibly
/// cut off.
#[derive(Debug)]
pub struct Stream<'a> {
    socket: &'a mut Socket,
}

impl Stream<'_> {
    /// Sends one piece now.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        // An empty chunk would end the answer.
        if piece.is_empty() {
            return Ok(());
        }
        let mut bytes = format!("{:x}\r\n", piece.len()).into_bytes();
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
        self.socket.write_all(&bytes)?;
        self.socket.flush()
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// When the peer is gone.
    pub fn end(self) -> io::Result<()> {
        self.socket.write_all(b"0\r\n\r\n")?;
        self.socket.flush()
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} {}\r\nconnection: close\r\n", reason(status));
    for (name, value) in headers {
        // A line feed in a value would begin another header.
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.into_bytes()
}

/// The words of a status; for most numbers there are none, which HTTP allows.
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "",
    }
}
