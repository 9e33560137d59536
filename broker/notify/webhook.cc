#include "broker/notify/webhook.h"

#include <algorithm>
#include <utility>

#include "contract/states.h"

namespace muster::notify {
namespace {

// Tells whether the step leads into the job's state, of those that a webhook may name.
bool Enters(const v1::Transition& step) {
  // An ended job may still get other labels, and nothing else.
  if (contract::IsTerminal(step.job_state())) return step.kind() != v1::TRANSITION_KIND_UPDATED;
  // The run has other steps while its job is RUNNING: it is cleared up, somebody asks for a cancel.
  return step.run_state() == v1::RUN_STATE_RUNNING;
}

}  // namespace

v1::Job JobAtStep(const v1::JobChange& change) {
  const v1::Transition& step = change.transition();
  v1::Job job = change.job();
  job.clear_runs();
  job.clear_spec();
  job.set_state(step.job_state());
  job.set_job_sequence(step.job_sequence());
  if (contract::IsTerminal(step.job_state())) return job;
  job.clear_end_time();
  job.clear_exit();
  job.clear_failure();
  job.clear_state_reason();
  job.clear_retry_time();
  return job;
}

void GoBack(v1::Job past, v1::JobChange* change) {
  v1::Job& job = *change->mutable_job();
  if (contract::IsTerminal(change->transition().job_state())) {
    job.set_priority(past.priority());
    job.mutable_labels()->swap(*past.mutable_labels());
  } else {
    job = std::move(past);
  }
}

bool MayWant(const Webhook& webhook, const v1::JobChange& change) {
  const v1::Transition& step = change.transition();
  const bool is_named = std::find(webhook.states.begin(), webhook.states.end(), step.job_state()) !=
                        webhook.states.end();
  if (!change.has_transition() || !is_named || !Enters(step)) return false;
  return webhook.project.empty() || change.job().project() == webhook.project;
}

bool Wants(const Webhook& webhook, const v1::JobChange& change) {
  if (!MayWant(webhook, change)) return false;
  return webhook.filter.kind == contract::Filter::Kind::kAll ||
         webhook.filter.Matches(JobAtStep(change));
}

}  // namespace muster::notify
