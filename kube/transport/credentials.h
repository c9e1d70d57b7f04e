// Credentials for the API server and their sources. Every request asks for the current credential,
// so tokens can rotate while the program runs.
//
// The rules are client-go's (transport/token_source.go): a token read from a file is used for a
// minute, re-read 10 seconds before that ends, and kept if the file cannot be read at that moment.
// Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

namespace fettle::kube {

struct Credential {
  std::string token;        // "" = none
  std::string certificate;  // PEM, with `key`; "" = none, or the one in TlsConfig
  std::string key;
  bool operator==(const Credential&) const = default;
};

using TimePoint = std::chrono::steady_clock::time_point;

class TokenSource {
 public:
  virtual ~TokenSource() = default;

  virtual Result<Credential> current() = 0;

  // Reports that a request sent at `sent` with current() was answered 401: drops tokens read before
  // that, and the next current() reads again.
  virtual void reject(TimePoint sent) = 0;
};

// A constant token; "" = none.
class StaticToken : public TokenSource {
 public:
  explicit StaticToken(std::string token) : credential_{std::move(token), {}, {}} {}
  Result<Credential> current() override { return credential_; }
  void reject(TimePoint) override {}

 private:
  const Credential credential_;
};

// A fetched credential, cached until it expires or is rejected.
class CachedToken : public TokenSource {
 public:
  static constexpr std::chrono::seconds kLeeway{10};

  struct Fetched {
    Credential credential;
    std::optional<std::chrono::seconds> valid_for;  // absent: until it is rejected
  };
  using Fetch = std::function<Result<Fetched>()>;
  using Clock = std::function<TimePoint()>;

  // One fetch runs at a time; others wait for it.
  explicit CachedToken(Fetch fetch, Clock clock = std::chrono::steady_clock::now);
  Result<Credential> current() override;
  void reject(TimePoint sent) override;

 private:
  const Fetch fetch_;
  const Clock clock_;
  std::mutex mutex_;
  std::optional<Credential> cached_;
  TimePoint fetched_at_{};
  std::optional<TimePoint> expires_;
};

// A token in a file that another program rotates, such as the kubelet.
std::unique_ptr<TokenSource> file_token(const std::string& path,
                                        CachedToken::Clock clock = std::chrono::steady_clock::now);

// kInvalid for text that cannot be a bearer token: empty, spaces, line breaks, too long. `where`
// names its place; the token itself is never shown.
Status check_token(const std::string& token, const std::string& where);

}  // namespace fettle::kube
