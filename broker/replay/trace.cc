#include "broker/replay/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "broker/replay/table.h"
#include "contract/text.h"
#include "contract/units.h"

namespace muster::replay {
namespace {

using contract::ParseBytes;

// A name as a project may have it: small letters, digits and '-'.
std::string AsProject(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 63)) {
    const char low = absl::ascii_tolower(static_cast<unsigned char>(c));
    name += absl::ascii_isalnum(static_cast<unsigned char>(low)) ? low : '-';
  }
  while (name.starts_with('-')) name.erase(0, 1);
  while (name.ends_with('-')) name.pop_back();
  return name.empty() ? "default" : name;
}

// Sorts the jobs by their submits, and counts these from the first one on.
Trace Ordered(Trace trace) {
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const TraceJob& a, const TraceJob& b) { return a.arrival < b.arrival; });
  const absl::Duration first =
      trace.jobs.empty() ? absl::ZeroDuration() : trace.jobs.front().arrival;
  for (TraceJob& job : trace.jobs) job.arrival -= first;
  return trace;
}

absl::StatusOr<TraceJob> MusterJob(const Table& table, size_t row) {
  TraceJob job;
  const auto arrival = table.Number(row, "arrival_s", 0);
  if (!arrival.ok()) return arrival.status();
  const auto run_time = table.Number(row, "run_time_s", 0);
  if (!run_time.ok()) return run_time.status();
  const auto limit = table.Number(row, "time_limit_s", 0);
  if (!limit.ok()) return limit.status();
  const auto nodes = table.Number(row, "nodes", 1);
  if (!nodes.ok()) return nodes.status();
  if (*nodes < 1 || *nodes > 10000) return table.Wrong(row, "nodes", "1 to 10000 work");
  job.arrival = absl::Seconds(*arrival);
  job.run_time = absl::Seconds(*run_time);
  job.time_limit = absl::Seconds(*limit);
  job.nodes = static_cast<uint32_t>(*nodes);
  job.name = table.At(row, "name");
  job.user = table.At(row, "user");
  if (const auto text = table.At(row, "project"); !text.empty()) job.project = AsProject(text);
  if (const auto text = table.At(row, "cpus"); !text.empty()) {
    const auto cpus = contract::ParseCpus(text);
    if (!cpus.ok()) return table.Wrong(row, "cpus", ToStd(cpus.status().message()));
    job.cpu_millis = *cpus;
  }
  if (const auto text = table.At(row, "memory"); !text.empty()) {
    const auto memory = ParseBytes(text);
    if (!memory.ok()) return table.Wrong(row, "memory", ToStd(memory.status().message()));
    job.memory_bytes = *memory;
  }
  if (const auto text = table.At(row, "gpus"); !text.empty()) {
    const auto gpus = contract::ParseGpus(text);
    if (!gpus.ok()) return table.Wrong(row, "gpus", ToStd(gpus.status().message()));
    job.gpu_millis = gpus->count_millis();
    job.gpu_type = gpus->type();
  }
  return job;
}

absl::StatusOr<TraceJob> OpenbJob(const Table& table, size_t row) {
  TraceJob job;
  double values[6];
  constexpr std::string_view kColumns[] = {"creation_time", "deletion_time", "cpu_milli",
                                           "memory_mib",    "num_gpu",       "gpu_milli"};
  for (size_t i = 0; i < std::size(kColumns); ++i) {
    const auto value = table.Number(row, kColumns[i], 0);
    if (!value.ok()) return value.status();
    values[i] = *value;
  }
  job.arrival = absl::Seconds(values[0]);
  job.run_time = absl::Seconds(values[1] - values[0]);
  job.cpu_millis = static_cast<uint64_t>(values[2]);
  job.memory_bytes = static_cast<uint64_t>(values[3]) << 20;
  job.gpu_millis = static_cast<uint64_t>(values[4] == 1 ? values[5] : values[4] * 1000);
  const std::string_view types = table.At(row, "gpu_spec");
  job.gpu_type = types.substr(0, types.find('|'));
  job.name = table.At(row, "name");
  // The trace tells no owners: classes of service stand for projects.
  job.project = AsProject(table.At(row, "qos"));
  return job;
}

