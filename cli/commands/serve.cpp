// fettle serve: pages of all studies of a place, which follow them.
#include "cli/serve/serve.h"

#include <algorithm>
#include <iostream>

#include "cli/cluster/cluster_source.h"
#include "cli/common/commands.h"
#include "cli/local/local_source.h"
#include "cli/terminal/text.h"

namespace fettle::cli {
namespace {

// Rates that an API server does not feel.
constexpr std::int64_t kClusterStudyPollMs = 2'000;
constexpr std::int64_t kClusterListPollMs = 5'000;

Result<MakeSource> make_sources(const Target& place) {
  if (!place.on_cluster) {
    return MakeSource([root = place.root]() -> Result<std::unique_ptr<StudySource>> {
      return std::unique_ptr<StudySource>(std::make_unique<LocalSource>(root));
    });
  }
  FETTLE_ASSIGN(const Cluster cluster, reach_cluster(place));
  return MakeSource([cluster]() -> Result<std::unique_ptr<StudySource>> {
    return std::unique_ptr<StudySource>(std::make_unique<ClusterSource>(cluster));
  });
}

// A study may begin later, but more often its name is mistyped.
void warn_of_unknown(StudySource& source, const std::vector<std::string>& studies) {
  const auto names = source.names();
  if (!names.ok()) return;  // the page says why
  for (const std::string& study : studies) {
    if (std::ranges::find(*names, study) != names->end()) continue;
    std::cerr << "fettle: there is no study '" << printable(study) << "' " << source.place()
              << " yet; its page waits for it\n";
  }
}

Status check_options(const ServeOptions& options) {
  if (!options.socket.empty() && options.port)
    return invalid("--socket and --port exclude each other");
  if (!options.socket.empty() && options.open) {
    return invalid("--open does not go with --socket, which no browser opens");
  }
  if (!options.token_file.empty() && options.open) {
    return invalid("--open does not go with --token-file: the browser's address has a token");
  }
  return success();
}

}  // namespace

Result<int> serve_command(const Target& place, const ServeOptions& options) {
  FETTLE_TRY(check_options(options));
  FETTLE_ASSIGN(const MakeSource make_source, make_sources(place));
  FETTLE_ASSIGN(const auto source, make_source());
  warn_of_unknown(*source, options.studies);
  ServeSettings settings;
  settings.place = source->place();
  settings.only = options.studies;
  settings.port = options.port;
  settings.socket = options.socket;
  settings.token_file = options.token_file;
  settings.open = options.open;
  if (place.on_cluster) {
    settings.study_poll_ms = kClusterStudyPollMs;
    settings.list_poll_ms = kClusterListPollMs;
  }
  return serve(make_source, settings);
}

}  // namespace fettle::cli
