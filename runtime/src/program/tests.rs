use super::*;

fn record(words: [u32; 4]) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    for (at, word) in bytes.chunks_mut(4).zip(words) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[test]
fn records_decode_in_the_manifests_order() {
    let expected = LostLaunchRecord { count: 5, error: -1, file: 1, line: 42 };
    assert_eq!(decode(&record([5, u32::MAX, 1, 42])), expected);
}

fn kernel(parameters: &[(u32, u32)]) -> manifest::Kernel {
    let parameters: Vec<_> = parameters
        .iter()
        .map(|(offset, size)| {
            serde_json::json!({ "name": "p", "type": { "scalar": "u32" }, "offset": offset, "size": size, "alignment": 4 })
        })
        .collect();
    serde_json::from_value(serde_json::json!({
        "name": "k", "parameters": parameters, "parameter_bytes": 64, "static_shared_bytes": 0,
        "dynamic_shared": false, "launches": [],
    }))
    .unwrap()
}

#[test]
fn parameters_are_compared_to_the_end() {
    let driver = |index: usize| {
        Ok(match [(0, 4), (8, 8)].get(index) {
            Some((offset, size)) => Answer::At { offset: *offset, size: *size },
            None => Answer::NoSuch,
        })
    };
    assert_eq!(compare_parameters(&kernel(&[(0, 4), (8, 8)]), driver), Ok(()));
    assert_eq!(compare_parameters(&kernel(&[(0, 400)]), |_| Ok(Answer::Unknown)), Ok(()));
    let message = |parameters: &[(u32, u32)]| {
        compare_parameters(&kernel(parameters), driver).unwrap_err().to_string()
    };
    let messages =
        [message(&[(0, 4), (4, 8)]), message(&[(0, 4)]), message(&[(0, 4), (8, 8), (16, 4)])];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn an_unknown_kernel_lists_the_known() {
    let manifest = serde_json::from_value(serde_json::json!({
        "manifest_version": 1, "program": "p", "sources": [], "source_sha256": "", "launch_strategy": "cdp",
        "kernels": [kernel(&[])], "structs": [],
    }));
    let artifact = Artifact::new(manifest.unwrap(), vec![]).unwrap();
    let error = unknown_kernel(&artifact, "j");
    assert_eq!(error.to_string(), "no kernel `j`: the program has `k`");
}
