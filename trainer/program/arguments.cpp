#include "trainer/program/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "api/fields/enum_names.h"
#include "api/study/study_rules.h"
#include "trainer/files/export.h"

namespace fettle::trainer {
namespace {

using std::string_view;

// ---- Options -----------------------------------------------------------------------------------

constexpr const char* kTraining = "Training, with a trainer's configuration as FILE";
constexpr const char* kWorker = "As a worker";
constexpr const char* kPlanning = "Without training";
constexpr const char* kBenchmarks = "Benchmarks";
constexpr const char* kGeneral = "General";
constexpr const char* kSections[] = {kTraining, kWorker, kPlanning, kBenchmarks, kGeneral};

constexpr int kMostGpus = 64;
constexpr int kNoLimit = 0;

// Reads decimal digits alone, where CLI11's own conversion takes 010 for 8.
template <class T>
T number_in(const std::string& flag, const std::string& text, int least, int most) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && number >= static_cast<T>(least) &&
      (most == kNoLimit || number <= static_cast<T>(most))) {
    return number;
  }
  const std::string limits = most == kNoLimit
                                 ? "of at least " + std::to_string(least)
                                 : "from " + std::to_string(least) + " to " + std::to_string(most);
  throw CLI::ValidationError(flag, "\"" + text + "\" is not a number " + limits);
}

// `To`: T, or an optional T.
template <class T, class To>
CLI::Option* add_number(CLI::App& app, const std::string& flag, To& to, const std::string& help,
                        int least = 0, int most = kNoLimit) {
  const auto set = [&to, flag, least, most](const std::string& text) {
    to = number_in<T>(flag, text, least, most);
  };
  return app.add_option_function<std::string>(flag, set, help)->type_name("N");
}

template <class E>
void add_choice(CLI::App& app, const std::string& flag, E& to, const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [value, name] : api::enum_names<E>()) names.emplace_back(name);
  app.add_option_function<std::string>(
         flag, [&to](const std::string& name) { to = *api::from_string<E>(name); }, help)
      ->check(CLI::IsMember(names))
      ->type_name("NAME");
}

// `action` is called if the flag is given, which takes no value.
void add_flag(CLI::App& app, const std::string& flag, const std::function<void()>& action,
              const std::string& help) {
  app.add_flag_callback(flag, action, help)->check([](const std::string& value) {
    return value == "true" ? std::string() : std::string("takes no value");
  });
}
void add_flag(CLI::App& app, const std::string& flag, bool& to, const std::string& help) {
  add_flag(
      app, flag, [&to] { to = true; }, help);
}

void add_training(CLI::App& app, Arguments& to) {
  app.option_defaults()->group(kTraining);
  add_number<std::uint64_t>(app, "--seed", to.overrides.seed,
                            "seed of weights, order, augmentation and dropout (0)");
  add_number<std::int64_t>(app, "--until-epoch", to.overrides.until_epoch,
                           "stop after N epochs (training.epochs)");
  app.add_option("--checkpoints", to.overrides.checkpoints,
                 "write checkpoints there, and resume from the newest (none)")
      ->type_name("DIR");
  add_number<std::int64_t>(
      app, "--gpus", to.overrides.gpus,
      "train on N GPUs of this machine, in one process each (those of the trial's worker, or 1); "
      "each counts as a worker",
      /*least=*/1, kMostGpus);
  // {10}: the value of a bare --profile, in CLI11's notation. A flag, so that the next argument is
  // not its value; read_arguments() reads the value.
  app.add_flag("--profile{10}")
      ->description(
          "write a trace of some optimiser steps (10) for Perfetto, layer by layer, then stop "
          "as by SIGTERM but with exit code 0")
      ->type_name("[=STEPS]");
  app.add_option("--trace", to.trace,
                 "the file of --profile (trace.json beside the checkpoints; rank 3 of several "
                 "workers writes trace.3.json)")
      ->type_name("PATH");
}

void add_worker(CLI::App& app, Arguments& to) {
  app.option_defaults()->group(kWorker);
  add_flag(
      app, "--worker", to.worker,
      "train one trial after another, as fettle run assigns them, and keep data, libraries and "
      "plans between them");
  add_number<std::int64_t>(app, "--slots", to.slots,
                           "with --worker: train N trials at once (FETTLE_WORKER_SLOTS, or 1)",
                           /*least=*/1, static_cast<int>(api::kMostSlots));
}

