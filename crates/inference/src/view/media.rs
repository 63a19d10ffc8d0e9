//! Images, audio and files: shown by fingerprint, their data stays where it is.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use gatehook_events::Image;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fingerprint::hex;
use crate::json::{At, Document, Kind};

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// Keys under which parts carry data.
const DATA_KEYS: &[&str] = &["data", "file_data", "url", "image_url"];

/// The fingerprint of an image given as base64, as a `data:` URL or by address. What does not decode is taken as
/// it stands.
pub(crate) fn image(text: &str, media_type: &str) -> Image {
    let (named, data) = data_url(text).unwrap_or((media_type, text));
    let bytes = decode(data);
    let bytes = bytes.as_deref().unwrap_or(text.as_bytes());
    Image { sha256: hex(&Sha256::digest(bytes)), media_type: named.to_owned(), bytes: bytes.len() as u64, data: None }
}

/// Media type and base64 data of a `data:` URL.
fn data_url(text: &str) -> Option<(&str, &str)> {
    let (head, data) = text.strip_prefix("data:")?.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    Some((media_type.split(';').next().unwrap_or_default(), data))
}

fn decode(data: &str) -> Option<Vec<u8>> {
    BASE64.decode(data).or_else(|_| BASE64_URL.decode(data)).ok()
}

/// What an image part says in words: an address, or what should be data and is none.
pub(crate) fn address(text: &str) -> Option<&str> {
    let data = data_url(text).map_or(text, |(_, data)| data);
    let is_data = data.len() >= 8 && decode(data).is_some();
    (!is_data).then_some(text)
}

/// A part that is shown as it is, its data by fingerprint.
pub(crate) fn outline(document: &Document, at: At) -> Value {
    match document.kind(at) {
        Kind::Object => document
            .members(at)
            .map(|(key, value)| {
                let key = document.text(key).unwrap_or_default().into_owned();
                let data = DATA_KEYS.contains(&key.as_str()).then(|| fingerprint(document, value)).flatten();
                (key, data.unwrap_or_else(|| outline(document, value)))
            })
            .collect(),
        Kind::Array => document.elements(at).map(|element| outline(document, element)).collect(),
        _ => document.value(at),
    }
}

/// Only of what is certainly data: long, and base64 from end to end.
fn fingerprint(document: &Document, at: At) -> Option<Value> {
    let text = document.text(at).filter(|text| text.len() > 256)?;
    let bytes = decode(data_url(&text).map_or(&*text, |(_, data)| data))?;
    Some(json!({ "sha256": hex(&Sha256::digest(&bytes)), "bytes": bytes.len() }))
}

/// Whether encrypted reasoning is ciphertext: base64 from end to end, as prose is not. Servers without encryption put
/// plain text in its place.
pub(crate) fn is_cipher(text: &str) -> bool {
    text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_image_has_one_fingerprint_however_it_is_given() {
        let bare = image("aGVsbG8=", "image/png");
        assert_eq!(bare.sha256, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        assert_eq!((bare.media_type.as_str(), bare.bytes), ("image/png", 5));
        assert_eq!(image("data:image/png;base64,aGVsbG8", ""), bare);
    }

    #[test]
    fn an_address_is_hashed_itself() {
        let address = image("https://example.test/a.png", "");
        assert_eq!(address.bytes, 26);
        assert_eq!(address.sha256, hex(&Sha256::digest("https://example.test/a.png")));
    }
}
