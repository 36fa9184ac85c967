//! Lists in the text of modules.

/// The elements of a list, which commas divide outside strings and brackets.
pub(crate) fn elements(list: &str) -> Vec<&str> {
    let (mut elements, mut start, mut depth, mut in_string) = (vec![], 0, 0, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'(' | b'{' | b'[' | b'<' => depth += 1,
            b')' | b'}' | b']' | b'>' => depth -= 1,
            b',' if depth == 0 => {
                elements.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    elements.push(list[start..].trim());
    elements
}
