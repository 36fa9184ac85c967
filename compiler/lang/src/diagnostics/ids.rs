//! The ids of messages. They are stable: tools and tests rely on them.

use gridlet_artifact::cpu::findings::Kind;

/// Declares a constant for each id and the table of them all.
macro_rules! ids {
    ($(#[$documentation:meta])* $table:ident: $($name:ident = $id:literal: $explanation:literal,)*) => {
        $(#[doc = concat!("`", $id, "`: ", $explanation)] pub const $name: &str = $id;)*

        $(#[$documentation])*
        pub const $table: &[(&str, &str)] = &[$(($id, $explanation)),*];
    };
}

ids! {
    /// Every id of a message about a program, with its meaning, in the order of the reference.
    ALL:
    // Files, characters and syntax
    FILE_TOO_LARGE = "file-too-large": "a source file is larger than 64 MiB",
    UNKNOWN_FILE = "unknown-file": "a `use` of a file that does not exist",
    UNREADABLE_FILE = "unreadable-file": "a `use` of a file that cannot be read, or is not UTF-8 text",
    TOO_MANY_FILES = "too-many-files": "a program of more than 256 files",
    UNEXPECTED_CHARACTER = "unexpected-character": "a character that the language does not use",
    TEXT_DIRECTION = "text-direction": "a character that changes the order in which text is shown",
    UNTERMINATED_COMMENT = "unterminated-comment": "a `/*` without its `*/`",
    UNTERMINATED_STRING = "unterminated-string": "a string without its closing quote",
    INVALID_ESCAPE = "invalid-escape": "an escape in a string that does not exist",
    INVALID_NUMBER = "invalid-number": "a number with a wrong digit, suffix or exponent",
    SYNTAX_ERROR = "syntax-error": "unexpected syntax",
    UNCLOSED_DELIMITER = "unclosed-delimiter": "a bracket, brace or parenthesis that is never closed",
    NESTING_TOO_DEEP = "nesting-too-deep": "expressions nested over 10,000 levels deep, or blocks or types nested over 256",
    CHAINED_COMPARISON = "chained-comparison": "comparisons do not chain: `a < b < c`",
    TOO_MANY_ERRORS = "too-many-errors": "only the first errors are shown",
    TOO_MANY_WARNINGS = "too-many-warnings": "only the first warnings are shown",

    // Items and names
    EMPTY_PROGRAM = "empty-program": "the program has no kernel",
    DUPLICATE_NAME = "duplicate-name": "a name that is declared twice",
    UNKNOWN_NAME = "unknown-name": "a name that nothing declares",
    UNKNOWN_TYPE = "unknown-type": "a type that nothing declares",
    UNKNOWN_FIELD = "unknown-field": "a field that the type does not have",
    UNKNOWN_LABEL = "unknown-label": "`break` or `continue` to a label that no enclosing loop has",
    UNKNOWN_METHOD = "unknown-method": "a method; only ranges have one, `.step(n)`",
    UNKNOWN_ATTRIBUTE = "unknown-attribute": "an attribute that the language does not have",
    MISPLACED_ATTRIBUTE = "misplaced-attribute": "an attribute where it does not apply",
    INVALID_LAUNCH_BOUNDS = "invalid-launch-bounds": "`#[launch_bounds]` with wrong or missing values",
    INVALID_UNROLL = "invalid-unroll": "`#[unroll]` with a wrong value, or given twice",
    EXTERN_SIGNATURE = "extern-signature": "an `extern fn` with types that C lacks, or an `extern` item with const parameters",
    UNDEFINED_EXTERN = "undefined-extern": "an `extern fn` or `extern kernel` that no linked module defines, or defines with another signature",
    KERNEL_RESULT = "kernel-result": "a kernel that returns a value",

    // Types
    TYPE_MISMATCH = "type-mismatch": "a value of the wrong type",
    OPERAND_TYPE = "operand-type": "an operator or built-in on a type that it does not support",
    INVALID_CAST = "invalid-cast": "`as` or `bitcast` between types that do not convert",
    INVALID_TYPE = "invalid-type": "a type that is not allowed here",
    MISSING_TYPE = "missing-type": "a variable without a type or an initial value",
    RECURSIVE_STRUCT = "recursive-struct": "a struct that contains itself",
    EMPTY_STRUCT = "empty-struct": "a struct without fields",
    TYPE_TOO_LARGE = "type-too-large": "a type of more than 2^28 elements",
    ARRAY_LENGTH = "array-length": "an array length that is not a positive integer",

    // Constants and literals
    LITERAL_OUT_OF_RANGE = "literal-out-of-range": "a number that its type cannot hold",
    CONST_EXPRESSION = "const-expression": "an expression that is not known at compile time where it must be",
    CONST_OVERFLOW = "const-overflow": "constant arithmetic that overflows its type",
    RECURSIVE_CONST = "recursive-const": "a constant that depends on itself",
    DIVISION_BY_ZERO = "division-by-zero": "an integer division by a constant zero",
    INDEX_OUT_OF_RANGE = "index-out-of-range": "a constant index outside the array",

    // Expressions and statements
    NOT_A_VALUE = "not-a-value": "a function, kernel or type where a value is needed, or something that has no value",
    NOT_CALLABLE = "not-callable": "a call of something that is not a function",
    CALL_ARITY = "call-arity": "a call with too many or too few arguments",
    TYPE_ARGUMENT = "type-argument": "a built-in without the type that it needs, or with one that it does not take",
    CONST_ARGUMENTS = "const-arguments": "too many or too few constants between `::<` and `>`, or arguments that are not constants",
    TOO_MANY_INSTANCES = "too-many-instances": "a function with const parameters that needs endlessly many instances",
    INVALID_ORDER = "invalid-order": "an order that an atomic load or store does not support",
    ATOMIC_ON_LOCAL = "atomic-on-local": "an atomic operation on a local variable",
    MISSING_FIELD = "missing-field": "a struct literal with missing fields",
    DUPLICATE_FIELD = "duplicate-field": "a field that is given or declared twice",
    NOT_A_PLACE = "not-a-place": "a value that cannot be assigned to, or has no address",
    IMMUTABLE_ASSIGN = "immutable-assign": "an assignment to a variable that is not `mut` and has a value",
    UNSET_VARIABLE = "unset-variable": "a variable that is read before it has a value",
    CONST_POINTER_ASSIGN = "const-pointer-assign": "an assignment through a `*const` pointer",
    MISSING_ELSE = "missing-else": "an `if` whose value is used, without `else`",
    MISSING_RETURN = "missing-return": "a function that can end without returning a value",
    BREAK_OUTSIDE_LOOP = "break-outside-loop": "`break` or `continue` outside a loop",
    MISPLACED_RANGE = "misplaced-range": "a range that is not the head of a `for`",
    MISPLACED_STRING = "misplaced-string": "a string that is neither an argument of `printf` nor the message of `assert`",
    MISPLACED_SHARED = "misplaced-shared": "`shared` memory declared inside a block",
    PRINTF_FORMAT = "printf-format": "a conversion that `printf` does not have on a GPU",
    PRINTF_ARGUMENTS = "printf-arguments": "arguments that do not match the format",

    // Launches
    CALL_KERNEL = "call-kernel": "a kernel that is called instead of launched",
    LAUNCH_NOT_KERNEL = "launch-not-kernel": "a launch of something that is not a kernel",
    LAUNCH_ARITY = "launch-arity": "a launch with too many or too few arguments",
    LAUNCH_CONFIG = "launch-config": "a launch without grid or block, or with an option that does not exist",
    LAUNCH_DIMENSION = "launch-dimension": "a grid or block size that no GPU supports",
    BLOCK_TOO_LARGE = "block-too-large": "a block of more than 1,024 threads",
    LAUNCH_BOUNDS_EXCEEDED = "launch-bounds-exceeded": "a block of more threads than the kernel's launch bounds",
    LOCAL_POINTER_ARGUMENT = "local-pointer-argument": "a launch argument that points to shared or local memory",
    UNKNOWN_STREAM = "unknown-stream": "a stream that is neither a named one nor a variable",
    PARAM_BUFFER_TOO_LARGE = "param-buffer-too-large": "kernel parameters of more than 4,096 bytes",
    SHARED_TOO_LARGE = "shared-too-large": "more `shared` memory than a kernel can have on GPUs",
    LOCAL_TOO_LARGE = "local-too-large": "more local variables than a thread of a GPU has memory for",
    RESERVED_NAME = "reserved-name": "a kernel or a `static` variable with the name of a symbol of the device runtime",

    // Warnings
    UNUSED_VARIABLE = "unused-variable": "a variable or a parameter of a function that is never read",
    UNUSED_MUT = "unused-mut": "a `mut` variable that is never changed",
    UNUSED_SHARED = "unused-shared": "`shared` memory that is never read",
    UNUSED_FUNCTION = "unused-function": "a function that no kernel calls",
    UNUSED_LABEL = "unused-label": "a label that no `break` or `continue` goes to",
    EMPTY_RANGE = "empty-range": "a loop over a range that seems to count down",
    UNUSED_RESULT = "unused-result": "a value that is computed but not used",
    UNREACHABLE_CODE = "unreachable-code": "code that never runs",
    DIVERGENT_BARRIER = "divergent-barrier": "a barrier that some threads of a block may not reach",
    LOST_LANES = "lost-lanes": "nested branches after which the lanes of a warp may not find each other again",
    TOOL_WARNING = "tool-warning": "a warning from NVIDIA's compiler or linker",
    UNDEFINED_FUNCTION = "undefined-function": "a function that a module of NVVM IR uses and does not define",
    UNUSED_BUFFER = "unused-buffer": "a parameter buffer of NVVM IR that is never launched",
}

ids! {
    /// Every id of a message of the program `gridlet` that is not about a place in a program, with its meaning, in the
    /// order of the reference.
    FAILURES:
    PROGRAM = "program": "the program is wrong",
    UNREADABLE_SOURCE = "unreadable-source": "a source file that cannot be read as text",
    LINKED_SOURCE = "linked-source": "a module given with `--link` that the C compiler refuses",
    NVVM_IR = "nvvm-ir": "a module of NVVM IR that cannot be compiled",
    GRIDLET_IR = "gridlet-ir": "a module of Gridlet's IR that breaks its rules",
    NOT_FORMATTED = "not-formatted": "a source file that `gridlet fmt --check` would change",
    WRONG_CALL = "wrong-call": "a command line that is wrong, or does not fit the program",
    FILE = "file": "a file that cannot be read or written",
    MISSING_TOOL = "missing-tool": "a compiler part that is missing or too old",
    TOOL_FAILED = "tool-failed": "a compiler part that refused its input",
    MISSING_DEVICE = "missing-device": "a device or a driver that is missing or too old",
    RUN_FAILED = "run-failed": "a run that ended with a fault, a time-out or too little memory",
    LOST_LAUNCHES = "lost-launches": "launches by kernels that did not run",
    CHECK_FAILED = "check-failed": "mistakes that `--check` found",
    PROBE = "probe": "a measurement that failed",
    OUTPUT = "output": "standard output that cannot be written",
    INTERNAL_ERROR = "internal-error": "a bug of Gridlet",
    PLOT = "plot": "where a plot was written, or why it was not",
    NOT_RESIDENT = "not-resident": "launches through the device runtime, and why",
    NO_STATISTICS = "no-statistics": "a bundle that records no statistics",
    PARTITION_ROUNDED = "partition-rounded": "a partition of another size than requested",
    PARTITION_LEFT = "partition-left": "launched kernels that leave the partition",
    PARTITION_SHARED = "partition-shared": "kernels that can use two SMs beside the partition",
    PARTITION_NOT_MEASURED = "partition-not-measured": "a partition that may not confine launched kernels",
}

/// The ids of warnings; all others are errors.
pub const WARNINGS: &[&str] = &[
    TOO_MANY_WARNINGS,
    UNUSED_VARIABLE,
    UNUSED_MUT,
    UNUSED_SHARED,
    UNUSED_FUNCTION,
    UNUSED_LABEL,
    EMPTY_RANGE,
    UNUSED_RESULT,
    UNREACHABLE_CODE,
    DIVERGENT_BARRIER,
    LOST_LANES,
    TOOL_WARNING,
    UNDEFINED_FUNCTION,
    UNUSED_BUFFER,
];

/// Every id that the reference explains, with its meaning: [`ALL`], the findings of `gridlet run --check`, and
/// [`FAILURES`].
pub fn explained() -> impl Iterator<Item = (&'static str, &'static str)> {
    let findings = Kind::ALL.map(|kind| (kind.id(), kind.meaning()));
    ALL.iter().copied().chain(findings).chain(FAILURES.iter().copied())
}

/// The known id nearest to an unknown one, as a suggestion.
pub fn nearest(id: &str) -> Option<&'static str> {
    super::nearest(id, explained().map(|(known, _)| known))
}

/// The meaning of an id; `None` for an unknown id.
pub fn lookup(id: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == id).map(|(_, explanation)| *explanation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kebab_case_unique_and_explained() {
        for (at, (id, explanation)) in ALL.iter().enumerate() {
            assert!(id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{id}");
            assert!(!explanation.is_empty() && !explanation.ends_with('.'), "{id}");
            assert!(ALL[..at].iter().all(|(earlier, _)| earlier != id), "{id} twice");
            assert_eq!(lookup(id), Some(*explanation));
        }
        assert_eq!(lookup("no-such-id"), None);
        assert!(WARNINGS.iter().all(|id| lookup(id).is_some()));
    }

    #[test]
    fn the_nearest_id_is_found() {
        assert_eq!(nearest("unknown-nam"), Some(UNKNOWN_NAME));
        assert_eq!(nearest("unused_mut"), Some(UNUSED_MUT));
        assert_eq!(nearest("something-else-altogether"), None);
    }
}
