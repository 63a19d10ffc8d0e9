//! A webhook judged: its address, its contract, and what the contract asks for.

use gatehook_events::{Decides, Event, Profile};
use serde_json::{Map, Value as Json};
use url::Url;

use super::DiagnosticKind as Kind;
use super::document::{Node, Value};
use super::draft::Draft;
use super::fields::{REPLY, REQUEST, REWRITE, RULE};
use super::hook::required;
use super::hooks::{ReadOptions, pattern_help, place_within};
use super::section::{Field, Section, Shape};
use super::{pattern, reference};
use crate::definition::{Contract, HandlerDefinition, Mapping, ReplyRules, RewriteFrom, Rule, Test, WebhookDefinition};
use crate::handlers::webhook::Terms;
use crate::handlers::webhook::contracts::{mapped, terms};

/// The webhook, unless something is wrong with it, which is reported.
pub(super) fn read(event: Event, draft: &Draft<'_>, options: &ReadOptions<'_>) -> Option<HandlerDefinition> {
    let section = &draft.section;
    let url = required(draft, "url", draft.url, Kind::UrlRequired, "a webhook needs a `url`");
    let headers = reference::headers(draft, options);
    let terms = terms(draft.contract);
    fits(section, terms, event);
    if let Some(url) = url.filter(|url| has_user(url) || check_url(url).is_err()) {
        conceal_user_information(section, url);
    }
    if let Some(Err(cause)) = url.map(check_url) {
        section.report(section.problem(Kind::InvalidUrl, cause).at(section.place("url")));
    }
    let secrets = reference::secrets(draft, options);
    let parameters = parameters(section, terms);
    let mapping = mapping(section, draft.contract, event);
    Some(HandlerDefinition::Webhook(WebhookDefinition {
        method: draft.method.to_owned(),
        headers: headers?,
        parameters,
        mapping,
        secrets: secrets?,
        ..WebhookDefinition::new(url?, draft.contract)
    }))
}

/// A contract on an event that it has no form for would judge nothing.
fn fits(section: &Section<'_>, terms: &Terms, event: Event) {
    if terms.knows(event) {
        return;
    }
    let message = format!("the contract `{}` has no `{}`", terms.contract.name(), event.public_name());
    let problem = section.problem(Kind::ContractUnsupported, message).at(section.place("contract"));
    let known = terms.events.iter().flat_map(|group| group.iter()).filter(|event| !event.is_lane());
    let known: Vec<String> = known.map(|event| format!("`{}`", event.name())).collect();
    let list = match known.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => known.join(""),
    };
    section.report(problem.help(format!("it knows {list}")));
}

fn has_user(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}

/// Keeps user information out of reports where an odd address hides it from their own look for it.
fn conceal_user_information(section: &Section<'_>, url: &str) {
    if let (Some(at), Some(node)) = (url.rfind('@'), section.node("url")) {
        let document = section.context.document;
        section.context.diagnostics.conceal(place_within(document, &node.span, url, &(0..at)));
    }
}

/// What is wrong with an address, without its user information.
pub(crate) fn check_url(text: &str) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("this is no URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        // Without `//`, what looks like a scheme may be a user's name.
        return Err("a webhook is reached by `http://` or `https://`".to_owned());
    }
    // The parser takes `http:host` and `http:///host` for `http://host`; a typing error is likelier.
    let authority = text.trim_start().get(url.scheme().len()..).and_then(|rest| rest.strip_prefix("://"));
    match authority {
        Some(rest) if !rest.starts_with('/') && url.host_str().is_some_and(|host| !host.is_empty()) => Ok(()),
        _ => Err("this URL has no host".to_owned()),
    }
}

