// Gridlet's compiler for C: from source text or IR in memory to any output, with diagnostics as structures.
//
// Each function that can fail returns a gridlet_compile_status; gridlet_compile_error describes the last failure on the
// calling thread. A handle may be used on several threads at once, except while a function changes or frees it: the
// parameters that are not const say which. Handles do not depend on each other and may be freed in any order. Freeing NULL
// does nothing; other functions refuse it. LLVM needs a stack of at least 1 MiB on the calling thread.

#ifndef GRIDLET_COMPILER_H
#define GRIDLET_COMPILER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

// The result of a call.
typedef enum gridlet_compile_status {
  // Success.
  GRIDLET_COMPILE_STATUS_OK = 0,
  // An argument is NULL, not UTF-8, or invalid.
  GRIDLET_COMPILE_STATUS_INVALID_ARGUMENT = 1,
  // The program, or a linked module, is wrong.
  GRIDLET_COMPILE_STATUS_PROGRAM = 2,
  // A compiler part is missing or too old.
  GRIDLET_COMPILE_STATUS_MISSING = 3,
  // A compiler part refused its input.
  GRIDLET_COMPILE_STATUS_TOOL = 4,
  // A file cannot be read or written.
  GRIDLET_COMPILE_STATUS_FILE = 5,
  // A bug in Gridlet.
  GRIDLET_COMPILE_STATUS_INTERNAL = 6,
} gridlet_compile_status;

// The severity of a diagnostic.
typedef enum gridlet_severity {
  // Does not stop a build.
  GRIDLET_SEVERITY_WARNING = 0,
  // Stops a build.
  GRIDLET_SEVERITY_ERROR = 1,
} gridlet_severity;

// The tools of a process and the modules to link: found and read once, for any number of programs.
typedef struct gridlet_compiler gridlet_compiler;

// The messages of a call.
typedef struct gridlet_diagnostics gridlet_diagnostics;

// A program: source text or IR that was read and checked.
typedef struct gridlet_module gridlet_module;

// The options of a build.
typedef struct gridlet_options gridlet_options;

// An output in memory.
typedef struct gridlet_output gridlet_output;

// A range in a source file. All numbers are 0, and `file` is NULL, if there is no place. Of a place in NVVM IR only the line is known, and
// sometimes the column; the other numbers are 0.
typedef struct gridlet_place {
  // The file's name.
  const char *file;
  // The first line, counted from 1.
  uint32_t line;
  // The first column in characters, counted from 1.
  uint32_t column;
  // The line of the end.
  uint32_t end_line;
  // The column of the end, which is not part of the range.
  uint32_t end_column;
  // The first byte in the file, counted from 0.
  uint32_t start;
  // One past the last byte.
  uint32_t end;
} gridlet_place;

// A place with a remark.
typedef struct gridlet_label {
  // The place.
  struct gridlet_place place;
  // The remark; may be empty.
  const char *message;
  // Nonzero if the problem is here; other labels give context.
  uint32_t primary;
} gridlet_label;

// A message about a program, or the reason why a call failed. Later versions add fields at the end only.
typedef struct gridlet_diagnostic {
  // The severity.
  enum gridlet_severity severity;
  // A stable id, which `gridlet_explain` explains.
  const char *id;
  // What is wrong: one line, or several where it quotes text or a tool's log.
  const char *message;
  // The place of the first primary label.
  struct gridlet_place place;
  // All places, with remarks.
  const struct gridlet_label *labels;
  // The number of places.
  size_t label_count;
  // Further remarks.
  const char *const *notes;
  // The number of further remarks.
  size_t note_count;
  // How to fix the problem; NULL if there is no hint.
  const char *hint;
  // All of it as text, with the source lines.
  const char *rendered;
} gridlet_diagnostic;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The message of the last failure on this thread; empty if there was none. Valid until the next failing call on
// this thread.
const char *gridlet_compile_error(void);

// The version of the compiler. The string is never freed.
const char *gridlet_compiler_version(void);

