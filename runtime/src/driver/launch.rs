//! Launching (driver API, Execution Control).

use std::ffi::c_void;
use std::ptr;

use gridlet_artifact::LaunchConfig;

use super::sys::{
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT, CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT,
    CU_LAUNCH_PARAM_END_AS_INT, CUkernel, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchAttributeValue_union__bindgen_ty_1, CUlaunchConfig, CUstream,
};
use super::{Failed, calls};

/// The largest number of attributes of one launch.
const MAX_ATTRIBUTES: usize = 3;

/// A launch's attributes, on the stack.
pub(super) struct Attributes {
    list: [CUlaunchAttribute; MAX_ATTRIBUTES],
    count: usize,
}

impl Attributes {
    pub(super) fn of(config: &LaunchConfig) -> Attributes {
        let unused = CUlaunchAttribute {
            id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE,
            pad: [0; 4],
            value: CUlaunchAttributeValue { pad: [0; 64] },
        };
        let mut attributes = Attributes { list: [unused; MAX_ATTRIBUTES], count: 0 };
        if let Some(cluster) = config.cluster {
            let (x, y, z) = (cluster.x, cluster.y, cluster.z);
            let cluster = CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            let attribute =
                attributes.next(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
            attribute.clusterDim = cluster;
        }
        if config.cooperative {
            attributes.next(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
        }
        if let Some(priority) = config.priority {
            attributes.next(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = priority;
        }
        attributes
    }

    /// There are as many slots as kinds of attribute, and each kind is used once.
    fn next(&mut self, id: CUlaunchAttributeID) -> &mut CUlaunchAttributeValue {
        let attribute = &mut self.list[self.count];
        self.count += 1;
        attribute.id = id;
        &mut attribute.value
    }
}

/// The driver's form of a configuration; it points to `attributes`.
pub(super) fn driver_config(
    config: &LaunchConfig,
    attributes: &mut Attributes,
    stream: CUstream,
) -> CUlaunchConfig {
    CUlaunchConfig {
        gridDimX: config.grid.x,
        gridDimY: config.grid.y,
        gridDimZ: config.grid.z,
        blockDimX: config.block.x,
        blockDimY: config.block.y,
        blockDimZ: config.block.z,
        sharedMemBytes: config.shared_bytes,
        hStream: stream,
        attrs: match attributes.count {
            0 => ptr::null_mut(),
            _ => attributes.list.as_mut_ptr(),
        },
        numAttrs: attributes.count as u32,
    }
}

/// `cuLaunchKernelEx` with the parameters in one packed buffer (`CU_LAUNCH_PARAM_BUFFER_POINTER`, "extra"): the
/// driver copies the bytes unchanged into the kernel's parameter space, so the manifest's offsets apply.
///
/// # Safety
/// The contract of [`super`]; `parameters` must match the kernel's.
pub(crate) unsafe fn launch(
    kernel: CUkernel,
    config: &LaunchConfig,
    stream: CUstream,
    parameters: &mut [u8],
) -> Result<(), Failed> {
    let mut attributes = Attributes::of(config);
    let driver_config = driver_config(config, &mut attributes, stream);
    let mut bytes = parameters.len();
    let mut extra: [*mut c_void; 5] = [
        ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT as usize),
        parameters.as_mut_ptr().cast(),
        ptr::without_provenance_mut(CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT as usize),
        ptr::from_mut(&mut bytes).cast(),
        ptr::without_provenance_mut(CU_LAUNCH_PARAM_END_AS_INT as usize),
    ];
    let extra = if parameters.is_empty() { ptr::null_mut() } else { extra.as_mut_ptr() };
    // SAFETY: passed on to the caller; parameters and attributes are copied before the call returns. A `CUkernel`
    // serves as a `CUfunction` "by casting to CUfunction" (`cuLaunchKernelEx`).
    unsafe { calls::cuLaunchKernelEx(&driver_config, kernel.cast(), ptr::null_mut(), extra) }
}
