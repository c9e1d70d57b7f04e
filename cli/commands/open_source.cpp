#include "cli/commands/open_source.h"

#include "cli/cluster/cluster_source.h"
#include "cli/local/local_source.h"

namespace fettle::cli {

Result<std::unique_ptr<StudySource>> open_source(const Target& place) {
  if (place.on_cluster) return open_cluster_source(place);
  return std::unique_ptr<StudySource>(std::make_unique<LocalSource>(place.root));
}

Result<SeenStudy> read_study(StudySource& source, const std::string& study) {
  if (!study.empty()) return source.read(study, Detail::kObjects);
  FETTLE_ASSIGN(const std::string chosen, default_study(source));
  return source.read(chosen, Detail::kObjects);
}

Result<SeenStudy> read_study(const Target& place, const std::string& study) {
  FETTLE_ASSIGN(const std::unique_ptr<StudySource> source, open_source(place));
  return read_study(*source, study);
}

}  // namespace fettle::cli
