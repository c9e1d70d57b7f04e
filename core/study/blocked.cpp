#include "core/study/blocked.h"

#include <utility>

#include "core/conditions.h"
#include "core/facts/run_records.h"
#include "core/readiness.h"
#include "core/study/ledger.h"
#include "core/study/study_status.h"

namespace fettle::core {

namespace {

constexpr const char* kBlocked = "Blocked";

}  // namespace

StudyPlan plan_waiting_study(const api::Study& study, std::int64_t earlier, std::int64_t now_ms) {
  const Ledger none(study, {});
  const std::string waiting = std::to_string(earlier) + (earlier == 1 ? " trial" : " trials") +
                              " of an earlier Study of this name " + (earlier == 1 ? "is" : "are") +
                              " still being deleted; this Study begins when all are gone";
  const Spending nothing;
  const StudyOutlook outlook{.ledger = none,
                             .spending = nothing,
                             .slots = study.spec.budget.parallelism,
                             .draining = std::nullopt,
                             .ended = std::nullopt,
                             .algorithm = "",
                             .waiting = waiting};
  api::StudyStatus next = study_status(study, outlook, now_ms);
  StudyPlan plan;
  add_status(study.status, std::move(next), /*running=*/false, now_ms, plan);
  return plan;
}

bool is_blocked(const api::StudyStatus& status) { return is_true(status.conditions, kBlocked); }

std::string blocked_message(const api::StudyStatus& status) {
  const api::StatusCondition* condition = find_condition(status.conditions, kBlocked);
  return condition == nullptr ? "" : condition->message;
}

api::StudyStatus blocked_status(const api::Study& study, const std::string& words,
                                std::int64_t now_ms) {
  api::StudyStatus status = study.status;
  const bool blocked = !words.empty();
  set_condition(
      status.conditions,
      {.type = kBlocked,
       .status = blocked,
       .reason = blocked ? "Refused" : "Accepted",
       .message = blocked ? truncate_message(words) : "what was refused has been accepted"},
      now_ms);
  set_readiness(status, now_ms);
  // kstatus ignores conditions of a generation that was not observed. A Study that is over does not
  // observe its new generation: it has not acted on the new spec.
  if (blocked && !is_finished(status)) status.observed_generation = study.metadata.generation;
  status.updated_ms = now_ms;
  status.display.state = state_of(status);
  return status;
}

}  // namespace fettle::core
