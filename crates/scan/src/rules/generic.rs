//! Shapes that belong to no vendor. Last in the table: a vendor's own rule names a finding first.

use crate::rule::{Check, Rule, named, shape, token};

/// The end of what a password is called; its beginning varies in case.
const PASSWORD: &[&str] = &["sswd", "SSWD", "ssword", "SSWORD", "ssphrase", "SSPHRASE", "Pwd", "pwd", "PWD"];

/// Between a name and its value: `=`, `:`, `:=` or `=>`, with a few blanks, quotes and backslashes around it.
macro_rules! assigned {
    ($value:literal) => {
        concat!(r#"[\w.-]{0,24}["'`\\]{0,2}[ \t]{0,4}(?::=|=>|=|:)[ \t]{0,4}"#, $value)
    };
}

#[rustfmt::skip] // one row, one line
pub(super) const RULES: &[Rule] = &[
    shape("private-key", "Private key in PEM or PGP armour (RSA, EC, PKCS#8, OpenSSH, PGP)", &["-----BEGIN"], concat!(
        r"[A-Z0-9 ]{0,40} PRIVATE KEY(?: BLOCK)?-----",
        r"(?:(?:\s|\\[rn]){1,8}(?:Version|Comment|Proc-Type|DEK-Info|Hash|Charset|MessageID)[^\r\n\\\[\]]{0,120}){0,4}",
        r#"(?:(?:(?:\s|\\[rn]|["',+]){0,16}[A-Za-z0-9+/=]{24,})"#,
        r#"(?:(?:\s|\\[rn]|["',+]){0,16}[A-Za-z0-9+/=]{8,})*"#,
        r#"(?:(?:\s|\\[rn]|["',+]){0,16}[A-Za-z0-9+/=]{1,7})?(?:(?:\s|\\[rn]|["',+]){0,16}=[A-Za-z0-9+/]{4})?"#,
        r#"(?:(?:\s|\\[rn]|["',+]){0,16}-----END[A-Z0-9 ]{0,40} PRIVATE KEY(?: BLOCK)?-----|\w*)"#,
        // One whose first line the text ends in.
        r#"|[ \t]{0,4}(?:(?:\r?\n|\\[rn])["',+ \t]{0,16}){1,4}[A-Za-z0-9+/=]{1,23}(?:\s|\\[rn]|["',+]){0,16}\z)"#,
    )),
    token("age-secret-key", "age secret key", &["AGE-SECRET-KEY-1"], "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    token("age-plugin-secret-key", "age post-quantum secret key", &["AGE-SECRET-KEY-PQ-1"], "[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58,}"),
    token("jwt", "JSON Web Token", &["eyJhbGci", "eyJ0eXAi", "eyJraWQi", "eyJlbmMi", "eyJjdHki", "eyJ6aXAi", "eyJ4NX", "eyJqa3Ui"], r"[\w-]{4,512}\.[\w-]{8,}(?:\.[\w-]{0,1024}){0,3}"),
    shape("url-password", "Password in a URL", &["://"], r#"[^\s:/?#@\[\]"'<>`]*:([^\s:/?#@\[\]"'<>`$*{}][^\s/?#@\[\]"'<>`]{2,})@(?:\b{start-half}|\[)"#),
    shape("quoted-password", "Quoted password", PASSWORD,
        assigned!(r#"\\?["'`]([^\s"'`\\\[\]<>$*{}%][^\s"'`\\\[\]<>]{5,})["'`\\]"#)).check(Check::Password),
    shape("plain-password", "Password", PASSWORD,
        assigned!(r#"([^\s"'`\\\[\]<>$*{}%:,;&(|)/.][^\s"'`\\\[\]<>$*{}:,;&(|)]{5,})(?:[\s"'`\\<>,;&|)}]|\z)"#)).check(Check::Mixed(2.0)),
    named("bearer-token", "Bearer token", &["^bearer$"], r"[\w.~+/-]{16,}={0,2}").check(Check::Mixed(3.0)),
    named("basic-credentials", "Basic authentication credentials", &["^basic$"], "[A-Za-z0-9+/]{16,}={0,2}").check(Check::Mixed(3.0)),
    named("authorization-header", "Authorization header", &["authorization", "xapikey", "xauthtoken", "privatetoken"], r"[\w.~+/-]{16,}={0,2}").check(Check::Mixed(3.0)),
    named("generic-api-key", "API key or secret by its name", &[
        "apikey", "apitoken", "apisecret", "appsecret", "clientsecret", "consumersecret", "secretkey", "secrettoken", "sharedsecret", "webhooksecret",
        "signingsecret", "signingkey", "jwtsecret", "sessionsecret", "cookiesecret", "encryptionkey", "masterkey", "privatekey", "accesskey", "accesstoken",
        "authtoken", "refreshtoken", "bottoken", "deploytoken", "servicetoken", "bearertoken", "authkey", "password", "passwd", "passphrase", "credential",
        "^token$", "^secret$",
    ], r"[A-Za-z0-9_~+-][\w.~+/-]{15,}={0,2}").check(Check::Mixed(3.2)),
];
