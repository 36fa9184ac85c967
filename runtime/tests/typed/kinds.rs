#[allow(
    clippy::all,
    clippy::nursery,
    clippy::pedantic,
    dead_code,
    nonstandard_style,
    rustdoc::all,
    unreachable_pub,
    unsafe_code,
    unused_results,
    reason = "generated"
)]
mod kinds_program {
    /// The program `kinds`, loaded on a device.
    #[derive(Clone, Debug)]
    pub struct Program {
        program: ::gridlet_runtime::Program,
        saxpy_kernel: ::gridlet_runtime::Kernel,
        scalars_kernel: ::gridlet_runtime::Kernel,
        values_kernel: ::gridlet_runtime::Kernel,
        pointers_kernel: ::gridlet_runtime::Kernel,
        BUNDLE__kernel: ::gridlet_runtime::Kernel,
        stream_kernel: ::gridlet_runtime::Kernel,
        type_kernel: ::gridlet_runtime::Kernel,
        tile_8_true_kernel: ::gridlet_runtime::Kernel,
        tile_minus_1_false_kernel: ::gridlet_runtime::Kernel,
    }

    impl Program {
        /// The bundle, with an image for each device that it was built for.
        pub const BUNDLE: &[u8] = include_bytes!("kinds.grid");

        /// Loads the program on a device.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Program::from_static_bundle`] and [`gridlet_runtime::Program::kernel`].
        pub fn load(device: &::gridlet_runtime::Device) -> ::gridlet_runtime::Result<Self> {
            let program = ::gridlet_runtime::Program::from_static_bundle(device, Self::BUNDLE)?;
            Ok(Program {
                saxpy_kernel: program.kernel("saxpy")?,
                scalars_kernel: program.kernel("scalars")?,
                values_kernel: program.kernel("values")?,
                pointers_kernel: program.kernel("pointers")?,
                BUNDLE__kernel: program.kernel("BUNDLE")?,
                stream_kernel: program.kernel("stream")?,
                type_kernel: program.kernel("type")?,
                tile_8_true_kernel: program.kernel("tile::<8, true>")?,
                tile_minus_1_false_kernel: program.kernel("tile::<-1, false>")?,
                program,
            })
        }

        /// The program without its types.
        pub fn program(&self) -> &::gridlet_runtime::Program {
            &self.program
        }

