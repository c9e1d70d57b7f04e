// ClusterSource: Studies, Trials, Events and pods' logs of one namespace, read from the API server.
// Every call reads again. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/cluster/cluster.h"
#include "cli/source/study_source.h"

namespace fettle::cli {

class ClusterSource final : public StudySource {
 public:
  explicit ClusterSource(Cluster cluster);

  std::string place() const override { return "in namespace " + cluster_.ns; }
  Result<std::vector<std::string>> names() override;
  Result<std::string> newest() override;
  Result<std::vector<StudyMark>> marks() override;
  Result<SeenStudy> read(const std::string& study, Detail detail) override;
  Status print_log(const std::string& trial, std::optional<std::int64_t> run, bool follow,
                   const LogPrinter& print) override;
  Status follow_log(const std::string& trial, const LogPrinter& print,
                    std::stop_token stop) override;
  Status scale(const std::string& trial, std::int64_t workers) override;
  Result<std::string> stop(const std::string& study, bool now) override;
  Status remove(const std::string& study) override;

 private:
  Result<std::vector<TimelineEntry>> read_events(const RunView& view);

  const Cluster cluster_;
  kube::Client client_;
};

Result<std::unique_ptr<StudySource>> open_cluster_source(const Target& place);

// Returns the command that prints the log of a run.
LogHint log_command_of(const std::string& program);

}  // namespace fettle::cli
