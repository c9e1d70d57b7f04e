#include "tests/matrix/calls/faults.h"

#include <utility>

#include "base/check.h"
#include "kube/testing/fake_calls.h"
#include "kube/testing/fake_objects.h"

namespace fettle::matrix {
namespace {

using kube::HttpFailure;
using kube::HttpResponse;
using kube::HttpResult;
using kube::status_response;

constexpr const char* kLoginPage =
    "<html><head><title>Log in</title></head><body>Please log in</body></html>";

std::string what_of(const kube::HttpRequest& request) {
  const auto seen = kube::call_of(request);
  return seen ? seen->resource : request.target;
}

HttpResponse throttled(bool with_time) {
  HttpResponse out =
      status_response(429, "TooManyRequests", "the server has received too many requests");
  if (with_time) out.retry_after = std::chrono::seconds(1);
  return out;
}

}  // namespace

const char* to_string(FaultKind kind) {
  constexpr const char* kNames[kFaultKinds] = {"400",
                                               "403 by RBAC",
                                               "403 by quota",
                                               "403 by policy",
                                               "404",
                                               "409",
                                               "422",
                                               "429",
                                               "429 with Retry-After",
                                               "500",
                                               "503",
                                               "502 with HTML",
                                               "200 with HTML",
                                               "reset before sending",
                                               "reset after the server acted",
                                               "30 s of silence"};
  return kNames[static_cast<int>(kind)];
}

const char* to_string(Phase phase) {
  constexpr const char* kNames[kPhases] = {"before the first trial", "in the middle",
                                           "while it ends"};
  return kNames[static_cast<int>(phase)];
}

HttpResult answer_with(FaultKind kind, const kube::HttpRequest& request,
                       const std::function<HttpResult()>& act, const std::function<void()>& wait) {
  const std::string what = what_of(request);
  switch (kind) {
    case FaultKind::kBadRequest:
      return status_response(400, "BadRequest",
                             "admission webhook \"guard.example.com\" denied the request: not now");
    case FaultKind::kForbiddenByRbac:
      return status_response(403, "Forbidden",
                             what +
                                 " is forbidden: User \"system:serviceaccount:fettle:fettle\" "
                                 "cannot create resource \"" +
                                 what + "\" in API group \"\"");
    case FaultKind::kForbiddenByQuota:
      return status_response(403, "Forbidden",
                             what +
                                 " is forbidden: exceeded quota: few, requested: count=1, "
                                 "used: count=9, limited: count=9");
    case FaultKind::kForbiddenByPolicy:
      return status_response(403, "Forbidden",
                             what +
                                 " is forbidden: ValidatingAdmissionPolicy 'guard' with binding "
                                 "'guard' denied request: not now");
    case FaultKind::kNotFound:
      return status_response(404, "NotFound", what + " \"x\" not found");
    case FaultKind::kConflict:
      return status_response(409, "Conflict",
                             "Operation cannot be fulfilled on " + what +
                                 ": the object has been modified; please apply your changes to "
                                 "the latest version and try again");
    case FaultKind::kInvalid:
      return status_response(422, "Invalid",
                             what +
                                 " is invalid: ValidatingAdmissionPolicy 'guard' with binding "
                                 "'guard' denied request: not now");
    case FaultKind::kThrottled:
      return throttled(false);
    case FaultKind::kThrottledWithTime:
      return throttled(true);
    case FaultKind::kInternalError:
      return status_response(500, "InternalError",
                             "Internal error occurred: failed calling webhook \"guard\"");
    case FaultKind::kServiceUnavailable:
      return status_response(503, "ServiceUnavailable", "the server is currently unable");
    case FaultKind::kHtmlGateway:
      return HttpResponse{502, "<html><body>Bad gateway</body></html>", {}, {}};
    case FaultKind::kHtmlLogin:
      return HttpResponse{200, kLoginPage, {}, {}};
    case FaultKind::kResetBefore:
      return HttpFailure{false, "connection reset by peer"};
    case FaultKind::kResetAfter:
      (void)act();
      return HttpFailure{true, "connection reset by peer"};
    case FaultKind::kSilence:
      wait();
      return HttpFailure{true, "no answer within 30 s"};
  }
  CHECK(false, "no such fault");
  return HttpFailure{};
}

std::optional<FaultKind> FaultState::meet(const kube::ApiCall& row) {
  seen[&row].insert(phase_);
  if (plan_.row != &row || phase_ < plan_.phase || ended_) return std::nullopt;
  if (first_hit_ms_ == 0) first_hit_ms_ = time_.now_ms();
  if (!is_active()) return std::nullopt;
  ++hits_;
  return plan_.kind;
}

bool FaultState::is_active() const {
  return !ended_ && first_hit_ms_ != 0 && time_.now_ms() < first_hit_ms_ + kFaultMs;
}

std::optional<FaultKind> FaultyTransport::meet(const kube::HttpRequest& request) {
  const kube::ApiCall* row = kube::find_row(request, caller_);
  if (row == nullptr) {
    const auto seen = kube::call_of(request);
    without_row_.insert(seen ? seen->verb + ' ' + seen->resource : request.target);
    return std::nullopt;
  }
  const std::optional<FaultKind> kind = state_.meet(*row);
  if (kind) ++faulty_calls_;
  if (kind && request.method != "GET") ++faulty_writes_;
  return kind;
}

HttpResult FaultyTransport::call(const kube::HttpRequest& request,
                                 std::chrono::milliseconds deadline) {
  const auto act = [&] { return server_.call(request, deadline); };
  const std::optional<FaultKind> kind = meet(request);
  if (request.method != "GET") ++writes_;
  if (!kind) return act();
  return answer_with(*kind, request, act, [&] { wait_(deadline); });
}

HttpResult FaultyTransport::stream(const kube::HttpRequest& request,
                                   const std::function<bool(std::string_view line)>& on_line,
                                   std::chrono::milliseconds idle, std::stop_token stop) {
  const auto act = [&] { return server_.stream(request, on_line, idle, stop); };
  const std::optional<FaultKind> kind = meet(request);
  if (!kind) return act();
  if (*kind == FaultKind::kHtmlLogin) {
    on_line(kLoginPage);
    return HttpResponse{200, "", {}, {}};
  }
  return answer_with(*kind, request, act, [&] { wait_(idle); });
}

std::optional<HttpResult> FaultyTransport::begin_watch(const kube::HttpRequest& request,
                                                       std::chrono::milliseconds) {
  const std::optional<FaultKind> kind = meet(request);
  if (!kind) return std::nullopt;
  return answer_with(
      *kind, request, [] { return HttpResult(HttpFailure{}); }, [] {});
}

}  // namespace fettle::matrix
