//! Reads one request whole, within bounds.

use std::io::{self, Read, Write};

use httparse::Status;

use crate::Limits;

/// Most header lines of one request.
const HEADERS: usize = 100;

/// One request, read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, without query.
    pub path: String,
    /// What follows the `?`; empty without one.
    pub query: String,
    /// Header lines in order; bytes that are no UTF-8 become replacement characters.
    pub headers: Vec<(String, String)>,
    /// The body with its framing removed.
    pub body: Vec<u8>,
}

impl Request {
    /// The first header line of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The peer closed, or was silent for too long.
    Gone,
    /// The request is refused with this status and sentence.
    Refused(u16, &'static str),
}

impl From<io::Error> for Unread {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// How the body is framed.
enum Framing {
    Length(u64),
    Chunked,
}

/// Reads one request from `socket`.
pub(crate) fn read(socket: &mut (impl Read + Write), limits: &Limits) -> Result<Request, Unread> {
    let mut input = Input {
        socket,
        buffer: Vec::new(),
    };
    let (mut request, framing, used) = loop {
        if let Some(found) = head(&input.buffer)? {
            break found;
        }
        if input.buffer.len() > limits.head_bytes {
            return Err(Unread::Refused(431, "the request's head is too large"));
        }
        input.more()?;
    };
    input.buffer.drain(..used);
    if request
        .header("expect")
        .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
    {
        input.socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.body = match framing {
        Framing::Length(length) if length > limits.body_bytes as u64 => {
            return Err(Unread::Refused(413, "the request's body is too large"));
        }
        // Not larger than the limit, which is a `usize`.
        Framing::Length(length) => input.exactly(length as usize)?,
        Framing::Chunked => chunked(&mut input, limits)?,
    };
    Ok(request)
}

/// Parses a head, if it is whole; says where the body begins.
fn head(bytes: &[u8]) -> Result<Option<(Request, Framing, usize)>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let used = match parsed.parse(bytes) {
        Ok(Status::Complete(used)) => used,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err(Unread::Refused(400, "the request's head is not HTTP/1.1")),
    };
    let (path, query) = match parsed.path.unwrap_or_default().split_once('?') {
        Some((path, query)) => (path, query),
        None => (parsed.path.unwrap_or_default(), ""),
    };
    let request = Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: parsed
            .headers
            .iter()
            .map(|header| {
                (
                    header.name.to_owned(),
                    String::from_utf8_lossy(header.value).trim().to_owned(),
                )
            })
            .collect(),
        body: Vec::new(),
    };
    let framing = framing(&request)?;
    Ok(Some((request, framing, used)))
}

/// Two lengths, or a length beside chunks, are how requests are smuggled past a proxy: refused.
fn framing(request: &Request) -> Result<Framing, Unread> {
    let lines = |name: &str| {
        request
            .headers
            .iter()
            .filter(move |(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.clone())
            .collect::<Vec<_>>()
    };
    let refused = Err(Unread::Refused(400, "the request's length is not clear"));
    match (
        lines("content-length").as_slice(),
        lines("transfer-encoding").as_slice(),
    ) {
        ([], []) => Ok(Framing::Length(0)),
        ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => length
            .parse()
            .map_or(refused, |length| Ok(Framing::Length(length))),
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
        _ => refused,
    }
}

fn chunked<S: Read + Write>(input: &mut Input<'_, S>, limits: &Limits) -> Result<Vec<u8>, Unread> {
    let wrong = Unread::Refused(400, "the request's chunks are not well formed");
    let mut body = Vec::new();
    loop {
        let size = loop {
            match httparse::parse_chunk_size(&input.buffer) {
                Ok(Status::Complete((used, size))) => {
                    input.buffer.drain(..used);
                    break size;
                }
                Ok(Status::Partial) if input.buffer.len() > 1024 => return Err(wrong),
                Ok(Status::Partial) => input.more()?,
                Err(_) => return Err(wrong),
            }
        };
        if size == 0 {
            break;
        }
        if size > (limits.body_bytes - body.len()) as u64 {
            return Err(Unread::Refused(413, "the request's body is too large"));
        }
        // Not larger than the limit, which is a `usize`.
        body.extend(input.exactly(size as usize)?);
        if input.exactly(2)? != b"\r\n" {
            return Err(wrong);
        }
    }
    // Trailers say nothing that a model call needs.
    let mut trailers = 0;
    loop {
        let line = input.line(limits.head_bytes)?;
        trailers += line.len();
        if line == b"\r\n" {
            return Ok(body);
        }
        if trailers > limits.head_bytes {
            return Err(wrong);
        }
    }
}

/// What was read and not yet used.
struct Input<'a, S> {
    socket: &'a mut S,
    buffer: Vec<u8>,
}

impl<S: Read> Input<'_, S> {
    fn more(&mut self) -> Result<(), Unread> {
        let mut piece = [0; 16 * 1024];
        match self.socket.read(&mut piece)? {
            0 => Err(Unread::Gone),
            count => {
                self.buffer.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }

    fn exactly(&mut self, count: usize) -> Result<Vec<u8>, Unread> {
        while self.buffer.len() < count {
            self.more()?;
        }
        let rest = self.buffer.split_off(count);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    /// A line with its line feed.
    fn line(&mut self, most: usize) -> Result<Vec<u8>, Unread> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                return self.exactly(end + 1);
            }
            if self.buffer.len() > most {
                return Err(Unread::Refused(400, "a line of the request is too long"));
            }
            self.more()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its bytes in pieces of the given sizes, in turn.
    struct Pieces {
        bytes: Vec<u8>,
        at: usize,
        sizes: Vec<usize>,
        turn: usize,
        written: Vec<u8>,
    }

    impl Pieces {
        fn new(bytes: impl Into<Vec<u8>>, sizes: Vec<usize>) -> Self {
            Self {
                bytes: bytes.into(),
                at: 0,
                sizes,
                turn: 0,
                written: Vec::new(),
            }
        }
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = self.sizes[self.turn % self.sizes.len()].max(1);
            self.turn += 1;
            let count = size.min(buffer.len()).min(self.bytes.len() - self.at);
            buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
            self.at += count;
            Ok(count)
        }
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LIMITS: Limits = Limits {
        head_bytes: 4096,
        body_bytes: 10_000,
        ..Limits::DEFAULT
    };

    fn refused(bytes: &[u8]) -> u16 {
        match read(&mut Pieces::new(bytes, vec![usize::MAX]), &LIMITS) {
            Err(Unread::Refused(status, _)) => status,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unclear_lengths_are_refused() {
        for head in [
            "Content-Length: 1\r\nContent-Length: 1",
            "Content-Length: 1\r\nTransfer-Encoding: chunked",
            "Content-Length: +1",
            "Content-Length: 99999999999999999999999",
            "Transfer-Encoding: gzip, chunked",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{head}\r\n\r\n0\r\n\r\n");
            assert_eq!(refused(text.as_bytes()), 400, "{head}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_read() {
        assert_eq!(refused(b"POST / HTTP/1.1\r\nContent-Length: 10001\r\n\r\n"), 413);
        assert_eq!(
            refused(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n"),
            413
        );
        let head = format!("POST / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(5000));
        assert_eq!(
            match read(&mut Pieces::new(head, vec![1000]), &LIMITS) {
                Err(Unread::Refused(status, _)) => status,
                other => panic!("{other:?}"),
            },
            431
        );
    }

    #[test]
    fn a_request_that_expects_to_go_on_is_told_so() {
        let mut pieces = Pieces::new(
            "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
            vec![usize::MAX],
        );
        assert_eq!(read(&mut pieces, &LIMITS).unwrap().body, b"hi");
        assert_eq!(pieces.written, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    proptest! {
        #[test]
        fn a_body_survives_any_chunks_in_any_pieces(
            body in proptest::collection::vec(any::<u8>(), 0..3000),
            cuts in proptest::collection::vec(1usize..700, 1..6),
            sizes in proptest::collection::vec(1usize..900, 1..6),
            as_chunks in any::<bool>(),
        ) {
            let mut bytes = b"POST /v1/x?y=1 HTTP/1.1\r\nHost: a\r\n".to_vec();
            if as_chunks {
                bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
                let (mut at, mut turn) = (0, 0);
                while at < body.len() {
                    let end = (at + cuts[turn % cuts.len()]).min(body.len());
                    bytes.extend(format!("{:x}\r\n", end - at).bytes());
                    bytes.extend(&body[at..end]);
                    bytes.extend(b"\r\n");
                    (at, turn) = (end, turn + 1);
                }
                bytes.extend(b"0\r\nTrailer: z\r\n\r\n");
            } else {
                bytes.extend(format!("Content-Length: {}\r\n\r\n", body.len()).bytes());
                bytes.extend(&body);
            }
            let request = read(&mut Pieces::new(bytes, sizes), &LIMITS).unwrap();
            prop_assert_eq!(&request.body, &body);
            prop_assert_eq!((request.path.as_str(), request.query.as_str()), ("/v1/x", "y=1"));
        }

        #[test]
        fn garbage_is_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let _ = read(&mut Pieces::new(bytes, vec![97]), &LIMITS);
        }

        #[test]
        fn a_truncated_request_is_none(cut in 0usize..60) {
            let whole = b"POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n01234567890123456789";
            let cut = cut.min(whole.len() - 1);
            let read = read(&mut Pieces::new(&whole[..cut], vec![7]), &LIMITS);
            prop_assert!(matches!(read, Err(Unread::Gone)));
        }
    }
}
