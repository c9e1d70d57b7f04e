// The fields of Jobs and Pods that Fettle reads, as C++ values: caches hold these, never parsed
// JSON. Reading is lenient: a missing field is empty. Plain values; usable from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta/metadata.h"
#include "base/json.h"
#include "base/result.h"

namespace fettle::kube {

// A condition with status True; others are dropped.
struct TrueCondition {
  std::string type;
  std::string reason;
  std::string message;
  std::int64_t since_ms = 0;
};

// The controller of an object, from ownerReferences.
struct Owner {
  std::string kind;
  std::string name;
  std::string uid;
};

struct Job {
  api::Metadata metadata;
  std::optional<Owner> owner;
  std::int64_t completions = 1;
  std::int64_t deadline_seconds = 0;  // activeDeadlineSeconds; 0 = none
  bool suspended = false;
  std::int64_t active = 0;
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
  std::int64_t started_ms = 0;
  std::vector<TrueCondition> conditions;
  std::vector<std::string> scheduling_gates;  // of its pod template
};

struct Container {
  std::string name;
  std::string waiting_reason;  // ImagePullBackOff, CreateContainerConfigError ...
  std::string waiting_message;
  bool running = false;
  std::int64_t started_ms = 0;
  bool terminated = false;
  int exit_code = 0;
  std::string terminated_reason;  // OOMKilled, Error, Completed
  std::string termination_message;
  std::int64_t finished_ms = 0;
};

struct Pod {
  api::Metadata metadata;
  std::optional<Owner> owner;
  std::string node;
  std::string phase;  // Pending Running Succeeded Failed Unknown
  std::string reason;
  std::string message;
  std::int64_t started_ms = 0;
  std::int64_t doomed_ms = 0;  // when its deletion was requested; 0 = never
  std::vector<TrueCondition> conditions;
  std::string unschedulable;        // the scheduler's message; "" = none
  std::vector<std::string> claims;  // the PersistentVolumeClaims that it mounts
  std::vector<Container> containers;
};

Result<Job> read_job(const Json& object);
Result<Pod> read_pod(const Json& object);

const TrueCondition* find_condition(const std::vector<TrueCondition>& conditions,
                                    std::string_view type);

}  // namespace fettle::kube
