//! Chat, mail, telephony.

use crate::rule::{Check, Rule, named, shape, token};

const fn hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (byte >= b'a' && byte <= b'f')
}

const fn digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

const UUID: &str = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";

#[rustfmt::skip] // one row, one line
pub(super) const RULES: &[Rule] = &[
    token("slack-bot-token", "Slack bot token", &["xoxb-"], "[0-9]{10,13}-[A-Za-z0-9-]{14,}"),
    token("slack-user-token", "Slack user token", &["xoxp-"], "[0-9]{10,13}-[A-Za-z0-9-]{14,}"),
    token("slack-legacy-token", "Slack workspace or legacy token", &["xoxa-", "xoxo-", "xoxr-", "xoxs-"], "[A-Za-z0-9-]{12,}"),
    token("slack-session-token", "Slack browser session token", &["xoxc-", "xoxd-"], "[A-Za-z0-9/+-]{20,}"),
    token("slack-config-token", "Slack app configuration token", &["xoxe.xox", "xoxe-"], "[A-Za-z0-9-]{40,}"),
    token("slack-app-token", "Slack app-level token", &["xapp-"], "[0-9]-[A-Z0-9]{9,12}-[0-9]{10,14}-[A-Za-z0-9]{32,}"),
    token("slack-webhook", "Slack webhook address", &["hooks.slack.com/"], r"(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    token("discord-bot-token", "Discord bot token", &["MT", "Mj", "Mz", "MD", "ND", "NT", "Nj", "Nz", "OD", "OT"], r"[\w-]{22,26}\.[\w-]{6}\.[\w-]{27,38}"),
    token("discord-webhook", "Discord webhook address", &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"], r"[0-9]{17,20}/[\w-]{60,}"),
    named("discord-client-secret", "Discord client secret", &["discord"], r"[\w-]{32}"),
    shape("telegram-bot-token", "Telegram bot token", &[":AA"], r"[\w-]{33}\b{end-half}").after(digit, 8, 10),
    token("teams-webhook", "Microsoft Teams webhook address", &["webhook.office.com/webhookb2/"], "[0-9a-f-]{36}"),
    token("twilio-api-key", "Twilio API key", &["SK"], "[0-9a-f]{32}"),
    named("twilio-auth-token", "Twilio auth token", &["twilio"], "[0-9a-f]{32}"),
    token("sendgrid-api-key", "SendGrid API key", &["SG."], r"[\w-]{22}\.[\w-]{43}"),
    token("mailgun-api-key", "Mailgun API key", &["key-"], "[0-9a-f]{32}"),
    named("mailgun-newer-key", "Mailgun API or signing key", &["mailgun"], "[0-9a-f]{32}(?:-[0-9a-f]{8}-[0-9a-f]{8})?"),
    token("mailchimp-api-key", "Mailchimp API key", &["-us"], "[0-9]{1,2}").after(hex, 32, 32),
    token("mandrill-api-key", "Mandrill API key", &["md-"], r"[\w-]{22}").check(Check::Mixed(3.0)),
    named("postmark-token", "Postmark server token", &["postmark"], UUID),
    named("sparkpost-api-key", "SparkPost API key", &["sparkpost"], "[0-9a-f]{40}"),
    token("brevo-api-key", "Brevo API key", &["xkeysib-", "xsmtpsib-"], "[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    token("resend-api-key", "Resend API key", &["re_"], "[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    token("mailersend-token", "MailerSend token", &["mlsn."], "[0-9a-f]{64}"),
    named("mailjet-secret-key", "Mailjet key", &["mailjet", "mjapi"], "[0-9a-f]{32}"),
    named("vonage-api-secret", "Vonage API secret", &["vonage", "nexmo"], "[A-Za-z0-9]{16}"),
    named("messagebird-token", "MessageBird token", &["messagebird"], "[A-Za-z0-9]{25}"),
    named("intercom-token", "Intercom access token", &["intercom"], "[A-Za-z0-9+/_-]{58,60}={0,2}"),
    named("zendesk-token", "Zendesk API token", &["zendesk"], "[A-Za-z0-9]{40}"),
    named("mattermost-token", "Mattermost access token", &["mattermost"], "[a-z0-9]{26}"),
    token("klaviyo-api-key", "Klaviyo private API key", &["pk_"], "[0-9a-f]{34}"),
    token("onesignal-api-key", "OneSignal API key", &["os_v2_app_", "os_v2_org_"], "[a-z0-9]{40,}"),
    token("pubnub-secret-key", "PubNub secret key", &["sec-c-"], "[A-Za-z0-9]{36,}"),
    named("pusher-secret", "Pusher secret", &["pusher"], "[0-9a-f]{20}"),
    token("hubspot-token", "HubSpot private app token", &["pat-na", "pat-eu", "pat-ap"], "[0-9]-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    named("line-channel-token", "LINE channel access token", &["linechannel"], "[A-Za-z0-9+/]{100,}={0,2}"),
];
