// Every call with every role and every relation of a job to the caller, as the table of rights says
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/app/change_jobs.h"
#include "broker/app/count_jobs.h"
#include "broker/app/fetch_files.h"
#include "broker/app/get_job.h"
#include "broker/app/list_jobs.h"
#include "broker/app/list_transitions.h"
#include "broker/app/plan_job.h"
#include "broker/app/project_limits.h"
#include "broker/app/read_log.h"
#include "broker/app/rerun_jobs.h"
#include "broker/app/rights.h"
#include "broker/app/run_logs.h"
#include "broker/app/signal_jobs.h"
#include "broker/app/submit_jobs.h"
#include "broker/app/update_job.h"
#include "broker/app/watch_jobs.h"
#include "contract/errors.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

// No job is concerned by these calls; EveryRoleDoesWithEachJobWhatTheTableSays has the others.
const std::set<std::string_view> kWithoutJob = {
    "FilesService.FindMissingFiles",   "FilesService.UploadFiles",
    "FilesService.DownloadFile",       "ClustersService.ListClusters",
    "ClustersService.GetCluster",      "ClustersService.CheckCluster",
    "ClustersService.DescribeCluster", "ClustersService.ForgetCluster",
    "ClustersService.InviteCluster",   "ClustersService.RevokeCluster",
    "ClustersService.CordonCluster",   "ClustersService.UncordonCluster",
    "IdentityService.WhoAmI",          "IdentityService.CreateToken",
    "IdentityService.ListTokens",      "IdentityService.RevokeToken",
    "ProjectsService.CreateProject",   "ProjectsService.UpdateProject",
    "ProjectsService.GetProject",      "ProjectsService.ListProjects",
    "ProjectsService.ArchiveProject",  "ProjectsService.SetMember",
    "ProjectsService.RemoveMember",    "IdentityService.GetLoginInfo",
    "SecretsService.SetSecret",        "SecretsService.ListSecrets",
    "SecretsService.DeleteSecret",     "AuditService.ListAuditRecords",
    "AuditService.VerifyAudit",        "UsageService.GetUsage"};

// A job, by whose it is and where.
struct Target {
  uint64_t id = 0;
  std::string project;
  std::string user;
};

class ProjectRightsTest : public AppTest {
 protected:
  using Call = std::function<absl::Status(const Principal&, const Target&)>;

  void SetUp() override {
    AppTest::SetUp();
    readers_.places = 1000;
    const std::pair<Relation, Target> targets[] = {{Relation::kOwnHere, {1, "vision", "ada"}},
                                                   {Relation::kOfProject, {2, "vision", "bob"}},
                                                   {Relation::kOfNoProject, {3, "speech", "bob"}},
                                                   {Relation::kOwnElsewhere, {4, "speech", "ada"}}};
    for (const auto& [relation, target] : targets) {
      Put(target);
      targets_[relation] = target;
    }
  }

  void Put(const Target& target) {
    const auto submitted = Await<v1::SubmitJobsResponse>([&](SubmitDone done) {
      core::Submit submit;
      v1::JobSpec spec = SpecIn(target.project);
      spec.set_nodes(1);
      submit.items.emplace_back().spec = std::make_shared<const v1::JobSpec>(std::move(spec));
      submit.user = target.user;
      engine_->Submit(std::move(submit), std::move(done));
    });
    ASSERT_TRUE(submitted.ok()) << submitted.status();
    ASSERT_EQ(submitted->responses(0).job_id(), target.id);
  }

  static v1::JobSpec SpecIn(const std::string& project) {
    v1::JobSpec spec;
    spec.set_name("job");
    spec.set_project(project);
    spec.mutable_command()->mutable_argv()->add_args("true");
    return spec;
  }

  absl::Status Change(const Principal& who, JobChange change, uint64_t id) {
    return Await<ChangedJobs>([&](ChangeDone done) {
             ChangeJobs(who, services_, {.change = change, .jobs = {id}, .validate_only = true},
                        std::move(done));
           })
        .status();
  }

