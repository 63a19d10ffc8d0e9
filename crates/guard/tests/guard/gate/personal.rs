//! The builtins that scan, on streams: personal data goes into the model as placeholders and comes back as values, and
//! what the model says of it by itself never leaves.

use bytes::Bytes;
use gatehook_engine::events::{Event, Verb};
use gatehook_guard::Gate;
use gatehook_inference::Route;
use serde_json::Value;

use super::{SETTINGS, send, stream};
use crate::streams::{ROUTES, Say, call, frames, gather, has_more, text, thinking};
use crate::world::{Exchange, World, request};

/// A value, and what stands in its place.
const VALUES: [(&str, &str); 6] = [
    ("jane.doe@example.com", "<EMAIL>"),
    ("4111 1111 1111 1111", "<CARD>"),
    ("DE89 3704 0044 0532 0130 00", "<IBAN>"),
    ("123-45-6789", "<SSN>"),
    ("+49 151 12345678", "<PHONE>"),
    ("2001:db8::8a2e:370:7334", "<IP>"),
];

fn after(name: &str, args: &[&str]) -> World {
    World::new().builtin(Event::PostInference, name, args)
}

#[tokio::test]
async fn a_value_that_is_split_anywhere_never_leaves_and_the_rest_does() {
    for (value, word) in VALUES {
        let whole = format!("Sicher – {value}, wörtlich 🔑.");
        for &route in ROUTES {
            let cuts = whole.char_indices().map(|(at, _)| at);
            let mut splits: Vec<Vec<&str>> = cuts.map(|cut| vec![&whole[..cut], &whole[cut..]]).collect();
            splits.push(whole.split("").collect());
            for split in splits {
                let says: Vec<Say> = split.iter().map(|piece| text(piece)).collect();
                let (_, came, gathered) = stream(after("redact_pii", &[]), route, &says).await;
                assert_eq!(gathered.text, whole.replace(value, word), "{route:?} {split:?}: {}", came.text());
                assert!(gathered.over && !came.text().contains(&value[3..]), "{route:?} {split:?}: {}", came.text());
            }
        }
    }
}

#[tokio::test]
async fn a_key_that_something_interrupts_is_swallowed_to_its_end() {
    let body = "Zx9".repeat(300);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----");
    for &route in ROUTES.iter().filter(|route| has_more(**route)) {
        for cut in (1..60).chain([500, key.len() - 20]) {
            let says = [text(&key[..cut]), call("c1", "put", "{}"), text(&format!("{} And so on.", &key[cut..]))];
            let (_, came, gathered) = stream(after("redact_secrets", &[]), route, &says).await;
            assert!(!came.text().contains(&body[..9]), "{route:?} {cut}: {}", came.text());
            assert!(gathered.text.ends_with("[REDACTED] And so on."), "{route:?} {cut}: {}", came.text());
            assert_eq!(gathered.calls.len(), 1, "{route:?} {cut}");
        }
    }
}

#[tokio::test]
async fn where_one_builtin_waits_the_matches_of_another_are_not_cut() {
    // A key may begin within an address, and a token within a number.
    for (whole, expected) in [
        ("An jane.roe@bank-example.compassword=hunter2hunter2, ja.", "An <EMAIL>=[REDACTED], ja."),
        ("Call +1 4155552671:AAH4 now.", "Call <PHONE>:AAH4 now."),
    ] {
        let cuts = whole.char_indices().map(|(at, _)| at);
        let mut splits: Vec<Vec<&str>> = cuts.map(|cut| vec![&whole[..cut], &whole[cut..]]).collect();
        splits.push(whole.split("").collect());
        for split in splits {
            let says: Vec<Say> = split.iter().map(|piece| text(piece)).collect();
            let world = after("redact_secrets", &[]).builtin(Event::PostInference, "redact_pii", &[]);
            let (_, came, gathered) = stream(world, Route::ChatCompletions, &says).await;
            assert_eq!(gathered.text, expected, "{split:?}: {}", came.text());
        }
    }
}

