//! The ptx stage.
