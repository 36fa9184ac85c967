use super::*;

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
