//! The table of built-ins, with one row for those that differ only in name.
//!
//! A row consists of the names, the types (`T` is defined after `where`), and the columns of [`Properties`],
//! none of which may be omitted. Rustc checks that each [`Builtin`] has exactly one row.

use super::*;

/// Generates the list, the names and the properties from the rows. `AtomicLoad(Order::Relaxed, Scope::Block) |
/// AtomicLoad(_, Scope::Block)` has one name for all orders.
macro_rules! table {
    ($(
        $($name:literal = $variant:ident $(($($of:path),+))? $(| $also:ident(_, $scope:path))?),+:
        [$($argument:ident),*] -> $result:ident where T: $types:ident;
        effect: $effect:ident, waits: $waits:ident, memory: $memory:ident $(($access:ident))?,
        varies: $varies:ident, lowering: $lowering:ident $(($instruction:ident))?;
    )+) => {
        impl Builtin {
            /// Every built-in, one per name: each atomic load and store occurs once, not once per order.
            pub const ALL: &'static [Builtin] = &[$($(Builtin::$variant $(($($of),+))?),+),+];

            /// The name in the language.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Builtin::$variant $(($($of),+))? $(| Builtin::$also(_, $scope))? => $name,)+)+
                }
            }

            /// The row in the table.
            pub fn properties(self) -> Properties {
                match self {
                    $($(Builtin::$variant $(($($of),+))? $(| Builtin::$also(_, $scope))?)|+ => Properties {
                        arguments: &[$(TypePattern::$argument),*],
                        result: TypePattern::$result,
                        types: Types::$types,
                        effect: Effect::$effect,
                        waits: WaitsFor::$waits,
                        memory: Memory::$memory $((Access::$access))?,
                        varies: Varies::$varies,
                        lowering: Lowering::$lowering $((Instruction::$instruction))?,
                    },)+
                }
            }
        }
    };
}

