// The defaults of a job spec. Pure.
#ifndef MUSTER_PROTO_CONTRACT_DEFAULTS_H_
#define MUSTER_PROTO_CONTRACT_DEFAULTS_H_

#include <string_view>

#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// The project of a job that names none.
inline constexpr std::string_view kDefaultProject = "default";

// Fills in what the client left out.
void FillDefaults(v1::JobSpec* spec);

// Takes out what the releases of database schema 2 filled in, whether the client or they had put it
// there. Afterwards two specs are equal if they come from the same request: one as its client sent
// it, the other as such a database has it. This tells a repeat of a request from another request.
// So these stay the defaults of that schema for ever (without those of removed fields): a default
// that changes, or a new one, changes FillDefaults alone.
void TakeOutDefaultsOfSchema2(v1::JobSpec* spec);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_DEFAULTS_H_
