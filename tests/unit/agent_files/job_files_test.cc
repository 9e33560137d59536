#include "agents/files/job_files.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include "agents/files/lay_out.h"
#include "contract/errors.h"
#include "tests/unit/agent_files/files_fixture.h"

namespace muster::uploads {
namespace {

using testing::HasSubstr;

class JobFilesTest : public FilesTest {
 protected:
  void Bring(const v1::FileTree& tree, const std::string& path = "") {
    uploads::Bring(&source_, tree, path, &spec_);
  }
  absl::StatusOr<LocalFiles> Fetch() {
    return JobFiles(cache_.get()).Fetch(spec_, absl::Seconds(30));
  }
  absl::Status FetchAndLayOut() {
    const absl::StatusOr<LocalFiles> files = Fetch();
    if (!files.ok()) return files.status();
    return LayOut(*files, cache_.get(), work_, kStillWanted);
  }
  v1::FileTreeEntry Sent(const std::string& path, const std::string& content, bool exec = false) {
    source_.Add(content);
    return File(path, content, exec);
  }
  uint32_t ModeOfFile(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat((work_ + "/" + path).c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }

  const std::string work_ = dir_ / "work";
  v1::JobSpec spec_;
};

TEST_F(JobFilesTest, ATreeIsLaidOutAsItIs) {
  v1::FileTreeEntry key = Sent("key", "secret");
  key.set_owner_only(true);
  Bring(Tree({Directory("empty"), key, Sent("run.sh", "#!/bin/sh\n", true), Sent("src/a.py", "a"),
              Link("src/b.py", "a.py"), Link("tool", "run.sh")}));
  ASSERT_TRUE(FetchAndLayOut().ok());
  EXPECT_EQ(Slurp(work_ + "/src/b.py"), "a");
  EXPECT_EQ(std::filesystem::read_symlink(work_ + "/src/b.py"), "a.py");
  EXPECT_TRUE(std::filesystem::is_directory(work_ + "/empty"));
  EXPECT_EQ(ModeOfFile("key"), 0600u);
  EXPECT_EQ(ModeOfFile("run.sh"), 0755u);
  EXPECT_EQ(ModeOfFile("src/a.py"), 0644u);
}

TEST_F(JobFilesTest, ASecondJobOfTheSameTreeFetchesNothing) {
  Bring(Tree({Sent("a", "1"), Sent("b", "2"), Sent("c", "2")}));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(source_.asked().size(), 3u);  // the tree and two contents
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(source_.asked().size(), 3u);
}

TEST_F(JobFilesTest, OfTwoUploadsWithTheSamePathTheLaterIsTaken) {
  Bring(Tree({Sent("data/a", "old"), Sent("data/b", "b")}));
  Bring(Tree({Sent("a", "new")}), "data");
  Bring(Tree({}), "made/for/nothing");
  ASSERT_TRUE(FetchAndLayOut().ok());
  EXPECT_EQ(Slurp(work_ + "/data/a"), "new");
  EXPECT_EQ(Slurp(work_ + "/data/b"), "b");
  EXPECT_TRUE(std::filesystem::is_directory(work_ + "/made/for/nothing"));
}

struct HostileTree {
  const char* name;
  v1::FileTree tree;
};

class HostileTreeTest : public JobFilesTest, public testing::WithParamInterface<HostileTree> {};

std::vector<HostileTree> HostileTrees() {
  v1::FileTreeEntry device = File("dev", "x");
  device.set_kind(static_cast<v1::FileKind>(9));
  return {{"Absolute", Tree({File("/etc/passwd", "x")})},
          {"DotDot", Tree({File("../x", "x")})},
          {"DotDotInside", Tree({File("a/../../x", "x")})},
          {"LinkOut", Tree({Link("a", "../../etc")})},
          {"LinkAbsolute", Tree({Link("a", "/etc")})},
          {"ThroughALink", Tree({Link("a", "b"), File("a/x", "x"), Directory("b")})},
          {"LinkThroughALink", Tree({Link("a", "b/.."), Link("b", "c"), Directory("c")})},
          {"Device", Tree({device})},
          {"Twice", Tree({File("a", "x"), File("a", "y")})},
          {"Nul", Tree({File(std::string("a\0b", 3), "x")})},
          {"BelowAFile", Tree({File("a", "x"), File("a/b", "x")})}};
}

TEST_P(HostileTreeTest, IsRefusedWhateverTheBrokerThinksOfIt) {
  source_.Add("x");
  source_.Add("y");
  Bring(GetParam().tree);
  const absl::Status status = FetchAndLayOut();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(contract::GetErrorInfo(status)->reason(), "HOSTILE_TREE");
  EXPECT_FALSE(std::filesystem::exists(work_));
  const agents::LaunchOutcome outcome = NotLaunched(status);
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_FALSE(outcome.failure.retriable());
}

INSTANTIATE_TEST_SUITE_P(All, HostileTreeTest, testing::ValuesIn(HostileTrees()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(JobFilesTest, TreesThatAreHarmlessAloneMayBeHostileTogether) {
  Bring(Tree({Link("d", "e"), Directory("e")}));
  Bring(Tree({Sent("x", "x")}), "d/sub");
  const absl::Status status = FetchAndLayOut();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("below a file or a link"));
}

TEST_F(JobFilesTest, AHostilePathOfAnUploadIsRefused) {
  for (const char* path : {"/etc", "../up", "a/../../b"}) {
    spec_.clear_uploads();
    Bring(Tree({Sent("x", "x")}), path);
    EXPECT_TRUE(absl::IsInvalidArgument(FetchAndLayOut())) << path;
  }
}

TEST_F(JobFilesTest, WhatIsNoTreeIsRefused) {
  spec_.add_uploads()->set_tree_sha256(source_.Add("\xff\xff no tree"));
  EXPECT_TRUE(absl::IsInvalidArgument(Fetch().status()));
}

TEST_F(JobFilesTest, FilesThatTheBrokerLacksAreTheJobsFault) {
  Bring(Tree({File("gone", "gone")}));
  const agents::LaunchOutcome outcome = NotLaunched(Fetch().status());
  EXPECT_EQ(outcome.kind, agents::LaunchOutcome::Kind::kRefused);
  EXPECT_EQ(outcome.failure.failure_class(), v1::FAILURE_CLASS_CONFIG);
  EXPECT_THAT(outcome.failure.remedy(), HasSubstr("Submit the job again"));
}

TEST_F(JobFilesTest, ABrokerThatIsAwayIsNoRefusal) {
  source_.SetAway(true);
  Bring(Tree({Sent("a", "a")}));
  const absl::Status status = JobFiles(cache_.get()).Fetch(spec_, absl::ZeroDuration()).status();
  EXPECT_EQ(NotLaunched(status).kind, agents::LaunchOutcome::Kind::kDeferred);
  EXPECT_GT(NotLaunched(status).retry_after, absl::ZeroDuration());
}

TEST_F(JobFilesTest, AFileThatWasDamagedOnDiskLeavesNothingLaidOut) {
  Bring(Tree({Sent("a", "a"), Sent("b", "b")}));
  const absl::StatusOr<LocalFiles> files = Fetch();
  ASSERT_TRUE(files.ok());
  Spill(KeptPath("b"), "B");
  EXPECT_TRUE(absl::IsUnavailable(LayOut(*files, cache_.get(), work_, kStillWanted)));
  EXPECT_FALSE(std::filesystem::exists(work_));
}

TEST_F(JobFilesTest, ADiskThatIsFullLeavesNothingLaidOut) {
  const std::string large(1 << 20, 'l');
  Bring(Tree({Sent("large", large)}));
  const absl::StatusOr<LocalFiles> files = Fetch();
  ASSERT_TRUE(files.ok());
  const std::string small_disk = dir_ / "disk";
  std::filesystem::create_directory(small_disk);
  ASSERT_EQ(mount("tmpfs", small_disk.c_str(), "tmpfs", 0, "nr_inodes=2"), 0) << "takes root";
  const absl::Status status = LayOut(*files, cache_.get(), small_disk + "/work", kStillWanted);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(small_disk + "/work/large"));
  EXPECT_TRUE(std::filesystem::is_empty(small_disk));
  EXPECT_EQ(NotLaunched(status).failure.failure_class(), v1::FAILURE_CLASS_INFRA);
  EXPECT_EQ(umount(small_disk.c_str()), 0);
}

}  // namespace
}  // namespace muster::uploads
