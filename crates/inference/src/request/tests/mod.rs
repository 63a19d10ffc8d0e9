mod ambiguity;
mod rewrites;
mod views;

use serde_json::json;

use super::*;

fn request(path: impl Into<Path>, body: &Value) -> Request {
    raw(path, &body.to_string())
}

fn raw(path: impl Into<Path>, body: &str) -> Request {
    Request::read(path, Bytes::copy_from_slice(body.as_bytes())).unwrap_or_else(|error| panic!("{error}: {body}"))
}

fn refused(path: impl Into<Path>, body: &str) -> ReadError {
    match Request::read(path, Bytes::copy_from_slice(body.as_bytes())) {
        Ok(request) => panic!("read: {:?} of {body}", request.view()),
        Err(error) => error,
    }
}

fn ambiguous(path: impl Into<Path>, body: &str) {
    let error = refused(path, body);
    assert!(matches!(error, ReadError::Ambiguous { .. }), "{error}: {body}");
}

fn shown(request: &Request) -> Value {
    serde_json::to_value(&request.view().messages).unwrap()
}

fn rewritten(request: &Request, messages: &Value) -> Result<Value, String> {
    let messages: Vec<Message> = serde_json::from_value(messages.clone()).unwrap();
    let bytes = request.rewrite(&messages).map_err(|error| error.reason)?;
    Ok(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}")))
}
