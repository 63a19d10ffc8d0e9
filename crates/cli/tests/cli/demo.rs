use crate::support::{Home, shows};

#[test]
fn the_demo_shows_three_exchanges() {
    let ran = Home::new().run(&["demo", "--once"]);
    shows!("demo", ran);
}

#[test]
fn the_demo_as_json_has_every_side_of_each_exchange() {
    let ran = Home::new().run(&["demo", "--once", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.shown());
    let exchanges = ran.json();
    let verdicts: Vec<&str> =
        exchanges.as_array().unwrap().iter().map(|row| row["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["allow", "modify", "deny"]);
    let redacted = &exchanges[1];
    assert_eq!(redacted["upstream_saw"], "Is [REDACTED] still valid?");
    assert_eq!((&redacted["status"], &redacted["streamed"]), (&200.into(), &true.into()));
    assert_eq!(redacted["client_got"], "I only know [REDACTED], not yours.");
    assert_eq!(exchanges[2]["upstream_saw"], serde_json::Value::Null);
}

#[test]
fn the_demo_takes_nothing_from_the_environment() {
    let home = Home::new();
    home.file("gatehook.yaml", "hooks: 3\n");
    home.file("home/.config/gatehook/gatehook.yaml", "hooks: 3\n");
    assert_eq!(home.run(&["demo", "--once"]).code, 0);
}
