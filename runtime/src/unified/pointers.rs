//! Pointer attributes (`cuPointerGetAttribute`).

use std::ffi::c_void;

use crate::error::{CudaVersion, Error, Result};
use crate::handles::{Device, DeviceInner};

/// `CUpointer_attribute` (cuda.h).
mod attribute {
    pub(super) const CONTEXT: u32 = 1;
    pub(super) const MEMORY_TYPE: u32 = 2;
    pub(super) const DEVICE_POINTER: u32 = 3;
    pub(super) const HOST_POINTER: u32 = 4;
    pub(super) const P2P_TOKENS: u32 = 5;
    pub(super) const SYNC_MEMOPS: u32 = 6;
    pub(super) const BUFFER_ID: u32 = 7;
    pub(super) const IS_MANAGED: u32 = 8;
    pub(super) const DEVICE_ORDINAL: u32 = 9;
    pub(super) const IS_LEGACY_CUDA_IPC_CAPABLE: u32 = 10;
    pub(super) const RANGE_START_ADDR: u32 = 11;
    pub(super) const RANGE_SIZE: u32 = 12;
    pub(super) const MAPPED: u32 = 13;
    pub(super) const ALLOWED_HANDLE_TYPES: u32 = 14;
    pub(super) const IS_GPU_DIRECT_RDMA_CAPABLE: u32 = 15;
    pub(super) const ACCESS_FLAGS: u32 = 16;
    pub(super) const MEMPOOL_HANDLE: u32 = 17;
    pub(super) const MAPPING_SIZE: u32 = 18;
    pub(super) const MAPPING_BASE_ADDR: u32 = 19;
    pub(super) const MEMORY_BLOCK_ID: u32 = 20;
    pub(super) const IS_HW_DECOMPRESS_CAPABLE: u32 = 21;
}

/// Kinds of physical memory (`CUmemorytype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryType {
    /// Host memory.
    Host,
    /// Device memory.
    Device,
    /// Array memory.
    Array,
    /// Unified host and device memory.
    Unified,
    /// A value that this crate does not know.
    Other(u32),
}

impl MemoryType {
    /// `None` for 0, which a batch query returns for pointers unknown to CUDA.
    fn from_raw(kind: u32) -> Option<MemoryType> {
        match kind {
            0 => None,
            1 => Some(MemoryType::Host),
            2 => Some(MemoryType::Device),
            3 => Some(MemoryType::Array),
            4 => Some(MemoryType::Unified),
            other => Some(MemoryType::Other(other)),
        }
    }
}

/// Tokens for the Linux kernel's `nv-p2p.h` (`CUDA_POINTER_ATTRIBUTE_P2P_TOKENS`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct P2pTokens {
    /// `p2pToken`
    pub p2p: u64,
    /// `vaSpaceToken`
    pub va_space: u32,
}

/// The ways to share an allocation with other processes (`CUmemAllocationHandleType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandleTypes {
    /// A file descriptor.
    pub posix_file_descriptor: bool,
    /// A Win32 NT handle.
    pub win32: bool,
    /// A Win32 KMT handle.
    pub win32_kmt: bool,
    /// A fabric handle.
    pub fabric: bool,
}

impl HandleTypes {
    fn from_raw(bits: u64) -> HandleTypes {
        let has = |bit: u64| bits & bit != 0;
        HandleTypes {
            posix_file_descriptor: has(1),
            win32: has(2),
            win32_kmt: has(4),
            fabric: has(8),
        }
    }
}

/// The access that the current context's device has to memory (`CU_POINTER_ATTRIBUTE_ACCESS_FLAGS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// None: the memory must be copied.
    None,
    /// Read access.
    Read,
    /// Read and write access.
    ReadWrite,
    /// A value that this crate does not know.
    Other(u32),
}

impl Access {
    fn from_raw(flags: u32) -> Access {
        match flags {
            0 => Access::None,
            1 => Access::Read,
            3 => Access::ReadWrite,
            other => Access::Other(other),
        }
    }
}

