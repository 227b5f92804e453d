//! Logon: the right password is accepted, every other is refused, and a false OMS is detected.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use tickpath_oms_protocol::{Binding, ClientLogon, Decoys, ScramError, Secret, SecretError, ServerLogon};

static ANNA: LazyLock<Secret> = LazyLock::new(|| Secret::from_password("correct horse"));

/// Runs a whole logon against a secret and returns the results of both sides.
fn log_on(user: &str, password: &str, secret: &Secret) -> (Result<(), ScramError>, Result<(), ScramError>) {
    let (mut client, first) = ClientLogon::new(user, password, None).unwrap();
    let (server, challenge) = ServerLogon::begin(&first, None, |_| secret.clone()).unwrap();
    assert_eq!(server.user(), user);
    let proof = client.answer(&challenge).unwrap();
    match server.verify(&proof) {
        Ok(server_final) => (Ok(()), client.check(&server_final)),
        Err(e) => (Err(e), Err(e)),
    }
}

#[test]
fn only_the_right_password_logs_in() {
    for user in ["anna", "anna.b@desk-1", "安娜"] {
        assert_eq!(log_on(user, "correct horse", &ANNA), (Ok(()), Ok(())));
        assert_eq!(log_on(user, "correct horse ", &ANNA).0, Err(ScramError::Proof));
        assert_eq!(log_on(user, "", &ANNA).0, Err(ScramError::Proof));
    }
}

#[test]
fn any_password_makes_a_valid_secret() {
    for password in ["", "a,b=c", "p\u{e4}ssw\u{f6}rd", &"long ".repeat(100)] {
        let secret = Secret::from_password(password);
        assert_ne!(secret, Secret::from_password(password), "each has a salt of its own");
        assert_eq!(secret.to_string().parse(), Ok(secret.clone()));
        assert_eq!(log_on("anna", password, &secret), (Ok(()), Ok(())));
    }
}

#[test]
fn a_proof_is_bound_to_its_connection() {
    let logon = |of_client: Option<&Binding>, of_server: Option<&Binding>| {
        let (mut client, first) = ClientLogon::new("anna", "correct horse", of_client).unwrap();
        let (server, challenge) = ServerLogon::begin(&first, of_server, |_| ANNA.clone())?;
        let server_final = server.verify(&client.answer(&challenge)?)?;
        client.check(&server_final)
    };
    let [one, other] = [[1; 32], [2; 32]];
    assert_eq!(logon(Some(&one), Some(&one)), Ok(()));
    for (of_client, of_server) in [(Some(&one), Some(&other)), (Some(&one), None), (None, Some(&one))] {
        assert_eq!(logon(of_client, of_server), Err(ScramError::Message));
    }
}

#[test]
fn unknown_users_look_like_known_users() {
    let challenge = |secret: Secret| {
        let (_, first) = ClientLogon::new("nobody", "x", None).unwrap();
        let (_, challenge) = ServerLogon::begin(&first, None, |_| secret).unwrap();
        let challenge = String::from_utf8(challenge).unwrap();
        let (_, parameters) = challenge.split_once(',').unwrap();
        parameters.to_owned()
    };
    let decoy = |key: &[u8], user: &str| Secret::decoy(key, user);
    assert_eq!(challenge(decoy(b"key", "nobody")), challenge(decoy(b"key", "nobody")));
    assert_ne!(decoy(b"key", "nobody"), decoy(b"key", "nobody2"));
    assert_ne!(decoy(b"key", "nobody"), decoy(b"another", "nobody"));
    let (parameters, of_a_user) = (challenge(decoy(b"key", "nobody")), challenge(ANNA.clone()));
    let form = |parameters: &str| {
        (parameters.len(), parameters.split_once(",i=").map(|(_, iterations)| iterations.to_owned()))
    };
    assert_eq!(form(&parameters), form(&of_a_user));
    assert_eq!(log_on("nobody", "x", &decoy(b"key", "nobody")).0, Err(ScramError::Proof));
}

/// Returns a secret as another server makes it, of this form: iterations and characters of the salt.
fn imported(iterations: u32, salt: &str) -> Secret {
    let own = ANNA.to_string();
    let keys = own.rsplit_once('$').expect("it has keys").1;
    format!("SCRAM-SHA-256${iterations}:{salt}${keys}").parse().expect("it is sound")
}

fn form(secret: &Secret) -> (String, usize) {
    let text = secret.to_string();
    let mut parts = text.split(['$', ':']).skip(1);
    let iterations = parts.next().expect("iterations").to_owned();
    (iterations, parts.next().expect("a salt").len())
}

