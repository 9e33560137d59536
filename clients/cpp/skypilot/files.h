// Files that a task wants beside it.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_FILES_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_FILES_H_

#include <vector>

#include "clients/cpp/job_file_result.h"
#include "clients/cpp/skypilot/variables.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// A source that would have to be cloned or mounted is a problem that says what works today.

// Reads `workdir`, a directory of this machine, as with SkyPilot, whether or not its path is
// absolute. Variables are replaced.
void ReadWorkdir(YamlReader& in, const Variables& variables, const YamlValue& value, size_t job,
                 v1::JobSpec* spec, std::vector<LocalUpload>* uploads);

// `file_mounts`: files of this machine, which go to their places in the run's working directory,
// and URIs of the cluster's data (lustre://, slurm://), which become inputs at the target. Without
// an image that has to be where the data is; `has_image` says that each alternative has one.
// Variables are replaced in both.
void ReadFileMounts(YamlReader& in, const Variables& variables, const YamlValue& value, size_t job,
                    bool has_image, v1::JobSpec* spec, std::vector<LocalUpload>* uploads);

// Refuses `volumes`, unless it is empty.
void RefuseVolumes(YamlReader& in, const YamlValue& value);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_FILES_H_
