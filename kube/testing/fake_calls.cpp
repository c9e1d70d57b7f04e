#include "kube/testing/fake_calls.h"

#include "kube/testing/fake_target.h"

namespace fettle::kube {
namespace {

std::string verb_of(const HttpRequest& request, const FakeTarget& target) {
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "DELETE") return "delete";
  if (request.method == "PATCH") {
    return request.content_type == "application/apply-patch+yaml" ? "apply" : "patch";
  }
  if (target.subresource == "log") return "log";
  if (target.param("watch") == "true") return "watch";
  return target.key.name.empty() ? "list" : "get";
}

// "/trials" of the core group is "trials".
std::string resource_of(const FakeTarget& target) {
  std::string out = target.collection;
  if (out.starts_with('/')) out.erase(0, 1);
  return target.subresource.empty() ? out : out + '/' + target.subresource;
}

bool fits(const ApiCall& row, const CallSeen& seen, const HttpRequest& request) {
  if (row.verb != seen.verb || row.resource != seen.resource) return false;
  return row.mark.empty() || request.target.find(row.mark) != std::string::npos ||
         request.body.find(row.mark) != std::string::npos;
}

}  // namespace

std::optional<CallSeen> call_of(const HttpRequest& request) {
  const std::optional<FakeTarget> target = parse_target(request.target);
  if (!target) return std::nullopt;
  return CallSeen{verb_of(request, *target), resource_of(*target)};
}

const ApiCall* find_row(const HttpRequest& request, std::optional<Caller> caller) {
  const std::optional<CallSeen> seen = call_of(request);
  if (!seen) return nullptr;
  for (const ApiCall& row : kApiCalls) {
    if ((!caller || *caller == row.caller) && fits(row, *seen, request)) return &row;
  }
  return nullptr;
}

std::string describe(const ApiCall& call) {
  constexpr const char* kCallers[] = {"operator", "trainer", "fettle"};
  return std::string(kCallers[static_cast<int>(call.caller)]) + ": " + std::string(call.verb) +
         ' ' + std::string(call.resource) + " (" + std::string(call.purpose) + ')';
}

}  // namespace fettle::kube
