//! The toolchain stage.
