// GPUs as a task names them.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_ACCELERATORS_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_ACCELERATORS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client::skypilot {

// One of these will do: several never mean "both types".
struct Accelerators {
  std::vector<v1::GpuRequest> choices;
  bool is_ordered = false;  // the first is wanted most
};

// Reads "H100", "H100:4", {H100: 4}, {H100:4}; a mapping of several is a choice, a list of texts an
// ordered one. On a problem it is noted, and there are no choices.
Accelerators ReadAccelerators(YamlReader& in, const YamlValue& value);

// Reads "H100", "H100:4", "H100:0.5". INVALID_ARGUMENT: the count is no number above 0, above one
// and not whole, or below one and not in thousandths; or the GPU is named by its memory ("80GB+"),
// for which there is no catalogue here.
absl::StatusOr<v1::GpuRequest> ParseAccelerator(std::string_view text);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_ACCELERATORS_H_
