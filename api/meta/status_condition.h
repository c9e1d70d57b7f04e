// StatusCondition: one condition in the status of a Study or a Trial, as Kubernetes has them.
#pragma once

#include <cstdint>
#include <string>

namespace fettle::api {

// A metav1.Condition. Types of a Study: Running, Waiting, Blocked, Suspended, Succeeded, Failed.
struct StatusCondition {
  std::string type;
  bool status = false;
  std::string reason;         // CamelCase, for machines
  std::string message;        // for people
  std::int64_t since_ms = 0;  // when `status` last changed, Unix milliseconds
  bool operator==(const StatusCondition&) const = default;
};

}  // namespace fettle::api
