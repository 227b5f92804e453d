//! Credentials of logons against published and independently computed values.

use tickpath_fix::{
    LogonHeader, LogonRecipe, LogonRecipeError, LogonSecret, LogonSigner, MessageWriter, SignatureAlgorithm,
    SignedLogon, TimePrecision, tags,
};

/// 2026-11-30 09:00:00.123 UTC.
const AT_NS: u64 = 1_796_029_200_123_000_000;
/// An HMAC key: `a secret of the exchange` in base64.
const API_SECRET: &str = "YSBzZWNyZXQgb2YgdGhlIGV4Y2hhbmdl";
/// Key that Binance publishes with its example of a signature (`fix-api.md`). It belongs to no account.
const BINANCE_PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n\
    -----END PRIVATE KEY-----\n";
/// Key made for this test with `openssl genpkey -algorithm RSA`.
const RSA_PRIVATE_KEY: &str = include_str!("logon_recipe_rsa.pem");
/// Signature of `openssl dgst -sha256 -sign` over the values of [`rsa_logon`].
const RSA_SIGNATURE: &str = "\
    Jz47LvRDB8HiCeLJcR2pDj6J6I3bE3SmEVtmhn32VWaNS0OFRlqlMGVAZTV4/V0JJ2ZVz6kBVU85DwMeLMwrv2bJCe+Y9Ba2X0y6\
    uZFZ9k6UBRM4FsQJ3cxU7+Qo9a2tN54jVrkf5gc6D/0OVBeA2/lAMHQm2ZThLv2fttnk1ptHzH+APDlP8ZfT99yga0F3rvTqS8fU\
    vxNhWTwGXPfUCI3j3asX81JqST18odyl4BkrMWHHTI1jmlzIjHsxSLxUkovcgAmLz3yeBhVdmekIax8zc5HbDVdZPAlDjEFK/DXt\
    r7SEVQqMjvTiKjEVnGL2ruecegMvKSjmAYia2fjZew==";

fn header<'a>(sender: &'a str, target: &'a str) -> LogonHeader<'a> {
    LogonHeader { sender, target, number: 1, sending_time_ns: AT_NS, precision: TimePrecision::Millis }
}

/// Returns the fields that a signer writes, with `|` for SOH.
fn fields(signer: &mut LogonSigner, header: &LogonHeader<'_>) -> String {
    let mut writer = MessageWriter::new("FIX.4.4");
    writer.begin(b"A");
    signer.write(header, &mut writer);
    let message = String::from_utf8(writer.finish().to_vec()).unwrap().replace('\u{1}', "|");
    let (_, body) = message.split_once("|35=A|").unwrap();
    let (body, _) = body.rsplit_once("10=").unwrap();
    body.to_owned()
}

#[track_caller]
fn check(recipe: LogonRecipe, header: LogonHeader<'_>, expected: &str) {
    let mut signer = LogonSigner::new(recipe).unwrap();
    assert_eq!(fields(&mut signer, &header), expected);
}

#[test]
fn plain_logons_and_passwords() {
    check(LogonRecipe::Plain, header("FIRM", "VENUE"), "");
    let recipe = LogonRecipe::Password { username: "trader".to_owned(), password: "open sesame".into() };
    check(recipe, header("FIRM", "VENUE"), "553=trader|554=open sesame|");
}

