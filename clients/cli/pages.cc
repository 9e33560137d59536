// The page of one job.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clients/cli/estimates.h"
#include "clients/cli/page.h"
#include "clients/cli/render.h"
#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/job_files.h"
#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/counted.h"
#include "contract/lost_clusters.h"
#include "contract/roles.h"
#include "contract/shell_environment.h"
#include "contract/states.h"
#include "contract/task_array.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// Lines of a script that are shown; `-o yaml` shows all of it.
constexpr size_t kMaxScriptLines = 20;
// Numbers of a training that are shown; likewise.
constexpr size_t kMaxNumbers = 12;

using Variables = google::protobuf::Map<std::string, std::string>;

// A task's variables about its array are left out, since its place has a line of its own.
Variables WithoutArray(const Variables& variables) {
  Variables others;
  for (const auto& [name, value] : variables) {
    if (!contract::IsArrayVariable(name)) others[name] = value;
  }
  return others;
}

std::string Sorted(const google::protobuf::Map<std::string, std::string>& map) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : map) {
    pairs.push_back(fmt::format("{}={}", Harmless(key), Harmless(value)));
  }
  std::sort(pairs.begin(), pairs.end());
  return fmt::format("{}", fmt::join(pairs, " "));
}

// Arguments with blanks are quoted so that one can see where they end; this is not for a shell.
std::string CommandLine(const google::protobuf::RepeatedPtrField<std::string>& words) {
  std::string line;
  for (const std::string& argument : words) {
    const bool plain = !argument.empty() && argument.find_first_of(" \t\n\"") == std::string::npos;
    line += line.empty() ? "" : " ";
    line += plain ? Harmless(argument) : fmt::format("\"{}\"", Harmless(argument));
  }
  return line;
}

std::string Script(std::string_view script) {
  std::string text;
  size_t lines = 0;
  while (!script.empty() && lines++ < kMaxScriptLines) {
    const std::string_view line = script.substr(0, script.find('\n'));
    text += fmt::format("    {}\n", Harmless(line));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
  }
  if (!script.empty()) text += "    ... (all of it: muster show -o yaml)\n";
  return text;
}

std::string Indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    text += fmt::format("    {}\n", Harmless(line));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
  }
  return text;
}

std::string ResourcesText(const v1::JobSpec& spec) {
  const v1::Resources& resources = spec.resources();
  const std::string each = spec.nodes() > 1 ? fmt::format("{} nodes, each ", spec.nodes()) : "";
  std::string text = each;
  if (resources.cpu_millis() == 0 && resources.memory_bytes() == 0) {
    text += "cpus and memory by the cluster's default";
  } else {
    text += resources.cpu_millis() == 0 ? "cpus by the cluster's default"
                                        : contract::FormatCpus(resources.cpu_millis()) + " cpu";
    if (resources.memory_bytes() > 0)
      text += fmt::format(", {} memory", contract::FormatBytes(resources.memory_bytes()));
  }
  for (const v1::GpuRequest& gpus : resources.gpus()) {
    text += gpus.count_millis() == 0
                ? ", no GPUs"
                : fmt::format(", GPU {}", Harmless(contract::FormatGpus(gpus)));
  }
  if (spec.has_time_limit()) {
    text += fmt::format("; at most {}", TimeLimitText(spec));
  }
  return text;
}

void AppendCommand(const v1::Command& command, Page* page) {
  if (command.has_argv()) {
    page->Line("Command", CommandLine(command.argv().args()));
  } else if (!command.script().empty()) {
    page->Label("Script");
    page->Raw(Script(command.script()));
    page->Line("Arguments", CommandLine(command.script_arguments()));
  }
}

// "12 succeeded, 13 ended": jobs that have to end first, and how.
std::string DependenciesText(const v1::JobSpec& spec) {
  std::string text;
  for (const v1::JobDependency& one : spec.depends_on()) {
    const std::string_view end = one.outcome() == v1::JOB_OUTCOME_FAILED  ? "failed"
                                 : one.outcome() == v1::JOB_OUTCOME_ENDED ? "ended"
                                                                          : "succeeded";
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.job_id(), end);
  }
  return text;
}

