// Embedded files: files of the source tree inside the program, as they were when it was built
// (cmake/embed.cmake).
#pragma once

#include <string_view>
#include <vector>

namespace fettle::cli {

struct EmbeddedFile {
  std::string_view name;  // "style.css"
  std::string_view bytes;
};

const std::vector<EmbeddedFile>& page_parts();  // of the report page (report/report.cmake)
const std::vector<EmbeddedFile>& live_parts();  // of `fettle serve` (serve/serve.cmake)
const std::vector<EmbeddedFile>& init_files();  // of `fettle init` (init/init.cmake)

}  // namespace fettle::cli