void add_planning(CLI::App& app, Arguments& to) {
  app.option_defaults()->group(kPlanning);
  add_flag(app, "--dry-run", to.dry_run,
           "print the memory that the training in FILE needs, part by part, the largest "
           "maxPerWorker that fits this machine, and what a step costs");
  add_number<std::int64_t>(app, "--workers", to.workers,
                           "with --dry-run: for N workers (those of the trial, or 1)");
  app.add_option_function<std::string>(
         "--output", [&to](const std::string& name) { to.as_json = name == "json"; },
         "for people or for programs (text)")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("text|json");
  app.add_option("--predict", to.predict,
                 "write the logits of the newest checkpoint, that of FILE or in --checkpoints, for "
                 "the validation samples (fp32, numpy.save)")
      ->type_name("PATH");
  app.add_option("--inputs", to.inputs,
                 "with --predict: for the samples in PATH instead, images or token ids by "
                 "numpy.save")
      ->type_name("PATH");
  app.add_option("--export", to.export_to,
                 "write the network of the newest checkpoint, that of FILE or in --checkpoints, as "
                 "a file for other programs")
      ->type_name("PATH");
  app.add_option("--format", to.format,
                 "with --export: onnx, safetensors, or torch, a Python module with its weights "
                 "beside it (safetensors)")
      ->check(CLI::IsMember(export_formats()))
      ->type_name("NAME");
  app.add_option("--origin", to.origin,
                 "with --export: the study and trial that the file names as its origin (those of "
                 "the trial file)")
      ->type_name("STUDY/TRIAL");
  add_flag(app, "--int8", to.int8,
           "with --export --format onnx, and with --predict: the 8-bit network that the trial has "
           "validated (training.quantize)");
  add_flag(app, "--force", to.force, "with --export: replace a file that exists");
  add_flag(app, "--backends", to.backends,
           "print which backends this build and machine have, as JSON");
}

void add_benchmarks(CLI::App& app, Arguments& to) {
  app.option_defaults()->group(kBenchmarks);
  app.add_option("--bench", to.bench.model,
                 "measure the training loop on synthetic samples; MODEL is mlp, cnn, resnet9, "
                 "resnet18, resnet50, chargpt or gpt2")
      ->type_name("MODEL");
  api::TrainingConfig& training = to.bench.training;
  add_choice(app, "--precision", training.precision, "auto, fp32, tf32, bf16 or fp16 (auto)");
  add_flag(app, "--residual-fp32", training.residual_in_fp32,
           "with bf16 or fp16 of a GPT: its residual stream is fp32, as under torch.autocast");
  add_flag(
      app, "--deterministic", [&training] { training.deterministic = true; },
      "attention gives the same bits each time, at its price on a GPU");
  add_choice(app, "--backend", training.backend, "auto, reference, onednn or cuda (auto)");
  add_number<std::int64_t>(app, "--threads", training.threads, "number of CPU threads");
  add_number<std::int64_t>(app, "--batch", training.global_batch,
                           "samples in each optimiser step (128)", /*least=*/1);
  add_number<double>(app, "--seconds", to.bench.seconds, "how long to measure, after a warm-up (3)")
      ->type_name("X");
}

// `to` receives the values when `app` parses; it must live until then.
void describe(CLI::App& app, Arguments& to) {
  app.set_help_flag();  // the one below prints after all errors are known
  app.allow_extras();   // read_arguments() refuses them
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("FILE", to.file)->envname("FETTLE_TRIAL");
  add_training(app, to);
  add_worker(app, to);
  add_planning(app, to);
  add_benchmarks(app, to);
  app.option_defaults()->group(kGeneral);
  add_flag(app, "--help", to.help, "print this help");
  add_flag(app, "--version", to.version, "print the version");
}

// ---- Help --------------------------------------------------------------------------------------

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
    {"FETTLE_WORKER_FD, ..._NONCE, ..._VERSION, ..._SLOTS",
     "with --worker, set by fettle run: where assignments come from, what begins each answer, "
     "the protocol's version, and how many trials to train at once (1)"},
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

std::string shown(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "text|json:{text,json}"
  const std::string value = type.substr(0, type.find(':'));
  const bool separate = !value.empty() && value.front() != '[';
  return "--" + option.get_lnames().front() + (separate ? " " : "") + value;
}

Error see_help(const std::string& what) { return invalid(what + "; see fettle-trainer --help"); }

}  // namespace

std::string help_text() {
  Arguments unused;
  CLI::App app;
  describe(app, unused);
  std::string text =
      "Usage: fettle-trainer [OPTIONS] [FILE]\n\n"
      "Trains the trial or the configuration in FILE (JSON), without FILE the one that\n"
      "FETTLE_TRIAL names. Reports go to standard output, one JSON object a line;\n"
      "messages for people go to standard error.\n";
  for (const char* section : kSections) {
    text += "\n" + std::string(section) + ":\n";
    const auto is_here = [section](const CLI::Option* one) { return one->get_group() == section; };
    for (const CLI::Option* option : std::as_const(app).get_options(is_here)) {
      text += entry_text(shown(*option), option->get_description());
    }
  }
  return text + entries_text("Environment", kEnvironment) + entries_text("Exit codes", kExitCodes);
}

Result<Arguments> read_arguments(int argc, const char* const* argv) {
  Arguments arguments;
  CLI::App app;
  describe(app, arguments);
  try {
    app.parse(argc, argv);
    if (app.count("--profile") > 0) {
      const auto steps = app.get_option("--profile")->as<std::string>();
      arguments.profiled_steps = number_in<std::int64_t>("--profile", steps, /*least=*/0, kNoLimit);
    }
  } catch (const CLI::ParseError& error) {
    return see_help(error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra == "--") continue;
    if (extra.starts_with('-')) {
      return see_help("there is no option " + extra.substr(0, extra.find('=')));
    }
    return see_help("more than one file: " + arguments.file + " and " + extra);
  }
  arguments.benches = app.count("--bench") > 0;
  return arguments;
}

}  // namespace fettle::trainer
