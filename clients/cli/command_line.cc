#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>

#include "clients/cli/audit_flags.h"
#include "clients/cli/cluster_flags.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/invocation.h"
#include "clients/cli/options.h"
#include "clients/cli/own_verbs.h"
#include "clients/cli/people_flags.h"
#include "clients/cli/project_flags.h"
#include "clients/cli/secret_flags.h"
#include "clients/cli/signal_flags.h"
#include "clients/cli/slurm/sbatch_help.h"
#include "clients/cli/tail.h"
#include "clients/cli/usage_error.h"
#include "contract/characters.h"
#include "contract/nearest.h"
#include "contract/units.h"
#include "contract/validate.h"

namespace muster::cli {
namespace {

constexpr std::string_view kFooter = R"(
Results go to standard output, everything else to standard error.
Exit codes: 0 ok, 1 error, 2 usage, 4 not allowed, 8 time-out; of a job that was waited for:
10 failed (muster show prints the program's exit code), 11 canceled, 12 failed because of its cluster; 13 no cluster can run it, or it names an unknown one.)";

// Adds the verbs with their flags to a CLI11 application.
class Grammar {
 public:
  explicit Grammar(Invocation* out) : out_(*out) {
    app_.footer(std::string(kFooter));
    app_.require_subcommand(1);
    app_.fallthrough();
    app_.set_version_flag("--version", std::string("muster " MUSTER_VERSION));
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    AddConnectionFlags(&app_, &out_);
    app_.add_option_function<std::string>(
            "-o,--output", [this](const std::string& name) { SetFormat(name); },
            "table, wide, json, jsonl, yaml or name")
        ->type_name("FORMAT");
    app_.add_flag("-q,--quiet", out_.quiet, "Print only ids, without remarks");
    AddSubmit();
    AddRun();
    AddList();
    AddShowAndCancel();
    AddLogs();
    AddEvents();
    AddCopy();
    AddWait();
    AddClusters();
    AddPlan();
    AddPeopleVerbs(&app_, &out_);
    AddSecretVerbs(&app_, &out_);
    AddSignalVerb(&app_, &out_);
    AddProjectVerbs(&app_, &out_);
    AddAuditVerbs(&app_, &out_);
    AddOwnVerbs();
    Sub("version", Verb::kVersion, "Print this program's version", "version");
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

  void SetDialect(const std::string& name) {
    if (name != "muster" && name != "sky") {
      throw CLI::ValidationError("--as",
                                 fmt::format("{} is not muster or sky", contract::Quoted(name)));
    }
    out_.dialect = name == "sky" ? client::Dialect::kSkyPilot : client::Dialect::kMuster;
  }

  CLI::App* Sub(const std::string& name, Verb verb, const std::string& description,
                std::string_view example) {
    CLI::App* sub = app_.add_subcommand(name, description);
    sub->footer(Footer(example));
    sub->callback([this, verb] { out_.verb = verb; });
    return sub;
  }

  static CLI::Option* AddOptional(CLI::App* sub, const std::string& flag, const std::string& type,
                                  const std::string& description, std::optional<std::string>* out) {
    return AddText(sub, flag, type, description, [out](const std::string& value) { *out = value; });
  }

  void AddSpec(CLI::App* sub) {
    SpecFlags& spec = out_.spec;
    AddOptional(sub, "--name", "TEXT", "A name for people", &spec.name);
    AddOptional(sub, "--project", "TEXT", "The project that the job belongs to", &spec.project);
    AddRepeated(sub, "--cluster", "NAME", "The cluster to run on; several times: any of them",
                &spec.clusters);
    AddOptional(sub, "--pool", "TEXT", "The pool (Slurm: partition) to run in", &spec.pool);
    AddNumber(sub, "--nodes", 1, contract::kMaxNodes, "Nodes; the command starts once on each",
              [&spec](int64_t nodes) { spec.nodes = static_cast<uint32_t>(nodes); });
    AddOptional(sub, "--gpus", "TYPE:COUNT",
                "GPUs of each node: TYPE:COUNT, TYPE (one) or COUNT (of any type), e.g. H100:2",
                &spec.gpus);
    AddOptional(sub, "--cpus", "NUMBER", "Cores of each node", &spec.cpus);
    AddOptional(sub, "--memory", "SIZE", "Memory of each node, e.g. 16Gi; a plain number is bytes",
                &spec.memory);
    AddOptional(
        sub, "--time", "DURATION",
        "Time limit, e.g. 90m, 4h, 30:00 (minutes:seconds) or 1-12:00:00; a plain number is "
        "seconds",
        &spec.time);
    AddOptional(sub, "--image", "IMAGE",
                "The container image to run in, e.g. nvcr.io/nvidia/pytorch:24.10-py3",
                &spec.image);
    AddRepeated(sub, "--mount", "SRC:DST[:ro]",
                "A directory of the cluster to mount in the container; ro: read-only",
                &spec.mounts);
    AddRepeated(sub, "--env", "KEY=VALUE", "An environment variable", &spec.env);
    AddSecretUses(sub, &spec);
    AddRepeated(sub, "--label", "KEY=VALUE", "A label", &spec.labels);
    AddOptional(
        sub, "--workdir", "TEXT",
        "The directory to start in: one of yours by a relative path, which is uploaded, or "
        "an absolute path of the cluster, e.g. $PWD; default: an empty one of the run's own",
        &spec.workdir);
    AddNumber(sub, "--priority", -1000, 1000, "Higher starts first, -1000 to 1000",
              [&spec](int64_t priority) { spec.priority = static_cast<int32_t>(priority); });
    // A plan submits nothing, so that there is nothing to wait for or to name.
    if (sub->get_name() == "plan") return;
    AddDependenciesAndLoss(sub, &spec);
    sub->add_flag("--wait", out_.wait,
                  "Wait for the end; exit with 0 (succeeded), 10 (failed), 11 (canceled) or 12 "
                  "(cluster failed)");
    sub->add_flag("--hold", out_.hold, "Hold the job from the start, until muster release");
    AddText(sub, "--request-id", "ID",
            "A name for the request: a repeat with the same name makes no second job",
            [this](const std::string& id) { out_.request_id = id; });
    sub->add_flag("--validate,--dry-run", out_.validate_only, "Check only, submit nothing");
    sub->add_flag("--raw", out_.raw, "Show the log's terminal escapes as they are");
  }

  CLI::Option* AddFile(CLI::App* sub) {
    sub->add_flag(
        "--strict", out_.strict,
        "Refuse fields of a SkyPilot task that have no effect here, instead of noting them");
    sub->add_option_function<std::string>(
           "--as", [this](const std::string& name) { SetDialect(name); },
           "Read FILE as a Muster job file (muster) or a SkyPilot task (sky); default: its fields "
           "decide")
        ->type_name("muster|sky");
    return sub->add_option("FILE", out_.file,
                           "A job file or a SkyPilot task in YAML; - is standard input");
  }

  void AddSubmit() {
    CLI::App* sub = Sub("submit", Verb::kSubmit, "Submit the jobs of a file, all or none",
                        "submit --wait --time 4h job.yaml");
    AddFile(sub)->required();
    AddSpec(sub);
  }

  void AddRun() {
    AddSpec(Sub("run", Verb::kRun, "Submit a command: muster run [flags] -- CMD [ARG...]",
                "run --wait --gpus H100:8 -- nvidia-smi"));
  }

  // Adds the options that choose the jobs to list or to count.
  void AddConditions(CLI::App* sub) {
    AddStates(sub, "--state", "Only these states, or held; several times: any of them",
              &out_.states);
    AddOptional(sub, "--name", "TEXT", "Only jobs of this name; * stands for any characters",
                &out_.spec.name);
    AddRepeated(sub, "--cluster", "NAME", "Only on this cluster; several times: any of them",
                &out_.spec.clusters);
    AddOptional(sub, "--project", "TEXT", "Only of this project", &out_.spec.project);
    AddRepeated(sub, "--label", "KEY=VALUE", "Only with this label", &out_.spec.labels);
    AddText(sub, "--filter", "TEXT",
            "More conditions, e.g. 'state = FAILED AND end_time > -1d', 'user = ada exit_code = "
            "75', 'NOT cluster = lab AND name = train OR label.team:*' (OR binds tighter than AND)",
            [this](const std::string& filter) { out_.filter = filter; });
  }

  void AddList() {
    CLI::App* sub = Sub("list", Verb::kList, "List jobs, the newest first",
                        "list --state running --label team=vision -o wide");
    AddConditions(sub);
    AddText(sub, "--order-by", "FIELD",
            "id, create_time, start_time, end_time, priority or name, as in 'priority desc'",
            [this](const std::string& order) { out_.order_by = order; });
    AddNumber(sub, "--limit", 0, kUnlimited, "At most this many; 0: all", [this](int64_t limit) {
      out_.limit = static_cast<uint64_t>(limit);
    })->default_str("100");
    CLI::App* count = Sub("count", Verb::kCount, "Count jobs",
                          "count --by state,label=team --filter 'create_time > -7d'");
    AddCountBy(count, &out_.count_by);
    AddConditions(count);
  }

  void AddShowAndCancel() {
    AddJobs(Sub("show", Verb::kShow, "Show jobs and their runs with all details", "show 42"), true,
            &out_.jobs);
    AddChoiceAndReason(Sub("cancel", Verb::kCancel, "Cancel jobs",
                           "cancel 42 --reason 'wrong data'\n  muster cancel '43_*'\n  muster "
                           "cancel --filter 'state = QUEUED AND label.team = a' --dry-run"));
    AddJobs(Sub("why", Verb::kWhy, "Say why jobs wait or failed, or how they ended", "why 42"),
            false, &out_.jobs);
    AddChoiceAndReason(Sub("hold", Verb::kHold, "Keep waiting jobs from starting", "hold 42"));
    AddChoiceAndReason(Sub("release", Verb::kRelease, "Let held jobs start", "release 42"));
    AddChoiceAndReason(Sub("move", Verb::kMove, "Take jobs back from clusters' queues", "move 42"));
    AddUpdateAndRerun();
  }

  void AddChoiceAndReason(CLI::App* sub) {
    AddChoice(sub, "QUEUED", "Change nothing; show which jobs would change", &out_);
    AddReason(sub);
  }

  void AddReason(CLI::App* sub) {
    AddText(sub, "--reason", "TEXT", "The reason; kept with the job",
            [this](const std::string& reason) { out_.reason = reason; });
  }

  void AddUpdateAndRerun() {
    CLI::App* update = Sub("update", Verb::kUpdate, "Change the priority or the labels of jobs",
                           "update 42 --priority 5 --label a=b --remove-label c");
    AddJobs(update, false, &out_.jobs);
    AddNumber(update, "--priority", -1000, 1000, "Higher starts first, -1000 to 1000",
              [this](int64_t priority) { out_.spec.priority = static_cast<int32_t>(priority); });
    AddRepeated(update, "--label", "KEY=VALUE", "A label to add or to change", &out_.spec.labels);
    AddRepeated(update, "--remove-label", "KEY", "A label to take away", &out_.remove_labels);
    AddReason(update);
    CLI::App* rerun =
        Sub("rerun", Verb::kRerun, "Submit ended jobs again, as new jobs",
            "rerun 42 43\n  muster rerun --filter 'state = FAILED AND end_time > -1d'");
    AddChoice(rerun, "FAILED", "Submit nothing; say how many jobs would run again", &out_);
    rerun->add_flag("--hold", out_.hold, "Hold the new jobs, until muster release");
    AddText(rerun, "--request-id", "ID",
            "A name for the request: a repeat with the same name makes no more jobs",
            [this](const std::string& id) { out_.request_id = id; });
  }

  void AddClusters() {
    const auto name = [this](const std::string& text) { out_.cluster = text; };
    AddClusterFlags(
        Sub("clusters", Verb::kClusters,
            "Show the clusters, or one in detail; invite or revoke its agent; cordon it",
            "clusters -o wide\n  muster clusters cordon lab --reason 'new drivers'"),
        &out_);
    AddText(Sub("check", Verb::kCheck,
                "Check everything that jobs need on a cluster; exit with 1 if a check fails",
                "check lab"),
            "NAME", "", "The cluster's name", name)
        ->required();
    AddText(Sub("forget", Verb::kForget,
                "Forget a cluster that is gone; its agent must be stopped, and its runs ended",
                "forget lab"),
            "NAME", "", "The cluster's name", name)
        ->required();
  }

  void AddPlan() {
    CLI::App* sub = Sub("plan", Verb::kPlan,
                        "Show whether and when a job file or a command would start, and what "
                        "would be submitted; submits nothing",
                        "plan --time 4h job.yaml");
    AddFile(sub);
    AddSpec(sub);
    sub->add_flag(
        "--manifest", out_.manifest,
        "Show all that would be submitted: the manifest, the batch script or the command; "
        "-o wide does the same, and -o json, jsonl and yaml always have it");
  }

  void AddOwnVerbs() {
    for (const OwnVerb& verb : OwnVerbs()) {
      CLI::App* sub = Sub(std::string(verb.name), verb.verb, std::string(verb.description), "");
      sub->footer([&verb] {
        return std::string(verb.help) + (verb.verb == Verb::kSbatch ? "\n\n" + SbatchHelp() : "");
      });
      sub->footer("\nAlso, before the verb: --broker ADDRESS; see muster --help.");
    }
  }

  void AddLogs() {
    CLI::App* sub = Sub("logs", Verb::kLogs, "Print the log of a job's run", "logs -f 42");
    AddJobs(sub, true, &out_.jobs);
    sub->add_flag("-f,--follow", out_.follow,
                  "Follow the job to its end, run after run; with a run: its log only");
    AddNumber(sub, "--run", 1, std::numeric_limits<uint32_t>::max(), "The run; default: the latest",
              [this](int64_t run) { run_ = static_cast<uint32_t>(run); });
    AddNumber(sub, "--rank", 0, contract::kMaxNodes - 1, "The node rank", [this](int64_t rank) {
      out_.rank = static_cast<uint32_t>(rank);
    })->default_str("0");
    auto* output = sub->add_flag("--stdout", out_.only_output, "Only standard output");
    sub->add_flag("--stderr", out_.only_error, "Only standard error")->excludes(output);
    auto* tail =
        AddNumber(sub, "--tail", 0, kMaxTailLines, "Only this many last lines; 0: all",
                  [this](int64_t lines) { out_.tail_lines = static_cast<uint32_t>(lines); });
    tail->default_str("0");
    AddNumber(sub, "--since-offset", 0, kUnlimited,
              "The offset in bytes at which to begin; needs --stdout or --stderr",
              [this](int64_t offset) { out_.since_offset = static_cast<uint64_t>(offset); })
        ->excludes(tail)
        ->default_str("0");
    sub->add_flag("--raw", out_.raw, "Show terminal escapes as they are");
    sub->parse_complete_callback([this] {
      if (run_ > 0 && !out_.jobs.empty()) out_.jobs[0].run = run_;
    });
  }

  void AddCopy() {
    CLI::App* sub = Sub("cp", Verb::kCopy, "Copy files that a job has made to this machine",
                        "cp 42:results .\n  muster cp --rank 1 42:log.txt - | tail");
    AddJobPath(sub, &out_.jobs, &out_.path);
    AddText(sub, "TARGET", "", "A directory of yours, or a new name; - is standard output",
            [this](const std::string& target) { out_.target = target; })
        ->required();
    AddNumber(sub, "--rank", 0, contract::kMaxNodes - 1, "The node rank", [this](int64_t rank) {
      out_.rank = static_cast<uint32_t>(rank);
    })->default_str("0");
  }

  void AddEvents() {
    CLI::App* sub =
        Sub("events", Verb::kEvents,
            "Print the steps of jobs with their evidence; TIME is when Muster learned of a step",
            "events -f 42");
    AddJobs(sub, false, &out_.jobs);
    sub->add_flag("-f,--follow", out_.follow, "Follow the steps until the jobs have ended");
    AddText(sub, "--filter", "TEXT", "The jobs of a filter instead of numbers; needs -f",
            [this](const std::string& filter) { out_.filter = filter; });
    AddNumber(sub, "--since", 0, kUnlimited, "Only after this sequence number",
              [this](int64_t since) { out_.since = since; })
        ->default_str("0");
  }

  void AddWait() {
    CLI::App* sub =
        Sub("wait", Verb::kWait,
            "Wait until jobs have ended; exit with the code of the first that did not succeed",
            "wait --timeout 1h 42 43");
    AddJobs(sub, false, &out_.jobs);
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
  CLI::App app_{"Submit jobs to Muster and follow them.", "muster"};
};

// sbatch can answer in any form; the others print the columns that they are asked for.
bool HasOwnForm(Verb verb) {
  return verb == Verb::kSqueue || verb == Verb::kScancel || verb == Verb::kSacct ||
         verb == Verb::kSinfo || verb == Verb::kSky;
}

std::string BadLabel(const Invocation& call) {
  for (const std::string& label : call.spec.labels) {
    if (label.find('=') != std::string::npos && label[0] != '=') continue;
    return fmt::format("--label: {} is not KEY=VALUE", contract::Quoted(label));
  }
  return "";
}

// Finds errors that CLI11 cannot see. Empty: nothing is wrong.
std::string Inconsistency(const Invocation& call, bool has_command) {
  switch (call.verb) {
    case Verb::kRun:
      if (!has_command) return std::string(kDashes);
      if (call.command.empty()) return "there is no command after --";
      break;
    case Verb::kPlan:
      if (call.file.empty() == call.command.empty()) {
        return "give either a job file or, after --, a command";
      }
      break;
    case Verb::kLogs:
    case Verb::kCopy:
      if (call.jobs.size() > 1) return "one job at a time";
      [[fallthrough]];
    case Verb::kShow:
    case Verb::kWait:
    case Verb::kWhy:
    case Verb::kUpdate:
      if (call.jobs.empty()) return "name at least one job by its number";
      if (call.verb == Verb::kUpdate && !call.spec.priority && call.spec.labels.empty() &&
          call.remove_labels.empty()) {
        return "say what to change: --priority, --label or --remove-label";
      }
      if (const std::string bad = BadLabel(call); !bad.empty()) return bad;
      break;
    case Verb::kCancel:
    case Verb::kHold:
    case Verb::kRelease:
    case Verb::kMove:
    case Verb::kRerun:
      if (call.jobs.empty() == call.filter.empty()) {
        return call.jobs.empty() ? "name at least one job by its number, or give --filter"
                                 : "give either jobs or --filter";
      }
      break;
    case Verb::kList:
    case Verb::kCount:
      if (std::string bad = BadLabel(call); !bad.empty()) return bad;
      break;
    case Verb::kEvents:
      if (!call.jobs.empty() && !call.filter.empty()) return "give either jobs or --filter";
      if (call.jobs.empty() && !call.follow) return "name jobs by their numbers, or add -f";
      break;
    default:
      break;
  }
  if (HasOwnForm(call.verb) && (call.format.has_value() || call.quiet)) {
    return fmt::format(
        "this verb takes {} options, behind it; for other forms use muster list or muster clusters",
        call.verb == Verb::kSky ? "SkyPilot's" : "Slurm's");
  }
  const bool is_odd_log =
      call.verb == Verb::kLogs && (call.format == Format::kYaml || call.format == Format::kName);
  if (is_odd_log) return "logs has no -o yaml and no -o name; use json, an object for each line";
  if (call.wait && call.validate_only) return "--wait and --validate exclude each other";
  if (call.since_offset > 0 && !call.only_output && !call.only_error) {
    return "--since-offset needs --stdout or --stderr: each has bytes of its own";
  }
  return "";
}

// "muster help VERB" and "muster help" as what they mean: the verb, or nothing, and --help.
std::vector<const char*> HelpArguments(char** begin, char** end) {
  std::vector<const char*> arguments(begin, end);
  if (arguments.size() >= 2 && std::string_view(arguments[1]) == "help") {
    arguments.erase(arguments.begin() + 1);
    arguments.push_back("--help");
  }
  return arguments;
}

int UsageError(std::string_view message) {
  fmt::print(stderr, "muster: {}\nTry: muster --help\n", message);
  return kUsage;
}

}  // namespace

std::variant<Invocation, int> ParseCommandLine(int argc, char** argv) {
  // Everything after the first "--" is the user's, byte for byte; CLI11 must not look at it.
  char** const end = argv + argc;
  // Some verbs read what is behind them themselves.
  char** const own = OwnWords(argv + 1, end);
  char** const dashes =
      std::find_if(argv, own, [](const char* text) { return std::string_view(text) == "--"; });
  Invocation call;
  Grammar grammar(&call);
  const std::vector<const char*> arguments = HelpArguments(argv, dashes);
  try {
    grammar.app().parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return grammar.app().exit(error);
    return UsageError(ExplainUsage(grammar.app(), error, arguments, dashes != own));
  }
  const bool has_command = dashes != own;
  if (has_command && call.verb != Verb::kRun && call.verb != Verb::kPlan) {
    return UsageError("only run and plan take a command after --");
  }
  call.words.assign(own, end);
  if (has_command) call.command.assign(dashes + 1, own);
  // The API carries UTF-8 only. A file's name may be anything, and what describes a job is checked
  // with the job.
  char** const last = HasOwnForm(call.verb) ? end : dashes;
  char** const odd = std::find_if(argv, last, [](char* text) { return !contract::IsUtf8(text); });
  if (odd != last && call.verb != Verb::kSubmit && call.verb != Verb::kRun &&
      call.verb != Verb::kPlan) {
    return UsageError(fmt::format("{} is not UTF-8", contract::Quoted(*odd)));
  }
  if (std::string problem = Inconsistency(call, has_command); !problem.empty())
    return UsageError(problem);
  return call;
}

}  // namespace muster::cli
