// muster sbatch: a batch script as it is.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cli/exit_code.h"
#include "clients/cli/field_flags.h"
#include "clients/cli/follow.h"
#include "clients/cli/known_clusters.h"
#include "clients/cli/slurm/dependency.h"
#include "clients/cli/slurm/job_record.h"
#include "clients/cli/slurm/refusal.h"
#include "clients/cli/slurm/sbatch_flags.h"
#include "clients/cli/slurm/sbatch_help.h"
#include "clients/cli/slurm/verbs.h"
#include "clients/cli/submission.h"
#include "clients/cli/text.h"
#include "clients/cpp/slurm/sbatch_job.h"
#include "contract/parts.h"
#include "contract/sentences.h"
#include "contract/shell_environment.h"
#include "contract/task_array.h"
#include "contract/text.h"
#include "daemon/read_file.h"

namespace muster::cli {
namespace {

namespace slurm = client::slurm;

// A broker takes 16 MiB in one call; the rest is for what goes around the jobs.
constexpr size_t kMaxArrayBytes = 15 << 20;

std::map<std::string, std::string> Environment() {
  std::map<std::string, std::string> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text = *one;
    const size_t equals = std::min(text.find('='), text.size());
    variables.emplace(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return variables;
}

// The umask and the soft limits of this process, which are those of the user's shell.
slurm::ShellLimits Limits() {
  constexpr std::pair<std::string_view, int> kResources[] = {
      {"AS", RLIMIT_AS},         {"CORE", RLIMIT_CORE},   {"CPU", RLIMIT_CPU},
      {"DATA", RLIMIT_DATA},     {"FSIZE", RLIMIT_FSIZE}, {"MEMLOCK", RLIMIT_MEMLOCK},
      {"NOFILE", RLIMIT_NOFILE}, {"NPROC", RLIMIT_NPROC}, {"RSS", RLIMIT_RSS},
      {"STACK", RLIMIT_STACK}};
  slurm::ShellLimits limits;
  limits.umask = umask(0);
  umask(*limits.umask);
  for (const auto& [name, resource] : kResources) {
    rlimit limit = {};
    if (getrlimit(resource, &limit) != 0) continue;
    const bool is_none = limit.rlim_cur == RLIM_INFINITY;
    limits.soft.emplace(name, is_none ? slurm::kNoLimit : limit.rlim_cur);
  }
  return limits;
}

// Looks for the script as sbatch does: from here, then in PATH.
std::string FindScript(const std::string& name) {
  std::error_code ignored;
  const bool is_here =
      name.find('/') != std::string::npos || std::filesystem::exists(name, ignored);
  const char* path = getenv("PATH");
  if (is_here || path == nullptr) return name;
  for (std::string_view directory : contract::Split(path, ':')) {
    const std::string candidate = fmt::format("{}/{}", directory, name);
    if (access(candidate.c_str(), R_OK) == 0) return candidate;
  }
  return name;
}

absl::StatusOr<std::string> ReadScript(const slurm::SbatchCommandLine& line) {
  if (line.options.Find("wrap") != nullptr) return std::string();
  const bool is_input = line.script_path.empty() || line.script_path == "-";
  return ReadFile(is_input ? "-" : FindScript(line.script_path), slurm::kMaxBatchScriptBytes);
}

// The user's input is wrong; other errors have codes of their own.
int FailSbatchUsage(Session& session, const absl::Status& status) {
  const int code = Fail(session, status);
  return absl::IsInvalidArgument(status) ? kUsage : code;
}

// They are answered, and nothing is submitted.
constexpr std::string_view kQuestions[] = {"help", "usage", "version"};

struct AskedSbatch {
  slurm::Settings options;
  slurm::SbatchJob job;
};

// The file of --export-file: its path, or the number of an open descriptor.
absl::StatusOr<std::map<std::string, std::string>> ReadExports(const slurm::Setting& setting) {
  const auto descriptor = contract::ParseNumber<int>(setting.value);
  const std::string path =
      descriptor.has_value() ? fmt::format("/dev/fd/{}", *descriptor) : setting.value;
  const absl::StatusOr<std::string> text = ReadFile(path, contract::kMaxShellBytes);
  if (!text.ok()) return text.status();
  auto variables = slurm::ReadExportFile(*text);
  if (variables.ok()) return variables;
  return absl::InvalidArgumentError(
      fmt::format("--export-file={}: {}", setting.value, ToStd(variables.status().message())));
}

// Takes the options of plug-ins that some Slurm cluster allows. The clusters are asked only if
// there may be such options.
absl::Status TakeSpankOptions(client::Client& client, slurm::SbatchSubmission* submission) {
  if (!slurm::MayHaveSpankOptions(*submission)) return absl::OkStatus();
  const auto clusters = AllClusters(client);
  if (!clusters.ok()) return clusters.status();
  std::set<std::string> allowed;
  for (const auto& [name, cluster] : *clusters) {
    const auto& options = cluster.inventory().admission().slurm().spank_options();
    allowed.insert(options.begin(), options.end());
  }
  slurm::TakeSpankOptions(allowed, submission);
  return absl::OkStatus();
}

absl::StatusOr<AskedSbatch> AskedOf(Session& session) {
  const std::vector<std::string>& words = session.call.words;
  // The script's path is needed to read the script.
  const absl::StatusOr<slurm::SbatchCommandLine> line = slurm::ReadSbatchCommandLine(words);
  if (!line.ok()) return line.status();
  AskedSbatch asked;
  asked.options = line->options;
  const bool is_question = std::any_of(
      std::begin(kQuestions), std::end(kQuestions),
      [&](std::string_view question) { return line->options.Find(question) != nullptr; });
  if (is_question) return asked;
  const absl::StatusOr<std::string> script = ReadScript(*line);
  if (!script.ok()) return script.status();
  const std::map<std::string, std::string> environment = Environment();
  auto submission = slurm::ReadSbatch(words, environment, *script);
  if (!submission.ok()) return submission.status();
  if (absl::Status asked_all = TakeSpankOptions(session.client, &*submission); !asked_all.ok())
    return asked_all;
  std::error_code error;
  const std::string directory = std::filesystem::current_path(error).string();
  if (error) return absl::NotFoundError("the working directory is gone; change to another one");
  slurm::SubmitEnvironment from;
  from.variables = environment;
  from.limits = Limits();
  from.leave_behind = session.leave_behind;
  if (const slurm::Setting* file = submission->options.Find("export-file"); file != nullptr) {
    auto variables = ReadExports(*file);
    if (!variables.ok()) return variables.status();
    from.file = *std::move(variables);
  }
  auto job = slurm::MapSbatch(*submission, {directory, line->script_path, std::move(from)});
  if (!job.ok()) return job.status();
  asked.options = std::move(submission->options);
  asked.job = *std::move(job);
  return asked;
}

// Prints the warnings of a plan, a line for each.
void TellPlanWarnings(Session& session, const v1::JobPlan& plan) {
  for (const v1::SubmitWarning& warning : plan.warnings()) {
    session.terminal.Err(fmt::format("sbatch: warning: {}\n", WarningText(warning, SbatchFlags())));
  }
}

// sbatch --test-only: on standard error, and nothing is submitted. For an array its first task is
// tested, since the others differ from it by their numbers alone.
int TestOnly(Session& session, const v1::JobSpec& spec) {
  v1::PlanJobRequest request;
  *request.mutable_spec() = spec;
  const auto response = session.client.PlanJob(request);
  if (!response.ok()) return Fail(session, NamingFlags(response.status(), SbatchFlags()));
  bool is_good = false;
  for (const v1::JobPlan& plan : response->plans()) {
    std::string problem;
    for (const v1::ClusterCheck& check : plan.checks()) {
      if (check.result() != v1::CHECK_RESULT_FAIL) continue;
      problem += fmt::format("; {}: {}", OneLine(Typed(check.subject(), SbatchFlags())),
                             OneLine(check.seen()));
    }
    is_good = is_good || problem.empty();
    const std::string when = plan.has_estimated_start_time()
                                 ? " at " + LocalTime(plan.estimated_start_time(), "")
                                 : std::string(" at an unknown time");
    session.terminal.Err(
        problem.empty()
            ? fmt::format("sbatch: Job to start{} on nodes {} of cluster {}\n", when,
                          plan.nodes().empty()
                              ? "(unknown)"
                              : Harmless(fmt::format("{}", fmt::join(plan.nodes(), ","))),
                          Harmless(plan.cluster()))
            : fmt::format("sbatch: error: Job could not run on cluster {}{}\n",
                          Harmless(plan.cluster()), problem));
    TellPlanWarnings(session, plan);
  }
  return is_good ? kOk : kError;
}

// Says so if the job's cluster refuses it, as sbatch does before it prints a number. The tasks of
// an array differ by their numbers alone, so that one of them stands for all.
bool TellRefusal(Session& session, const v1::SubmitJobsResponse& accepted) {
  const uint64_t id = accepted.responses(0).job_id();
  session.interrupt->SetRemark(fmt::format("interrupted; job {} is submitted", id));
  const auto job = AwaitRefusal(session.client, id, absl::Now() + kMaxLaunchWait);
  if (!job.has_value()) return false;
  const v1::Failure& failure = job->failure();
  session.terminal.Err(
      fmt::format("muster: job {}: {}\n", id,
                  OneLine(contract::WithRemedy(failure.message(), failure.remedy()))));
  return true;
}

// sbatch --wait: the highest code of the scripts; 1 if a signal ended one, or it never began.
int WaitForScripts(Session& session, const v1::SubmitJobsResponse& accepted) {
  std::vector<uint64_t> ids;
  for (const auto& one : accepted.responses()) ids.push_back(one.job_id());
  session.interrupt->SetRemark(
      fmt::format("no longer waiting; {} on. Come back with: muster wait {}",
                  ids.size() == 1 ? "the job goes" : "the jobs go", fmt::join(ids, " ")));
  const auto jobs = WaitForJobs(session, ids, absl::InfiniteFuture());
  if (!jobs.ok()) return Fail(session, jobs.status());
  int code = kOk;
  for (const v1::Job& job : *jobs) {
    if (job.state() == v1::JOB_STATE_SUCCEEDED) continue;
    NoteEnd(session, job);
    code = std::max<int>(code, job.exit().code() > 0 ? job.exit().code() : kError);
  }
  return code;
}

// "Submitted batch job 42", which scripts read; for an array its number. --quiet leaves the line
// out unless --parsable asks for it, as sbatch's manual says.
void PrintSubmitted(Session& session, const slurm::Settings& options, const v1::JobSpec& spec,
                    const v1::SubmitJobsResponse& accepted) {
  // sbatch names the cluster if the user did.
  const auto& named = spec.placement().clusters();
  const std::string cluster = named.size() == 1 && options.Find("clusters") ? named[0] : "";
  const uint64_t first = accepted.responses(0).job_id();
  const int count = accepted.responses_size();
  if (options.Find("parsable") != nullptr || session.ids_only()) {
    session.terminal.Out(fmt::format("{}{}{}\n", first, cluster.empty() ? "" : ";", cluster));
  } else if (!session.for_people()) {
    if (count == 1) return PrintMessage(session, accepted.responses(0));
    PrintMessage(session, accepted);
  } else if (options.Find("quiet") == nullptr) {
    session.terminal.Out(fmt::format("Submitted batch job {}{}{}\n", first,
                                     cluster.empty() ? "" : " on cluster ", cluster));
    if (count == 1) return;
    session.terminal.Note(fmt::format("its {} tasks are the jobs {} to {}", count, first,
                                      accepted.responses(count - 1).job_id()));
  }
}

// The jobs: of an array one for each task. RESOURCE_EXHAUSTED: they are too large for one call.
absl::StatusOr<std::vector<v1::JobSpec>> JobsOf(const slurm::SbatchJob& job) {
  if (job.tasks.empty()) return std::vector<v1::JobSpec>{job.spec};
  const size_t bytes = job.spec.ByteSizeLong() * job.tasks.size();
  if (bytes > kMaxArrayBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("--array: the script goes with each task, which makes {} bytes for {} tasks; "
                    "the broker takes {} at once: submit fewer tasks at a time, or keep the script "
                    "on the cluster and submit one that starts it",
                    bytes, job.tasks.size(), kMaxArrayBytes));
  }
  std::vector<v1::JobSpec> specs(job.tasks.size(), job.spec);
  for (size_t i = 0; i < specs.size(); ++i) contract::SetArrayTask(job.tasks[i], &specs[i]);
  return specs;
}

}  // namespace

int Sbatch(Session& session) {
  absl::StatusOr<AskedSbatch> asked = AskedOf(session);
  if (!asked.ok()) return FailSbatchUsage(session, asked.status());
  const slurm::Settings& options = asked->options;
  if (options.Find("version") != nullptr) {
    session.terminal.Out("muster " MUSTER_VERSION "\n");
    return kOk;
  }
  if (options.Find("help") != nullptr) {
    session.terminal.Out("Usage: muster sbatch [OPTIONS] SCRIPT [ARGUMENT...]\n\n" + SbatchHelp());
    return kOk;
  }
  if (options.Find("usage") != nullptr) {
    session.terminal.Out(SbatchUsage());
    return kOk;
  }
  if (options.Find("quiet") != nullptr) session.terminal.BeQuiet();
  for (const std::string& note : asked->job.notes) session.terminal.Note(note);
  v1::JobSpec& spec = asked->job.spec;
  if (absl::Status status = ExpandSingleton(session.client, &spec); !status.ok()) {
    return Fail(session, status);
  }
  if (absl::Status status = CheckSpec(spec, SbatchFlags()); !status.ok()) {
    return FailSbatchUsage(session, status);
  }
  std::vector<std::string> notes;
  const absl::Status translated = TranslateDependency(session.client, &spec, &notes);
  for (const std::string& note : notes) session.terminal.Note(note);
  if (absl::Status status = translated; !status.ok()) {
    return Fail(session, status);
  }
  absl::StatusOr<std::vector<v1::JobSpec>> jobs = JobsOf(asked->job);
  if (!jobs.ok()) return Fail(session, jobs.status());
  if (options.Find("test-only") != nullptr) return TestOnly(session, jobs->front());
  client::JobFile scripts;
  scripts.specs = *std::move(jobs);
  const std::string& shell = spec.slurm().batch_script().environment().file_sha256();
  if (!shell.empty()) scripts.contents.emplace(shell, asked->job.shell_file);
  const auto sent = SendJobs(session, std::move(scripts), SbatchFlags(), false);
  if (const int* code = std::get_if<int>(&sent)) return *code;
  const auto& accepted = std::get<v1::SubmitJobsResponse>(sent);
  if (TellRefusal(session, accepted)) return kError;
  PrintSubmitted(session, options, spec, accepted);
  return options.Find("wait") == nullptr ? kOk : WaitForScripts(session, accepted);
}

}  // namespace muster::cli
