//! The source files that findings of a bundle quote.

use std::path::Path;

use gridlet::disk;
use gridlet::source::SourceMap;
use gridlet_runtime::manifest::Manifest;

/// The sources of a bundle. Those whose text is that from which it was built are looked for by their names in the manifest,
/// in the folder of the bundle and in the current folder; of the others, only the names are known.
pub(crate) fn of_bundle(manifest: &Manifest, bundle: &Path) -> SourceMap {
    let folders = [bundle.parent().unwrap_or(Path::new("")), Path::new("")];
    let hashes = manifest.source_hashes.iter().chain(std::iter::repeat(&None));
    let mut sources = SourceMap::default();
    for (name, hash) in manifest.sources.iter().zip(hashes) {
        let found = hash.as_ref().and_then(|hash| {
            let read = |folder: &&Path| disk::source(&folder.join(name), None);
            folders.iter().filter_map(read).find(|text| {
                let read = SourceMap::single("", text.as_str());
                read.files()[0].sha256().as_ref() == Some(hash)
            })
        });
        match found {
            Some(text) => sources.add(name, text),
            None => sources.add_lines(name, None, &[]),
        };
    }
    sources
}