// Reads "cpu=32,mem=256G,node=2,gres/gpu:a100=8": totals of the job.
absl::Status ReadTres(const Table& table, size_t row, TraceJob* job) {
  for (const absl::string_view part : absl::StrSplit(ToAbsl(table.At(row, "ReqTRES")), ',')) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto& [name, value] = entry;
    double number = 0;
    if (name == "mem") {
      // Slurm's units are powers of 1024.
      const bool has_unit = !value.empty() && absl::ascii_isalpha(value.back());
      const auto bytes = ParseBytes(has_unit ? value + "i" : value);
      if (!bytes.ok()) return table.Wrong(row, "ReqTRES", ToStd(bytes.status().message()));
      job->memory_bytes = *bytes / job->nodes;
      continue;
    }
    const bool is_gpu = name == "gres/gpu" || name.starts_with("gres/gpu:");
    if (name != "cpu" && !is_gpu) continue;
    if (!absl::SimpleAtod(value, &number) || number < 0)
      return table.Wrong(row, "ReqTRES", "amounts are numbers");
    const auto millis = static_cast<uint64_t>(std::ceil(number / job->nodes)) * 1000;
    if (!is_gpu) {
      job->cpu_millis = millis;
      continue;
    }
    job->gpu_millis = millis;
    constexpr std::string_view kTyped = "gres/gpu:";
    if (name.starts_with(kTyped)) job->gpu_type = name.substr(kTyped.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<TraceJob> SacctJob(const Table& table, size_t row) {
  TraceJob job;
  absl::Time submitted;
  std::string error;
  // The zone does not matter: only differences count.
  if (!absl::ParseTime("%Y-%m-%dT%H:%M:%S", ToAbsl(table.At(row, "Submit")), &submitted, &error))
    return table.Wrong(row, "Submit", "a time such as 2026-01-31T12:00:00 works");
  const auto seconds = table.Number(row, "ElapsedRaw", 0);
  if (!seconds.ok()) return seconds.status();
  const auto nodes = table.Number(row, "NNodes", 1);
  if (!nodes.ok()) return nodes.status();
  job.arrival = submitted - absl::UnixEpoch();
  job.run_time = absl::Seconds(*seconds);
  job.nodes = static_cast<uint32_t>(std::clamp(*nodes, 1.0, 10000.0));
  double minutes = 0;  // "UNLIMITED" and "Partition_Limit" are no limits of the user's
  if (absl::SimpleAtod(ToAbsl(table.At(row, "TimelimitRaw")), &minutes))
    job.time_limit = absl::Minutes(minutes);
  job.name = table.At(row, "JobName");
  job.user = table.At(row, "User");
  job.project = AsProject(table.At(row, "Account"));
  if (absl::Status status = ReadTres(table, row, &job); !status.ok()) return status;
  return job;
}

struct Reading {
  char separator;
  std::vector<std::string_view> needed;
  absl::StatusOr<TraceJob> (*job)(const Table& table, size_t row);
};

Reading ReadingOf(TraceFormat format) {
  switch (format) {
    case TraceFormat::kMuster:
      return {',', {"arrival_s", "run_time_s"}, MusterJob};
    case TraceFormat::kOpenb:
      return {',', {"cpu_milli", "num_gpu", "creation_time", "deletion_time"}, OpenbJob};
    case TraceFormat::kSacct:
      return {'|', {"Submit", "ElapsedRaw", "NNodes", "ReqTRES"}, SacctJob};
  }
  return {};
}

}  // namespace

Shape ShapeOf(const TraceJob& job) {
  return {job.nodes, job.cpu_millis, job.memory_bytes, job.gpu_millis, job.gpu_type};
}

absl::StatusOr<Trace> ReadTrace(TraceFormat format, std::string_view text) {
  const Reading reading = ReadingOf(format);
  const auto table = Table::Read(text, reading.separator, reading.needed);
  if (!table.ok()) return table.status();
  Trace trace;
  for (size_t row = 0; row < table->rows(); ++row) {
    auto job = reading.job(*table, row);
    if (!job.ok()) return job.status();
    if (job->run_time <= absl::ZeroDuration()) {
      ++trace.left_out;
      continue;
    }
    if (job->name.empty()) job->name = fmt::format("job-{}", row + 1);
    trace.jobs.push_back(*std::move(job));
  }
  return Ordered(std::move(trace));
}

void LeaveOutLongerThan(absl::Duration longest, Trace* trace) {
  const size_t removed =
      std::erase_if(trace->jobs, [&](const TraceJob& job) { return job.run_time > longest; });
  trace->left_out += removed;
  *trace = Ordered(std::move(*trace));
}

void AskForWholeGpus(Trace* trace) {
  constexpr uint64_t kWhole = 1000;
  for (TraceJob& job : trace->jobs)
    job.gpu_millis = (job.gpu_millis + kWhole - 1) / kWhole * kWhole;
}

}  // namespace muster::replay