#[test]
fn decoys_have_the_forms_of_real_secrets_in_proportion() {
    let mut secrets = vec![imported(4096, &"abcd".repeat(8)); 3];
    secrets.push(ANNA.clone());
    let mut decoys = Decoys::new(&secrets);
    let names: Vec<String> = (0..400).map(|nth| format!("nobody{nth}")).collect();
    let all = |decoys: &Decoys| names.iter().map(|name| decoys.of(name)).collect::<Vec<_>>();
    let before = all(&decoys);
    let of_three = before.iter().filter(|decoy| form(decoy) == ("4096".to_owned(), 32)).count();
    let of_one = before.iter().filter(|decoy| form(decoy) == form(&ANNA)).count();
    assert_eq!(of_three + of_one, names.len());
    assert!((230..=370).contains(&of_three), "{of_three} of 400 have the form of three in four");
    assert_eq!(log_on("nobody1", "x", &before[1]).0, Err(ScramError::Proof));

    // A new form applies to some names, and leaves the others unchanged.
    decoys.update(&secrets);
    assert!(all(&decoys) == before);
    let new = imported(20_000, "abcd");
    decoys.update(secrets.iter().chain([&new]));
    let after = all(&decoys);
    let changed: Vec<&Secret> = before.iter().zip(&after).filter(|(old, new)| old != new).map(|(_, new)| new).collect();
    assert!((20..=160).contains(&changed.len()), "{} of 400 have the form of one in five", changed.len());
    assert!(changed.iter().all(|changed| form(changed) == form(&new)));
    // Another server draws other decoys; without users they have the form of `Secret::from_password`.
    assert!(all(&Decoys::new(&secrets)) != before);
    assert_eq!(form(&Decoys::new(&[]).of("nobody")), form(&ANNA));
}

#[test]
fn a_proof_is_valid_only_for_its_logon() {
    let (mut client, first) = ClientLogon::new("anna", "correct horse", None).unwrap();
    let (server, challenge) = ServerLogon::begin(&first, None, |_| ANNA.clone()).unwrap();
    let proof = client.answer(&challenge).unwrap();
    assert!(client.answer(&challenge).is_err(), "one challenge, one answer");
    let (again, _) = ServerLogon::begin(&first, None, |_| ANNA.clone()).unwrap();
    assert_eq!(again.verify(&proof).unwrap_err(), ScramError::Proof);
    assert!(server.verify(&proof).is_ok());
}

#[test]
fn a_proof_does_not_admit_another_user() {
    let (mut client, first) = ClientLogon::new("anna", "correct horse", None).unwrap();
    let other = String::from_utf8(first).unwrap().replace("n=anna", "n=root");
    let (server, challenge) = ServerLogon::begin(other.as_bytes(), None, |_| ANNA.clone()).unwrap();
    assert_eq!(server.verify(&client.answer(&challenge).unwrap()), Err(ScramError::Proof));
}

#[test]
fn a_server_without_the_secret_is_refused() {
    let (mut client, first) = ClientLogon::new("anna", "correct horse", None).unwrap();
    let (_, challenge) = ServerLogon::begin(&first, None, |_| ANNA.clone()).unwrap();
    client.answer(&challenge).unwrap();
    let made_up = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    assert_eq!(client.check(made_up), Err(ScramError::Server));

    let (client, _) = ClientLogon::new("anna", "correct horse", None).unwrap();
    assert_eq!(client.check(made_up), Err(ScramError::Message), "it has not answered yet");
}

#[test]
fn only_a_challenge_within_bounds_is_answered() {
    let asked = |nonce: &str, iterations: &str| {
        let (mut client, first) = ClientLogon::new("anna", "x", None).unwrap();
        let first = String::from_utf8(first).unwrap();
        let (_, ours) = first.split_once(",r=").unwrap();
        client.answer(format!("r={},s=c2FsdA==,i={iterations}", nonce.replace("OURS", ours)).as_bytes())
    };
    assert!(asked("OURSmore", "4096").is_ok());
    for iterations in [0, 1, 4095, 1_000_001, u32::MAX] {
        assert_eq!(asked("OURSmore", &iterations.to_string()), Err(ScramError::Iterations(iterations)));
    }
    for iterations in ["", "-1", "99999999999", "4096,m=x", "4096,x=y"] {
        assert_eq!(asked("OURSmore", iterations), Err(ScramError::Message), "{iterations}");
    }
    for nonce in ["OURS", "other", ""] {
        assert_eq!(asked(nonce, "4096"), Err(ScramError::Message), "{nonce}");
    }
}

