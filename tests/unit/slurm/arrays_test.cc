// The tasks of a job array that are launched together, with commands in Slurm's place.
#include "agents/slurm/arrays.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "agents/hosts/local_host.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/run_files.h"
#include "agents/slurm/slurm.h"
#include "contract/task_array.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/agents/one_run.h"
#include "tests/unit/slurm/stub_commands.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = agents::LaunchOutcome::Kind;
using Found = agents::LookupOutcome::Kind;

std::string ReadWhole(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class ArraysTest : public StubCommandsTest {
 protected:
  ArraysTest() {
    runs_ = root_ + "/runs";
    for (const char* command : {"squeue", "sacct", "scancel", "sinfo"}) AddCommand(command, "");
    SetSbatch("echo 17");
    SetConfig(1001);
    Restart();
  }

  // Its words go into a file, one call a line.
  void SetSbatch(const std::string& text) {
    AddCommand("sbatch", fmt::format("[ \"$1\" != --version ] || exit 0\n"
                                     "echo \"$*\" >>{}/submitted\n{}",
                                     root_, text));
  }
  void SetConfig(int max_array_size) {
    AddCommand("scontrol", fmt::format("echo 'ClusterName = lab'; echo 'MaxArraySize = {}'; echo "
                                       "'AccountingStorageType = accounting_storage/slurmdbd'",
                                       max_array_size));
  }
  // Starts a new agent on the same files.
  void Restart() {
    backend_ = CreateSlurmBackend(Config(), root_);
    ASSERT_TRUE(backend_->Probe().ok());
  }
  std::vector<agents::LaunchOutcome> Launch(const std::vector<v1::JobSpec>& specs) {
    std::vector<std::shared_ptr<const agent::v1::Assignment>> assignments;
    for (const v1::JobSpec& spec : specs) {
      auto assignment = std::make_shared<agent::v1::Assignment>();
      assignment->set_job_id(++last_job_);
      assignment->set_run_key(fmt::format("k7m2-{}-1", last_job_));
      *assignment->mutable_spec() = spec;
      assignments.push_back(std::move(assignment));
    }
    return backend_->Launch(assignments);
  }
  std::vector<std::string> Submitted() const {
    const std::string text = ReadWhole(root_ + "/submitted");
    std::vector<std::string> lines;
    for (std::string_view line : Lines(text)) lines.emplace_back(line);
    return lines;
  }
  std::vector<std::string> FilesOfArrays() const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(runs_ + "/arrays")) return names;
    for (const auto& entry : std::filesystem::directory_iterator(runs_ + "/arrays"))
      names.push_back(entry.path().filename());
    return names;
  }
  // Returns the name of the array that was launched.
  std::string NameOfArray() const {
    std::string name;
    for (const std::string& file : FilesOfArrays())
      if (!file.ends_with(".out")) name = file;
    return name;
  }
  static agents::RunHandle Handle(int job, const std::string& id = "") {
    agents::RunHandle handle;
    handle.run_key = fmt::format("k7m2-{}-1", job);
    handle.external_id = id;
    return handle;
  }

  std::string runs_;
  int last_job_ = 0;
  std::unique_ptr<agents::Backend> backend_;
};

v1::JobSpec SpecOf(const std::string& script, int64_t cores = 1) {
  v1::JobSpec spec;
  spec.mutable_command()->set_script(script);
  spec.mutable_resources()->set_cpu_millis(cores * 1000);
  return spec;
}

// Makes them the tasks of one job array.
std::vector<v1::JobSpec> ArrayOf(std::vector<v1::JobSpec> specs) {
  const auto count = static_cast<uint32_t>(specs.size());
  for (uint32_t i = 0; i < count; ++i) {
    specs[i].mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask({.id = i, .count = count, .max_id = count - 1, .place = i}, &specs[i]);
  }
  return specs;
}

TEST_F(ArraysTest, TheTasksOfAJobArrayAreOneSubmission) {
  const auto outcomes = Launch(ArrayOf({SpecOf("echo a"), SpecOf("echo b"), SpecOf("echo c")}));
  ASSERT_THAT(Submitted(), SizeIs(1));
  EXPECT_THAT(Submitted()[0], HasSubstr("--array=0-2 "));
  EXPECT_THAT(Submitted()[0], HasSubstr("--job-name=k7m2-1-1.array-"));
  EXPECT_THAT(Submitted()[0], Not(HasSubstr("singleton"))) << "its tasks would wait for each other";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(outcomes[i].kind, Kind::kLaunched);
    EXPECT_EQ(outcomes[i].external_id, fmt::format("17_{}", i));
    EXPECT_EQ(ReadWhole(RunPaths(runs_, fmt::format("k7m2-{}-1", i + 1)).specs() + "/command"),
              fmt::format("echo {}", "abc"[i]));
  }
}