void AppendSpec(const v1::JobSpec& spec, Page* page) {
  page->Line("Needs", ResourcesText(spec));
  page->Line("After", DependenciesText(spec));
  page->Line("Clusters", Harmless(fmt::format("{}", fmt::join(spec.placement().clusters(), ", "))));
  page->Line("Pool", Harmless(spec.placement().pool()));
  if (spec.on_cluster_loss() != v1::CLUSTER_LOSS_POLICY_UNSPECIFIED)
    page->Line("Cluster lost", contract::Name(spec.on_cluster_loss()));
  page->Line("Image", Harmless(spec.image()));
  if (spec.has_kubernetes()) {
    page->Label("Kubernetes");
    page->Raw(Indented(ToYaml(spec.kubernetes())));
  }
  page->Line("Directory", Harmless(spec.working_directory()));
  page->Line("Environment", Sorted(WithoutArray(spec.env())));
  if (contract::HasShellEnvironment(spec)) {
    // Their values are not in the job.
    const auto& named = spec.slurm().batch_script().environment().named();
    page->Line("Shell", "variables of the submitter's shell" +
                            (named.empty() ? ""
                                           : Harmless(fmt::format(", among them by name: {}",
                                                                  fmt::join(named, " ")))));
  }
  if (!spec.setup().empty()) {
    page->Label("Setup");
    page->Raw(Script(spec.setup()));
  }
  AppendCommand(spec.command(), page);
  const std::vector<uint32_t> first_ranks = contract::FirstRanks(spec);
  for (int i = 0; i < spec.roles_size(); ++i) {
    const v1::Role& role = spec.roles(i);
    const uint32_t first_rank = first_ranks[static_cast<size_t>(i)];
    const std::string ranks = role.nodes() == 1 ? fmt::format("rank {}", first_rank)
                                                : fmt::format("ranks {} to {}", first_rank,
                                                              first_rank + role.nodes() - 1);
    page->Line("Role", fmt::format("{}: {}, from node {} on{}", Harmless(role.name()), ranks,
                                   role.first_node(), role.leads() ? ", leads" : ""));
    page->Line("Environment", Sorted(role.env()));
    AppendCommand(role.command(), page);
  }
}

std::string IssueText(const v1::ReadinessIssue& issue, absl::Time now) {
  std::string text = OneLine(issue.reason());
  if (!issue.message().empty()) text += (text.empty() ? "" : ": ") + OneLine(issue.message());
  if (issue.has_since()) text += fmt::format(" (since {})", Ago(issue.since(), now));
  return text;
}

void AppendReplicas(const v1::Run& run, const Style& style, absl::Time now, Page* page) {
  if (run.replicas().empty()) return;
  Table table({{"RANK", 0, true}, {"POD"}, {"NODE"}, {"PHASE"}, {"ISSUE"}}, style.colours);
  for (const v1::Replica& replica : run.replicas()) {
    const std::string node = Harmless(replica.node());
    table.Add({{fmt::format("{}", replica.rank())},
               {Harmless(replica.name())},
               {node.empty() ? "-" : node},
               {Harmless(replica.phase())},
               {replica.has_issue() ? IssueText(replica.issue(), now) : "-", Colour::kYellow}});
  }
  page->Raw("\n");
  page->Raw(table.Take());
}

// "epoch 3, kpi.val_loss 0.12: Training loop in progress (2m ago)".
std::string ProgressText(const v1::Progress& progress, absl::Time now) {
  std::vector<std::string> numbers;
  for (const auto& [name, number] : progress.numbers())
    numbers.push_back(fmt::format("{} {:.6g}", Harmless(name), number));
  // The epoch tells most.
  std::sort(numbers.begin(), numbers.end(), [](const std::string& a, const std::string& b) {
    return std::pair(!a.starts_with("epoch "), std::string_view(a)) <
           std::pair(!b.starts_with("epoch "), std::string_view(b));
  });
  std::string text = contract::ListedUpTo(kMaxNumbers, std::move(numbers));
  if (!progress.message().empty()) text += (text.empty() ? "" : ": ") + OneLine(progress.message());
  if (progress.has_time()) text += fmt::format(" ({})", Ago(progress.time(), now));
  return text;
}

// "12.3 s of processor time (user 11.1 s, system 1.2 s), up to 200Mi of memory".
std::string UsageText(const v1::ResourceUsage& usage) {
  const double user = absl::ToDoubleSeconds(ToDuration(usage.user_cpu_time()));
  const double system = absl::ToDoubleSeconds(ToDuration(usage.system_cpu_time()));
  const std::string memory =
      usage.max_rss_bytes() == 0
          ? ""
          : fmt::format(", up to {} of memory", contract::FormatBytes(usage.max_rss_bytes()));
  return fmt::format("{:.3g} s of processor time (user {:.3g} s, system {:.3g} s){}", user + system,
                     user, system, memory);
}

