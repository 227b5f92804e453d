//! Certificates for tests: created in a folder, for loopback and for given names.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};

/// A certificate authority. Its files lie in a folder that the test owns.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
    name: String,
}

/// A certificate and its key, PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCertificate {
    /// File of the certificate.
    pub cert: PathBuf,
    /// File of the key.
    pub key: PathBuf,
    /// Serial number of the certificate.
    serial: u64,
}

impl TestAuthority {
    /// Creates an authority of this name; its own certificate is `NAME.pem` in the folder.
    pub fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let authority = Self { issuer: Issuer::new(params, key), folder: folder.to_owned(), name: name.to_owned() };
        fs::write(authority.certificate_file(), pem).expect("the folder is the test's");
        authority
    }

    /// Returns the authority's own certificate, for clients and servers that trust it.
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.join(format!("{}.pem", self.name))
    }

    /// Creates a certificate for these names or addresses, valid for servers and clients until 2090: `NAME.cert.pem`
    /// and `NAME.key.pem`.
    pub fn certify(&self, file: &str, names: &[&str]) -> TestCertificate {
        self.certify_until(file, names, 2090)
    }

    /// Creates a certificate that is valid until the begin of this year.
    pub fn certify_until(&self, file: &str, names: &[&str], year: i32) -> TestCertificate {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("good names");
        params.distinguished_name.push(rcgen::DnType::CommonName, file);
        params.not_after = date_time_ymd(year, 1, 1);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        // Clients that check strictly, like Python's from 3.13, refuse a certificate without it.
        params.use_authority_key_identifier_extension = true;
        let hash = file.bytes().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let serial = (u64::from_le_bytes(*b"tickpath") ^ hash) >> 1;
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let path = |what: &str| self.folder.join(format!("{file}.{what}.pem"));
        let identity = TestCertificate { cert: path("cert"), key: path("key"), serial };
        fs::write(&identity.cert, certificate.pem()).expect("the folder is the test's");
        fs::write(&identity.key, key.serialize_pem()).expect("the folder is the test's");
        identity
    }

    /// Creates a revocation list with this certificate: `NAME.crl.pem`.
    pub fn revoke(&self, identity: &TestCertificate) -> PathBuf {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(identity.serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2090, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let file = self.folder.join(format!("{}.crl.pem", self.name));
        let pem = list.signed_by(&self.issuer).expect("a list").pem().expect("its text");
        fs::write(&file, pem).expect("the folder is the test's");
        file
    }
}
