//! Kernels, cooperation of their threads, and launches.

use gridlet::types::{Scalar, Type};

use super::expressions::LEVELS;
use super::instances::Constants;
use super::{ENTRY, Generator, Place, Variable};

/// Steps of one thread of a kernel.
const BUDGET: u64 = 6000;
/// The most launches that one launch of a kernel leads to: a GPU has room for 2,048 pending launches unless the host
/// asks for more.
const MAX_LAUNCHES: usize = 120;
/// The most threads of a block, for which shared arrays have room.
const MAX_THREADS: u64 = 128;

/// The most shared variables of a function, of at most 2 KiB each: a kernel and all that it calls have 48 KiB.
const MAX_SHARED: usize = 3;

/// A kernel, and how every launch of it is configured.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    name: String,
    constants: Constants,
    /// After `out` and `z`.
    parameters: Vec<Type>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) shared_bytes: u32,
    /// Elements of the output that it and all its descendants write.
    pub(super) slots: usize,
    /// Launches that one launch of it leads to, directly and indirectly.
    launches: usize,
}

impl Kernel {
    fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    fn threads(&self) -> u32 {
        self.grid.iter().product::<u32>() * self.block_threads()
    }
}

impl Generator {
    /// Adds this many kernels that other kernels launch, and returns the entry kernel.
    pub(super) fn kernels(&mut self, children: usize) -> Kernel {
        for _ in 0..children {
            let child = self.kernel(false);
            self.kernels.push(child);
        }
        self.kernel(true)
    }

    fn kernel(&mut self, is_entry: bool) -> Kernel {
        let mut kernel = self.shape(is_entry);
        self.variables.clear();
        self.constants = kernel.constants.clone();
        self.variables.extend(self.constants.variables());
        let mut list = vec!["out: *mut u64".to_owned(), "z: u64".to_owned()];
        if is_entry {
            list.push("seed: u64".to_owned());
            self.variables.push(Variable { path: "seed".into(), ty: Type::U64, mutable: false });
        } else {
            for at in 0..self.random.below(4) {
                let ty = self.some_type(1);
                let name = format!("p{at}");
                list.push(format!("{name}: {}", self.show(&ty)));
                let parts = self.parts(&name, &ty, false);
                self.variables.extend(parts);
                kernel.parameters.push(ty);
            }
        }
        self.place = Place {
            times: 1,
            depth: 0,
            meets: true,
            loops: vec![],
            result: None,
            full_warps: kernel.block_threads().is_multiple_of(32),
        };
        (self.cost, self.budget) = (1, BUDGET);
        if self.random.percent(30) {
            self.line(&format!("#[launch_bounds({MAX_THREADS})]"));
        }
        let constants = self.constants.declared();
        self.start_body(&format!("kernel {}{constants}({}) {{", kernel.name, list.join(", ")));
        if kernel.shared_bytes > 0 {
            self.line("dynamic shared dynamic_words: [u32];");
        }
        self.line("let t = in_grid();");
        self.line("let mut h = mix(out[t], t as u64);");
        for (name, ty) in [("t", Type::U32), ("h", Type::U64)] {
            self.variables.push(Variable { path: name.into(), ty, mutable: false });
        }
        if kernel.shared_bytes > 0 {
            let value = self.exchange("dynamic_words", &Type::U32);
            self.line(&format!("h = mix(h, {value} as u64);"));
        }
        let (count, parameters) = (3 + self.random.below(6), self.variables.len());
        self.statements(count);
        for at in parameters..self.variables.len() {
            let variable = self.variables[at].clone();
            if matches!(variable.ty, Type::Scalar(_)) {
                let place = self.indexed(&variable.path);
                let word = self.checksum(&place, &variable.ty);
                self.line(&format!("h = mix(h, {word});"));
            }
        }
        self.place.meets = false;
        if !self.kernels.is_empty() {
            for _ in 0..1 + self.random.below(2) {
                self.launches(&mut kernel);
            }
        }
        self.line("out[t] = mix(out[t], h);");
        self.close("}");
        kernel
    }