#[test]
fn binance_publishes_this_logon() {
    let api_key = "sBRXrJx2DsOraMXOaUovEhgVRcjOvCtQwnWj8VxkOh1xqboS02SPGfKi2h8spZJb";
    let mut signer = LogonSigner::new(LogonRecipe::binance(api_key, BINANCE_PRIVATE_KEY.into())).unwrap();
    let sending_time_ns = 1_719_487_045_223_000_000;
    let (sender, target, precision) = ("EXAMPLE", "SPOT", TimePrecision::Millis);
    let header = LogonHeader { sender, target, number: 1, sending_time_ns, precision };

    let signature = "4MHXelVVcpkdwuLbl6n73HQUXUf1dse2PCgT1DYqW9w8AVZ1RACFGM+5UdlGPrQHrgtS3CvsRURC1oj73j8gCA==";
    assert_eq!(fields(&mut signer, &header), format!("95=88|96={signature}|553={api_key}|"));

    let mut writer = MessageWriter::new("FIX.4.4");
    writer.begin(b"A");
    writer.unsigned(tags::MSG_SEQ_NUM, header.number);
    writer.text(tags::SENDER_COMP_ID, sender);
    writer.time(tags::SENDING_TIME, sending_time_ns, precision);
    writer.text(tags::TARGET_COMP_ID, target);
    signer.write(&header, &mut writer);
    writer.raw(b"98=0\x01108=30\x01141=Y\x0125035=2\x01");
    let logon = String::from_utf8(writer.finish().to_vec()).unwrap();
    // The order of the fields differs from the published one, and length and sum do not depend on it.
    assert!(logon.starts_with("8=FIX.4.4\u{1}9=247\u{1}35=A\u{1}"), "{logon}");
    assert!(logon.ends_with("\u{1}10=227\u{1}"), "{logon}");
}

#[test]
fn coinbase_signs_header_and_passphrase() {
    let recipe = LogonRecipe::coinbase("api-key", API_SECRET.into(), "pass phrase".into());
    let expected = "95=44|96=l9+pzxswEEBXYRF8V9HMlw2b97reGR0Dj6Owt8kxfWo=|553=api-key|554=pass phrase|";
    check(recipe, header("api-key", "Coinbase"), expected);
}

#[test]
fn coinbase_international_signs_into_text() {
    let recipe = LogonRecipe::coinbase_international("api-key", API_SECRET.into(), "pass phrase".into());
    let expected = "58=YNw4KjtSyDDGakdzf399tveNhmgxPy66CxlQVFG+nPw=|553=api-key|554=pass phrase|";
    check(recipe, header("FIRM", "CBINTLOE"), expected);
}

#[test]
fn deribit_hashes_a_nonce_and_the_secret() {
    let recipe = LogonRecipe::Deribit { client_id: "client".to_owned(), client_secret: "client secret".into() };
    let raw_data = "1796029200123.zgowvLKSRRuq/yPtmhrZJtz0gppzW6O5LmywPzYuewU=";
    let password = "37lOx9yVRd8t5qSTY0Vh5JjJDU+9kOV4wrn3ZsxsPoQ=";
    check(recipe, header("FIRM", "DERIBITSERVER"), &format!("95=58|96={raw_data}|553=client|554={password}|"));
}

#[test]
fn kraken_signs_the_header_and_a_nonce() {
    let recipe = LogonRecipe::Kraken { api_key: "api-key".to_owned(), api_secret: API_SECRET.into() };
    let password = "9Novba9gNVqjMN3JS/TxcLnITrvVuVoXy5lIYXls5mZ25MUxi7OGnIZSN5j5yZ3O0xsZh9AK6ZbfV1ePMAlPbQ==";
    check(recipe, header("FIRM", "KRAKEN-TRD"), &format!("553=api-key|554={password}|5025=1796029200123|"));
}

#[test]
fn nonces_increase_from_logon_to_logon() {
    let recipe = LogonRecipe::Kraken { api_key: "api-key".to_owned(), api_secret: API_SECRET.into() };
    let mut signer = LogonSigner::new(recipe).unwrap();
    let nonces = [AT_NS, AT_NS + 1, AT_NS - 5_000_000_000].map(|sending_time_ns| {
        let header = LogonHeader { sending_time_ns, ..header("FIRM", "KRAKEN-TRD") };
        fields(&mut signer, &header).split_once("5025=").unwrap().1.to_owned()
    });
    assert_eq!(nonces, ["1796029200123|", "1796029200124|", "1796029200125|"]);
}

