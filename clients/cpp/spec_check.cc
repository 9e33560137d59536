#include "clients/cpp/spec_check.h"

#include "absl/status/status.h"
#include "contract/errors.h"
#include "contract/validate.h"

namespace muster::client {

void CheckSpec(const v1::JobSpec& spec, YamlReader* in) {
  const absl::Status status = contract::NormalizeJobSpec(spec).status();
  const auto bad_request = contract::GetBadRequest(status);
  if (!absl::IsInvalidArgument(status) || !bad_request) return;
  for (const auto& violation : bad_request->field_violations()) {
    in->ProblemAt(violation.field(), violation.description());
  }
}

}  // namespace muster::client