TEST_F(ArraysTest, RunsOfDifferentJobsAreDifferentJobsOfSlurmsHoweverAlikeTheyAre) {
  const auto outcomes = Launch({SpecOf("true"), SpecOf("true")});
  ASSERT_THAT(Submitted(), SizeIs(2));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(outcomes[i].external_id, "17");
    EXPECT_THAT(Submitted()[i], HasSubstr(fmt::format("--job-name=k7m2-{}-1 ", i + 1)));
    EXPECT_THAT(Submitted()[i], Not(HasSubstr("--array")));
  }
}

TEST_F(ArraysTest, ATaskGoesAlongWithItsArrayAndOtherRunsWithAFewOfTheirKind) {
  const auto assignment = [](const v1::JobSpec& spec, uint64_t job) {
    agent::v1::Assignment made;
    made.set_job_id(job);
    *made.mutable_spec() = spec;
    return made;
  };
  const std::vector<v1::JobSpec> array = ArrayOf({SpecOf("true"), SpecOf("true")});
  const auto first = assignment(array[0], 7), second = assignment(array[1], 8);
  const auto other = assignment(array[0], 9), plain = assignment(SpecOf("true"), 10);
  EXPECT_TRUE(backend_->capabilities().goes_along(first, second, 99));
  EXPECT_FALSE(backend_->capabilities().goes_along(first, other, 1)) << "of another array";
  EXPECT_FALSE(backend_->capabilities().goes_along(first, plain, 1));
  EXPECT_FALSE(backend_->capabilities().goes_along(plain, first, 1));
  EXPECT_TRUE(backend_->capabilities().goes_along(plain, plain, 7));
  EXPECT_FALSE(backend_->capabilities().goes_along(plain, plain, 8))
      << "all would wait for its answer";
}

TEST_F(ArraysTest, BehindARunWhoseAnswerDoesNotComeNoOtherIsSubmitted) {
  SetSbatch(
      "echo 'sbatch: error: Batch job submission failed: Socket timed out on "
      "send/recv operation' >&2; exit 1");
  const auto outcomes = Launch({SpecOf("true"), SpecOf("true"), SpecOf("true")});
  EXPECT_THAT(Submitted(), SizeIs(1));
  EXPECT_EQ(outcomes[0].kind, Kind::kUnclear);
  for (int i : {1, 2}) EXPECT_EQ(outcomes[i].kind, Kind::kDeferred);
}

TEST_F(ArraysTest, TwoJobArraysAreTwoSubmissions) {
  std::vector<v1::JobSpec> specs = ArrayOf({SpecOf("true"), SpecOf("true")});
  for (const v1::JobSpec& spec : ArrayOf({SpecOf("true"), SpecOf("true"), SpecOf("true")}))
    specs.push_back(spec);
  Launch(specs);
  ASSERT_THAT(Submitted(), SizeIs(2));
  EXPECT_THAT(Submitted()[0], HasSubstr("--array=0-1 "));
  EXPECT_THAT(Submitted()[1], HasSubstr("--array=0-2 "));
}

TEST_F(ArraysTest, ATaskThatAsksForSomethingElseIsAJobOfItsOwn) {
  const auto outcomes = Launch(ArrayOf({SpecOf("true"), SpecOf("true", 2), SpecOf("true")}));
  EXPECT_EQ(outcomes[0].external_id, "17_0");
  EXPECT_EQ(outcomes[1].external_id, "17");
  EXPECT_EQ(outcomes[2].external_id, "17_2");
  EXPECT_THAT(Submitted()[1], HasSubstr("--job-name=k7m2-2-1 "));
}

TEST_F(ArraysTest, TheClusterSaysHowManyTasksAnArrayMayHave) {
  SetConfig(3);
  Restart();
  Launch(ArrayOf(std::vector<v1::JobSpec>(7, SpecOf("true"))));
  ASSERT_THAT(Submitted(), SizeIs(3));
  EXPECT_THAT(Submitted()[0], HasSubstr("--array=0-2 "));
  EXPECT_THAT(Submitted()[2], Not(HasSubstr("--array")));
  SetConfig(0);
  Restart();
  Launch(ArrayOf({SpecOf("true"), SpecOf("true")}));
  EXPECT_THAT(Submitted(), SizeIs(5)) << "a cluster without arrays";
}