table! {
    // Barriers and warps.
    "sync_threads" = SyncThreads:
        [] -> Unit where T: None;
        effect: Acts, waits: Block, memory: None, varies: Never, lowering: Codegen;
    "sync_threads_count" = SyncThreadsReduce(BlockReduceOp::Count):
        [Bool] -> U32 where T: None;
        effect: Acts, waits: Block, memory: None, varies: Never, lowering: Expand(BarrierReduction);
    "sync_threads_and" = SyncThreadsReduce(BlockReduceOp::And),
    "sync_threads_or" = SyncThreadsReduce(BlockReduceOp::Or):
        [Bool] -> Bool where T: None;
        effect: Acts, waits: Block, memory: None, varies: Never, lowering: Expand(BarrierReduction);
    "sync_warp" = SyncWarp:
        [U32] -> Unit where T: None;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Codegen;
    "shfl" = Shuffle(ShuffleMode::Index),
    "shfl_up" = Shuffle(ShuffleMode::Up),
    "shfl_down" = Shuffle(ShuffleMode::Down),
    "shfl_xor" = Shuffle(ShuffleMode::Xor):
        [U32, T, U32] -> T where T: SixteenBitsOrMore;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Codegen;
    "ballot" = Vote(VoteMode::Ballot):
        [U32, Bool] -> U32 where T: None;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Codegen;
    "any" = Vote(VoteMode::Any),
    "all" = Vote(VoteMode::All):
        [U32, Bool] -> Bool where T: None;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Codegen;
    "match_any" = MatchAny:
        [U32, T] -> U32 where T: WideScalars;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Codegen;
    "active_mask" = ActiveMask:
        [] -> U32 where T: None;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Codegen;
    "reduce_add" = Reduce(ReduceOp::Add),
    "reduce_min" = Reduce(ReduceOp::Min),
    "reduce_max" = Reduce(ReduceOp::Max):
        [U32, T] -> T where T: WideNumbers;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Expand(Redux);
    "reduce_and" = Reduce(ReduceOp::And),
    "reduce_or" = Reduce(ReduceOp::Or),
    "reduce_xor" = Reduce(ReduceOp::Xor):
        [U32, T] -> T where T: WideIntegers;
        effect: Acts, waits: Warp, memory: None, varies: WithArguments, lowering: Expand(Redux);
    "lane_id" = LaneId:
        [] -> U32 where T: None;
        effect: Pure, waits: No, memory: None, varies: WithThread, lowering: Codegen;

    // Memory.
    "atomic_load" = AtomicLoad(Order::Relaxed, Scope::Device) | AtomicLoad(_, Scope::Device),
    "atomic_load_block" = AtomicLoad(Order::Relaxed, Scope::Block) | AtomicLoad(_, Scope::Block),
    "atomic_load_system" = AtomicLoad(Order::Relaxed, Scope::System) | AtomicLoad(_, Scope::System):
        [ConstPointer, Order] -> T where T: WideNumbers;
        effect: Acts, waits: No, memory: Atomic(Load), varies: WithArguments, lowering: Codegen;
    "atomic_store" = AtomicStore(Order::Relaxed, Scope::Device) | AtomicStore(_, Scope::Device),
    "atomic_store_block" = AtomicStore(Order::Relaxed, Scope::Block) | AtomicStore(_, Scope::Block),
    "atomic_store_system" = AtomicStore(Order::Relaxed, Scope::System) | AtomicStore(_, Scope::System):
        [MutPointer, T, Order] -> Unit where T: WideNumbers;
        effect: Acts, waits: No, memory: Atomic(Store), varies: WithArguments, lowering: Codegen;
    "atomic_add" = Atomic(AtomicOp::Add, Scope::Device),
    "atomic_add_block" = Atomic(AtomicOp::Add, Scope::Block),
    "atomic_add_system" = Atomic(AtomicOp::Add, Scope::System),
    "atomic_exch" = Atomic(AtomicOp::Exch, Scope::Device),
    "atomic_exch_block" = Atomic(AtomicOp::Exch, Scope::Block),
    "atomic_exch_system" = Atomic(AtomicOp::Exch, Scope::System):
        [MutPointer, T] -> T where T: WideNumbers;
        effect: Acts, waits: No, memory: Atomic(Update), varies: WithThread, lowering: Codegen;
    "atomic_sub" = Atomic(AtomicOp::Sub, Scope::Device),
    "atomic_sub_block" = Atomic(AtomicOp::Sub, Scope::Block),
    "atomic_sub_system" = Atomic(AtomicOp::Sub, Scope::System),
    "atomic_min" = Atomic(AtomicOp::Min, Scope::Device),
    "atomic_min_block" = Atomic(AtomicOp::Min, Scope::Block),
    "atomic_min_system" = Atomic(AtomicOp::Min, Scope::System),
    "atomic_max" = Atomic(AtomicOp::Max, Scope::Device),
    "atomic_max_block" = Atomic(AtomicOp::Max, Scope::Block),
    "atomic_max_system" = Atomic(AtomicOp::Max, Scope::System),
    "atomic_and" = Atomic(AtomicOp::And, Scope::Device),
    "atomic_and_block" = Atomic(AtomicOp::And, Scope::Block),
    "atomic_and_system" = Atomic(AtomicOp::And, Scope::System),
    "atomic_or" = Atomic(AtomicOp::Or, Scope::Device),
    "atomic_or_block" = Atomic(AtomicOp::Or, Scope::Block),
    "atomic_or_system" = Atomic(AtomicOp::Or, Scope::System),
    "atomic_xor" = Atomic(AtomicOp::Xor, Scope::Device),
    "atomic_xor_block" = Atomic(AtomicOp::Xor, Scope::Block),
    "atomic_xor_system" = Atomic(AtomicOp::Xor, Scope::System):
        [MutPointer, T] -> T where T: WideIntegers;
        effect: Acts, waits: No, memory: Atomic(Update), varies: WithThread, lowering: Codegen;
    "atomic_cas" = AtomicCas(Scope::Device),
    "atomic_cas_block" = AtomicCas(Scope::Block),
    "atomic_cas_system" = AtomicCas(Scope::System):
        [MutPointer, T, T] -> T where T: WideIntegers;
        effect: Acts, waits: No, memory: Atomic(Update), varies: WithThread, lowering: Codegen;
    "fence_block" = Fence(Scope::Block),
    "fence_device" = Fence(Scope::Device),
    "fence_system" = Fence(Scope::System):
        [] -> Unit where T: None;
        effect: Acts, waits: No, memory: Fence, varies: WithArguments, lowering: Codegen;

    // Numbers.
    "popc" = Bit(BitOp::Popc),
    "clz" = Bit(BitOp::Clz),
    "ctz" = Bit(BitOp::Ctz):
        [T] -> U32 where T: WideIntegers;
        effect: Constant, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "brev" = Bit(BitOp::Brev):
        [T] -> T where T: WideIntegers;
        effect: Constant, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "mul_hi" = MulHi:
        [T, T] -> T where T: WideIntegers;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "abs" = Math(MathOp::Abs):
        [T] -> T where T: Numbers;
        effect: Constant, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "min" = Math(MathOp::Min),
    "max" = Math(MathOp::Max):
        [T, T] -> T where T: Numbers;
        effect: Constant, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "clamp" = Math(MathOp::Clamp):
        [T, T, T] -> T where T: Numbers;
        effect: Constant, waits: No, memory: None, varies: WithArguments, lowering: Build;
    "saturate" = Math(MathOp::Saturate):
        [T] -> T where T: Floats;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Build;
    "sqrt" = Math(MathOp::Sqrt),
    "floor" = Math(MathOp::Floor),
    "ceil" = Math(MathOp::Ceil),
    "round" = Math(MathOp::Round),
    "trunc" = Math(MathOp::Trunc):
        [T] -> T where T: Floats;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "fma" = Math(MathOp::Fma):
        [T, T, T] -> T where T: Floats;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "rsqrt" = Math(MathOp::Rsqrt),
    "sin" = Math(MathOp::Sin),
    "cos" = Math(MathOp::Cos),
    "tan" = Math(MathOp::Tan),
    "exp" = Math(MathOp::Exp),
    "exp2" = Math(MathOp::Exp2),
    "log" = Math(MathOp::Log),
    "log2" = Math(MathOp::Log2),
    "log10" = Math(MathOp::Log10),
    "asin" = Math(MathOp::Asin),
    "acos" = Math(MathOp::Acos),
    "atan" = Math(MathOp::Atan),
    "sinh" = Math(MathOp::Sinh),
    "cosh" = Math(MathOp::Cosh),
    "tanh" = Math(MathOp::Tanh),
    "cbrt" = Math(MathOp::Cbrt),
    "erf" = Math(MathOp::Erf):
        [T] -> T where T: WideFloats;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "pow" = Math(MathOp::Pow),
    "atan2" = Math(MathOp::Atan2),
    "hypot" = Math(MathOp::Hypot):
        [T, T] -> T where T: WideFloats;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Codegen;

    // Types.
    "bitcast" = Bitcast:
        [Other] -> T where T: Named;
        effect: Pure, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "size_of" = SizeOf,
    "align_of" = AlignOf:
        [] -> U64 where T: Named;
        effect: Constant, waits: No, memory: None, varies: WithArguments, lowering: Checker;

    // Output and termination.
    "printf" = Printf:
        [Rest] -> I32 where T: None;
        effect: Acts, waits: No, memory: Strings, varies: WithArguments, lowering: Codegen;
    "assert" = Assert:
        [Bool, Rest] -> Unit where T: None;
        effect: Ends, waits: No, memory: Strings, varies: WithArguments, lowering: Codegen;
    "trap" = Trap:
        [] -> Unit where T: None;
        effect: Ends, waits: No, memory: None, varies: WithArguments, lowering: Codegen;

    // The device.
    "clock64" = Clock64,
    "global_timer" = GlobalTimer:
        [] -> U64 where T: None;
        effect: Acts, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "sm_id" = SmId:
        [] -> U32 where T: None;
        effect: Acts, waits: No, memory: None, varies: WithArguments, lowering: Codegen;
    "malloc" = Malloc:
        [U64] -> MutBytes where T: None;
        effect: Acts, waits: No, memory: Heap, varies: WithArguments, lowering: Codegen;
    "free" = Free:
        [MutBytes] -> Unit where T: None;
        effect: Acts, waits: No, memory: Heap, varies: WithArguments, lowering: Codegen;
    "stream_create" = StreamCreate:
        [] -> Stream where T: None;
        effect: Acts, waits: No, memory: None, varies: WithArguments, lowering: DeviceRuntime;
    "stream_destroy" = StreamDestroy:
        [Stream] -> I32 where T: None;
        effect: Acts, waits: No, memory: None, varies: WithArguments, lowering: DeviceRuntime;
    "memcpy_async" = MemcpyAsync:
        [MutBytes, ConstBytes, U64, Stream] -> I32 where T: None;
        effect: Acts, waits: No, memory: Stream, varies: WithArguments, lowering: DeviceRuntime;
    "memset_async" = MemsetAsync:
        [MutBytes, I32, U64, Stream] -> I32 where T: None;
        effect: Acts, waits: No, memory: Stream, varies: WithArguments, lowering: DeviceRuntime;
    "device_last_error" = DeviceLastError:
        [] -> I32 where T: None;
        effect: Acts, waits: No, memory: None, varies: WithArguments, lowering: DeviceRuntime;
}
