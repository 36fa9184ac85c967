//! Parts of NVVM IR that launches kernels, as literals for `concat!`.

/// The declarations of CUDA's device runtime, in three lines.
macro_rules! device_runtime {
    () => {
        "%struct.dim3 = type { i32, i32, i32 }
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
"
    };
}

/// A grid or a block of one.
macro_rules! one {
    () => {
        "%struct.dim3 { i32 1, i32 1, i32 1 }"
    };
}

/// The request for the buffer of a kernel with one thread, and the end of its line.
macro_rules! buffer_of {
    ($kernel:literal) => {
        concat!(
            "call ptr @cudaGetParameterBufferV2(ptr @",
            $kernel,
            ", ",
            one!(),
            ", ",
            one!(),
            ", i32 0)\n"
        )
    };
}
