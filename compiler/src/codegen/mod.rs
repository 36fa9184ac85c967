//! The codegen stage.
