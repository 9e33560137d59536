// The defaults of a job spec. Pure.
#ifndef MUSTER_PROTO_CONTRACT_DEFAULTS_H_
#define MUSTER_PROTO_CONTRACT_DEFAULTS_H_

#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Fills in what the client left out.
void FillDefaults(v1::JobSpec* spec);

// Takes out what the releases of database schema 2 filled in, whether the client or they had put it
// there. What is left of a spec as its client sent it and of the same spec as such a database has
// it is equal, and that is what tells a repeat of a request from another one. So these are the
// defaults of that schema for ever (without those of fields that are no more): a default that
// changes, or a new one, changes FillDefaults alone.
v1::JobSpec WithoutDefaultsOfSchema2(v1::JobSpec spec);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_DEFAULTS_H_
