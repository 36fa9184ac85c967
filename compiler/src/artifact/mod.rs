//! Artifacts: the images of a build, and the manifest that describes them.
//!
//! `gridlet-artifact` defines the format ([`gridlet_artifact::manifest`]); this stage fills it in.

use std::collections::{BTreeMap, BTreeSet};

use gridlet_artifact::manifest::{self, ImageKind, Manifest, STATISTICS_SMS};
use gridlet_artifact::{Artifact, cpu_arch, describe_image};

use crate::compile::{BuildOptions, Checked, CpuOptions, Session};
use crate::error::{Error, Result};
use crate::link::Cubin;
use crate::link::cubin::{defines, kernel_resources};
use crate::modules::Own;
use crate::target::{self, Target};
use gridlet_lang::arch::CudaArch;
use gridlet_lang::ir::{self, KernelId};
use gridlet_lang::launch::{
    self, LAUNCHES_MADE, LOST_LAUNCH_NOTICE, LOST_LAUNCH_RECORD, LaunchChoice, LaunchOptions,
    LaunchStrategy, STATISTICS,
};
use gridlet_lang::layout::{field_offset, static_shared_bytes, type_layout};
use gridlet_lang::source::SourceFile;
use gridlet_lang::types::{StructId, Structs, Type};

/// Describes a checked program whose launch strategy is chosen by `launch`, without images. It lists all kernels that the
/// program declares (`extern kernel`); a bundle's manifest only those that its images define.
pub fn describe(program: &Checked, launch: impl Into<LaunchChoice>) -> Manifest {
    let module = &program.module;
    let (strategy, reason) = launch.into().resolve(module);
    let mut structs =
        StructTable { structs: &module.structs, mentioned: BTreeSet::new(), open: Vec::new() };
    let mut kernels = Vec::new();
    let waits = ir::graph::waits(module);
    let shared_bytes = static_shared_bytes(module);
    let dynamic_shared = ir::graph::uses_dynamic_shared(module);
    let reads_in_loops = ir::graph::reads_in_loops(module);
    let launched = ir::graph::launched(module);
    let resident_shared_bytes = launch::resident_shared_bytes(module, strategy);
    // Resident launches know kernels by their index in the manifest, so those of other modules come last.
    let (others, own): (Vec<_>, Vec<_>) =
        module.kernels.iter().enumerate().partition(|(_, kernel)| kernel.is_extern());
    for (at, kernel) in own.into_iter().chain(others) {
        let buffer = program.layouts.parameters(KernelId(at as u32));
        let parameters = buffer
            .slots
            .iter()
            .map(|slot| {
                let ty = structs.describe(&slot.ty);
                let (offset, size, alignment) = (slot.offset, slot.size, slot.alignment);
                manifest::Parameter::new(&slot.name, ty, offset, size, alignment)
            })
            .collect();
        let mut described = manifest::Kernel::new(&kernel.name);
        described.symbol =
            Some(ir::symbol::external(&kernel.name)).filter(|symbol| *symbol != kernel.name);
        described.parameters = parameters;
        described.parameter_bytes = buffer.size;
        described.max_threads_per_block = kernel.launch_bounds.map(|bounds| bounds.max_threads);
        described.min_blocks_per_sm = kernel.launch_bounds.and_then(|bounds| bounds.min_blocks);
        described.static_shared_bytes = shared_bytes[at];
        described.resident_shared_bytes = resident_shared_bytes[at];
        described.dynamic_shared = dynamic_shared[at];
        described.barriers = waits[at].block;
        described.warp_operations = waits[at].warp;
        described.reads_in_loops = reads_in_loops[at];
        described.launches =
            launched[at].iter().map(|&id| module.kernel(id).name.clone()).collect();
        described.resident = resident_shared_bytes[at].is_some();
        described.external = kernel.is_extern();
        kernels.push(described);
    }
    let is_static = |global: &&ir::Global| global.exported && global.space == ir::Space::Device;
    let mut statics = Vec::new();
    for global in module.globals.iter().filter(is_static) {
        let layout = type_layout(&global.ty, &module.structs);
        let ty = structs.describe(&global.ty);
        let mut variable = manifest::Static::new(&global.name, ty, layout.size, layout.alignment);
        variable.symbol = Some(ir::symbol::variable(&global.name));
        statics.push(variable);
    }
    let mut manifest = Manifest::new(program.name());
    manifest.sources = program.sources.files().iter().map(|file| file.name.clone()).collect();
    manifest.source_hashes = program.sources.files().iter().map(SourceFile::sha256).collect();
    manifest.source_sha256 = program.source_sha256();
    manifest.launch_strategy = strategy;
    manifest.launch_reason = Some(reason);
    manifest.kernels = kernels;
    manifest.statics = statics;
    manifest.structs = structs.finish();
    manifest.device_runtime = launch::makes_grids(module, strategy).then(|| {
        let mut device_runtime = device_runtime();
        device_runtime.lost_launch_notice = Some(LOST_LAUNCH_NOTICE.into());
        device_runtime
    });
    manifest.resident = resident_entry(program, strategy, false);
    manifest
}

