//! Webhooks that do not do their work: each blocks what it guards, on both sides of the call, or passes where it is
//! told to.

use std::io::Write as _;

use serde_json::json;

use crate::support::{Reply, Upstream, post, response};
use crate::verdicts::{POST, PRE, note, webhooks};

const REQUEST: &str = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
const ANSWER: &str = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ho"},"finish_reason":"stop"}]}"#;

/// Short, for webhooks that never answer.
const TIMEOUT: &str = "300ms";

fn ask(upstream: &Upstream, side: &str, webhook: &str, on_error: &str) -> (Reply, String) {
    let timeout = ("OLLAMA_HOOK_TIMEOUT", TIMEOUT);
    let gate = webhooks(upstream, &[(side, webhook), timeout, ("OLLAMA_HOOK_ON_ERROR", on_error)]);
    let reply = gate.ask(post("/v1/chat/completions", REQUEST));
    (reply, gate.handle.metrics())
}

/// Holds a fault against the table: 503 or passed, counted, and nothing of the withheld side is seen.
fn fails(name: &str, webhook: &str) {
    for side in [PRE, POST] {
        let upstream = Upstream::json(ANSWER);
        let (closed, _) = ask(&upstream, side, webhook, "deny");
        assert_eq!((closed.status, &note(&closed)["permission"]), (503, &json!("unavailable")), "{name} {side}");
        assert_eq!(closed.json()["error"]["code"], "hook_unavailable", "{name} {side}");
        assert_eq!(closed.header("x-should-retry"), Some("false"), "{name} {side}");
        assert!(!closed.text().contains("ho\""), "{name} {side}: the answer is withheld");
        assert_eq!(upstream.saw_nothing(), side == PRE, "{name} {side}");
        let (open, metrics) = ask(&Upstream::json(ANSWER), side, webhook, "allow");
        assert_eq!((open.status, open.text().as_str()), (200, ANSWER), "{name} {side}");
        assert!(metrics.contains("gatehook_hooks_passed_over_total 1"), "{name} {side}");
    }
}

/// A webhook that writes these bytes and hangs up.
fn saying(bytes: Vec<u8>) -> Upstream {
    Upstream::new(move |_, wire| {
        let _ = wire.stream.write_all(&bytes);
        false
    })
}

#[test]
fn a_webhook_that_refuses_the_connection_is_unavailable() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    fails("refuses", &format!("http://{address}/"));
}

#[test]
fn a_webhook_that_hangs_is_unavailable() {
    fails("hangs", &Upstream::new(|_, wire| !wire.is_closed()).url());
}

#[test]
fn a_webhook_that_drips_is_unavailable_at_its_deadline() {
    let drips = Upstream::new(|_, wire| {
        let whole = response(200, "application/json", r#"{"permission":"allow"}"#);
        for byte in whole {
            // The client hangs up at its deadline; until then a byte is there whenever it looks.
            if wire.stream.write_all(&[byte]).is_err() || wire.is_closed() {
                return false;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        false
    });
    fails("drips", &drips.url());
}

#[test]
fn a_webhook_that_answers_ten_mebibytes_is_unavailable() {
    let long = format!(r#"{{"permission":"allow","x":"{}"}}"#, "x".repeat(10 << 20));
    fails("10 MiB", &saying(response(200, "application/json", &long)).url());
}

#[test]
fn a_webhook_that_answers_a_page_is_unavailable() {
    fails("html", &saying(response(200, "text/html", "<html>allow</html>")).url());
}

#[test]
fn a_webhook_that_redirects_to_a_metadata_address_is_unavailable_and_not_followed() {
    let elsewhere = "HTTP/1.1 307 Elsewhere\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n";
    fails("redirects", &saying(elsewhere.into()).url());
}

#[test]
fn a_webhook_at_a_metadata_address_is_never_called() {
    for address in ["169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]"] {
        fails(address, &format!("http://{address}/"));
    }
}

#[test]
fn a_webhook_that_closes_in_mid_reply_is_unavailable() {
    let cut =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"permission\":".to_vec();
    fails("closes", &saying(cut).url());
}

#[test]
fn a_webhook_that_hangs_up_without_a_word_is_unavailable() {
    fails("hangs up", &saying(Vec::new()).url());
}

#[test]
fn a_webhook_that_errs_is_unavailable_whatever_it_says() {
    fails("errs", &saying(response(500, "application/json", r#"{"permission":"allow"}"#)).url());
}

#[test]
fn a_webhook_that_says_two_things_is_unavailable() {
    fails("two", &saying(response(200, "application/json", r#"{"permission":"allow"}{}"#)).url());
    fails("twice", &saying(response(200, "application/json", r#"{"permission":"deny","permission":"allow"}"#)).url());
}
