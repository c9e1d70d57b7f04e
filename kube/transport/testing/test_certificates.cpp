#include "kube/transport/testing/test_certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>

namespace fettle::kube {
namespace {

template <class Write>
std::string to_pem(const Write& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  write(bio.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string to_pem(X509* certificate) {
  return to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
}

void extend(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestAuthority::Certificate TestAuthority::make(const std::string& name, EVP_PKEY* key) {
  static std::atomic<long> serial = 1;
  constexpr long kHour = 3600;
  Certificate out(X509_new(), &X509_free);
  X509_set_version(out.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(out.get()), -kHour);
  X509_gmtime_adj(X509_getm_notAfter(out.get()), kHour);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(out.get(), key);
  return out;
}

TestAuthority::TestAuthority(const std::string& name)
    : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free), own_(make(name, key_.get())) {
  X509_set_issuer_name(own_.get(), X509_get_subject_name(own_.get()));
  extend(own_.get(), own_.get(), NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(own_.get(), key_.get(), EVP_sha256());
  certificate_ = to_pem(own_.get());
}

TestIdentity TestAuthority::issue(const std::string& name,
                                  const std::string& alternative_names) const {
  const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
  const Certificate certificate = make(name, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(own_.get()));
  if (!alternative_names.empty()) {
    extend(certificate.get(), own_.get(), NID_subject_alt_name, alternative_names.c_str());
  }
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  return {to_pem(certificate.get()), to_pem([&](BIO* bio) {
            PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace fettle::kube
