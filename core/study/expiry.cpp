#include "core/study/expiry.h"

#include <string>
#include <utility>

#include "api/fields/timestamp.h"
#include "core/conditions.h"
#include "core/study/study_status.h"

namespace fettle::core {
namespace {

// Warns that the best model is deleted with the Study, which owns the claim.
void warn(const api::Study& study, std::int64_t at_ms, std::int64_t now_ms, StudyPlan& plan) {
  const std::string message = "it is deleted at " + api::format_timestamp(at_ms) +
                              " (spec.ttlAfterFinished) with the claim of its checkpoints: copy "
                              "the model that you need, or raise the time to live";
  api::StudyStatus next = study.status;
  set_condition(next.conditions,
                {.type = kExpiring, .status = true, .reason = "TimeToLive", .message = message},
                now_ms);
  plan.actions.emplace_back(UpdateStudyStatus{std::move(next)});
  plan.actions.emplace_back(Note{{EventType::kWarning, kExpiring, message}});
}

}  // namespace

StudyPlan plan_expiry(const api::Study& study, std::int64_t now_ms) {
  StudyPlan plan;
  const std::optional<double>& ttl = study.spec.ttl_after_finished;
  if (!ttl || study.status.ended_ms == 0) return plan;
  const std::int64_t at_ms = study.status.ended_ms + static_cast<std::int64_t>(*ttl * 1000);
  if (now_ms >= at_ms) {
    plan.actions.emplace_back(DeleteStudy{});
    return plan;
  }
  const auto& checkpoints = study.spec.trial.checkpoints;
  const bool loses_claim = checkpoints && checkpoints->size;  // the Study owns the claim
  const bool has_warned = is_true(study.status.conditions, kExpiring);
  const std::int64_t warn_ms = at_ms - kExpiryNoticeMs;
  const bool warns_later = loses_claim && !has_warned && now_ms < warn_ms;
  plan.wake_at_ms = warns_later ? warn_ms : at_ms;
  if (loses_claim && !has_warned && !warns_later) warn(study, at_ms, now_ms, plan);
  return plan;
}

}  // namespace fettle::core
