#include "agents/files/host_trees.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <thread>

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
    if (leave_at > 0 && --leave_at == 0) {
      Leave(command);
      return absl::UnavailableError("the connection broke");
    }
    if (break_at > 0 && --break_at == 0) {
      // The part that has come by then is there.
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
  // The how many-th command from now goes on there while its connection breaks; 0 if none.
  int leave_at = 0;
  std::function<bool()> is_on_its_way;
  std::thread left;
  int broken_on_their_way = 0;

 private:
  void Leave(const hosts::Command& command) {
    is_over_ = false;
    left = std::thread([this, command] {
      (void)LocalHost::Run(command);
      is_over_ = true;
    });
    while (!is_over_ && !is_on_its_way()) std::this_thread::yield();
    if (!is_over_) ++broken_on_their_way;
  }

  std::atomic<bool> is_over_ = false;
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
    return Trees().LayOut(files, Work(run), patience);
  }
  std::string Work(const std::string& run = "run") const {
    return dir_ / ("host/runs/" + run + "/work");
  }
  static uint32_t ModeAt(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777;
  }
  // Fetches into one directory; a copy of it that is disturbed may miss some files without an
  // error.
  LocalFiles FetchMany() {
    std::vector<v1::FileTreeEntry> entries;
    for (int i = 0; i < kMany; ++i) entries.push_back(Sent(std::to_string(i), "content"));
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.path() < b.path(); });
    return Fetch(Tree(entries));
  }
  static int CountIn(const std::filesystem::path& directory) {
    std::error_code error;
    const std::filesystem::directory_iterator entries(directory, error);
    return static_cast<int>(std::distance(begin(entries), end(entries)));
  }
  // Returns whether some of a part is in the directory, and not yet all.
  static bool IsOnItsWayIn(const std::filesystem::path& directory) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
      if (entry.path().string().find(".part") != std::string::npos && CountIn(entry.path()) > 50)
        return true;
    }
    return false;
  }
  // Calls it until it is done.
  absl::Status LayOutAtLast(HostTrees* trees, const LocalFiles& files, const std::string& run) {
    absl::Status status;
    for (int i = 0; i < 50; ++i) {
      status = trees->LayOut(files, Work(run), absl::Minutes(1));
      if (!absl::IsUnavailable(status)) break;
    }
    return status;
  }
  std::vector<std::string> NamesIn(const std::string& directory) {
    return host_.ListDirectory(dir_ / ("host/files/" + directory)).value();
  }

  // Mounts the host's directory in memory, so that waits for the disk take no time.
  void MountHost() {
    std::filesystem::create_directory(dir_ / "host");
    ASSERT_EQ(mount("tmpfs", (dir_ / "host").c_str(), "tmpfs", 0, nullptr), 0) << "takes root";
  }
  void UnmountHost() const { EXPECT_EQ(umount((dir_ / "host").c_str()), 0); }

  static constexpr int kMany = 2000;

  TestHost host_;
  TestHost other_host_;
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
            std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
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

TEST_F(HostTreesTest, ALayoutThatWasCutShortIsMadeAnewAndGoesAfterAnHour) {
  const LocalFiles files = Fetch(Tree({Sent("a", "1")}));
  std::filesystem::create_directories(Work());
  std::filesystem::create_directories(Work() + ".part.young/half");
  std::filesystem::create_directories(Work() + ".part.old/half");
  std::filesystem::last_write_time(
      Work() + ".part.old",
      std::filesystem::file_time_type::clock::now() - std::chrono::minutes(62));
  ASSERT_TRUE(LayOut(files).ok());
  EXPECT_EQ(Slurp(Work() + "/a"), "1");
  EXPECT_TRUE(std::filesystem::exists(Work() + ".part.young/half"));
  EXPECT_FALSE(std::filesystem::exists(Work() + ".part.old"));
}

TEST_F(HostTreesTest, ATargetThatIsThereIsWholeAndStays) {
  const LocalFiles files = Fetch(Tree({Sent("a", "1"), Sent("b", "2")}));
  ASSERT_TRUE(LayOut(files).ok());
  Spill(Work() + "/a", "changed");
  ASSERT_TRUE(LayOut(files).ok());
  EXPECT_EQ(Slurp(Work() + "/a"), "changed");
}

TEST_F(HostTreesTest, ACopyThatGoesOnAfterItsConnectionBrokeDisturbsNobody) {
  MountHost();
  const LocalFiles files = FetchMany();
  ASSERT_TRUE(LayOut(files, "first").ok());
  for (int i = 0; i < 10; ++i) {
    const std::string run = std::to_string(i);
    host_.leave_at = 1;
    host_.is_on_its_way = [&] { return IsOnItsWayIn(dir_ / ("host/runs/" + run)); };
    EXPECT_TRUE(absl::IsUnavailable(LayOut(files, run)));
    const absl::Status status = LayOut(files, run);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(CountIn(Work(run)), kMany);
    host_.left.join();
    EXPECT_EQ(CountIn(Work(run)), kMany);
    EXPECT_EQ(CountIn(dir_ / ("host/runs/" + run)), 1) << "parts";
  }
  EXPECT_GT(host_.broken_on_their_way, 0);
  UnmountHost();
}

