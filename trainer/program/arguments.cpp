#include "trainer/program/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>
#include <utility>

#include "api/enum_names.h"

namespace fettle::trainer {
namespace {

using std::string_view;

// ---- Values ------------------------------------------------------------------------------------

Error wrong_value(string_view option, string_view text, const std::string& expected) {
  return invalid("--" + std::string(option) + " is \"" + std::string(text) + "\", expected " +
                 expected);
}

template <class T>
Status read_number(string_view option, string_view text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc() || end != text.data() + text.size() || to < T{}) {
    return wrong_value(option, text, "a number of at least 0");
  }
  return success();
}

Status read_gpus(string_view text, std::int64_t& to) {
  constexpr std::int64_t kMost = 64;
  FETTLE_TRY(read_number("gpus", text, to));
  if (to >= 1 && to <= kMost) return success();
  return wrong_value("gpus", text, "a number from 1 to 64");
}

Status read_batch(string_view text, std::int64_t& to) {
  FETTLE_TRY(read_number("batch", text, to));
  if (to >= 1) return success();
  return wrong_value("batch", text, "a number of at least 1");
}

template <class E>
Status read_name(string_view option, string_view text, E& to) {
  const auto value = api::from_string<E>(text);
  if (!value) return invalid("--" + std::string(option) + " has no \"" + std::string(text) + "\"");
  to = *value;
  return success();
}

Status read_output(string_view name, bool& as_json) {
  if (name != "text" && name != "json") return wrong_value("output", name, "text or json");
  as_json = name == "json";
  return success();
}

template <bool Arguments::*kFlag>
Status set(string_view /*text*/, Arguments& to) {
  to.*kFlag = true;
  return success();
}

// ---- The table ---------------------------------------------------------------------------------

constexpr string_view kTraining = "Training, with a trainer's configuration as FILE";
constexpr string_view kPlanning = "Without training";
constexpr string_view kBenchmarks = "Benchmarks";
constexpr string_view kGeneral = "General";
constexpr string_view kSections[] = {kTraining, kPlanning, kBenchmarks, kGeneral};

struct Option {
  string_view section;
  string_view name;
  string_view value;  // "": none; "[=X]": optional, then `text` below may be ""
  string_view help;
  Status (*read)(string_view text, Arguments& to);

