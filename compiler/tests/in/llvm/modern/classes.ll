; As Clang 22 writes a member function of a C++ class, whose alignment says nothing to PTX, and a label with its column.
target triple = "nvptx64-nvidia-cuda"

%struct.Square = type { float }

$_ZNK6Square4areaEv = comdat any

define ptx_kernel void @k(ptr %squares, ptr %areas) !dbg !5 {
    #dbg_label(!8, !9)
  %area = call float @_ZNK6Square4areaEv(ptr %squares), !dbg !9
  store float %area, ptr %areas, align 4, !dbg !9
  ret void, !dbg !9
}

define linkonce_odr float @_ZNK6Square4areaEv(ptr %self) comdat align 2 {
  %side = load float, ptr %self, align 4
  %area = fmul contract float %side, %side
  ret float %area
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}

!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, producer: "clang", isOptimized: false, runtimeVersion: 0, emissionKind: FullDebug)
!1 = !DIFile(filename: "classes.cu", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!5 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 4, type: !6, scopeLine: 4, spFlags: DISPFlagDefinition, unit: !0, retainedNodes: !10)
!6 = !DISubroutineType(types: !7)
!7 = !{null}
!8 = !DILabel(scope: !5, name: "again", file: !1, line: 5, column: 3)
!9 = !DILocation(line: 6, column: 12, scope: !5)
!10 = !{!8}
