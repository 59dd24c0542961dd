//! The way in for agents: loopback and Unix sockets, keys, and the few paths that exist.

use std::io;
use std::sync::Arc;

use ksmith_http::{Reply, Request, Stream};

use super::exchange::{Core, Delivery, Incall, refuse};
use super::{Keys, Wire};

/// Answers one request of an agent.
pub(crate) fn serve(core: &Core, keys: &Keys, request: &Request, reply: Reply<'_>) -> io::Result<()> {
    let mut delivery = ToSocket::Unused(reply);
    let wire = Wire::of_path(&request.path);
    let shape = wire.unwrap_or(core.wire);
    let mut no = |status: u16, kind: &str, message: &str| refuse(shape, status, kind, message, &mut delivery);
    let Some(role) = key_of(request).and_then(|key| keys.role(key)) else {
        return no(401, "authentication_error", "this gateway does not know the key");
    };
    match (request.method.as_str(), request.path.as_str(), wire) {
        ("POST", _, Some(wire)) => {
            if request
                .header("content-encoding")
                .is_some_and(|coding| coding != "identity")
            {
                return no(415, "invalid_request_error", "compressed requests are not read");
            }
            let incall = Incall {
                role: &role,
                wire,
                headers: &request.headers,
                body: &request.body,
            };
            core.call(&incall, &mut delivery)
        }
        // Agents ask which models there are; there is one.
        ("GET", "/v1/models", _) => {
            let list = serde_json::json!({"object": "list", "has_more": false, "data": [
                {"id": core.model, "object": "model", "type": "model", "owned_by": "gateway",
                    "display_name": core.model}]});
            delivery.whole(
                200,
                &[("content-type", "application/json")],
                list.to_string().as_bytes(),
            )
        }
        _ => no(404, "not_found_error", "only the model endpoints are let through"),
    }
}

fn key_of(request: &Request) -> Option<&str> {
    let bearer = request
        .header("authorization")
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, key)| key.trim());
    bearer.or_else(|| request.header("x-api-key"))
}

/// A handler over shared state, for `ksmith_http`.
pub(crate) fn handler(core: &Arc<Core>, keys: &Arc<Keys>) -> Arc<dyn ksmith_http::Handler> {
    let (core, keys) = (Arc::clone(core), Arc::clone(keys));
    Arc::new(move |request: Request, reply: Reply<'_>| serve(&core, &keys, &request, reply))
}

/// An answer on its way to a socket.
enum ToSocket<'a> {
    Unused(Reply<'a>),
    Streaming(Stream<'a>),
    Used,
}

impl Delivery for ToSocket<'_> {
    fn whole(&mut self, status: u16, headers: &[(&str, &str)], body: &[u8]) -> io::Result<()> {
        match std::mem::replace(self, Self::Used) {
            Self::Unused(reply) => reply.send(status, headers, body),
            // An answer has begun: it stays cut off.
            Self::Streaming(_) | Self::Used => Ok(()),
        }
    }

    fn begin(&mut self, status: u16, content_type: &str) -> io::Result<()> {
        if let Self::Unused(reply) = std::mem::replace(self, Self::Used) {
            let headers = [("content-type", content_type), ("cache-control", "no-cache")];
            *self = Self::Streaming(reply.stream(status, &headers)?);
        }
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Streaming(stream) => stream.write(bytes),
            Self::Unused(_) | Self::Used => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match std::mem::replace(self, Self::Used) {
            Self::Streaming(stream) => stream.end(),
            Self::Unused(_) | Self::Used => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}