  bool takes_value() const { return !value.empty(); }
  bool may_lack_value() const { return value.starts_with('['); }
};

const Option kOptions[] = {
    {kTraining, "seed", "N", "seed of weights, order, augmentation and dropout (0)",
     [](string_view text, Arguments& to) { return read_number("seed", text, to.by_hand.seed); }},
    {kTraining, "until-epoch", "N", "stop after N epochs (training.epochs)",
     [](string_view text, Arguments& to) {
       return read_number("until-epoch", text, to.by_hand.until_epoch.emplace());
     }},
    {kTraining, "checkpoints", "DIR", "write checkpoints there, and resume from the newest (none)",
     [](string_view text, Arguments& to) {
       to.by_hand.checkpoints = text;
       return success();
     }},
    {kTraining, "gpus", "N",
     "train on N GPUs of this machine, in one process each (those of the trial's worker, or 1); "
     "each counts as a worker",
     [](string_view text, Arguments& to) { return read_gpus(text, to.by_hand.gpus.emplace()); }},
    {kTraining, "profile", "[=STEPS]",
     "write a trace of some optimiser steps (10) for Perfetto, layer by layer, then stop as by "
     "SIGTERM but with exit code 0",
     [](string_view text, Arguments& to) {
       return read_number("profile", text.empty() ? "10" : text, to.profiled_steps.emplace());
     }},
    {kTraining, "trace", "PATH",
     "the file of --profile (trace.json beside the checkpoints; rank 3 of several workers writes "
     "trace.3.json)",
     [](string_view text, Arguments& to) {
       to.trace = text;
       return success();
     }},
    {kPlanning, "dry-run", "",
     "print the memory that the training in FILE needs, part by part, the largest maxPerWorker "
     "that fits this machine, and what a step costs",
     set<&Arguments::dry_run>},
    {kPlanning, "workers", "N", "with --dry-run: for N workers (those of the trial, or 1)",
     [](string_view text, Arguments& to) {
       return read_number("workers", text, to.workers.emplace());
     }},
    {kPlanning, "output", "text|json", "for people or for programs (text)",
     [](string_view text, Arguments& to) { return read_output(text, to.as_json); }},
    {kPlanning, "backends", "", "print which backends this build and machine have, as JSON",
     set<&Arguments::backends>},
    {kBenchmarks, "bench", "MODEL",
     "measure the training loop on synthetic samples; MODEL is mlp, cnn, resnet9, resnet18, "
     "resnet50, chargpt or gpt2",
     [](string_view text, Arguments& to) {
       to.benches = true;
       to.bench.model = text;
       return success();
     }},
    {kBenchmarks, "precision", "NAME", "auto, fp32, tf32, bf16 or fp16 (auto)",
     [](string_view text, Arguments& to) {
       return read_name("precision", text, to.bench.training.precision);
     }},
    {kBenchmarks, "residual-fp32", "",
     "with bf16 or fp16 of a GPT: its residual stream is fp32, as under torch.autocast",
     [](string_view, Arguments& to) {
       to.bench.training.residual_in_fp32 = true;
       return success();
     }},
    {kBenchmarks, "deterministic", "",
     "attention gives the same bits each time, at its price on a GPU",
     [](string_view, Arguments& to) {
       to.bench.training.deterministic = true;
       return success();
     }},
    {kBenchmarks, "backend", "NAME", "auto, reference, onednn or cuda (auto)",
     [](string_view text, Arguments& to) {
       return read_name("backend", text, to.bench.training.backend);
     }},
    {kBenchmarks, "threads", "N", "number of CPU threads",
     [](string_view text, Arguments& to) {
       return read_number("threads", text, to.bench.training.threads);
     }},
    {kBenchmarks, "batch", "N", "samples in each optimiser step (128)",
     [](string_view text, Arguments& to) {
       return read_batch(text, to.bench.training.global_batch.emplace());
     }},
    {kBenchmarks, "seconds", "X", "how long to measure, after a warm-up (3)",
     [](string_view text, Arguments& to) {
       return read_number("seconds", text, to.bench.seconds);
     }},
    {kGeneral, "help", "", "print this help", set<&Arguments::help>},
    {kGeneral, "version", "", "print the version", set<&Arguments::version>},
};

struct Entry {
  string_view name;
  string_view help;
};

constexpr Entry kEnvironment[] = {
    {"FETTLE_DATA_CACHE",
     "directory of decompressed data files, or \"off\" (fettle/data below $XDG_CACHE_HOME or "
     "~/.cache)"},
    {"FETTLE_KERNEL_CACHE",
     "directory of the library plans that were timed on this kind of GPU, or \"off\" "
     "(fettle/kernels "
     "below $XDG_CACHE_HOME or ~/.cache)"},
    {"FETTLE_CUDA_PLANS", "\"first\": run the plans that libraries rank first, and time none"},
    {"FETTLE_CUDA_STRICT",
     "\"1\": an error where a library has no plan, instead of our own kernels"},
    {"FETTLE_CUDA_BRANCHES",
     "\"1\": record the graph of a step with branches for gradients of weights (experimental)"},
    {"FETTLE_CUDA_GRAPHS", "\"0\": record no graphs"},
    {"FETTLE_CUDA_EPILOGUES", "\"0\": fuse nothing into the libraries' products"},
    {"FETTLE_CUDA_OWN", "\"1\": use only our own kernels"},
    {"FETTLE_REPORT",
     "\"kubernetes\": in a pod, also write status.report of the Trial, and stop when its spec says "
     "so"},
    {"RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
     "with several workers in a trial: which one this is, how many there are, and where they meet "
     "rank 0, which alone reports"},
    {"LOCAL_WORLD_SIZE",
     "set in a process that is already one of several for the GPUs of a worker; RANK and "
     "WORLD_SIZE count those"},
    {"FETTLE_RENDEZVOUS_TOKEN", "a secret that the workers of one trial share (none)"},
    {"FETTLE_RENDEZVOUS_SECONDS",
     "how long workers wait until all are there; 0: without limit (300)"},
    {"FETTLE_COLLECTIVE_SECONDS", "how long they wait for each other afterwards (300)"},
    {"FETTLE_CUDA_LIBRARY",
     "libfettle_cuda.so, where it is neither beside this program nor in ../lib"},
    {"FETTLE_TENSORBOARD",
     "an absolute directory for TensorBoard's event files; a trial's metrics go to STUDY/TRIAL "
     "below it"},
};

constexpr Entry kExitCodes[] = {
    {"0", "the last step is reached, or the measurement is done"},
    {"143", "stopped by SIGTERM or by the Trial, after a checkpoint (130: by SIGINT)"},
    {"1", "failed"},
    {"2", "the input is wrong; another try fails the same way"},
    {"75", "another worker of the trial did not come or was lost"},
};

// ---- Help --------------------------------------------------------------------------------------

constexpr std::size_t kColumns = 80;
constexpr std::size_t kHelpColumn = 24;

// `name` on the left, `help` wrapped on the right; a name that is too long gets its own line.
std::string entry_text(const std::string& name, string_view help) {
  std::string text;  // the completed lines
  std::string line = "  " + name;
  if (line.size() + 2 > kHelpColumn) text = std::exchange(line, "") + "\n";
  line.resize(kHelpColumn, ' ');
  while (!help.empty()) {
    const std::size_t end = std::min(help.find(' '), help.size());  // of the next word
    if (line.size() + end > kColumns) {
      while (line.ends_with(' ')) line.pop_back();
      text += line + "\n";
      line = std::string(kHelpColumn, ' ');
    }
    line += std::string(help.substr(0, end)) + " ";
    help.remove_prefix(std::min(end + 1, help.size()));
  }
  line.pop_back();  // the blank behind the last word
  return text + line + "\n";
}

std::string entries_text(string_view title, std::span<const Entry> entries) {
  std::string text = "\n" + std::string(title) + ":\n";
  for (const Entry& entry : entries) text += entry_text(std::string(entry.name), entry.help);
  return text;
}

std::string shown(const Option& option) {
  const bool separate = option.takes_value() && !option.may_lack_value();
  return "--" + std::string(option.name) + (separate ? " " : "") + std::string(option.value);
}

// ---- Parsing -----------------------------------------------------------------------------------

const Option* find_option(string_view name) {
  for (const Option& option : kOptions) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

Error see_help(const std::string& what) { return invalid(what + "; see fettle-trainer --help"); }

// argv[i] is an option; advances i to its value if that is the next argument.
Status take_option(std::span<const char* const> argv, std::size_t& i, Arguments& to) {
  const string_view argument = string_view(argv[i]).substr(2);
  const std::size_t equals = argument.find('=');
  const std::string name(argument.substr(0, equals));
  const Option* const option = find_option(name);
  if (option == nullptr) return see_help("there is no option --" + name);
  if (equals != string_view::npos) {
    if (!option->takes_value()) return see_help("--" + name + " takes no value");
    return option->read(argument.substr(equals + 1), to);
  }
  if (!option->takes_value() || option->may_lack_value()) return option->read("", to);
  if (i + 1 == argv.size()) {
    return see_help("--" + name + " needs a value, " + std::string(option->value));
  }
  return option->read(argv[++i], to);
}

}  // namespace

std::string help_text() {
  std::string text =
      "Usage: fettle-trainer [OPTIONS] [FILE]\n\n"
      "Trains the trial or the configuration in FILE (JSON), without FILE the one that\n"
      "FETTLE_TRIAL names. Reports go to standard output, one JSON object a line;\n"
      "messages for people go to standard error.\n";
  for (const string_view section : kSections) {
    text += "\n" + std::string(section) + ":\n";
    for (const Option& option : kOptions) {
      if (option.section == section) text += entry_text(shown(option), option.help);
    }
  }
  return text + entries_text("Environment", kEnvironment) + entries_text("Exit codes", kExitCodes);
}

Result<Arguments> read_arguments(int argc, const char* const* argv) {
  const std::span<const char* const> all(argv, static_cast<std::size_t>(argc));
  Arguments arguments;
  bool options_end = false;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const string_view argument = all[i];
    if (!options_end && argument == "--") {
      options_end = true;
    } else if (!options_end && argument.starts_with("--")) {
      FETTLE_TRY(take_option(all, i, arguments));
    } else if (!options_end && argument.size() > 1 && argument.starts_with('-')) {
      return see_help("there is no option " + std::string(argument));
    } else if (!arguments.file.empty()) {
      return see_help("more than one file: " + arguments.file + " and " + std::string(argument));
    } else {
      arguments.file = argument;
    }
  }
  const char* const trial = std::getenv("FETTLE_TRIAL");
  if (arguments.file.empty() && trial != nullptr) arguments.file = trial;
  return arguments;
}

}  // namespace fettle::trainer