TEST_F(ArraysTest, ARefusalIsEachRunsOwn) {
  SetSbatch(
      "echo 'sbatch: error: Batch job submission failed: Invalid qos "
      "specification' >&2; exit 1");
  for (const agents::LaunchOutcome& outcome : Launch(ArrayOf({SpecOf("true"), SpecOf("true")}))) {
    EXPECT_EQ(outcome.kind, Kind::kRefused);
    EXPECT_THAT(outcome.failure.message(), HasSubstr("Invalid qos specification"));
  }
}

TEST_F(ArraysTest, WhereAnArrayIsTooLargeAsManyRunsAsMayGoIn) {
  SetSbatch(R"sh(case "$*" in
*--array=*) echo 'sbatch: error: Batch job submission failed: Invalid job array specification' >&2; exit 1
esac
echo 17)sh");
  for (const agents::LaunchOutcome& outcome :
       Launch(ArrayOf({SpecOf("true"), SpecOf("true"), SpecOf("true")}))) {
    EXPECT_EQ(outcome.kind, Kind::kLaunched) << outcome.evidence.DebugString();
  }
  EXPECT_THAT(Submitted(), SizeIs(5)) << "all three, then one, then two, then one and one";
}

// Slurm, where `room` more jobs may be submitted.
TEST_F(ArraysTest, OfAFullSubmitLimitAsManyAsHaveRoomGoInAndTheOthersAreNotTriedOneByOne) {
  const auto set_room = [this](int room) {
    std::ofstream(root_ + "/room") << room << std::flush;
    SetSbatch(fmt::format(R"sh(tasks=1
for word; do
  case $word in --array=*) ids=${{word#--array=}} tasks=$((${{ids#*-}} - ${{ids%-*}} + 1)) ;; esac
done
room=$(cat {0}/room)
if [ $tasks -gt $room ]; then
  echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2
  echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (x)' >&2
  exit 1
fi
echo $((room - tasks)) >{0}/room
echo 17)sh",
                          root_));
  };
  const auto launch = [this] {
    size_t launched = 0;
    for (const agents::LaunchOutcome& outcome :
         Launch(ArrayOf(std::vector<v1::JobSpec>(100, SpecOf("true"))))) {
      if (outcome.kind == Kind::kLaunched) ++launched;
      if (outcome.kind == Kind::kLaunched) continue;
      EXPECT_EQ(outcome.kind, Kind::kRefused);
      EXPECT_TRUE(outcome.failure.retriable()) << outcome.failure.DebugString();
      EXPECT_THAT(outcome.failure.message(), HasSubstr("QOSMaxSubmitJobPerUserLimit"));
    }
    return launched;
  };
  set_room(0);
  EXPECT_EQ(launch(), 0u);
  EXPECT_THAT(Submitted(), SizeIs(7)) << "100, 50, 25, 12, 6, 3 and 1";
  set_room(37);
  EXPECT_EQ(launch(), 37u);
  EXPECT_LE(Submitted().size(), 7u + 14u);
}

TEST_F(ArraysTest, AnAnswerThatWasLostLeavesEachRunInDoubtUntilItsArrayIsFound) {
  SetSbatch(
      "echo 'sbatch: error: Batch job submission failed: Socket timed out on "
      "send/recv operation' >&2; exit 1");
  for (const agents::LaunchOutcome& outcome : Launch(ArrayOf({SpecOf("true"), SpecOf("true")})))
    EXPECT_EQ(outcome.kind, Kind::kUnclear);
  ASSERT_THAT(FilesOfArrays(), SizeIs(2)) << "the list, and a directory for outputs";
  Restart();
  EXPECT_EQ(backend_->Lookup(Handle(2)).kind, Found::kAbsent);
  const std::string name = NameOfArray();
  // The second run's task is not told any more: it was canceled while it waited.
  AddCommand("squeue", fmt::format("printf '23\\0370\\037{}\\037PENDING\\037None\\037\\0371\\037N/A"
                                   "\\037N/A\\0370\\037p\\037a\\037q\\n'",
                                   name));
  Restart();
  EXPECT_EQ(backend_->Lookup(Handle(1)).external_id, "23_0");
  EXPECT_EQ(backend_->Lookup(Handle(2)).external_id, "23_1");
}

