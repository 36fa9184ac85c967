//! The notice of lost launches: a word in host memory that the first lost launch sets, so that a wait need not copy the
//! lost-launch record from a GPU. The copy takes as long as a small kernel.

use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gridlet_artifact::Artifact;

use super::{c_string, foreign};
use crate::backend::{Entered, ImageHandle, Transfer};
use crate::error::Result;
use crate::handles::device::DeviceInner;

const WHAT: &str = "the notice of lost launches";

/// The word of one program on one GPU.
#[derive(Debug)]
pub(super) struct Notice {
    /// The variable of the image that takes the word's address.
    symbol: CString,
    word: *mut AtomicU32,
    /// The word's address on the device.
    address: u64,
}

// SAFETY: the word is only accessed as an atomic, and lives until `free`.
unsafe impl Send for Notice {}
// SAFETY: as above.
unsafe impl Sync for Notice {}

impl Notice {
    /// Allocates a word, if the image has a variable for its address.
    pub(super) fn of(
        artifact: &Artifact,
        device: &DeviceInner,
        entered: &Entered<'_>,
    ) -> Result<Option<Notice>> {
        let described = artifact.manifest().device_runtime.as_ref();
        let symbol = described.and_then(|runtime| runtime.lost_launch_notice.as_deref());
        // The CPU device reads the record itself.
        let Some(symbol) = symbol.filter(|_| !device.handle.is_cpu()) else { return Ok(None) };
        let symbol = c_string(artifact, symbol)?;
        let bytes = size_of::<AtomicU32>();
        let (host, address) = device
            .handle
            .outside_capture(entered, || device.handle.allocate_host(bytes, false, entered))?;
        #[expect(clippy::cast_ptr_alignment, reason = "page-locked memory begins at a page")]
        let word = host.cast::<AtomicU32>();
        // SAFETY: it was just allocated, with this size, and nothing else knows it.
        unsafe { word.write(AtomicU32::new(0)) };
        Ok(Some(Notice { symbol, word, address }))
    }

    /// Tells the image of the entered context where the word is.
    pub(super) fn connect(
        &self,
        artifact: &Artifact,
        image: &ImageHandle,
        device: &Arc<DeviceInner>,
        entered: &Entered<'_>,
    ) -> Result<()> {
        let (to, size) = image.global(&self.symbol, WHAT, entered)?;
        let address = self.address.to_le_bytes();
        if let Some(size) = size.filter(|size| *size != address.len() as u64) {
            let problem = format!("{WHAT} has {size} bytes, not {}", address.len());
            return Err(foreign(artifact, problem));
        }
        let copy = Transfer::ToDevice { from: address.as_ptr(), to, bytes: address.len() };
        device.handle.outside_capture(entered, || {
            // SAFETY: the variable and the address both have that many bytes.
            unsafe { device.transfer_now("a copy of the notice's address", copy, entered) }
        })
    }

    /// Whether a launch was lost since the last call.
    pub(super) fn take(&self, _entered: &Entered<'_>) -> bool {
        // SAFETY: the word lives until `free`; a device that is entered was not reset.
        unsafe { &*self.word }.swap(0, Ordering::AcqRel) != 0
    }

    /// Lets the next [`Notice::take`] be true: a record that is not empty does not set the word again.
    pub(super) fn put_back(&self, _entered: &Entered<'_>) {
        // SAFETY: as in `take`.
        unsafe { &*self.word }.store(1, Ordering::Release);
    }

    /// Frees the word.
    ///
    /// # Safety
    /// The image must be unloaded, and the notice may not be used again.
    pub(super) unsafe fn free(&self, device: &DeviceInner, entered: &Entered<'_>) {
        // SAFETY: allocated in `of`; passed on to the caller.
        unsafe { device.handle.free_host(self.word.cast(), entered) };
    }
}
