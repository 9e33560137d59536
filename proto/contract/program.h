// Checks the program of a job: its command and its environment.
#ifndef MUSTER_PROTO_CONTRACT_PROGRAM_H_
#define MUSTER_PROTO_CONTRACT_PROGRAM_H_

#include <string>
#include <string_view>

#include "contract/errors.h"
#include "google/protobuf/map.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Checks a script's text; empty is good.
void CheckScriptText(std::string_view field, std::string_view script, FieldErrors* errors);

// Each adds what is wrong, with paths that begin with `field`. `is_free` accepts names of Slurm's
// and Muster's own that the caller checks itself.
void CheckCommand(std::string_view field, const v1::Command& command, FieldErrors* errors);
void CheckEnv(
    std::string_view field, const google::protobuf::Map<std::string, std::string>& env,
    FieldErrors* errors,
    bool (*is_free)(std::string_view) = [](std::string_view) { return false; });

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_PROGRAM_H_
