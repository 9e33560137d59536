#include "broker/notify/webhook.h"

#include <algorithm>

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

bool Wants(const Webhook& webhook, const v1::JobChange& change) {
  const v1::Transition& step = change.transition();
  const bool is_named = std::find(webhook.states.begin(), webhook.states.end(), step.job_state()) !=
                        webhook.states.end();
  if (!change.has_transition() || !is_named || !Enters(step)) return false;
  if (!webhook.project.empty() && change.job().project() != webhook.project) return false;
  if (webhook.filter.kind == contract::Filter::Kind::kAll) return true;
  // The job may be further by now.
  v1::Job then = change.job();
  then.set_state(step.job_state());
  return webhook.filter.Matches(then);
}

}  // namespace muster::notify
