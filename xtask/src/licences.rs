//! Licences and sources of dependencies, after `deny.toml`.
//!
//! `cargo deny` does it where it is installed. Otherwise the same lists are held against `cargo metadata`, so that
//! the check needs nothing but cargo. Advisories need a database from the network and stay with `cargo deny check`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::Outcome;
use crate::program::{cargo, root};

/// The step of `cargo xtask test`.
pub(crate) fn check() -> Outcome {
    if cargo(&["deny", "--version"]).succeeds() {
        println!("advisories are left out, they need the network: `cargo deny check advisories`");
        return cargo(&["deny", "check", "licenses", "bans", "sources"]).run();
    }
    println!(
        "cargo-deny is not installed: licences and sources are checked against deny.toml here, advisories are not"
    );
    let allowed = allowed(&fs::read_to_string(root().join("deny.toml"))?)?;
    let metadata = cargo(&["metadata", "--format-version", "1", "--all-features", "--locked"]).read()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata.get("packages").and_then(Value::as_array).ok_or("`cargo metadata` lists no packages")?;
    let faults: Vec<String> = packages.iter().filter_map(|package| fault(package, &allowed)).collect();
    if faults.is_empty() {
        println!("{} packages, all allowed", packages.len());
        return Ok(());
    }
    Err(format!("deny.toml does not allow:\n{}", faults.join("\n")).into())
}

fn allowed(text: &str) -> Outcome<BTreeSet<String>> {
    let table: toml::Table = text.parse()?;
    let list = table.get("licenses").and_then(|licences| licences.get("allow")).and_then(toml::Value::as_array);
    let list = list.ok_or("deny.toml has no `licenses.allow`")?;
    Ok(list.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect())
}

/// What `deny.toml` has against a package of `cargo metadata`; nothing for those of this workspace.
fn fault(package: &Value, allowed: &BTreeSet<String>) -> Option<String> {
    let source = package["source"].as_str()?;
    let name = format!("{} {}", package["name"].as_str()?, package["version"].as_str()?);
    if !source.starts_with("registry+") {
        return Some(format!("  {name}: source {source}"));
    }
    let Some(licence) = package["license"].as_str() else {
        return Some(format!("  {name}: states no licence"));
    };
    (!accepts(licence, allowed)).then(|| format!("  {name}: licence {licence}"))
}

/// Whether an SPDX expression can be satisfied with allowed licences. `/` is an old way to write `OR`.
fn accepts(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut ok = both(rest, allowed);
    while let Some(("OR", tail)) = split(rest) {
        *rest = tail;
        // `|`, not `||`: the right side has to be read in any case.
        ok |= both(rest, allowed);
    }
    ok
}

fn both(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut ok = one(rest, allowed);
    while let Some(("AND", tail)) = split(rest) {
        *rest = tail;
        ok &= one(rest, allowed);
    }
    ok
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let Some((word, tail)) = split(rest) else { return false };
    *rest = tail;
    if word == "(" {
        let ok = either(rest, allowed);
        let closed = split(rest).is_some_and(|(word, _)| word == ")");
        *rest = rest.get(1..).unwrap_or_default();
        return ok && closed;
    }
    let mut licence = word.to_owned();
    if let Some(("WITH", tail)) = split(rest) {
        let exception = tail.first().copied().unwrap_or_default();
        *rest = tail.get(1..).unwrap_or_default();
        // An exception only ever permits more than the licence alone.
        if !allowed.contains(&licence) {
            licence = format!("{licence} WITH {exception}");
        }
    }
    allowed.contains(&licence)
}

fn split<'a, 'w>(rest: &'a [&'w str]) -> Option<(&'w str, &'a [&'w str])> {
    rest.split_first().map(|(word, tail)| (*word, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_accepted_when_allowed_licences_satisfy_it() {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).into();
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0 OR MIT", true),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(GPL-3.0 OR MIT) AND OpenSSL", false),
            ("MIT/Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-2.0 WITH Classpath-exception-2.0", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(accepts(expression, &allowed), expected, "{expression}");
        }
    }

    #[test]
    fn only_registries_are_a_source() {
        let allowed = ["MIT".to_owned()].into();
        let package =
            |source: Value| serde_json::json!({"name": "a", "version": "1.0.0", "license": "MIT", "source": source});
        assert_eq!(fault(&package("registry+https://example.org/index".into()), &allowed), None);
        assert_eq!(fault(&package(Value::Null), &allowed), None, "a crate of this workspace");
        assert!(fault(&package("git+https://example.org/a".into()), &allowed).is_some());
    }
}
