use super::symbols::{DeviceRuntimeAbi, NamedStream, RuntimeFunction, declares_any};

#[test]
fn handles_are_those_of_cudas_header() {
    let handles = [
        NamedStream::Default,
        NamedStream::PerThread,
        NamedStream::TailLaunch,
        NamedStream::FireAndForget,
    ];
    assert_eq!(handles.map(NamedStream::handle), [0, 2, 3, 4]);
}

#[test]
fn pointers_to_structs_are_the_stream_handles() {
    let pointers = crate::launch::struct_pointers();
    for abi in [DeviceRuntimeAbi::Public, DeviceRuntimeAbi::Cdp2] {
        let launch = (abi.symbol(RuntimeFunction::LaunchDevice), 1, "struct.CUstream_st");
        let copy = (abi.symbol(RuntimeFunction::MemcpyAsync), 4, "struct.CUstream_st");
        assert!(pointers.contains(&launch) && pointers.contains(&copy), "{pointers:?}");
    }
}

#[test]
fn modules_of_others_are_linked_with_the_device_runtime_under_either_name() {
    for abi in [DeviceRuntimeAbi::Public, DeviceRuntimeAbi::Cdp2] {
        assert!(declares_any(["a", &abi.symbol(RuntimeFunction::LaunchDevice)]));
    }
    assert!(!declares_any(["a", "cudaMalloc"]));
}

#[test]
fn every_function_describes_its_arguments_on_the_cpu() {
    for function in RuntimeFunction::ALL {
        let declared = DeviceRuntimeAbi::Public.declaration(function);
        let cpu = function.device_function().cpu;
        assert_eq!(cpu.arguments.len(), declared.parameters.len(), "{}", declared.name);
    }
}
