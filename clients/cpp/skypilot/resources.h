// Reads what a task needs on each node, and where.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_RESOURCES_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_RESOURCES_H_

#include <vector>

#include "clients/cpp/skypilot/ignored.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// Returns the alternatives of a task's `resources`, the one that is wanted most first: parts of
// specs, with resources, image, placement, labels, priority and retry. Alternatives that differ in
// their cluster alone are one with several clusters, and a cloud's are left out if there are
// others. At least one, or problems have been noted. The fields' places are those of the first.
std::vector<v1::JobSpec> ReadResources(YamlReader& in, Ignored& ignored, const YamlValue& value);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_RESOURCES_H_
