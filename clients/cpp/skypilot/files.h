// Files that a task wants beside it.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_FILES_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_FILES_H_

#include "clients/cpp/skypilot/variables.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// Muster copies nothing to a cluster yet: what would have to be uploaded, cloned or mounted is a
// problem that says what works today.

// `workdir`: an absolute path, which the cluster has to see. Variables are replaced.
void ReadWorkdir(YamlReader& in, const Variables& variables, const YamlValue& value,
                 v1::JobSpec* spec);

// `file_mounts`: URIs of the cluster's data (lustre://, slurm://), which become inputs at the
// target. Without an image, which is known by now, the target has to be where the data is.
// Variables are replaced in both.
void ReadFileMounts(YamlReader& in, const Variables& variables, const YamlValue& value,
                    v1::JobSpec* spec);

// `volumes`, unless it is empty.
void RefuseVolumes(YamlReader& in, const YamlValue& value);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_FILES_H_
