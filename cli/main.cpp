// fettle: the command line. Maps arguments to the commands (commands.h); apart from the operator's
// options (operator/options.cpp) the only file that uses CLI11.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "api/nearest.h"
#include "base/thread.h"
#include "cli/common/commands.h"
#include "cli/common/exit_code.h"
#include "cli/help/option_tree.h"
#include "cli/help/pages.h"
#include "cli/suggest/suggest.h"
#include "cli/views/text.h"
#include "runtime/local/process/supervisor.h"

namespace {

using fettle::cli::Output;

const std::map<std::string, Output> kOutputs = {{"text", Output::kText},   {"csv", Output::kCsv},
                                                {"json", Output::kJson},   {"yaml", Output::kYaml},
                                                {"values", Output::kYaml}, {"env", Output::kEnv}};

// The parsed command line.
struct Arguments {
  std::string directory = ".";
  std::string on;  // local or cluster
  fettle::cli::Target place;
  fettle::cli::RunOptions run;
  fettle::cli::ValidateOptions validate;
  fettle::cli::DoctorOptions doctor;
  fettle::cli::StatusOptions status;
  fettle::cli::GpusOptions gpus;
  fettle::cli::TrialsOptions trials;
  fettle::cli::BestOptions best;
  fettle::cli::LogsOptions logs;
  fettle::cli::ScaleOptions scale;
  fettle::cli::InitOptions init;
  fettle::cli::StopOptions stop;
  fettle::cli::DeleteOptions remove;
  fettle::cli::ReportOptions report;
  fettle::cli::WhyOptions why;
  fettle::cli::ReplayOptions replay;
  std::string shell;  // for which to complete
  std::string page;   // man or markdown
  int control_fd = -1;
};

// Adds --output with some of the names in kOutputs.
void add_output(CLI::App& command, Output& output, const std::vector<std::string>& names) {
  command
      .add_option_function<std::string>(
          "--output", [&output](const std::string& name) { output = kOutputs.at(name); },
          "Output format; default: text")
      ->check(CLI::IsMember(names))
      ->type_name("");
}

void add_study(CLI::App& command, std::string& study) {
  command.add_option("study", study, "Name of the study; default: the only or the newest one");
}

void add_run(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("run", "Run a study to its end, here or on a cluster");
  command->add_option("file", arguments.run.file, "Study file (YAML)")->required();
  add_output(*command, arguments.run.output, {"text", "json"});
  command->add_option("--study", arguments.run.study, "Name of the Study, for a file with several");
  command
      ->add_option("--parallelism", arguments.run.parallelism, "Maximum number of trials at once")
      ->type_name("N");
  command->add_flag("--fresh", arguments.run.fresh,
                    "Start over; the old study is moved aside, not deleted");
  command
      ->add_option("--tensorboard", arguments.run.tensorboard,
                   "Directory for TensorBoard's event files of every trial of the built-in trainer")
      ->type_name("DIR");
  command->footer(
      "Running the same file again resumes the study. Ctrl-C stops the trials gently.\n"
      "With --on cluster, applies the Study and follows it; Ctrl-C only stops following.\n"
      "Exit codes: 0 succeeded, 1 failed, 2 invalid input, 3 environment, 130 interrupted.\n"
      "Examples:\n"
      "  fettle run examples/shell.yaml\n"
      "  fettle run study.yaml --output json | tail -1\n"
      "  fettle run --on cluster -n team study.yaml");
}

void add_init(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("init", "Write a study to begin from, which runs as it is");
  command->add_option("kind", arguments.init.kind, "python (default), shell or trainer")
      ->check(CLI::IsMember(fettle::cli::init_kinds()))
      ->type_name("");
  command->footer(
      "Writes study.yaml and a program, or a text for the built-in trainer, into this directory;\n"
      "never over a file. Example:\n  fettle init python && fettle run study.yaml");
}

void add_stop(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("stop", "Stop a study that runs; it can be resumed");
  command->add_option("study", arguments.stop.study, "Name of the study")->required();
  command->add_flag("--now", arguments.stop.now, "Kill the trials, without their grace period");
  command->footer(
      "Here, as Ctrl-C in its terminal, and waits until the trials have ended. On a cluster,\n"
      "suspends the study. Example:\n  fettle stop digits");
}

void add_delete(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "delete", "Delete a study that does not run: its trials, logs and checkpoints");
  command->add_option("study", arguments.remove.study, "Name of the study")->required();
  command->footer(
      "To keep the old one beside a new one: fettle run FILE --fresh. Example:\n"
      "  fettle delete digits");
}

