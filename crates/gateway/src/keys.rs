//! The gateway's own keys: who may call.

use std::sync::Arc;

use gatehook_guard::Refusal;
use gatehook_inference::ErrorKind;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::config::{KeyConfig, KeySecret};
use crate::headers::X_API_KEY;

/// All keys; empty asks for none.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    name: Arc<str>,
    hash: [u8; 32],
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Its hash.
    #[error("key {0}: a hash is 64 hexadecimal digits, as `printf %s KEY | sha256sum` prints them")]
    Hash(String),
    /// Its file.
    #[error("key {name}: {file} cannot be read: {error}")]
    File {
        /// Its name.
        name: String,
        /// The file.
        file: String,
        /// What is wrong.
        error: std::io::Error,
    },
    /// The file holds nothing.
    #[error("key {0}: its file is empty")]
    Empty(String),
}

impl Keys {
    pub(crate) fn new(configs: &[KeyConfig]) -> Result<Self, KeyError> {
        let keys = configs.iter().map(Key::new).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The name of the key that the request presents; `None` where none is asked for. The key is taken out of the
    /// headers, so that no upstream sees it.
    pub(crate) fn admit(&self, headers: &mut HeaderMap) -> Result<Option<Arc<str>>, Refusal> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut admitted = None;
        for header in [AUTHORIZATION, X_API_KEY] {
            let key = headers.get(&header).and_then(|value| self.find(bare(value.as_bytes())));
            if let Some(name) = key {
                headers.remove(&header);
                admitted = admitted.or(Some(name));
            }
        }
        admitted.map(Some).ok_or_else(|| Refusal::new(ErrorKind::Unauthorized))
    }

    /// The key of this text. Takes the same time whichever of the keys it is.
    fn find(&self, text: &[u8]) -> Option<Arc<str>> {
        let hash: [u8; 32] = Sha256::digest(text).into();
        let mut found = None;
        for key in &self.keys {
            let same: Choice = key.hash.ct_eq(&hash);
            if bool::from(same) {
                found = Some(key.name.clone());
            }
        }
        found
    }
}

/// The key without its scheme.
fn bare(value: &[u8]) -> &[u8] {
    match value.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer ") => key.trim_ascii(),
        _ => value,
    }
}

impl Key {
    fn new(config: &KeyConfig) -> Result<Self, KeyError> {
        let hash = match &config.secret {
            KeySecret::Sha256(digits) => unhex(digits).ok_or_else(|| KeyError::Hash(config.name.clone()))?,
            KeySecret::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| KeyError::File {
                    name: config.name.clone(),
                    file: path.display().to_string(),
                    error,
                })?;
                match text.trim() {
                    "" => return Err(KeyError::Empty(config.name.clone())),
                    key => Sha256::digest(key).into(),
                }
            }
        };
        Ok(Self { name: config.name.as_str().into(), hash })
    }
}

fn unhex(digits: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    // printf %s sesame | sha256sum
    const SESAME: &str = "d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272";

    fn keys() -> Keys {
        let secret = KeySecret::Sha256(SESAME.into());
        Keys::new(&[KeyConfig { name: "alice".into(), secret }]).unwrap()
    }

    fn admit(name: http::HeaderName, value: &'static str) -> (Option<Arc<str>>, HeaderMap) {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        (keys().admit(&mut headers).unwrap_or_default(), headers)
    }

    #[test]
    fn a_key_is_known_in_either_header_and_taken_out() {
        for (name, value) in [(AUTHORIZATION, "Bearer sesame"), (AUTHORIZATION, "bearer sesame"), (X_API_KEY, "sesame")]
        {
            let (key, headers) = admit(name, value);
            assert_eq!(key.as_deref(), Some("alice"), "{value}");
            assert!(headers.is_empty(), "{value}");
        }
    }

    #[test]
    fn another_key_is_refused() {
        let (key, headers) = admit(AUTHORIZATION, "Bearer sesam");
        assert_eq!((key, headers.len()), (None, 1));
    }

    #[test]
    fn a_hash_of_another_length_is_an_error() {
        let secret = KeySecret::Sha256("abc".into());
        assert!(Keys::new(&[KeyConfig { name: "bob".into(), secret }]).is_err());
    }
}
