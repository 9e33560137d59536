// In whose words a file of jobs is written. Private to the client library.
#ifndef MUSTER_CLIENTS_CPP_DIALECT_H_
#define MUSTER_CLIENTS_CPP_DIALECT_H_

#include <yaml-cpp/yaml.h>

#include <vector>

namespace muster::client {

enum class Dialect { kMuster, kSkyPilot };

// Told by the names of fields, at the top of each document and under its `resources`:
//   - one that a Muster job file alone has (nodes, time, env, command, image, cluster, ...):
//   Muster;
//   - else one that a SkyPilot task alone has (num_nodes, envs, file_mounts, ..., and under
//     resources accelerators, infra, any_of, labels, priority, ...), or a first document that is
//     the header of others: SkyPilot;
//   - else a name that neither has, and that is most like one that a task alone has: SkyPilot,
//     whose reader refuses it and says which name was probably meant;
//   - else Muster, whose fields of the same names (name, setup, run, workdir, cpus, memory) mean
//     much the same.
// Values do not count, but that `pool` is a text in a job file and a mapping in a task.
Dialect DialectOf(const std::vector<YAML::Node>& documents);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_DIALECT_H_
