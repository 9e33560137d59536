// Pages: everything about one job or one cluster.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cli/text.h"
#include "clients/cli/views.h"
#include "contract/states.h"
#include "contract/units.h"

namespace muster::cli {
namespace {

// Of a script; `-o yaml` shows all of it.
constexpr size_t kMaxScriptLines = 20;

// Lines "Label      value". Values that are empty are left out.
class Page {
 public:
  explicit Page(bool colours) : colours_(colours) {}

  void Heading(std::string_view text) {
    if (!out_.empty()) out_ += '\n';
    out_ += text;
    out_ += '\n';
  }
  void Line(std::string_view label, std::string_view value, Colour colour = Colour::kNone) {
    if (value.empty() || value == "-") return;
    out_ += fmt::format("  {:<11} {}\n", label, Paint(value, colour, colours_));
  }
  void Time(std::string_view label, const google::protobuf::Timestamp& time, absl::Time now) {
    if (time.seconds() == 0) return;
    Line(label, fmt::format("{} ({})", Rfc3339(time), Ago(time, now)));
  }
  void Raw(std::string_view text) { out_ += text; }
  std::string Take() { return std::move(out_); }

 private:
  const bool colours_;
  std::string out_;
};

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

std::string ResourcesText(const v1::JobSpec& spec) {
  const v1::Resources& resources = spec.resources();
  const std::string each = spec.nodes() > 1 ? fmt::format("{} nodes, each ", spec.nodes()) : "";
  std::string text = fmt::format("{}{} cpu", each, contract::FormatCpus(resources.cpu_millis()));
  if (resources.memory_bytes() > 0) {
    text += fmt::format(", {} memory", contract::FormatBytes(resources.memory_bytes()));
  }
  for (const v1::GpuRequest& gpus : resources.gpus()) {
    text += fmt::format(", GPU {}", Harmless(contract::FormatGpus(gpus)));
  }
  if (spec.has_time_limit()) {
    text += fmt::format("; at most {}", TimeLimitText(spec));
  }
  return text;
}

void AppendSpec(const v1::JobSpec& spec, Page* page) {
  page->Line("Needs", ResourcesText(spec));
  page->Line("Clusters", Harmless(fmt::format("{}", fmt::join(spec.placement().clusters(), ", "))));
  page->Line("Pool", Harmless(spec.placement().pool()));
  page->Line("Directory", Harmless(spec.working_directory()));
  page->Line("Environment", Sorted(spec.env()));
  if (!spec.setup().empty()) {
    page->Line("Setup", " ");
    page->Raw(Script(spec.setup()));
  }
  if (spec.command().has_argv()) {
    page->Line("Command", CommandLine(spec.command().argv().args()));
  } else if (!spec.command().script().empty()) {
    page->Line("Script", " ");
    page->Raw(Script(spec.command().script()));
    page->Line("Arguments", CommandLine(spec.command().script_arguments()));
  }
}

void AppendRun(const v1::Job& job, const v1::Run& run, absl::Time now, Page* page) {
  page->Heading(fmt::format("Run {}.{}", job.id(), run.number()));
  page->Line("State", contract::Name(run.state()), ColourOf(contract::JobStateFor(run.state())));
  page->Line("Cluster", Harmless(run.cluster()));
  page->Line("Run key", Harmless(run.run_key()));
  page->Line("Known as", Harmless(run.external_id()));
  page->Line("Nodes", Harmless(fmt::format("{}", fmt::join(run.nodes(), ", "))));
  page->Line("Reason", OneLine(run.reason()));
  page->Time("Assigned", run.assign_time(), now);
  page->Time("Started", run.start_time(), now);
  page->Time("Ended", run.end_time(), now);
  if (!contract::IsTerminal(run.state())) page->Time("Confirmed", run.observed_at(), now);
  if (contract::IsTerminal(run.state()) && !run.logs_complete()) {
    page->Line("Log", "not all of it has arrived");
  }
}

void AppendFailure(const v1::Job& job, Page* page) {
  const v1::Failure& failure = job.failure();
  if (failure.failure_class() == v1::FAILURE_CLASS_UNSPECIFIED && failure.message().empty()) return;
  page->Heading(fmt::format("Failure ({})", contract::Name(failure.failure_class())));
  std::string message = FailureText(job);
  while (!message.empty()) {
    const std::string line = message.substr(0, message.find('\n'));
    page->Raw(fmt::format("  {}\n", Harmless(line)));
    message.erase(0, line.size() + 1);
  }
  if (!failure.suggestion().empty()) {
    page->Raw(fmt::format("  What to do: {}\n", OneLine(failure.suggestion())));
  }
  if (const std::string hint = QuotesHint(job); !hint.empty()) {
    page->Raw(fmt::format("  What to do: {}\n", hint));
  }
  if (const std::string commands = LogCommands(job); !commands.empty()) {
    page->Raw(fmt::format("  Its output: {}\n", commands));
  }
}

std::string PoolText(const v1::Pool& pool) {
  std::vector<std::string> groups;
  for (const v1::NodeGroup& group : pool.node_groups()) {
    std::string text = fmt::format("{} x {} cpus", group.count(), group.cpus());
    if (group.memory_bytes() > 0) text += " " + contract::FormatBytes(group.memory_bytes());
    const std::map<std::string, uint32_t> gpus(group.gpus().begin(), group.gpus().end());
    for (const auto& [type, count] : gpus) text += fmt::format(" {}:{}", Harmless(type), count);
    if (group.usable_count() < group.count())
      text += fmt::format(" ({} usable)", group.usable_count());
    groups.push_back(std::move(text));
  }
  std::string text = fmt::format("{}", fmt::join(groups, "; "));
  if (pool.has_max_time_limit()) {
    const absl::Duration limit = absl::Seconds(pool.max_time_limit().seconds());
    text += fmt::format(", at most {}", contract::FormatDuration(limit));
  }
  if (pool.is_default()) text += ", default";
  if (!pool.available()) text += ", takes no jobs now";
  return text;
}

}  // namespace

std::string JobPage(const v1::Job& job, const std::vector<v1::Transition>& history,
                    const Style& style, absl::Time now) {
  Page page(style.colours);
  page.Heading(fmt::format("Job {}  {}", job.id(), Harmless(job.name())));
  page.Line("State", contract::Name(job.state()), ColourOf(job.state()));
  page.Line("Exit", ExitText(job));
  page.Line("Reason", OneLine(job.reason()));
  if (job.cancel_requested()) page.Line("Cancel", "requested");
  page.Line("Project", Harmless(job.project()));
  page.Line("User", Harmless(job.user()));
  if (job.priority() != 0) page.Line("Priority", fmt::format("{}", job.priority()));
  page.Line("Labels", Sorted(job.labels()));
  page.Time("Submitted", job.create_time(), now);
  page.Time("Started", job.start_time(), now);
  page.Time("Ended", job.end_time(), now);
  if (job.has_spec()) AppendSpec(job.spec(), &page);
  AppendFailure(job, &page);
  for (const v1::Run& run : job.runs()) AppendRun(job, run, now, &page);
  if (!history.empty()) {
    page.Heading("History");
    Table table(EventColumns(style), style.colours);
    for (const v1::Transition& step : history) table.Add(EventRow(job.id(), step, style));
    page.Raw(table.Take());
  }
  return page.Take();
}

std::string ClusterPage(const v1::Cluster& cluster, const Style& style, absl::Time now) {
  Page page(style.colours);
  const Table::Row row = ClusterRow(cluster, style, now);
  page.Heading(fmt::format("Cluster {}  ({})", row[0].text, row[1].text));
  page.Line("State", row[2].text, row[2].colour);
  page.Line("Scheduler", Harmless(cluster.inventory().scheduler_version()));
  page.Line("Identity", Harmless(cluster.inventory().identity()));
  page.Line("Agent", Harmless(cluster.agent_version()));
  page.Time("Last seen", cluster.last_seen(), now);
  page.Time("Answered", cluster.scheduler_observed_at(), now);
  page.Line("No answer", OneLine(cluster.scheduler_error()), Colour::kYellow);
  page.Line("Runs",
            fmt::format("{} of at most {}", cluster.active_runs(), cluster.max_active_runs()));
  for (const v1::Pool& pool : cluster.inventory().pools()) {
    page.Line("Pool " + Harmless(pool.name()), PoolText(pool));
  }
  for (const std::string& warning : cluster.inventory().warnings()) {
    page.Line("Warning", Harmless(warning), Colour::kYellow);
  }
  const std::map<std::string, uint64_t> calls(cluster.scheduler_calls().begin(),
                                              cluster.scheduler_calls().end());
  std::string counts;
  for (const auto& [name, count] : calls) counts += fmt::format("{} {}  ", Harmless(name), count);
  page.Line("Calls", counts);
  return page.Take();
}

}  // namespace muster::cli
