// Faults of calls to the API server, and a transport that injects one into the calls of one row of
// the table of calls (kube/client/calls.h). One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "kube/client/calls.h"
#include "kube/client/http.h"
#include "kube/testing/fake_api_server.h"
#include "tests/matrix/calls/virtual_time.h"

namespace fettle::matrix {

enum class FaultKind {
  kBadRequest,          // 400
  kForbiddenByRbac,     // 403
  kForbiddenByQuota,    // 403
  kForbiddenByPolicy,   // 403
  kNotFound,            // 404
  kConflict,            // 409
  kInvalid,             // 422
  kThrottled,           // 429
  kThrottledWithTime,   // 429 with Retry-After
  kInternalError,       // 500
  kServiceUnavailable,  // 503
  kHtmlGateway,         // 502 with a page of HTML
  kHtmlLogin,           // 200 with a page of HTML
  kResetBefore,         // the server did not get the request
  kResetAfter,          // the server has acted
  kSilence,             // no answer for 30 s
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kSilence) + 1;
const char* to_string(FaultKind kind);

// Phases of a Study's life.
enum class Phase { kBefore, kMiddle, kEnd };
inline constexpr int kPhases = 3;
const char* to_string(Phase phase);

// One fault, from the beginning of a phase on: it hits the first call of the row, and all calls
// until kFaultMs later.
inline constexpr std::int64_t kFaultMs = 180'000;
struct FaultPlan {
  const kube::ApiCall* row = nullptr;  // null = no fault
  FaultKind kind = FaultKind::kResetBefore;
  Phase phase = Phase::kBefore;
};

// The fault of a life, and the rows called in each phase.
class FaultState {
 public:
  FaultState(VirtualTime& time, FaultPlan plan) : time_(time), plan_(plan) {}

  void enter(Phase phase) { phase_ = phase; }
  Phase phase() const { return phase_; }
  const FaultPlan& plan() const { return plan_; }

  // Notes a call, and returns the fault that it meets.
  std::optional<FaultKind> meet(const kube::ApiCall& row);
  bool is_active() const;
  bool was_hit() const { return first_hit_ms_ != 0; }
  bool is_over() const { return was_hit() && !is_active(); }
  // Ends a life before its fault ends.
  void end() { ended_ = true; }
  int hits() const { return hits_; }

  std::map<const kube::ApiCall*, std::set<Phase>> seen;

 private:
  VirtualTime& time_;
  const FaultPlan plan_;
  Phase phase_ = Phase::kBefore;
  std::int64_t first_hit_ms_ = 0;
  int hits_ = 0;
  bool ended_ = false;
};

class FaultyTransport final : public kube::HttpTransport {
 public:
  // `wait`: how a caller passes the time without an answer.
  FaultyTransport(kube::FakeApiServer& server, FaultState& state, kube::Caller caller,
                  std::function<void(std::chrono::milliseconds)> wait)
      : server_(server), state_(state), caller_(caller), wait_(std::move(wait)) {}

  kube::HttpResult call(const kube::HttpRequest& request,
                        std::chrono::milliseconds deadline) override;
  kube::HttpResult stream(const kube::HttpRequest& request,
                          const std::function<bool(std::string_view line)>& on_line,
                          std::chrono::milliseconds idle, std::stop_token stop) override;
  // Begins a watch: returns the answer that a fault gives instead, if any.
  std::optional<kube::HttpResult> begin_watch(const kube::HttpRequest& request,
                                              std::chrono::milliseconds idle);

  // Calls since forget() that met a fault, and the writes among them.
  int faulty_calls() const { return faulty_calls_; }
  int faulty_writes() const { return faulty_writes_; }
  void forget() { faulty_calls_ = faulty_writes_ = 0; }
  // Writes since the beginning.
  std::int64_t writes() const { return writes_; }
  const std::set<std::string>& calls_without_row() const { return without_row_; }

 private:
  std::optional<FaultKind> meet(const kube::HttpRequest& request);

  kube::FakeApiServer& server_;
  FaultState& state_;
  const kube::Caller caller_;
  const std::function<void(std::chrono::milliseconds)> wait_;
  int faulty_calls_ = 0;
  int faulty_writes_ = 0;
  std::int64_t writes_ = 0;
  std::set<std::string> without_row_;
};

// Returns the answer to a request that meets the fault; `act` carries the request out.
kube::HttpResult answer_with(FaultKind kind, const kube::HttpRequest& request,
                             const std::function<kube::HttpResult()>& act,
                             const std::function<void()>& wait);

}  // namespace fettle::matrix
