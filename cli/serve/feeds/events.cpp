#include "cli/serve/feeds/events.h"

#include "base/json.h"

namespace fettle::cli {

std::string event_text(const char* name, const std::string& json, const std::string& id) {
  const std::string text = id.empty() ? "" : "id: " + id + '\n';
  return text + "event: " + name + "\ndata: " + json + "\n\n";
}

std::string trouble_json(const std::optional<Error>& error) {
  const bool forbidden = error && error->code == ErrorCode::kForbidden;
  return Json::object({{"code", forbidden ? "forbidden" : "unavailable"},
                       {"message", error ? error->message : ""}})
      .dump();
}

}  // namespace fettle::cli
