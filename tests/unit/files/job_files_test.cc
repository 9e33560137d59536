#include "broker/files/job_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "muster/v1/file_tree.pb.h"
#include "muster/v1/job_spec.pb.h"
#include "tests/unit/files/files_fixture.h"

namespace muster::files {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the bytes of a tree with these files, named f0, f1 and so on.
std::string TreeOf(const std::vector<std::string>& contents) {
  v1::FileTree tree;
  for (size_t i = 0; i < contents.size(); ++i) {
    v1::FileTreeEntry& entry = *tree.add_entries();
    entry.set_path("f" + std::to_string(i));
    entry.set_kind(v1::FILE_KIND_FILE);
    entry.set_size_bytes(contents[i].size());
    entry.set_sha256(Sha256Of(contents[i]));
    tree.set_total_bytes(tree.total_bytes() + contents[i].size());
  }
  return tree.SerializeAsString();
}

v1::JobSpec SpecOf(const std::vector<std::string>& trees) {
  v1::JobSpec spec;
  for (const std::string& tree : trees) spec.add_uploads()->set_tree_sha256(Sha256Of(tree));
  return spec;
}

class JobFilesTest : public FilesTest {
 protected:
  JobFilesTest() { options_.max_job_bytes = 1000; }
  void SetUp() override {
    Open();
    job_files_.emplace(store_.get());
  }
  absl::Status Check(const std::vector<std::string>& trees) {
    return job_files_->Check(SpecOf(trees), "spec.", Viewer::All("alice"));
  }
  std::string BadField(const std::vector<std::string>& trees) {
    const auto bad = contract::GetBadRequest(Check(trees));
    return bad ? bad->field_violations(0).field() : "";
  }

  std::optional<JobFiles> job_files_;
};

TEST_F(JobFilesTest, TheFileOfAShellsVariablesMustBeThere) {
  const auto check = [&](const std::string& content) {
    v1::JobSpec spec;
    spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(
        Sha256Of(content));
    return job_files_->Check(spec, "spec.", Viewer::All("alice"));
  };
  const absl::Status missing = check("A=1");
  EXPECT_EQ(Reason(missing), "FILES_MISSING");
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("spec.slurm.batch_script.environment.file_sha256: the file with"));
  Put({"A=1"});
  EXPECT_TRUE(check("A=1").ok());
  const std::string large(size_t{256 << 10} + 1, 'x');
  Put({large});
  EXPECT_THAT(std::string(check(large).message()), HasSubstr("and 262144 are the most"));
}

TEST_F(JobFilesTest, TheFileOfAShellsVariablesStaysWhileAnUnfinishedJobNamesIt) {
  Put({"A=1", "B=2"});
  now_ += options_.retention - absl::Hours(1);
  EXPECT_TRUE(job_files_->UseShell(Sha256Of("A=1")).ok());
  EXPECT_TRUE(job_files_->UseShell(Sha256Of("gone")).ok());
  now_ += absl::Hours(2);
  EXPECT_EQ(Expire(), 1);
  EXPECT_TRUE(Has("A=1"));
  EXPECT_FALSE(Has("B=2"));
}

TEST_F(JobFilesTest, AJobWhoseFilesAreAllThereIsAccepted) {
  Put({"a", "b", TreeOf({"a", "b"}), TreeOf({})});
  EXPECT_TRUE(Check({TreeOf({"a", "b"}), TreeOf({})}).ok());
  EXPECT_TRUE(Check({TreeOf({"a", "b"})}).ok());
  EXPECT_TRUE(Check({}).ok());
}

TEST_F(JobFilesTest, AMissingTreeIsNamed) {
  const absl::Status status = Check({TreeOf({"a"})});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(status), "FILES_MISSING");
  EXPECT_THAT(std::string(status.message()), HasSubstr("spec.uploads[0].tree_sha256"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(Sha256Of(TreeOf({"a"}))));
}

