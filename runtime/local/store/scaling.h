// Lets another process ask the runner of a Study for more or fewer workers of a trial: by a file
// beside the Study's database, to which the runner alone writes. The newest request of a trial
// counts. Usable from any process and thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/local/store/layout.h"

namespace fettle::local {

struct WorkersRequest {
  std::string trial;
  std::int64_t workers = 1;
};

// kUnavailable: no runner has the Study.
Status request_workers(const Layout& layout, const WorkersRequest& request);

// Returns all requests and removes them. For the runner.
std::vector<WorkersRequest> take_workers_requests(const Layout& layout);

}  // namespace fettle::local
