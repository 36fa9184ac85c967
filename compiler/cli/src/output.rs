//! Standard output.

use crate::report::{Failure, Outcome};
use crate::status;

/// Writes to standard output. A closed pipe (`gridlet … | head`) is not an error.
pub(crate) fn print(text: &str) -> Outcome {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(status::RUN, "output", format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes one JSON value to standard output.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(status::INTERNAL, "internal-error", error.to_string()))?;
    print(&format!("{text}\n"))
}