  // NOT_FOUND if a list or a count does not have the job.
  static absl::Status Found(bool is_found) {
    return is_found ? absl::OkStatus() : absl::NotFoundError("UNKNOWN_JOB");
  }
  absl::Status Listed(const Principal& who, uint64_t id) {
    const auto listed = ListJobs(who, services_, {});
    if (!listed.ok()) return listed.status();
    return Found(std::any_of(listed->jobs().begin(), listed->jobs().end(),
                             [id](const v1::Job& job) { return job.id() == id; }));
  }
  absl::Status Counted(const Principal& who, uint64_t id) {
    v1::CountJobsRequest request;
    request.set_filter("id = " + std::to_string(id));
    const auto counted = CountJobs(who, services_, request);
    if (!counted.ok()) return counted.status();
    return Found(counted->total() == 1);
  }

  template <typename Source>
  static absl::Status Begin(absl::StatusOr<std::unique_ptr<Source>> source) {
    if (!source.ok()) return source.status();
    return (*source)->Next().final_status.value_or(absl::OkStatus());
  }

  template <typename Request>
  static Request OfJob(uint64_t id) {
    Request request;
    request.set_job_id(id);
    return request;
  }

  // Submits into the project of the target, without effect.
  absl::Status Submitted(const Principal& who, const Target& target, bool is_list) {
    v1::SubmitJobRequest one;
    *one.mutable_spec() = SpecIn(target.project);
    one.set_validate_only(true);
    if (!is_list) {
      return Await<v1::SubmitJobResponse>([&](SubmitJobDone done) {
               broker::SubmitJob(who, services_, one, std::move(done));
             })
          .status();
    }
    v1::SubmitJobsRequest several;
    *several.add_requests() = one;
    return Await<v1::SubmitJobsResponse>([&](SubmitDone done) {
             broker::SubmitJobs(who, services_, several, std::move(done));
           })
        .status();
  }

  std::map<std::string_view, Call> Calls() {
    std::map<std::string_view, Call> calls;
    calls["JobsService.SubmitJob"] = [this](const Principal& who, const Target& target) {
      return Submitted(who, target, false);
    };
    calls["JobsService.SubmitJobs"] = [this](const Principal& who, const Target& target) {
      return Submitted(who, target, true);
    };
    calls["JobsService.PlanJob"] = [this](const Principal& who, const Target& target) {
      v1::PlanJobRequest request;
      *request.mutable_spec() = SpecIn(target.project);
      return Await<v1::PlanJobResponse>([&](PlanJobDone done) {
               PlanJob(who, services_, request, absl::InfiniteFuture(), std::move(done));
             })
          .status();
    };
    calls["JobsService.RerunJobs"] = [this](const Principal& who, const Target& target) {
      v1::RerunJobsRequest request;
      request.add_job_ids(target.id);
      return Await<v1::RerunJobsResponse>(
                 [&](RerunDone done) { RerunJobs(who, services_, request, std::move(done)); })
          .status();
    };
    calls["JobsService.SignalJobs"] = [this](const Principal& who, const Target& target) {
      v1::SignalJobsRequest request;
      request.add_job_ids(target.id);
      request.set_signal("USR1");
      return Await<std::vector<SentSignal>>([&](SignalJobsDone done) {
               SignalJobs(who, services_, request, absl::InfiniteFuture(), std::move(done));
             })
          .status();
    };
    calls["JobsService.GetJob"] = [this](const Principal& who, const Target& target) {
      return GetJob(who, services_, OfJob<v1::GetJobRequest>(target.id)).status();
    };
    calls["JobsService.ListJobs"] = [this](const Principal& who, const Target& target) {
      return Listed(who, target.id);
    };
    calls["JobsService.CountJobs"] = [this](const Principal& who, const Target& target) {
      return Counted(who, target.id);
    };
    calls["JobsService.ListTransitions"] = [this](const Principal& who, const Target& target) {
      return ListTransitions(who, services_, OfJob<v1::ListTransitionsRequest>(target.id)).status();
    };
    calls["JobsService.WatchJobs"] = [this](const Principal& who, const Target& target) {
      v1::WatchJobsRequest request;
      request.add_job_ids(target.id);
      return Begin(WatchJobs(who, services_, request));
    };
    for (const auto& [rpc, change] : {std::pair("JobsService.CancelJobs", JobChange::kCancel),
                                      std::pair("JobsService.MoveJobs", JobChange::kMove),
                                      std::pair("JobsService.HoldJobs", JobChange::kHold),
                                      std::pair("JobsService.ReleaseJobs", JobChange::kRelease)}) {
      calls[rpc] = [this, change = change](const Principal& who, const Target& target) {
        return Change(who, change, target.id);
      };
    }
    calls["JobsService.UpdateJob"] = [this](const Principal& who, const Target& target) {
      auto request = OfJob<v1::UpdateJobRequest>(target.id);
      request.set_priority(0);
      return Await<v1::UpdateJobResponse>(
                 [&](UpdateDone done) { UpdateJob(who, services_, request, std::move(done)); })
          .status();
    };
    calls["JobsService.ListLogs"] = [this](const Principal& who, const Target& target) {
      return ListLogs(who, services_, OfJob<v1::ListLogsRequest>(target.id)).status();
    };
    calls["JobsService.ReadLog"] = [this](const Principal& who, const Target& target) {
      return Begin(ReadLog(who, services_, OfJob<v1::ReadLogRequest>(target.id)));
    };
    calls["FilesService.FetchFiles"] = [this](const Principal& who, const Target& target) {
      return Await<bool>([&](const std::function<void(absl::StatusOr<bool>)>& done) {
               AskForFiles(who, services_, OfJob<v1::FetchFilesRequest>(target.id), "ticket",
                           [done](const absl::Status& status) { done(status); });
             })
          .status();
    };
    return calls;
  }

