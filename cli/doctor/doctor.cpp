// fettle doctor: the resources of this machine for the trials of studies, and warnings.
#include <iostream>

#include "base/program.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/doctor/doctor_page.h"
#include "runtime/local/process/proc_table.h"
#include "runtime/local/run/claims.h"
#include "runtime/local/session.h"
#include "runtime/local/store/network_disk.h"
#include "runtime/local/worker/worker_list.h"

namespace fettle::cli {
namespace {

// Returns {"reference": "ready", ...}.
Result<Json> backends_of_trainer() {
  const std::string trainer = local::find_trainer();
  const auto end = run_program({.command = {trainer, "--backends"}, .keeps_errors = true});
  if (!end.ok()) return Error(end.error()).in(trainer);
  if (const std::string why = end->failure(); !why.empty()) return invalid(trainer + ": " + why);
  auto answer = parse_json(end->output);
  if (!answer.ok()) return io_error(trainer + " printed no JSON: " + answer.error().message);
  return answer;
}

// Finds the resources that trials may use here, and the resources in use. Claims without a run
// claims nothing; it tells whether the directory that all Sessions share can be used.
Shared look_around(const std::string& root) {
  Shared shared;
  shared.room = local::this_machine();
  shared.directory = local::claims_directory();
  shared.problem = local::Claims("doctor", shared.room, shared.directory).problem();
  if (shared.problem.empty()) shared.claims = local::read_claims(shared.directory);
  for (const std::string& study : local::recorded_studies(root)) {
    const std::string workers =
        local::describe(local::read_workers(local::make_layout(root, study)));
    if (!workers.empty()) shared.workers.push_back(study + ": " + workers);
  }
  return shared;
}

std::vector<std::string> warnings_about(const machine::Disk& disk) {
  std::vector<std::string> out;
  if (!disk.writable) {
    out.push_back("cannot write to " + disk.directory +
                  ", so no study runs there; choose another place: fettle -C DIR");
  }
  const std::string network = local::network_file_system(disk.directory);
  if (!network.empty()) out.push_back(local::network_warning(disk.directory, network));
  if (const std::string proc = local::trouble_with_proc(); !proc.empty()) out.push_back(proc);
  return out;
}

}  // namespace

Result<int> doctor_command(const Target& place, const DoctorOptions& options) {
  Examination examination;
  examination.machine = machine::inspect_machine(place.root);
  examination.shared = look_around(place.root);
  const auto backends = backends_of_trainer();
  if (backends.ok()) examination.backends = *backends;
  if (!backends.ok()) examination.trainer_missing = backends.error().message;
  examination.warnings = warnings_about(examination.machine.disk);
  if (options.output == Output::kJson) {
    std::cout << doctor_json(examination).dump() << '\n';
  } else {
    std::cout << doctor_text(examination);
  }
  return examination.machine.disk.writable ? kExitSucceeded : kExitFailed;
}

}  // namespace fettle::cli