#[test]
fn invalid_user_names_are_refused() {
    for user in ["", "a,b", "a=b", "a\0", "a\n", &"a".repeat(65)] {
        assert_eq!(ClientLogon::new(user, "x", None).unwrap_err(), ScramError::User, "{user:?}");
        let first = format!("n,,n={user},r=abc");
        assert_eq!(begin(first.as_bytes()).unwrap_err(), ScramError::Message, "{user:?}");
    }
}

#[test]
fn messages_of_another_form_are_refused() {
    for first in [
        "",
        ",",
        ",,",
        ",,,",
        "n",
        "n,,n",
        "n,,n,r",
        "n,a,n=anna,r=abc",
        "n,a=root,n=anna,r=abc",
        "y,,n=anna,r=abc",
        "p=tls-unique,,n=anna,r=abc",
        "n,,n=anna,r=",
        "n,,n=anna,r=a b",
        "n,,n=anna,r=abc,x=y",
        "n,,m=x,n=anna,r=abc",
        "n,,r=abc,n=anna",
        "nn,,n=anna,r=abc",
    ] {
        assert_eq!(begin(first.as_bytes()).unwrap_err(), ScramError::Message, "{first}");
    }
    for proof in ["", "c", "c=biws,r,p", "c=biws,r=abc,p=", "c=biws,r=abc", "c=eSws,r=abc,p=x", "c=biws,r=abc,x=y,p=z"]
    {
        let (server, _) = begin(b"n,,n=anna,r=abc").unwrap();
        assert_eq!(server.verify(proof.as_bytes()), Err(ScramError::Message), "{proof}");
    }
}

#[test]
fn keys_and_passwords_are_not_printed() {
    let (client, first) = ClientLogon::new("anna", "correct horse", None).unwrap();
    let (server, _) = begin(&first).unwrap();
    let printed = format!("{:?} {client:?} {server:?}", *ANNA);
    let [_, keys] = ANNA.to_string().rsplitn(2, '$').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
    assert!(!printed.contains("horse") && !printed.contains(&keys) && printed.contains("anna"), "{printed}");
}

#[test]
fn an_invalid_secret_is_refused() {
    let sound = ANNA.to_string();
    let (head, keys) = sound.rsplit_once('$').unwrap();
    for text in [
        "",
        "SCRAM-SHA-256",
        "SCRAM-SHA-256$",
        &sound[1..],
        &sound[..sound.len() - 1],
        head,
        keys,
        &sound.replace("15000", "4095"),
        &sound.replace("15000", "1000001"),
        &sound.replace("15000", "many"),
        &sound.replace("256", "1"),
        &format!("{sound}x"),
        &format!("{head}$:"),
        &format!("{sound}:{keys}"),
    ] {
        assert_eq!(text.parse::<Secret>(), Err(SecretError), "{text}");
    }
}

/// Generates bytes that resemble messages.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let words =
        ["n", ",", "=", "n=", "r=", "c=biws", "s=", "i=", "p=", "v=", "e=", "4096", "abc", "c2FsdA==", "m=", "\0"];
    let words = vec(proptest::sample::select(words.to_vec()), 0..14).prop_map(|words| words.concat().into_bytes());
    prop_oneof![words, vec(any::<u8>(), 0..100)]
}

proptest! {
    #[test]
    fn hostile_bytes_never_log_in(bytes in hostile()) {
        if let Ok((server, challenge)) = begin(&bytes) {
            prop_assert!(!server.user().is_empty() && !challenge.is_empty());
        }
        let (server, _) = begin(b"n,,n=anna,r=abc").unwrap();
        prop_assert!(server.verify(&bytes).is_err());
        let (mut client, _) = ClientLogon::new("anna", "x", None).unwrap();
        prop_assert!(client.answer(&bytes).is_err());
        prop_assert!(client.check(&bytes).is_err());
        if let Ok(text) = str::from_utf8(&bytes) {
            prop_assert!(text.parse::<Secret>().is_err());
        }
    }

    #[test]
    fn a_changed_proof_never_logs_in(at in 0usize..80, byte in any::<u8>()) {
        let (mut client, first) = ClientLogon::new("anna", "correct horse", None).unwrap();
        let (server, challenge) = begin(&first).unwrap();
        let sound = client.answer(&challenge).unwrap();
        let mut proof = sound.clone();
        let at = at % proof.len();
        proof[at] = byte;
        prop_assert_eq!(server.verify(&proof).is_ok(), proof == sound);
    }
}

fn begin(first: &[u8]) -> Result<(ServerLogon, Vec<u8>), ScramError> {
    ServerLogon::begin(first, None, |_| ANNA.clone())
}
