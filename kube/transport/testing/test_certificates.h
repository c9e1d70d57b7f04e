// For tests: certificate authorities and certificates, made on the spot. Not synchronised.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace fettle::kube {

struct TestIdentity {
  std::string certificate;  // PEM
  std::string key;          // PEM
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  const std::string& certificate() const { return certificate_; }
  // `alternative_names` in the form of openssl.cnf: "IP:127.0.0.1,DNS:localhost"; "" = none.
  TestIdentity issue(const std::string& name, const std::string& alternative_names) const;

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  static Certificate make(const std::string& name, EVP_PKEY* key);

  const Key key_;
  const Certificate own_;
  std::string certificate_;
};

}  // namespace fettle::kube