void add_pages(CLI::App& app, Arguments& arguments) {
  CLI::App* completion =
      app.add_subcommand("completion", "Print a script that completes commands in a shell");
  completion->add_option("shell", arguments.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(fettle::cli::completion_shells()))
      ->type_name("");
  completion->footer("Example:\n  source <(fettle completion bash)");
  CLI::App* pages = app.add_subcommand("pages", "");
  pages->group("");  // not listed: for those who package fettle
  pages->add_option("format", arguments.page)
      ->required()
      ->check(CLI::IsMember({"man", "markdown"}));
}

void add_validate(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("validate", "Report every error in study files");
  command->add_option("files", arguments.validate.files, "Study files; - is standard input")
      ->required();
  command->footer("Example:\n  fettle validate examples/*.yaml");
}

void add_doctor(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("doctor", "Show what this machine offers, and what is wrong with it");
  add_output(*command, arguments.doctor.output, {"text", "json"});
  command->footer(
      "CPU, memory, disk, limits, GPUs with their driver, backends of the trainer, and the trials\n"
      "that run now. Exit codes: 0 fine, 1 studies cannot run in this directory.\n"
      "What a study needs: fettle validate FILE; what a training needs: fettle-trainer --dry-run.");
}

void add_status(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("status", "Show the state of a study, or list the studies");
  command->add_option("study", arguments.status.study, "Name of the study");
  command->add_flag("--events", arguments.status.events, "Show its events, oldest first");
  add_output(*command, arguments.status.output, {"text", "json"});
}

void add_gpus(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "gpus", "Show the GPUs of a cluster, and propose profiles for sharing them");
  add_output(*command, arguments.gpus.output, {"text", "json", "values"});
  command->footer(
      "For administrators: reads nodes, pods, DeviceClasses and ResourceSlices with your rights, "
      "and\n"
      "says which are missing. Example:\n"
      "  kubectl fettle gpus --output values > gpus.yaml\n"
      "  helm upgrade fettle helm/fettle --reuse-values --values gpus.yaml");
}

void add_trials(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("trials", "List the trials of a study");
  add_study(*command, arguments.trials.study);
  add_output(*command, arguments.trials.output, {"text", "csv", "json"});
  command->footer("Example:\n  fettle trials digits --output csv > trials.csv");
}

void add_best(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("best", "Print the best configuration of a study, ready to paste");
  add_study(*command, arguments.best.study);
  command->add_flag("--schedule", arguments.best.schedule,
                    "Print the parameters that it was trained with, step by step (pbt, pb2)");
  add_output(*command, arguments.best.output, {"text", "json", "yaml", "env"});
  command->footer(
      "Text is YAML already; with --schedule, yaml is a Study that trains the schedule again.\n"
      "env exports the parameters to a shell, as the program of a trial finds them.\n"
      "Where results are noisy, the trial that a model expects to be best is taken, with its\n"
      "expected value; docs/search.md, \"Noise\".\n"
      "Exit code 1 while there is no result. Examples:\n"
      "  fettle best digits > best.yaml\n"
      "  eval \"$(fettle best digits --output env)\" && python3 train.py\n"
      "  fettle best digits --schedule --output yaml > again.yaml && fettle run again.yaml");
}

