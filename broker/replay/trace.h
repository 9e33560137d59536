// Reads a trace: jobs of the past, with the times at which each was submitted and for which it ran.
#ifndef MUSTER_BROKER_REPLAY_TRACE_H_
#define MUSTER_BROKER_REPLAY_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster::replay {

struct TraceJob {
  std::string name;
  absl::Duration arrival;   // from the first job of the trace on
  absl::Duration run_time;  // longer than 0
  // The limit that its user gave; zero if none. Clusters fill gaps by it, not by run_time.
  absl::Duration time_limit;
  uint32_t nodes = 1;
  // These are for each node. `gpu_millis` is in thousandths of a GPU.
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpu_millis = 0;
  std::string gpu_type;  // empty: any
  std::string project = "default";
  std::string user;
};

// Jobs with equal shapes fit in the same places.
using Shape = std::tuple<uint32_t, uint64_t, uint64_t, uint64_t, std::string>;
Shape ShapeOf(const TraceJob& job);

struct Trace {
  std::vector<TraceJob> jobs;  // by arrival
  uint64_t left_out = 0;       // rows of the file that tell no job that has run
};

enum class TraceFormat : uint8_t {
  // Columns arrival_s and run_time_s, in seconds, and of nodes, cpus, memory, gpus, time_limit_s,
  // project, user and name those that are known. Amounts are for each node, as in job files.
  kMuster,
  // These are the tasks of https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023.
  kOpenb,
  // sacct -a -X -P -o JobID,JobName,User,Account,Submit,ElapsedRaw,TimelimitRaw,NNodes,ReqTRES
  kSacct,
};

// `text` is the file: a line with the names of columns, then a line for each job. Quotes are not
// read. INVALID_ARGUMENT names the line, the column, the value and what would work.
absl::StatusOr<Trace> ReadTrace(TraceFormat format, std::string_view text);

// Takes out the jobs that run longer.
void LeaveOutLongerThan(absl::Duration longest, Trace* trace);

// Jobs that ask for a part of a GPU ask for a whole one: clusters of Slurm and Kubernetes have no
// parts.
void AskForWholeGpus(Trace* trace);

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_TRACE_H_
