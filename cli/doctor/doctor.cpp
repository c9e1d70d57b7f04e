// fettle doctor: the resources of this machine, and the one that limits a configuration.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <utility>

#include "base/file.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/doctor/doctor_case.h"
#include "cli/doctor/doctor_page.h"
#include "cli/doctor/trainer_program.h"
#include "runtime/local/process/proc_table.h"
#include "runtime/local/run/claims.h"
#include "runtime/local/store/network_disk.h"

namespace fettle::cli {
namespace {

// A file for the trainer to read; deleted with the object.
class ScratchFile {
 public:
  static Result<ScratchFile> create(const std::string& content) {
    std::string name = (std::filesystem::temp_directory_path() / "fettle-doctor-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    if (fd < 0) return io_error("cannot make a file in " + name);
    ::close(fd);
    ScratchFile file(name);
    FETTLE_TRY(write_file(name, content));
    return file;
  }
  ~ScratchFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  ScratchFile(ScratchFile&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchFile& operator=(ScratchFile&&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<Json> dry_run(const DoctorCase& about) {
  FETTLE_ASSIGN(const ScratchFile file, ScratchFile::create(about.trainer->dump()));
  return ask_trainer(
      {"--dry-run", "--output", "json", "--workers", std::to_string(about.workers), file.path()},
      about.directory);
}

bool is_ready(const Json& backends, const std::string& name) {
  const Json* const state = backends.find(name);
  return state != nullptr && state->is_string() && state->as_string() == "ready";
}

// Makes the checks that need no arithmetic.
void check_parts(const Examination& examination, const DoctorCase& about,
                 machine::Verdict& verdict) {
  if (!about.cannot_run.empty()) verdict.missing.push_back(about.cannot_run);
  const bool named = !about.backend.empty() && about.backend != "auto";
  if (named && !is_ready(examination.backends, about.backend)) {
    const Json* const state = examination.backends.find(about.backend);
    const bool said = state != nullptr && state->is_string();
    verdict.missing.push_back("backend " + about.backend + ": " +
                              (said ? state->as_string() : "this fettle-trainer has none"));
  }
}

// `dry`: the output of `fettle-trainer --dry-run`, from which `need` was read.
void weigh(const Examination& examination, const Json& dry, const machine::Need& need,
           Diagnosis& to) {
  const bool wants_gpu = to.about.backend == "auto" || to.about.backend == "cuda";
  const bool on_gpu = wants_gpu && is_ready(examination.backends, "cuda");
  const machine::Rates rates = machine::rates_for(examination.machine, need, on_gpu);
  to.need = need;
  to.device = rates.device;
  to.device_memory = rates.memory;
  to.verdict = machine::judge(examination.machine, need, rates, to.about.checkpoints_kept);
  // The samples that fit the memory of this machine, not that of a GPU.
  const Json* const memory = dry.find("memory");  // present: read_need() has read from it
  if (const Json* const fitting = memory->find("samples_fitting"); fitting != nullptr && !on_gpu) {
    to.samples_fitting = fitting->as_integer();
  }
  if (const Json* const count = dry.find("parameters")) to.parameters = count->as_integer();
  const std::int64_t all =
      need.memory * need.world_size * to.about.trials_at_once;  // need.memory: of one worker
  if (!on_gpu && to.about.trials_at_once > 1 && all > rates.memory) {
    to.verdict.notes.push_back(std::to_string(to.about.trials_at_once) +
                               " trials at once do not fit the memory; lower budget.parallelism");
  }
}

Diagnosis diagnose(const Examination& examination, DoctorCase about) {
  Diagnosis diagnosis;
  diagnosis.about = std::move(about);
  if (!diagnosis.about.trainer) {
    diagnosis.verdict.notes.push_back(
        "its trials run a program of their own, of whose needs nothing is known");
  } else {
    const auto dry = dry_run(diagnosis.about);
    const auto need = dry.ok() ? machine::read_need(*dry) : Result<machine::Need>(dry.error());
    if (need.ok()) weigh(examination, *dry, *need, diagnosis);
    if (!need.ok()) diagnosis.verdict.missing.push_back(need.error().message);
  }
  check_parts(examination, diagnosis.about, diagnosis.verdict);
  return diagnosis;
}

// Finds the resources that trials may use here, and the resources in use. Claims without a run
// claims nothing; it tells whether the directory that all Sessions share can be used.
Shared look_around() {
  Shared shared;
  shared.room = local::this_machine();
  shared.directory = local::claims_directory();
  shared.problem = local::Claims("doctor", shared.room, shared.directory).problem();
  if (shared.problem.empty()) shared.claims = local::read_claims(shared.directory);
  return shared;
}

}  // namespace

Result<int> doctor_command(const Target& place, const DoctorOptions& options) {
  DoctorCases found;
  if (!options.file.empty()) found = read_doctor_cases(options.file);
  for (const api::Diagnostic& diagnostic : found.diagnostics) {
    std::cerr << api::to_string(diagnostic) << '\n';
  }
  if (!found.diagnostics.empty()) return kExitInvalid;
  Examination examination;
  examination.machine = machine::inspect_machine(place.root);
  examination.shared = look_around();
  examination.processes = local::trouble_with_proc();
  const auto backends = ask_trainer({"--backends"});
  if (backends.ok()) examination.backends = *backends;
  if (!backends.ok()) examination.trainer_missing = backends.error().message;
  int code = kExitSucceeded;
  for (DoctorCase& about : found.cases) {
    examination.diagnoses.push_back(diagnose(examination, std::move(about)));
    if (!examination.diagnoses.back().verdict.missing.empty()) code = kExitFailed;
  }
  const std::string& directory = examination.machine.disk.directory;
  const std::string network = local::network_file_system(directory);
  if (!network.empty()) {
    std::cerr << "fettle: " << local::network_warning(directory, network) << '\n';
  }
  if (options.output == Output::kJson) {
    std::cout << doctor_json(examination).dump() << '\n';
  } else {
    std::cout << doctor_text(examination);
  }
  return code;
}

}  // namespace fettle::cli
