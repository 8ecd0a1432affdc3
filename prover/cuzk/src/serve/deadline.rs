//! The client's deadline, as gRPC says it: a call that outlasts it ends with DEADLINE_EXCEEDED.

use std::future::Future;
use std::time::Duration;
use tonic::Status;
use tonic::metadata::MetadataMap;

/// The transport ends a call at its deadline, too, but with CANCELLED: ours has to be first.
const AHEAD: Duration = Duration::from_millis(2);

/// `work`, or DEADLINE_EXCEEDED when the call's `grpc-timeout` has passed before.
///
/// # Errors
/// Those of `work`, and DEADLINE_EXCEEDED.
pub async fn within<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = Result<T, Status>>,
) -> Result<T, Status> {
    let Some(timeout) = timeout else {
        return work.await;
    };
    tokio::time::timeout(timeout.saturating_sub(AHEAD), work)
        .await
        .unwrap_or_else(|_| {
            Err(Status::deadline_exceeded(
                "the call's deadline has passed before its end",
            ))
        })
}

/// The call's `grpc-timeout`: at most eight digits and a unit. What is not one is left to the transport.
pub fn of(metadata: &MetadataMap) -> Option<Duration> {
    parse(metadata.get("grpc-timeout")?.to_str().ok()?)
}

fn parse(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(number * 3600),
        'M' => Duration::from_secs(number * 60),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_read_in_every_unit_and_nothing_else_is_one() {
        for (text, expected) in [
            ("2H", Some(Duration::from_secs(7200))),
            ("3M", Some(Duration::from_secs(180))),
            ("4S", Some(Duration::from_secs(4))),
            ("199m", Some(Duration::from_millis(199))),
            ("99999999u", Some(Duration::from_micros(99_999_999))),
            ("5n", Some(Duration::from_nanos(5))),
            ("123456789m", None),
            ("m", None),
            ("-1m", None),
            ("1ß", None),
            ("", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