TEST_F(ArraysTest, WithTheLastRunsOfAnArrayItsFilesGoAlsoAfterARestart) {
  Launch(ArrayOf({SpecOf("true"), SpecOf("true"), SpecOf("true")}));
  EXPECT_TRUE(ForgetOne(*backend_, Handle(1)).ok());
  Restart();
  EXPECT_TRUE(ForgetOne(*backend_, Handle(3)).ok());
  EXPECT_THAT(FilesOfArrays(), SizeIs(2)) << "the second run still needs it";
  EXPECT_TRUE(ForgetOne(*backend_, Handle(2)).ok());
  EXPECT_THAT(FilesOfArrays(), IsEmpty());
}

TEST_F(ArraysTest, PlacesAreThoseOfAllSubmissionsARunWasPartOf) {
  hosts::LocalHost host;
  Arrays arrays(runs_, &host);
  ASSERT_TRUE(arrays.Load().ok());
  const auto first = arrays.Add({"k7m2-1-1", "k7m2-2-1"}, {0, 7});
  const auto second = arrays.Add({"k7m2-2-1", "k7m2-3-1"}, {3, 4});
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  Arrays read(runs_, &host);
  ASSERT_TRUE(read.Load().ok());
  for (const Arrays* one : {&arrays, &read}) {
    EXPECT_THAT(one->PlacesOf("k7m2-2-1"),
                testing::UnorderedElementsAre(ArrayPlace{*first, 7}, ArrayPlace{*second, 3}));
    EXPECT_EQ(one->RunAt(*first, 0), "k7m2-1-1");
    EXPECT_EQ(one->RunAt(*first, 1), std::nullopt);
    EXPECT_EQ(one->RunAt(*first, 8), std::nullopt);
    EXPECT_EQ(one->RunAt("k7m2-1-1", 0), std::nullopt);
  }
}

// An agent of an earlier release has submitted it.
TEST_F(ArraysTest, AListWithoutIdsCountsItsTasksFromZero) {
  hosts::LocalHost host;
  Arrays arrays(runs_, &host);
  std::filesystem::create_directories(runs_ + "/arrays");
  std::ofstream(runs_ + "/arrays/k7m2-1-1.array-0a") << "k7m2-1-1\nk7m2-2-1\n";
  ASSERT_TRUE(arrays.Load().ok());
  EXPECT_EQ(arrays.RunAt("k7m2-1-1.array-0a", 1), "k7m2-2-1");
  EXPECT_THAT(arrays.PlacesOf("k7m2-1-1"),
              testing::ElementsAre(ArrayPlace{"k7m2-1-1.array-0a", 0}));
}

// Makes them the tasks of one array with these ids, of which so many may run at the same time.
std::vector<v1::JobSpec> ArrayWith(const std::vector<uint32_t>& ids, uint32_t limit) {
  std::vector<v1::JobSpec> specs(ids.size(), SpecOf("true"));
  for (uint32_t i = 0; i < ids.size(); ++i) {
    specs[i].mutable_slurm()->mutable_batch_script();
    contract::SetArrayTask({.id = ids[i],
                            .count = static_cast<uint32_t>(ids.size()),
                            .min_id = ids.front(),
                            .max_id = ids.back(),
                            .place = i,
                            .limit = limit},
                           &specs[i]);
  }
  return specs;
}

TEST_F(ArraysTest, SlurmsTasksHaveTheUsersIdsAndLimit) {
  const auto outcomes = Launch(ArrayWith({1, 3, 5, 1000}, 2));
  ASSERT_THAT(Submitted(), SizeIs(1));
  EXPECT_THAT(Submitted()[0], HasSubstr("--array=1,3,5,1000%2 "));
  EXPECT_EQ(outcomes[3].external_id, "17_1000");
  EXPECT_EQ(backend_->Lookup(Handle(4)).kind, Found::kAbsent);
  Launch(ArrayWith({4, 1001}, 0));
  EXPECT_THAT(Submitted().back(), HasSubstr("--array=0-1 ")) << "MaxArraySize is 1001";
}

