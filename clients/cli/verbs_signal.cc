// The verb that sends signals to jobs.
#include <algorithm>
#include <cstddef>

#include "clients/cli/exit_code.h"
#include "clients/cli/signals.h"
#include "clients/cli/verbs.h"
#include "contract/signal_error.h"
#include "fmt/format.h"

namespace muster::cli {
namespace {

// The jobs that one request may name.
constexpr size_t kMaxSignaledAtOnce = 100;

}  // namespace

absl::Status SendSignals(client::Client& client, const std::vector<uint64_t>& jobs,
                         const SignalFlags& signal,
                         const std::function<void(uint64_t job, const absl::Status&)>& each) {
  for (size_t begin = 0; begin < jobs.size(); begin += kMaxSignaledAtOnce) {
    v1::SignalJobsRequest request;
    request.set_signal(signal.name);
    request.set_target(signal.target);
    const size_t end = std::min(jobs.size(), begin + kMaxSignaledAtOnce);
    for (size_t i = begin; i < end; ++i) request.add_job_ids(jobs[i]);
    const auto response = client.SignalJobs(request);
    if (!response.ok()) return response.status();
    for (const v1::JobSignal& one : response->signals()) {
      each(one.job_id(),
           one.has_error() ? contract::FromSignalError(one.error()) : absl::OkStatus());
    }
  }
  return absl::OkStatus();
}

int Signal(Session& session) {
  std::vector<uint64_t> jobs;
  for (const JobRef& ref : session.call.jobs) jobs.push_back(ref.job);
  int code = kOk;
  v1::SignalJobsResponse answer;
  const absl::Status status = SendSignals(
      session.client, jobs, session.call.signal, [&](uint64_t job, const absl::Status& sent) {
        v1::JobSignal* one = answer.add_signals();
        one->set_job_id(job);
        if (!sent.ok()) {
          *one->mutable_error() = contract::ToSignalError(sent);
          code = Fail(session, sent);
        } else if (session.ids_only()) {
          session.terminal.Out(fmt::format("{}\n", job));
        } else if (session.for_people()) {
          session.terminal.Note(
              fmt::format("signal {} sent to job {}", session.call.signal.name, job));
        }
      });
  if (!status.ok()) return Fail(session, status);
  if (!session.for_people() && !session.ids_only()) PrintMessage(session, answer);
  NoteOtherTasks(session, "signal");
  return code;
}

}  // namespace muster::cli
