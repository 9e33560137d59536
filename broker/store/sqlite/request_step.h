// Step of the schema that lets this release recognise the requests of older files.
#ifndef MUSTER_BROKER_STORE_SQLITE_REQUEST_STEP_H_
#define MUSTER_BROKER_STORE_SQLITE_REQUEST_STEP_H_

#include "absl/status/status.h"
#include "broker/store/sqlite/database.h"

namespace muster::store {

// Makes each request's fingerprint again, as core::RequestFingerprintOf has it. Up to schema 2 it
// was the fingerprint of the spec with that release's defaults filled in. It runs in its step's
// transaction.
absl::Status RenewFingerprints(const Database& database);

}  // namespace muster::store

#endif  // MUSTER_BROKER_STORE_SQLITE_REQUEST_STEP_H_
