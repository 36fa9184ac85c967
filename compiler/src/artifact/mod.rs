//! Artifacts: what a build leaves behind, and the manifest that describes it.
//!
//! The format is `gridlet-runtime`'s ([`gridlet_runtime::manifest`]); this stage only fills it in.

use gridlet_runtime::artifact::Artifact;
use gridlet_runtime::manifest::{self, Image, ImageKind, MANIFEST_VERSION, Manifest};
use sha2::{Digest, Sha256};

use crate::arch::CudaArch;
use crate::compile::{BuildOptions, Checked, Session, hex};
use crate::error::{Error, Result};
use crate::ir::{self, KernelId};
use crate::launch::{LAUNCHES_MADE, LOST_LAUNCH_RECORD, Strategy};
use crate::layout::{field_offset, type_layout};
use crate::types::{StructId, Structs, Type};

/// Describes a checked program, without images.
pub fn describe(program: &Checked) -> Manifest {
    let module = &program.module;
    let mut structs = StructTable { structs: &module.structs, used: Vec::new() };
    let mut kernels = Vec::new();
    for (at, kernel) in module.kernels.iter().enumerate() {
        let id = KernelId(at as u32);
        let buffer = program.layouts.parameters(id);
        let parameters = buffer
            .slots
            .iter()
            .map(|slot| manifest::Parameter {
                name: slot.name.clone(),
                ty: structs.describe(&slot.ty),
                offset: slot.offset,
                size: slot.size,
                alignment: slot.alignment,
            })
            .collect();
        kernels.push(manifest::Kernel {
            name: kernel.name.clone(),
            parameters,
            parameter_bytes: buffer.size,
            max_threads_per_block: kernel.launch_bounds.map(|bounds| bounds.max_threads),
            min_blocks_per_sm: kernel.launch_bounds.and_then(|bounds| bounds.min_blocks),
            static_shared_bytes: program.layouts.static_shared_bytes(module, id),
            dynamic_shared: program.layouts.uses_dynamic_shared(module, id),
            launches: ir::graph::launched_by(module, id)
                .into_iter()
                .map(|launched| module.kernel(launched).name.clone())
                .collect(),
        });
    }
    let is_static = |global: &&ir::Global| global.exported && global.space == ir::Space::Device;
    let mut statics = Vec::new();
    for global in module.globals.iter().filter(is_static) {
        let layout = type_layout(&global.ty, &module.structs);
        statics.push(manifest::Static {
            name: global.name.clone(),
            ty: structs.describe(&global.ty),
            size: layout.size,
            alignment: layout.alignment,
        });
    }
    let device_runtime = manifest::DeviceRuntime {
        lost_launch_record: LOST_LAUNCH_RECORD.into(),
        launches_made: None,
    };
    Manifest {
        manifest_version: MANIFEST_VERSION,
        program: program.name(),
        sources: program.sources.files().iter().map(|file| file.name.clone()).collect(),
        source_sha256: program.source_sha256(),
        launch_strategy: Strategy::Cdp.name().into(),
        kernels,
        statics,
        structs: structs.finish(),
        device_runtime: program.launches().then_some(device_runtime),
        images: Vec::new(),
        toolchain: Vec::new(),
    }
}

/// Builds a cubin for each architecture and packs them with their manifest.
///
/// # Errors
/// As [`Session::cubin`].
pub fn build(
    session: &Session,
    program: &Checked,
    archs: &[CudaArch],
    options: &BuildOptions,
) -> Result<Artifact> {
    let mut images = Vec::new();
    for &arch in archs {
        let built = session.cubin(program, &BuildOptions { arch, ..*options })?;
        images.push((arch, built.cubin.0));
    }
    pack(session, program, images, options.count_launches)
}

/// Packs cubins that are built already; `count_launches` says whether they count the launches they make.
///
/// # Errors
/// [`Error::Internal`] if the runtime does not take what the compiler made.
pub fn pack(
    session: &Session,
    program: &Checked,
    images: Vec<(CudaArch, Vec<u8>)>,
    count_launches: bool,
) -> Result<Artifact> {
    let mut manifest = describe(program);
    if let (Some(device_runtime), true) = (&mut manifest.device_runtime, count_launches) {
        device_runtime.launches_made = Some(LAUNCHES_MADE.into());
    }
    manifest.toolchain = session.versions();
    let stem = program.name();
    let mut files = Vec::new();
    for (arch, bytes) in images {
        let image = Image {
            kind: ImageKind::Cubin,
            arch: arch.sm(),
            file: format!("{stem}.{arch}.cubin"),
            sha256: hex(&Sha256::digest(&bytes)),
            bytes: bytes.len() as u64,
        };
        manifest.images.push(image);
        files.push(bytes);
    }
    Artifact::new(manifest, files).map_err(|error| Error::internal("artifact", error.to_string()))
}

/// Collects the structs that parameters mention, each after those it contains.
struct StructTable<'a> {
    structs: &'a Structs,
    used: Vec<(StructId, manifest::Struct)>,
}

impl StructTable<'_> {
    fn describe(&mut self, ty: &Type) -> manifest::Type {
        match ty {
            // No parameter is of type unit; a pointer to it reads as a pointer to bytes.
            Type::Unit => manifest::Type::Scalar("u8".into()),
            Type::Scalar(scalar) => manifest::Type::Scalar(scalar.name().into()),
            Type::Vector(scalar, count) => {
                manifest::Type::Vector { element: scalar.name().into(), count: u32::from(*count) }
            }
            Type::Array(element, count) => {
                manifest::Type::Array { element: Box::new(self.describe(element)), count: *count }
            }
            Type::Struct(id) => {
                self.add(*id);
                manifest::Type::Struct(self.structs.get(*id).name.clone())
            }
            Type::Pointer { mutable, pointee } => {
                manifest::Type::Pointer { mutable: *mutable, to: Box::new(self.describe(pointee)) }
            }
            Type::Stream => manifest::Type::Stream,
        }
    }

    fn add(&mut self, id: StructId) {
        if self.used.iter().any(|(used, _)| *used == id) {
            return;
        }
        let item = self.structs.get(id);
        let layout = type_layout(&Type::Struct(id), self.structs);
        // Entered before its fields: a struct may point to itself.
        self.used.push((
            id,
            manifest::Struct {
                name: item.name.clone(),
                size: layout.size,
                alignment: layout.alignment,
                fields: Vec::new(),
            },
        ));
        let at = self.used.len() - 1;
        let structs = self.structs;
        let fields = (0..).zip(&structs.get(id).fields).map(|(index, field)| manifest::Field {
            name: field.name.clone(),
            ty: self.describe(&field.ty),
            offset: field_offset(id, index, structs),
        });
        let fields = fields.collect();
        self.used[at].1.fields = fields;
    }

    fn finish(mut self) -> Vec<manifest::Struct> {
        self.used.sort_by_key(|(id, _)| *id);
        self.used.into_iter().map(|(_, item)| item).collect()
    }
}