TEST_F(HostTreesTest, AnUnpackingThatGoesOnAfterItsConnectionBrokeDisturbsNobody) {
  MountHost();
  const LocalFiles files = FetchMany();
  for (int i = 0; i < 10; ++i) {
    const std::string run = std::to_string(i);
    host_.leave_at = 4;  // two looks at the trees, the archive, and this
    host_.is_on_its_way = [&] { return IsOnItsWayIn(dir_ / "host/files/trees"); };
    EXPECT_TRUE(absl::IsUnavailable(LayOut(files, run)));
    const absl::Status status = LayOutAtLast(&Trees(), files, run);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(CountIn(Work(run)), kMany);
    host_.left.join();
    ASSERT_EQ(NamesIn("trees").size(), 1u) << "parts";
    EXPECT_EQ(CountIn(dir_ / ("host/files/trees/" + NamesIn("trees").front())), kMany);
    EXPECT_TRUE(NamesIn("incoming").empty());
    std::filesystem::remove_all(dir_ / "host/files");
  }
  EXPECT_GT(host_.broken_on_their_way, 0);
  UnmountHost();
}

TEST_F(HostTreesTest, TwoThatLayOutTheSameAtTheSameTimeBothHaveTheWhole) {
  MountHost();
  const LocalFiles files = FetchMany();
  HostTrees other(&other_host_, dir_ / "host/files", cache_.get());
  for (int i = 0; i < 10; ++i) {
    const std::string run = std::to_string(i);
    absl::Status of_other;
    std::thread thread([&] { of_other = LayOutAtLast(&other, files, run); });
    const absl::Status status = LayOutAtLast(&Trees(), files, run);
    thread.join();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(of_other.ok()) << of_other;
    EXPECT_EQ(CountIn(Work(run)), kMany);
    EXPECT_EQ(CountIn(dir_ / ("host/runs/" + run)), 1) << "parts";
    std::filesystem::remove_all(dir_ / "host/files");
  }
  UnmountHost();
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

TEST_F(HostTreesTest, WhatHasComeIsToldAndSendingGoesOnFromThere) {
  const LocalFiles files = Fetch(Tree({Sent("large", std::string(2 * kPartBytes, 'l'))}));
  const TreeName tree = TreeName::Of(files.tree);
  EXPECT_TRUE(absl::IsNotFound(Trees().Copy(tree, Work())));
  std::vector<uint64_t> told;
  const auto send = [&] {
    return Trees().Send(files, tree, absl::InfiniteDuration(),
                        [&](uint64_t bytes) { told.push_back(bytes); });
  };
  host_.break_at = 2;  // the second part
  EXPECT_TRUE(absl::IsUnavailable(send().status()));
  const absl::StatusOr<std::string> sha256 = send();
  ASSERT_TRUE(sha256.ok()) << sha256.status();
  EXPECT_EQ(told,
            (std::vector<uint64_t>{0, kPartBytes, kPartBytes, 2 * kPartBytes, tree.archive_bytes}));
  ASSERT_TRUE(Trees().Unpack(tree, *sha256).ok());
  ASSERT_TRUE(Trees().Copy(tree, Work()).ok());
  EXPECT_EQ(std::filesystem::file_size(Work() + "/large"), 2 * kPartBytes);
}

TEST_F(HostTreesTest, SendingEndsAtItsDeadlineAndGoesOn) {
  const LocalFiles files = Fetch(Tree({Sent("a", "1")}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(LayOut(files, "run", absl::ZeroDuration())));
  EXPECT_EQ(NotLaunched(LayOut(files, "run", absl::ZeroDuration())).kind,
            agents::LaunchOutcome::Kind::kDeferred);
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
  EXPECT_TRUE(std::filesystem::is_empty(dir_ / "host/runs/second"));
  EXPECT_EQ(umount((dir_ / "host").c_str()), 0);
}

TEST_F(HostTreesTest, OldTreesGoAndTheNewestStay) {
  for (int i = 0; i < kMaxTrees + 2; ++i) {
    ASSERT_TRUE(LayOut(Fetch(Tree({Sent("a", std::to_string(i))})), std::to_string(i)).ok());
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

TEST_F(HostTreesTest, NothingIsSentToAHostWithoutRoomForTheArchiveAndTheTree) {
  const LocalFiles files = Fetch(Tree({Sent("a", std::string(1 << 20, 'x'))}));
  options_.keep_free_bytes = uint64_t{1} << 60;
  absl::StatusOr<std::unique_ptr<FileCache>> careful =
      FileCache::Open(dir_ / "files", options_, &source_);
  ASSERT_TRUE(careful.ok()) << careful.status();
  HostTrees trees(&host_, dir_ / "host/files", careful->get());
  const absl::Status status = trees.LayOut(files, Work(), absl::InfiniteDuration());
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ / "host/files"));
  EXPECT_FALSE(std::filesystem::exists(Work()));
  EXPECT_EQ(CountIn(dir_ / "host/files/incoming"), 0);
}

}  // namespace
}  // namespace muster::uploads
