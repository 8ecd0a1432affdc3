//! The boundary to storage-proofs: its errors and its panics become typed errors of this crate.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::RequestError;

/// Runs `work`, a call into storage-proofs; `action` says what it does, for the error.
pub(crate) fn guarded<T, E: Display>(
    action: &'static str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, RequestError> {
    match caught(work) {
        Ok(Ok(value)) => Ok(value),
        // The alternate form of an anyhow error is its whole chain on one line.
        Ok(Err(error)) => Err(RequestError::StorageProofs {
            action,
            message: format!("{error:#}"),
        }),
        Err(message) => Err(RequestError::Panic { action, message }),
    }
}

/// Runs `work` and turns a panic into its message.
///
/// storage-proofs asserts and unwraps on data that a hostile client can choose. The request's data
/// is only read, and what is written is given up on error, so nothing half-changed is used after a
/// panic is caught here. (The process's panic hook still runs first and may print the panic.)
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| panic_message(payload.as_ref()))
}

/// The text of a panic's payload.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "a payload that is not text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_keeps_its_message() {
        let result: Result<(), _> = guarded("count", || -> Result<(), String> {
            panic!("only {} left", 3)
        });
        let error = result.unwrap_err();
        assert!(
            matches!(&error, RequestError::Panic { action: "count", message } if message == "only 3 left")
        );
    }

    #[test]
    fn an_error_keeps_its_message_and_a_value_passes() {
        let error = guarded("add", || Err::<(), _>("no")).unwrap_err();
        assert_eq!(error.to_string(), "add: no");
        assert_eq!(guarded("add", || Ok::<_, String>(7)).unwrap(), 7);
    }
}
