//! The debug information of a module, as LLVM 22 prints it, in the words of LLVM 7.
//!
//! LLVM's C interface tells which variables a module has, but not all that their descriptions say. Its text does: each node
//! is a line, and the lines of a function are its instructions in their order.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::inputs::lists::elements;

/// A node of the module's text.
type Number = usize;

/// The debug information of a module.
pub(super) struct DebugText {
    /// The nodes that functions and variables lead to, in the words of LLVM 7, with the module's numbers.
    nodes: HashMap<Number, String>,
    /// In the order of the functions that the module defines.
    pub(super) functions: Vec<FunctionText>,
    /// The description of each variable outside functions, in their order.
    pub(super) globals: Vec<Option<Number>>,
}

/// The debug information of a function.
#[derive(Default)]
pub(super) struct FunctionText {
    pub(super) subprogram: Option<Number>,
    /// In the order of its instructions.
    pub(super) instructions: Vec<InstructionText>,
}

/// The debug information of an instruction.
#[derive(Default)]
pub(super) struct InstructionText {
    pub(super) location: Option<Number>,
    /// The variables that begin before it.
    pub(super) records: Vec<Record>,
}

/// `#dbg_declare(value, variable, expression, location)`, or another record, which LLVM 7 does without.
pub(super) struct Record {
    pub(super) declared: Option<Declared>,
}

/// What `#dbg_declare` says beside the value.
pub(super) struct Declared {
    pub(super) variable: Number,
    pub(super) expression: String,
    pub(super) location: Number,
}

/// The fields of each kind of node: those that LLVM 7 knows, and those that only say more than it can.
const KINDS: [(&str, &[&str], &[&str]); 17] = [
    (
        "DICompileUnit",
        &[
            "language",
            "file",
            "producer",
            "isOptimized",
            "runtimeVersion",
            "emissionKind",
            "globals",
        ],
        &[
            "flags",
            "splitDebugInlining",
            "nameTableKind",
            "enums",
            "retainedTypes",
            "imports",
            "sysroot",
            "sdk",
        ],
    ),
    ("DIFile", &["filename", "directory"], &["checksumkind", "checksum", "source"]),
    ("DIBasicType", &["tag", "name", "size", "align", "encoding"], &["flags"]),
    (
        "DIDerivedType",
        &["tag", "name", "scope", "file", "line", "baseType", "size", "align", "offset", "flags"],
        &["annotations", "dwarfAddressSpace"],
    ),
    (
        "DICompositeType",
        &[
            "tag",
            "name",
            "scope",
            "file",
            "line",
            "baseType",
            "size",
            "align",
            "offset",
            "flags",
            "elements",
            "identifier",
        ],
        &["annotations", "runtimeLang"],
    ),
    ("DISubrange", &["count", "lowerBound"], &[]),
    ("DISubroutineType", &["flags", "cc", "types"], &[]),
    (
        "DISubprogram",
        &["name", "linkageName", "scope", "file", "line", "type", "scopeLine", "flags", "unit"],
        &["spFlags", "retainedNodes", "declaration", "annotations", "targetFuncName"],
    ),
    ("DILexicalBlock", &["scope", "file", "line", "column"], &[]),
    ("DILexicalBlockFile", &["scope", "file", "discriminator"], &[]),
    ("DINamespace", &["scope", "name", "exportSymbols"], &[]),
    ("DILocation", &["line", "column", "scope", "inlinedAt"], &["isImplicitCode"]),
    (
        "DILocalVariable",
        &["name", "arg", "scope", "file", "line", "type", "flags", "align"],
        &["annotations"],
    ),
    (
        "DIGlobalVariable",
        &[
            "name",
            "scope",
            "linkageName",
            "file",
            "line",
            "type",
            "isLocal",
            "isDefinition",
            "align",
        ],
        &["annotations", "declaration"],
    ),
    ("DIGlobalVariableExpression", &["var", "expr"], &[]),
    ("DIEnumerator", &["name", "value", "isUnsigned"], &[]),
    ("DITemplateTypeParameter", &["name", "type"], &["defaulted"]),
];

/// The operations of expressions that LLVM 7 knows (LLVM 7 Language Reference, "DIExpression").
const OPERATIONS: [&str; 9] = [
    "DW_OP_deref",
    "DW_OP_plus_uconst",
    "DW_OP_plus",
    "DW_OP_minus",
    "DW_OP_constu",
    "DW_OP_swap",
    "DW_OP_xderef",
    "DW_OP_stack_value",
    "DW_OP_LLVM_fragment",
];

