// The step of the schema that makes the requests of older files known to this release.
#ifndef MUSTER_BROKER_STORE_SQLITE_REQUEST_STEP_H_
#define MUSTER_BROKER_STORE_SQLITE_REQUEST_STEP_H_

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Up to schema 2 a request's fingerprint was of its spec with the defaults of that release filled
// in. Makes each anew, as core::RequestFingerprintOf has it. In the transaction of its step.
absl::Status RenewFingerprints(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_REQUEST_STEP_H_
