// Runs that are held and released while a scripted server changes their Jobs.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_HOLD_FIXTURE_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_HOLD_FIXTURE_H_

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "agents/kubernetes/objects/kueue.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/scripted_cluster.h"

namespace muster::kubernetes {

class BackendHoldTest : public ScriptedClusterTest {
 protected:
  static constexpr char kRun[] = "k7m2-1-1";
  // Others, whose release and hold are the last of what a look sets going.
  static constexpr char kLastReleased[] = "k7m2-8-1";
  static constexpr char kLastHeld[] = "k7m2-9-1";
  static constexpr char kDenied[] =
      R"({"kind": "Status", "reason": "Forbidden", "message":
          "admission webhook \"vjob.kb.io\" denied the request: field is immutable"})";
  static constexpr char kForbidden[] =
      R"({"kind": "Status", "reason": "Forbidden", "message":
          "jobs.batch \"k7m2-1-1\" is forbidden: User \"x\" cannot patch resource \"jobs\""})";

  BackendHoldTest() {
    assignment_ = std::make_shared<agent::v1::Assignment>();
    assignment_->set_run_key(kRun);
    assignment_->set_user("ann");
    assignment_->mutable_spec()->set_nodes(1);
    assignment_->mutable_spec()->set_image("any");
    assignment_->mutable_spec()->mutable_command()->set_script("true");
    assignment_->mutable_spec()->mutable_kubernetes()->set_queue("team");
    answer_first_ = [this](const ScriptedRequest& request) { return Answer(request); };
  }

  // Makes a Job in the queue "team" whose launch is not through.
  Json HalfLaunched(bool is_suspended) {
    Json job = MakeJob(kRun);
    job["metadata"]["annotations"] = Json::object();
    job["metadata"]["labels"][kQueueLabel] = "team";
    job["spec"]["suspend"] = is_suspended;
    return job;
  }
  static Json PodOf(const char* node, Json container_state) {
    return {{"metadata",
             {{"name", std::string(kRun) + "-0"},
              {"namespace", "lab"},
              {"uid", "p"},
              {"labels", {{kRunLabel, kRun}}},
              {"ownerReferences", {{{"kind", "Job"}, {"uid", "u-" + std::string(kRun)}}}}}},
            {"spec", {{"nodeName", node}}},
            {"status",
             {{"phase", "Running"},
              {"containerStatuses", {{{"name", "main"}, {"state", std::move(container_state)}}}}}}};
  }
  static Json RunningPod() {
    return PodOf("node-1", {{"running", {{"startedAt", "2026-01-01T00:00:30Z"}}}});
  }
  static Json UnschedulablePod() {
    Json pod = PodOf("", Json::object());
    pod["status"] = {
        {"phase", "Pending"},
        {"conditions",
         {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}};
    return pod;
  }
  agents::RunHandle Launched(v1::RunState state = v1::RUN_STATE_PENDING) const {
    agents::RunHandle run = Handle(kRun);
    run.external_id = "lab/" + std::string(kRun);
    run.assignment = assignment_;
    run.state = state;
    return run;
  }

  std::shared_ptr<agent::v1::Assignment> assignment_;
  bool denies_holds_ = false;
  bool forbids_patches_ = false;
  std::string hold_at_;  // a hold comes while the server has a change with these words

  agents::RunHandle Held() const {
    agents::RunHandle run = Launched();
    run.held = true;
    return run;
  }
  // Runs can be looked at from then on.
  void AwaitWatches() {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (!backend_->Observe({}).scheduler.ok() && absl::Now() < end)
      absl::SleepFor(absl::Milliseconds(2));
  }
  // Returns the changes by an agent that is started for it, with all that the look at the run has
  // set going.
  std::vector<std::string> ChangesAtALook(const agents::RunHandle& run,
                                          bool has_broker_spoken = true) {
    Set([this] {
      for (const char* last : {kLastReleased, kLastHeld}) jobs_.push_back(JobOfAnother(last));
    });
    Start({kRun, kLastReleased, kLastHeld});
    if (has_broker_spoken) backend_->capabilities().allow_starts();
    TakeChanges();
    const agents::RunHandle released = Another(kLastReleased);
    agents::RunHandle held = Another(kLastHeld);
    held.held = true;
    EXPECT_EQ(backend_->Observe({run, released, held}).observations.size(), 3);
    std::vector<std::string> changes;
    // The changes asked of the last run begin after all others.
    if (has_broker_spoken) changes = AwaitChanges({kLastReleased, kLastHeld});
    backend_.reset();  // all is done that was begun
    std::ranges::move(TakeChanges(), std::back_inserter(changes));
    std::erase_if(changes, [](const std::string& change) {
      return change.find(kLastReleased) != std::string::npos ||
             change.find(kLastHeld) != std::string::npos;
    });
    Set([this] { jobs_.erase(jobs_.end() - 2, jobs_.end()); });
    return changes;
  }
  // The first changes that looks at the run set going.
  std::vector<std::string> AwaitChangeByLooks(const agents::RunHandle& run) {
    std::vector<std::string> changes;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (changes.empty() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      (void)backend_->Observe({run});
      changes = TakeChanges();
    }
    return changes;
  }
  // Returns the reason at the first look at which it has such words, or at the last of 20 s.
  std::string AwaitReason(const agents::RunHandle& run, const std::string& words) {
    std::string reason;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (reason.find(words) == std::string::npos && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(2));
      for (const agents::Observation& seen : backend_->Observe({run}).observations)
        reason = seen.reason.message();
    }
    return reason;
  }

 private:
  agents::RunHandle Another(const std::string& run_key) const {
    agents::RunHandle run = Launched();
    run.run_key = run_key;
    run.external_id = "lab/" + run_key;
    auto assignment = std::make_shared<agent::v1::Assignment>(*assignment_);
    assignment->set_run_key(run_key);
    run.assignment = std::move(assignment);
    return run;
  }
  // Makes the Job of a run that waits in a queue of Kueue's, before its launch is complete.
  Json JobOfAnother(const std::string& run_key) {
    Json job = HalfLaunched(true);
    job["metadata"]["name"] = job["metadata"]["labels"][kRunLabel] = run_key;
    return job;
  }
  // Answers like a server that keeps what it is given; its nodes may not be seen.
  std::optional<ScriptedReply> Answer(const ScriptedRequest& request) {
    if (request.target.starts_with("/api/v1/nodes")) return ScriptedReply{.status = 403};
    const std::string words = request.method + " " + request.target + " " + request.body;
    if (!hold_at_.empty() && words.find(hold_at_) != std::string::npos)
      backend_->capabilities().note_hold(kRun, true);
    if (request.method == "POST" && request.target.ends_with("/jobs")) {
      Json job = Json::parse(request.body);
      job["metadata"]["uid"] = "u-" + std::string(kRun);
      jobs_ = Json::array({job});
      return ScriptedReply{.status = 201, .body = job.dump()};
    }
    if (request.method != "PATCH") return std::nullopt;
    for (const char* last : {kLastReleased, kLastHeld}) {
      if (request.target.find(last) != std::string::npos)
        return ScriptedReply{.body = JobOfAnother(last).dump()};
    }
    if (forbids_patches_) return ScriptedReply{.status = 403, .body = kForbidden};
    if (denies_holds_ && request.body.find(kHeldQueue) != std::string::npos)
      return ScriptedReply{.status = 403, .body = kDenied};
    jobs_[0].merge_patch(Json::parse(request.body));
    return ScriptedReply{.body = jobs_[0].dump()};
  }
};

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_HOLD_FIXTURE_H_
