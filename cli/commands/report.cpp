// fettle report: everything about a study as one HTML page.
#include <iostream>

#include "base/file.h"
#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/report/page.h"
#include "cli/terminal/terminal.h"

namespace fettle::cli {

Result<int> report_command(const Target& place, const ReportOptions& options) {
  FETTLE_ASSIGN(const SeenStudy seen, read_study(place, options.study));
  const std::string& name = seen.view.study.metadata.name;
  const std::string page = render_page(name, page_data(seen.view));
  if (options.file == "-") {
    write_stdout(page);
    return kExitSucceeded;
  }
  const std::string file = options.file.empty() ? name + ".html" : options.file;
  FETTLE_TRY(write_file(file, page));
  std::cout << "Wrote " << file << ".\n";
  return kExitSucceeded;
}

}  // namespace fettle::cli
