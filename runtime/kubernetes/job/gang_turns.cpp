#include "runtime/kubernetes/job/gang_turns.h"

#include <algorithm>

namespace fettle::kubernetes {
namespace {

// Records of Studies without a gang for this long are dropped.
constexpr std::int64_t kForgetMs = 3 * 3'600'000;

}  // namespace

GangTurn GangTurns::turn_of(const kube::Job& job, std::int64_t now_ms) const {
  GangTurn out;
  const auto ns = namespaces_.find(job.metadata.ns);
  if (ns != namespaces_.end()) out.ns = ns->second.turn;
  const std::string domain = domain_of(job);
  const auto studies = studies_.find(domain);
  if (studies == studies_.end()) return out;
  const std::string study = study_of_gang(job);
  const auto found = studies->second.find(study);
  if (found == studies->second.end()) return out;
  const Record& record = found->second;
  out.study = record.turn;
  const std::int64_t until_ms = record.returned_ms + record.backoff_ms;
  const bool rests = record.failures > 0 && now_ms < until_ms;
  // It does not wait if no other Study has gathered since one back-off before its return.
  if (rests && others_gather(domain, study, record.returned_ms - record.backoff_ms)) {
    out.backoff_until_ms = until_ms;
  }
  return out;
}

// Whether a gang of another Study has gathered in the domain since `since_ms`.
bool GangTurns::others_gather(const std::string& domain, const std::string& study,
                              std::int64_t since_ms) const {
  // At least 1, because a gathered_ms of 0 means that none has gathered.
  return std::ranges::any_of(studies_.at(domain), [&](const auto& other) {
    return other.first != study && other.second.gathered_ms >= std::max<std::int64_t>(1, since_ms);
  });
}

void GangTurns::note(const kube::Job& job, GangState to, bool held, std::int64_t now_ms,
                     std::int64_t timeout_ms) {
  Record& study = studies_[domain_of(job)][study_of_gang(job)];
  study.used_ms = now_ms;
  if (to == GangState::kOpen) {
    Record& ns = namespaces_[job.metadata.ns];
    ns.used_ms = now_ms;
    ns.turn = study.turn = ++turn_;
  } else if (to == GangState::kGathered) {
    study.failures = 0;
    study.gathered_ms = now_ms;
  } else if (to == GangState::kReturned && held) {  // a gang without a node cost others nothing
    study.backoff_ms = timeout_ms * std::min(kMaxBackoff, std::int64_t{1} << std::min<std::int64_t>(
                                                              study.failures, 10));
    study.returned_ms = now_ms;
    ++study.failures;
  }
  forget(now_ms);
}

void GangTurns::forget(std::int64_t now_ms) {
  const auto is_old = [now_ms](const auto& one) { return one.second.used_ms + kForgetMs < now_ms; };
  std::erase_if(namespaces_, is_old);
  for (auto& [domain, studies] : studies_) std::erase_if(studies, is_old);
  std::erase_if(studies_, [](const auto& one) { return one.second.empty(); });
}

}  // namespace fettle::kubernetes