  static std::string ReasonOf(const absl::Status& status) {
    const auto info = contract::GetErrorInfo(status);
    return info ? info->reason() : std::string(status.message());
  }

  std::map<Relation, Target> targets_;
};

// The role over the whole broker, and the one in the project "vision".
struct Roles {
  Role over_broker;
  std::optional<Role> in_vision;
};

TEST_F(ProjectRightsTest, EveryRoleDoesWithEachJobWhatTheTableSays) {
  const std::map<std::string_view, Call> calls = Calls();
  std::vector<Roles> all;
  for (const Role over :
       {Role::kMember, Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin}) {
    all.push_back({over, std::nullopt});
    for (const Role in : {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin})
      all.push_back({over, in});
  }
  int checked = 0;
  for (const Roles& roles : all) {
    Principal ada{.user = "ada", .known_by = KnownBy::kToken, .role = roles.over_broker};
    if (roles.in_vision) ada.memberships = {{"vision", *roles.in_vision}};
    for (const RpcUseCase& rpc : RpcUseCases()) {
      if (kWithoutJob.contains(rpc.rpc)) continue;
      ASSERT_TRUE(calls.contains(rpc.rpc)) << rpc.rpc << ": say how to call it";
      bool may_any = false;
      const auto may = [&](Relation relation) {
        return Allows(roles.over_broker, false, rpc.use_case, relation) ||
               (roles.in_vision && Allows(*roles.in_vision, true, rpc.use_case, relation));
      };
      for (const Relation relation : kRelations) may_any = may_any || may(relation);
      for (const Relation relation : kRelations) {
        // A submit is in the own name of its caller.
        const bool is_submit = rpc.rpc.ends_with("SubmitJob") || rpc.rpc.ends_with("SubmitJobs") ||
                               rpc.rpc.ends_with("PlanJob");
        const bool is_own = relation == Relation::kOwnHere || relation == Relation::kOwnElsewhere;
        if (is_submit && !is_own) continue;
        const absl::Status status = calls.at(rpc.rpc)(ada, targets_[relation]);
        const std::string reason = ReasonOf(status);
        const std::string hidden = is_submit ? "PROJECT_NOT_ALLOWED" : "UNKNOWN_JOB";
        const std::string what =
            std::string(rpc.rpc) + " as " + std::string(auth::NameOf(roles.over_broker)) + " and " +
            (roles.in_vision ? std::string(auth::NameOf(*roles.in_vision)) : "no member") +
            " with job " + std::to_string(targets_[relation].id) + ": " + status.ToString();
        if (!may_any) {
          EXPECT_EQ(reason, "NOT_ALLOWED") << what;
        } else if (!may(relation)) {
          EXPECT_EQ(reason, hidden) << what;
        } else {
          EXPECT_FALSE(reason == "NOT_ALLOWED" || reason == hidden) << what;
        }
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 1000);
}

TEST_F(ProjectRightsTest, ARoleInAProjectNeverReachesAJobOfAnother) {
  for (const Role role : {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin}) {
    for (const RpcUseCase& rpc : RpcUseCases()) {
      EXPECT_FALSE(Allows(role, true, rpc.use_case, Relation::kOfNoProject)) << rpc.rpc;
      EXPECT_FALSE(Allows(role, true, rpc.use_case, Relation::kOwnElsewhere)) << rpc.rpc;
    }
  }
}

TEST_F(ProjectRightsTest, AMemberAloneMayNothingWithJobs) {
  const Principal nobody{.user = "ada", .known_by = KnownBy::kToken, .role = Role::kMember};
  for (const RpcUseCase& rpc : RpcUseCases()) {
    const bool may = rpc.use_case == UseCase::kWhoAmI || rpc.use_case == UseCase::kLogIn ||
                     rpc.use_case == UseCase::kManageTokens;
    EXPECT_EQ(Authorize(nobody, rpc.use_case).ok(), may) << rpc.rpc;
  }
}

TEST_F(ProjectRightsTest, SeveralMembershipsAddUp) {
  Principal ada{.user = "ada", .known_by = KnownBy::kToken, .role = Role::kMember};
  ada.memberships = {{"vision", Role::kSubmitter}, {"speech", Role::kViewer, "staff"}};
  const auto read = Authorize(ada, UseCase::kReadJobs);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->Contains("vision", "bob") && read->Contains("speech", "bob"));
  EXPECT_FALSE(read->Contains("robots", "ada"));
  const auto change = Authorize(ada, UseCase::kChangeJobs);
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_TRUE(change->Contains("vision", "ada"));
  EXPECT_FALSE(change->Contains("vision", "bob"));
  EXPECT_FALSE(change->Contains("speech", "ada"));
}

TEST_F(ProjectRightsTest, ALimitOfImagesTakesWholePartsOfNames) {
  EXPECT_TRUE(AllowsImage("nvcr.io/nvidia", "nvcr.io/nvidia/pytorch:24.01"));
  EXPECT_TRUE(AllowsImage("nvcr.io/nvidia/", "docker://nvcr.io#nvidia/pytorch:24.01"));
  EXPECT_TRUE(AllowsImage("nvcr.io/nvidia/pytorch", "nvcr.io/nvidia/pytorch:24.01"));
  EXPECT_TRUE(AllowsImage("docker.io/library/debian:12", "debian:12"));
  EXPECT_FALSE(AllowsImage("docker.io/library/debian:12", "debian:120"));
  EXPECT_FALSE(AllowsImage("nvcr.io/nvidia", "nvcr.io/nvidia-labs/pytorch"));
  EXPECT_FALSE(AllowsImage("nvcr.io/nvidia", "evil.example/nvcr.io/nvidia/pytorch"));
  EXPECT_TRUE(AllowsImage("/lustre/images", "/lustre/images/a.sqsh"));
  EXPECT_FALSE(AllowsImage("/lustre/images", "/lustre/images/../mine/a.sqsh"));
}

}  // namespace
}  // namespace muster::broker
