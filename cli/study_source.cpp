#include "cli/study_source.h"

#include "cli/cluster_source.h"
#include "cli/local_source.h"
#include "cli/text.h"

namespace fettle::cli {

Result<std::unique_ptr<StudySource>> open_source(const Place& place) {
  if (place.on_cluster) return open_cluster_source(place);
  return std::unique_ptr<StudySource>(std::make_unique<LocalSource>(place.root));
}

Error no_such_study(const std::string& name, const std::string& place,
                    const std::vector<std::string>& studies, const std::string& hint) {
  constexpr std::size_t kMostNamed = 10;
  std::string message = "no study '" + printable(name) + "' " + place;
  if (studies.empty()) return not_found(message + ", nor any other; " + hint);
  message += "; there are: ";
  for (std::size_t i = 0; i < studies.size() && i < kMostNamed; ++i) {
    message += (i > 0 ? ", " : "") + studies[i];
  }
  return not_found(message + (studies.size() > kMostNamed ? ", ..." : ""));
}

}  // namespace fettle::cli