void add_logs(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("logs", "Print the output of a trial");
  command->add_option("trial", arguments.logs.trial, "Name of the trial, such as digits-3")
      ->required();
  command->add_option("--run", arguments.logs.run, "Number of the run; default: the newest")
      ->type_name("N");
  command->add_flag("-f,--follow", arguments.logs.follow, "Keep printing until the run ends");
  command->add_flag("--raw", arguments.logs.raw,
                    "Print escape sequences to a terminal as they are, not colours alone");
  command->footer(
      "A log over 16 MiB keeps its beginning and its end; a line between them says how much is "
      "left\n"
      "out. --follow exits with 3 when fettle run was killed.");
}

void add_scale(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("scale", "Change the number of workers of a running trial");
  command->add_option("trial", arguments.scale.trial, "Name of the trial, such as digits-3")
      ->required();
  command
      ->add_option("workers", arguments.scale.workers,
                   "Number of workers that the trial should have")
      ->required()
      ->type_name("N");
  command->footer(
      "Within trial.workers' min and max. The training continues from its current step; with\n"
      "globalBatch its result stays the same.\n"
      "Example:\n  fettle scale digits-3 4");
}

void add_report(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("report", "Write a page with everything about a study");
  add_study(*command, arguments.report.study);
  command
      ->add_option("-o,--out", arguments.report.file,
                   "HTML file to write, - for standard output; default: <study>.html")
      ->type_name("FILE");
  command->footer(
      "One file that any browser opens, without a network: learning curves, importance of the\n"
      "parameters, and all trials.\n"
      "Example:\n  fettle report digits -o digits.html");
}

void add_why(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("why", "Show why a trial was tried, what was expected, and its result");
  command->add_option("trial", arguments.why.trial, "Name of the trial, such as digits-3")
      ->required();
  add_output(*command, arguments.why.output, {"text", "json"});
}

void add_replay(CLI::App& app, Arguments& arguments) {
  CLI::App* command =
      app.add_subcommand("replay", "Repeat every decision from the recorded facts, and compare");
  add_study(*command, arguments.replay.study);
  command
      ->add_option("--algorithm", arguments.replay.algorithm,
                   "Show what this algorithm would have suggested from the same facts")
      ->type_name("NAME");
  command
      ->add_option("--early-stopping", arguments.replay.early_stopping,
                   "Show which trials this rule would have stopped, and the steps saved")
      ->type_name("NAME");
  command->footer(
      "Exit codes: 0 all decisions are as recorded, 1 some differ.\n"
      "Examples:\n  fettle replay digits\n  fettle replay digits --early-stopping median");
}

void add_suggest(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("suggest", "Answer asks and tells on standard input (JSON lines)");
  command->footer(
      "For programs that run their trials themselves. In: {\"study\": {...}}, {\"ask\": n},\n"
      "{\"tell\": {\"id\": .., \"value\": ..}}. Out: {\"trials\": [{\"id\": .., \"params\": "
      "{..}}]}.\n"
      "With \"algorithm\": {\"name\": \"gp\", \"cost_aware\": true} in the study and \"cost\": .. "
      "in a\n"
      "tell, the search weighs the gain of a trial against its cost.");
}

void add_hidden(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("supervise", "");
  command->group("");  // not listed: fettle starts it internally
  command->add_option("--fd", arguments.control_fd)->required();
}