// The reference's text on an id of a diagnostic, as `gridlet explain` shows it; NULL for an unknown id. The string is never
// freed.
//
// # Safety
// `id` must be NULL or a string.
const char *gridlet_explain(const char *id);

// Finds this machine's compiler parts, which are loaded when they are first needed.
//
// # Safety
// `compiler` must have room for a pointer.
enum gridlet_compile_status gridlet_compiler_create(struct gridlet_compiler **compiler);

// Adds a module that defines functions which programs declare as `extern fn`. The ending of its name says what it is:
// .ll, .bc, .ptx, .cubin, .fatbin, .o, .a or .c.
//
// # Safety
// `compiler` must not be in use elsewhere, `name` must be a string, and `data` must have `size` bytes.
enum gridlet_compile_status gridlet_compiler_link(struct gridlet_compiler *compiler,
                                                  const char *name,
                                                  const void *data,
                                                  size_t size);

// Frees a compiler.
//
// # Safety
// `compiler` must be NULL, or a compiler that is not used again.
void gridlet_compiler_free(struct gridlet_compiler *compiler);

// Reads and checks a program in memory. The ending of `name` says what it is: .ll or .bc for NVVM IR of either dialect, as text or
// bitcode; .gir for the text form of Gridlet's IR; anything else for the language. `name` also appears in messages. `options` may be
// NULL; of them, only the instances matter here. `diagnostics` may be NULL; otherwise it gets the messages, or NULL if there are none.
// A program that is refused has errors among them; warnings come with a module.
//
// # Safety
// `name` must be a string, `data` must have `size` bytes, `options` must be NULL or alive, and `module` and `diagnostics` must have
// room for a pointer.
enum gridlet_compile_status gridlet_module_read(const char *name,
                                                const void *data,
                                                size_t size,
                                                const struct gridlet_options *options,
                                                struct gridlet_module **module,
                                                struct gridlet_diagnostics **diagnostics);

// As `gridlet_module_read`, for a file. A program of the language may use other files, and the sources that the debug information of
// NVVM IR names are looked for from the file's folder, so that findings about a bundle quote them.
//
// # Safety
// As for `gridlet_module_read`; `path` must be a string.
enum gridlet_compile_status gridlet_module_open(const char *path,
                                                const struct gridlet_options *options,
                                                struct gridlet_module **module,
                                                struct gridlet_diagnostics **diagnostics);

// Frees a module.
//
// # Safety
// `module` must be NULL, or a module that is not used again.
void gridlet_module_free(struct gridlet_module *module);

// Makes an output: `bundle`, `host-object`, `header`, `manifest` (JSON), `layout` (JSON), `ir`, `nvvm`, `bitcode`, `ptx`, `cubin`, `object` or
// `shared-object`, as `gridlet build --emit` does. Bundles, host objects and manifests are of all targets of the options; the others,
// except `layout` and `header`, need options with one target. `options` may be NULL for the defaults. `diagnostics` as for `gridlet_module_read`;
// warnings are those of NVIDIA's tools.
//
// # Safety
// All handles must be alive, `kind` must be a string, and `output` and `diagnostics` must have room for a pointer.
enum gridlet_compile_status gridlet_module_emit(const struct gridlet_compiler *compiler,
                                                const struct gridlet_module *module,
                                                const char *kind,
                                                const struct gridlet_options *options,
                                                struct gridlet_output **output,
                                                struct gridlet_diagnostics **diagnostics);

// The bytes of an output; NULL for NULL. A zero byte follows them, so that text is a string. Valid until the output is freed.
//
// # Safety
// `output` must be NULL or alive.
const void *gridlet_output_data(const struct gridlet_output *output);

// The number of bytes of an output, without the zero byte behind them; 0 for NULL.
//
// # Safety
// `output` must be NULL or alive.
size_t gridlet_output_size(const struct gridlet_output *output);

// Frees an output.
//
// # Safety
// `output` must be NULL, or an output that is not used again.
void gridlet_output_free(struct gridlet_output *output);

