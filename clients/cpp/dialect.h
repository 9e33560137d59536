// Telling in whose words a file of jobs is written. Private to the client library.
#ifndef MUSTER_CLIENTS_CPP_DIALECT_H_
#define MUSTER_CLIENTS_CPP_DIALECT_H_

#include <yaml-cpp/yaml.h>

#include <vector>

#include "clients/cpp/job_file_result.h"

namespace muster::client {

struct FoundDialect {
  Dialect dialect = Dialect::kMuster;
  // True if a name decides the dialect. If not, the other reading may be as good.
  bool is_told = true;
};

// The names of fields tell it, at the top of each document and under its `resources`:
//   - one that a Muster job file alone has (nodes, time, env, command, image, cluster, ...):
//   Muster;
//   - else one that a SkyPilot task alone has (num_nodes, envs, volumes, ..., and under resources
//     accelerators, infra, any_of, labels, priority, ...), or a first document that is the header
//     of others: SkyPilot;
//   - else a name that neither has, and that is most like one that a task alone has: SkyPilot,
//     whose reader refuses it and says which name was probably meant;
//   - else nothing tells: both have all of the names (name, setup, run, workdir, file_mounts, and
//     under resources cpus, memory, gpus). It is SkyPilot's with file_mounts, else Muster's.
// Values do not count, but that `pool` is a text in a job file and a mapping in a task.
FoundDialect DialectOf(const std::vector<YAML::Node>& documents);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_DIALECT_H_
