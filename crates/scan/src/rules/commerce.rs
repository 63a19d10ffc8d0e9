//! Payments, shops, banking, chains.

use crate::rule::{Check, Rule, named, shape, token};

#[rustfmt::skip] // one row, one line
pub(super) const RULES: &[Rule] = &[
    token("stripe-secret-key", "Stripe secret key", &["sk_live_", "sk_test_"], "[A-Za-z0-9]{24,}"),
    token("stripe-restricted-key", "Stripe restricted key", &["rk_live_", "rk_test_"], "[A-Za-z0-9]{24,}"),
    token("stripe-webhook-secret", "Stripe webhook signing secret", &["whsec_"], "[A-Za-z0-9+/]{32,}={0,2}"),
    token("shopify-access-token", "Shopify access token", &["shpat_", "shpca_", "shppa_", "shptka_", "shpua_"], "[0-9a-fA-F]{32}"),
    token("shopify-shared-secret", "Shopify shared secret", &["shpss_"], "[0-9a-fA-F]{32}"),
    token("square-access-token", "Square access token", &["EAAA", "sq0atp-"], r"[\w-]{22,}"),
    token("square-client-secret", "Square OAuth secret", &["sq0csp-", "sandbox-sq0csb-"], r"[\w-]{43}"),
    shape("braintree-access-token", "PayPal Braintree access token", &["access_token$"], r"(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}\b{end-half}"),
    named("paypal-client-secret", "PayPal client secret", &["paypal"], r"E[\w-]{79}"),
    token("plaid-access-token", "Plaid access token", &["access-"], "(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    named("plaid-secret", "Plaid secret", &["plaid"], "[0-9a-f]{30}"),
    token("adyen-api-key", "Adyen API key", &["AQE"], r"[A-Za-z0-9+/]{60,}={0,2}[A-Za-z0-9+/=-]*"),
    token("razorpay-key", "Razorpay key", &["rzp_live_", "rzp_test_"], "[A-Za-z0-9]{14}"),
    token("flutterwave-secret-key", "Flutterwave secret key", &["FLWSECK-", "FLWSECK_TEST-"], "[0-9a-zA-Z]{12,32}-X"),
    token("easypost-api-key", "EasyPost API key", &["EZAK", "EZTK"], "[A-Za-z0-9]{54}"),
    token("shippo-token", "Shippo token", &["shippo_live_", "shippo_test_"], "[0-9a-f]{40}"),
    token("lob-api-key", "Lob API key", &["live_", "test_"], "[0-9a-f]{35}"),
    token("gocardless-token", "GoCardless access token", &["live_", "sandbox_"], r"[\w-]{40}").check(Check::Mixed(3.0)),
    token("mollie-api-key", "Mollie API key", &["live_", "test_"], "[A-Za-z0-9]{30}"),
    token("paddle-api-key", "Paddle API key", &["pdl_live_apikey_", "pdl_sdbx_apikey_"], r"\w{40,}"),
    token("duffel-token", "Duffel token", &["duffel_live_", "duffel_test_"], r"[\w-]{43}"),
    token("sumup-key", "SumUp secret key", &["sup_sk_"], "[A-Za-z0-9]{20,}"),
    token("woocommerce-key", "WooCommerce consumer key or secret", &["ck_", "cs_"], "[0-9a-f]{40}"),
    named("coinbase-secret", "Coinbase API secret", &["coinbase"], r"[\w+/-]{32,}={0,2}"),
    named("binance-secret", "Binance API key or secret", &["binance"], "[A-Za-z0-9]{64}"),
    named("kraken-secret", "Kraken API key or secret", &["kraken"], "[A-Za-z0-9+/]{54,}={0,2}"),
    named("etsy-api-key", "Etsy API key", &["etsy"], "[a-z0-9]{24}"),
    named("ethereum-private-key", "Ethereum private key", &["ethereumprivate", "ethprivate", "walletprivate", "^privatekey$", "deployerkey", "deployerprivate"], "(?:0x)?[0-9a-fA-F]{64}"),
    token("alchemy-token", "Alchemy token", &["alcht_"], "[A-Za-z0-9]{30}"),
    named("infura-secret", "Infura key", &["infura"], "[0-9a-f]{32}"),
    named("etherscan-api-key", "Etherscan API key", &["etherscan"], "[A-Z0-9]{34}"),
];
