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

#[test]
fn an_unknown_kernel_lists_the_known() {
    let manifest = serde_json::from_value(serde_json::json!({
        "manifest_version": 1, "program": "p", "sources": [], "source_sha256": "", "launch_strategy": "cdp",
        "kernels": [{
            "name": "k", "parameters": [], "parameter_bytes": 0, "static_shared_bytes": 0, "dynamic_shared": false,
            "launches": [],
        }], "structs": [],
    }));
    let artifact = Artifact::new(manifest.unwrap(), vec![]).unwrap();
    let error = unknown_kernel(&artifact, "j");
    assert_eq!(error.to_string(), "no kernel `j`: the program has `k`");
}

#[test]
fn lost_launches_of_linked_objects_name_no_file_of_the_program() {
    let mut manifest = manifest::Manifest::new("p");
    manifest.sources = vec!["p.grid".into()];
    let artifact = Artifact::new(manifest, vec![]).unwrap();
    let file = |file| {
        let record = LostLaunchRecord { count: 1, error: 69, file, line: 7 };
        lost_launches(&artifact, false, record, 1).file
    };
    assert_eq!(file(0), "p.grid");
    assert_eq!(file(1), "source 1");
    assert_eq!(file(LINKED_SOURCE), "source 0 of a linked object");
}
