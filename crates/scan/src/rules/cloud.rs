//! Clouds, hosting, infrastructure.

use crate::rule::{Rule, named, shape, token};

const fn alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

const fn base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

const fn entra(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'~' || byte == b'.'
}

const UUID: &str = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";

#[rustfmt::skip] // one row, one line
pub(super) const RULES: &[Rule] = &[
    token("aws-access-key-id", "AWS access key id", &["AKIA", "ASIA", "ABIA", "ACCA"], "[A-Z0-9]{16}"),
    named("aws-secret-access-key", "AWS secret access key", &["secretaccesskey", "awssecret", "secretkey", "amazonsecret"], "[A-Za-z0-9/+]{40}"),
    named("aws-session-token", "AWS session token", &["sessiontoken", "securitytoken"], "[A-Za-z0-9/+]{100,}={0,2}"),
    token("aws-bedrock-api-key", "Amazon Bedrock long-term API key", &["ABSK"], "[A-Za-z0-9+/]{109,}={0,2}"),
    token("aws-bedrock-short-term-key", "Amazon Bedrock short-term API key", &["bedrock-api-key-"], "[A-Za-z0-9+/]{80,}={0,2}"),
    token("aws-appsync-api-key", "AWS AppSync API key", &["da2-"], "[a-z0-9]{26}"),
    token("aws-mws-auth-token", "Amazon MWS auth token", &["amzn.mws."], UUID),
    token("amazon-oauth-client-secret", "Login with Amazon client secret", &["amzn1.oa2-cs.v1."], "[0-9a-f]{64}"),
    token("gcp-api-key", "Google API key", &["AIza"], r"[\w-]{35}"),
    token("google-oauth-client-secret", "Google OAuth client secret", &["GOCSPX-"], r"[\w-]{28}"),
    token("google-oauth-access-token", "Google OAuth access token", &["ya29."], r"[\w.-]{20,}"),
    token("google-oauth-refresh-token", "Google OAuth refresh token", &["1//0"], r"[\w-]{40,}"),
    named("gcp-private-key-id", "Google service account key id", &["^privatekeyid$"], "[0-9a-f]{40}"),
    named("google-recaptcha-secret", "Google reCAPTCHA secret", &["captcha"], r"6L[\w-]{38}"),
    named("firebase-server-key", "Firebase Cloud Messaging server key", &["fcm", "firebase", "serverkey"], r"AAAA[\w-]{12,}(?::[\w-]{100,})?"),
    named("azure-storage-account-key", "Azure storage account key", &["accountkey", "storagekey", "storageaccesskey"], "[A-Za-z0-9+/]{86}=="),
    token("azure-storage-identifiable-key", "Azure storage, Cosmos DB or Batch key", &["APIM", "ACDb", "+ABa", "+AMC", "+ASt"], "[A-Za-z0-9+/]{5}[AQgw]==").after(base64, 76, 76),
    token("azure-messaging-key", "Azure Service Bus, Event Hubs, IoT or Relay key", &["AIoT", "+ASb", "+AEh", "+ARm"], "[A-P][A-Za-z0-9+/]{5}=").after(base64, 33, 33),
    token("azure-search-key", "Azure AI Search key", &["AzSe"], "[A-D][A-Za-z0-9]{5}").after(alnum, 42, 42),
    token("azure-functions-key", "Azure Functions key", &["AzFu"], r"[\w-]{5}[AQgw]==").after(|byte| alnum(byte) || byte == b'_' || byte == b'-', 44, 44),
    token("azure-cache-key", "Azure Cache for Redis key", &["AzCa"], "[A-P][A-Za-z0-9]{5}=").after(alnum, 33, 33),
    token("azure-container-registry-key", "Azure Container Registry key", &["+ACR"], "[A-D][A-Za-z0-9+/]{5}").after(base64, 42, 42),
    token("azure-devops-pat", "Azure DevOps personal access token", &["AZDO"], "[A-Za-z0-9]{4}").after(alnum, 76, 76),
    token("azure-entra-client-secret", "Microsoft Entra ID client secret", &["Q~"], r"[\w~.-]{31,34}").after(entra, 4, 4),
    shape("azure-sas-signature", "Azure shared access signature", &["sig="], "((?:[A-Za-z0-9/+]|%2[BbFf]){43}(?:%3[Dd]|=))"),
    named("azure-openai-key", "Azure OpenAI key", &["azureopenai", "cognitiveservices", "ocpapimsubscription"], "[0-9a-zA-Z]{32}(?:[0-9a-zA-Z]{52})?"),
    token("digitalocean-access-token", "DigitalOcean token", &["dop_v1_", "doo_v1_", "dor_v1_"], "[0-9a-f]{64}"),
    token("digitalocean-spaces-key", "DigitalOcean Spaces key", &["DO00"], "[A-Z0-9]{16}"),
    token("heroku-api-key", "Heroku API key", &["HRKU-AA"], r"[\w-]{58}"),
    named("heroku-legacy-api-key", "Heroku API key, older form", &["heroku"], UUID),
    token("cloudflare-origin-ca-key", "Cloudflare origin CA key", &["v1.0-"], "[0-9a-f]{24}-[0-9a-f]{146}"),
    token("cloudflare-scannable-token", "Cloudflare token", &["cfut_", "cfat_", "cfk_"], "[A-Za-z0-9]{40,}"),
    named("cloudflare-api-token", "Cloudflare API token", &["cloudflare", "cfapi"], r"[\w-]{40}"),
    named("cloudflare-global-api-key", "Cloudflare global API key", &["cloudflare", "cfapi"], "[0-9a-f]{37}"),
    token("vercel-token", "Vercel token", &["vcp_", "vci_", "vca_", "vcr_", "vck_"], "[A-Za-z0-9]{24,}"),
    named("vercel-legacy-token", "Vercel token, older form", &["vercel"], "[A-Za-z0-9]{24}"),
    token("netlify-token", "Netlify token", &["nfp_", "nfc_", "nfo_", "nfu_", "nfb_"], "[A-Za-z0-9]{36}"),
    token("fly-access-token", "Fly.io access token", &["fm2_", "fm1r_", "fm1a_"], "[A-Za-z0-9+/]{100,}={0,3}"),
    token("fly-legacy-token", "Fly.io access token, older form", &["fo1_"], r"[\w-]{43}"),
    token("supabase-access-token", "Supabase access token", &["sbp_"], "(?:v0_|oauth_)?[0-9a-f]{40}"),
    token("supabase-secret-key", "Supabase secret key", &["sb_secret_"], r"[\w-]{20,}"),
    token("planetscale-token", "PlanetScale token or password", &["pscale_tkn_", "pscale_oauth_", "pscale_pw_"], r"[\w.-]{32,64}"),
    token("neon-api-key", "Neon API key", &["napi_"], "[a-z0-9]{40,}"),
    token("neon-password", "Neon database password", &["npg_"], "[A-Za-z0-9]{12,}"),
    token("mongodb-service-account-secret", "MongoDB Atlas service account secret", &["mdb_sa_sk_"], r"[\w-]{40}"),
    token("clickhouse-cloud-key", "ClickHouse Cloud key secret", &["4b1d"], "[A-Za-z0-9]{38}"),
    named("confluent-secret", "Confluent Cloud API secret", &["confluent"], "[A-Za-z0-9+/]{64}"),
    named("upstash-token", "Upstash REST token", &["upstash"], r"[A-Za-z0-9+/_-]{40,}={0,2}"),
    token("vault-token", "HashiCorp Vault token", &["hvs.", "hvb.", "hvr."], r"[\w-]{24,}"),
    named("vault-legacy-token", "HashiCorp Vault token, older form", &["vault"], r"s\.[A-Za-z0-9]{24}"),
    token("terraform-cloud-token", "Terraform Cloud token", &[".atlasv1."], r"[\w-]{60,70}").after(alnum, 14, 14),
    token("pulumi-access-token", "Pulumi access token", &["pul-"], "[0-9a-f]{40}"),
    token("doppler-token", "Doppler token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], r"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    token("infisical-token", "Infisical service token", &["st."], r"[0-9a-f]{24}\.[0-9a-f]{32}\.[0-9a-f]{32}"),
    token("alibaba-access-key-id", "Alibaba Cloud access key id", &["LTAI"], "[A-Za-z0-9]{12,20}"),
    named("alibaba-secret-key", "Alibaba Cloud access key secret", &["alibaba", "aliyun", "alicloud"], "[A-Za-z0-9]{30}"),
    token("tencent-secret-id", "Tencent Cloud secret id", &["AKID"], "[A-Za-z0-9]{32}"),
    token("yandex-api-key", "Yandex Cloud API key", &["AQVN"], r"[\w-]{35,38}"),
    token("yandex-iam-token", "Yandex Cloud IAM token", &["t1."], r"[\w-]{20,}\.[\w-]{86}"),
    named("ibm-cloud-api-key", "IBM Cloud API key", &["ibm", "bluemix"], r"[\w-]{44}"),
    token("scaleway-access-key", "Scaleway access key", &["SCW"], "[A-Z0-9]{17}"),
    named("scaleway-secret-key", "Scaleway secret key", &["scw", "scaleway"], UUID),
    named("linode-token", "Linode token", &["linode"], "[0-9a-f]{64}"),
    named("vultr-api-key", "Vultr API key", &["vultr"], "[A-Z0-9]{36}"),
    named("hetzner-api-token", "Hetzner Cloud API token", &["hcloud", "hetzner"], "[A-Za-z0-9]{64}"),
    token("render-api-key", "Render API key", &["rnd_"], "[A-Za-z0-9]{28,32}"),
    named("railway-token", "Railway token", &["railway"], UUID),
    token("tailscale-key", "Tailscale key", &["tskey-"], r"(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    named("ngrok-authtoken", "ngrok authtoken", &["ngrok"], r"[A-Za-z0-9]{27}_[A-Za-z0-9]{18,21}"),
    token("openshift-token", "OpenShift user token", &["sha256~"], r"[\w-]{43}"),
    token("databricks-token", "Databricks token", &["dapi", "dkea", "dose"], "[0-9a-f]{32}(?:-[0-9])?"),
    token("infracost-api-key", "Infracost API key", &["ico-"], "[A-Za-z0-9]{32}"),
    token("harness-api-key", "Harness API key", &["pat.", "sat."], r"[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}"),
    token("octopus-deploy-api-key", "Octopus Deploy API key", &["API-"], "[A-Z0-9]{25,26}"),
    token("akamai-token", "Akamai EdgeGrid token", &["akab-"], "[a-z0-9]{16}-[a-z0-9]{16}"),
    named("fastly-api-token", "Fastly API token", &["fastly"], r"[\w-]{32}"),
    token("backblaze-application-key", "Backblaze B2 application key", &["K00"], "[0-9][A-Za-z0-9+/]{27}"),
    token("prefect-api-key", "Prefect API key", &["pnu_", "pnb_"], "[A-Za-z0-9]{36}"),
    token("elastic-api-key", "Elastic Cloud API key", &["essu_"], "[A-Za-z0-9+/]{60,}={0,2}"),
    token("dynatrace-token", "Dynatrace token", &["dt0c01.", "dt0s01.", "dt0s16."], r"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    token("onepassword-service-account", "1Password service account token", &["ops_eyJ"], r"[\w-]{100,}"),
    token("onepassword-secret-key", "1Password secret key", &["A3-"], "[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
];