std::string AllocationText(const v1::SlurmAllocation& allocation) {
  std::vector<std::string> parts;
  for (const auto& [what, name] :
       {std::pair("partition", &allocation.partition()),
        std::pair("account", &allocation.account()), std::pair("QOS", &allocation.qos())}) {
    if (!name->empty()) parts.push_back(fmt::format("{} {}", what, Harmless(*name)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void AppendRun(const v1::Job& job, const v1::Run& run, const Style& style, absl::Time now,
               Page* page) {
  page->Heading(fmt::format("Run {}.{}", job.id(), run.number()));
  page->Line("State", contract::Name(run.state()), ColourOf(contract::JobStateFor(run.state())));
  page->Line("Cluster", Harmless(run.cluster()));
  page->Line("Run key", Harmless(run.run_key()));
  page->Line("Cluster id", Harmless(run.external_id()));
  page->Line("Nodes", Harmless(fmt::format("{}", fmt::join(run.nodes(), ", "))));
  if (run.cluster() == job.cluster()) page->Line("Output", Harmless(OutputPath(job, run)));
  page->Line("In Slurm", AllocationText(run.slurm_allocation()));
  page->Line("Results", Harmless(run.results_directory()));
  if (run.has_progress()) page->Line("Progress", ProgressText(run.progress(), now));
  page->Line("Reason", OneLine(run.state_reason().message()));
  page->Time("Lease ends", run.lease_end_time(), now);
  page->Time("Assigned", run.assign_time(), now);
  if (run.has_start_estimate())
    page->Line("Estimate", EstimateText(run.start_estimate(), ToTime(run.assign_time())));
  page->Time("Started", run.start_time(), now);
  page->Time("Ended", run.end_time(), now);
  if (run.has_usage()) page->Line("Used", UsageText(run.usage()));
  if (!contract::IsTerminal(run.state())) page->Time("Confirmed", run.observed_at(), now);
  if (contract::IsTerminal(run.state()) && !run.logs_complete()) {
    page->Line("Log", "not all of it has arrived");
  }
  AppendReplicas(run, style, now, page);
}

void AppendFailure(const v1::Job& job, Page* page) {
  const v1::Failure& failure = job.failure();
  if (failure.failure_class() == v1::FAILURE_CLASS_UNSPECIFIED && failure.message().empty()) return;
  page->Heading(fmt::format("Failure ({})", contract::Name(failure.failure_class())));
  std::string message = failure.message();
  while (!message.empty()) {
    const std::string line = message.substr(0, message.find('\n'));
    page->Raw(fmt::format("  {}\n", Harmless(line)));
    message.erase(0, line.size() + 1);
  }
  for (const v1::FailureQuote& quote : failure.quotes()) {
    page->Raw(fmt::format("  {}: {}\n", Harmless(quote.source()), Harmless(quote.text())));
  }
  if (!failure.remedy().empty()) {
    page->Raw(fmt::format("  What to do: {}\n", OneLine(failure.remedy())));
  }
  if (const std::string hint = QuotesHint(job); !hint.empty()) {
    page->Raw(fmt::format("  What to do: {}\n", hint));
  }
  if (const std::string commands = LogCommands(job); !commands.empty()) {
    page->Raw(fmt::format("  Its output: {}\n", commands));
  }
}

}  // namespace

std::string JobPage(const v1::Job& job, const std::vector<v1::Transition>& history,
                    const Style& style, absl::Time now) {
  Page page(style.colours);
  page.Heading(fmt::format("Job {}  {}", job.id(), Harmless(job.name())));
  page.Line("State", contract::Name(job.state()), ColourOf(job.state()));
  page.Line("Exit", ExitText(job));
  page.Line("Reason", OneLine(job.state_reason().message()));
  page.Line("What to do", OneLine(job.state_reason().remedy()));
  if (job.cancel_requested()) page.Line("Cancel", "requested");
  page.Line("Project", Harmless(job.project()));
  page.Line("User", Harmless(job.user()));
  if (job.priority() != 0) page.Line("Priority", fmt::format("{}", job.priority()));
  page.Line("Array", TaskText(job));
  page.Line("Labels", Sorted(job.labels()));
  page.Time("Submitted", job.create_time(), now);
  page.Time("Started", job.start_time(), now);
  page.Time("Ended", job.end_time(), now);
  if (job.has_spec()) AppendSpec(job.spec(), &page);
  AppendFailure(job, &page);
  for (const v1::Run& run : job.runs()) AppendRun(job, run, style, now, &page);
  if (!history.empty()) {
    page.Heading("History");
    Table table(EventColumns(style), style.colours);
    for (const v1::Transition& step : history) table.Add(EventRow(job.id(), step, style));
    page.Raw(table.Take());
  }
  return page.Take();
}

}  // namespace muster::cli