void describe(CLI::App& app, Arguments& arguments) {
  app.set_version_flag("--version", "fettle " FETTLE_VERSION);
  app.add_option("-C,--directory", arguments.directory,
                 "Directory that contains .fettle, where studies are kept")
      ->type_name("DIR");
  app.add_option("--on", arguments.on,
                 "Where studies run: local (this machine) or cluster (Kubernetes)")
      ->check(CLI::IsMember({"local", "cluster"}))
      ->type_name("");
  app.add_option("-n,--namespace", arguments.place.ns, "Cluster: namespace of the studies")
      ->type_name("NS");
  app.add_option("--context", arguments.place.context, "Cluster: context of the kubeconfig")
      ->type_name("NAME");
  app.add_option("--kubeconfig", arguments.place.kubeconfig, "Cluster: kubeconfig file")
      ->type_name("FILE");
  app.require_subcommand(1);
  app.fallthrough();  // options may follow the command, too
  add_init(app, arguments);
  add_run(app, arguments);
  add_stop(app, arguments);
  add_validate(app, arguments);
  add_doctor(app, arguments);
  add_status(app, arguments);
  add_gpus(app, arguments);
  add_trials(app, arguments);
  add_best(app, arguments);
  add_logs(app, arguments);
  add_scale(app, arguments);
  add_report(app, arguments);
  add_why(app, arguments);
  add_replay(app, arguments);
  add_delete(app, arguments);
  add_suggest(app);
  add_pages(app, arguments);
  add_hidden(app, arguments);
  app.footer(
      "Examples:\n"
      "  fettle init\n"
      "  fettle validate study.yaml\n"
      "  fettle doctor\n"
      "  fettle run study.yaml\n"
      "  fettle status\n"
      "  fettle trials digits\n"
      "  fettle best digits\n"
      "  fettle logs digits-3 --follow\n"
      "  fettle report digits\n"
      "  fettle why digits-3\n"
      "As `kubectl fettle`, the same commands work on the cluster of the kubeconfig.");
}

// kubectl runs plugins by their file name.
bool is_kubectl_plugin(std::string_view program) {
  return program.substr(program.rfind('/') + 1) == "kubectl-fettle";
}

// Decides which place the command reads, and how hints name this program to read the same place.
// Returns an error for people, or "".
std::string complete_place(bool is_plugin, Arguments& arguments) {
  fettle::cli::Target& place = arguments.place;
  const auto add = [&place](const char* option, const std::string& value) {
    if (!value.empty()) place.program += option + fettle::cli::shell_word(value);
  };
  place.on_cluster = arguments.on == "cluster" || (arguments.on.empty() && is_plugin);
  if (place.on_cluster) {
    place.program = is_plugin ? "kubectl fettle" : "fettle --on cluster";
    add(" --kubeconfig ", place.kubeconfig);
    add(" --context ", place.context);
    add(" -n ", place.ns);
    return "";
  }
  for (const auto& [option, value] :
       {std::pair("--namespace", place.ns), std::pair("--context", place.context),
        std::pair("--kubeconfig", place.kubeconfig)}) {
    if (!value.empty()) return option + std::string(" needs --on cluster");
  }
  if (arguments.directory == ".") return "";
  place.root = arguments.directory + "/.fettle";
  add(" -C ", arguments.directory);
  return "";
}

// Fills in values that depend on more than one argument. Returns an error for people, or "".
std::string complete(bool is_plugin, Arguments& arguments) {
  std::string wrong = complete_place(is_plugin, arguments);
  arguments.validate.anywhere = arguments.on.empty() && !is_plugin;
  arguments.run.resume =
      arguments.place.program + " run " + fettle::cli::shell_word(arguments.run.file);
  if (!arguments.run.study.empty()) {
    arguments.run.resume += " --study " + fettle::cli::shell_word(arguments.run.study);
  }
  if (arguments.run.parallelism) {
    arguments.run.resume += " --parallelism " + std::to_string(*arguments.run.parallelism);
  }
  if (!arguments.run.tensorboard.empty()) {
    arguments.run.resume += " --tensorboard " + fettle::cli::shell_word(arguments.run.tensorboard);
    if (wrong.empty() && arguments.place.on_cluster) {
      wrong = "--tensorboard writes to this machine; it does not go with --on cluster";
    }
  }
  return wrong;
}

