// fettle: the command line. A table of the commands (commands.h) with their options. Beside help/
// the only file of cli/ that uses CLI11.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "api/fields/nearest.h"
#include "base/thread.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/help/option_tree.h"
#include "cli/help/pages.h"
#include "cli/suggest/suggest.h"
#include "cli/terminal/text.h"
#include "runtime/local/process/supervisor.h"

namespace fettle::cli {
namespace {

const std::map<std::string, Output> kOutputs = {{"text", Output::kText},   {"csv", Output::kCsv},
                                                {"json", Output::kJson},   {"yaml", Output::kYaml},
                                                {"values", Output::kYaml}, {"env", Output::kEnv}};

// The options that every command has.
struct Common {
  std::string directory = ".";
  std::string on;  // local or cluster
  bool is_plugin = false;
  Target place;
};

using Action = std::function<Result<int>(const Common&)>;

struct Command {
  const char* name;
  const char* help;                          // "" = not listed
  std::function<Action(CLI::App& app)> add;  // adds the options; the action runs with them
  const char* footer;                        // of --help
};

// A command of commands.h, whose options `add` declares. They live as long as the action.
template <class Options, class Add>
Command command(const char* name, const char* help,
                Result<int> (*run)(const Target&, const Options&), Add add, const char* footer) {
  const auto add_all = [run, add](CLI::App& app) -> Action {
    const auto options = std::make_shared<Options>();
    add(app, *options);
    return [run, options](const Common& common) { return run(common.place, *options); };
  };
  return {name, help, add_all, footer};
}

// Adds --output with some of the names in kOutputs.
void add_output(CLI::App& app, Output& output, const std::vector<std::string>& names) {
  app.add_option_function<std::string>(
         "--output", [&output](const std::string& name) { output = kOutputs.at(name); },
         "Output format; default: text")
      ->check(CLI::IsMember(names))
      ->type_name("");
}

void add_study(CLI::App& app, std::string& study) {
  app.add_option("study", study, "Name of the study; default: the only or the newest one");
}

void add_trial(CLI::App& app, std::string& trial) {
  app.add_option("trial", trial, "Name of the trial, such as digits-3")->required();
}

Result<int> run_with(const Common& common, RunOptions options) {
  options.resume = common.place.program + " run " + shell_word(options.file);
  if (!options.study.empty()) options.resume += " --study " + shell_word(options.study);
  if (options.parallelism) {
    options.resume += " --parallelism " + std::to_string(*options.parallelism);
  }
  if (!options.tensorboard.empty()) {
    options.resume += " --tensorboard " + shell_word(options.tensorboard);
    if (common.place.on_cluster) {
      return invalid("--tensorboard writes to this machine; it does not go with --on cluster");
    }
  }
  return run_command(common.place, options);
}

Action add_run(CLI::App& app) {
  const auto options = std::make_shared<RunOptions>();
  app.add_option("file", options->file, "Study file (YAML)")->required();
  add_output(app, options->output, {"text", "json"});
  app.add_option("--study", options->study, "Name of the Study, for a file with several");
  app.add_option("--parallelism", options->parallelism, "Maximum number of trials at once")
      ->type_name("N");
  app.add_flag("--fresh", options->fresh, "Start over; the old study is moved aside, not deleted");
  app.add_option("--tensorboard", options->tensorboard,
                 "Directory for TensorBoard's event files of every trial of the built-in trainer")
      ->type_name("DIR");
  return [options](const Common& common) { return run_with(common, *options); };
}

Action add_validate(CLI::App& app) {
  const auto options = std::make_shared<ValidateOptions>();
  app.add_option("files", options->files, "Study files; - is standard input")->required();
  return [options](const Common& common) {
    options->anywhere = common.on.empty() && !common.is_plugin;
    return validate_command(common.place, *options);
  };
}

Action add_convert(CLI::App& app) {
  const auto options = std::make_shared<ConvertOptions>();
  app.add_option("files", options->files, "Experiments (YAML); - is standard input")->required();
  app.add_option("--from", options->from, "The tuner that the files are of: katib (default)")
      ->check(CLI::IsMember(convert_sources()))
      ->type_name("");
  app.add_option("--steps", options->steps,
                 "Steps of a trial, which an Experiment does not say; early stopping needs them")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->type_name("N");
  app.add_option("-o,--output", options->output,
                 "Study file to write, - for standard output (default)")
      ->type_name("FILE");
  return [options](const Common& /*common*/) { return convert_command(*options); };
}

Action add_init(CLI::App& app) {
  const auto options = std::make_shared<InitOptions>();
  app.add_option("kind", options->kind, "python (default), shell or trainer")
      ->check(CLI::IsMember(init_kinds()))
      ->type_name("");
  return [options](const Common& /*common*/) { return init_command(*options); };
}

Action add_import(CLI::App& app) {
  const auto options = std::make_shared<ImportOptions>();
  app.add_option("source", options->source,
                 "optuna: URL of a storage; ray: folder; else a CSV file")
      ->required();
  app.add_option("--from", options->from, "optuna, ray, wandb or csv")
      ->required()
      ->check(CLI::IsMember(import_sources()))
      ->type_name("");
  app.add_option("--study", options->study, "optuna: name of the study; default: the only one")
      ->type_name("NAME");
  app.add_option("--objective", options->objectives,
                 "Metric of an objective, as the new Study calls it; again for a second one")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("--parameter", options->parameters,
                 "csv, wandb: column of a parameter; default: every other column")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_option("-o,--output", options->file, "File to write; default: standard output")
      ->type_name("FILE");
  return [options](const Common& /*common*/) { return import_command(*options); };
}

Action add_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(completion_shells()))
      ->type_name("");
  return [shell, &app](const Common& /*common*/) {
    std::cout << completion_script(*app.get_parent(), *shell);
    return kExitSucceeded;
  };
}

