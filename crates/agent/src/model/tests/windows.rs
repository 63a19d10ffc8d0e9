//! How much a model takes.

use serde_json::json;

use super::world::*;
use crate::model::*;

#[test]
fn what_is_configured_comes_before_what_a_family_is_known_for() {
    let model =
        |id: &str, format| Model::new(id, format, Server::Replay(Replay::parse("a.yaml", "- text: x").unwrap()));
    assert_eq!(model("openai/gpt-4o-mini", Format::OpenAi).window(), 128_000);
    assert_eq!(model("anthropic/claude-sonnet-4-5", Format::Anthropic).window(), 200_000);
    assert_eq!(model("openrouter/anthropic/claude-sonnet-4-5", Format::OpenAi).window(), 200_000);
    assert_eq!(model("ollama/gpt-4o", Format::Ollama).window(), 0, "what a local server takes is its own choice");
    assert_eq!(model("p/unheard-of", Format::OpenAi).window(), 0);
    assert_eq!(model("openai/gpt-4o", Format::OpenAi).with_window(5).window(), 5);
}

#[tokio::test]
async fn each_kind_of_server_says_its_window() {
    for (format, body, expected) in [
        (
            Format::Ollama,
            json!({"parameters": "stop \"x\"\nnum_ctx                        8192", "model_info": {"llama.context_length": 131072}}),
            8192,
        ),
        (Format::Ollama, json!({"models": [{"name": "m:latest", "context_length": 4096}], "model_info": {}}), 4096),
        (
            Format::Ollama,
            json!({"model_info": {"general.architecture": "llama", "llama.context_length": 131072}}),
            131_072,
        ),
        (Format::OpenAi, json!({"default_generation_settings": {"n_ctx": 2048}}), 2048),
        (
            Format::OpenAi,
            json!({"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 32768}]}),
            32_768,
        ),
        (Format::OpenAi, json!(["nothing"]), 0),
        (Format::Anthropic, json!({}), 0),
    ] {
        let host = Host::start(vec![Served::stream("application/json", &[&body.to_string()])]).await;
        let model = host.model("p/m", format);
        model.learn_window().await;
        assert_eq!(model.window(), expected, "{body}");
        assert_eq!(model.clone().window(), expected, "a clone is the same model");
    }
}

#[tokio::test]
async fn a_server_that_does_not_say_is_not_asked_for_ever() {
    let host = Host::start(vec![Served::error(404, "")]).await;
    let model = host.model("p/m", Format::OpenAi);
    for _ in 0..10 {
        model.learn_window().await;
    }
    assert_eq!(host.asked("/props").len(), 3);
}