/// `CUDA_ERROR_INVALID_VALUE`
const INVALID_VALUE: i32 = 1;
/// The version that introduced [`PointerQuery::is_hardware_decompress_capable`].
const DECOMPRESSION: CudaVersion = CudaVersion::new(12, 8);

/// The attributes of a pointer that the driver returns in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PointerInfo {
    /// [`PointerQuery::context`]; 0 if none.
    pub context: u64,
    /// [`PointerQuery::memory_type`]
    pub memory_type: MemoryType,
    /// [`PointerQuery::device_address`]; 0 if none.
    pub device_address: u64,
    /// [`PointerQuery::host_address`]; 0 if none.
    pub host_address: u64,
    /// [`PointerQuery::sync_memops`]
    pub sync_memops: bool,
    /// [`PointerQuery::is_managed`]
    pub is_managed: bool,
    /// [`PointerQuery::device_ordinal`]
    pub device_ordinal: Option<u32>,
    /// [`PointerQuery::buffer_id`]
    pub buffer_id: u64,
    /// [`PointerQuery::range_start`]
    pub range_start: u64,
    /// [`PointerQuery::range_size`], in bytes
    pub range_bytes: u64,
    /// [`PointerQuery::is_mapped`]
    pub is_mapped: bool,
    /// [`PointerQuery::is_legacy_ipc_capable`]
    pub is_legacy_ipc_capable: bool,
    /// [`PointerQuery::allowed_handle_types`]
    pub allowed_handle_types: HandleTypes,
    /// [`PointerQuery::memory_pool`]; 0 if none.
    pub memory_pool: u64,
    /// [`PointerQuery::is_hardware_decompress_capable`]; `None` before CUDA 12.8, or if the driver does not report
    /// it.
    pub is_hardware_decompress_capable: Option<bool>,
}

impl Device {
    /// Queries the driver about an address; any address is allowed.
    pub fn pointer(&self, address: u64) -> PointerQuery<'_> {
        PointerQuery { device: &self.inner, address }
    }
}

/// Queries about one address. Each is one call of `cuPointerGetAttribute`, except [`PointerQuery::info`].
///
/// All return [`Error::Cuda`](crate::Error::Cuda) if the driver does not know the memory
/// (`CUDA_ERROR_INVALID_VALUE`) or the attribute does not apply, [`Error::NotOnCpu`](crate::Error::NotOnCpu) and
/// [`Error::Unusable`](crate::Error::Unusable).
#[derive(Clone, Copy, Debug)]
pub struct PointerQuery<'a> {
    device: &'a std::sync::Arc<DeviceInner>,
    address: u64,
}

