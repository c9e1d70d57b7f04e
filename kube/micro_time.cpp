#include "kube/micro_time.h"

#include "api/timestamp.h"

namespace fettle::kube {

std::string format_micro_time(std::int64_t unix_ms) {
  std::string out = api::format_timestamp(unix_ms);
  out.pop_back();  // the Z
  const std::size_t dot = out.find('.');
  if (dot == std::string::npos) return out + ".000000Z";
  out.resize(dot + 7, '0');
  return out + 'Z';
}

}  // namespace fettle::kube
