#include "contract/defaults.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "contract/characters.h"
#include "contract/first_command.h"
#include "contract/retry.h"
#include "contract/roles.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

constexpr std::string_view kDefaultName = "job";

// ---- of schema 2
constexpr uint32_t kMaxRunsOfSchema2 = 11;
constexpr int64_t kBackoffSecondsOfSchema2 = 10;

std::string_view Basename(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string DefaultName(const v1::Command& command) {
  std::string_view word;
  if (command.has_argv() && command.argv().args_size() > 0) word = command.argv().args(0);
  if (command.form_case() == v1::Command::kScript) word = FirstCommand(command.script());
  std::string name;
  for (char c : Basename(word)) {
    const bool keep = IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.' || c == '+';
    if (keep && name.size() < kMaxNameBytes) name += c;
  }
  return name.empty() ? std::string(kDefaultName) : name;
}

std::string DefaultName(const v1::JobSpec& spec) {
  return DefaultName(spec.roles().empty() ? spec.command() : spec.roles(0).command());
}

void TakeOutDefaults(v1::RetryPolicy* policy) {
  if (policy->max_runs() == kMaxRunsOfSchema2) policy->clear_max_runs();
  const auto& backoff = policy->backoff();
  if (backoff.seconds() == kBackoffSecondsOfSchema2 && backoff.nanos() == 0)
    policy->clear_backoff();
}

}  // namespace

void FillDefaults(v1::JobSpec* spec) {
  if (spec->name().empty()) spec->set_name(DefaultName(*spec));
  if (spec->project().empty()) spec->set_project(std::string(kDefaultProject));
  if (spec->nodes() == 0) spec->set_nodes(1);
  FillRoleDefaults(spec);
  if (spec->has_slurm() && spec->slurm().tasks_per_node() == 0) {
    spec->mutable_slurm()->set_tasks_per_node(1);
  }
  for (v1::JobDependency& one : *spec->mutable_depends_on()) {
    if (one.outcome() == v1::JOB_OUTCOME_UNSPECIFIED) one.set_outcome(v1::JOB_OUTCOME_SUCCEEDED);
  }
  // A job without a policy has none to show, and gets the defaults all the same.
  if (spec->has_retry()) {
    const RetryRule rule = RetryRuleOf(*spec);
    spec->mutable_retry()->set_max_runs(rule.max_runs);
    if (!spec->retry().has_backoff()) {
      spec->mutable_retry()->mutable_backoff()->set_seconds(absl::ToInt64Seconds(rule.backoff));
    }
  }
}

void TakeOutDefaultsOfSchema2(v1::JobSpec* spec) {
  if (spec->name() == DefaultName(*spec)) spec->clear_name();
  if (spec->project() == kDefaultProject) spec->clear_project();
  if (spec->nodes() == 0) spec->set_nodes(1);
  for (v1::Role& role : *spec->mutable_roles()) {
    if (uint64_t{role.first_node()} + role.nodes() == spec->nodes()) role.clear_nodes();
  }
  if (spec->nodes() == 1) spec->clear_nodes();
  if (spec->has_slurm() && spec->slurm().tasks_per_node() == 1)
    spec->mutable_slurm()->clear_tasks_per_node();
  if (spec->has_retry()) TakeOutDefaults(spec->mutable_retry());
}

}  // namespace muster::contract