    fn shape(&mut self, is_entry: bool) -> Kernel {
        let (grids, blocks): (&[[u32; 3]], &[[u32; 3]]) = if is_entry {
            (
                &[[1, 1, 1], [2, 1, 1], [3, 1, 1], [2, 2, 1], [1, 1, 2]],
                &[
                    [32, 1, 1],
                    [64, 1, 1],
                    [16, 4, 1],
                    [8, 4, 2],
                    [96, 1, 1],
                    [128, 1, 1],
                    [33, 1, 1],
                ],
            )
        } else {
            (
                &[[1, 1, 1], [1, 1, 1], [2, 1, 1], [1, 2, 1]],
                &[[1, 1, 1], [4, 1, 1], [3, 3, 1], [32, 1, 1], [8, 4, 1], [32, 1, 2]],
            )
        };
        let name = if is_entry { ENTRY.to_owned() } else { self.fresh("k") };
        let (grid, block) = (self.random.pick(grids), self.random.pick(blocks));
        let threads = block.iter().product::<u32>();
        let shared_bytes = if self.random.percent(30) { threads * 4 } else { 0 };
        let slots = (grid.iter().product::<u32>() * threads) as usize;
        // Callers expect this name of the entry kernel.
        let constants = if is_entry { Constants::default() } else { self.some_constants() };
        Kernel {
            name,
            constants,
            parameters: vec![],
            grid,
            block,
            shared_bytes,
            slots,
            launches: 0,
        }
    }

    /// Gives every thread the value of another thread, through shared memory.
    fn exchange(&mut self, array: &str, ty: &Type) -> String {
        let value = self.expression(ty, LEVELS);
        let away = self.random.below(MAX_THREADS as usize);
        format!(
            "{{ {array}[in_block()] = {value}; sync_threads(); \
             let got = {array}[(in_block() + {away}) % block_size()]; sync_threads(); got }}"
        )
    }

    /// Something that all threads of a block do together, on one line.
    pub(super) fn meeting(&mut self) {
        match self.random.below(8) {
            0..=2 => {
                let scalar = self.scalar();
                let is_vector = scalar.size() >= 4 && self.random.percent(30);
                let ty = if is_vector { Type::Vector(scalar, 2) } else { Type::Scalar(scalar) };
                let array = Type::Array(Box::new(ty.clone()), MAX_THREADS);
                let Some(name) = self.share(&array, MAX_SHARED) else { return };
                let exchange = self.exchange(&name, &ty);
                self.keep(&ty, &exchange);
            }
            3 => {
                let scalar =
                    self.random.pick(&[Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64]);
                let operation = self.random.pick(&["add", "sub", "min", "max", "and", "or", "xor"]);
                let scope = self.random.pick(&["", "_block"]);
                let ty = Type::Scalar(scalar);
                let Some(name) = self.share(&ty, MAX_SHARED) else { return };
                let (first, value) = (self.literal(scalar), self.expression(&ty, LEVELS));
                self.keep(
                    &ty,
                    &format!(
                        "{{ if in_block() == 0 {{ {name} = {first}; }} sync_threads(); \
                         atomic_{operation}{scope}(&{name}, {value}); sync_threads(); \
                         let got = {name}; sync_threads(); got }}"
                    ),
                );
            }
            4 => {
                let value = self.expression(&Type::BOOL, LEVELS);
                let (name, ty) = self.random.pick(&[
                    ("count", Scalar::U32),
                    ("and", Scalar::Bool),
                    ("or", Scalar::Bool),
                ]);
                self.keep(&Type::Scalar(ty), &format!("sync_threads_{name}({value})"));
            }
            _ if !self.place.full_warps => {}
            5 => self.call_together(),
            _ => self.warp(),
        }
    }

    /// Keeps a value in a variable.
    fn keep(&mut self, ty: &Type, value: &str) {
        let name = self.fresh("v");
        let shown = self.show(ty);
        self.line(&format!("let mut {name}: {shown} = {value};"));
        let parts = self.parts(&name, ty, true);
        self.variables.extend(parts);
    }

    fn warp(&mut self) {
        const FULL: &str = "0xffff_ffff";
        let wide = [Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];
        match self.random.below(5) {
            0 | 1 => {
                let scalar = if self.random.percent(30) {
                    self.random.pick(&[Scalar::F32, Scalar::F64, Scalar::F16, Scalar::Bf16])
                } else {
                    self.random.pick(&wide)
                };
                let ty = Type::Scalar(scalar);
                let mode = self.random.pick(&["shfl", "shfl_up", "shfl_down", "shfl_xor"]);
                let value = self.expression(&ty, LEVELS);
                let lane = if self.random.percent(60) {
                    self.random.below(32).to_string()
                } else {
                    format!("{} & 31", self.expression(&Type::U32, 1))
                };
                self.keep(&ty, &format!("{mode}({FULL}, {value}, {lane})"));
            }
            2 => {
                let value = self.expression(&Type::BOOL, LEVELS);
                let (name, ty) = self.random.pick(&[
                    ("ballot", Scalar::U32),
                    ("any", Scalar::Bool),
                    ("all", Scalar::Bool),
                ]);
                self.keep(&Type::Scalar(ty), &format!("{name}({FULL}, {value})"));
            }
            3 => {
                let scalar = self.random.pick(&wide);
                let value = self.expression(&Type::Scalar(scalar), LEVELS);
                self.keep(&Type::U32, &format!("match_any({FULL}, {value})"));
            }
            _ => {
                // Sums of floats depend on the order.
                let (scalar, name) = if self.random.percent(20) {
                    let scalar = self.random.pick(&[Scalar::F32, Scalar::F64]);
                    (scalar, self.random.pick(&["min", "max"]))
                } else {
                    let names = ["add", "min", "max", "and", "or", "xor"];
                    (self.random.pick(&wide), self.random.pick(&names))
                };
                let value = self.expression(&Type::Scalar(scalar), LEVELS);
                self.keep(&Type::Scalar(scalar), &format!("reduce_{name}({FULL}, {value})"));
            }
        }
    }

