//! The provider: the one place that holds its key and reaches the network. Owns `ureq` and `rustls`.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use super::{Secret, Wire};

/// Where the model is, and how to get in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// The base address, such as `https://api.example.org/v1`; the format's endpoint is appended.
    pub url: String,
    /// The format that it speaks.
    pub wire: Wire,
    /// Its key; absent for servers that ask for none.
    pub key: Option<Secret>,
}

/// An address that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// Not an address.
    #[error(
        "`{0}` is no address of a model server; expected `https://HOST/PATH`, or `http://` on this machine"
    )]
    NoAddress(String),
    /// The key would cross a network unencrypted.
    #[error("`{0}` is not used: without TLS only servers on this machine are")]
    Unencrypted(String),
}

impl Upstream {
    /// Checks the address.
    ///
    /// # Errors
    /// When it is none, or would send the key in the clear.
    pub fn check(&self) -> Result<(), UpstreamError> {
        let wrong = || UpstreamError::NoAddress(self.url.clone());
        let uri: ureq::http::Uri = self.url.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(wrong());
        }
        match scheme {
            "https" => Ok(()),
            "http" if self.is_local() => Ok(()),
            "http" => Err(UpstreamError::Unencrypted(self.url.clone())),
            _ => Err(wrong()),
        }
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        let uri: Option<ureq::http::Uri> = self.url.parse().ok();
        uri.and_then(|uri| uri.host().map(str::to_owned))
            .is_some_and(|host| matches!(host.as_str(), "127.0.0.1" | "localhost" | "[::1]"))
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub(crate) struct NoAnswer {
    /// Whether the request may have reached the provider, and so may be paid for.
    pub(crate) may_be_sent: bool,
    /// What went wrong.
    pub(crate) what: String,
}

/// An answer whose body is still coming.
pub(crate) struct Incoming {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Box<dyn Read + Send>,
}

/// Sends requests to one provider over kept connections.
#[derive(Debug)]
pub(crate) struct Sender {
    agent: ureq::Agent,
    url: String,
    upstream: Upstream,
}

/// Headers of the client that reach the provider; all others end at the gateway.
const PASSED: [&str; 3] = ["anthropic-version", "anthropic-beta", "openai-beta"];

impl Sender {
    pub(crate) fn new(upstream: Upstream, timeout: Duration) -> Result<Self, UpstreamError> {
        upstream.check()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would carry the key elsewhere.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("ksmith/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(timeout))
            .timeout_per_read(Some(timeout))
            .tls_config(
                ureq::tls::TlsConfig::builder()
                    .root_certs(ureq::tls::RootCerts::PlatformVerifier)
                    .unversioned_rustls_crypto_provider(provider)
                    .build(),
            );
        if upstream.is_local() {
            config = config.proxy(None);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            url: format!(
                "{}{}",
                upstream.url.trim_end_matches('/'),
                upstream.wire.endpoint()
            ),
            upstream,
        })
    }

    /// Sends one request and waits until its answer begins.
    pub(crate) fn send<'a>(
        &self,
        header: impl Fn(&str) -> Option<&'a str>,
        body: &[u8],
    ) -> Result<Incoming, NoAnswer> {
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json");
        for name in PASSED {
            if let Some(value) = header(name) {
                request = request.header(name, value);
            }
        }
        if self.upstream.wire == Wire::Messages && header("anthropic-version").is_none() {
            request = request.header("anthropic-version", "2023-06-01");
        }
        if let Some(key) = &self.upstream.key {
            request = match self.upstream.wire {
                Wire::Messages => request.header("x-api-key", key.reveal()),
                Wire::Chat | Wire::Responses => {
                    request.header("authorization", format!("Bearer {}", key.reveal()))
                }
            };
        }
        let response = request.send(body).map_err(|error| NoAnswer {
            may_be_sent: may_be_sent(&error),
            what: format!("the model server gave no answer: {error}"),
        })?;
        let text = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        Ok(Incoming {
            status: response.status().as_u16(),
            content_type: text("content-type").unwrap_or_default(),
            retry_after: text("retry-after"),
            body: Box::new(response.into_body().into_reader()),
        })
    }
}

/// Whether a request can have reached the provider before this error: it cannot where no connection came about.
fn may_be_sent(error: &ureq::Error) -> bool {
    use ureq::{Error, Timeout};
    match error {
        Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) | Error::Http(_) | Error::Tls(_) => {
            false
        }
        Error::Rustls(_) | Error::InvalidProxyUrl | Error::RequireHttpsOnly(_) => false,
        Error::Timeout(Timeout::Connect | Timeout::Resolve) => false,
        Error::Io(error) => !matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
        ),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_sent_in_the_clear_over_a_network() {
        let check = |url: &str| {
            Upstream {
                url: url.into(),
                wire: Wire::Chat,
                key: None,
            }
            .check()
        };
        for fine in [
            "https://api.example.org/v1",
            "http://127.0.0.1:8080/v1",
            "http://localhost:1/v1",
            "http://[::1]:1",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for clear in [
            "http://api.example.org/v1",
            "http://10.0.0.1/v1",
            "http://127.0.0.1.example.org/v1",
        ] {
            assert_eq!(check(clear), Err(UpstreamError::Unencrypted(clear.into())));
        }
        for none in [
            "",
            "api.example.org",
            "ftp://127.0.0.1",
            "https://user:pw@host/v1",
            "https://host/v1?x=1",
        ] {
            assert_eq!(check(none), Err(UpstreamError::NoAddress(none.into())), "{none}");
        }
    }
}
