// Users of several projects try everything on each other's jobs, in an order that a seed chooses.
// The rights of each are written down here once more, without the table of rights.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/app/change_jobs.h"
#include "broker/app/count_jobs.h"
#include "broker/app/get_job.h"
#include "broker/app/list_jobs.h"
#include "broker/app/rerun_jobs.h"
#include "broker/app/submit_jobs.h"
#include "broker/app/update_job.h"
#include "broker/app/watch_jobs.h"
#include "tests/unit/app/app_fixture.h"

namespace muster::broker {
namespace {

constexpr int kTests = 40;
constexpr int kSeedsOfATest = 50;
constexpr int kStepsOfASeed = 60;
constexpr size_t kMostJobs = 100;
const std::vector<std::string> kProjects = {"vision", "speech", "robots"};
const std::vector<std::string> kUsers = {"ada", "bob", "carol", "dan"};

// A broker of its own for each seed.
class Attack : public AppTest {
 public:
  explicit Attack(int seed) : random_(static_cast<unsigned>(seed)) {
    readers_.places = 1'000'000;
    SetUp();
  }
  ~Attack() override { TearDown(); }

  void Run() {
    for (int step = 0; step < kStepsOfASeed && !HasFailure(); ++step) {
      SCOPED_TRACE(step);
      Step();
    }
  }

 private:
  void TestBody() override {}

