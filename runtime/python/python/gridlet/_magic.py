"""The cell magic `%%gridlet`."""

import sys

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class

from ._errors import CompileError
from ._native import compile


@magics_class
class Magic(Magics):
    """`%%gridlet NAME` compiles the cell and assigns the program to NAME."""

    @cell_magic
    def gridlet(self, line, cell):
        """Compiles the cell, a program, and assigns it to a name: `%%gridlet tree`.

        Further words are instances of kernels with const parameters: `%%gridlet tree node::<8>`. A wrong program shows its
        messages and leaves the name as it was.
        """
        words = line.split()
        if not words or not words[0].isidentifier():
            raise UsageError("usage: %%gridlet NAME [KERNEL::<…>]…, with NAME for the program")
        name, *instances = words
        try:
            program = compile(cell, name=f"{name}.grid", instances=instances)
        except CompileError as error:
            print(error.rendered, file=sys.stderr)
            return
        if program.warnings:
            print(program.rendered_warnings, file=sys.stderr)
        self.shell.push({name: program})
