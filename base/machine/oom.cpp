#include "base/machine/oom.h"

#include <charconv>

#include "base/file.h"

namespace fettle::machine {

std::int64_t oom_kills(const std::string& root) {
  constexpr std::string_view kName = "\noom_kill ";
  const auto text = read_file(root + "/proc/vmstat");
  if (!text.ok()) return 0;
  const std::size_t at = text->find(kName);
  if (at == std::string::npos) return 0;
  std::int64_t count = 0;
  const char* const begin = text->data() + at + kName.size();
  (void)std::from_chars(begin, text->data() + text->size(), count);
  return count;
}

}  // namespace fettle::machine
