#include "kube/testing/fake_log.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include "api/fields/timestamp.h"

namespace fettle::kube {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

// RFC 3339 with nine digits, as the kubelet writes it.
std::string stamp(std::int64_t at_ns) {
  std::string text = api::format_timestamp(at_ns / kSecond * 1000);
  text.pop_back();
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%09dZ ", static_cast<int>(at_ns % kSecond));
  return text + fraction;
}

}  // namespace

void FakeLog::append(const std::string& text, std::int64_t at_ns) {
  lines.push_back({at_ns == 0 ? now_ns() : at_ns, text});
}

HttpResponse FakeLog::window(const FakeTarget& target) const {
  std::int64_t since_ns = 0;
  if (const std::string since = target.param("sinceTime"); !since.empty()) {
    const std::optional<std::int64_t> since_ms = api::parse_timestamp(since);
    if (!since_ms) return status_response(400, "BadRequest", "sinceTime: " + since);
    since_ns = *since_ms / 1000 * kSecond;
  }
  const bool stamped = target.param("timestamps") == "true";
  const std::int64_t tail = target.number_param("tailLines");
  const auto size = static_cast<std::int64_t>(lines.size());
  HttpResponse response{200, "", {}, {}};
  for (std::int64_t at = tail == 0 ? 0 : std::max<std::int64_t>(0, size - tail); at < size; ++at) {
    const Line& line = lines[static_cast<std::size_t>(at)];
    if (line.at_ns < since_ns) continue;
    response.body += (stamped ? stamp(line.at_ns) : "") + line.text + '\n';
  }
  if (const std::int64_t limit = target.number_param("limitBytes"); limit > 0) {
    response.body.resize(std::min(response.body.size(), static_cast<std::size_t>(limit)));
  }
  return response;
}

}  // namespace fettle::kube
