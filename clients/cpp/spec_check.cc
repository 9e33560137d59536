#include "clients/cpp/spec_check.h"

#include <cstddef>

#include "absl/status/status.h"
#include "contract/errors.h"
#include "contract/validate.h"

namespace muster::client {
namespace {

// The errors go to a person and do not travel, so that they need no bound of gRPC's.
constexpr size_t kMaxErrorBytes = 64 << 10;

}  // namespace

void CheckSpec(const v1::JobSpec& spec, YamlReader* in) {
  contract::FieldErrors errors(kMaxErrorBytes);
  v1::JobSpec whole = spec;
  if (!contract::FindBadFields(&whole, &errors).ok()) return;
  for (const auto& violation : errors.violations()) {
    in->ProblemAt(violation.field(), violation.description());
  }
  in->AddUnnamed(errors.unlisted());
}

}  // namespace muster::client