// For packagers of fettle.
Action add_pages(CLI::App& app) {
  const auto format = std::make_shared<std::string>();
  app.add_option("format", *format)->required()->check(CLI::IsMember({"man", "markdown"}));
  return [format, &app](const Common& /*common*/) {
    const CLI::App& all = *app.get_parent();
    std::cout << (*format == "man" ? man_page(all) : commands_page(all));
    return kExitSucceeded;
  };
}

// fettle starts it internally.
Action add_supervise(CLI::App& app) {
  const auto control_fd = std::make_shared<int>(-1);
  app.add_option("--fd", *control_fd)->required();
  return [control_fd](const Common& /*common*/) { return local::run_supervisor(*control_fd); };
}

Action add_suggest(CLI::App& app) {
  const auto study = std::make_shared<std::string>();
  app.add_option("--study", *study,
                 "Keep the study under this name, and continue it if it is there")
      ->type_name("NAME");
  return [study](const Common& common) -> Result<int> {
    if (common.place.on_cluster) return invalid("fettle suggest works on this machine only");
    std::ios::sync_with_stdio(false);  // a search may ask hundreds of thousands of times
    if (study->empty()) return run_suggest(std::cin, std::cout);
    return run_suggest(std::cin, std::cout, SuggestPlace{common.place.root, *study});
  };
}

