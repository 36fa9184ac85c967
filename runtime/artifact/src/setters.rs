//! Methods that set the fields of option structs. Such structs are `#[non_exhaustive]`, so that fields can be added; other
//! crates build them with these methods.

/// One method per field, for the `impl` of a struct: `with_arch: arch: CudaArch` gives the options with another `arch`.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($($method:ident: $field:ident: $ty:ty),* $(,)?) => {
        $(
            #[doc = concat!("This with another [`", stringify!($field), "`](Self::", stringify!($field), ").")]
            #[must_use]
            pub fn $method(self, $field: $ty) -> Self {
                #[allow(clippy::needless_update, reason = "a struct may have one field")]
                Self { $field, ..self }
            }
        )*
    };
}