TEST_F(JobFilesTest, MissingFilesAreCountedAndTheFirstOnesNamed) {
  const std::vector<std::string> contents = {"a", "b", "c", "d", "e"};
  Put({"b", TreeOf({}), TreeOf(contents)});
  const absl::Status status = Check({TreeOf({}), TreeOf(contents)});
  EXPECT_EQ(Reason(status), "FILES_MISSING");
  EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("missing"), "4");
  EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("field"), "spec.uploads[1].tree_sha256");
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("\"f0\", \"f2\", \"f3\", ..."));
  EXPECT_THAT(message, Not(HasSubstr("f4")));
  EXPECT_THAT(message, HasSubstr("UploadFiles"));
  Put(contents);
  EXPECT_TRUE(Check({TreeOf(contents)}).ok());
}

TEST_F(JobFilesTest, AFileThatIsNoTreeOrAHostileOneIsRefused) {
  v1::FileTree tree;
  v1::FileTreeEntry& entry = *tree.add_entries();
  entry.set_path("../out");
  entry.set_kind(v1::FILE_KIND_DIRECTORY);
  const std::string hostile = tree.SerializeAsString();
  Put({"no tree", hostile, TreeOf({})});
  EXPECT_EQ(BadField({"no tree"}), "spec.uploads[0].tree_sha256");
  EXPECT_EQ(BadField({TreeOf({}), hostile}), "spec.uploads[1].tree_sha256");
  EXPECT_THAT(std::string(Check({hostile}).message()), HasSubstr(".."));
}

TEST_F(JobFilesTest, ATreeThatIsWrongAboutTheSizeOfAFileIsRefused) {
  v1::FileTree tree;
  tree.ParseFromString(TreeOf({"abc"}));
  tree.mutable_entries(0)->set_size_bytes(1);
  tree.set_total_bytes(1);
  Put({"abc", tree.SerializeAsString()});
  EXPECT_EQ(BadField({tree.SerializeAsString()}), "spec.uploads[0].tree_sha256");
}

TEST_F(JobFilesTest, MoreBytesThanAJobMayBringAreRefusedOverAllItsTrees) {
  const std::string half(501, 'x');
  Put({half, TreeOf({half})});
  EXPECT_TRUE(Check({TreeOf({half})}).ok());
  EXPECT_EQ(BadField({TreeOf({half}), TreeOf({half})}), "spec.uploads");
  EXPECT_THAT(std::string(Check({TreeOf({half}), TreeOf({half})}).message()),
              HasSubstr("files.max_job_bytes"));
}

TEST_F(JobFilesTest, FilesOfAJobThatIsCheckedCountAsUsed) {
  Put({"a", TreeOf({"a"}), "b"});
  now_ += options_.retention - absl::Hours(1);
  EXPECT_TRUE(Check({TreeOf({"a"})}).ok());
  now_ += absl::Hours(2);
  EXPECT_EQ(Expire(), 1);
  EXPECT_TRUE(Has("a"));
  EXPECT_FALSE(Has("b"));
}

TEST_F(JobFilesTest, FilesOfAnUnfinishedJobStayHoweverLongItTakes) {
  Put({"a", TreeOf({"a"})});
  for (int week = 0; week < 5; ++week) {
    now_ += absl::Hours(24 * 7);
    ASSERT_TRUE(job_files_->Use(Sha256Of(TreeOf({"a"}))).ok());
    ASSERT_TRUE(job_files_->Use(Sha256Of("never uploaded")).ok());
    EXPECT_EQ(Expire(), 0);
  }
  now_ += absl::Hours(24 * 8);
  EXPECT_EQ(Expire(), 2);
}

TEST_F(JobFilesTest, AFileThatWasDamagedIsMissingAtOnceAlthoughItsTreeWasSeenAMomentAgo) {
  Put({"a", TreeOf({"a"})});
  EXPECT_TRUE(Check({TreeOf({"a"})}).ok());
  std::ofstream(Kept("a")) << "b";
  EXPECT_FALSE(store_->ReadKept(Sha256Of("a"), Viewer::All("alice")).ok());
  EXPECT_EQ(Reason(Check({TreeOf({"a"})})), "FILES_MISSING");
}

