// The command line of fettle-trainer. CLI11 parses it; every option is described once, with its
// section, value, help and effect.
//
// Pure but for the environment variable FETTLE_TRIAL. Used once, before there are threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/program/bench.h"
#include "trainer/program/process_task.h"

namespace fettle::trainer {

struct Arguments {
  std::string file;  // a trial file or a trainer's configuration; "": none
  CliOverrides overrides;
  BenchSettings bench;
  bool benches = false;
  bool dry_run = false;
  std::optional<std::int64_t> profiled_steps;
  std::string trace;      // "": beside the checkpoints
  std::string predict;    // the file of logits; "": none
  std::string inputs;     // "": the validation samples
  std::string export_to;  // "": no export
  std::string format = "safetensors";
  std::string origin;  // STUDY/TRIAL; "": that of the trial file
  bool int8 = false;   // of the export, and of the predictions
  bool force = false;
  bool backends = false;
  bool as_json = false;
  std::optional<std::int64_t> workers;
  bool worker = false;
  std::optional<std::int64_t> slots;
  bool help = false;
  bool version = false;
};

// Errors: an unknown option; a missing, unexpected or out-of-range value; several files.
Result<Arguments> read_arguments(int argc, const char* const* argv);

// The output of --help: options, environment variables and exit codes, at most 80 columns wide.
std::string help_text();

}  // namespace fettle::trainer
