use gridlet_artifact::manifest::{Field, Parameter};

use super::*;

fn scalar(name: &str) -> Type {
    Type::Scalar(name.into())
}

fn pointer(mutable: bool, to: Type) -> Type {
    Type::Pointer { mutable, to: Box::new(to) }
}

fn vector(element: &str, count: u32) -> Type {
    Type::Vector { element: element.into(), count }
}

fn array(element: Type, count: u64) -> Type {
    Type::Array { element: Box::new(element), count }
}

/// `struct View { lo: f32x2, n: u32, tail: [u16; 2] }`
fn structs() -> Vec<Struct> {
    let field = |name: &str, ty, offset| Field::new(name, ty, offset);
    let fields = vec![
        field("lo", vector("f32", 2), 0),
        field("n", scalar("u32"), 8),
        field("tail", array(scalar("u16"), 2), 12),
    ];
    vec![Struct::new("View", 16, 8, fields)]
}

/// A kernel `k` with these parameters at these offsets.
fn kernel(parameters: &[(&str, Type, u32)]) -> Kernel {
    let structs = structs();
    let parameters: Vec<Parameter> = parameters
        .iter()
        .map(|(name, ty, offset)| {
            let extent = extent(ty, &structs).unwrap();
            let (size, alignment) = (extent.size as u32, extent.alignment as u32);
            Parameter::new(*name, ty.clone(), *offset, size, alignment)
        })
        .collect();
    let mut kernel = Kernel::new("k");
    kernel.parameter_bytes = parameters.last().map_or(0, |p| p.offset + p.size);
    kernel.parameters = parameters;
    kernel
}

fn one(ty: Type) -> Kernel {
    kernel(&[("p", ty, 0)])
}

fn packed(kernel: &Kernel, args: &[Arg<'_>]) -> Result<Vec<u8>> {
    pack(kernel, &structs(), args, 0)
}

fn message(ty: Type, arg: Arg<'_>) -> String {
    packed(&one(ty), &[arg]).unwrap_err().to_string()
}

fn buffer(element: Element, mutable: bool) -> Arg<'static> {
    Arg::Pointer(Pointer::to_memory(0x1122_3344_5566_7788, element, mutable, 0))
}

const F32: Element = Element::Scalar(ScalarType::F32);

