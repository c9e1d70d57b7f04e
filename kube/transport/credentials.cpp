#include "kube/transport/credentials.h"

#include <algorithm>
#include <utility>

#include "base/file.h"

namespace fettle::kube {
namespace {

constexpr std::chrono::seconds kFilePeriod{60};
constexpr std::size_t kMaxTokenBytes = 64 << 10;

Result<CachedToken::Fetched> read_token(const std::string& path) {
  FETTLE_ASSIGN(std::string token, read_file(path, kMaxTokenBytes + 2));  // with a line break
  constexpr const char* kSpace = " \t\r\n";
  token.erase(0, token.find_first_not_of(kSpace));
  token.erase(token.find_last_not_of(kSpace) + 1);
  FETTLE_TRY(check_token(token, path));
  return CachedToken::Fetched{{std::move(token), {}, {}}, kFilePeriod};
}

}  // namespace

CachedToken::CachedToken(Fetch fetch, Clock clock)
    : fetch_(std::move(fetch)), clock_(std::move(clock)) {}

Result<Credential> CachedToken::current() {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_();
  if (cached_ && (!expires_ || now < *expires_ - kLeeway)) return *cached_;
  Result<Fetched> fetched = fetch_();
  if (!fetched.ok()) {
    // The old token may still be valid; if not, a 401 follows.
    if (cached_) return *cached_;
    return fetched.error();
  }
  cached_ = std::move(fetched->credential);
  fetched_at_ = now;  // the begin of the fetch: `valid_for` counts from then
  expires_.reset();
  if (fetched->valid_for) expires_ = now + *fetched->valid_for;
  return *cached_;
}

void CachedToken::reject(TimePoint sent) {
  const std::lock_guard lock(mutex_);
  // A token fetched after the request was sent has not been tried yet.
  if (fetched_at_ <= sent) cached_.reset();
}

std::unique_ptr<TokenSource> file_token(const std::string& path, CachedToken::Clock clock) {
  return std::make_unique<CachedToken>([path] { return read_token(path); }, std::move(clock));
}

Status check_token(const std::string& token, const std::string& where) {
  if (token.empty()) return invalid(where + ": the token is empty");
  if (token.size() > kMaxTokenBytes) {
    return invalid(where + ": the token is longer than " + std::to_string(kMaxTokenBytes) +
                   " bytes");
  }
  const bool visible =
      std::ranges::all_of(token, [](char letter) { return letter > 0x20 && letter < 0x7F; });
  if (!visible) {
    return invalid(where + ": the token holds a space, a line break or a byte that is not ASCII");
  }
  return success();
}

}  // namespace fettle::kube