/// What the contract's requests say besides the event, by the contract's own table.
fn parameters(section: &Section<'_>, terms: &Terms) -> Map<String, Json> {
    let Some(node) = section.node("parameters") else { return Map::new() };
    if terms.parameters.is_empty() {
        let message = format!("the contract `{}` takes no parameters", terms.contract.name());
        misplaced(section, "parameters", message, "remove them");
        return Map::new();
    }
    let Some(inner) = section.section("parameters", terms.parameters) else { return Map::new() };
    terms.parameters.iter().for_each(|field| check_shape(&inner, field));
    match node.to_json() {
        Json::Object(parameters) => parameters.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

fn check_shape(section: &Section<'_>, field: &Field) {
    let Some(node) = section.node(field.name) else { return };
    match (field.shape, &node.value) {
        (Shape::Text, _) => drop(section.text(field.name)),
        (Shape::Texts, Value::Seq(items)) if items.iter().all(|item| matches!(item.value, Value::Str(_))) => {}
        (Shape::Texts, _) => drop(section.wrong_type::<()>(field.name, node, "a list of texts")),
        (Shape::NumberMap, Value::Map(entries)) if entries.iter().all(|(_, node)| is_number(node)) => {}
        (Shape::NumberMap, _) => drop(section.wrong_type::<()>(field.name, node, "a mapping from names to numbers")),
        (_, Value::Map(_)) => {}
        (_, _) => drop(section.wrong_type::<()>(field.name, node, "a mapping")),
    }
}

fn is_number(node: &Node) -> bool {
    matches!(node.value, Value::Int(_) | Value::Float(_))
}

fn misplaced(section: &Section<'_>, field: &str, message: String, help: &str) {
    section.report(section.problem(Kind::MisplacedField, message).at(section.place(field)).help(help));
}

/// Request and reply of a mapped contract.
fn mapping(section: &Section<'_>, contract: Contract, event: Event) -> Option<Box<Mapping>> {
    if contract != Contract::Mapped {
        for field in ["request", "reply"].into_iter().filter(|field| section.node(field).is_some()) {
            let message = format!("the contract `{}` has its own `{field}`", contract.name());
            misplaced(section, field, message, "remove it, or say `contract: mapped`");
        }
        return None;
    }
    section.require("request");
    section.require("reply");
    let body = section.section("request", REQUEST).and_then(|request| body(&request));
    let reply = section.section("reply", REPLY).map(|reply| rules(&reply, event));
    Some(Box::new(Mapping { body: body?, reply: reply? }))
}

fn body(request: &Section<'_>) -> Option<Json> {
    request.require("body");
    let node = request.node("body")?;
    let body = node.to_json();
    if let Err(message) = mapped::check_body(&body) {
        request.report(request.problem(Kind::InvalidValue, message).at(node.span.clone()));
    }
    Some(body)
}

fn rules(reply: &Section<'_>, event: Event) -> ReplyRules {
    let list = |name| reply.sections(name, RULE).iter().filter_map(rule).collect::<Vec<_>>();
    let able = event.capabilities(Profile::Native);
    if reply.node("ask_when").is_some() && able.is_none_or(|able| able.decides != Decides::TriState) {
        misplaced(reply, "ask_when", format!("`{}` asks nobody", event.public_name()), "remove it");
    }
    if reply.node("rewrite").is_some() && able.is_none_or(|able| able.rewrites.is_none()) {
        misplaced(reply, "rewrite", format!("`{}` rewrites nothing", event.public_name()), "remove it");
    }
    let rules = ReplyRules {
        block_status: statuses(reply),
        block_when: list("block_when"),
        ask_when: list("ask_when"),
        allow_when: list("allow_when"),
        reason: place(reply, "reason"),
        rewrite: reply.section("rewrite", REWRITE).and_then(|section| rewrite(&section)),
    };
    if ["block_when", "allow_when"].iter().all(|name| reply.node(name).is_none()) {
        let problem = reply.problem(Kind::FieldRequired, "nothing says which reply blocks").at(reply.head());
        reply.report(problem.help("give `block_when`, or `allow_when`, or both"));
    }
    rules
}

fn statuses(reply: &Section<'_>) -> Vec<u16> {
    let status = |text: &String| match text.parse() {
        Ok(status @ 400..600) => Some(status),
        _ => {
            let message = format!("`{text}` is no status that could block");
            let problem = reply.problem(Kind::InvalidValue, message).at(reply.place("block_status"));
            reply.report(problem.help("name some from 400 to 599"));
            None
        }
    };
    reply.texts("block_status").unwrap_or_default().iter().filter_map(status).collect()
}

/// A place in a reply.
fn place(section: &Section<'_>, name: &str) -> Option<String> {
    let path = section.text(name)?;
    match mapped::check_path(path) {
        Ok(()) => Some(path.to_owned()),
        Err(message) => {
            section.report(section.problem(Kind::InvalidValue, message).at(section.place(name)));
            None
        }
    }
}

fn rewrite(section: &Section<'_>) -> Option<RewriteFrom> {
    match (place(section, "text"), place(section, "texts")) {
        (Some(text), None) => Some(RewriteFrom::Text(text)),
        (None, Some(texts)) => Some(RewriteFrom::Texts(texts)),
        (text, _) => {
            let both = text.is_some();
            if both || ["text", "texts"].iter().all(|name| section.node(name).is_none()) {
                let problem = section.problem(Kind::FieldRequired, "a rewrite has one place").at(section.head());
                section.report(problem.help("give `text` or `texts`"));
            }
            None
        }
    }
}

fn rule(section: &Section<'_>) -> Option<Rule> {
    section.require("path");
    let path = place(section, "path");
    let tests = ["is", "in", "at_least", "matches", "exists"];
    let given: Vec<&str> = tests.into_iter().filter(|name| section.node(name).is_some()).collect();
    let [name] = given.as_slice() else {
        let problem = section.problem(Kind::FieldRequired, "a rule asks one thing of its place").at(section.head());
        section.report(problem.help("give one of `is`, `in`, `at_least`, `matches`, `exists`"));
        return None;
    };
    let optional = section.bool("optional").unwrap_or(false);
    Some(Rule { path: path?, optional, test: test(section, name)? })
}

fn test(section: &Section<'_>, name: &str) -> Option<Test> {
    let node = section.node(name)?;
    let is_plain = |node: &Node| matches!(node.value, Value::Bool(_) | Value::Str(_)) || is_number(node);
    match (name, &node.value) {
        ("is", _) if is_plain(node) => Some(Test::Is(node.to_json())),
        ("is", _) => section.wrong_type(name, node, "a boolean, a number or text"),
        ("in", Value::Seq(items)) if !items.is_empty() && items.iter().all(is_plain) => {
            Some(Test::In(items.iter().map(Node::to_json).collect()))
        }
        ("in", _) => section.wrong_type(name, node, "a list of booleans, numbers or texts"),
        ("at_least", _) => section.number(name).map(Test::AtLeast),
        ("exists", _) => section.bool(name).map(Test::Exists),
        _ => {
            let text = section.text(name)?;
            if let Err(error) = pattern::check(text, None) {
                let place = place_within(section.context.document, &node.span, text, &error.span);
                let problem = section.problem(Kind::InvalidPattern, format!("this is no regular expression: {error}"));
                section.report(problem.at(place).help(pattern_help(text)));
            }
            Some(Test::Matches(text.to_owned()))
        }
    }
}