// The number of diagnostics; 0 for NULL.
//
// # Safety
// `diagnostics` must be NULL or alive.
size_t gridlet_diagnostics_count(const struct gridlet_diagnostics *diagnostics);

// A diagnostic by its index, counted from 0; NULL if there is none. Valid until the diagnostics are freed.
//
// # Safety
// `diagnostics` must be NULL or alive.
const struct gridlet_diagnostic *gridlet_diagnostics_get(const struct gridlet_diagnostics *diagnostics,
                                                         size_t index);

// Frees diagnostics.
//
// # Safety
// `diagnostics` must be NULL, or diagnostics that are not used again.
void gridlet_diagnostics_free(struct gridlet_diagnostics *diagnostics);

// Creates the default options of `gridlet build`: target sm_90, optimised.
//
// # Safety
// `options` must have room for a pointer.
enum gridlet_compile_status gridlet_options_create(struct gridlet_options **options);

// Frees options.
//
// # Safety
// `options` must be NULL, or options that are not used again.
void gridlet_options_free(struct gridlet_options *options);

// Adds a target: `sm_75` and later, or `cpu`. Without any, the target is `sm_90`.
//
// # Safety
// `options` must be alive and not in use elsewhere; `name` must be a string.
enum gridlet_compile_status gridlet_options_add_target(struct gridlet_options *options,
                                                       const char *name);

// Adds a kernel with const parameters to compile for these constants, as `k::<8>`, in addition to the instances that the program
// launches.
//
// # Safety
// As for `gridlet_options_add_target`.
enum gridlet_compile_status gridlet_options_add_instance(struct gridlet_options *options,
                                                         const char *name);

// Sets how kernels launch kernels on GPUs: `auto` (the default), `cdp` or `resident`.
//
// # Safety
// As for `gridlet_options_add_target`.
enum gridlet_compile_status gridlet_options_set_launch(struct gridlet_options *options,
                                                       const char *name);

// Sets the dialect of NVVM IR: `auto` (the default, which follows the target), `legacy` or `modern`.
//
// # Safety
// As for `gridlet_options_add_target`.
enum gridlet_compile_status gridlet_options_set_dialect(struct gridlet_options *options,
                                                        const char *name);

// Sets the compiler to PTX: `libnvvm` (the default) or `nvptx`.
//
// # Safety
// As for `gridlet_options_add_target`.
enum gridlet_compile_status gridlet_options_set_backend(struct gridlet_options *options,
                                                        const char *name);

// Sets whether to optimise, which is the default.
//
// # Safety
// `options` must be alive and not in use elsewhere.
enum gridlet_compile_status gridlet_options_set_optimize(struct gridlet_options *options, int on);

// Sets whether `f32` is computed on GPUs as with nvcc's `-use_fast_math`: faster and less exact.
//
// # Safety
// `options` must be alive and not in use elsewhere.
enum gridlet_compile_status gridlet_options_set_fast_math(struct gridlet_options *options, int on);

// Sets whether kernels record statistics of their run.
//
// # Safety
// `options` must be alive and not in use elsewhere.
enum gridlet_compile_status gridlet_options_set_statistics(struct gridlet_options *options, int on);

// Sets whether images for the CPU device report races, wrong accesses and waits.
//
// # Safety
// `options` must be alive and not in use elsewhere.
enum gridlet_compile_status gridlet_options_set_check(struct gridlet_options *options, int on);

// Sets whether images for the CPU device may use every feature of this machine's processor. They then run only on processors that
// have them too.
//
// # Safety
// `options` must be alive and not in use elsewhere.
enum gridlet_compile_status gridlet_options_set_native(struct gridlet_options *options,
                                                       int on);

// Sets whether images have line tables, for debuggers and profilers, and variables: for GPUs only without optimisation.
//
// # Safety
// `options` must be alive and not in use elsewhere.
enum gridlet_compile_status gridlet_options_set_debug_lines(struct gridlet_options *options,
                                                            int on);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GRIDLET_COMPILER_H */
