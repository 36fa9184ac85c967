//! `gridlet cache`

use gridlet::cache::{Cache, Contents, LIMIT_VARIABLE};
use gridlet::diagnostics::ids;
use serde_json::json;

use crate::output::{print, print_json};
use crate::report::{Failure, Outcome};
use crate::status;

/// Options of `gridlet cache`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Remove the compiled programs; the compiler parts that `cargo xtask setup` installed stay
    #[arg(long)]
    clear: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Shows or clears the cache.
pub(crate) fn run(options: &Options) -> Outcome {
    let Some(cache) = Cache::of_user() else {
        let hint = format!(
            "unset {LIMIT_VARIABLE} if it is 0, and set GRIDLET_CACHE, XDG_CACHE_HOME or HOME to a folder"
        );
        let failure = Failure::call("there is no cache of compiled programs");
        return Err(failure.with_hint(Some(hint)));
    };
    let contents = if options.clear { cache.clear() } else { cache.contents() };
    let contents = contents.map_err(|error| {
        let message = format!("{}: {error}", cache.folder().display());
        Failure::new(status::CALL, ids::FILE, message)
    })?;
    if options.json {
        let name = if options.clear { "removed" } else { "holds" };
        let folder = cache.folder().display().to_string();
        return print_json(&json!({"folder": folder, "limit": cache.limit(), name: contents}));
    }
    print(&describe(&cache, contents, options.clear))
}

fn describe(cache: &Cache, contents: Contents, cleared: bool) -> String {
    let Contents { entries, bytes, .. } = contents;
    let images = if entries == 1 { "image" } else { "images" };
    let held = format!("{entries} {images}, {} KiB", bytes.div_ceil(1024));
    let folder = cache.folder().display();
    if cleared {
        return format!("{folder}\nremoved {held}\n");
    }
    format!("{folder}\n{held} of at most {} KiB\n", cache.limit() / 1024)
}
