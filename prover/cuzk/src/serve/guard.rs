//! What stands before every request: the token, and bounds on what may be in transit.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_stream::StreamExt;
use tonic::Status;

/// A request whose next bytes do not come in this time is ended.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// The unit in which bytes in transit are counted: a semaphore counts to 2^29 on small machines.
const UNIT: usize = 1024;

/// The rules of one listener.
#[derive(Clone)]
pub struct Guard {
    token: Option<Arc<Token>>,
    transit: Arc<Semaphore>,
}

/// The secret that clients must show.
pub struct Token(Vec<u8>);

impl Token {
    /// Reads it from a file, without the spaces and line ends around it.
    ///
    /// # Errors
    /// The file cannot be read, or holds nothing.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        match text.trim() {
            "" => Err(std::io::Error::new(
                std::io::ErrorKind::InvalidData,
                "the file holds no token",
            )),
            token => Ok(Token(token.as_bytes().to_vec())),
        }
    }

    /// Compares in a time that does not depend on where a wrong token differs.
    fn is(&self, shown: &[u8]) -> bool {
        let differences = self
            .0
            .iter()
            .zip(shown)
            .fold(0, |all, (a, b)| all | (a ^ b));
        self.0.len() == shown.len() && differences == 0
    }

    fn is_shown(&self, headers: &HeaderMap) -> bool {
        headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().split_at_checked(7))
            .is_some_and(|(scheme, token)| {
                scheme.eq_ignore_ascii_case(b"bearer ") && self.is(token.trim_ascii())
            })
    }
}

/// A count of the bytes that all requests together may have in transit.
pub fn transit(bytes: u64) -> Arc<Semaphore> {
    let units = usize::try_from(bytes).unwrap_or(usize::MAX) / UNIT;
    Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)))
}

impl Guard {
    /// With a token for clients to show, or none.
    pub fn new(token: Option<Arc<Token>>, transit: Arc<Semaphore>) -> Self {
        Guard { token, transit }
    }

    fn lets_in(&self, headers: &HeaderMap) -> bool {
        self.token.as_ref().is_none_or(|t| t.is_shown(headers))
    }
}

/// Checks a gRPC request's token and counts its bytes while they come in.
pub async fn grpc(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    if !guard.lets_in(request.headers()) {
        return Status::unauthenticated("authorization: expected the daemon's bearer token")
            .into_http();
    }
    let (parts, body) = request.into_parts();
    let mut held = Held {
        transit: guard.transit,
        permits: None,
        rest: 0,
    };
    let counted = body.into_data_stream().timeout(IDLE_LIMIT).map(
        move |chunk| -> Result<_, axum::BoxError> {
            let bytes = chunk.map_err(|_| {
                Status::deadline_exceeded(format!("no bytes came for {} s", IDLE_LIMIT.as_secs()))
            })??;
            held.take(bytes.len())?;
            Ok(bytes)
        },
    );
    next.run(Request::from_parts(parts, Body::from_stream(counted)))
        .await
}

/// The share of the bytes in transit that one request has.
struct Held {
    transit: Arc<Semaphore>,
    permits: Option<OwnedSemaphorePermit>,
    /// Bytes that were counted and have not been needed.
    rest: usize,
}

impl Held {
    fn take(&mut self, bytes: usize) -> Result<(), Status> {
        if bytes > self.rest {
            let units = (bytes - self.rest).div_ceil(UNIT);
            let count = u32::try_from(units).unwrap_or(u32::MAX);
            let more = self
                .transit
                .clone()
                .try_acquire_many_owned(count)
                .map_err(|_| {
                    Status::resource_exhausted("too many request bytes in transit, try again later")
                })?;
            self.rest += units * UNIT;
            match &mut self.permits {
                Some(permits) => permits.merge(more),
                None => self.permits = Some(more),
            }
        }
        self.rest -= bytes;
        Ok(())
    }
}

/// Checks an HTTP request's token. Health checks and the page itself, which holds no data, need none.
pub async fn http(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let open = matches!(request.uri().path(), "/" | "/healthz" | "/readyz");
    if open || guard.lets_in(request.headers()) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (
        StatusCode::UNAUTHORIZED,
        challenge,
        "the daemon's bearer token is needed\n",
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    }

    #[test]
    fn only_the_token_itself_opens_the_door() {
        let guard = Guard::new(Some(Arc::new(Token(b"secret".to_vec()))), transit(0));
        assert!(guard.lets_in(&headers("Bearer secret")));
        assert!(guard.lets_in(&headers("bearer  secret")));
        for wrong in [
            "secret",
            "Bearer",
            "Bearer ",
            "Bearer secre",
            "Bearer secret1",
            "Basic secret",
            "Bearer secreT",
        ] {
            assert!(!guard.lets_in(&headers(wrong)), "{wrong}");
        }
        assert!(!guard.lets_in(&HeaderMap::new()));
        assert!(Guard::new(None, transit(0)).lets_in(&HeaderMap::new()));
    }

    #[test]
    fn bytes_in_transit_are_bounded_and_given_back() {
        let transit = transit(10 * UNIT as u64);
        let held = || Held {
            transit: transit.clone(),
            permits: None,
            rest: 0,
        };
        let mut first = held();
        for _ in 0..6 * UNIT / 8 {
            first.take(8).unwrap();
        }
        assert_eq!(transit.available_permits(), 4);
        let mut second = held();
        let refused = second.take(5 * UNIT).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        drop(first);
        second.take(5 * UNIT).unwrap();
        drop(second);
        assert_eq!(transit.available_permits(), 10);
    }
}