impl DebugText {
    /// Reads the text of a module. `None` if a function or a variable leads to a node that LLVM 7 does not know.
    pub(super) fn read(text: &str) -> Option<DebugText> {
        let mut read = DebugText { nodes: HashMap::new(), functions: vec![], globals: vec![] };
        let mut written: HashMap<Number, &str> = HashMap::new();
        let mut function: Option<FunctionText> = None;
        let mut records: Vec<Record> = vec![];
        for line in text.lines() {
            if let Some(open) = &mut function {
                if line == "}" {
                    read.functions.extend(function.take());
                } else if let Some(record) = line.strip_prefix("    #dbg_") {
                    records.push(Record { declared: declared(record)? });
                } else if line.starts_with("  ") {
                    // A `switch` goes on in further lines, which are indented more, and ends with a bracket.
                    if !line.starts_with("   ") && !line.starts_with("  ]") {
                        let records = std::mem::take(&mut records);
                        open.instructions.push(InstructionText { location: None, records });
                    }
                    if let (Some(last), Some(location)) =
                        (open.instructions.last_mut(), attached(line))
                    {
                        last.location = Some(location);
                    }
                }
            } else if line.starts_with("define ") {
                let subprogram = attached(line);
                function = Some(FunctionText { subprogram, instructions: vec![] });
            } else if line.starts_with('@') && !is_alias(line) {
                read.globals.push(attached(line));
            } else if let Some((number, node)) = numbered(line) {
                written.insert(number, node);
            }
        }
        let mut wanted: Vec<Number> = read.globals.iter().copied().flatten().collect();
        for function in &read.functions {
            wanted.extend(function.subprogram);
            for instruction in &function.instructions {
                wanted.extend(instruction.location);
                let declared =
                    instruction.records.iter().filter_map(|record| record.declared.as_ref());
                wanted.extend(declared.flat_map(|record| [record.variable, record.location]));
            }
        }
        while let Some(number) = wanted.pop() {
            if let Entry::Vacant(place) = read.nodes.entry(number) {
                let node = place.insert(of_llvm_7(written.get(&number)?)?);
                renumbered(node, |number| {
                    wanted.push(number);
                    number
                });
            }
        }
        Some(read)
    }

    /// A node that functions or variables lead to.
    pub(super) fn node(&self, number: Number) -> &str {
        self.nodes.get(&number).map_or("", String::as_str)
    }
}

/// `!7 = …`
fn numbered(line: &str) -> Option<(Number, &str)> {
    let (number, node) = line.strip_prefix('!')?.split_once(" = ")?;
    Some((number.parse().ok()?, node))
}

fn is_alias(line: &str) -> bool {
    let unquoted = line.rsplit_once('"').map_or(line, |(_, rest)| rest);
    let after = unquoted.split_once(" = ").map_or(unquoted, |(_, after)| after);
    after.split(' ').take(6).any(|word| matches!(word, "alias" | "ifunc"))
}

/// The number after the last `!dbg` of a line, which attachments end.
fn attached(line: &str) -> Option<Number> {
    let (_, after) = line.rsplit_once("!dbg !")?;
    let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..end].parse().ok()
}

/// A record after `#dbg_`; the outer `None` if LLVM 7 cannot express it.
fn declared(record: &str) -> Option<Option<Declared>> {
    let Some(rest) = record.strip_prefix("declare(") else { return Some(None) };
    let fields = parts(rest.strip_suffix(')')?);
    let [_, variable, expression, location] = fields[..] else { return None };
    let number = |field: &str| field.strip_prefix('!')?.parse().ok();
    let expression = of_llvm_7(expression)?;
    Some(Some(Declared { variable: number(variable)?, expression, location: number(location)? }))
}

