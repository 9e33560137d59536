#include "broker/app/services.h"

#include "contract/errors.h"

namespace muster::broker {

absl::Status ReadersBusy() {
  return contract::RetryableError(absl::StatusCode::kResourceExhausted, "READERS_BUSY",
                                  "too many calls that read the store wait already; try again",
                                  absl::Milliseconds(200));
}

}  // namespace muster::broker
