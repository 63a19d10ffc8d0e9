use proptest::prelude::*;

use super::*;

const KINDS: [UpstreamKind; 3] = [UpstreamKind::Ollama, UpstreamKind::OpenAi, UpstreamKind::Anthropic];

fn post(kind: UpstreamKind, path: &str) -> Found {
    look_up(kind, &Method::POST, path)
}

fn get(kind: UpstreamKind, path: &str) -> Found {
    look_up(kind, &Method::GET, path)
}

#[test]
fn the_six_routes_are_hooked_at_every_server() {
    for kind in KINDS {
        for route in Route::ALL {
            assert_eq!(post(kind, route.path()), Found::Row(Class::Hooked(Path::Route(*route))), "{kind:?}");
        }
    }
}

#[test]
fn what_only_takes_text_is_hooked_too() {
    for route in TextRoute::ALL {
        assert_eq!(post(UpstreamKind::OpenAi, route.path()), Found::Row(Class::Hooked(Path::Text(*route))));
    }
}

#[test]
fn a_hooked_path_has_no_method_but_post() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        assert_eq!(look_up(UpstreamKind::Ollama, &method, "/api/chat"), Found::OtherMethod, "{method}");
    }
}

#[test]
fn lists_health_and_versions_pass() {
    for path in ["/", "/api/version", "/api/tags", "/api/ps", "/v1/models", "/v1/models/hf.co/org/name"] {
        assert_eq!(get(UpstreamKind::Ollama, path), Found::Row(Class::Passed), "{path}");
    }
    for path in ["/health", "/v1/health", "/props", "/v1/models/x"] {
        assert_eq!(get(UpstreamKind::OpenAi, path), Found::Row(Class::Passed), "{path}");
    }
    assert_eq!(post(UpstreamKind::Ollama, "/api/show"), Found::Row(Class::Passed));
}

#[test]
fn management_is_known_as_such() {
    for path in ["/api/pull", "/api/push", "/api/create", "/api/copy", "/api/blobs/sha256:00"] {
        assert_eq!(post(UpstreamKind::Ollama, path), Found::Row(Class::Management), "{path}");
    }
    let delete = look_up(UpstreamKind::Ollama, &Method::DELETE, "/api/delete");
    assert_eq!(delete, Found::Row(Class::Management));
    assert_eq!(post(UpstreamKind::OpenAi, "/props"), Found::Row(Class::Management));
}

#[test]
fn side_doors_are_shut_at_every_server() {
    for kind in KINDS {
        for path in [
            "/completion",
            "/completions",
            "/infill",
            "/slots",
            "/slots/0",
            "/tokenize",
            "/v1/batches",
            "/v1/messages/batches",
            "/v1/responses/resp_1/cancel",
            "/v1/chat/completions/abc",
            "/v1/realtime",
            "/v1/audio/speech",
        ] {
            assert_eq!(post(kind, path), Found::Row(Class::Shut), "{kind:?} {path}");
            assert_ne!(get(kind, path), Found::Row(Class::Passed), "{kind:?} {path}");
        }
    }
}

#[test]
fn a_route_by_another_name_is_hooked_whatever_the_server_is_said_to_be() {
    for kind in KINDS {
        let hooked = Found::Row(Class::Hooked(Path::Route(Route::ChatCompletions)));
        assert_eq!(post(kind, "/chat/completions"), hooked, "{kind:?}");
    }
}

#[test]
fn what_is_not_in_the_table_is_unknown() {
    for path in ["/api/chat2", "/v1", "/api", "/v1/chat", "/api/chat/x", "/metrics"] {
        assert_eq!(post(UpstreamKind::Ollama, path), Found::Unknown, "{path}");
    }
}

#[test]
fn harmless_spellings_have_one_form() {
    for (spelling, form) in [
        ("/api/chat", "/api/chat"),
        ("//api//chat", "/api/chat"),
        ("/api/chat/", "/api/chat"),
        ("/./api/./chat", "/api/chat"),
        ("/api/%63hat", "/api/chat"),
        ("/%61pi/chat/", "/api/chat"),
        ("/", "/"),
        ("//", "/"),
        ("/v1/models/a.b", "/v1/models/a.b"),
    ] {
        assert_eq!(canonical(spelling).as_deref(), Ok(form), "{spelling}");
    }
}

#[test]
fn doubtful_spellings_are_refused() {
    for (spelling, error) in [
        ("/x/../api/chat", PathError::Upwards),
        ("/x/%2e%2e/api/chat", PathError::Upwards),
        ("/x/.%2E/api/chat", PathError::Upwards),
        ("/api%2Fchat", PathError::Encoded),
        ("/api%2fchat", PathError::Encoded),
        ("/api%5Cchat", PathError::Encoded),
        ("/api/%2563hat", PathError::Encoded),
        ("/api/chat%00", PathError::Encoded),
        ("/api/chat%0a", PathError::Encoded),
        ("/api/chat%3Bx", PathError::Encoded),
        ("/api/chat%3F", PathError::Encoded),
        ("/api/ch%C3%A4t", PathError::Encoded),
        ("/api/chat%", PathError::Encoded),
        ("/api/chat%zz", PathError::Encoded),
        ("/api/chat;v=1", PathError::Parameters),
        ("/api\\chat", PathError::Characters),
        ("/api/ch\u{e4}t", PathError::Characters),
        ("/api/chat\u{7f}", PathError::Characters),
        ("*", PathError::NotAPath),
        ("api/chat", PathError::NotAPath),
    ] {
        assert_eq!(canonical(spelling), Err(error), "{spelling}");
    }
}

#[test]
fn a_path_in_another_case_is_noticed() {
    for path in ["/API/chat", "/api/Chat", "/V1/Messages", "/Infill"] {
        assert!(is_other_case(UpstreamKind::Ollama, &Method::POST, path), "{path}");
    }
    assert!(!is_other_case(UpstreamKind::Ollama, &Method::GET, "/v1/models/Llama"));
}

proptest! {
    #[test]
    fn the_one_form_is_its_own_form(path in "(/[a-zA-Z0-9.%/;~_-]{0,8}){1,5}") {
        if let Ok(form) = canonical(&path) {
            let again = canonical(&form);
            prop_assert_eq!(again.as_deref(), Ok(&*form));
            prop_assert!(form == "/" || form.split('/').skip(1).all(|segment| !matches!(segment, "" | "." | "..")));
        }
    }
}
