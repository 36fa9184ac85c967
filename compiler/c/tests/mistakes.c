/* Wrong calls, for tests/api.rs, which compares what they print. */
#include <stdio.h>
#include <string.h>

/* Both headers fit into one program. */
#include "../../../runtime/include/gridlet.h"
#include "gridlet_compiler.h"

static void show(gridlet_compile_status status) {
    printf("%d: %s\n", (int)status, status == GRIDLET_COMPILE_STATUS_OK ? "ok" : gridlet_compile_error());
}

static gridlet_module *read_text(const char *name, const char *text, gridlet_diagnostics **diagnostics) {
    gridlet_module *module;
    show(gridlet_module_read(name, text, strlen(text), NULL, &module, diagnostics));
    return module;
}

int main(void) {
    gridlet_compiler *compiler;
    gridlet_options *options;
    gridlet_module *module;
    gridlet_output *output;
    gridlet_diagnostics *diagnostics;

    show(gridlet_compiler_create(NULL));
    show(gridlet_compiler_create(&compiler));
    show(gridlet_options_create(&options));

    printf("options\n");
    show(gridlet_options_add_target(NULL, "cpu"));
    show(gridlet_options_add_target(options, NULL));
    show(gridlet_options_add_target(options, "sm_1"));
    show(gridlet_options_add_target(options, "\xff"));
    show(gridlet_options_add_instance(options, "k::<"));
    show(gridlet_options_set_launch(options, "never"));
    show(gridlet_options_set_dialect(options, "old"));
    show(gridlet_options_set_backend(options, "gcc"));
    show(gridlet_options_set_check(NULL, 1));

    printf("links\n");
    show(gridlet_compiler_link(compiler, "a.exe", "x", 1));
    show(gridlet_compiler_link(compiler, "a.o", "x", 1));
    show(gridlet_compiler_link(compiler, "a.o", NULL, 1));
    show(gridlet_compiler_link(compiler, NULL, "x", 1));
    show(gridlet_compiler_link(NULL, "a.ptx", "x", 1));

    printf("modules\n");
    show(gridlet_module_read(NULL, "x", 1, NULL, &module, NULL));
    show(gridlet_module_read("a.grid", NULL, 1, NULL, &module, &diagnostics));
    printf("%s [%s], %s\n", gridlet_diagnostics_get(diagnostics, 0)->message, gridlet_diagnostics_get(diagnostics, 0)->id,
           module ? "a module" : "NULL");
    gridlet_diagnostics_free(diagnostics);
    show(gridlet_module_read("a.grid", "x", (size_t)-1, NULL, &module, NULL));
    show(gridlet_module_read("a.grid", "x", 1, NULL, NULL, NULL));
    show(gridlet_module_read("a.grid", "\xff", 1, NULL, &module, NULL));
    show(gridlet_module_open("no/such.grid", NULL, &module, NULL));
    show(gridlet_module_open("no/such.ll", NULL, &module, NULL));

    printf("messages\n");
    read_text("a.grid", "kernel k(p: *mut u32) {\n    *p = \"\xc3\xa9\" + q;\n}\n", &diagnostics);
    for (size_t i = 0; i < gridlet_diagnostics_count(diagnostics); i++)
        printf("%s", gridlet_diagnostics_get(diagnostics, i)->rendered);
    printf("%s\n", gridlet_diagnostics_get(diagnostics, 99) ? "a diagnostic" : "NULL");
    gridlet_diagnostics_free(diagnostics);
    module = read_text("a.grid", "kernel k(p: *mut u32) {\n    let q = 1;\n    *p = 2;\n}\n", &diagnostics);
    const gridlet_diagnostic *warning = gridlet_diagnostics_get(diagnostics, 0);
    printf("%d %s %u:%u-%u:%u, bytes %u to %u, %zu label, primary %u\n", (int)warning->severity, warning->id,
           warning->place.line, warning->place.column, warning->place.end_line, warning->place.end_column,
           warning->place.start, warning->place.end, warning->label_count, warning->labels[0].primary);
    printf("%.17s\n", gridlet_explain(warning->id));
    printf("%s\n", gridlet_explain("no-such-id") ? "an explanation" : "NULL");

    printf("outputs\n");
    show(gridlet_module_emit(compiler, module, "exe", NULL, &output, NULL));
    show(gridlet_module_emit(compiler, module, "shared-object", NULL, &output, NULL));
    show(gridlet_module_emit(compiler, NULL, "ptx", NULL, &output, NULL));
    show(gridlet_module_emit(NULL, module, "ptx", NULL, &output, NULL));
    show(gridlet_module_emit(compiler, module, NULL, NULL, &output, NULL));
    show(gridlet_module_emit(compiler, module, "ptx", NULL, NULL, NULL));
    show(gridlet_options_add_target(options, "cpu"));
    show(gridlet_options_set_fast_math(options, 1));
    show(gridlet_module_emit(compiler, module, "bundle", options, &output, NULL));
    show(gridlet_options_set_fast_math(options, 0));
    show(gridlet_module_emit(compiler, module, "layout", options, &output, NULL));
    printf("%zu %s", strlen(gridlet_output_data(output)) - gridlet_output_size(output), (const char *)gridlet_output_data(output));
    printf("%zu %s %zu\n", gridlet_output_size(NULL), gridlet_output_data(NULL) ? "data" : "NULL", gridlet_diagnostics_count(NULL));

    printf("NVVM IR\n");
    gridlet_options *others;
    gridlet_module *nvvm = read_text("a.ll", "define ptx_kernel void @k(ptr %p) {\n  ret void\n}\n", NULL);
    gridlet_output *none;
    const char *kinds[] = {"shared-object", "ptx"};
    for (size_t i = 0; i < 2; i++) {
        show(gridlet_options_create(&others));
        show(gridlet_options_add_target(others, i ? "cpu" : "sm_90"));
        show(gridlet_module_emit(compiler, nvvm, kinds[i], others, &none, NULL));
        gridlet_options_free(others);
    }
    show(gridlet_options_create(&others));
    show(gridlet_options_set_launch(others, "resident"));
    show(gridlet_module_emit(compiler, nvvm, "nvvm", others, &none, NULL));
    show(gridlet_options_set_launch(others, "cdp"));
    show(gridlet_options_set_statistics(others, 1));
    show(gridlet_module_emit(compiler, nvvm, "nvvm", others, &none, NULL));
    show(gridlet_options_set_statistics(others, 0));
    show(gridlet_options_add_instance(others, "k::<8>"));
    show(gridlet_module_emit(compiler, nvvm, "nvvm", others, &none, NULL));
    gridlet_options_free(others);
    gridlet_module_free(nvvm);

    /* The worst order, and NULL. */
    gridlet_compiler_free(compiler);
    gridlet_compiler_free(NULL);
    gridlet_module_free(module);
    gridlet_module_free(NULL);
    gridlet_options_free(options);
    gridlet_options_free(NULL);
    printf("%s\n", warning->id);
    gridlet_diagnostics_free(diagnostics);
    gridlet_diagnostics_free(NULL);
    gridlet_output_free(output);
    gridlet_output_free(NULL);
    printf("the end\n");
    return 0;
}
