use super::*;

#[test]
fn samples() {
    for name in ["quicksort", "mandelbrot", "segment_sum"] {
        let path = format!("../examples/programs/{name}.grid");
        let sources = SourceMap::single(name, std::fs::read_to_string(path).unwrap());
        let (program, diagnostics) = parse_and_check(&sources);
        assert!(program.is_some(), "{}", crate::diagnostics::render(&diagnostics, &sources, false));
    }
}