/// The parts of a list.
fn parts(list: &str) -> Vec<&str> {
    let mut parts = elements(list);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A node in the words of LLVM 7; `None` if it has none for it.
fn of_llvm_7(node: &str) -> Option<String> {
    let (distinct, rest) = match node.strip_prefix("distinct ") {
        Some(rest) => ("distinct ", rest),
        None => ("", node),
    };
    if let Some(list) = rest.strip_prefix("!{") {
        let elements = parts(list.strip_suffix('}')?);
        let element = |part: &&str| match part.strip_prefix("!DI") {
            Some(_) => of_llvm_7(part),
            None => Some((*part).to_owned()),
        };
        let elements: Option<Vec<String>> = elements.iter().map(element).collect();
        return Some(format!("{distinct}!{{{}}}", elements?.join(", ")));
    }
    let (kind, fields) = rest.strip_prefix('!')?.strip_suffix(')')?.split_once('(')?;
    let fields = parts(fields);
    if kind == "DIExpression" {
        let is_known = |part: &&str| part.parse::<u64>().is_ok() || OPERATIONS.contains(part);
        return fields.iter().all(is_known).then(|| rest.to_owned());
    }
    let (_, kept, dropped) = KINDS.iter().find(|(name, ..)| *name == kind)?;
    let mut words = vec![];
    for field in fields {
        let (name, value) = field.split_once(": ")?;
        if kept.contains(&name) {
            let value = if value.starts_with("!DI") { of_llvm_7(value)? } else { value.to_owned() };
            words.push(format!("{name}: {value}"));
        } else if !dropped.contains(&name) {
            return None;
        } else if name == "spFlags" {
            let has = |flag: &str| value.split(" | ").any(|word| word == flag);
            words.push(format!("isLocal: {}", has("DISPFlagLocalToUnit")));
            words.push(format!("isDefinition: {}", has("DISPFlagDefinition")));
            words.push(format!("isOptimized: {}", has("DISPFlagOptimized")));
        }
    }
    Some(format!("{distinct}!{kind}({})", words.join(", ")))
}

/// A node with other numbers for the nodes that it names.
pub(super) fn renumbered(node: &str, mut number: impl FnMut(Number) -> Number) -> String {
    let (mut text, mut rest, mut in_string) = (String::with_capacity(node.len()), node, false);
    while let Some(at) = rest.find(['"', '!']) {
        let (before, after) = rest.split_at(at + 1);
        text.push_str(before);
        rest = after;
        if before.ends_with('"') {
            in_string = !in_string;
        } else if !in_string {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            if let Ok(old) = rest[..end].parse() {
                text.push_str(&number(old).to_string());
                rest = &rest[end..];
            }
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_in_the_words_of_llvm_7() {
        let same = [
            "!{null, !4, !12}",
            "!DIExpression(DW_OP_plus_uconst, 12)",
            "!DIDerivedType(tag: DW_TAG_member, name: \"a, b: (\\22!3\", scope: !2, baseType: !4, size: 32)",
            "distinct !{!1}",
        ];
        for node in same {
            assert_eq!(of_llvm_7(node).as_deref(), Some(node));
        }
        let function = "distinct !DISubprogram(name: \"k\", unit: !0, spFlags: DISPFlagDefinition, retainedNodes: !9)";
        let expected = "distinct !DISubprogram(name: \"k\", unit: !0, isLocal: false, isDefinition: true, isOptimized: false)";
        assert_eq!(of_llvm_7(function).as_deref(), Some(expected));
        for unknown in [
            "!DIExpression(DW_OP_LLVM_arg, 0)",
            "!DIFixedPointType(size: 3)",
            "!DISubrange(count: 4, stride: 8)",
            "!{!DIExpression(DW_OP_over)}",
        ] {
            assert_eq!(of_llvm_7(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn numbers_in_names_stay() {
        let node = "!DIFile(filename: \"a!3.grid\", directory: \"!4\", scope: !5)";
        let expected = "!DIFile(filename: \"a!3.grid\", directory: \"!4\", scope: !15)";
        assert_eq!(renumbered(node, |number| number + 10), expected);
    }

    #[test]
    fn instructions_have_their_lines_and_variables() {
        let text = "\
@a = global i32 0, !dbg !1
@\"b alias \" = constant [2 x i8] c\"x\\00\"
@c = alias i32, ptr @a

define void @f(i32 %x) !dbg !2 {
entry:
  %p = alloca i32, align 4, !dbg !3
    #dbg_declare(ptr %p, !4, !DIExpression(DW_OP_deref), !3)
    #dbg_value(i32 %x, !4, !DIExpression(), !3)
  switch i32 %x, label %end [
    i32 1, label %end
  ], !dbg !3

end:
  ret void
}

!1 = !{}
!2 = !{}
!3 = !DILocation(line: 4, scope: !2)
!4 = !DILocalVariable(name: \"x\", scope: !2)
!5 = !DIUnknown()
";
        let read = DebugText::read(text).unwrap();
        assert_eq!(read.globals, [Some(1), None]);
        let [function] = &read.functions[..] else { panic!("{}", read.functions.len()) };
        assert_eq!(function.subprogram, Some(2));
        let found: Vec<_> = function
            .instructions
            .iter()
            .map(|one| (one.location, one.records.iter().map(|r| r.declared.is_some()).collect()))
            .collect::<Vec<(_, Vec<bool>)>>();
        assert_eq!(found, [(Some(3), vec![]), (Some(3), vec![true, false]), (None, vec![])]);
        let declared = function.instructions[1].records[0].declared.as_ref().unwrap();
        assert_eq!((declared.variable, declared.location), (4, 3));
        assert_eq!(declared.expression, "!DIExpression(DW_OP_deref)");
        assert_eq!(read.node(4), "!DILocalVariable(name: \"x\", scope: !2)");
        assert!(DebugText::read(&text.replace("!1 = !{}", "!1 = !{!5}")).is_none());
    }
}