/// The entry of resident launches. Instrumented kernels have more parameters.
fn resident_entry(
    program: &Checked,
    strategy: LaunchStrategy,
    statistics: bool,
) -> Option<manifest::Resident> {
    if strategy != LaunchStrategy::Resident {
        return None;
    }
    let options =
        LaunchOptions::for_arch(strategy, CudaArch::DEFAULT).with_count_launches(statistics);
    program.lower(&options).ok()?.resident
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
    let targets: Vec<Target> = archs.iter().copied().map(Target::Cuda).collect();
    build_for(session, program, &targets, options, &CpuOptions::portable())
}

/// Builds an image for the CPU device and packs it with its manifest.
///
/// # Errors
/// As [`Session::cpu_image`].
pub fn build_cpu(session: &Session, program: &Checked, options: &CpuOptions) -> Result<Artifact> {
    let image = session.cpu_image(program, options)?.0;
    let described = BuildOptions::default().with_statistics(options.statistics);
    pack(session, program, vec![(Target::Cpu, image)], &described)
}

/// Builds an image for each target, several at a time, and packs them with their manifest. Kernels are instrumented if
/// `cuda` or `cpu` requests statistics.
///
/// # Errors
/// As [`Session::cubin`] and [`Session::cpu_image`].
pub fn build_for(
    session: &Session,
    program: &Checked,
    targets: &[Target],
    cuda: &BuildOptions,
    cpu: &CpuOptions,
) -> Result<Artifact> {
    let statistics = cuda.statistics || cpu.statistics;
    let images = target::for_each(&target::distinct(targets), |&target| {
        let image = match target {
            Target::Cuda(arch) => {
                let options = BuildOptions { arch, statistics, ..*cuda };
                session.cubin(program, &options)?.cubin.0
            }
            Target::Cpu => {
                let options = CpuOptions { statistics, ..*cpu };
                session.cpu_image(program, &options)?.0
            }
        };
        Result::Ok((target, image))
    })?;
    pack(session, program, images, &cuda.with_statistics(statistics))
}

/// Builds a module of another compiler for each target and packs the images with their manifest. Launches stay what they
/// are in the module: calls of CUDA's device runtime.
///
/// # Errors
/// As [`Own::check`], [`Session::ptx_of`] and [`Session::device_link`]; as [`Own::cpu_program`] and
/// [`Session::cpu_image`] for the CPU device.
pub fn build_own(
    session: &Session,
    own: &Own<'_>,
    targets: &[Target],
    cuda: &BuildOptions,
    cpu: &CpuOptions,
) -> Result<Artifact> {
    let mut images = Vec::new();
    for target in target::distinct(targets) {
        let image = match target {
            Target::Cuda(arch) => session.own_cubin(own, &BuildOptions { arch, ..*cuda })?.0,
            Target::Cpu => session.cpu_image(own.cpu_program()?, cpu)?.0,
        };
        images.push(image_of(&own.program().name(), target, image));
    }
    pack_into(describe_own(own), session, images)
}

/// Describes a module of another compiler, without images.
pub fn describe_own(own: &Own<'_>) -> Manifest {
    let mut manifest = describe(own.program(), LaunchStrategy::Cdp);
    for (kernel, launches) in manifest.kernels.iter_mut().zip(own.launches()) {
        kernel.launches.clone_from(launches);
    }
    manifest.statics.clear();
    manifest.device_runtime = own.uses_device_runtime().then(device_runtime);
    manifest
}

