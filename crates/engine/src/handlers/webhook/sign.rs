//! Signatures of outgoing requests, so that a receiver knows who asks: Standard Webhooks 1.0.0, `v1`
//! (<https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>).

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;

use crate::handler::DefinitionError;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Bytes of a key.
const KEY: std::ops::RangeInclusive<usize> = 24..=64;

/// Signs with one key or, while a key is replaced, with several.
pub(super) struct Signer {
    keys: Vec<hmac::Key>,
}

/// The key of a secret as it is written, or what is wrong with it, which is not quoted.
pub(crate) fn key(secret: &str) -> Result<Vec<u8>, &'static str> {
    let encoded = secret.trim().strip_prefix("whsec_").ok_or("it does not begin with `whsec_`")?;
    let key = BASE64_STANDARD.decode(encoded).map_err(|_| "what follows `whsec_` is no base64")?;
    if KEY.contains(&key.len()) { Ok(key) } else { Err("its key has less than 24 or more than 64 bytes") }
}

impl Signer {
    /// `None` where nothing is to be signed.
    pub(super) fn of(secrets: &[String]) -> Result<Option<Self>, DefinitionError> {
        let keys = secrets.iter().map(|secret| key(secret).map(|key| hmac::Key::new(hmac::HMAC_SHA256, &key)));
        let keys: Vec<_> = keys.collect::<Result<_, _>>().map_err(|message| DefinitionError {
            field: "secret",
            message: message.to_owned(),
            help: Some("make one with `echo whsec_$(openssl rand -base64 32)`".to_owned()),
        })?;
        Ok((!keys.is_empty()).then_some(Self { keys }))
    }

    /// The three headers. `id` is without dots; `seconds` are those since 1970.
    pub(super) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> HeaderMap {
        let signatures: Vec<String> = self.keys.iter().map(|key| signature(key, id, seconds, body)).collect();
        let headers = [(ID, id.to_owned()), (TIMESTAMP, seconds.to_string()), (SIGNATURE, signatures.join(" "))];
        headers.into_iter().filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?))).collect()
    }
}

fn signature(key: &hmac::Key, id: &str, seconds: i64, body: &[u8]) -> String {
    let mut tag = hmac::Context::with_key(key);
    tag.update(format!("{id}.{seconds}.").as_bytes());
    tag.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(tag.sign()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    /// The vector of the published libraries:
    /// <https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py>.
    #[test]
    fn a_signature_is_that_of_the_published_vector() {
        let signer = Signer::of(&[SECRET.to_owned()]).unwrap().unwrap();
        let headers = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(headers["webhook-id"], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_a_key_is_replaced_both_sign() {
        let old = format!("whsec_{}", BASE64_STANDARD.encode([7; 32]));
        let sign = |secrets: &[&str]| {
            let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
            let headers = Signer::of(&secrets).unwrap().unwrap().sign("msg_1", 5, b"{}");
            headers["webhook-signature"].to_str().unwrap().to_owned()
        };
        assert_eq!(sign(&[SECRET, &old]), format!("{} {}", sign(&[SECRET]), sign(&[&old])));
    }

    #[test]
    fn what_is_no_secret_is_refused_without_quoting_it() {
        let (short, long) = (BASE64_STANDARD.encode([1; 23]), BASE64_STANDARD.encode([1; 65]));
        for secret in ["", "hunter2", "whsec_", "whsec_hunter2!", &format!("whsec_{short}"), &format!("whsec_{long}")] {
            let error = Signer::of(&[secret.to_owned()]).map(|_| ()).unwrap_err();
            assert_eq!(error.field, "secret", "{secret}");
            assert!(!error.message.contains("hunter2"), "{secret}");
        }
        assert!(Signer::of(&[]).unwrap().is_none());
    }
}