#[tokio::test]
async fn nor_does_it_in_thinking_or_arguments() {
    for (value, word) in VALUES {
        let whole = format!("I use {value} now.");
        let arguments = format!(r#"{{"to":"{value}","x":1}}"#);
        for &route in ROUTES.iter().filter(|route| has_more(**route)) {
            let cut = whole.len() / 2;
            let says = [thinking(&whole[..cut]), thinking(&whole[cut..]), text("Done."), call("c1", "put", &arguments)];
            let (_, came, gathered) = stream(after("redact_pii", &[]), route, &says).await;
            assert_eq!(gathered.thinking, whole.replace(value, word), "{route:?}: {}", came.text());
            assert_eq!(
                (&*gathered.text, &*gathered.calls[0].2),
                ("Done.", &*arguments.replace(value, word)),
                "{route:?}"
            );
            assert!(!came.text().contains(&value[3..]), "{route:?}: {}", came.text());
        }
    }
}

#[tokio::test]
async fn text_without_any_leaves_as_it_came_and_does_not_wait_for_more_than_a_word() {
    for &route in ROUTES {
        for name in ["redact_pii", "redact_secrets"] {
            let says = [text("In 2024 "), text("all was "), text("fine, "), text("really.")];
            let (_, came, _) = stream(after(name, &[]), route, &says).await;
            assert_eq!(came.text(), frames(route, &says).concat(), "{route:?}");
            let at = frames(route, &says).iter().position(|frame| frame.contains("fine")).unwrap();
            assert!(came.after[at] > 0, "{route:?} {name}: {:?}", came.after);
        }
    }
}

#[tokio::test]
async fn a_blocked_phrase_that_is_split_anywhere_never_leaves() {
    let whole = "The project is called Blue Falcon, as you know.";
    for &route in ROUTES {
        for cut in 0..=whole.len() {
            let says = [text(&whole[..cut]), text(&whole[cut..])];
            let (_, came, gathered) = stream(after("block_patterns", &["(?i)blue\\s+falcon"]), route, &says).await;
            assert!("The project is called ".starts_with(&*gathered.text), "{route:?} {cut}: {}", came.text());
            assert!(!came.text().contains("Falcon"), "{route:?} {cut}: {}", came.text());
        }
    }
}

/// Asks on a route with this text, and streams what the model says.
async fn converse(world: World, route: Route, asked: &str, says: &[Say]) -> (String, crate::streams::Gathered) {
    let exchange = Exchange::from(world);
    let body = request(route).to_string().replace("\"hi\"", &Value::from(asked).to_string());
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["stream"] = true.into();
    let admitted = exchange.ask(route, &body).await.unwrap();
    let sent = String::from_utf8(admitted.body.to_vec()).unwrap();
    assert!(exchange.seen.verdicts().iter().any(|(_, verdict)| verdict.verb == Verb::Modify), "{route:?}");
    let mut gate = Gate::new(exchange.guard.clone().into(), exchange.owned(route), admitted, SETTINGS).expect("a gate");
    let came = send(&mut gate, frames(route, says).into_iter().map(Bytes::from)).await;
    (sent, gather(route, &came.bytes))
}

#[tokio::test]
async fn the_model_sees_placeholders_and_the_caller_gets_values() {
    let asked = "Write to jane@example.com, charge 4111 1111 1111 1111, not <EMAIL_2>.";
    let said = "I wrote to <EMAIL_1>, charged <CARD_3>, left out <EMAIL_2> and bob@example.com.";
    let plain = "I wrote to jane@example.com, charged 4111 1111 1111 1111, left out <EMAIL_2> and bob@example.com.";
    for both in [false, true] {
        for &route in ROUTES {
            for cut in [0, 11, 14, 20, 34, 40, said.len()] {
                let world = World::new().builtin(Event::PreInference, "redact_pii", &[]);
                let world = if both { world.builtin(Event::PostInference, "redact_pii", &[]) } else { world };
                let says = [text(&said[..cut]), text(&said[cut..])];
                let (sent, gathered) = converse(world, route, asked, &says).await;
                assert!(sent.contains("Write to <EMAIL_1>, charge <CARD_3>, not <EMAIL_2>."), "{route:?} {sent}");
                let want = if both { plain.replace("bob@example.com", "<EMAIL>") } else { plain.to_owned() };
                assert_eq!((gathered.text, gathered.over), (want, true), "{route:?} {cut}");
            }
        }
    }
}