// In the order of --help.
const Command kCommands[] = {
    Command{
        "init", "Write a study to begin from, which runs as it is", add_init,
        R"(Writes study.yaml and a program, or a text for the built-in trainer, into this directory;
never over a file. Example:
  fettle init python && fettle run study.yaml)"},
    Command{"run", "Run a study to its end, here or on a cluster", add_run,
            R"(Running the same file again resumes the study. Ctrl-C stops the trials gently.
With --on cluster, applies the Study and follows it; Ctrl-C only stops following.
Exit codes: 0 succeeded, 1 failed, 2 invalid input, 3 environment, 130 interrupted.
Examples:
  fettle run examples/shell.yaml
  fettle run study.yaml --output json | tail -1
  fettle run --on cluster -n team study.yaml)"},
    command(
        "stop", "Stop a study that runs; it can be resumed", stop_command,
        [](CLI::App& app, StopOptions& options) {
          app.add_option("study", options.study, "Name of the study")->required();
          app.add_flag("--now", options.now, "Kill the trials, without their grace period");
        },
        R"(Here, as Ctrl-C in its terminal, and waits until the trials have ended. On a cluster,
suspends the study. Example:
  fettle stop digits)"),
    Command{"validate", "Report every error in study files", add_validate,
            R"(Example:
  fettle validate examples/*.yaml)"},
    Command{
        "convert", "Convert Experiments of Katib to studies", add_convert,
        R"(Writes one study file. What has no counterpart is a note on standard error, and a comment in
the file at the field that it is about; docs/from-katib.md lists them. The result is checked as
by fettle validate. Exit codes: 0 converted, 4 converted with notes, 2 not all converted.
Examples:
  fettle convert experiment.yaml --output study.yaml
  fettle convert experiment.yaml --steps 20 | fettle validate -
  kubectl get experiments -o yaml | fettle convert - > studies.yaml)"},
    command(
        "doctor", "Show what this machine offers, and what is wrong with it", doctor_command,
        [](CLI::App& app, DoctorOptions& options) {
          add_output(app, options.output, {"text", "json"});
        },
        R"(CPU, memory, disk, limits, GPUs with their driver, backends of the trainer, and the trials
that run now. Exit codes: 0 fine, 1 studies cannot run in this directory.
What a study needs: fettle validate FILE; what a training needs: fettle-trainer --dry-run.)"),
    command(
        "status", "Show the state of a study, or list the studies", status_command,
        [](CLI::App& app, StatusOptions& options) {
          app.add_option("study", options.study, "Name of the study");
          app.add_flag("--events", options.events, "Show its events, oldest first");
          add_output(app, options.output, {"text", "json"});
        },
        ""),
    command(
        "gpus", "Show the GPUs of a cluster, and propose profiles for sharing them", gpus_command,
        [](CLI::App& app, GpusOptions& options) {
          add_output(app, options.output, {"text", "json", "values"});
        },
        R"(For administrators: reads nodes, pods, DeviceClasses and ResourceSlices with your rights, and
says which are missing. Example:
  kubectl fettle gpus --output values > gpus.yaml
  helm upgrade fettle helm/fettle --reuse-values --values gpus.yaml)"),
    command(
        "trials", "List the trials of a study", trials_command,
        [](CLI::App& app, TrialsOptions& options) {
          add_study(app, options.study);
          add_output(app, options.output, {"text", "csv", "json"});
        },
        R"(Example:
  fettle trials digits --output csv > trials.csv)"),
    command(
        "best", "Print the best configuration of a study, ready to paste", best_command,
        [](CLI::App& app, BestOptions& options) {
          add_study(app, options.study);
          app.add_flag("--schedule", options.schedule,
                       "Print the parameters that it was trained with, step by step (pbt, pb2)");
          add_output(app, options.output, {"text", "json", "yaml", "env"});
        },
        R"x(Text is YAML already; with --schedule, yaml is a Study that trains the schedule again.
env exports the parameters to a shell, as the program of a trial finds them.
Where results are noisy, the trial that a model expects to be best is taken, with its
expected value; docs/search.md, "Noise".
Exit code 1 while there is no result. Examples:
  fettle best digits > best.yaml
  eval "$(fettle best digits --output env)" && python3 train.py
  fettle best digits --schedule --output yaml > again.yaml && fettle run again.yaml)x"),
    command(
        "logs", "Print the output of a trial", logs_command,
        [](CLI::App& app, LogsOptions& options) {
          add_trial(app, options.trial);
          app.add_option("--run", options.run, "Number of the run; default: the newest")
              ->type_name("N");
          app.add_flag("-f,--follow", options.follow, "Keep printing until the run ends");
          app.add_flag("--raw", options.raw,
                       "Print escape sequences to a terminal as they are, not colours alone");
        },
        R"(A log over 16 MiB keeps its beginning and its end; a line between them says how much is left
out. --follow exits with 3 when fettle run was killed.)"),
    command(
        "scale", "Change the number of workers of a running trial", scale_command,
        [](CLI::App& app, ScaleOptions& options) {
          add_trial(app, options.trial);
          app.add_option("workers", options.workers, "Number of workers that the trial should have")
              ->required()
              ->type_name("N");
        },
        R"(Within trial.workers' min and max. The training continues from its current step; with
globalBatch its result stays the same.
Example:
  fettle scale digits-3 4)"),
    command(
        "report", "Write a page with everything about a study", report_command,
        [](CLI::App& app, ReportOptions& options) {
          add_study(app, options.study);
          app.add_option("-o,--out", options.file,
                         "HTML file to write, - for standard output; default: <study>.html")
              ->type_name("FILE");
          app.add_flag("--no-logs", options.no_logs, "Leave out the ends of trials' logs");
        },
        R"(One file that any browser opens, without a network: learning curves, importance of the
parameters, and all trials. It holds the ends of a few trials' logs; with --no-logs it does not.
Example:
  fettle report digits -o digits.html)"),
    command(
        "serve", "Show pages of all studies in a browser, which follow them", serve_command,
        [](CLI::App& app, ServeOptions& options) {
          app.add_option("studies", options.studies, "Names of studies; default: all");
          app.add_option("--port", options.port,
                         "Port on 127.0.0.1, 0 for any that is free; default: 8338, or a free one")
              ->type_name("PORT");
          app.add_option("--socket", options.socket,
                         "Serve on this Unix socket instead, for ssh -L")
              ->type_name("PATH");
          app.add_option("--token-file", options.token_file,
                         "File of the token that requests must have; default: a random one")
              ->type_name("FILE");
          app.add_flag("--open", options.open, "Open the page in a browser");
        },
        R"(Prints an address for this machine's browsers, with a token that keeps other users out, and
serves until Ctrl-C. The pages only read. Details: docs/serve.md. Examples:
  fettle serve
  fettle serve digits --open
  fettle serve --socket /tmp/me.sock        then, at home: ssh -L 8338:/tmp/me.sock HOST
  kubectl fettle serve -n team)"),
    command(
        "export", "Export a study: as one document, or to Optuna, MLflow, TensorBoard or W&B",
        export_command,
        [](CLI::App& app, ExportOptions& options) {
          app.add_option(
                 "places", options.places,
                 "Name of the study; default: the only or the newest one. Then, for optuna, "
                 "mlflow and tensorboard, the URL or folder to export to")
              ->type_name("[study] [target]")
              ->expected(0, 2);
          app.add_option("--to", options.to, "json (default), optuna, mlflow, tensorboard or wandb")
              ->check(CLI::IsMember(export_targets()))
              ->type_name("");
          app.add_option("-o,--output", options.file,
                         "json: file to write; default: standard output")
              ->type_name("FILE");
          app.add_option("--name", options.name,
                         "Name of the study, experiment or project there; default: the study's")
              ->type_name("NAME");
          app.add_flag("--follow", options.follow, "mlflow: keep exporting until the study ends");
        },
        R"(All but json run `python3 -m fettle.export.NAME`; FETTLE_PYTHON names the Python that has the
peer's package. Exporting again adds only what is new. Details: docs/export.md. Examples:
  fettle export digits --output digits.json
  fettle export digits --to optuna sqlite:///optuna.db
  fettle export digits --to mlflow http://127.0.0.1:5000 --follow
  fettle export digits --to tensorboard runs
  WANDB_MODE=offline fettle export digits --to wandb)"),
    command(
        "export-model", "Write the network of the best trial as a file for other programs",
        export_model_command,
        [](CLI::App& app, ExportModelOptions& options) {
          add_study(app, options.study);
          app.add_option("--trial", options.trial, "Name of the trial; default: the best one")
              ->type_name("TRIAL");
          app.add_option("--format", options.format,
                         "safetensors (default with the built-in trainer), onnx, torch: a Python "
                         "module and its safetensors, or checkpoint: a copy of the trial's "
                         "checkpoints as they are (default for other programs)")
              ->check(CLI::IsMember(model_formats()))
              ->type_name("");
          app.add_option("-o,--output", options.path,
                         "File to write, with checkpoint a folder; default: named after the trial")
              ->type_name("PATH");
          app.add_option("--image", options.image,
                         "On a cluster: image of the pod that reads the trial's volume, with sleep "
                         "and tar; default: the trial's image")
              ->type_name("IMAGE");
          app.add_flag("--int8", options.int8,
                       "The 8-bit network of a trial with training.quantize, as ONNX");
          app.add_flag("--force", options.force, "Replace files that exist");
        },
        R"(Takes the trial's newest checkpoint; needs neither its data nor Python. On a cluster a pod
mounts the trial's volume and kubectl copies from it. Exit code 1 while there is no result. Details:
docs/export-model.md. Examples:
  fettle export-model digits
  fettle export-model digits --trial digits-3 -o best.safetensors
  fettle export-model digits --format onnx
  fettle export-model digits --int8
  fettle export-model digits --format torch -o best.py
  fettle export-model my-own-program -o best
  kubectl fettle export-model -n team digits --format onnx)"),
    Command{
        "import", "Write the results of another tuner as a file for warmStart.results", add_import,
        R"(One result a line: {"parameters": {...}, "values": {"loss": 0.41}}. Details: docs/export.md.
Examples:
  fettle import --from optuna sqlite:///optuna.db --study digits --objective loss -o old.jsonl
  fettle import --from ray ~/ray_results/digits --objective loss -o old.jsonl
  fettle import --from csv trials.csv --objective loss -o old.jsonl)"},
    command(
        "why", "Show why a trial was tried, what was expected, and its result", why_command,
        [](CLI::App& app, WhyOptions& options) {
          add_trial(app, options.trial);
          add_output(app, options.output, {"text", "json"});
        },
        ""),
    command(
        "replay", "Repeat every decision from the recorded facts, and compare", replay_command,
        [](CLI::App& app, ReplayOptions& options) {
          add_study(app, options.study);
          app.add_option("--algorithm", options.algorithm,
                         "Show what this algorithm would have suggested from the same facts")
              ->type_name("NAME");
          app.add_option("--early-stopping", options.early_stopping,
                         "Show which trials this rule would have stopped, and the steps saved")
              ->type_name("NAME");
        },
        R"(Exit codes: 0 all decisions are as recorded, 1 some differ.
Examples:
  fettle replay digits
  fettle replay digits --early-stopping median)"),
    command(
        "delete", "Delete a study that does not run: its trials, logs and checkpoints",
        delete_command,
        [](CLI::App& app, DeleteOptions& options) {
          app.add_option("study", options.study, "Name of the study")->required();
        },
        R"(To keep the old one beside a new one: fettle run FILE --fresh. Example:
  fettle delete digits)"),
    Command{"suggest", "Answer asks and tells on standard input (JSON lines)", add_suggest,
            R"(For programs that run their trials themselves. In: {"study": {...}}, {"ask": n},
{"tell": {"id": .., "value": ..}}. Out: {"trials": [{"id": .., "params": {..}}]}.
With "re": N in a line its reply repeats N; {"best": true} asks for the best trial. With
--study NAME the study outlives the process, and fettle report, why and replay read it.
The whole protocol: docs/suggest.md. Example:
  fettle suggest --study digits < lines)"},
    Command{"completion", "Print a script that completes commands in a shell", add_completion,
            R"(Example:
  source <(fettle completion bash))"},
    Command{"pages", "", add_pages, ""},
    Command{"supervise", "", add_supervise, ""},
};

void describe(CLI::App& app, Common& common) {
  app.set_version_flag("--version", "fettle " FETTLE_VERSION);
  app.add_option("-C,--directory", common.directory,
                 "Directory that contains .fettle, where studies are kept")
      ->type_name("DIR");
  app.add_option("--on", common.on,
                 "Where studies run: local (this machine) or cluster (Kubernetes)")
      ->check(CLI::IsMember({"local", "cluster"}))
      ->type_name("");
  app.add_option("-n,--namespace", common.place.ns, "Cluster: namespace of the studies")
      ->type_name("NS");
  app.add_option("--context", common.place.context, "Cluster: context of the kubeconfig")
      ->type_name("NAME");
  app.add_option("--kubeconfig", common.place.kubeconfig, "Cluster: kubeconfig file")
      ->type_name("FILE");
  app.require_subcommand(1);
  app.fallthrough();  // options may follow the command, too
  app.footer(R"(Examples:
  fettle init
  fettle validate study.yaml
  fettle doctor
  fettle run study.yaml
  fettle status
  fettle trials digits
  fettle best digits
  fettle logs digits-3 --follow
  fettle report digits
  fettle serve
  fettle why digits-3
As `kubectl fettle`, the same commands work on the cluster of the kubeconfig.)");
}

std::map<const CLI::App*, Action> add_commands(CLI::App& app) {
  std::map<const CLI::App*, Action> actions;
  for (const Command& command : kCommands) {
    CLI::App* const added = app.add_subcommand(command.name, command.help);
    if (*command.help == '\0') added->group("");
    added->footer(command.footer);
    actions[added] = command.add(*added);
  }
  return actions;
}

// Decides which place the command reads, and how hints name this program to read the same place.
// Errors: options that do not go together.
Status complete_place(Common& common) {
  Target& place = common.place;
  const auto add = [&place](const char* option, const std::string& value) {
    if (!value.empty()) place.program += option + shell_word(value);
  };
  place.on_cluster = common.on == "cluster" || (common.on.empty() && common.is_plugin);
  if (place.on_cluster) {
    place.program = common.is_plugin ? "kubectl fettle" : "fettle --on cluster";
    add(" --kubeconfig ", place.kubeconfig);
    add(" --context ", place.context);
    add(" -n ", place.ns);
    return success();
  }
  for (const auto& [option, value] :
       {std::pair("--namespace", place.ns), std::pair("--context", place.context),
        std::pair("--kubeconfig", place.kubeconfig)}) {
    if (!value.empty()) return invalid(option + std::string(" needs --on cluster"));
  }
  if (common.directory == ".") return success();
  place.root = common.directory + "/.fettle";
  add(" -C ", common.directory);
  return success();
}

// Prints the error of the command line; returns the exit code.
int refuse_line(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  // CLI11 throws for --help and --version too, with code 0. Without a command, the rest of the line
  // begins with an unknown word.
  if (!app.get_subcommands().empty() || rest.empty() || error.get_exit_code() == 0) {
    return app.exit(error) == 0 ? kExitSucceeded : kExitInvalid;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : listed_commands(app)) names.push_back(command->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::cerr << "fettle: there is no command '" << printable(rest[0]) << "'"
            << api::did_you_mean(rest[0], known)
            << "\nRun fettle --help for the commands there are.\n";
  return kExitInvalid;
}

int run_line(int argc, char** argv) {
  CLI::App app("Fettle tunes hyperparameters: it runs the trials of a study and finds the best.",
               "fettle");
  Common common;
  describe(app, common);
  const std::map<const CLI::App*, Action> actions = add_commands(app);
  if (argc == 1) {
    std::cerr << app.help();
    return kExitInvalid;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return refuse_line(app, error);
  }
  // kubectl runs plugins by their file name.
  const std::string_view program = argv[0];
  common.is_plugin = program.substr(program.rfind('/') + 1) == "kubectl-fettle";
  const Status placed = complete_place(common);
  if (!placed.ok()) return complain(placed.error());
  try {
    const Result<int> code = actions.at(app.get_subcommands()[0])(common);
    return code.ok() ? *code : complain(code.error());
  } catch (const std::system_error& error) {
    // From a library's thread. start_thread() makes the threads of `fettle run`.
    return complain(no_thread(error.code().message()));
  }
}

}  // namespace
}  // namespace fettle::cli

int main(int argc, char** argv) { return fettle::cli::run_line(argc, argv); }
