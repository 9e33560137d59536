// A task's variables and secrets.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_ENVS_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_ENVS_H_

#include <map>
#include <string>

#include "clients/cpp/skypilot/ignored.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// `envs`, into the spec's env: values are texts as Python writes them. One without a value needs
// one in `given`, those of the command line, which win. The credentials of a registry among them
// are left out.
void ReadEnvs(YamlReader& in, Ignored& ignored, const YamlValue& value,
              const std::map<std::string, std::string>& given, v1::JobSpec* spec);

// `secrets` is a problem: nothing would keep them secret.
void RefuseSecrets(YamlReader& in, const YamlValue& value);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_ENVS_H_
