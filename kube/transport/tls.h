// Tls: the trusted CAs and the client certificate of connections, for OpenSSL.
//
// prepare() is called for each new connection and reads the files again, so a rotated CA or client
// certificate applies from the next connection on. If a file cannot be read, or the CA's cannot be
// parsed, its last good content applies. Thread-safe.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "kube/transport/credentials.h"

namespace fettle::kube {

// A certificate or key in PEM: its text, or the file that holds it. `data` wins.
struct Pem {
  std::string file;
  std::string data;
  bool empty() const { return file.empty() && data.empty(); }
  bool operator==(const Pem&) const = default;
};

struct TlsConfig {
  Pem ca;  // the only trusted CAs; empty = the system's
  Pem certificate;
  Pem key;
  std::string server_name;  // expected in the server's certificate; "" = the URL's host
  bool insecure = false;    // the server's certificate is not checked
  bool operator==(const TlsConfig&) const = default;
};

class Tls {
 public:
  // Reads everything once, so that errors show at the start: kInvalid or kNotFound.
  static Result<std::shared_ptr<Tls>> make(TlsConfig config);
  explicit Tls(TlsConfig config);

  // Sets up the context of one connection: TLS 1.2 or newer, trust, and the certificate of
  // `credential`, or else the configured one.
  Status prepare(SSL_CTX* context, const Credential& credential);

  // Returns why a handshake failed since `start`; "" = unknown.
  std::string problem_since(TimePoint start) const;

  const TlsConfig& config() const { return config_; }

 private:
  using Store = std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)>;
  // Problems of connections. Contexts share ownership: a connection may outlive this object.
  struct Problems {
    std::mutex mutex;
    TimePoint at{};
    std::string last;
  };

  Status trust(SSL_CTX* context);
  Status load_store();
  Status load_identity();
  static int problems_index();
  static void note_event(const SSL* ssl, int where, int value);

  const TlsConfig config_;
  const std::shared_ptr<Problems> problems_ = std::make_shared<Problems>();
  std::mutex mutex_;
  std::string ca_text_;  // the text of store_
  Store store_{nullptr, &X509_STORE_free};
  std::string certificate_text_;
  std::string key_text_;
};

}  // namespace fettle::kube
