//! The output of `gridlet run --stats`.

use std::fmt::Write as _;

use gridlet_runtime::{DeviceKind, LostLaunches, Statistics};
use serde_json::{Value, json};

/// Appends the statistics as text.
pub(crate) fn describe(noted: &Statistics, kind: DeviceKind, text: &mut String) {
    let Statistics { launches_made, deepest_nesting, may_be_deeper, host_sms, kernel_sms, .. } =
        noted;
    let (at_least, why) = match may_be_deeper {
        false => ("", ""),
        true => ("at least ", " (the parameters of a kernel leave no room for the counter)"),
    };
    let _ = writeln!(
        text,
        "launches made by kernels: {launches_made}, nested {at_least}{deepest_nesting} deep{why}"
    );
    let what = match kind {
        DeviceKind::Cuda => "SMs",
        DeviceKind::Cpu => "worker threads",
    };
    let (host, kernels) = (host_sms.len(), kernel_sms.len());
    let _ = writeln!(text, "{what}: {host} ran grids of the host, {kernels} those of kernels");
}

/// The JSON object under `launches`.
pub(crate) fn launches_json(noted: Option<&Statistics>, lost: Option<&LostLaunches>) -> Value {
    let lost = lost.map_or(0, |lost| lost.count);
    match noted {
        None => json!({"made": null, "lost": lost}),
        Some(noted) => json!({
            "made": noted.launches_made,
            "lost": lost,
            "deepest_nesting": noted.deepest_nesting,
            "may_be_deeper": noted.may_be_deeper,
        }),
    }
}

/// The JSON object under `sms`: SM numbers; on the CPU, worker numbers.
pub(crate) fn sms_json(noted: Option<&Statistics>) -> Value {
    match noted {
        None => Value::Null,
        Some(noted) => json!({"host": noted.host_sms, "kernels": noted.kernel_sms}),
    }
}
