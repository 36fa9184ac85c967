use super::*;

#[test]
fn parameters_lie_at_their_offsets() {
    let mut parameters = Parameters::<24>::new();
    parameters.put::<0, _>(0x0403_0201u32);
    parameters.put::<4, _>(Bool::from(true));
    parameters.put::<8, _>(F32x2::new(1.0, -2.0));
    parameters.put::<16, _>(DevicePointer::<f32>::new(0x1122).add(3));
    let mut expected = [0u8; 24];
    expected[..5].copy_from_slice(&[1, 2, 3, 4, 1]);
    expected[8..12].copy_from_slice(&1f32.to_le_bytes());
    expected[12..16].copy_from_slice(&(-2f32).to_le_bytes());
    expected[16..].copy_from_slice(&0x112eu64.to_le_bytes());
    assert_eq!(parameters.0, expected);
}

#[test]
fn any_byte_is_a_bool() {
    let bytes = [0u8, 1, 2, 255];
    // SAFETY: any byte is a valid value.
    let bools: [Bool; 4] = unsafe { std::mem::transmute(bytes) };
    assert_eq!(bools.map(bool::from), [false, true, true, true]);
    assert_eq!(bools[1], bools[3]);
    assert_eq!(format!("{:?}", bools[2]), "true");
}

#[test]
fn elements_are_those_of_the_language() {
    let names = [
        F16x3::ELEMENT.to_string(),
        <[Bool; 2]>::ELEMENT.to_string(),
        DevicePointer::<u8>::ELEMENT.to_string(),
        bf16::ELEMENT.to_string(),
    ];
    assert_eq!(names, ["[f16; 3]", "[bool; 2]", "u64", "bf16"]);
    assert_eq!(zeroed::<I64x4>(), I64x4::default());
    assert_eq!(U8x4::from([1, 2, 3, 4]), U8x4::new(1, 2, 3, 4));
    assert_eq!(<[f64; 2]>::from(F64x2::new(0.5, 2.0)), [0.5, 2.0]);
}

#[test]
fn memory_of_another_device_is_refused() {
    let device =
        || crate::Device::open_cpu(crate::CpuConfig { threads: Some(1), ..Default::default() });
    let (here, there) = (device().unwrap(), device().unwrap());
    let (stream, buffer) = (here.stream().unwrap(), Buffer::<u32>::alloc(&there, 1).unwrap());
    let error = Parameters::<8>::new().point::<0>(&stream, "to", (&buffer).place()).unwrap_err();
    assert!(
        matches!(&error, Error::OtherDevice { what, .. } if what == "argument `to`"),
        "{error}"
    );
    let own = Buffer::<u32>::alloc(&here, 1).unwrap();
    Parameters::<8>::new().point::<0>(&stream, "to", (&own).place()).unwrap();
    let unknown = DevicePointer::<u32>::from(&buffer);
    Parameters::<8>::new().point::<0>(&stream, "to", unknown.place()).unwrap();
}
