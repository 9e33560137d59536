#include "clients/cli/slurm/sacct_columns.h"

#include <fmt/format.h>
#include <pwd.h>

#include <algorithm>
#include <array>

#include "clients/cli/slurm/array_jobs.h"
#include "clients/cli/slurm/host_list.h"
#include "clients/cli/slurm/job_files.h"
#include "clients/cli/slurm/job_resources.h"
#include "clients/cli/text.h"
#include "contract/states.h"

namespace muster::cli {
namespace {

std::string NodesOf(const JobRecord& record) {
  if (record.run() == nullptr || record.run()->nodes().empty()) return "None assigned";
  const auto& nodes = record.run()->nodes();
  return Harmless(HostList({nodes.begin(), nodes.end()}));
}

std::string LimitMinutes(const JobRecord& record) {
  return record.time_limit ? fmt::format("{}", absl::ToInt64Minutes(*record.time_limit))
                           : std::string("UNLIMITED");
}

// The time of its cores, used or not.
absl::Duration CpuTime(const JobRecord& record, absl::Time now) {
  return Elapsed(record, now) * static_cast<int64_t>(TotalCpus(record.job().spec()));
}

// The usage of its latest run; zeros before that is known, as sacct has it.
v1::ResourceUsage UsageOf(const JobRecord& record) {
  return record.run() == nullptr ? v1::ResourceUsage() : record.run()->usage();
}
absl::Duration UserCpu(const JobRecord& record) {
  return ToDuration(UsageOf(record).user_cpu_time());
}
absl::Duration SystemCpu(const JobRecord& record) {
  return ToDuration(UsageOf(record).system_cpu_time());
}

// A job that waits for a time or for others is eligible later than it was submitted.
std::string EligibleOf(const JobRecord& record) {
  const v1::JobSpec& spec = record.job().spec();
  const bool is_at_once = OptionOf(spec, "begin").empty() && spec.slurm().dependency().empty();
  return HasStarted(record) && is_at_once ? LocalTime(record.job().create_time(), "Unknown")
                                          : "Unknown";
}

// The id that this machine has for the user.
std::string UserIdOf(const JobRecord& record) {
  const passwd* entry = getpwnam(record.job().user().c_str());
  return entry == nullptr ? "" : fmt::format("{}", entry->pw_uid);
}

// sacct has none for a job that has ended.
std::string WhyItWaitsNow(const JobRecord& record) {
  const bool has_ended = contract::IsTerminal(record.job().state());
  return has_ended ? std::string(kNoReason) : ReasonWord(record);
}

// Returns the time that it waited for its start.
absl::Duration Waited(const JobRecord& record, absl::Time now) {
  const v1::Job& job = record.job();
  const absl::Time end = HasStarted(record)   ? ToTime(StartedAt(record))
                         : job.has_end_time() ? ToTime(job.end_time())
                                              : now;
  return std::max(absl::ZeroDuration(), end - ToTime(job.create_time()));
}

// sacct prints these where nothing is known: no text, or a word.
std::string Nothing(const JobRecord&, absl::Time) { return ""; }
std::string NoWord(const JobRecord&, absl::Time) { return "Unknown"; }

using Record = JobRecord;
using Now = absl::Time;
constexpr std::array kSacctColumns = {
    SacctColumn{"Account", 10, [](const Record& r, Now) { return Harmless(r.account); }},
    SacctColumn{"AdminComment", 15, Nothing},
    SacctColumn{"AllocCPUS", 10,
                [](const Record& r, Now) { return fmt::format("{}", TotalCpus(r.job().spec())); }},
    SacctColumn{
        "AllocNodes", 10,
        [](const Record& r, Now) { return fmt::format("{}", HasStarted(r) ? NodeCount(r) : 0); }},
    SacctColumn{"AllocTRES", 10,
                [](const Record& r, Now) {
                  return HasStarted(r) ? TresText(r, TresOrder::kSacct) : std::string();
                }},
    SacctColumn{"AssocID", 7, Nothing},
    SacctColumn{"AveCPU", 10, Nothing},
    SacctColumn{"AveCPUFreq", 10, Nothing},
    SacctColumn{"AveDiskRead", 14, Nothing},
    SacctColumn{"AveDiskWrite", 14, Nothing},
    SacctColumn{"AvePages", 10, Nothing},
    SacctColumn{"AveRSS", 10, Nothing},
    SacctColumn{"AveVMSize", 10, Nothing},
    SacctColumn{"BlockID", 16, Nothing},
    SacctColumn{"Cluster", 10, [](const Record& r, Now) { return Harmless(r.job().cluster()); }},
    SacctColumn{"Comment", 14,
                [](const Record& r, Now) { return Harmless(r.job().spec().slurm().comment()); }},
    SacctColumn{"Constraints", 19,
                [](const Record& r, Now) { return Harmless(r.job().spec().slurm().constraint()); }},
    SacctColumn{"ConsumedEnergy", 14, Nothing},
    SacctColumn{"ConsumedEnergyRaw", 17, Nothing},
    SacctColumn{"Container", 19, Nothing},
    SacctColumn{"CPUTime", 10, [](const Record& r, Now now) { return SacctTime(CpuTime(r, now)); }},
    SacctColumn{"CPUTimeRAW", 10,
                [](const Record& r, Now now) {
                  return fmt::format("{}", absl::ToInt64Seconds(CpuTime(r, now)));
                }},
    SacctColumn{"DBIndex", 10, Nothing, true},
    SacctColumn{"DerivedExitCode", 15, [](const Record&, Now) { return std::string("0:0"); }},
    SacctColumn{"Elapsed", 10, [](const Record& r, Now now) { return SacctTime(Elapsed(r, now)); }},
    SacctColumn{"ElapsedRaw", 10,
                [](const Record& r, Now now) {
                  return fmt::format("{}", absl::ToInt64Seconds(Elapsed(r, now)));
                }},
    SacctColumn{"Eligible", 19, [](const Record& r, Now) { return EligibleOf(r); }},
    SacctColumn{"End", 19,
                [](const Record& r, Now) { return LocalTime(r.job().end_time(), "Unknown"); }},
    SacctColumn{"ExitCode", 8, [](const Record& r, Now) { return ExitCodeText(r); }},
    SacctColumn{"Extra", 14, Nothing},
    SacctColumn{"FailedNode", 8, Nothing},
    SacctColumn{"Flags", 19, Nothing},
    SacctColumn{"GID", 6, Nothing},
    SacctColumn{"Group", 9, Nothing},
    SacctColumn{"JobID", 12, [](const Record& r, Now) { return NameOf(r); }, true},
    SacctColumn{"JobIDRaw", 12, [](const Record& r, Now) { return SlurmNumber(r); }, true},
    SacctColumn{"JobName", 10, [](const Record& r, Now) { return Harmless(r.job().name()); }},
    SacctColumn{"Layout", 9, Nothing},
    SacctColumn{"Licenses", 10,
                [](const Record& r, Now) { return Harmless(r.job().spec().slurm().licenses()); }},
    SacctColumn{"MaxDiskRead", 12, Nothing},
    SacctColumn{"MaxDiskReadNode", 15, Nothing},
    SacctColumn{"MaxDiskReadTask", 15, Nothing},
    SacctColumn{"MaxDiskWrite", 12, Nothing},
    SacctColumn{"MaxDiskWriteNode", 16, Nothing},
    SacctColumn{"MaxDiskWriteTask", 16, Nothing},
    SacctColumn{"MaxPages", 8, Nothing},
    SacctColumn{"MaxPagesNode", 12, Nothing},
    SacctColumn{"MaxPagesTask", 14, Nothing},
    SacctColumn{"MaxRSS", 10,
                [](const Record& r, Now) { return SacctBytes(UsageOf(r).max_rss_bytes()); }},
    SacctColumn{"MaxRSSNode", 10, Nothing},
    SacctColumn{"MaxRSSTask", 10, Nothing},
    SacctColumn{"MaxVMSize", 10, Nothing},
    SacctColumn{"MaxVMSizeNode", 14, Nothing},
    SacctColumn{"MaxVMSizeTask", 14, Nothing},
    SacctColumn{"McsLabel", 12, Nothing},
    SacctColumn{"MinCPU", 10, Nothing},
    SacctColumn{"MinCPUNode", 10, Nothing},
    SacctColumn{"MinCPUTask", 10, Nothing},
    SacctColumn{"NCPUS", 10,
                [](const Record& r, Now) { return fmt::format("{}", TotalCpus(r.job().spec())); }},
    SacctColumn{"NNodes", 8, [](const Record& r, Now) { return fmt::format("{}", NodeCount(r)); }},
    SacctColumn{"NodeList", 15, [](const Record& r, Now) { return NodesOf(r); }},
    SacctColumn{"NTasks", 8, Nothing},
    SacctColumn{"Partition", 10, [](const Record& r, Now) { return Harmless(r.partition); }},
    SacctColumn{"Planned", 10, [](const Record& r, Now now) { return SacctTime(Waited(r, now)); }},
    SacctColumn{"PlannedCPU", 10, Nothing},
    SacctColumn{"PlannedCPURAW", 13, Nothing},
    SacctColumn{"Priority", 10,
                [](const Record& r, Now) { return fmt::format("{}", r.job().priority()); }},
    SacctColumn{"QOS", 10, [](const Record& r, Now) { return Harmless(r.qos); }},
    SacctColumn{"QOSRAW", 6, Nothing},
    SacctColumn{"QOSREQ", 10,
                [](const Record& r, Now) { return Harmless(r.job().spec().slurm().qos()); }},
    SacctColumn{"Reason", 22, [](const Record& r, Now) { return WhyItWaitsNow(r); }},
    SacctColumn{"ReqCPUFreq", 10, NoWord},
    SacctColumn{"ReqCPUFreqGov", 13, NoWord},
    SacctColumn{"ReqCPUFreqMax", 13, NoWord},
    SacctColumn{"ReqCPUFreqMin", 13, NoWord},
    SacctColumn{"ReqCPUS", 8,
                [](const Record& r, Now) { return fmt::format("{}", TotalCpus(r.job().spec())); }},
    SacctColumn{"ReqMem", 10, [](const Record& r, Now) { return TotalMemoryText(r); }},
    SacctColumn{"ReqNodes", 8,
                [](const Record& r, Now) { return fmt::format("{}", NodeCount(r)); }},
    SacctColumn{"ReqTRES", 10, [](const Record& r, Now) { return TresText(r, TresOrder::kSacct); }},
    SacctColumn{
        "Reservation", 20,
        [](const Record& r, Now) { return Harmless(r.job().spec().slurm().reservation()); }},
    SacctColumn{"ReservationId", 8, Nothing},
    SacctColumn{"Reserved", 10, [](const Record& r, Now now) { return SacctTime(Waited(r, now)); }},
    SacctColumn{
        "Restarts", 8,
        [](const Record& r, Now) { return fmt::format("{}", r.run() ? r.run()->restarts() : 0); }},
    SacctColumn{"ResvCPU", 10, Nothing},
    SacctColumn{"ResvCPURAW", 10, Nothing},
    SacctColumn{"SLUID", 14, Nothing},
    SacctColumn{"Start", 19,
                [](const Record& r, Now) { return LocalTime(StartedAt(r), "Unknown"); }},
    SacctColumn{"State", 10, [](const Record& r, Now) { return std::string(StateWord(r)); }},
    SacctColumn{"StdErr", 20, [](const Record& r, Now) { return Harmless(ErrorPattern(r.job())); }},
    SacctColumn{"StdIn", 20, [](const Record& r, Now) { return Harmless(InputPattern(r.job())); }},
    SacctColumn{"StdOut", 20,
                [](const Record& r, Now) { return Harmless(OutputPattern(r.job())); }},
    SacctColumn{"Submit", 19,
                [](const Record& r, Now) { return LocalTime(r.job().create_time(), "Unknown"); }},
    SacctColumn{"SubmitLine", 20, Nothing},
    SacctColumn{"Suspended", 10, Nothing},
    SacctColumn{"SystemComment", 15, Nothing},
    SacctColumn{"SystemCPU", 10, [](const Record& r, Now) { return CpuTimeText(SystemCpu(r)); }},
    SacctColumn{
        "Timelimit", 10,
        [](const Record& r,
           Now) { return r.time_limit ? SacctTime(*r.time_limit) : std::string("UNLIMITED"); }},
    SacctColumn{"TimelimitRaw", 10, [](const Record& r, Now) { return LimitMinutes(r); }},
    SacctColumn{"TotalCPU", 10,
                [](const Record& r, Now) { return CpuTimeText(UserCpu(r) + SystemCpu(r)); }},
    SacctColumn{"TRESUsageInAve", 14, Nothing},
    SacctColumn{"TRESUsageInMax", 14, Nothing},
    SacctColumn{"TRESUsageInMaxNode", 18, Nothing},
    SacctColumn{"TRESUsageInMaxTask", 18, Nothing},
    SacctColumn{"TRESUsageInMin", 14, Nothing},
    SacctColumn{"TRESUsageInMinNode", 18, Nothing},
    SacctColumn{"TRESUsageInMinTask", 18, Nothing},
    SacctColumn{"TRESUsageInTot", 14, Nothing},
    SacctColumn{"TRESUsageOutAve", 15, Nothing},
    SacctColumn{"TRESUsageOutMax", 15, Nothing},
    SacctColumn{"TRESUsageOutMaxNode", 19, Nothing},
    SacctColumn{"TRESUsageOutMaxTask", 19, Nothing},
    SacctColumn{"TRESUsageOutMin", 15, Nothing},
    SacctColumn{"TRESUsageOutMinNode", 19, Nothing},
    SacctColumn{"TRESUsageOutMinTask", 19, Nothing},
    SacctColumn{"TRESUsageOutTot", 15, Nothing},
    SacctColumn{"UID", 6, [](const Record& r, Now) { return UserIdOf(r); }},
    SacctColumn{"User", 9, [](const Record& r, Now) { return Harmless(r.job().user()); }},
    SacctColumn{"UserCPU", 10, [](const Record& r, Now) { return CpuTimeText(UserCpu(r)); }},
    SacctColumn{"WCKey", 10, Nothing},
    SacctColumn{"WCKeyID", 10, Nothing},
    SacctColumn{"WorkDir", 20,
                [](const Record& r, Now) { return Harmless(r.job().spec().working_directory()); }},
};

}  // namespace

std::span<const SacctColumn> SacctColumns() { return kSacctColumns; }

}  // namespace muster::cli