/// Completes a manifest by what modules that were linked in brought along: keeps those of their kernels that every image defines,
/// and notes the lost-launch record if they launch.
fn settle_linked(manifest: &mut Manifest, images: &[NewImage]) -> Result<()> {
    if let Some(device_runtime) = &mut manifest.device_runtime {
        // The other modules may record lost launches without it.
        device_runtime.lost_launch_notice = None;
    }
    let mut of_images = Vec::new();
    for image in images {
        // The others are not linked with machine code for GPUs.
        if image.kind != ImageKind::Cubin {
            of_images.push(vec![]);
            continue;
        }
        let cubin = Cubin(image.bytes.clone());
        of_images.push(kernel_resources(&cubin)?);
        if manifest.device_runtime.is_none() && defines(&cubin, LOST_LAUNCH_RECORD)? {
            manifest.device_runtime = Some(device_runtime());
        }
    }
    manifest.kernels.retain_mut(|kernel| {
        if !kernel.external {
            return true;
        }
        let symbol = kernel.symbol.as_ref().unwrap_or(&kernel.name);
        for kernels in &of_images {
            let Some(found) = kernels.iter().find(|found| found.kernel == *symbol) else {
                return false;
            };
            kernel.static_shared_bytes = kernel.static_shared_bytes.max(found.static_shared_bytes);
        }
        !of_images.is_empty()
    });
    Ok(())
}

fn device_runtime() -> manifest::DeviceRuntime {
    manifest::DeviceRuntime::new(LOST_LAUNCH_RECORD)
}

/// Packs finished images. `options` are those that they were built with: the manifest records the launch strategy and
/// whether kernels are instrumented.
///
/// # Errors
/// [`Error::Invalid`] if images for GPUs and for the CPU device would differ, because a kernel is `#[fast_math]`;
/// [`Error::Internal`] if the artifact reader rejects the compiler's output.
pub fn pack(
    session: &Session,
    program: &Checked,
    images: Vec<(impl Into<Target>, Vec<u8>)>,
    options: &BuildOptions,
) -> Result<Artifact> {
    let stem = program.name();
    let images = images.into_iter().map(|(target, bytes)| image_of(&stem, target.into(), bytes));
    assemble(session, program, images.collect(), options)
}

/// An image with its name in the bundle.
fn image_of(stem: &str, target: Target, bytes: Vec<u8>) -> NewImage {
    let (kind, arch, ending) = match target {
        Target::Cuda(arch) => (ImageKind::Cubin, arch.sm(), "cubin"),
        Target::Cpu => (ImageKind::SharedObject, cpu_arch(), "so"),
    };
    // A program may have any name, a file beside the manifest may not.
    let is_plain = |c: &char| !c.is_control() && !['/', '\\', ':'].contains(c);
    let stem: String = stem.chars().map(|c| if is_plain(&c) { c } else { '_' }).collect();
    NewImage { kind, arch, file: format!("{stem}.{target}.{ending}"), bytes }
}

/// An image to pack.
#[derive(Clone, Debug)]
pub struct NewImage {
    /// Its kind.
    pub kind: ImageKind,
    /// `sm_90`, `compute_90` or [`cpu_arch`].
    pub arch: String,
    /// Its file name in the bundle.
    pub file: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Packs images of any kind; `options` as for [`pack`].
///
/// # Errors
/// As [`pack`].
pub fn assemble(
    session: &Session,
    program: &Checked,
    images: Vec<NewImage>,
    options: &BuildOptions,
) -> Result<Artifact> {
    let is_for_cpu = |image: &NewImage| image.kind == ImageKind::SharedObject;
    if images.iter().any(is_for_cpu)
        && !images.iter().all(is_for_cpu)
        && let Some(kernel) = program.module.kernels.iter().find(|kernel| kernel.fast_math)
    {
        return Err(Error::Invalid(format!(
            "kernel `{}` is `#[fast_math]`, and the CPU device computes exactly, so its results would differ from the GPU's; \
             build its image by itself",
            kernel.name
        )));
    }
    let mut manifest = describe(program, options.launch);
    if options.statistics {
        if let Some(device_runtime) = &mut manifest.device_runtime {
            device_runtime.launches_made = Some(LAUNCHES_MADE.into());
        }
        manifest.statistics = Some(manifest::Statistics::new(STATISTICS, STATISTICS_SMS));
        manifest.resident = resident_entry(program, manifest.launch_strategy, true);
    }
    if session.links_machine_code() || manifest.kernels.iter().any(|kernel| kernel.external) {
        settle_linked(&mut manifest, &images)?;
    }
    pack_into(manifest, session, images)
}

/// Packs images with their manifest.
fn pack_into(mut manifest: Manifest, session: &Session, images: Vec<NewImage>) -> Result<Artifact> {
    manifest.toolchain = session.versions();
    let mut files = Vec::new();
    for image in images {
        manifest.images.push(describe_image(image.kind, &image.arch, &image.file, &image.bytes));
        files.push(image.bytes);
    }
    Artifact::new(manifest, files).map_err(|error| Error::internal("artifact", error.to_string()))
}

/// Collects the structs that parameters, statics and other collected structs mention.
struct StructTable<'a> {
    structs: &'a Structs,
    mentioned: BTreeSet<StructId>,
    /// Structs whose fields are still to be visited. A list rather than recursion, because structs
    /// that point to others may form a chain of any length.
    open: Vec<StructId>,
}

