#include "clients/cli/slurm/squeue_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/job_files.h"
#include "clients/cli/slurm/job_resources.h"
#include "clients/cli/slurm/squeue_times.h"
#include "clients/cli/text.h"
#include "contract/characters.h"
#include "contract/task_array.h"

namespace muster::cli {
namespace {

// The codes of columns for which --format has no letter. A column that Muster knows nothing of has
// one from kFirstUnknown on.
constexpr char kNumber = 1;
constexpr char kCluster = 2;
constexpr char kRestarts = 3;
constexpr char kExitCode = 4;
constexpr char kPendingTime = 5;
constexpr char kTres = 6;
constexpr char kStdOut = 7;
constexpr char kStdErr = 8;
constexpr char kStdIn = 9;
constexpr char kTresPerJob = 10;
constexpr char kTresPerTask = 11;
constexpr char kCpusPerTask = 12;
constexpr char kTasks = 13;
constexpr char kTasksPerNode = 14;
constexpr char kFirstUnknown = -128;

std::string OrNull(std::string text) { return text.empty() ? "(null)" : Harmless(text); }

// Returns the known facts of the run; without one the value is `absent`.
std::string NodeListOf(const JobRecord& record) {
  if (record.run() == nullptr) return "";
  const auto& nodes = record.run()->nodes();
  return Harmless(HostList({nodes.begin(), nodes.end()}));
}

std::string ArrayOf(const JobRecord& record) {
  const std::string name = NameOf(record);
  return name.substr(0, name.find('_'));
}

std::string ArrayTaskOf(const JobRecord& record) {
  return record.task.has_value() ? fmt::format("{}", record.task->id) : "N/A";
}

std::string LimitText(std::optional<absl::Duration> limit) {
  return limit.has_value() ? SqueueTime(*limit) : "UNLIMITED";
}

std::string OptionOr(const JobRecord& record, std::string_view name, std::string_view absent) {
  const std::string_view value = OptionOf(record.job().spec(), name);
  return value.empty() ? std::string(absent) : Harmless(value);
}

bool HasOption(const JobRecord& record, std::string_view option) {
  const auto& options = record.job().spec().slurm().extra_options();
  return std::find(options.begin(), options.end(), option) != options.end();
}

// Tells whether others may have its nodes at the same time.
std::string Sharing(const JobRecord& record) {
  const std::string_view exclusive = OptionOf(record.job().spec(), "exclusive");
  if (exclusive == "user") return "USER";
  if (exclusive == "mcs") return "MCS";
  if (HasOption(record, "--exclusive")) return "NO";
  return HasOption(record, "--oversubscribe") ? "YES" : "OK";
}

std::string Gpus(const JobRecord& record, std::string_view option) {
  const std::string_view gpus = OptionOf(record.job().spec(), option);
  return gpus.empty() ? "N/A" : fmt::format("gres:gpu:{}", Harmless(gpus));
}

std::string NodesOrReason(const JobRecord& record) {
  const std::string nodes = NodeListOf(record);
  // As squeue has it, these have their reason in place of their nodes.
  const std::string_view state = StateWord(record);
  const bool has_reason = state == "PENDING" || state == "FAILED" || state == "TIMEOUT";
  if (!has_reason && !nodes.empty()) return nodes;
  // "(None)" would say that nothing keeps it; it is only that nobody has said yet what does.
  const std::string word = ReasonWord(record);
  return word == kNoReason ? "" : fmt::format("({})", word);
}

struct SqueueColumn {
  char letter;
  std::string_view heading;
  std::string (*value)(const JobRecord& record, absl::Time now);
};
using R = JobRecord;
using T = absl::Time;
constexpr std::array kSqueueColumns = {
    SqueueColumn{'i', "JOBID", [](const R& r, T) { return NameOf(r); }},
    SqueueColumn{'F', "ARRAY_JOB_ID", [](const R& r, T) { return ArrayOf(r); }},
    SqueueColumn{'K', "ARRAY_TASK_ID", [](const R& r, T) { return ArrayTaskOf(r); }},
    SqueueColumn{'A', "SLURM_ID",
                 [](const R& r, T) {
                   return r.run() == nullptr || r.is_on_slurm ? OrNull(SlurmNumber(r)) : "N/A";
                 }},
    SqueueColumn{'j', "NAME", [](const R& r, T) { return Harmless(r.job().name()); }},
    SqueueColumn{'u', "USER", [](const R& r, T) { return Harmless(r.job().user()); }},
    SqueueColumn{'a', "ACCOUNT",
                 [](const R& r, T) { return OrNull(r.account); }},
    SqueueColumn{'P', "PARTITION", [](const R& r, T) { return OrNull(r.partition); }},
    SqueueColumn{'q', "QOS", [](const R& r, T) { return OrNull(r.qos); }},
    SqueueColumn{'t', "ST", [](const R& r, T) { return std::string(StateCode(StateWord(r))); }},
    SqueueColumn{'T', "STATE", [](const R& r, T) { return std::string(StateWord(r)); }},
    SqueueColumn{'M', "TIME", [](const R& r, T now) { return SqueueTime(Elapsed(r, now)); }},
    SqueueColumn{'l', "TIME_LIMIT", [](const R& r, T) { return LimitText(r.time_limit); }},
    SqueueColumn{'L', "TIME_LEFT", [](const R& r, T now) { return LimitText(TimeLeft(r, now)); }},
    SqueueColumn{
        'D', "NODES",
        [](const R& r, T) { return fmt::format("{}", NodeCount(r)); }},
    SqueueColumn{'C', "CPUS",
                 [](const R& r, T) { return fmt::format("{}", TotalCpus(r.job().spec())); }},
    SqueueColumn{'c', "MIN_CPUS",
                 [](const R& r, T) {
                   const uint64_t millis = r.job().spec().resources().cpu_millis();
                   return fmt::format("{}", std::max<uint64_t>(1, (millis + 999) / 1000));
                 }},
    SqueueColumn{'m', "MIN_MEMORY", [](const R& r, T) { return MemoryText(r.job().spec()); }},
    SqueueColumn{'b', "TRES_PER_NODE", [](const R& r, T) { return GresText(r.job().spec()); }},
    SqueueColumn{'p', "PRIORITY",
                 [](const R& r, T) { return fmt::format("{}", r.job().priority()); }},
    SqueueColumn{'Q', "PRIORITY",
                 [](const R& r, T) { return fmt::format("{}", r.job().priority()); }},
    SqueueColumn{'r', "REASON", [](const R& r, T) { return ReasonWord(r); }},
    SqueueColumn{'R', "NODELIST(REASON)", [](const R& r, T) { return NodesOrReason(r); }},
    SqueueColumn{'N', "NODELIST", [](const R& r, T) { return NodeListOf(r); }},
    SqueueColumn{'B', "EXEC_HOST",
                 [](const R& r, T) {
                   const bool has = r.run() != nullptr && !r.run()->nodes().empty();
                   return has ? Harmless(r.run()->nodes(0)) : std::string("n/a");
                 }},
    SqueueColumn{'S', "START_TIME", [](const R& r, T) { return LocalTime(StartOf(r), "N/A"); }},
    SqueueColumn{'e', "END_TIME", [](const R& r, T) { return LocalTime(EndOf(r), "N/A"); }},
    SqueueColumn{'V', "SUBMIT_TIME",
                 [](const R& r, T) { return LocalTime(r.job().create_time(), "N/A"); }},
    SqueueColumn{'k', "COMMENT",
                 [](const R& r, T) { return OrNull(r.job().spec().slurm().comment()); }},
    SqueueColumn{'Z', "WORK_DIR",
                 [](const R& r, T) { return OrNull(r.job().spec().working_directory()); }},
    SqueueColumn{'v', "RESERVATION",
                 [](const R& r, T) { return OrNull(r.job().spec().slurm().reservation()); }},
    SqueueColumn{'f', "FEATURES",
                 [](const R& r, T) { return OrNull(r.job().spec().slurm().constraint()); }},
    SqueueColumn{'x', "EXC_NODES",
                 [](const R& r, T) { return Harmless(r.job().spec().slurm().exclude()); }},
    SqueueColumn{'n', "REQ_NODES",
                 [](const R& r, T) { return Harmless(r.job().spec().slurm().nodelist()); }},
    SqueueColumn{'y', "NICE",
                 [](const R& r, T) { return fmt::format("{}", r.job().spec().slurm().nice()); }},
    SqueueColumn{'E', "DEPENDENCY",
                 [](const R& r, T) { return OrNull(r.job().spec().slurm().dependency()); }},
    SqueueColumn{'W', "LICENSES",
                 [](const R& r, T) { return OrNull(r.job().spec().slurm().licenses()); }},
    // These are columns that nobody knows of a job of Muster's, with Slurm's word for it.
    SqueueColumn{'g', "GROUP", [](const R&, T) { return std::string("(null)"); }},
    SqueueColumn{'G', "GROUP", [](const R&, T) { return std::string("N/A"); }},
    SqueueColumn{'U', "UID", [](const R&, T) { return std::string("N/A"); }},
    SqueueColumn{'o', "COMMAND", [](const R&, T) { return std::string("(null)"); }},
    SqueueColumn{'s', "", [](const R&, T) { return std::string(); }},
    SqueueColumn{'Y', "SCHEDNODES", [](const R&, T) { return std::string("(null)"); }},
    // These are options of sbatch.
    SqueueColumn{'d', "MIN_TMP_DISK", [](const R& r, T) { return OptionOr(r, "tmp", "0"); }},
    SqueueColumn{'h', "OVER_SUBSCRIBE", [](const R& r, T) { return Sharing(r); }},
    SqueueColumn{'H', "SOCKETS_PER_NODE",
                 [](const R& r, T) { return OptionOr(r, "sockets-per-node", "*"); }},
    SqueueColumn{'I', "CORES_PER_SOCKET",
                 [](const R& r, T) { return OptionOr(r, "cores-per-socket", "*"); }},
    SqueueColumn{'J', "THREADS_PER_CORE",
                 [](const R& r, T) { return OptionOr(r, "threads-per-core", "*"); }},
    SqueueColumn{'z', "S:C:T",
                 [](const R& r, T) {
                   return fmt::format("{}:{}:{}", OptionOr(r, "sockets-per-node", "*"),
                                      OptionOr(r, "cores-per-socket", "*"),
                                      OptionOr(r, "threads-per-core", "*"));
                 }},
    SqueueColumn{'O', "CONTIGUOUS",
                 [](const R& r, T) { return std::string(HasOption(r, "--contiguous") ? "1" : "0"); }},
    SqueueColumn{'w', "WCKEY", [](const R& r, T) { return OptionOr(r, "wckey", "(null)"); }},
    SqueueColumn{'X', "CORE_SPEC", [](const R& r, T) { return OptionOr(r, "core-spec", "N/A"); }},
    // Those that have no letter.
    SqueueColumn{kStdOut, "STDOUT", [](const R& r, T) { return OrNull(OutputPattern(r.job())); }},
    SqueueColumn{kStdErr, "STDERR", [](const R& r, T) { return OrNull(ErrorPattern(r.job())); }},
    SqueueColumn{kStdIn, "STDIN", [](const R& r, T) { return OrNull(InputPattern(r.job())); }},
    SqueueColumn{kTresPerJob, "TRES_PER_JOB", [](const R& r, T) { return Gpus(r, "gpus"); }},
    SqueueColumn{kTresPerTask, "TRES_PER_TASK",
                 [](const R& r, T) { return Gpus(r, "gpus-per-task"); }},
    SqueueColumn{kCpusPerTask, "CPUS_PER_TASK",
                 [](const R& r, T) { return OptionOr(r, "cpus-per-task", "1"); }},
    SqueueColumn{kTasks, "TASKS",
                 [](const R& r, T) { return fmt::format("{}", TaskCount(r.job().spec())); }},
    SqueueColumn{kTasksPerNode, "NTASKS_PER_NODE",
                 [](const R& r, T) { return OptionOr(r, "ntasks-per-node", "0"); }},
    SqueueColumn{kNumber, "JOBID", [](const R& r, T) { return fmt::format("{}", r.job().id()); }},
    SqueueColumn{kCluster, "CLUSTER", [](const R& r, T) { return OrNull(r.job().cluster()); }},
    SqueueColumn{kRestarts, "RESTART_COUNT",
                 [](const R& r, T) {
                   return fmt::format("{}", r.run() == nullptr ? 0 : r.run()->restarts());
                 }},
    SqueueColumn{kExitCode, "EXIT_CODE",
                 [](const R& r, T) { return fmt::format("{}", r.job().exit().code()); }},
    SqueueColumn{kPendingTime, "PENDING_TIME",
                 [](const R& r, T now) {
                   const absl::Time start =
                       HasStarted(r) ? ToTime(StartedAt(r)) : now;
                   return fmt::format(
                       "{}", absl::ToInt64Seconds(start - ToTime(r.job().create_time())));
                 }},
    SqueueColumn{kTres, "TRES_ALLOC", [](const R& r, T) { return TresText(r, TresOrder::kSqueue); }},
};

// The names of --Format that stand for a column.
constexpr std::pair<std::string_view, char> kKnownNames[] = {
    {"Account", 'a'},
    {"ArrayJobID", 'F'},
    {"ArrayTaskID", 'K'},
    {"BatchHost", 'B'},
    {"Cluster", kCluster},
    {"Command", 'o'},
    {"Comment", 'k'},
    {"Contiguous", 'O'},
    {"Cores", 'I'},
    {"CoreSpec", 'X'},
    {"cpus-per-task", kCpusPerTask},
    {"Dependency", 'E'},
    {"EndTime", 'e'},
    {"exit_code", kExitCode},
    {"Feature", 'f'},
    {"GroupID", 'G'},
    {"GroupName", 'g'},
    {"JobArrayID", 'i'},
    {"JobID", kNumber},
    {"Licenses", 'W'},
    {"MinCpus", 'c'},
    {"MinMemory", 'm'},
    {"MinTmpDisk", 'd'},
    {"Name", 'j'},
    {"Nice", 'y'},
    {"NodeList", 'N'},
    {"NTPerNode", kTasksPerNode},
    {"NumCPUs", 'C'},
    {"NumNodes", 'D'},
    {"NumTasks", kTasks},
    {"OverSubscribe", 'h'},
    {"Partition", 'P'},
    {"PendingTime", kPendingTime},
    {"Priority", 'p'},
    {"PriorityLong", 'Q'},
    {"QOS", 'q'},
    {"Reason", 'r'},
    {"ReasonList", 'R'},
    {"ReqNodes", 'n'},
    {"Reservation", 'v'},
    {"RestartCnt", kRestarts},
    {"SchedNodes", 'Y'},
    {"SCT", 'z'},
    {"SelectJobInfo", 's'},
    {"Sockets", 'H'},
    {"StartTime", 'S'},
    {"State", 'T'},
    {"StateCompact", 't'},
    {"STDERR", kStdErr},
    {"STDIN", kStdIn},
    {"STDOUT", kStdOut},
    {"SubmitTime", 'V'},
    {"Threads", 'J'},
    {"TimeLeft", 'L'},
    {"TimeLimit", 'l'},
    {"TimeUsed", 'M'},
    {"tres", kTres},
    {"tres-alloc", kTres},
    {"tres-per-job", kTresPerJob},
    {"tres-per-node", 'b'},
    {"tres-per-task", kTresPerTask},
    {"UserID", 'U'},
    {"UserName", 'u'},
    {"WCKey", 'w'},
    {"WorkDir", 'Z'},
};

// A name of --Format of which Muster knows nothing, and what squeue prints for a job without it.
struct UnknownColumn {
  std::string_view name;
  std::string_view heading;
  std::string_view value;
};
constexpr std::array kUnknownColumns = {
    UnknownColumn{"AccrueTime", "ACCRUE_TIME", "N/A"},
    UnknownColumn{"AllocNodes", "ALLOC_NODES", "(null)"},
    UnknownColumn{"AllocSID", "ALLOC_SID", "0"},
    UnknownColumn{"AssocID", "ASSOC_ID", "0"},
    UnknownColumn{"BatchFlag", "BATCH_FLAG", "1"},
    UnknownColumn{"BoardsPerNode", "BOARDS_PER_NODE", "0"},
    UnknownColumn{"BurstBuffer", "BURST_BUFFER", "(null)"},
    UnknownColumn{"BurstBufferState", "BURST_BUFFER_STATE", "(null)"},
    UnknownColumn{"ClusterFeature", "CLUSTER_FEATURES", "(null)"},
    UnknownColumn{"Container", "CONTAINER", "(null)"},
    UnknownColumn{"cpus-per-tres", "CPUS_PER_TRES", "N/A"},
    UnknownColumn{"Deadline", "DEADLINE", "N/A"},
    UnknownColumn{"DelayBoot", "DELAY_BOOT", "0:00"},
    UnknownColumn{"DerivedEC", "DERIVED_EC", "0"},
    UnknownColumn{"EligibleTime", "ELIGIBLE_TIME", "N/A"},
    UnknownColumn{"HetJobID", "HET_JOB_ID", "N/A"},
    UnknownColumn{"HetJobIDSet", "HET_JOB_ID_SET", "N/A"},
    UnknownColumn{"HetJobOffset", "HET_JOB_OFFSET", "N/A"},
    UnknownColumn{"LastSchedEval", "LAST_SCHED_EVAL", "N/A"},
    UnknownColumn{"MaxCPUs", "MAX_CPUS", "0"},
    UnknownColumn{"MaxNodes", "MAX_NODES", "0"},
    UnknownColumn{"McsLabel", "MCSLABEL", "(null)"},
    UnknownColumn{"mem-per-tres", "MEM_PER_TRES", "N/A"},
    UnknownColumn{"MinTime", "TIME_MIN", "0:00"},
    UnknownColumn{"Network", "NETWORK", "(null)"},
    UnknownColumn{"NTPerBoard", "NTASKS_PER_BOARD", "0"},
    UnknownColumn{"NTPerCore", "NTASKS_PER_CORE", "N/A"},
    UnknownColumn{"NTPerSocket", "NTASKS_PER_SOCKET", "N/A"},
    UnknownColumn{"Origin", "ORIGIN", "NA"},
    UnknownColumn{"OriginRaw", "ORIGIN_RAW", "NA"},
    UnknownColumn{"PreemptTime", "PREEMPT_TIME", "N/A"},
    UnknownColumn{"Prefer", "PREFER", "(null)"},
    UnknownColumn{"Profile", "PROFILE", "NotSet"},
    UnknownColumn{"Reboot", "REBOOT", "0"},
    UnknownColumn{"ReqSwitch", "REQ_SWITCH", "0"},
    UnknownColumn{"Requeue", "REQUEUE", "0"},
    UnknownColumn{"ResizeTime", "RESIZE_TIME", "N/A"},
    UnknownColumn{"SiblingsActive", "ACTIVE_SIBLINGS", "NA"},
    UnknownColumn{"SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", "NA"},
    UnknownColumn{"SiblingsViable", "VIABLE_SIBLINGS", "NA"},
    UnknownColumn{"SiblingsViableRaw", "VIALBLE_SIBLINGS_RAW", "NA"},
    UnknownColumn{"SPerBoard", "SOCKETS_PER_BOARD", "0"},
    UnknownColumn{"System_Comment", "SYSTEM_COMMENT", "(null)"},
    UnknownColumn{"tres-bind", "TRES_BIND", "N/A"},
    UnknownColumn{"tres-freq", "TRES_FREQ", "N/A"},
    UnknownColumn{"tres-per-socket", "TRES_PER_SOCKET", "N/A"},
    UnknownColumn{"Wait4Switch", "WAIT4SWITCH", "0:00"},
};

const UnknownColumn* FindUnknown(char letter) {
  const size_t place = static_cast<size_t>(letter - kFirstUnknown);
  return letter < 0 && place < kUnknownColumns.size() ? &kUnknownColumns[place] : nullptr;
}

// The place of each letter's column, which is looked up for each value.
using Places = std::array<uint8_t, 128>;
constexpr Places PlacesOfColumns() {
  Places places{};
  for (size_t i = kSqueueColumns.size(); i-- > 0;)
    places[static_cast<size_t>(kSqueueColumns[i].letter)] = static_cast<uint8_t>(i);
  return places;
}

const SqueueColumn& ColumnOf(char letter) {
  static constexpr Places kPlaces = PlacesOfColumns();
  return kSqueueColumns[kPlaces[static_cast<size_t>(letter)]];
}

std::vector<std::pair<std::string_view, char>> AllNames() {
  std::vector<std::pair<std::string_view, char>> names(std::begin(kKnownNames),
                                                       std::end(kKnownNames));
  for (size_t i = 0; i < kUnknownColumns.size(); ++i) {
    names.emplace_back(kUnknownColumns[i].name,
                       static_cast<char>(kFirstUnknown + static_cast<int>(i)));
  }
  return names;
}

// Tells the tasks of an array apart.
bool IsOfTask(char letter) { return letter == 'i' || letter == 'K' || letter == kNumber; }

std::string ValueOfTasks(char letter, uint64_t array, const std::vector<uint32_t>& tasks,
                         uint32_t limit) {
  if (letter == kNumber) return fmt::format("{}", array);
  std::string text = contract::TaskRanges(tasks);
  if (limit > 0) text += fmt::format("%{}", limit);
  return letter == 'K' ? text : fmt::format("{}_[{}]", array, text);
}

}  // namespace

std::string_view SqueueHeading(char letter) {
  const UnknownColumn* unknown = FindUnknown(letter);
  return unknown != nullptr ? unknown->heading : ColumnOf(letter).heading;
}

std::string SqueueValue(char letter, const JobRecord& record, absl::Time now) {
  const UnknownColumn* unknown = FindUnknown(letter);
  return unknown != nullptr ? std::string(unknown->value) : ColumnOf(letter).value(record, now);
}

std::string SqueueLetters() {
  std::string letters;
  for (const SqueueColumn& column : kSqueueColumns) {
    if (contract::IsLetter(column.letter)) letters += column.letter;
  }
  return letters;
}

LongNames SqueueLongNames() {
  static const std::vector<std::pair<std::string_view, char>> names = AllNames();
  return names;
}

std::vector<SqueueRow> SqueueRows(std::span<const JobRecord> records, const ColumnFormat& format,
                                  bool each_task, absl::Time now) {
  // The tasks of a row, by what they have in common.
  struct Shared {
    size_t row = 0;
    uint64_t array = 0;
    uint32_t limit = 0;
    std::vector<uint32_t> tasks;
  };
  std::map<std::pair<uint64_t, std::vector<std::string>>, Shared> shared;
  std::vector<SqueueRow> rows;
  rows.reserve(records.size());
  for (const JobRecord& record : records) {
    SqueueRow row{&record, {}};
    row.values.reserve(format.fields.size());
    for (const FormatField& field : format.fields)
      row.values.push_back(SqueueValue(field.letter, record, now));
    if (!each_task && record.task.has_value() && StateWord(record) == "PENDING") {
      std::vector<std::string> common;
      for (size_t i = 0; i < format.fields.size(); ++i) {
        if (!IsOfTask(format.fields[i].letter)) common.push_back(row.values[i]);
      }
      const uint64_t array = contract::ArrayNumber(record.job().id(), *record.task);
      const auto [at, is_first] = shared.try_emplace(
          {array, std::move(common)}, Shared{rows.size(), array, record.task->limit, {}});
      at->second.tasks.push_back(record.task->id);
      if (!is_first) continue;
    }
    rows.push_back(std::move(row));
  }
  for (auto& [key, tasks] : shared) {
    if (tasks.tasks.size() < 2) continue;
    std::sort(tasks.tasks.begin(), tasks.tasks.end());
    for (size_t i = 0; i < format.fields.size(); ++i) {
      const char letter = format.fields[i].letter;
      if (IsOfTask(letter))
        rows[tasks.row].values[i] = ValueOfTasks(letter, tasks.array, tasks.tasks, tasks.limit);
    }
  }
  return rows;
}

}  // namespace muster::cli