impl PointerQuery<'_> {
    /// # Safety
    /// `T` must be the attribute's type, and every bit pattern a value of it.
    unsafe fn get<T: Copy + Default>(&self, attribute: u32) -> Result<T> {
        let entered = self.device.enter()?;
        let empty = T::default();
        // SAFETY: passed on to the caller; the driver accepts any address.
        unsafe { self.device.handle.pointer_attribute(self.address, attribute, empty, &entered) }
    }

    fn u32(&self, attribute: u32) -> Result<u32> {
        // SAFETY: the attributes queried this way are 32-bit integers.
        unsafe { self.get(attribute) }
    }

    fn u64(&self, attribute: u32) -> Result<u64> {
        // SAFETY: the attributes queried this way are 64-bit integers, sizes or addresses.
        unsafe { self.get(attribute) }
    }

    /// A `bool`, which drivers write as one byte or as an integer: the value is zeroed first, so any nonzero byte
    /// means true.
    fn bool(&self, attribute: u32) -> Result<bool> {
        Ok(self.u32(attribute)? != 0)
    }

    /// The context in which the memory was allocated or registered, as the address of a `CUcontext`; 0 for memory
    /// without a context.
    pub fn context(&self) -> Result<u64> {
        self.u64(attribute::CONTEXT)
    }

    /// The kind of memory at the address.
    pub fn memory_type(&self) -> Result<MemoryType> {
        let kind = self.u32(attribute::MEMORY_TYPE)?;
        Ok(MemoryType::from_raw(kind).unwrap_or(MemoryType::Other(0)))
    }

    /// The device address, for kernels.
    pub fn device_address(&self) -> Result<u64> {
        self.u64(attribute::DEVICE_POINTER)
    }

    /// The host address.
    pub fn host_address(&self) -> Result<u64> {
        self.u64(attribute::HOST_POINTER)
    }

    /// Tokens for RDMA. Reading them sets [`PointerQuery::sync_memops`].
    pub fn p2p_tokens(&self) -> Result<P2pTokens> {
        // SAFETY: `P2pTokens` is the attribute's struct.
        unsafe { self.get(attribute::P2P_TOKENS) }
    }

    /// Whether synchronous copies of the memory always wait.
    pub fn sync_memops(&self) -> Result<bool> {
        self.bool(attribute::SYNC_MEMOPS)
    }

    /// Sets [`PointerQuery::sync_memops`], the only attribute that can be set (`cuPointerSetAttribute`).
    pub fn set_sync_memops(&self, on: bool) -> Result<()> {
        let entered = self.device.enter()?;
        let value = u32::from(on);
        let attribute = attribute::SYNC_MEMOPS;
        self.device.handle.set_pointer_attribute(self.address, attribute, value, &entered)
    }

    /// A number unique to the allocation within the process.
    pub fn buffer_id(&self) -> Result<u64> {
        self.u64(attribute::BUFFER_ID)
    }

    /// Whether the memory is managed.
    pub fn is_managed(&self) -> Result<bool> {
        self.bool(attribute::IS_MANAGED)
    }

    /// The device that the memory was allocated or registered for; `None` for the host.
    pub fn device_ordinal(&self) -> Result<Option<u32>> {
        Ok(u32::try_from(self.u32(attribute::DEVICE_ORDINAL)?.cast_signed()).ok())
    }

    /// Whether `cudaIpcGetMemHandle` accepts the memory.
    pub fn is_legacy_ipc_capable(&self) -> Result<bool> {
        self.bool(attribute::IS_LEGACY_CUDA_IPC_CAPABLE)
    }

    /// The start of the allocation.
    pub fn range_start(&self) -> Result<u64> {
        self.u64(attribute::RANGE_START_ADDR)
    }

    /// The size of the allocation in bytes.
    pub fn range_size(&self) -> Result<u64> {
        self.u64(attribute::RANGE_SIZE)
    }

    /// Whether memory is mapped at the address.
    pub fn is_mapped(&self) -> Result<bool> {
        self.bool(attribute::MAPPED)
    }

    /// The ways to share the allocation with other processes.
    pub fn allowed_handle_types(&self) -> Result<HandleTypes> {
        Ok(HandleTypes::from_raw(self.u64(attribute::ALLOWED_HANDLE_TYPES)?))
    }

    /// Whether GPUDirect RDMA works on the memory.
    pub fn is_gpu_direct_rdma_capable(&self) -> Result<bool> {
        self.bool(attribute::IS_GPU_DIRECT_RDMA_CAPABLE)
    }

    /// The device's access to the memory (`CU_POINTER_ATTRIBUTE_ACCESS_FLAGS`).
    pub fn access(&self) -> Result<Access> {
        Ok(Access::from_raw(self.u32(attribute::ACCESS_FLAGS)?))
    }

    /// The memory pool that the memory came from, as the address of a `CUmemoryPool`; 0 if none.
    pub fn memory_pool(&self) -> Result<u64> {
        self.u64(attribute::MEMPOOL_HANDLE)
    }

    /// The size in bytes of the mapping around the address.
    pub fn mapping_size(&self) -> Result<u64> {
        self.u64(attribute::MAPPING_SIZE)
    }

    /// The start of that mapping.
    pub fn mapping_base(&self) -> Result<u64> {
        self.u64(attribute::MAPPING_BASE_ADDR)
    }

    /// The number of the memory block that backs the address.
    pub fn memory_block_id(&self) -> Result<u64> {
        self.u64(attribute::MEMORY_BLOCK_ID)
    }

    /// Whether hardware can decompress the memory. Since CUDA 12.8.
    pub fn is_hardware_decompress_capable(&self) -> Result<bool> {
        self.bool(attribute::IS_HW_DECOMPRESS_CAPABLE)
    }

    /// All attributes that the driver returns in one call (`cuPointerGetAttributes`, "The supported attributes
    /// are"); `None` for an unknown pointer, for which the batch call returns empty values instead of an error.
    pub fn info(&self) -> Result<Option<PointerInfo>> {
        let (mut memory_type, mut managed, mut mapped, mut sync, mut ipc, mut decompress) =
            (0u32, 0u32, 0u32, 0u32, 0u32, 0u32);
        let (mut device_address, mut host_address, mut buffer_id) = (0u64, 0u64, 0u64);
        let (mut range_start, mut range_bytes, mut ordinal) = (0u64, 0u64, -1i32);
        let (mut context, mut handle_types, mut memory_pool) = (0u64, 0u64, 0u64);
        let mut wanted: [(u32, *mut c_void); 15] = [
            (attribute::CONTEXT, (&raw mut context).cast()),
            (attribute::MEMORY_TYPE, (&raw mut memory_type).cast()),
            (attribute::DEVICE_POINTER, (&raw mut device_address).cast()),
            (attribute::HOST_POINTER, (&raw mut host_address).cast()),
            (attribute::SYNC_MEMOPS, (&raw mut sync).cast()),
            (attribute::BUFFER_ID, (&raw mut buffer_id).cast()),
            (attribute::IS_MANAGED, (&raw mut managed).cast()),
            (attribute::DEVICE_ORDINAL, (&raw mut ordinal).cast()),
            (attribute::RANGE_START_ADDR, (&raw mut range_start).cast()),
            (attribute::RANGE_SIZE, (&raw mut range_bytes).cast()),
            (attribute::MAPPED, (&raw mut mapped).cast()),
            (attribute::IS_LEGACY_CUDA_IPC_CAPABLE, (&raw mut ipc).cast()),
            (attribute::ALLOWED_HANDLE_TYPES, (&raw mut handle_types).cast()),
            (attribute::MEMPOOL_HANDLE, (&raw mut memory_pool).cast()),
            // Last: older drivers refuse the whole batch because of it.
            (attribute::IS_HW_DECOMPRESS_CAPABLE, (&raw mut decompress).cast()),
        ];
        let mut ask = |count: usize| {
            // SAFETY: each pointer is to a live integer of its attribute's size; the driver accepts any address.
            self.device.call(|entered| unsafe {
                self.device.handle.pointer_attributes(self.address, &mut wanted[..count], entered)
            })
        };
        let mut knows_decompression = self.device.info.driver_version >= DECOMPRESSION;
        match ask(if knows_decompression { 15 } else { 14 }) {
            Err(Error::Cuda(error)) if knows_decompression && error.code == INVALID_VALUE => {
                knows_decompression = false;
                ask(14)
            }
            other => other,
        }?;
        Ok(MemoryType::from_raw(memory_type).map(|memory_type| PointerInfo {
            context,
            memory_type,
            device_address,
            host_address,
            sync_memops: sync != 0,
            is_managed: managed != 0,
            device_ordinal: u32::try_from(ordinal).ok(),
            buffer_id,
            range_start,
            range_bytes,
            is_mapped: mapped != 0,
            is_legacy_ipc_capable: ipc != 0,
            allowed_handle_types: HandleTypes::from_raw(handle_types),
            memory_pool,
            is_hardware_decompress_capable: knows_decompression.then_some(decompress != 0),
        }))
    }
}
