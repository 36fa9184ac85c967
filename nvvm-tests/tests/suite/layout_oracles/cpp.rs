//! The same types in CUDA C++, for nvcc.

use gridlet::ir::Parameter;
use gridlet::layout::{field_offset, type_layout};
use gridlet::types::{Scalar, Structs, Type};

/// A translation unit with all structs, an assertion for every size, alignment and offset that the layout pass
/// computed, and one kernel for each list of parameters: `k0`, `k1`, ….
pub(crate) fn program(kernels: &[Vec<Parameter>], structs: &Structs) -> String {
    let mut text = String::from(
        "#include <cstddef>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n",
    );
    // The first two are built in: `dim3`, whose C++ namesake has the same layout, and the geometry.
    for (id, item) in structs.iter().skip(2) {
        let fields = item
            .fields
            .iter()
            .map(|field| format!(" {};", declare(&field.ty, &field.name, structs)));
        text.push_str(&format!("struct {} {{{} }};\n", item.name, fields.collect::<String>()));
        let layout = type_layout(&Type::Struct(id), structs);
        let mut assert = |what: String, value: u64| {
            text.push_str(&format!(
                "static_assert({what} == {value}, \"{what} is not {value}\");\n"
            ));
        };
        assert(format!("sizeof({})", item.name), layout.size);
        assert(format!("alignof({})", item.name), layout.alignment);
        for (at, field) in item.fields.iter().enumerate() {
            let offset = field_offset(id, at as u32, structs);
            assert(format!("offsetof({}, {})", item.name, field.name), offset);
        }
    }
    for (at, parameters) in kernels.iter().enumerate() {
        let list: Vec<String> = parameters
            .iter()
            .map(|parameter| declare(&parameter.ty, &parameter.name, structs))
            .collect();
        text.push_str(&format!("extern \"C\" __global__ void k{at}({}) {{}}\n", list.join(", ")));
    }
    text
}

fn declare(ty: &Type, name: &str, structs: &Structs) -> String {
    match ty {
        Type::Array(element, count) => declare(element, &format!("{name}[{count}]"), structs),
        Type::Scalar(scalar) => format!("{} {name}", scalar_name(*scalar)),
        Type::Vector(scalar, count) => format!("{} {name}", vector_name(*scalar, *count)),
        Type::Struct(id) => format!("{} {name}", structs.get(*id).name),
        Type::Stream => format!("cudaStream_t {name}"),
        Type::Pointer { .. } => format!("float *{name}"),
        Type::Unit => unreachable!("no parameter has the unit type"),
    }
}

fn scalar_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I8 => "signed char",
        Scalar::I16 => "short",
        Scalar::I32 => "int",
        Scalar::I64 => "long long",
        Scalar::U8 => "unsigned char",
        Scalar::U16 => "unsigned short",
        Scalar::U32 => "unsigned int",
        Scalar::U64 => "unsigned long long",
        Scalar::F16 => "__half",
        Scalar::Bf16 => "__nv_bfloat16",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
    }
}

fn vector_name(scalar: Scalar, count: u8) -> String {
    let element = match scalar {
        Scalar::I8 => "char",
        Scalar::I16 => "short",
        Scalar::I32 => "int",
        Scalar::I64 => "longlong",
        Scalar::U8 => "uchar",
        Scalar::U16 => "ushort",
        Scalar::U32 => "uint",
        Scalar::U64 => "ulonglong",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        Scalar::F16 => return "__half2".into(),
        Scalar::Bf16 => return "__nv_bfloat162".into(),
        Scalar::Bool => unreachable!("there are no vectors of `bool`"),
    };
    format!("{element}{count}")
}
