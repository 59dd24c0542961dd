//! The server as a peer sees it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ksmith_http::{Limits, Reply, Request, Server};

fn echo(request: Request, reply: Reply<'_>) -> std::io::Result<()> {
    match request.path.as_str() {
        "/stream" => {
            let mut stream = reply.stream(200, &[("content-type", "text/event-stream")])?;
            stream.write(b"data: 1\n\n")?;
            std::thread::sleep(Duration::from_millis(300));
            stream.write(b"data: 2\n\n")?;
            stream.end()
        }
        "/cut" => reply.stream(200, &[])?.write(b"half"),
        "/drop" => Ok(()),
        "/panic" => panic!("as asked"),
        _ => reply.send(200, &[("x-path", &request.path)], &request.body),
    }
}

fn server(limits: Limits) -> Server {
    Server::tcp(0, limits, Arc::new(echo)).unwrap()
}

fn ask(server: &Server, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(server.address().unwrap()).unwrap();
    socket.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn an_answer_is_whole_and_closes_its_connection() {
    let server = server(Limits::DEFAULT);
    let answer = ask(&server, b"POST /a?b HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\nconnection: close\r\n"),
        "{answer}"
    );
    assert!(answer.contains("x-path: /a\r\n"), "{answer}");
    assert!(answer.ends_with("content-length: 3\r\n\r\nabc"), "{answer}");
    let head = ask(&server, b"HEAD / HTTP/1.1\r\ncontent-length: 2\r\n\r\nab");
    assert!(head.ends_with("content-length: 2\r\n\r\n"), "{head}");
}

#[test]
fn a_piece_of_a_stream_is_there_before_the_next_is_written() {
    let server = server(Limits::DEFAULT);
    let mut socket = TcpStream::connect(server.address().unwrap()).unwrap();
    socket.write_all(b"GET /stream HTTP/1.1\r\n\r\n").unwrap();
    let mut seen = Vec::new();
    let mut piece = [0; 1024];
    let began = Instant::now();
    while !String::from_utf8_lossy(&seen).contains("data: 1") {
        let count = socket.read(&mut piece).unwrap();
        assert!(count > 0);
        seen.extend_from_slice(&piece[..count]);
    }
    assert!(
        !String::from_utf8_lossy(&seen).contains("data: 2"),
        "{:?}",
        began.elapsed()
    );
    socket.read_to_end(&mut seen).unwrap();
    assert!(seen.ends_with(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n"));
}

#[test]
fn what_goes_wrong_on_one_connection_stays_there() {
    let server = server(Limits::DEFAULT);
    assert_eq!(ask(&server, b"GET /drop HTTP/1.1\r\n\r\n"), "");
    assert_eq!(ask(&server, b"GET /panic HTTP/1.1\r\n\r\n"), "");
    let cut = ask(&server, b"GET /cut HTTP/1.1\r\n\r\n");
    assert!(cut.ends_with("4\r\nhalf\r\n"), "{cut}");
    assert!(ask(&server, b"no request at all\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(&server, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_body_over_the_limit_gets_an_answer_although_it_is_not_read() {
    let limits = Limits {
        body_bytes: 10,
        ..Limits::DEFAULT
    };
    let mut request = b"POST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n".to_vec();
    request.extend(vec![b'x'; 100_000]);
    let answer = ask(&server(limits), &request);
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn a_silent_peer_and_too_many_peers_are_let_go() {
    let limits = Limits {
        connections: 2,
        silence: Duration::from_millis(300),
        ..Limits::DEFAULT
    };
    let server = server(limits);
    let address = server.address().unwrap();
    let mut silent = [
        TcpStream::connect(address).unwrap(),
        TcpStream::connect(address).unwrap(),
    ];
    std::thread::sleep(Duration::from_millis(100));
    let mut third = TcpStream::connect(address).unwrap();
    let mut nothing = Vec::new();
    // Closed with or without a reset: either way there is no answer.
    let _ = third.read_to_end(&mut nothing);
    assert!(nothing.is_empty());
    for socket in &mut silent {
        assert_eq!(socket.read_to_end(&mut nothing).unwrap(), 0);
    }
    assert!(ask(&server, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_unix_socket_serves_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway");
    let server = Server::unix(&path, Limits::DEFAULT, Arc::new(echo)).unwrap();
    let mut socket = UnixStream::connect(&path).unwrap();
    socket
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\nz")
        .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nz"), "{answer}");
    drop(server);
    assert!(!path.exists());
}

#[test]
fn dropping_the_server_closes_open_connections() {
    let server = server(Limits::DEFAULT);
    let mut socket = TcpStream::connect(server.address().unwrap()).unwrap();
    socket.write_all(b"GET /stream HTTP/1.1\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    drop(server);
    let _ = socket.read_to_end(&mut Vec::new());
    assert!(
        began.elapsed() < Duration::from_millis(250),
        "{:?}",
        began.elapsed()
    );
}
