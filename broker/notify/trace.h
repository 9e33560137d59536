// Makes a trace of a job that has ended, for OpenTelemetry: spans for the job, each wait and each
// run, with the steps and their evidence as events. Pure; any thread.
#ifndef MUSTER_BROKER_NOTIFY_TRACE_H_
#define MUSTER_BROKER_NOTIFY_TRACE_H_

#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

namespace muster::notify {

struct History {
  v1::Job job;                        // with its runs
  std::vector<v1::Transition> steps;  // its first ones
};

// Returns the body of a call of OTLP/HTTP in JSON. The names of trace and spans follow from the
// broker's instance and the job's number, so that a repeated call is about the same spans.
std::string TraceOf(std::string_view broker, const History& history);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_TRACE_H_
