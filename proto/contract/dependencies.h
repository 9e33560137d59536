// The jobs that have to end before another one starts (JobSpec.depends_on): the rules of the field,
// and the meaning of an end. Pure functions, for any thread.
#ifndef MUSTER_PROTO_CONTRACT_DEPENDENCIES_H_
#define MUSTER_PROTO_CONTRACT_DEPENDENCIES_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "contract/errors.h"
#include "muster/v1/job.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::contract {

// Jobs that one job waits for. The end of each is looked up at the submit and in the environment of
// its run; a job that needs more depends on one that gathers them.
inline constexpr size_t kMaxDependencies = 100;

// Adds what is wrong with the field: too many, a job twice, or neither or both of job_id and
// request.
void CheckDependencies(const v1::JobSpec& spec, FieldErrors* errors);
// Adds what is wrong with the request places of the job that stands at this place of its call, from
// 1; 0 if the call has one job alone, which no other one comes before.
void CheckRequestPlaces(const v1::JobSpec& spec, uint32_t place, FieldErrors* errors);

// True if the job's end, which is a terminal state, is the one that is needed.
bool Meets(v1::JobState end, v1::JobOutcome needed);

// Returns the environment variable that tells the program how that job ended, by
// Name(state).
std::string DependencyVariable(uint64_t job);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_DEPENDENCIES_H_
