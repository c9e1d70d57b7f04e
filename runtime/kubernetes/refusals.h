// Refusals: runs that have no Job now, and when to ask for one again: the API server does not admit
// it (quota, rights, a namespace that is on its way), or its workers did not all get a node.
//
// Such a run is Pending with a reason. When its time has come, or as soon as a Job of the namespace
// is gone where the server refused it, it is not there any more, so that the controller starts it
// again; nothing has to be kept beyond this memory. Not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"

namespace fettle::kubernetes {

inline constexpr std::int64_t kAskAgainMs = 15'000;
// Of more refusals than this the oldest are forgotten, and their runs asked for again.
inline constexpr std::size_t kMostRefusals = 4'096;

// Which run: the trial's namespace, name and uid, and the run's number.
struct RunName {
  std::string ns;
  std::string trial;
  std::string uid;
  std::int64_t run = 0;
  auto operator<=>(const RunName&) const = default;
};

class Refusals {
 public:
  void add(const RunName& run, std::int64_t workers, std::string why, std::int64_t now_ms);
  // Not before `until_ms`, whatever ends meanwhile.
  void hold_back(const RunName& run, std::int64_t workers, std::string why, std::int64_t now_ms,
                 std::int64_t until_ms);
  void remove(const RunName& run);
  // What there is to say of the trial's refused runs now.
  std::vector<core::Run> of_trial(const RunName& trial, std::int64_t now_ms) const;
  // There may be room in this namespace: the run that was refused first is to be asked for again.
  std::optional<RunName> release_one(const std::string& ns);

 private:
  struct Refusal {
    std::int64_t workers = 1;
    std::string why;
    std::int64_t since_ms = 0;
    std::int64_t until_ms = 0;
    bool may_be_released = true;
  };
  void keep(const RunName& run, Refusal refusal);

  std::map<RunName, Refusal> refusals_;
};

}  // namespace fettle::kubernetes
