// fettle report: everything about a study as one HTML page.
#include <iostream>

#include "base/file.h"
#include "cli/commands/open_source.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/report/page.h"
#include "cli/report/trial_notes.h"
#include "cli/terminal/terminal.h"
#include "cli/views/expected_best.h"

namespace fettle::cli {

Result<int> report_command(const Target& place, const ReportOptions& options) {
  FETTLE_ASSIGN(const auto source, open_source(place));
  FETTLE_ASSIGN(SeenStudy seen, read_study(*source, options.study));
  const std::string& name = seen.view.study.metadata.name;
  expect_best(seen.view);
  Json data = page_data(seen.view);
  data.set("notes", trial_notes(*source, seen, options.no_logs ? Logs::kNone : Logs::kEnds));
  const std::string page = render_page(name, data);
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
