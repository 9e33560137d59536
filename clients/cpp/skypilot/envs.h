// A task's variables and secrets.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_ENVS_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_ENVS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "clients/cpp/job_file_result.h"
#include "clients/cpp/skypilot/ignored.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// Reads `envs` into the spec's env: values are texts as Python writes them. One without a value
// needs one in `given`, those of the command line, which win. The credentials of a registry among
// them are left out.
void ReadEnvs(YamlReader& in, Ignored& ignored, const YamlValue& value,
              const std::map<std::string, std::string>& given, v1::JobSpec* spec);

// Reads `secrets` into the spec's secrets: values of the file, of the command line, which win, or
// of the caller's variables for those that the file leaves open, are added to `local`. A secret
// that has no value anywhere is one of that name which the broker has. They win over variables.
void ReadSecrets(YamlReader& in, Ignored& ignored, const YamlValue& value,
                 const JobFileOptions& options, size_t job, v1::JobSpec* spec,
                 std::vector<LocalSecret>* local);
// Adds the secrets of the command line that the spec does not have yet.
void AddGivenSecrets(const JobFileOptions& options, size_t job, v1::JobSpec* spec,
                     std::vector<LocalSecret>* local);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_ENVS_H_
