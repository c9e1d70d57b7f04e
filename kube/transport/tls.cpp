#include "kube/transport/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>
#include <vector>

#include "base/file.h"

namespace fettle::kube {
namespace {

constexpr std::size_t kMaxPemBytes = 1 << 20;

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio open_text(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

// Returns OpenSSL's newest error; its queue is empty afterwards.
std::string openssl_message() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown reason" : reason;
}

std::string name_of(const Pem& pem, const std::string& what) {
  return pem.data.empty() ? what + " " + pem.file : "the " + what + " data";
}

Result<std::string> read_pem(const Pem& pem) {
  if (!pem.data.empty()) return pem.data;
  return read_file(pem.file, kMaxPemBytes);
}

std::vector<Certificate> read_certificates(const std::string& text) {
  std::vector<Certificate> out;
  const Bio bio = open_text(text);
  while (X509* const next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    out.emplace_back(next, &X509_free);
  }
  ERR_clear_error();  // to OpenSSL, the end of the text is an error
  return out;
}

// Never asks a terminal for the password of a key.
int no_password(char*, int, int, void*) { return 0; }

Status use_identity(SSL_CTX* context, const std::string& certificates, const std::string& key) {
  const std::vector<Certificate> chain = read_certificates(certificates);
  if (chain.empty()) return invalid("the client certificate holds no PEM certificate");
  // The first is the client's own; the rest leads up to a CA that the server trusts.
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return invalid("the client certificate cannot be used: " + openssl_message());
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return invalid("the chain of the client certificate cannot be used: " + openssl_message());
    }
  }
  const Bio bio = open_text(key);
  const Key read(PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_password, nullptr),
                 &EVP_PKEY_free);
  if (read == nullptr) {
    ERR_clear_error();
    return invalid("the client key holds no PEM private key that can be read without a password");
  }
  if (SSL_CTX_use_PrivateKey(context, read.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return invalid("the client key does not belong to the client certificate: " +
                   openssl_message());
  }
  return success();
}

void free_problems(void*, void* pointer, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::shared_ptr<void>*>(pointer);
}

}  // namespace

Result<std::shared_ptr<Tls>> Tls::make(TlsConfig config) {
  auto tls = std::make_shared<Tls>(std::move(config));
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> scratch(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  FETTLE_TRY(tls->prepare(scratch.get(), {}));
  return tls;
}

Tls::Tls(TlsConfig config) : config_(std::move(config)) {}

Status Tls::prepare(SSL_CTX* context, const Credential& credential) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);  // watches are idle most of the time
  // free_problems() deletes it with the context.
  SSL_CTX_set_ex_data(context, problems_index(), new std::shared_ptr<void>(problems_));
  SSL_CTX_set_info_callback(context, &Tls::note_event);
  const std::lock_guard lock(mutex_);
  FETTLE_TRY(trust(context));
  if (!credential.certificate.empty()) {
    return use_identity(context, credential.certificate, credential.key);
  }
  if (config_.certificate.empty()) return success();
  FETTLE_TRY(load_identity());
  return use_identity(context, certificate_text_, key_text_);
}

// The store of the context holds the system's CAs by default. This store replaces it, so that only
// the cluster's own CA is trusted.
Status Tls::trust(SSL_CTX* context) {
  if (config_.insecure || config_.ca.empty()) return success();
  FETTLE_TRY(load_store());
  X509_STORE_up_ref(store_.get());  // the context takes over this reference
  SSL_CTX_set_cert_store(context, store_.get());
  return success();
}

Status Tls::load_store() {
  Result<std::string> text = read_pem(config_.ca);
  if (!text.ok()) {
    if (store_ != nullptr) return success();  // the last good content applies
    return Error(text.error()).in("the cluster's CA");
  }
  if (store_ != nullptr && *text == ca_text_) return success();
  const std::vector<Certificate> certificates = read_certificates(*text);
  if (certificates.empty()) {
    if (store_ != nullptr) return success();
    return invalid(name_of(config_.ca, "certificate-authority") + " holds no PEM certificate");
  }
  Store store(X509_STORE_new(), &X509_STORE_free);
  for (const Certificate& certificate : certificates) {
    X509_STORE_add_cert(store.get(), certificate.get());
  }
  // The file may also name an intermediate CA, as Go's library allows.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  store_ = std::move(store);
  ca_text_ = std::move(*text);
  return success();
}

Status Tls::load_identity() {
  Result<std::string> certificate = read_pem(config_.certificate);
  Result<std::string> key = read_pem(config_.key);
  if (certificate.ok() && key.ok()) {
    certificate_text_ = std::move(*certificate);
    key_text_ = std::move(*key);
    return success();
  }
  if (!certificate_text_.empty()) return success();  // the last pair that could be read applies
  return certificate.ok() ? Error(key.error()).in("the client key")
                          : Error(certificate.error()).in("the client certificate");
}

std::string Tls::problem_since(TimePoint start) const {
  const std::lock_guard lock(problems_->mutex);
  return problems_->at >= start ? problems_->last : "";
}

int Tls::problems_index() {
  static const int kIndex = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, &free_problems);
  return kIndex;
}

// OpenSSL calls this at every step of a handshake. Alerts are the steps at which it fails: an alert
// sent means that this side does not accept the server's certificate, an alert received that the
// server does not accept this side's.
void Tls::note_event(const SSL* ssl, int where, int value) {
  constexpr int kFatal = 2;  // `value` of an alert: its level << 8 | its description
  if ((where & SSL_CB_ALERT) == 0 || (value >> 8) != kFatal) return;
  auto* const problems =
      static_cast<Problems*>(static_cast<std::shared_ptr<void>*>(
                                 SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), problems_index()))
                                 ->get());
  const long verdict = SSL_get_verify_result(ssl);
  std::string text = std::string("alert ") + SSL_alert_desc_string_long(value);
  if ((value & 0xFF) == SSL_AD_CERTIFICATE_REQUIRED) {
    text = "the server wants a client certificate";
  } else if ((where & SSL_CB_READ) != 0) {
    text = "the server answered with " + text;
  } else if (verdict == X509_V_ERR_UNSPECIFIED || verdict == X509_V_ERR_APPLICATION_VERIFICATION) {
    // OpenSSL reports a callback that refuses without an error like this: cpprestsdk's check of the
    // name.
    text = "the server's certificate is for another host name";
  } else if (verdict != X509_V_OK) {
    text = std::string("the server's certificate is not trusted: ") +
           X509_verify_cert_error_string(verdict);
  }
  const std::lock_guard lock(problems->mutex);
  problems->at = std::chrono::steady_clock::now();
  problems->last = std::move(text);
}

}  // namespace fettle::kube