  int Any(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  template <typename T>
  const T& AnyOf(const std::vector<T>& all) {
    return all[static_cast<size_t>(Any(static_cast<int>(all.size())))];
  }

  // Makes a user with up to two memberships and, seldom, a role over the whole broker.
  Principal AnyPrincipal() {
    const std::vector<Role> over = {Role::kMember, Role::kMember,    Role::kMember,
                                    Role::kMember, Role::kSubmitter, Role::kViewer};
    const std::vector<Role> in = {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin};
    Principal who{.user = AnyOf(kUsers), .known_by = KnownBy::kToken, .role = AnyOf(over)};
    for (int i = Any(3); i > 0; --i) who.memberships.push_back({AnyOf(kProjects), AnyOf(in)});
    return who;
  }

  static bool MaySee(const Principal& who, const v1::Job& job) {
    if (who.role == Role::kViewer) return true;
    if (who.role == Role::kSubmitter && job.user() == who.user) return true;
    for (const auth::Membership& one : who.memberships) {
      if (one.project == job.project()) return true;
    }
    return false;
  }
  static bool MayChange(const Principal& who, const v1::Job& job) {
    if (who.role == Role::kSubmitter && job.user() == who.user) return true;
    for (const auth::Membership& one : who.memberships) {
      if (one.project != job.project() || one.role == Role::kViewer) continue;
      if (one.role != Role::kSubmitter || job.user() == who.user) return true;
    }
    return false;
  }
  static bool MaySubmit(const Principal& who, const std::string& project) {
    if (who.role == Role::kSubmitter) return true;
    for (const auth::Membership& one : who.memberships) {
      if (one.project == project && one.role != Role::kViewer) return true;
    }
    return false;
  }

  std::map<uint64_t, v1::Job> AllJobs() {
    std::map<uint64_t, v1::Job> all;
    const auto page = store_.ListJobs(store::Scope::All(), {.page_size = 1000});
    for (const v1::Job& job : page->jobs) all[job.id()] = job;
    return all;
  }

  std::string AnyFilter() {
    const std::vector<std::string> filters = {
        "",
        "state = QUEUED",
        "project = " + AnyOf(kProjects),
        "user = " + AnyOf(kUsers),
        "NOT project = " + AnyOf(kProjects),
        "project = " + AnyOf(kProjects) + " OR user = " + AnyOf(kUsers),
        "id > 0",
        "name = \"*\" project = " + AnyOf(kProjects)};
    return AnyOf(filters);
  }

  void Submit(const Principal& who) {
    v1::SubmitJobRequest request;
    request.mutable_spec()->set_project(AnyOf(kProjects));
    request.mutable_spec()->mutable_command()->mutable_argv()->add_args("true");
    const std::map<uint64_t, v1::Job> all = AllJobs();
    bool sees_it = true;
    if (!all.empty() && Any(3) == 0) {
      const auto other = std::next(all.begin(), Any(static_cast<int>(all.size())));
      request.mutable_spec()->add_depends_on()->set_job_id(other->first);
      sees_it = MaySee(who, other->second);
    }
    const auto done = Await<v1::SubmitJobResponse>(
        [&](SubmitJobDone end) { SubmitJob(who, services_, request, std::move(end)); });
    EXPECT_EQ(done.ok(), MaySubmit(who, request.spec().project()) && sees_it) << done.status();
  }

  void Look(const Principal& who) {
    const std::map<uint64_t, v1::Job> all = AllJobs();
    v1::ListJobsRequest list;
    list.set_filter(AnyFilter());
    if (const auto listed = ListJobs(who, services_, list); listed.ok()) {
      for (const v1::Job& job : listed->jobs()) EXPECT_TRUE(MaySee(who, job)) << job.id();
    }
    uint64_t visible = 0;
    for (const auto& [id, job] : all) {
      v1::GetJobRequest get;
      get.set_job_id(id);
      EXPECT_EQ(GetJob(who, services_, get).ok(), MaySee(who, job)) << id;
      visible += MaySee(who, job) ? 1 : 0;
    }
    if (const auto counted = CountJobs(who, services_, {}); counted.ok()) {
      EXPECT_EQ(counted->total(), visible);
    }
    v1::WatchJobsRequest watch;
    watch.mutable_beginning();
    auto source = WatchJobs(who, services_, watch);
    if (!source.ok()) return;
    for (const ChangeBytes& bytes : PullAll(**source).messages) {
      v1::WatchJobsResponse message;
      ASSERT_TRUE(message.ParseFromString(*bytes));
      for (const v1::JobChange& change : message.changes())
        EXPECT_TRUE(MaySee(who, all.at(change.job().id()))) << change.job().id();
    }
  }

  void Change(const Principal& who) {
    ChangeRequest request;
    request.change =
        AnyOf(std::vector<JobChange>{JobChange::kCancel, JobChange::kHold, JobChange::kRelease});
    if (const uint64_t jobs = AllJobs().size(); Any(2) == 0 && jobs > 0) {
      request.jobs = {1 + static_cast<uint64_t>(Any(static_cast<int>(jobs)))};
    } else {
      request.filter = AnyFilter();
    }
    const auto changed = Await<ChangedJobs>(
        [&](ChangeDone done) { ChangeJobs(who, services_, request, std::move(done)); });
    if (!changed.ok()) return;
    for (const v1::Job& job : changed->jobs) EXPECT_TRUE(MayChange(who, Read(job.id())));
  }

  void Update(const Principal& who) {
    const auto jobs = static_cast<int>(AllJobs().size());
    if (jobs == 0) return;
    v1::UpdateJobRequest request;
    request.set_job_id(1 + static_cast<uint64_t>(Any(jobs)));
    (*request.mutable_set_labels())["by"] = who.user;
    const auto updated = Await<v1::UpdateJobResponse>(
        [&](UpdateDone done) { UpdateJob(who, services_, request, std::move(done)); });
    EXPECT_EQ(updated.ok(), MayChange(who, Read(request.job_id()))) << updated.status();
  }

  void Rerun(const Principal& who) {
    // Each doubles those that have ended.
    if (AllJobs().size() > kMostJobs) return;
    v1::RerunJobsRequest request;
    request.set_filter(AnyFilter());
    if (request.filter().empty()) request.set_filter("id > 0");
    const auto again = Await<v1::RerunJobsResponse>(
        [&](RerunDone done) { RerunJobs(who, services_, request, std::move(done)); });
    if (!again.ok()) return;
    for (const v1::RerunJob& job : again->jobs()) {
      EXPECT_TRUE(MayChange(who, Read(job.source_job_id())));
      EXPECT_EQ(Read(job.job_id()).user(), who.user);
      EXPECT_EQ(Read(job.job_id()).project(), Read(job.source_job_id()).project());
    }
  }

  void ActAs(const Principal& who) {
    switch (Any(6)) {
      case 0:
      case 1:
        return Submit(who);
      case 2:
        return Look(who);
      case 3:
        return Change(who);
      case 4:
        return Update(who);
      default:
        return Rerun(who);
    }
  }

  void Step() {
    const Principal who = AnyPrincipal();
    const std::map<uint64_t, v1::Job> before = AllJobs();
    ActAs(who);
    for (const auto& [id, job] : before) {
      if (MayChange(who, job)) continue;
      // One of theirs that it depends on has ended.
      if (Read(id).failure().code() == v1::FAILURE_CODE_DEPENDENCY_FAILED) continue;
      EXPECT_EQ(Read(id).job_sequence(), job.job_sequence()) << id;
    }
    for (const auto& [id, job] : AllJobs()) {
      if (before.contains(id)) continue;
      EXPECT_EQ(job.user(), who.user);
      EXPECT_TRUE(MaySubmit(who, job.project())) << job.project();
    }
  }

  std::mt19937 random_;
};

class ProjectAttackTest : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Seeds, ProjectAttackTest, ::testing::Range(0, kTests));

TEST_P(ProjectAttackTest, NobodySeesOrChangesAJobThatIsNotTheirs) {
  const int first = GetParam() * kSeedsOfATest;
  for (int seed = first; seed < first + kSeedsOfATest && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Attack(seed).Run();
  }
}

}  // namespace
}  // namespace muster::broker
