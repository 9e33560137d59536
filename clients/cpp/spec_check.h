// Turns the contract's errors about a spec into errors about its places in a file. Private to the
// client library.
#ifndef MUSTER_CLIENTS_CPP_SPEC_CHECK_H_
#define MUSTER_CLIENTS_CPP_SPEC_CHECK_H_

#include "clients/cpp/yaml_reader.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {

// Says at the place in the file what the broker would say without it.
void CheckSpec(const v1::JobSpec& spec, YamlReader* in);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_SPEC_CHECK_H_
