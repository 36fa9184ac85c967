/* A compiler driver: FILE (.grid, .gir, .ll or .bc) becomes OUT, an output of the kind KIND for the TARGETs. */
#include <stdio.h>
#include <stdlib.h>

#include "gridlet_compiler.h"

/* Shows the messages of a call; the process ends if it failed. */
static void need(gridlet_compile_status status, gridlet_diagnostics *diagnostics) {
    for (size_t i = 0; i < gridlet_diagnostics_count(diagnostics); i++) {
        const gridlet_diagnostic *message = gridlet_diagnostics_get(diagnostics, i);
        const gridlet_place *place = &message->place;
        if (place->column) printf("%s:%u:%u: ", place->file, place->line, place->column);
        else if (place->file) printf("%s:%u: ", place->file, place->line);
        printf("%s [%s]\n", message->message, message->id);
        for (size_t note = 0; note < message->note_count; note++) printf("  note: %s\n", message->notes[note]);
        if (message->hint) printf("  hint: %s\n", message->hint);
    }
    gridlet_diagnostics_free(diagnostics);
    if (status == GRIDLET_COMPILE_STATUS_OK) return;
    if (!diagnostics) printf("%s\n", gridlet_compile_error());
    exit((int)status);
}

int main(int count, char **arguments) {
    gridlet_compiler *compiler;
    gridlet_options *options;
    gridlet_module *module;
    gridlet_output *output;
    gridlet_diagnostics *diagnostics;
    if (count < 4) return 64;

    need(gridlet_compiler_create(&compiler), NULL);
    need(gridlet_options_create(&options), NULL);
    for (int i = 4; i < count; i++) need(gridlet_options_add_target(options, arguments[i]), NULL);

    gridlet_compile_status status = gridlet_module_open(arguments[1], options, &module, &diagnostics);
    need(status, diagnostics);
    status = gridlet_module_emit(compiler, module, arguments[3], options, &output, &diagnostics);
    need(status, diagnostics);

    FILE *file = fopen(arguments[2], "wb");
    if (!file) return 66;
    size_t size = gridlet_output_size(output);
    if (fwrite(gridlet_output_data(output), 1, size, file) != size || fclose(file)) return 66;

    gridlet_output_free(output);
    gridlet_module_free(module);
    gridlet_options_free(options);
    gridlet_compiler_free(compiler);
    return 0;
}