    /// A call of a function that all threads of the block make.
    fn call_together(&mut self) {
        let room = self.budget.saturating_sub(self.cost) / self.place.times;
        let recent = self.recent();
        let fits: Vec<_> = self.functions[recent..]
            .iter()
            .filter(|function| function.meets && function.cost <= room)
            .cloned()
            .collect();
        if fits.is_empty() {
            return;
        }
        let function = fits[self.random.below(fits.len())].clone();
        if let Some(call) = self.call_of(&function, LEVELS) {
            self.keep(&function.result, &call);
        }
    }

    /// A few threads launch an existing kernel, once or twice in a row.
    fn launches(&mut self, kernel: &mut Kernel) {
        let child = self.kernels[self.random.below(self.kernels.len())].clone();
        let threads = kernel.threads();
        let mut stream =
            self.random.pick(&["", "default", "fire_and_forget", "tail", "created"]).to_owned();
        // Launches of one thread into the same stream run one after another.
        let in_order = stream != "fire_and_forget";
        let times = if in_order { 1 + self.random.below(2) } else { 1 };
        let each = times * (1 + child.launches);
        let room = MAX_LAUNCHES.saturating_sub(kernel.launches) / each;
        if room == 0 {
            return;
        }
        let launching = (1 + self.random.below(4)).min(room) as u32;
        let apart = threads.div_ceil(launching);
        kernel.launches += threads.div_ceil(apart) as usize * each;
        let first = self.random.below(apart as usize) as u32;
        let base = kernel.slots;
        kernel.slots += threads.div_ceil(apart) as usize * child.slots;
        self.open(&format!("if t % {apart} == {first} {{"));
        let mine = self.fresh("slots");
        self.line(&format!("let {mine} = out + ({base} + t / {apart} * {});", child.slots));
        let first_value = self.expression(&Type::U64, 2);
        self.line(&format!("*{mine} = {first_value};"));
        let is_created = stream == "created";
        if is_created {
            stream = self.fresh("stream");
            self.line(&format!("let {stream} = stream_create();"));
        }
        if in_order && stream != "tail" && child.slots > 1 && self.random.percent(20) {
            let into = if stream.is_empty() { "default" } else { &stream };
            let line = format!("memset_async({mine} + 1, {}, 8, {into});", self.random.below(256));
            self.line(&line);
        }
        for _ in 0..times {
            self.launch(&child, &mine, &stream);
        }
        if is_created {
            self.line(&format!("stream_destroy({stream});"));
        }
        self.close("}");
    }

    fn launch(&mut self, child: &Kernel, slots: &str, stream: &str) {
        let shape = |of: [u32; 3]| match of {
            [x, 1, 1] => x.to_string(),
            [x, y, z] => format!("dim3({x}, {y}, {z})"),
        };
        let mut config = format!("{}, {}", shape(child.grid), shape(child.block));
        if child.shared_bytes > 0 {
            config.push_str(&format!(", shared = {}", child.shared_bytes));
        }
        if !stream.is_empty() {
            config.push_str(&format!(", stream = {stream}"));
        }
        let mut arguments = vec![slots.to_owned(), "z".to_owned()];
        for ty in &child.parameters {
            arguments.push(self.expression(ty, 2));
        }
        let name = format!("{}{}", child.name, self.instance(&child.constants));
        let launch = format!("launch {name}<<<{config}>>>({})", arguments.join(", "));
        if self.random.percent(30) {
            self.line(&format!("h = mix(h, (try {launch}) as u64);"));
        } else {
            self.line(&format!("{launch};"));
        }
    }
}