TEST_F(ArraysTest, AnIdThatIsRefusedIsTriedOnceMoreWithIdsThatCountFromZero) {
  SetSbatch(R"sh(case "$*" in
*--array=9*) echo 'sbatch: error: Batch job submission failed: Invalid job array specification' >&2; exit 1
esac
echo 17)sh");
  EXPECT_EQ(Launch(ArrayWith({9, 10, 11}, 0))[2].external_id, "17_2");
  EXPECT_THAT(Submitted(), SizeIs(2));
}

TEST_F(ArraysTest, TasksThatCameLateAwaitTheOthersWhereTheArrayHasALimit) {
  const std::vector<v1::JobSpec> specs = ArrayWith({1, 2, 3}, 2);
  EXPECT_EQ(Launch({specs[0], specs[1]})[1].kind, Kind::kLaunched);
  const auto late = Launch({specs[2]});
  EXPECT_EQ(late[0].kind, Kind::kDeferred);
  EXPECT_THAT(late[0].evidence.detail(), HasSubstr("has others of them already (job 17_1)"));
  EXPECT_THAT(Submitted(), SizeIs(1));
  for (const int job : {1, 2}) EXPECT_TRUE(ForgetOne(*backend_, Handle(job)).ok());
  last_job_ = 2;
  EXPECT_EQ(Launch({specs[2]})[0].kind, Kind::kLaunched);
}

TEST_F(ArraysTest, AnIdThatTheClusterDoesNotHaveCannotWaitForTheSameTask) {
  std::vector<v1::JobSpec> specs = ArrayWith({1, 1001}, 0);
  for (v1::JobSpec& spec : specs) spec.mutable_slurm()->set_dependency("aftercorr:5");
  for (const agents::LaunchOutcome& outcome : Launch(specs)) {
    EXPECT_EQ(outcome.kind, Kind::kRefused);
    EXPECT_THAT(outcome.failure.message(), HasSubstr("ids of 0 to 1000 (MaxArraySize), not 1001"));
  }
  EXPECT_THAT(Submitted(), IsEmpty());
}

// squeue has forgotten the array while nobody looked. sacct answers as of Slurm 24.11, whose line
// about the tasks that it did not tell apart has those that were started since, too.
TEST_F(ArraysTest, ALateLookFindsTheTasksOfARestThatWasCanceled) {
  const auto outcomes = Launch(ArrayWith({5, 7, 9, 11}, 4));
  const std::string name = NameOfArray();
  AddCommand("squeue", "");
  AddCommand("sacct",
             fmt::format("printf '17_5\\03718\\037{0}\\037FAILED\\0371:0\\037n1\\0371\\0372\\037p"
                         "\\037a\\037q\\n17_[5-11:2%%4]\\03717\\037{0}\\037CANCELLED by 1001"
                         "\\0370:0\\037None assigned\\037None\\0372\\037p\\037a\\037q\\n'",
                         name));
  Restart();
  std::vector<agents::RunHandle> handles;
  for (int i = 0; i < 4; ++i) handles.push_back(Handle(i + 1, outcomes[i].external_id));
  std::vector<agents::Observation> seen = backend_->Observe(handles).observations;
  ASSERT_THAT(seen, SizeIs(4));
  EXPECT_EQ(seen[0].state, v1::RUN_STATE_FAILED) << "its own line counts";
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(seen[i].state, v1::RUN_STATE_CANCELED) << seen[i].evidence.DebugString();
    EXPECT_THAT(seen[i].evidence.detail(), HasSubstr("CANCELLED by 1001"));
  }
}

// As after `scancel 17_1 17_2 17_3`, where none has run.
TEST_F(ArraysTest, AnArrayAllOfWhoseTasksWereCanceledOneByOneIsKnownByItsNumber) {
  const auto outcomes = Launch(ArrayWith({1, 2, 3}, 0));
  const std::string name = NameOfArray();
  AddCommand("squeue",
             fmt::format("printf '17\\037N/A\\037{}\\037CANCELLED\\037None\\037\\0371\\037N/A"
                         "\\0372\\0370\\037p\\037a\\037q\\n'",
                         name));
  SlurmConfig config = Config();
  config.absence_grace = absl::ZeroDuration();
  backend_ = CreateSlurmBackend(config, root_);
  ASSERT_TRUE(backend_->Probe().ok());
  const auto seen = backend_->Observe({Handle(1, outcomes[0].external_id)}).observations;
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].state, v1::RUN_STATE_CANCELED) << seen[0].evidence.DebugString();
  EXPECT_THAT(seen[0].evidence.detail(), HasSubstr("not by Muster"));
}

}  // namespace
}  // namespace muster::slurm