        /// y = a x + y, for the first `n`.
        ///
        /// Each thread does one.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn saxpy(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            n: u32,
            a: f32,
            x: impl ::gridlet_runtime::typed::Readable<f32>,
            y: impl ::gridlet_runtime::typed::Writable<f32>,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<24>::new();
            parameters.put::<0, _>(n);
            parameters.put::<4, _>(a);
            parameters.point::<8>(stream, "x", x.place())?;
            parameters.point::<16>(stream, "y", y.place_to_write())?;
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.saxpy_kernel, config) }
        }

        /// The kernel `saxpy`, to query its attributes.
        pub fn saxpy_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.saxpy_kernel
        }

        /// All scalars, and a comment that rustdoc must not take for links or Rust: a[i] = b[<i>].
        /// ```text
        /// d = e;
        /// ```
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn scalars(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            a: bool,
            b: i8,
            c: i16,
            d: i32,
            e: i64,
            f: u8,
            g: u16,
            h: u32,
            i: u64,
            j: ::gridlet_runtime::typed::f16,
            k: ::gridlet_runtime::typed::bf16,
            l: f32,
            m: f64,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<48>::new();
            parameters.put::<0, _>(::gridlet_runtime::typed::Bool::from(a));
            parameters.put::<1, _>(b);
            parameters.put::<2, _>(c);
            parameters.put::<4, _>(d);
            parameters.put::<8, _>(e);
            parameters.put::<16, _>(f);
            parameters.put::<18, _>(g);
            parameters.put::<20, _>(h);
            parameters.put::<24, _>(i);
            parameters.put::<32, _>(j);
            parameters.put::<34, _>(k);
            parameters.put::<36, _>(l);
            parameters.put::<40, _>(m);
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.scalars_kernel, config) }
        }

        /// The kernel `scalars`, to query its attributes.
        pub fn scalars_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.scalars_kernel
        }

        /// Launches the kernel `values`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn values(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            mixed: Mixed,
            small: whole,
            vector: ::gridlet_runtime::typed::F64x4,
            three: ::gridlet_runtime::typed::U16x3,
            array: [i32; 3],
            grid: dim3,
            s: u64,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<200>::new();
            parameters.put::<0, _>(mixed);
            parameters.put::<112, _>(small);
            parameters.put::<128, _>(vector);
            parameters.put::<160, _>(three);
            parameters.put::<168, _>(array);
            parameters.put::<180, _>(grid);
            parameters.put::<192, _>(s);
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.values_kernel, config) }
        }

        /// The kernel `values`, to query its attributes.
        pub fn values_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.values_kernel
        }

        /// Launches the kernel `pointers`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn pointers(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            nodes: impl ::gridlet_runtime::typed::Writable<Node>,
            flags: impl ::gridlet_runtime::typed::Readable<::gridlet_runtime::typed::Bool>,
            lists: impl ::gridlet_runtime::typed::Readable<::gridlet_runtime::typed::DevicePointer<f32>>,
            rows: impl ::gridlet_runtime::typed::Writable<[f32; 4]>,
            points: impl ::gridlet_runtime::typed::Readable<::gridlet_runtime::typed::F32x4>,
            an_argument_with_a_name_that_is_long_enough_to_break_the_line: impl ::gridlet_runtime::typed::Readable<::gridlet_runtime::typed::bf16>,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<48>::new();
            parameters.point::<0>(stream, "nodes", nodes.place_to_write())?;
            parameters.point::<8>(stream, "flags", flags.place())?;
            parameters.point::<16>(stream, "lists", lists.place())?;
            parameters.point::<24>(stream, "rows", rows.place_to_write())?;
            parameters.point::<32>(stream, "points", points.place())?;
            parameters.point::<40>(
                stream,
                "an_argument_with_a_name_that_is_long_enough_to_break_the_line",
                an_argument_with_a_name_that_is_long_enough_to_break_the_line.place(),
            )?;
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.pointers_kernel, config) }
        }

        /// The kernel `pointers`, to query its attributes.
        pub fn pointers_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.pointers_kernel
        }

        /// Launches the kernel `BUNDLE`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn BUNDLE_(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            out: impl ::gridlet_runtime::typed::Writable<PartialEq>,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<8>::new();
            parameters.point::<0>(stream, "out", out.place_to_write())?;
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.BUNDLE__kernel, config) }
        }

        /// The kernel `BUNDLE`, to query its attributes.
        pub fn BUNDLE__kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.BUNDLE__kernel
        }

        /// Launches the kernel `stream`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn stream(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
        ) -> ::gridlet_runtime::Result<()> {
            let parameters = ::gridlet_runtime::typed::Parameters::<0>::new();
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.stream_kernel, config) }
        }

        /// The kernel `stream`, to query its attributes.
        pub fn stream_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.stream_kernel
        }

        /// Launches the kernel `type`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn r#type(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            self_: u32,
            stream_: u32,
            parameters_: u32,
            crate_: u32,
            Upper: u32,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<20>::new();
            parameters.put::<0, _>(self_);
            parameters.put::<4, _>(stream_);
            parameters.put::<8, _>(parameters_);
            parameters.put::<12, _>(crate_);
            parameters.put::<16, _>(Upper);
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.type_kernel, config) }
        }

        /// The kernel `type`, to query its attributes.
        pub fn type_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.type_kernel
        }

        /// Launches the kernel `tile::<8, true>`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn tile_8_true(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            out: impl ::gridlet_runtime::typed::Writable<i32>,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<8>::new();
            parameters.point::<0>(stream, "out", out.place_to_write())?;
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.tile_8_true_kernel, config) }
        }

        /// The kernel `tile::<8, true>`, to query its attributes.
        pub fn tile_8_true_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.tile_8_true_kernel
        }

        /// Launches the kernel `tile::<-1, false>`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Stream::launch`].
        pub fn tile_minus_1_false(
            &self,
            stream: &::gridlet_runtime::Stream,
            config: &::gridlet_runtime::LaunchConfig,
            out: impl ::gridlet_runtime::typed::Writable<i32>,
        ) -> ::gridlet_runtime::Result<()> {
            let mut parameters = ::gridlet_runtime::typed::Parameters::<8>::new();
            parameters.point::<0>(stream, "out", out.place_to_write())?;
            // SAFETY: the kernel's parameters, as the bundle's manifest lays them out.
            unsafe { parameters.launch(stream, &self.tile_minus_1_false_kernel, config) }
        }

        /// The kernel `tile::<-1, false>`, to query its attributes.
        pub fn tile_minus_1_false_kernel(&self) -> &::gridlet_runtime::Kernel {
            &self.tile_minus_1_false_kernel
        }

        /// The variable `counter`: `u32`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Program::global`].
        pub fn counter(&self) -> ::gridlet_runtime::Result<::gridlet_runtime::Buffer<u32>> {
            self.program.global_as("counter")
        }

        /// The variable `table`: `[[f32; 2]; 4]`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Program::global`].
        pub fn table(&self) -> ::gridlet_runtime::Result<::gridlet_runtime::Buffer<[f32; 2]>> {
            self.program.global_as("table")
        }

        /// The variable `NODE`: `Node`.
        ///
        /// # Errors
        /// The errors of [`gridlet_runtime::Program::global`].
        pub fn NODE(&self) -> ::gridlet_runtime::Result<::gridlet_runtime::Buffer<Node>> {
            self.program.global_as("NODE")
        }
    }

    /// The program's `dim3`: 12 bytes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    pub struct dim3 {
        /// `u32`, at byte 0.
        pub x: u32,
        /// `u32`, at byte 4.
        pub y: u32,
        /// `u32`, at byte 8.
        pub z: u32,
    }

    const _: () = {
        assert!(::core::mem::size_of::<dim3>() == 12);
        assert!(::core::mem::align_of::<dim3>() == 4);
        assert!(::core::mem::offset_of!(dim3, x) == 0);
        assert!(::core::mem::offset_of!(dim3, y) == 4);
        assert!(::core::mem::offset_of!(dim3, z) == 8);
    };

    // SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.
    unsafe impl ::gridlet_runtime::DeviceCopy for dim3 {
        const ELEMENT: ::gridlet_runtime::Element = ::gridlet_runtime::Element::Struct("dim3");
    }

    impl dim3 {
        /// A value with these fields.
        #[must_use]
        pub fn new(x: u32, y: u32, z: u32) -> Self {
            let mut made: Self = ::gridlet_runtime::typed::zeroed();
            made.x = x;
            made.y = y;
            made.z = z;
            made
        }
    }

    impl ::core::default::Default for dim3 {
        /// A value whose bytes are all 0.
        fn default() -> Self {
            ::gridlet_runtime::typed::zeroed()
        }
    }

    /// The program's `Node`: 24 bytes.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Node {
        /// `*mut Node`, at byte 0.
        pub next: ::gridlet_runtime::typed::DevicePointer<Node>,
        /// `f32x2`, at byte 8.
        pub value: ::gridlet_runtime::typed::F32x2,
        /// `bool`, at byte 16.
        pub live: ::gridlet_runtime::typed::Bool,
        _padding_17: [u8; 7],
    }

    const _: () = {
        assert!(::core::mem::size_of::<Node>() == 24);
        assert!(::core::mem::align_of::<Node>() == 8);
        assert!(::core::mem::offset_of!(Node, next) == 0);
        assert!(::core::mem::offset_of!(Node, value) == 8);
        assert!(::core::mem::offset_of!(Node, live) == 16);
        assert!(::core::mem::offset_of!(Node, _padding_17) == 17);
    };

    // SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.
    unsafe impl ::gridlet_runtime::DeviceCopy for Node {
        const ELEMENT: ::gridlet_runtime::Element = ::gridlet_runtime::Element::Struct("Node");
    }

    impl Node {
        /// A value with these fields.
        #[must_use]
        pub fn new(
            next: ::gridlet_runtime::typed::DevicePointer<Node>,
            value: ::gridlet_runtime::typed::F32x2,
            live: ::gridlet_runtime::typed::Bool,
        ) -> Self {
            let mut made: Self = ::gridlet_runtime::typed::zeroed();
            made.next = next;
            made.value = value;
            made.live = live;
            made
        }
    }

    impl ::core::default::Default for Node {
        /// A value whose bytes are all 0.
        fn default() -> Self {
            ::gridlet_runtime::typed::zeroed()
        }
    }

    impl ::core::cmp::PartialEq for Node {
        fn eq(&self, other: &Self) -> bool {
            let mut equal = true;
            equal &= self.next == other.next;
            equal &= self.value == other.value;
            equal &= self.live == other.live;
            equal
        }
    }

    impl ::core::fmt::Debug for Node {
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            let mut debug = f.debug_struct("Node");
            debug.field("next", &self.next);
            debug.field("value", &self.value);
            debug.field("live", &self.live);
            debug.finish()
        }
    }

    /// The program's `Mixed`: 112 bytes.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Mixed {
        /// `u8`, at byte 0.
        pub a: u8,
        _padding_1: [u8; 7],
        /// `f64`, at byte 8.
        pub b: f64,
        /// `[bool; 3]`, at byte 16.
        pub flags: [::gridlet_runtime::typed::Bool; 3],
        _padding_19: [u8; 1],
        /// `f16`, at byte 20.
        pub half: ::gridlet_runtime::typed::f16,
        /// `u8x3`, at byte 22.
        pub corner: ::gridlet_runtime::typed::U8x3,
        _padding_25: [u8; 7],
        /// `Node`, at byte 32.
        pub node: Node,
        /// `[Node; 2]`, at byte 56.
        pub list: [Node; 2],
        /// `i16`, at byte 104.
        pub r#type: i16,
        _padding_106: [u8; 6],
    }

    const _: () = {
        assert!(::core::mem::size_of::<Mixed>() == 112);
        assert!(::core::mem::align_of::<Mixed>() == 8);
        assert!(::core::mem::offset_of!(Mixed, a) == 0);
        assert!(::core::mem::offset_of!(Mixed, _padding_1) == 1);
        assert!(::core::mem::offset_of!(Mixed, b) == 8);
        assert!(::core::mem::offset_of!(Mixed, flags) == 16);
        assert!(::core::mem::offset_of!(Mixed, _padding_19) == 19);
        assert!(::core::mem::offset_of!(Mixed, half) == 20);
        assert!(::core::mem::offset_of!(Mixed, corner) == 22);
        assert!(::core::mem::offset_of!(Mixed, _padding_25) == 25);
        assert!(::core::mem::offset_of!(Mixed, node) == 32);
        assert!(::core::mem::offset_of!(Mixed, list) == 56);
        assert!(::core::mem::offset_of!(Mixed, r#type) == 104);
        assert!(::core::mem::offset_of!(Mixed, _padding_106) == 106);
    };

    // SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.
    unsafe impl ::gridlet_runtime::DeviceCopy for Mixed {
        const ELEMENT: ::gridlet_runtime::Element = ::gridlet_runtime::Element::Struct("Mixed");
    }

    impl Mixed {
        /// A value with these fields.
        #[must_use]
        pub fn new(
            a: u8,
            b: f64,
            flags: [::gridlet_runtime::typed::Bool; 3],
            half: ::gridlet_runtime::typed::f16,
            corner: ::gridlet_runtime::typed::U8x3,
            node: Node,
            list: [Node; 2],
            r#type: i16,
        ) -> Self {
            let mut made: Self = ::gridlet_runtime::typed::zeroed();
            made.a = a;
            made.b = b;
            made.flags = flags;
            made.half = half;
            made.corner = corner;
            made.node = node;
            made.list = list;
            made.r#type = r#type;
            made
        }
    }

    impl ::core::default::Default for Mixed {
        /// A value whose bytes are all 0.
        fn default() -> Self {
            ::gridlet_runtime::typed::zeroed()
        }
    }

    impl ::core::cmp::PartialEq for Mixed {
        fn eq(&self, other: &Self) -> bool {
            let mut equal = true;
            equal &= self.a == other.a;
            equal &= self.b == other.b;
            equal &= self.flags == other.flags;
            equal &= self.half == other.half;
            equal &= self.corner == other.corner;
            equal &= self.node == other.node;
            equal &= self.list == other.list;
            equal &= self.r#type == other.r#type;
            equal
        }
    }

    impl ::core::fmt::Debug for Mixed {
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            let mut debug = f.debug_struct("Mixed");
            debug.field("a", &self.a);
            debug.field("b", &self.b);
            debug.field("flags", &self.flags);
            debug.field("half", &self.half);
            debug.field("corner", &self.corner);
            debug.field("node", &self.node);
            debug.field("list", &self.list);
            debug.field("type", &self.r#type);
            debug.finish()
        }
    }

    /// The program's `Default`: 4 bytes.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct Default {
        /// `u8`, at byte 0.
        pub x: u8,
        _padding_1: [u8; 1],
        /// `u16`, at byte 2.
        pub y: u16,
    }

    const _: () = {
        assert!(::core::mem::size_of::<Default>() == 4);
        assert!(::core::mem::align_of::<Default>() == 2);
        assert!(::core::mem::offset_of!(Default, x) == 0);
        assert!(::core::mem::offset_of!(Default, _padding_1) == 1);
        assert!(::core::mem::offset_of!(Default, y) == 2);
    };

    // SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.
    unsafe impl ::gridlet_runtime::DeviceCopy for Default {
        const ELEMENT: ::gridlet_runtime::Element = ::gridlet_runtime::Element::Struct("Default");
    }

    impl Default {
        /// A value with these fields.
        #[must_use]
        pub fn new(x: u8, y: u16) -> Self {
            let mut made: Self = ::gridlet_runtime::typed::zeroed();
            made.x = x;
            made.y = y;
            made
        }
    }

    impl ::core::default::Default for Default {
        /// A value whose bytes are all 0.
        fn default() -> Self {
            ::gridlet_runtime::typed::zeroed()
        }
    }

    impl ::core::cmp::PartialEq for Default {
        fn eq(&self, other: &Self) -> bool {
            let mut equal = true;
            equal &= self.x == other.x;
            equal &= self.y == other.y;
            equal
        }
    }

    impl ::core::fmt::Debug for Default {
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            let mut debug = f.debug_struct("Default");
            debug.field("x", &self.x);
            debug.field("y", &self.y);
            debug.finish()
        }
    }

    /// The program's `PartialEq`: 6 bytes.
    #[derive(Clone, Copy)]
    #[repr(C)]
    pub struct PartialEq {
        /// `u8`, at byte 0.
        pub x: u8,
        _padding_1: [u8; 1],
        /// `Default`, at byte 2.
        pub y: Default,
    }

    const _: () = {
        assert!(::core::mem::size_of::<PartialEq>() == 6);
        assert!(::core::mem::align_of::<PartialEq>() == 2);
        assert!(::core::mem::offset_of!(PartialEq, x) == 0);
        assert!(::core::mem::offset_of!(PartialEq, _padding_1) == 1);
        assert!(::core::mem::offset_of!(PartialEq, y) == 2);
    };

    // SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.
    unsafe impl ::gridlet_runtime::DeviceCopy for PartialEq {
        const ELEMENT: ::gridlet_runtime::Element = ::gridlet_runtime::Element::Struct("PartialEq");
    }

    impl PartialEq {
        /// A value with these fields.
        #[must_use]
        pub fn new(x: u8, y: Default) -> Self {
            let mut made: Self = ::gridlet_runtime::typed::zeroed();
            made.x = x;
            made.y = y;
            made
        }
    }

    impl ::core::default::Default for PartialEq {
        /// A value whose bytes are all 0.
        fn default() -> Self {
            ::gridlet_runtime::typed::zeroed()
        }
    }

    impl ::core::cmp::PartialEq for PartialEq {
        fn eq(&self, other: &Self) -> bool {
            let mut equal = true;
            equal &= self.x == other.x;
            equal &= self.y == other.y;
            equal
        }
    }

    impl ::core::fmt::Debug for PartialEq {
        fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
            let mut debug = f.debug_struct("PartialEq");
            debug.field("x", &self.x);
            debug.field("y", &self.y);
            debug.finish()
        }
    }

    /// The program's `whole`: 8 bytes.
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(C)]
    pub struct whole {
        /// `u32`, at byte 0.
        pub x: u32,
        /// `u32`, at byte 4.
        pub y: u32,
    }

    const _: () = {
        assert!(::core::mem::size_of::<whole>() == 8);
        assert!(::core::mem::align_of::<whole>() == 4);
        assert!(::core::mem::offset_of!(whole, x) == 0);
        assert!(::core::mem::offset_of!(whole, y) == 4);
    };

    // SAFETY: any bytes are a value, each byte is in a field, and the assertions above check the device's layout.
    unsafe impl ::gridlet_runtime::DeviceCopy for whole {
        const ELEMENT: ::gridlet_runtime::Element = ::gridlet_runtime::Element::Struct("whole");
    }

    impl whole {
        /// A value with these fields.
        #[must_use]
        pub fn new(x: u32, y: u32) -> Self {
            let mut made: Self = ::gridlet_runtime::typed::zeroed();
            made.x = x;
            made.y = y;
            made
        }
    }

    impl ::core::default::Default for whole {
        /// A value whose bytes are all 0.
        fn default() -> Self {
            ::gridlet_runtime::typed::zeroed()
        }
    }
}

#[allow(unreachable_pub, unused_imports, reason = "generated")]
pub use kinds_program::*;
