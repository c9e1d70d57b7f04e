// Server-sent events, as text. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace fettle::cli {

// One event; `id` is left out where empty. `json` is one line.
std::string event_text(const char* name, const std::string& json, const std::string& id = "");

// The data of the event `trouble`: {"code", "message"}, where the code is "forbidden" or
// "unavailable"; absent: the trouble is over.
std::string trouble_json(const std::optional<Error>& error);

}  // namespace fettle::cli