#[test]
fn arguments_lie_at_the_manifests_offsets() {
    let kernel = kernel(&[
        ("flag", scalar("bool"), 0),
        ("data", pointer(true, scalar("f32")), 8),
        ("small", scalar("i8"), 16),
        ("view", Type::Struct("View".into()), 24),
        ("x", scalar("f64"), 40),
        ("h", scalar("f16"), 48),
    ]);
    let bytes = packed(
        &kernel,
        &[
            Arg::from(true),
            buffer(F32, true),
            Arg::from(-2i8),
            Arg::Bytes(&[9; 16]),
            Arg::from(1.0f64),
            Arg::f16_bits(0x3c00),
        ],
    )
    .unwrap();
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0];
    expected.extend([0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
    expected.extend([0xfe, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend([9; 16]);
    expected.extend([0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    expected.extend([0x00, 0x3c]);
    assert_eq!(bytes, expected);
}

#[test]
fn every_scalar_type_packs_as_itself_only() {
    let values: [Arg<'_>; 13] = [
        true.into(),
        1i8.into(),
        1i16.into(),
        1i32.into(),
        1i64.into(),
        1u8.into(),
        1u16.into(),
        1u32.into(),
        1u64.into(),
        Arg::f16_bits(1),
        Arg::bf16_bits(1),
        f32::from_bits(1).into(),
        f64::from_bits(1).into(),
    ];
    for (parameter, ty) in ScalarType::ALL.iter().enumerate() {
        for (given, value) in values.iter().enumerate() {
            let result = packed(&one(scalar(ty.name())), std::slice::from_ref(value));
            if parameter == given {
                let mut expected = vec![0; ty.size() as usize];
                expected[0] = 1;
                assert_eq!(result.unwrap(), expected, "{ty}");
            } else {
                assert!(result.is_err(), "{value:?} for {ty}");
            }
        }
    }
}

#[test]
fn structs_pack_by_field() {
    let fields = |n: Arg<'static>| {
        Arg::Fields(vec![
            Arg::Fields(vec![Arg::from(1.0f32), Arg::from(2.0f32)]),
            n,
            Arg::Fields(vec![Arg::from(3u16), Arg::from(4u16)]),
        ])
    };
    let view = one(Type::Struct("View".into()));
    assert_eq!(
        packed(&view, &[fields(5u32.into())]).unwrap(),
        [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 5, 0, 0, 0, 3, 0, 4, 0]
    );
    let messages = [
        packed(&view, &[fields(5i32.into())]).unwrap_err(),
        packed(&view, &[fields(Arg::Fields(vec![]))]).unwrap_err(),
        packed(&view, &[Arg::Fields(vec![])]).unwrap_err(),
        packed(
            &view,
            &[Arg::Fields(vec![
                Arg::Fields(vec![1f32.into(), 2f64.into()]),
                5u32.into(),
                Arg::Bytes(&[0; 4]),
            ])],
        )
        .unwrap_err(),
        packed(
            &view,
            &[Arg::Fields(vec![Arg::Bytes(&[0; 8]), 5u32.into(), Arg::Fields(vec![1u16.into()])])],
        )
        .unwrap_err(),
    ];
    insta::assert_snapshot!(messages.map(|m| m.to_string()).join("\n"));
}

#[test]
fn host_values_pack_as_their_bytes() {
    let value = [1.0f32, 2.0];
    assert_eq!(
        packed(&one(vector("f32", 2)), &[Arg::value(&value)]).unwrap(),
        [0, 0, 0x80, 0x3f, 0, 0, 0, 0x40]
    );
    let error = message(vector("f32", 4), Arg::value(&value));
    assert_eq!(
        error,
        "kernel `k`, argument 0 (`p`): expected the 16 bytes of `f32x4`, given 8 bytes"
    );
}

#[test]
fn buffers_fit_pointers_of_their_element() {
    use ScalarType::{F64, U8, U16, U64};
    let fits =
        |element, to: Type| packed(&one(pointer(true, to)), &[buffer(element, true)]).is_ok();
    static F32_STATIC: Element = F32;
    let pair = Element::Array(&F32_STATIC, 2);

    assert!(fits(F32, scalar("f32")));
    assert!(!fits(F32, scalar("u32")));
    assert!(!fits(Element::Scalar(F64), scalar("f32")));
    assert!(fits(pair, vector("f32", 2)) && fits(pair, array(scalar("f32"), 2)));
    assert!(
        !fits(pair, vector("f32", 3))
            && !fits(pair, vector("i32", 2))
            && !fits(F32, vector("f32", 2))
    );
    assert!(fits(Element::Struct("View"), Type::Struct("View".into())));
    assert!(!fits(Element::Struct("View"), Type::Struct("Range".into())));
    for to in
        [scalar("f64"), vector("f32", 3), Type::Struct("View".into()), pointer(true, scalar("u8"))]
    {
        assert!(fits(Element::Bytes, to.clone()) && fits(Element::Scalar(U8), to));
    }
    assert!(
        fits(Element::Scalar(U16), scalar("f16")) && fits(Element::Scalar(U16), scalar("bf16"))
    );
    assert!(!fits(Element::Scalar(U16), scalar("i16")));
    assert!(
        fits(Element::Scalar(U64), pointer(false, scalar("f32")))
            && fits(Element::Scalar(U64), Type::Stream)
    );
}

#[test]
fn a_shared_buffer_is_not_written() {
    let constant = pointer(false, scalar("f32"));
    assert!(packed(&one(constant.clone()), &[buffer(F32, false)]).is_ok());
    assert!(packed(&one(constant), &[buffer(F32, true)]).is_ok());
    assert!(packed(&one(pointer(true, scalar("f32"))), &[buffer(F32, false)]).is_err());
    assert!(packed(&one(pointer(true, scalar("f32"))), &[Arg::null()]).is_ok());
}

#[test]
fn what_does_not_fit_says_what_would() {
    let messages = [
        packed(&one(scalar("u32")), &[]).unwrap_err().to_string(),
        packed(&kernel(&[]), &[Arg::from(1), Arg::from(2)]).unwrap_err().to_string(),
        message(scalar("u32"), Arg::from(1)),
        message(scalar("u32"), buffer(F32, true)),
        message(scalar("u32"), Arg::Bytes(&[0; 8])),
        message(scalar("u32"), Arg::Fields(vec![])),
        message(pointer(true, scalar("f32")), Arg::from(0u64)),
        message(pointer(true, scalar("f32")), buffer(F32, false)),
        message(pointer(true, scalar("f32")), buffer(Element::Scalar(ScalarType::I32), true)),
        message(pointer(false, vector("f32", 2)), Arg::Bytes(&[0; 8])),
        message(array(scalar("u16"), 3), Arg::Fields(vec![Arg::from(1u16)])),
        message(vector("i32", 2), Arg::from(1)),
        message(Type::Struct("View".into()), Arg::Bytes(&[0; 12])),
        pack(&one(pointer(true, scalar("f32"))), &[], &[buffer(F32, true)], 3)
            .unwrap_err()
            .to_string(),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_manifest_made_by_hand_cannot_make_it_panic() {
    let mut wrong = one(scalar("u64"));
    wrong.parameter_bytes = 4;
    assert!(packed(&wrong, &[Arg::from(1u64)]).is_err());
    wrong.parameters[0].offset = u32::MAX;
    assert!(packed(&wrong, &[Arg::Bytes(&[0; 8])]).is_err());
    wrong.parameters[0].ty = Type::Struct("None".into());
    assert!(packed(&wrong, &[Arg::Fields(vec![Arg::from(1)])]).is_err());

    // Offsets and sizes that overflow.
    let far = |offset, size| {
        let fields = vec![Field::new("x", scalar("u32"), offset)];
        vec![Struct::new("Far", size, 4, fields)]
    };
    let of_far = array(Type::Struct("Far".into()), 3);
    let mut kernel = one(scalar("u32"));
    kernel.parameters[0].ty = of_far;
    kernel.parameters[0].offset = 8;
    let arg = Arg::Fields(vec![Arg::Fields(vec![Arg::from(1u32)]); 3]);
    for structs in [far(u64::MAX, 4), far(0, u64::MAX / 2), far(0, u64::MAX / 3)] {
        assert!(pack(&kernel, &structs, std::slice::from_ref(&arg), 0).is_err());
    }
}

#[test]
fn values_have_as_many_parts_as_their_type() {
    let two = || vec![Arg::from(1u16), Arg::from(2u16)];
    let three = || vec![Arg::from(1u16), Arg::from(2u16), Arg::from(3u16)];
    for ty in [array(scalar("u16"), 2), vector("u16", 2)] {
        assert_eq!(packed(&one(ty.clone()), &[Arg::Fields(two())]), Ok(vec![1, 0, 2, 0]));
        let expected = format!("expected the 2 elements of `{ty}`, given 3 fields");
        assert!(message(ty.clone(), Arg::Fields(three())).ends_with(&expected), "{ty}");
        assert!(packed(&one(ty.clone()), &[Arg::Fields(two()[..1].to_vec())]).is_err(), "{ty}");
        // Buffers of such elements are also covered.
        const U16: Element = Element::Scalar(ScalarType::U16);
        assert!(Element::Array(&U16, 2).fits(&ty) && !Element::Array(&U16, 3).fits(&ty), "{ty}");
    }
    let view = Type::Struct("View".into());
    assert!(packed(&one(view), &[Arg::Fields(vec![Arg::from(1.0f32)])]).is_err());
}

#[test]
fn the_stack_has_room_for_the_most_parameters() {
    let mut room = ParameterRoom::new();
    assert!(
        room.zeroed(STACK_PARAMETER_BYTES).is_some_and(|bytes| bytes == [0; STACK_PARAMETER_BYTES])
    );
    assert!(room.zeroed(STACK_PARAMETER_BYTES + 1).is_none());
}
