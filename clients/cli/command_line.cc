#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <functional>

#include "clients/cli/exit_code.h"
#include "clients/cli/invocation.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

constexpr std::string_view kFooter = R"(
Results go to standard output, everything else to standard error.
Exit codes: 0 ok, 1 error, 2 usage, 4 not allowed, 8 time-out; of a job that was waited for:
10 failed, 11 canceled, 12 failed by its cluster's doing; 13 no cluster can run it, or it names an unknown one.)";

constexpr std::string_view kDashes = "put the command after --, as in: muster run -- echo hello";

template <typename Number>
bool ParseNumber(std::string_view text, Number* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// Empty if the text is a reference, else what is wrong, as CLI11 wants it.
std::string ParseJobRef(const std::string& text, JobRef* out) {
  const size_t dot = text.find('.');
  const std::string_view job = std::string_view(text).substr(0, dot);
  bool good = ParseNumber(job, &out->job) && out->job > 0;
  if (good && dot != std::string::npos) {
    good = ParseNumber(std::string_view(text).substr(dot + 1), &out->run) && out->run > 0;
  }
  if (good) return "";
  return fmt::format("{} is not a job; write its number, e.g. 42, or 42.1 for its first run",
                     contract::Quoted(text));
}

// Adds the verbs with their flags to a CLI11 application.
class Grammar {
 public:
  explicit Grammar(Invocation* out) : out_(*out) {
    app_.footer(std::string(kFooter));
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.set_version_flag("--version", std::string("muster " MUSTER_VERSION));
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app_.add_option("--broker", out_.broker,
                    "The broker: unix:PATH or HOST:PORT. Default: MUSTER_BROKER, else `broker` in "
                    "~/.config/muster/config.yaml")
        ->type_name("ADDRESS");
    app_.add_option_function<std::string>(
            "-o,--output", [this](const std::string& name) { SetFormat(name); },
            "table, wide, json, jsonl, yaml or name")
        ->type_name("FORMAT");
    app_.add_flag("-q,--quiet", out_.quiet, "Print the id alone");
    AddSubmit();
    AddRun();
    AddList();
    AddShowAndCancel();
    AddLogs();
    AddEvents();
    AddWait();
    Sub("clusters", Verb::kClusters, "Show the clusters, or one of them")
        ->add_option("NAME", out_.cluster, "A cluster's name");
    Sub("version", Verb::kVersion, "Print this program's version");
  }

  CLI::App& app() { return app_; }

 private:
  void SetFormat(const std::string& name) {
    out_.format = ParseFormat(name);
    if (out_.format) return;
    throw CLI::ValidationError(
        "--output",
        fmt::format("{} is not table, wide, json, jsonl, yaml or name", contract::Quoted(name)));
  }

  CLI::App* Sub(const std::string& name, Verb verb, const std::string& description) {
    CLI::App* sub = app_.add_subcommand(name, description);
    sub->callback([this, verb] { out_.verb = verb; });
    return sub;
  }

  // A flag that may be given several times, with one value each time.
  static void AddRepeated(CLI::App* sub, const std::string& flag, std::vector<std::string>* values,
                          const std::string& type, const std::string& description) {
    sub->add_option_function<std::string>(
           flag, [values](const std::string& value) { values->push_back(value); }, description)
        ->type_name(type)
        ->trigger_on_parse();
  }

  void AddJobs(CLI::App* sub) {
    sub->add_option_function<std::vector<std::string>>(
           "ID",
           [this](const std::vector<std::string>& texts) {
             for (const std::string& text : texts) {
               JobRef ref;
               const std::string problem = ParseJobRef(text, &ref);
               if (!problem.empty()) throw CLI::ValidationError("ID", problem);
               out_.jobs.push_back(ref);
             }
           },
           "Jobs by their numbers")
        ->type_name("");
  }

  void AddSpec(CLI::App* sub) {
    SpecFlags& spec = out_.spec;
    sub->add_option("--name", spec.name, "A label for people");
    sub->add_option("--project", spec.project, "Who pays");
    AddRepeated(sub, "--cluster", &spec.clusters, "NAME",
                "The cluster to run on; several times: any of them");
    sub->add_option("--pool", spec.pool, "The pool (Slurm: partition) to run in");
    sub->add_option("--nodes", spec.nodes, "Nodes; the command starts once on each");
    sub->add_option("--gpus", spec.gpus, "GPUs of each node")->type_name("TYPE:COUNT");
    sub->add_option("--cpus", spec.cpus, "Cores of each node")->type_name("NUMBER");
    sub->add_option("--memory", spec.memory, "Memory of each node, e.g. 16Gi")->type_name("SIZE");
    sub->add_option("--time", spec.time, "Time limit, e.g. 4h or 1-12:00:00")
        ->type_name("DURATION");
    AddRepeated(sub, "--env", &spec.env, "KEY=VALUE", "An environment variable");
    AddRepeated(sub, "--label", &spec.labels, "KEY=VALUE", "A label");
    sub->add_option("--workdir", spec.workdir, "The directory on the cluster to start in");
    sub->add_option("--priority", spec.priority, "Higher starts first, -1000 to 1000");
    sub->add_flag("--wait", out_.wait, "Wait for the end and exit as the job did");
    sub->add_option("--request-id", out_.request_id,
                    "Submit under this name: a repeat under the same one makes no second job")
        ->type_name("ID");
    sub->add_flag("--validate,--dry-run", out_.validate_only, "Check only, submit nothing");
    sub->add_flag("--raw", out_.raw, "Show the log's terminal escapes as they are");
  }

  void AddSubmit() {
    CLI::App* sub = Sub("submit", Verb::kSubmit, "Submit the jobs of a file, all or none");
    sub->add_option("FILE", out_.file, "A job file in YAML; - is standard input")->required();
    AddSpec(sub);
  }

  void AddRun() {
    CLI::App* sub = Sub("run", Verb::kRun, "Submit a command: muster run [flags] -- CMD [ARG...]");
    sub->footer("The command comes after --, e.g.: muster run --wait --gpus H100:8 -- nvidia-smi");
    AddSpec(sub);
  }

  void AddList() {
    CLI::App* sub = Sub("list", Verb::kList, "List jobs, the newest first");
    AddRepeated(sub, "--state", &out_.states, "STATE",
                "Only this state; several times: any of them");
    sub->add_option("--name", out_.spec.name, "Only jobs of this name");
    AddRepeated(sub, "--cluster", &out_.spec.clusters, "NAME",
                "Only on this cluster; several times: any of them");
    sub->add_option("--project", out_.spec.project, "Only of this project");
    AddRepeated(sub, "--label", &out_.spec.labels, "KEY=VALUE", "Only with this label");
    sub->add_option(
        "--filter", out_.filter,
        "More conditions, e.g. 'state = FAILED AND create_time > 2026-01-31T00:00:00Z'");
    sub->add_option("--limit", out_.limit, "At most so many; 0: all")->default_val(100);
  }

  void AddShowAndCancel() {
    AddJobs(Sub("show", Verb::kShow, "Show jobs with their runs and what is known of each"));
    CLI::App* cancel = Sub("cancel", Verb::kCancel, "Ask that jobs end");
    AddJobs(cancel);
    cancel->add_option("--reason", out_.reason, "Why; kept with the job");
  }

  void AddLogs() {
    CLI::App* sub = Sub("logs", Verb::kLogs, "Print the log of a job's run");
    AddJobs(sub);
    sub->add_flag("-f,--follow", out_.follow, "Go on until the log is complete");
    sub->add_option_function<uint32_t>(
        "--run", [this](uint32_t run) { run_ = run; }, "The run; default: the latest");
    sub->add_option("--rank", out_.rank, "The node rank")->default_val(0);
    sub->add_flag("--stderr", out_.standard_error, "Standard error instead of standard output");
    sub->add_option("--since-offset", out_.since_offset, "The first byte")->default_val(0);
    sub->add_flag("--raw", out_.raw, "Show terminal escapes as they are");
    sub->parse_complete_callback([this] {
      if (run_ > 0 && !out_.jobs.empty()) out_.jobs[0].run = run_;
    });
  }

  void AddEvents() {
    CLI::App* sub =
        Sub("events", Verb::kEvents, "Print the transitions of jobs with their evidence");
    AddJobs(sub);
    sub->add_flag("-f,--follow", out_.follow, "Go on until the jobs have ended");
    sub->add_option("--filter", out_.filter, "Jobs by filter instead of numbers; needs -f");
    sub->add_option("--since", out_.since, "Only after this sequence number")->default_val(0);
  }

  void AddWait() {
    CLI::App* sub = Sub("wait", Verb::kWait,
                        "Wait until jobs have ended; exit as the first that did not succeed");
    AddJobs(sub);
    sub->add_option_function<std::string>(
           "--timeout",
           [this](const std::string& text) {
             const auto parsed = contract::ParseDuration(text);
             if (!parsed.ok()) {
               throw CLI::ValidationError(
                   "--timeout",
                   fmt::format("{} is not a duration, e.g. 90s or 4h", contract::Quoted(text)));
             }
             out_.timeout = *parsed;
           },
           "Give up after this time, with exit code 8; the jobs go on")
        ->type_name("DURATION");
  }

  Invocation& out_;
  uint32_t run_ = 0;
  CLI::App app_{"Submit jobs to Muster and follow them."};
};

// What CLI11 cannot see. Empty: nothing is wrong.
std::string Inconsistency(const Invocation& call, bool has_command) {
  switch (call.verb) {
    case Verb::kRun:
      if (!has_command) return std::string(kDashes);
      if (call.command.empty()) return "there is no command after --";
      break;
    case Verb::kLogs:
      if (call.jobs.size() > 1) return "one job at a time";
      [[fallthrough]];
    case Verb::kShow:
    case Verb::kWait:
    case Verb::kCancel:
      if (call.jobs.empty()) return "name at least one job by its number";
      break;
    case Verb::kEvents:
      if (!call.jobs.empty() && !call.filter.empty()) return "give either jobs or --filter";
      if (call.jobs.empty() && !call.follow) return "name jobs by their numbers, or add -f";
      break;
    default:
      break;
  }
  if (call.wait && call.validate_only) return "--wait and --validate exclude each other";
  return "";
}

// What CLI11 says, or more where it says too little.
std::string Explain(CLI::App& app, const CLI::ParseError& error, bool has_command) {
  const std::vector<std::string> rest = app.remaining();
  if (app.get_subcommands().empty() && !rest.empty() && !rest[0].starts_with('-')) {
    std::vector<std::string> names;
    for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
    return fmt::format("{} is not a verb; there are: {}", contract::Quoted(rest[0]),
                       fmt::join(names, ", "));
  }
  const bool lacks_dashes = app.got_subcommand("run") && !has_command;
  return lacks_dashes ? fmt::format("{}; {}", error.what(), kDashes) : error.what();
}

int UsageError(std::string_view message) {
  fmt::print(stderr, "muster: {}\nTry: muster --help\n", message);
  return kUsage;
}

}  // namespace

std::variant<Invocation, int> ParseCommandLine(int argc, char** argv) {
  // Everything after the first "--" is the user's, byte for byte; CLI11 must not look at it.
  char** const end = argv + argc;
  char** const dashes =
      std::find_if(argv, end, [](const char* text) { return std::string_view(text) == "--"; });
  Invocation call;
  Grammar grammar(&call);
  try {
    grammar.app().parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return grammar.app().exit(error);
    return UsageError(Explain(grammar.app(), error, dashes != end));
  }
  const bool has_command = dashes != end;
  if (has_command && call.verb != Verb::kRun)
    return UsageError("only run takes a command after --");
  if (has_command) call.command.assign(dashes + 1, end);
  // The API carries UTF-8 only. A file's name may be anything, and what describes a job is checked
  // with the job.
  char** const odd = std::find_if(argv, dashes, [](char* text) { return !contract::IsUtf8(text); });
  if (odd != dashes && call.verb != Verb::kSubmit && call.verb != Verb::kRun) {
    return UsageError(fmt::format("{} is not UTF-8", contract::Quoted(*odd)));
  }
  const std::string problem = Inconsistency(call, has_command);
  if (!problem.empty()) return UsageError(problem);
  return call;
}

}  // namespace muster::cli
