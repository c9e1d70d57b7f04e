// The files that the report page is made of, as they were when fettle was built (report.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace fettle::cli {

struct PagePart {
  std::string_view name;  // "style.css"
  std::string_view bytes;
};

const std::vector<PagePart>& page_parts();

}  // namespace fettle::cli
