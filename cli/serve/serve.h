// Serves the pages of Studies to this user's browser until a signal comes (`fettle serve`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

inline constexpr std::uint16_t kServePort = 8338;

struct ServeSettings {
  std::string place;                  // as StudySource::place()
  std::vector<std::string> only;      // names of Studies; empty = all
  std::optional<std::uint16_t> port;  // 0 = any free one; absent: kServePort, else a free one
  std::string socket;                 // path of a Unix socket instead of a port; "" = none
  std::string token_file;             // "" = a random token
  bool open = false;                  // starts a browser
  // How often the source may be asked about a Study and about the list.
  std::int64_t study_poll_ms = 250;
  std::int64_t list_poll_ms = 250;
};

// Returns the exit code. Errors: a port or a socket that is taken; the token; in builds without
// Kubernetes there is no server.
Result<int> serve(const MakeSource& make_source, const ServeSettings& settings);

}  // namespace fettle::cli