#[test]
fn twse_multiplies_a_number_and_the_password() {
    let mut signer = LogonSigner::new(LogonRecipe::Twse { password: 4_321 }).unwrap();
    // The time is 27 seconds into a cycle of 999; 28 × 4321 = 120,988.
    let header = header("T116801", "XTAI");
    assert_eq!(fields(&mut signer, &header), "95=5|96=02809|");
    // 29 × 4321 = 125,309.
    assert_eq!(fields(&mut signer, &header), "95=5|96=02953|");
    let mut signer = LogonSigner::new(LogonRecipe::Twse { password: 0 }).unwrap();
    assert_eq!(fields(&mut signer, &header), "95=5|96=02800|");
}

/// A recipe of no venue: RSA over 35, 49, 56, 34 and 52.
fn rsa_logon() -> SignedLogon {
    let LogonRecipe::Signed(logon) = LogonRecipe::binance("api-key", RSA_PRIVATE_KEY.into()) else { unreachable!() };
    SignedLogon { algorithm: SignatureAlgorithm::RsaSha256, username: None, ..logon }
}

#[test]
fn an_rsa_signature_is_the_one_of_openssl() {
    let header = LogonHeader { number: 7, ..header("FIRM", "VENUE") };
    check(LogonRecipe::Signed(rsa_logon()), header, &format!("95=344|96={RSA_SIGNATURE}|"));
}

#[test]
fn a_recipe_with_a_mistake_is_refused_with_a_remedy() {
    let secret = |text: &str| LogonSecret::from(text);
    let signed = |change: &dyn Fn(&mut SignedLogon)| {
        let mut logon = rsa_logon();
        change(&mut logon);
        LogonRecipe::Signed(logon)
    };
    let password = |username: &str, password: &str| LogonRecipe::Password {
        username: username.to_owned(),
        password: secret(password),
    };
    let cases = [
        (password("", "x"), LogonRecipeError::Text("username")),
        (password("trader", ""), LogonRecipeError::Text("password")),
        (password("trader", "a\u{1}141=N"), LogonRecipeError::Text("password")),
        (LogonRecipe::binance("api-key", secret("no key")), LogonRecipeError::PrivateKey("Ed25519")),
        (LogonRecipe::binance("api-key", secret(RSA_PRIVATE_KEY)), LogonRecipeError::PrivateKey("Ed25519")),
        (signed(&|logon| logon.key = secret(BINANCE_PRIVATE_KEY)), LogonRecipeError::PrivateKey("RSA")),
        (signed(&|logon| logon.signed_tags.push(tags::HEART_BT_INT)), LogonRecipeError::SignedTag(108)),
        (signed(&|logon| logon.signed_tags.push(tags::PASSWORD)), LogonRecipeError::SignedTag(554)),
        (LogonRecipe::coinbase("api-key", secret("not base64!"), secret("x")), LogonRecipeError::HmacKey),
        (LogonRecipe::coinbase("api-key", secret(""), secret("x")), LogonRecipeError::HmacKey),
        (LogonRecipe::Twse { password: 10_000 }, LogonRecipeError::TwsePassword),
    ];
    for (recipe, expected) in cases {
        assert_eq!(LogonSigner::new(recipe).err(), Some(expected));
    }
}

#[test]
fn debug_texts_show_no_secret() {
    let recipe = LogonRecipe::coinbase("api-key", API_SECRET.into(), "pass phrase".into());
    let LogonRecipe::Signed(logon) = &recipe else { unreachable!() };
    let texts = [format!("{recipe:?}"), format!("{logon:?}"), format!("{:?}", logon.key)];
    let signer = format!("{:?}", LogonSigner::new(recipe.clone()).unwrap());
    for text in texts.iter().chain([&signer]) {
        assert!(!text.contains(API_SECRET) && !text.contains("api-key") && !text.contains("pass"), "{text}");
    }
}
