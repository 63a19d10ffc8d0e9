//! What it takes to read a body, known before it is read.

use memchr::memchr2;

/// Bytes that a value or key takes at most, in the table of nodes and in what hooks are shown. Measured with millions of
/// `{"":0}`, the worst there is.
const EACH: usize = 256;

/// About how many bytes reading `body` takes beside its texts: a body of many small values takes a hundred times its own
/// length. To be set aside before [`crate::Request::read`] and [`crate::Response::read`].
pub fn weight(body: &[u8]) -> usize {
    let mut nodes = 0_usize;
    let mut rest = body;
    while let Some((byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => after_string(after),
            b'{' | b'[' | b',' | b':' => {
                nodes += 1;
                after
            }
            _ => after,
        };
    }
    nodes.saturating_mul(EACH)
}

/// What follows the closing quote.
fn after_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', text) {
        let escape = text.get(at) == Some(&b'\\');
        text = text.get(at + 1 + usize::from(escape)..).unwrap_or_default();
        if !escape {
            return text;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_weigh_and_texts_do_not() {
        for (body, nodes) in [
            (r#"{"a":[1,2],"b":{}}"#, 7),
            (r#""a,b:{[""#, 0),
            (r#"["a\",,,","\\",1]"#, 3),
            (r#"["never ends,,,"#, 1),
            (r#"["\"#, 1),
            ("", 0),
        ] {
            assert_eq!(weight(body.as_bytes()), nodes * EACH, "{body}");
        }
    }
}
