// Makes the submission of a run.
#include <algorithm>
#include <cctype>

#include "absl/time/time.h"
#include "agents/slurm/leases.h"
#include "agents/slurm/submit.h"
#include "contract/errors.h"
#include "contract/parts.h"
#include "contract/slurm_options.h"
#include "contract/slurm_signal.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace muster::slurm {
namespace {

constexpr uint64_t kBytesPerMebibyte = 1 << 20;

uint64_t DivideUp(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

// Builds the list of options and remembers the first value that Slurm could not be given.
class Options {
 public:
  void Add(std::string word) { words_.push_back(std::move(word)); }

  // Adds a user's text, which is left out if empty.
  void AddText(std::string_view option, std::string_view field, std::string_view value) {
    if (value.empty()) return;
    const bool printable = std::none_of(value.begin(), value.end(), [](char c) {
      return std::iscntrl(static_cast<unsigned char>(c)) != 0;
    });
    if (!printable && status_.ok()) {
      status_ =
          contract::BadField(field, "has a control character, such as a line break; remove it");
    }
    Add(fmt::format("{}={}", option, value));
  }

  absl::StatusOr<std::vector<std::string>> Take() && {
    if (!status_.ok()) return status_;
    return std::move(words_);
  }

 private:
  std::vector<std::string> words_;
  absl::Status status_;
};

std::string Lowered(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return lower;
}

absl::StatusOr<std::string> GresOf(const v1::GpuRequest& gpus, const GpuTypes& types) {
  const std::string& type = gpus.type();
  const bool plain = std::all_of(type.begin(), type.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  if (!plain) {
    return contract::BadField("resources.gpus[0].type",
                              fmt::format("\"{}\": letters, digits, '_', '-' and '.' only", type));
  }
  const uint64_t count = DivideUp(gpus.count_millis(), 1000);
  if (type.empty()) return fmt::format("gpu:{}", count);
  const auto known = types.find(Lowered(type));
  return fmt::format("gpu:{}:{}", known == types.end() ? type : known->second, count);
}

// Returns GPUs and the cluster's other resources; empty if there are none.
absl::StatusOr<std::string> Gres(const v1::JobSpec& spec, const GpuTypes& types) {
  std::string gres;
  for (const v1::GpuRequest& gpus : spec.resources().gpus()) {
    const absl::StatusOr<std::string> one = GresOf(gpus, types);
    if (!one.ok()) return one.status();
    gres += (gres.empty() ? "" : ",") + *one;
  }
  const std::string& others = spec.slurm().gres();
  return gres + (gres.empty() || others.empty() ? "" : ",") + others;
}

constexpr std::string_view kSameTask = "aftercorr:";

// Returns the dependency of a task that is a job of its own, whose id Slurm does not know:
// "aftercorr:17" is "afterok:17_3" for task 3.
std::string OfTheSameTask(const v1::JobSpec& spec) {
  const std::string& written = spec.slurm().dependency();
  const auto task = contract::FindArrayTask(spec);
  if (!task.has_value()) return written;
  std::string conditions;
  const char between = written.find(contract::kAnyOf) == written.npos ? ',' : contract::kAnyOf;
  for (std::string_view condition : contract::Split(written, between)) {
    if (!conditions.empty()) conditions += between;
    if (!condition.starts_with(kSameTask)) {
      conditions += condition;
      continue;
    }
    conditions += "afterok";
    for (std::string_view job : contract::Split(condition.substr(kSameTask.size()), ':')) {
      const size_t end = std::min(job.find('+'), job.size());
      const std::string id = job.find('_') == job.npos ? fmt::format("_{}", task->id) : "";
      conditions += fmt::format(":{}{}{}", job.substr(0, end), id, job.substr(end));
    }
  }
  return conditions;
}

// Two submissions of one run cannot overlap, whatever else the run waits for. The tasks of an array
// have one name, so that they would run one after the other: there the claim must do alone, and
// likewise where one of several conditions is enough.
std::string Dependency(const v1::JobSpec& spec, std::optional<uint64_t> after, bool is_array) {
  const bool is_any = spec.slurm().dependency().find(contract::kAnyOf) != std::string::npos;
  std::vector<std::string> conditions;
  if (!is_array && !is_any) conditions.emplace_back("singleton");
  if (after.has_value()) conditions.push_back(fmt::format("afterany:{}", *after));
  if (!spec.slurm().dependency().empty())
    conditions.push_back(is_array ? spec.slurm().dependency() : OfTheSameTask(spec));
  return fmt::format("{}", fmt::join(conditions, ","));
}

// Adds nodes, tasks, cores, memory and the cluster's other resources, where the job's extra options
// do not say the same. A batch script gets Slurm's own default for all that it leaves open, as with
// sbatch.
absl::Status AddAllocation(const v1::JobSpec& spec, const GpuTypes& gpu_types, Options* options) {
  using Part = contract::AllocationPart;
  const v1::SlurmOptions& slurm = spec.slurm();
  const bool is_script = slurm.has_batch_script();
  const v1::Resources& resources = spec.resources();
  const uint64_t nodes = std::max<uint32_t>(1, spec.nodes());
  const uint64_t tasks = std::max<uint64_t>(1, slurm.tasks_per_node());
  const uint64_t cpus = std::max<uint64_t>(1, DivideUp(resources.cpu_millis(), 1000));
  if (!contract::ShapesPart(slurm, Part::kTasks)) {
    if (!is_script || nodes > 1 || tasks > 1) options->Add(fmt::format("--nodes={}", nodes));
    if (is_script && tasks > 1) options->Add(fmt::format("--ntasks={}", nodes * tasks));
    if (!is_script || tasks > 1) options->Add(fmt::format("--ntasks-per-node={}", tasks));
  }
  const bool has_cores = is_script && contract::ShapesPart(slurm, Part::kCores);
  if (!has_cores && (!is_script || cpus > tasks))
    options->Add(fmt::format("--cpus-per-task={}", DivideUp(cpus, tasks)));
  const bool has_memory = is_script && contract::ShapesPart(slurm, Part::kMemory);
  if (!has_memory && resources.memory_bytes() > 0)
    options->Add(fmt::format("--mem={}M", DivideUp(resources.memory_bytes(), kBytesPerMebibyte)));
  if (is_script && contract::ShapesPart(slurm, Part::kGres)) return absl::OkStatus();
  absl::StatusOr<std::string> gres = Gres(spec, gpu_types);
  if (gres.ok()) options->AddText("--gres", "slurm.gres", *gres);
  return gres.status();
}

// Returns the nodes that the user excludes, and those on which earlier runs failed.
std::string Excluded(const agent::v1::Assignment& assignment) {
  std::string nodes = assignment.spec().slurm().exclude();
  for (const std::string& node : assignment.excluded_nodes()) {
    nodes += fmt::format("{}{}", nodes.empty() ? "" : ",", node);
  }
  return nodes;
}

void AddSlurmOptions(const agent::v1::Assignment& assignment, Options* options) {
  const v1::JobSpec& spec = assignment.spec();
  const v1::SlurmOptions& slurm = spec.slurm();
  if (slurm.partition().empty()) {
    options->AddText("--partition", "placement.pool", spec.placement().pool());
  } else {
    options->AddText("--partition", "slurm.partition", slurm.partition());
  }
  options->AddText("--account", "slurm.account", slurm.account());
  options->AddText("--qos", "slurm.qos", slurm.qos());
  options->AddText("--reservation", "slurm.reservation", slurm.reservation());
  options->AddText("--constraint", "slurm.constraint", slurm.constraint());
  options->AddText("--nodelist", "slurm.nodelist", slurm.nodelist());
  options->AddText("--exclude", "slurm.exclude", Excluded(assignment));
  options->AddText("--comment", "slurm.comment", slurm.comment());
  options->AddText("--licenses", "slurm.licenses", slurm.licenses());
  options->AddText("--mail-type", "slurm.mail_type", slurm.mail_type());
  options->AddText("--mail-user", "slurm.mail_user", slurm.mail_user());
  if (const auto signal = contract::ParseSlurmSignal(slurm.signal()); signal.has_value())
    options->Add("--signal=" + contract::FormatSlurmSignal(*signal));
  if (assignment.held()) options->Add("--hold");
  if (slurm.exclusive()) options->Add("--exclusive");
  if (slurm.has_requeue()) options->Add(slurm.requeue() ? "--requeue" : "--no-requeue");
  for (const std::string& option : slurm.extra_options()) {
    // The assignment says whether a job that was held from the start still is, and batch.sh starts
    // the container.
    if (!contract::IsForMuster(option) && !contract::IsOfContainer(option)) options->Add(option);
  }
}

}  // namespace

uint64_t TimeLimitMinutes(const v1::JobSpec& spec) {
  const uint64_t seconds =
      static_cast<uint64_t>(spec.time_limit().seconds()) + (spec.time_limit().nanos() > 0);
  return DivideUp(seconds, 60);
}

std::vector<std::string> SbatchArguments(const Submission& submission) {
  std::vector<std::string> words = submission.options;
  words.push_back(submission.script);
  words.insert(words.end(), submission.arguments.begin(), submission.arguments.end());
  return words;
}

absl::StatusOr<Submission> MakeSubmission(const agent::v1::Assignment& assignment,
                                          const RunPaths& paths, const GpuTypes& gpu_types,
                                          std::optional<uint64_t> after, const TaskArray* array) {
  const v1::JobSpec& spec = assignment.spec();
  if (absl::Status status = CheckKeepsLease(spec); !status.ok()) return status;
  Options options;
  options.Add("--job-name=" + (array == nullptr ? paths.run_key() : array->name));
  if (array != nullptr) {
    options.Add(fmt::format("--array={}{}", contract::TaskRanges(array->tasks),
                            array->limit == 0 ? "" : fmt::format("%{}", array->limit)));
  }
  options.AddText("--dependency", "slurm.dependency", Dependency(spec, after, array != nullptr));
  if (absl::Status status = AddAllocation(spec, gpu_types, &options); !status.ok()) return status;
  if (spec.has_time_limit()) options.Add(fmt::format("--time={}", TimeLimitMinutes(spec)));
  // Users may only lower the priority that Slurm computes.
  const int64_t nice = int64_t{spec.slurm().nice()} - std::min(spec.priority(), 0);
  if (nice > 0) options.Add(fmt::format("--nice={}", nice));
  AddSlurmOptions(assignment, &options);
  // The environment of sbatch itself is what the job gets, and it is all but empty. (--export=NONE
  // would have the node make a login environment, which takes seconds and brings the user's profile
  // in.)
  options.Add("--export=ALL");
  // A script has the limits of its submitter's shell, which batch.sh sets, and not the agent's.
  if (spec.slurm().batch_script().has_environment()) options.Add("--propagate=NONE");
  // A requeued job goes on in the same files; log files only grow.
  options.Add("--open-mode=append");
  options.Add("--chdir=" + (array == nullptr ? paths.directory() : array->paths.outputs()));
  options.Add("--output=" +
              (array == nullptr ? paths.slurm_output() : array->paths.outputs() + "/%a"));
  absl::StatusOr<std::vector<std::string>> words = std::move(options).Take();
  if (!words.ok()) return words.status();
  if (array != nullptr)
    return Submission{*std::move(words),
                      paths.script(),
                      {array->paths.list(), "array", contract::TaskRanges(array->tasks)}};
  return Submission{*std::move(words), paths.script(), {paths.directory()}};
}

bool MayBeTask(const v1::JobSpec& spec) {
  return contract::FindArrayTask(spec).has_value() &&
         spec.slurm().dependency().find("singleton") == std::string::npos;
}

bool WaitsForSameTask(const v1::JobSpec& spec) {
  return spec.slurm().dependency().find(kSameTask) != std::string::npos;
}

}  // namespace muster::slurm
