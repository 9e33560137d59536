// One SkyPilot task as a job.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_TASK_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_TASK_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "clients/cpp/job_file_result.h"
#include "clients/cpp/skypilot/ignored.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// Makes a script of a job from the text that SkyPilot has bash run: for bash, and where there is
// none for sh. Both streams are one log there, in the order in which they are written.
std::string BashScript(std::string_view text);

// Reads a document as SkyPilot 0.14 does, and where that crashes or makes something else of what is
// written, notes a problem. `run` and `setup` become BashScripts, and no ~/.bashrc is read. `job`
// is its number among those of the file, for what it brings along, files and secrets, into `file`.
// It has at least one alternative, and the one that is wanted most is first.
std::vector<v1::JobSpec> ReadTask(YamlReader& in, Ignored& ignored, const YAML::Node& document,
                                  const JobFileOptions& options, size_t job, JobFile* file);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_TASK_H_
