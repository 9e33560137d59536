// Jobs that bring files along, by the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>

#include "clients/cpp/job_file_result.h"
#include "tests/unit/clients/upload_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(UploadTest, AWorkdirOfThisMachineIsUploadedOnceAndNamedByTheJob) {
  Write("project/train.py", "1");
  Write("project/.musterignore", "*.bin\n");
  Write("project/model.bin", "22");
  const std::string file = WriteFile("run: x\nworkdir: ~/project\n");
  const Outcome first = RunAtHome({"submit", file});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, "42\n");
  EXPECT_THAT(first.err, HasSubstr("muster: uploaded 2 files of "));
  EXPECT_EQ(TreeOf(0), ".musterignore=*.bin\n train.py=1 ");
  EXPECT_EQ(submitted_.back().spec().working_directory(), "");
  ASSERT_EQ(submitted_.size(), 2u) << "it is checked before anything is sent";
  EXPECT_TRUE(submitted_.front().validate_only());

  const Outcome second = RunAtHome({"submit", file});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(uploads_, 1);
  EXPECT_EQ(submitted_.size(), 3u);
}

TEST_F(UploadTest, FilesGoToTheirPlacesUnderTheirNewNames) {
  Write("data/a", "1");
  Write("conf.json", "{}");
  const std::string file = WriteFile(
      "run: x\ntime: 1h\nfile_mounts:\n  ./in/data: ~/data\n  etc/c.json: ~/conf.json\n"
      "  top.json: ~/conf.json\n");
  const Outcome outcome = RunAtHome({"submit", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(TreeOf(0), "in/data: a=1 ");
  EXPECT_EQ(TreeOf(1), "etc: c.json={} ");
  EXPECT_EQ(TreeOf(2), "top.json={} ");
}

TEST_F(UploadTest, TheFlagWinsOverTheFileAndAnAbsolutePathIsTheClusters) {
  Write("one/a", "1");
  Write("two/b", "2");
  const std::string file = WriteFile("run: x\ntime: 1h\nworkdir: ~/one\n");
  EXPECT_EQ(RunAtHome({"submit", "--workdir", "~/two", file}).code, 0);
  EXPECT_EQ(TreeOf(0), "b=2 ");
  EXPECT_EQ(submitted_.back().spec().uploads_size(), 1);
  EXPECT_EQ(RunAtHome({"submit", "--workdir", "/data", file}).code, 0);
  EXPECT_EQ(submitted_.back().spec().uploads_size(), 0);
  EXPECT_EQ(submitted_.back().spec().working_directory(), "/data");
  EXPECT_EQ(RunAtHome({"run", "--workdir", "~/one", "--", "ls"}).code, 0);
  EXPECT_EQ(TreeOf(0), "a=1 ");
}

TEST_F(UploadTest, OfASkyPilotTaskEveryWorkdirIsThisMachines) {
  Write("project/train.py", "1");
  const std::string path = (directory_ / "project").string();
  const std::string file = WriteFile("num_nodes: 1\nrun: x\nworkdir: " + path + "\n");
  EXPECT_EQ(RunAtHome({"submit", file}).code, 0);
  EXPECT_EQ(TreeOf(0), "train.py=1 ");
  EXPECT_EQ(RunAtHome({"sky", "exec", "box", "-d", file}).code, 0);
  EXPECT_EQ(TreeOf(0), "train.py=1 ");
  EXPECT_EQ(RunAtHome({"sky", "exec", "box", "-d", "--workdir", path, "ls"}).code, 0);
  EXPECT_EQ(TreeOf(0), "train.py=1 ");
  const Outcome outcome =
      RunAtHome({"submit", WriteFile("num_nodes: 1\nrun: x\nworkdir: /no/such\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:3:10: cannot read /no/such"));
  EXPECT_THAT(outcome.err, HasSubstr("on this machine, as SkyPilot does"));
  EXPECT_THAT(outcome.err, HasSubstr("muster submit --workdir"));
}

TEST_F(UploadTest, ADirectoryOfFileMountsIsWholeWhateverItsRepositoryLeavesOut) {
  Write("repo/.git/config", "");
  Write("repo/.gitignore", "data/*\n*.ckpt\n");
  Write("repo/data/a.ckpt", "1");
  Write("repo/data/b.txt", "2");
  for (const std::string first : {"run: x", "num_nodes: 1\nrun: x"}) {
    const std::string file =
        WriteFile(first + "\nworkdir: ~/repo/data\nfile_mounts: {d: ~/repo/data}\n");
    EXPECT_EQ(RunAtHome({"submit", file}).code, 0);
    EXPECT_EQ(TreeOf(0), "") << "of a working directory they stay behind";
    EXPECT_EQ(TreeOf(1), "d: a.ckpt=1 b.txt=2 ");
  }
}

TEST_F(UploadTest, WhatSkyignoreNamesStaysBehindOfWorkdirAndFileMounts) {
  for (const std::string directory : {"project", "data"}) {
    Write(directory + "/.skyignore", ".env\n");
    Write(directory + "/.env", "TOKEN=1");
    Write(directory + "/a", "1");
  }
  const std::string path = (directory_ / "project").string();
  const std::string file =
      WriteFile("num_nodes: 1\nrun: x\nworkdir: " + path + "\nfile_mounts: {d: ~/data}\n");
  EXPECT_EQ(RunAtHome({"submit", file}).code, 0);
  EXPECT_EQ(TreeOf(0), ".skyignore=.env\n a=1 ");
  EXPECT_EQ(TreeOf(1), "d: .skyignore=.env\n a=1 ");
  EXPECT_EQ(RunAtHome({"sky", "exec", "box", "-d", "--workdir", path, "ls"}).code, 0);
  EXPECT_EQ(TreeOf(0), ".skyignore=.env\n a=1 ");
}

TEST_F(UploadTest, PlanAndValidateTellWhatWouldBeUploadedAndUploadTheListAlone) {
  Write("project/train.py", "12345");
  Write("project/other.py", "123");
  broker_.plan_job =
      [this](const v1::PlanJobRequest& request) -> absl::StatusOr<v1::PlanJobResponse> {
    EXPECT_NE(request.spec().uploads(0).tree_sha256(), client::kUnreadTree);
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(kept_.contains(request.spec().uploads(0).tree_sha256())) << "clusters ask for it";
    v1::PlanJobResponse response;
    response.add_plans()->set_cluster("box");
    return response;
  };
  const std::string file = WriteFile("run: x\nworkdir: ~/project\n");
  EXPECT_THAT(RunAtHome({"plan", file}).err,
              HasSubstr("it brings along 2 files of 8B; the broker lacks 2 files of 8B; "
                        "no file was uploaded"));
  EXPECT_THAT(RunAtHome({"submit", "--validate", file}).err,
              HasSubstr("it brings along 2 files of 8B"));
  EXPECT_EQ(uploads_, 0);
  EXPECT_EQ(RunAtHome({"submit", file}).code, 0);
  EXPECT_THAT(RunAtHome({"plan", file}).err, HasSubstr("the broker lacks none of them"));
  EXPECT_EQ(uploads_, 1);
}

TEST_F(UploadTest, WhatIsTooLargeIsRefusedWithTheLargestFilesAndTheRemedy) {
  max_job_bytes_ = 100;
  Write("project/large", std::string(90, 'x'));
  Write("project/small", std::string(11, 'y'));
  const Outcome whole = RunAtHome({"submit", WriteFile("run: x\nworkdir: ~/project\n")});
  EXPECT_EQ(whole.code, 1);
  EXPECT_THAT(whole.err, HasSubstr("job.yaml:2:10: "));
  EXPECT_THAT(whole.err, HasSubstr("101 bytes"));
  EXPECT_THAT(whole.err, HasSubstr("\"large\" (90)"));
  EXPECT_THAT(whole.err, HasSubstr(".musterignore"));
  // Each alone is small enough.
  const Outcome together =
      RunAtHome({"submit", WriteFile("run: x\ntime: 1h\nfile_mounts:\n  a: "
                                     "~/project/large\n  b: ~/project/small")});
  EXPECT_THAT(together.err, HasSubstr("job.yaml:5:6: with "));
  EXPECT_THAT(together.err, HasSubstr("brings along 101 bytes"));
  EXPECT_THAT(submitted_, IsEmpty());
  EXPECT_EQ(uploads_, 0);
}

TEST_F(UploadTest, AJobThatNoClusterTakesUploadsNothing) {
  Write("project/a", "1");
  broker_.submit_job = [](const v1::SubmitJobRequest&) -> absl::StatusOr<v1::SubmitJobResponse> {
    return contract::Error(absl::StatusCode::kFailedPrecondition, "CANNOT_BE_PLACED", "no cluster");
  };
  const Outcome outcome = RunAtHome({"run", "--workdir", "~/project", "--", "x"});
  EXPECT_EQ(outcome.code, 13);
  EXPECT_EQ(uploads_, 0);
  EXPECT_EQ(kept_.size(), 1u) << "the list, by which clusters judge the job";
}

TEST_F(UploadTest, FilesThatWentBetweenUploadAndSubmitAreUploadedAgain) {
  Write("project/a", "1");
  std::atomic<int> expired = 0;
  const auto accept = broker_.submit_job;
  broker_.submit_job =
      [&](const v1::SubmitJobRequest& request) -> absl::StatusOr<v1::SubmitJobResponse> {
    if (!request.validate_only() && expired++ == 0) {
      const std::lock_guard lock(mutex_);
      kept_.clear();
      return contract::Error(absl::StatusCode::kFailedPrecondition, "FILES_MISSING", "gone");
    }
    return accept(request);
  };
  const Outcome outcome = RunAtHome({"run", "--workdir", "~/project", "--", "x"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(uploads_, 2);
  EXPECT_EQ(TreeOf(0), "a=1 ");
}

TEST_F(UploadTest, ABrokerThatIsAwayForAMomentGetsTheRest) {
  Write("project/a", "1");
  upload_error_ = absl::UnavailableError("restarting");
  EXPECT_EQ(RunAtHome({"run", "--workdir", "~/project", "--", "x"}).code, 0);
  EXPECT_EQ(uploads_, 2);
}

TEST_F(UploadTest, AFileThatChangesWhileItIsReadIsReadAnew) {
  Write("project/a", "1");
  upload_error_ = contract::Error(absl::StatusCode::kInvalidArgument, "WRONG_DIGEST", "changed",
                                  {{"sha256", Sha256Of("1")}});
  EXPECT_EQ(RunAtHome({"run", "--workdir", "~/project", "--", "x"}).code, 0);
  EXPECT_EQ(uploads_, 2);
  EXPECT_EQ(TreeOf(0), "a=1 ");
}

TEST_F(UploadTest, AFileThatNeverRestsIsNamed) {
  Write("project/a", "1");
  broker_.upload_files = [this](const auto& read) -> absl::StatusOr<v1::UploadFilesResponse> {
    v1::UploadFilesRequest request;
    bool brings_it = false;
    while (read(&request)) brings_it = brings_it || request.head().sha256() == Sha256Of("1");
    if (!brings_it) return v1::UploadFilesResponse();
    ++uploads_;
    return contract::Error(absl::StatusCode::kInvalidArgument, "WRONG_SIZE", "changed",
                           {{"sha256", Sha256Of("1")}});
  };
  const Outcome outcome = RunAtHome({"run", "--workdir", "~/project", "--", "x"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("project/a has changed while it was read, 3 times"));
  EXPECT_EQ(uploads_, 3);
}

TEST_F(UploadTest, AnInterruptInAnUploadSubmitsNothing) {
  Write("project/a", std::string(1 << 20, 'x'));
  const auto begun = std::make_shared<std::atomic<bool>>(false);
  broker_.upload_files = [this,
                          begun](const auto& read) -> absl::StatusOr<v1::UploadFilesResponse> {
    v1::UploadFilesRequest request;
    read(&request);
    *begun = true;
    begun->notify_all();
    stop_.wait(false);
    while (read(&request)) {
    }
    return absl::CancelledError("gone");
  };
  Command command(broker_.address(), {"run", "--wait", "--workdir", "~/project", "--", "x"},
                  /*on_terminal=*/false, {"HOME=" + directory_.string()});
  begun->wait(false);
  command.Signal(SIGINT);
  const Outcome outcome = command.Finish();
  stop_ = true;
  stop_.notify_all();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.err, HasSubstr("nothing was submitted"));
  for (const auto& request : submitted_) EXPECT_TRUE(request.validate_only());
}

TEST_F(UploadTest, AllThatCannotBeBroughtAlongIsToldAtOnce) {
  Write("there", "1");
  const std::string file =
      WriteFile("run: x\nfile_mounts:\n  a: no/such\n  b: ~/there\n  c: neither\n");
  const Outcome outcome = RunAtHome({"submit", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:3:6: cannot read no/such"));
  EXPECT_THAT(outcome.err, HasSubstr("job.yaml:5:6: cannot read neither"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("there:")));
  EXPECT_THAT(submitted_, IsEmpty());
}

TEST_F(UploadTest, AWorkdirThatIsNoneIsRefusedAtItsPlace) {
  Write("file", "1");
  EXPECT_THAT(RunAtHome({"run", "--workdir", "~/file", "--", "x"}).err,
              HasSubstr("muster: --workdir: "));
  EXPECT_THAT(RunAtHome({"run", "--workdir", "~/file", "--", "x"}).err,
              HasSubstr("is a file; a working directory is a directory"));
  const Outcome missing = RunAtHome({"run", "--workdir", "no/such", "--", "x"});
  EXPECT_THAT(missing.err, HasSubstr("--workdir: cannot read no/such"));
  EXPECT_THAT(missing.err, HasSubstr("of this machine"));
  EXPECT_THAT(missing.err, Not(HasSubstr("SkyPilot")));
  EXPECT_THAT(submitted_, IsEmpty());
}

}  // namespace
}  // namespace muster::cli