impl StructTable<'_> {
    fn describe(&mut self, ty: &Type) -> manifest::Type {
        match ty {
            // No parameter has the unit type; a pointer to it reads as a pointer to bytes.
            Type::Unit => manifest::Type::Scalar("u8".into()),
            Type::Scalar(scalar) => manifest::Type::Scalar(scalar.name().into()),
            Type::Vector(scalar, count) => {
                manifest::Type::Vector { element: scalar.name().into(), count: u32::from(*count) }
            }
            Type::Array(element, count) => {
                manifest::Type::Array { element: Box::new(self.describe(element)), count: *count }
            }
            Type::Struct(id) => {
                if self.mentioned.insert(*id) {
                    self.open.push(*id);
                }
                manifest::Type::Struct(self.structs.get(*id).name.clone())
            }
            Type::Pointer { mutable, pointee } => {
                manifest::Type::Pointer { mutable: *mutable, to: Box::new(self.describe(pointee)) }
            }
            Type::Stream => manifest::Type::Stream,
        }
    }

    /// The structs in program order.
    fn finish(mut self) -> Vec<manifest::Struct> {
        let structs = self.structs;
        let mut found = BTreeMap::new();
        while let Some(id) = self.open.pop() {
            let item = structs.get(id);
            let layout = type_layout(&Type::Struct(id), structs);
            let fields = (0..).zip(&item.fields).map(|(index, field)| {
                let offset = field_offset(id, index, structs);
                manifest::Field::new(&field.name, self.describe(&field.ty), offset)
            });
            let fields = fields.collect();
            let described =
                manifest::Struct::new(&item.name, layout.size, layout.alignment, fields);
            found.insert(id, described);
        }
        found.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use gridlet_lang::program::check;
    use gridlet_lang::source::SourceMap;

    use super::*;

    #[test]
    fn fills_are_not_launches_of_the_program() {
        let source = "kernel fill(p: *mut u8, s: stream) { memset_async(p, 7, 100, s); }";
        let fills = check(SourceMap::single("p.grid", source)).unwrap();
        let manifest = describe(&fills, launch::LaunchStrategy::Cdp);
        assert_eq!(manifest.kernels.len(), 1);
        assert_eq!(manifest.kernels[0].launches, [""; 0]);
        // Fills still launch grids, which leave green contexts as all device-side launches do.
        assert!(manifest.device_runtime.is_some());
    }

    #[test]
    fn every_name_of_a_program_gives_names_of_images() {
        let session = Session::new();
        for (name, image) in [
            ("a:3.toy", "a_3.cpu.so"),
            ("C:\\x\\y.toy", "C__x_y.cpu.so"),
            ("a\0b\nc.toy", "a_b_c.cpu.so"),
            ("...", "...cpu.so"),
            ("a/.toy", ".toy.cpu.so"),
            ("é.toy", "é.cpu.so"),
        ] {
            let program = check(SourceMap::single(name, "kernel k() {}")).unwrap();
            let bundle = build_cpu(&session, &program, &CpuOptions::portable()).unwrap();
            assert_eq!(bundle.manifest().images[0].file, image, "{name:?}");
            Artifact::from_bytes(&bundle.to_bytes().unwrap()).unwrap();
        }
    }

    #[test]
    fn bundles_with_fast_kernels_are_for_gpus_or_for_the_cpu() {
        let source = "#[fast_math] kernel k() {}";
        let program = check(SourceMap::single("p.grid", source)).unwrap();
        let exact = check(SourceMap::single("p.grid", "kernel k() {}")).unwrap();
        let sm_90 = Target::Cuda(CudaArch::DEFAULT);
        // The images are none, which is found later.
        let refusal = |program: &Checked, targets: &[Target]| {
            let images = targets.iter().map(|target| (*target, vec![])).collect();
            match pack(&Session::new(), program, images, &BuildOptions::default()) {
                Err(Error::Invalid(message)) => message,
                other => format!("{:?}", other.is_ok()),
            }
        };
        let refused = refusal(&program, &[sm_90, Target::Cpu]);
        assert!(refused.starts_with("kernel `k` is `#[fast_math]`"), "{refused}");
        for (program, targets) in
            [(&program, &[sm_90][..]), (&program, &[Target::Cpu]), (&exact, &[sm_90, Target::Cpu])]
        {
            assert_eq!(refusal(program, targets), "false");
        }
    }
}
