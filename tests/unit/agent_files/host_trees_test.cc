#include "agents/files/host_trees.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <functional>

#include "agents/files/tar_stream.h"
#include "agents/hosts/local_host.h"
#include "tests/unit/agent_files/files_fixture.h"

namespace muster::uploads {
namespace {

using testing::HasSubstr;

// This machine, which counts what it is asked, and fails as the test says.
class TestHost : public hosts::LocalHost {
 public:
  absl::StatusOr<hosts::CommandResult> Run(const hosts::Command& command) override {
    ++commands;
    sent_bytes += command.stdin_data.size();
    if (break_at > 0 && --break_at == 0) {
      // What has come of it by then is there.
      hosts::Command half = command;
      half.stdin_data.resize(half.stdin_data.size() / 2);
      (void)LocalHost::Run(half);
      return absl::UnavailableError("the connection broke");
    }
    return LocalHost::Run(command);
  }
  int commands = 0;
  uint64_t sent_bytes = 0;
  int break_at = 0;  // the how many-th command from now; 0: none
};

class HostTreesTest : public FilesTest {
 protected:
  v1::FileTreeEntry Sent(const std::string& path, const std::string& content, bool exec = false) {
    source_.Add(content);
    return File(path, content, exec);
  }
  LocalFiles Fetch(const v1::FileTree& tree) {
    v1::JobSpec spec;
    Bring(&source_, tree, "", &spec);
    absl::StatusOr<LocalFiles> files = JobFiles(cache_.get()).Fetch(spec);
    EXPECT_TRUE(files.ok()) << files.status();
    return *std::move(files);
  }
  HostTrees& Trees() {
    if (trees_ == nullptr)
      trees_ = std::make_unique<HostTrees>(&host_, dir_ / "host/files", cache_.get());
    return *trees_;
  }
  absl::Status LayOut(const LocalFiles& files, const std::string& run = "run",
                      absl::Duration patience = absl::Minutes(1)) {
    return Trees().LayOut(files, Work(run), absl::Now() + patience);
  }
  std::string Work(const std::string& run = "run") const {
    return dir_ / ("host/runs/" + run + "/work");
  }
  static uint32_t ModeAt(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  std::vector<std::string> NamesIn(const std::string& directory) {
    return host_.ListDirectory(dir_ / ("host/files/" + directory)).value();
  }

  TestHost host_;
  std::unique_ptr<HostTrees> trees_;
};

v1::FileTreeEntry OwnersAlone(v1::FileTreeEntry entry) {
  entry.set_owner_only(true);
  return entry;
}

TEST_F(HostTreesTest, ATreeIsThereAsItIs) {
  const std::string deep = std::string(90, 'd') + "/" + std::string(200, 'f');
  const LocalFiles files = Fetch(
      Tree({OwnersAlone(Sent(".ssh/key", "secret")), Link("a-link", deep), Sent(deep, "deep\n"),
            Directory("empty"), Sent("run me.sh", "#!/bin/sh\n", true), Sent("zero", "")}));
  ASSERT_TRUE(LayOut(files).ok());
  EXPECT_EQ(Slurp(Work() + "/a-link"), "deep\n");
  EXPECT_EQ(std::filesystem::read_symlink(Work() + "/a-link"), deep);
  EXPECT_EQ(Slurp(Work() + "/.ssh/key"), "secret");
  EXPECT_EQ(ModeAt(Work() + "/.ssh/key"), 0600u);
  EXPECT_EQ(ModeAt(Work() + "/run me.sh"), 0755u);
  EXPECT_EQ(ModeAt(Work() + "/zero"), 0644u);
  EXPECT_EQ(ModeAt(Work() + "/empty"), 0755u);
  EXPECT_EQ(ModeAt(dir_ / "host/runs"), 0700u);
  EXPECT_GT(std::filesystem::last_write_time(Work() + "/zero"),
            std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(std::filesystem::last_write_time(Work() + "/zero"),
            std::filesystem::last_write_time(dir_ / "host/runs/run/brought"));
}

TEST_F(HostTreesTest, ASecondRunIsACopyOnTheHost) {
  const LocalFiles files = Fetch(Tree({Sent("a", "1")}));
  ASSERT_TRUE(LayOut(files, "first").ok());
  Spill(Work("first") + "/a", "changed");
  const uint64_t sent = host_.sent_bytes;
  const int commands = host_.commands;
  ASSERT_TRUE(LayOut(files, "second").ok());
  EXPECT_EQ(Slurp(Work("second") + "/a"), "1");
  EXPECT_EQ(host_.sent_bytes, sent);
  EXPECT_EQ(host_.commands, commands + 1);
}

TEST_F(HostTreesTest, ALayoutThatWasCutShortIsMadeAnew) {
  const LocalFiles files = Fetch(Tree({Sent("a", "1")}));
  std::filesystem::create_directories(Work() + ".part/half");
  std::filesystem::create_directories(Work() + "/old");
  ASSERT_TRUE(LayOut(files).ok());
  EXPECT_FALSE(std::filesystem::exists(Work() + "/old"));
  EXPECT_FALSE(std::filesystem::exists(Work() + "/half"));
  EXPECT_FALSE(std::filesystem::exists(Work() + ".part"));
}

TEST_F(HostTreesTest, ABrokenConnectionGoesOnWhereItEnded) {
  std::string large(3 * kPartBytes, 'l');
  for (size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>(i / 1000);
  const LocalFiles files = Fetch(Tree({Sent("large", large)}));
  host_.break_at = 5;  // two looks at the trees, two parts, and in the third
  EXPECT_TRUE(absl::IsUnavailable(LayOut(files)));
  const uint64_t sent = host_.sent_bytes;
  ASSERT_TRUE(LayOut(files).ok());
  EXPECT_EQ(host_.sent_bytes - sent, TarBytes(files.tree) - 2 * kPartBytes);
  EXPECT_EQ(Slurp(Work() + "/large"), large);
  EXPECT_TRUE(NamesIn("incoming").empty());
}

TEST_F(HostTreesTest, SendingEndsAtItsDeadlineAndGoesOn) {
  const LocalFiles files = Fetch(Tree({Sent("a", "1")}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(LayOut(files, "run", absl::ZeroDuration())));
  EXPECT_EQ(NotLaunched(LayOut(files, "run", absl::ZeroDuration())).kind,
            agent::LaunchOutcome::Kind::kNotSent);
  EXPECT_FALSE(std::filesystem::exists(Work()));
  EXPECT_TRUE(LayOut(files).ok());
}

TEST_F(HostTreesTest, WhatWasDamagedOnItsWayIsNotUnpacked) {
  const LocalFiles files = Fetch(Tree({Sent("large", std::string(2 * kPartBytes, 'l'))}));
  host_.break_at = 4;  // the second part
  EXPECT_TRUE(absl::IsUnavailable(LayOut(files)));
  const std::string archive = dir_ / ("host/files/incoming/" + NamesIn("incoming").front());
  std::fstream(archive, std::ios::in | std::ios::out) << "damaged";
  const absl::Status status = LayOut(files);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("damaged"));
  EXPECT_FALSE(std::filesystem::exists(Work()));
  EXPECT_TRUE(LayOut(files).ok());
}

TEST_F(HostTreesTest, AFullDiskThereIsSaidSoAndLeavesNothing) {
  const LocalFiles files = Fetch(Tree({Sent("large", std::string(4 << 20, 'l'))}));
  std::filesystem::create_directory(dir_ / "host");
  for (const char* size : {"size=2m", "size=6m"}) {  // of the archive, of the tree
    ASSERT_EQ(mount("tmpfs", (dir_ / "host").c_str(), "tmpfs", 0, size), 0) << "takes root";
    const absl::Status status = LayOut(files);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << size << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("full"));
    EXPECT_TRUE(NamesIn("incoming").empty()) << size;
    EXPECT_FALSE(std::filesystem::exists(Work())) << size;
    EXPECT_EQ(umount((dir_ / "host").c_str()), 0);
  }
}

TEST_F(HostTreesTest, AFullDiskAtTheCopyLeavesNothing) {
  const LocalFiles files = Fetch(Tree({Sent("large", std::string(4 << 20, 'l'))}));
  std::filesystem::create_directory(dir_ / "host");
  ASSERT_EQ(mount("tmpfs", (dir_ / "host").c_str(), "tmpfs", 0, "size=11m"), 0) << "takes root";
  EXPECT_TRUE(LayOut(files, "first").ok());
  const absl::Status status = LayOut(files, "second");
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left on device"));
  EXPECT_FALSE(std::filesystem::exists(Work("second")));
  EXPECT_FALSE(std::filesystem::exists(Work("second") + ".part"));
  EXPECT_EQ(umount((dir_ / "host").c_str()), 0);
}

TEST_F(HostTreesTest, OldTreesGoAndTheNewestStay) {
  for (int i = 0; i < kMaxTrees + 2; ++i) {
    ASSERT_TRUE(LayOut(Fetch(Tree({Sent("a", std::to_string(i))}))).ok());
    // The clock of files may stand still between two.
    const auto last = std::filesystem::file_time_type::clock::now();
    for (const std::string& name : NamesIn("trees")) {
      const std::string path = dir_ / ("host/files/trees/" + name);
      if (std::filesystem::last_write_time(path) >= last - std::chrono::seconds(1))
        std::filesystem::last_write_time(path, last - std::chrono::hours(kMaxTrees + 2 - i));
    }
  }
  EXPECT_EQ(NamesIn("trees").size(), static_cast<size_t>(kMaxTrees));
  for (const std::string& name : NamesIn("trees")) {
    std::filesystem::last_write_time(
        dir_ / ("host/files/trees/" + name),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 9));
  }
  ASSERT_TRUE(LayOut(Fetch(Tree({Sent("a", "new")}))).ok());
  EXPECT_EQ(NamesIn("trees").size(), 1u);
}

TEST_F(HostTreesTest, AnArchiveIsAsLongAsItIsSaidToBe) {
  const std::string name(101, 'n');
  const LocalFiles files = Fetch(
      Tree({Sent("512", std::string(512, 'x')), Link("l", name), Sent(name, "x"), Sent("z", "")}));
  uint64_t bytes = 0;
  ASSERT_TRUE(WriteTar(files, cache_.get(), [&](std::string_view piece) {
                bytes += piece.size();
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(bytes, TarBytes(files.tree));
}

}  // namespace
}  // namespace muster::uploads
