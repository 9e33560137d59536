#include "broker/app/update_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "broker/app/arguments.h"
#include "broker/app/rights.h"
#include "broker/app/show_jobs.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/characters.h"
#include "contract/errors.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "contract/validate.h"

namespace muster::broker {
namespace {

// A client gets the error after this many attempts, each lost to another change of the job.
constexpr int kMaxAttempts = 10;
// The agent of another broker knows its jobs by these (docs/federation.md): with others, the run
// would be taken for lost, or for another one.
constexpr std::array<std::string_view, 3> kLabelsOfAgents = {"muster.run", "muster.cluster",
                                                             "muster.user"};

absl::Status CheckLabel(std::string_view field, std::string_view key) {
  if (std::find(kLabelsOfAgents.begin(), kLabelsOfAgents.end(), key) == kLabelsOfAgents.end())
    return absl::OkStatus();
  return contract::BadField(
      std::string(field),
      fmt::format("{} is a label by which the agent of another broker knows its jobs; leave it as "
                  "it is, and use a label of another name",
                  contract::Quoted(key)));
}

absl::Status CheckRequest(const v1::UpdateJobRequest& request) {
  if (request.job_id() == 0) return contract::BadField("job_id", "0 is no job; numbers begin at 1");
  if (!request.has_priority() && request.set_labels().empty() && request.remove_labels().empty()) {
    return contract::BadField("priority",
                              "is absent, and so are set_labels and remove_labels; say what to "
                              "change");
  }
  for (const auto& [key, value] : request.set_labels()) {
    if (absl::Status good = CheckLabel(fmt::format("set_labels[{}]", contract::Quoted(key)), key);
        !good.ok())
      return good;
  }
  for (int i = 0; i < request.remove_labels_size(); ++i) {
    absl::Status good = CheckLabel(fmt::format("remove_labels[{}]", i), request.remove_labels(i));
    if (!good.ok()) return good;
    if (!request.set_labels().contains(request.remove_labels(i))) continue;
    return contract::BadField(fmt::format("remove_labels[{}]", i),
                              fmt::format("{} is in set_labels, too; name it in one of them",
                                          contract::Quoted(request.remove_labels(i))));
  }
  return CheckReason(request.reason());
}

// The labels have another field name in the request than in a spec.
absl::Status WithRequestFields(const absl::Status& status) {
  const auto bad = contract::GetBadRequest(status);
  if (!bad) return status;
  contract::FieldErrors errors;
  for (const auto& violation : bad->field_violations()) {
    const bool is_label = violation.field().starts_with("labels");
    errors.Add(fmt::format("{}{}", is_label ? "set_" : "", violation.field()),
               violation.description());
  }
  return errors.ToStatus();
}

// One request, tried again until the job has not changed between the look and the update.
struct Updating {
  const Principal principal;
  const Services services;
  const v1::UpdateJobRequest request;
  const UpdateDone done;
  const store::Scope scope;
  const std::shared_ptr<AnswerPlace> place;
  int attempts = 0;
  std::optional<v1::SubmitWarning> warning = {};  // about the change that was decided last

  // Returns the edit that the request asks for; `what` gets the differences in words.
  absl::StatusOr<core::Edit> Decide(const v1::Job& job, std::string* what) const {
    core::Edit edit{.job = job.id(), .job_sequence = job.job_sequence(), .state = job.state()};
    const auto tell = [what](std::string words) {
      *what += (what->empty() ? "" : ", ") + std::move(words);
    };
    edit.priority = request.has_priority() ? request.priority() : job.priority();
    if (edit.priority != job.priority()) {
      if (contract::IsTerminal(job.state())) {
        return contract::Error(absl::StatusCode::kFailedPrecondition, "JOB_HAS_ENDED",
                               fmt::format("job {} is {}, and its priority decides nothing any "
                                           "more; labels can still be changed",
                                           job.id(), contract::Name(job.state())),
                               {{"job_id", fmt::format("{}", job.id())}});
      }
      tell(fmt::format("priority {} instead of {}", edit.priority, job.priority()));
    }
    edit.labels.insert(job.labels().begin(), job.labels().end());
    edit.priority_before = job.priority();
    edit.labels_before = edit.labels;
    for (const auto& [key, value] : request.set_labels()) {
      const auto [label, is_new] = edit.labels.try_emplace(key, value);
      if (!is_new && label->second == value) continue;
      label->second = value;
      tell(fmt::format("label {}={}", key, value));
    }
    for (const std::string& key : request.remove_labels()) {
      if (edit.labels.erase(key) > 0) tell(fmt::format("no label {}", key));
    }
    v1::JobSpec spec;
    spec.set_priority(edit.priority);
    for (const auto& [key, value] : edit.labels) (*spec.mutable_labels())[key] = value;
    if (absl::Status status = contract::ValidateEdit(spec); !status.ok()) {
      return WithRequestFields(status);
    }
    return edit;
  }

  void Fail(const absl::Status& status) const {
    place->GiveBack();
    done(status);
  }

  void Answer(v1::Job job) const {
    v1::UpdateJobResponse response;
    *response.mutable_job() = std::move(job);
    if (warning) *response.add_warnings() = *warning;
    done(std::move(response));
  }

  // Runs on a thread that may read the store.
  static void Try(const std::shared_ptr<Updating>& self) {
    ++self->attempts;
    auto jobs = self->services.store->GetJobs(self->scope, {self->request.job_id()});
    if (!jobs.ok()) return self->Fail(jobs.status());
    std::string what;
    absl::StatusOr<core::Edit> edit = self->Decide(jobs->front(), &what);
    if (!edit.ok()) return self->Fail(edit.status());
    if (what.empty()) {
      self->place->GiveBack();
      return self->Answer(std::move(jobs->front()));
    }
    // The edit is made only if the job has not changed since.
    const bool is_moved = edit->priority != edit->priority_before;
    self->warning.reset();
    if (is_moved && jobs->front().state() != v1::JOB_STATE_QUEUED)
      self->warning = contract::RunKeepsPriority(jobs->front());
    edit->request = {.verb = "updated",
                     .user = self->principal.user,
                     .more = ": " + what,
                     .reason = self->request.reason()};
    self->services.engine->Edit(*std::move(edit), [self](const absl::Status& status) {
      if (status.ok()) {
        return self->place->Use([self](bool may_read) {
          self->Answer(std::move(
              ShowJobs(self->services, self->scope, {self->request.job_id()}, may_read).front()));
        });
      }
      if (!absl::IsAborted(status) || self->attempts == kMaxAttempts) return self->Fail(status);
      Later(self);
    });
  }

  static void Later(const std::shared_ptr<Updating>& self) {
    if (!self->services.readers->PostCall([self] { Try(self); }))
      self->Fail(self->services.readers->Refusal());
  }
};

}  // namespace

void UpdateJob(const Principal& principal, const Services& services, v1::UpdateJobRequest request,
               UpdateDone done) {
  const absl::StatusOr<store::Scope> scope = Authorize(principal, UseCase::kChangeJobs);
  if (!scope.ok()) return done(scope.status());
  if (absl::Status status = CheckRequest(request); !status.ok()) return done(status);
  auto place = AnswerPlace::Take(services.readers);
  if (!place) return done(services.readers->Refusal());
  Updating::Later(std::make_shared<Updating>(Updating{principal, services, std::move(request),
                                                      std::move(done), *scope, std::move(place)}));
}

}  // namespace muster::broker
