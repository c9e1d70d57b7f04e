// How another process asks the runner of a Study for more or fewer workers of a trial: by a file
// beside the Study's database, which the runner alone writes to. The newest wish of a trial counts.
// Usable from any process and thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/local/layout.h"

namespace fettle::local {

struct WorkersWish {
  std::string trial;
  std::int64_t workers = 1;
};

// kUnavailable: nobody runs the Study who could hear it.
Status wish_workers(const Layout& layout, const WorkersWish& wish);

// All wishes there are; they are gone afterwards. For the runner.
std::vector<WorkersWish> take_wishes(const Layout& layout);

}  // namespace fettle::local
