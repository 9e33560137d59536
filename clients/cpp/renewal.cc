#include "clients/cpp/renewal.h"

#include "absl/time/clock.h"
#include "clients/cpp/credential.h"

namespace muster::client {

absl::Status Renewal::Await(const std::string& refused) {
  if (!renewed_) {
    if (absl::Status status = credential_->Renew(refused); !status.ok()) return status;
    renewed_ = absl::Now();
    return absl::OkStatus();
  }
  is_over_ = !backoff_.Wait(*renewed_ + kPatience, absl::ZeroDuration());
  return absl::OkStatus();
}

}  // namespace muster::client