TEST_F(JobFilesTest, AFileThatWentAfterATreeWasSeenIsMissing) {
  Put({"a", TreeOf({"a"})});
  EXPECT_TRUE(Check({TreeOf({"a"})}).ok());
  now_ += options_.retention + absl::Hours(1);
  EXPECT_EQ(Expire(), 2);
  EXPECT_EQ(Reason(Check({TreeOf({"a"})})), "FILES_MISSING");
}

TEST_F(JobFilesTest, ATreeBringsNoFileThatOnlyOthersHave) {
  Put({"theirs"});
  const Viewer bob = Viewer::Of("bob", {});
  Upload upload(store_.get(), bob);
  const std::string tree = TreeOf({"mine", "theirs"});
  for (const std::string& content : {std::string("mine"), tree})
    ASSERT_TRUE(Send(&upload, content).ok());
  ASSERT_TRUE(upload.Finish().ok());
  // Another viewer's look at the same tree is not taken for this one's.
  EXPECT_TRUE(Check({tree}).ok());
  const absl::Status missing = job_files_->Check(SpecOf({tree}), "spec.", bob);
  EXPECT_EQ(Reason(missing), "FILES_MISSING");
  EXPECT_THAT(std::string(missing.message()), HasSubstr("1 of the files"));
  // The size that a tree gives to such a file is not compared with it.
  v1::FileTree lie;
  ASSERT_TRUE(lie.ParseFromString(tree));
  lie.mutable_entries(1)->set_size_bytes(7);
  lie.set_total_bytes(lie.total_bytes() + 1);
  Upload second(store_.get(), bob);
  ASSERT_TRUE(Send(&second, lie.SerializeAsString()).ok());
  ASSERT_TRUE(second.Finish().ok());
  EXPECT_EQ(Reason(job_files_->Check(SpecOf({lie.SerializeAsString()}), "spec.", bob)),
            "FILES_MISSING");
}

TEST_F(JobFilesTest, TheFilesOfAJobAreThoseOfItsProject) {
  const std::string tree = TreeOf({"a", "b"});
  Put({"a", "b", "A=1", tree});
  v1::JobSpec spec = SpecOf({tree});
  spec.set_project("vision");
  spec.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(
      Sha256Of("A=1"));
  const Viewer member = Viewer::Of("bob", {"vision"}), stranger = Viewer::Of("eve", {"speech"});
  EXPECT_EQ(Reason(job_files_->Check(spec, "spec.", member)), "FILES_MISSING");
  EXPECT_EQ(job_files_->ArchiveBytes(spec, member), 0u);
  ASSERT_TRUE(job_files_->Share(spec, "spec.").ok());
  EXPECT_TRUE(job_files_->Check(spec, "spec.", member).ok());
  EXPECT_GT(job_files_->ArchiveBytes(spec, member), 0u);
  EXPECT_EQ(Reason(job_files_->Check(spec, "spec.", stranger)), "FILES_MISSING");
}

TEST_F(JobFilesTest, FilesThatAreLostBeforeTheyAreSharedAreMissing) {
  const std::string tree = TreeOf({"a"});
  Put({"a", "A=1", tree});
  const Viewer bob = Viewer::All("bob");
  const v1::JobSpec with_tree = SpecOf({tree});
  v1::JobSpec with_shell;
  with_shell.mutable_slurm()->mutable_batch_script()->mutable_environment()->set_file_sha256(
      Sha256Of("A=1"));
  EXPECT_TRUE(job_files_->Check(with_tree, "spec.", bob).ok());
  EXPECT_TRUE(job_files_->Check(with_shell, "spec.", bob).ok());
  std::filesystem::remove(Kept(tree));
  std::filesystem::remove(Kept("A=1"));
  const absl::Status status = job_files_->Share(with_tree, "spec.");
  EXPECT_EQ(Reason(status), "FILES_MISSING");
  EXPECT_THAT(std::string(status.message()), HasSubstr("spec.uploads[0].tree_sha256"));
  EXPECT_EQ(Reason(job_files_->Share(with_shell, "spec.")), "FILES_MISSING");
}

}  // namespace
}  // namespace muster::files