// Prints the error of the command line; returns the exit code.
int complain(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  // CLI11 throws for --help and --version too, with code 0. Without a command, the rest of the line
  // begins with an unknown word.
  if (!app.get_subcommands().empty() || rest.empty() || error.get_exit_code() == 0) {
    return app.exit(error) == 0 ? fettle::cli::kExitSucceeded : fettle::cli::kExitInvalid;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : fettle::cli::listed_commands(app)) {
    names.push_back(command->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::cerr << "fettle: there is no command '" << fettle::cli::printable(rest[0]) << "'"
            << fettle::api::did_you_mean(rest[0], known)
            << "\nRun fettle --help for the commands there are.\n";
  return fettle::cli::kExitInvalid;
}

fettle::Result<int> dispatch(const CLI::App& app, const Arguments& arguments) {
  const fettle::cli::Target& place = arguments.place;
  if (app.got_subcommand("run")) return fettle::cli::run_command(place, arguments.run);
  if (app.got_subcommand("init")) return fettle::cli::init_command(arguments.init);
  if (app.got_subcommand("stop")) return fettle::cli::stop_command(place, arguments.stop);
  if (app.got_subcommand("delete")) return fettle::cli::delete_command(place, arguments.remove);
  if (app.got_subcommand("completion")) {
    std::cout << fettle::cli::completion_script(app, arguments.shell);
    return fettle::cli::kExitSucceeded;
  }
  if (app.got_subcommand("pages")) {
    std::cout << (arguments.page == "man" ? fettle::cli::man_page(app)
                                          : fettle::cli::commands_page(app));
    return fettle::cli::kExitSucceeded;
  }
  if (app.got_subcommand("validate"))
    return fettle::cli::validate_command(place, arguments.validate);
  if (app.got_subcommand("doctor")) return fettle::cli::doctor_command(place, arguments.doctor);
  if (app.got_subcommand("gpus")) return fettle::cli::gpus_command(place, arguments.gpus);
  if (app.got_subcommand("status")) return fettle::cli::status_command(place, arguments.status);
  if (app.got_subcommand("trials")) return fettle::cli::trials_command(place, arguments.trials);
  if (app.got_subcommand("best")) return fettle::cli::best_command(place, arguments.best);
  if (app.got_subcommand("logs")) return fettle::cli::logs_command(place, arguments.logs);
  if (app.got_subcommand("scale")) return fettle::cli::scale_command(place, arguments.scale);
  if (app.got_subcommand("report")) return fettle::cli::report_command(place, arguments.report);
  if (app.got_subcommand("why")) return fettle::cli::why_command(place, arguments.why);
  if (app.got_subcommand("replay")) return fettle::cli::replay_command(place, arguments.replay);
  if (app.got_subcommand("suggest")) {
    std::ios::sync_with_stdio(false);  // a search may ask hundreds of thousands of times
    return fettle::cli::run_suggest(std::cin, std::cout);
  }
  // A command is required, so this is the one that --help does not list: "supervise".
  return fettle::local::run_supervisor(arguments.control_fd);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Fettle tunes hyperparameters: it runs the trials of a study and finds the best.",
               "fettle");
  Arguments arguments;
  describe(app, arguments);
  if (argc == 1) {
    std::cerr << app.help();
    return fettle::cli::kExitInvalid;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return complain(app, error);
  }
  const std::string wrong = complete(is_kubectl_plugin(argv[0]), arguments);
  if (!wrong.empty()) {
    std::cerr << "fettle: " << wrong << '\n';
    return fettle::cli::kExitInvalid;
  }
  try {
    const fettle::Result<int> code = dispatch(app, arguments);
    return code.ok() ? *code : fettle::cli::complain(code.error());
  } catch (const std::system_error& error) {
    // From a library's thread. start_thread() makes the threads of `fettle run`.
    return fettle::cli::complain(fettle::no_thread(error.code().message()));
  }
}
