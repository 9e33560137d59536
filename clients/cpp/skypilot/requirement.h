// One alternative of a task's resources.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_REQUIREMENT_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_REQUIREMENT_H_

#include "clients/cpp/skypilot/ignored.h"
#include "clients/cpp/skypilot/values.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

struct Requirement {
  v1::JobSpec spec;       // all but GPUs and labels
  bool is_cloud = false;  // it names a cloud, where Muster has nothing
};

// Reads the fields of `resources`, with those of an alternative over them; the accelerators and
// labels among them are not looked at. Fields that mean nothing here go to `ignored`.
Requirement ReadRequirement(YamlReader& in, Ignored& ignored, const Fields& fields);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_REQUIREMENT_H_
