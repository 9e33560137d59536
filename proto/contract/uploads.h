// The uploads of a spec, as far as the spec alone tells. Private to validate.cc.
#ifndef MUSTER_PROTO_CONTRACT_UPLOADS_H_
#define MUSTER_PROTO_CONTRACT_UPLOADS_H_

#include "contract/errors.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

void CheckUploads(const v1::JobSpec& spec, FieldErrors* errors);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_UPLOADS_H_
