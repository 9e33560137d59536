#include "clients/cli/tree_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace muster::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TreeWriterTest : public testing::Test {
 protected:
  TreeWriterTest() {
    std::string name = (fs::temp_directory_path() / "muster-writer-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    fs::create_directories(directory_ / "place");
  }
  ~TreeWriterTest() override { fs::remove_all(directory_); }

  static v1::FileTreeEntry Entry(const std::string& path, v1::FileKind kind, uint64_t size = 0) {
    v1::FileTreeEntry entry;
    entry.set_path(path);
    entry.set_kind(kind);
    entry.set_size_bytes(size);
    return entry;
  }
  static v1::FileTreeEntry Link(const std::string& path, const std::string& target) {
    v1::FileTreeEntry entry = Entry(path, v1::FILE_KIND_SYMLINK);
    entry.set_link_target(target);
    return entry;
  }
  std::string Content(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(directory_ / path).rdbuf();
    return text.str();
  }
  // Writes a directory with this entry in it, and returns the result.
  absl::Status Write(const v1::FileTreeEntry& entry) {
    TreeWriter writer(directory_ / "place", "out");
    absl::Status status = writer.Begin(Entry("", v1::FILE_KIND_DIRECTORY));
    if (status.ok()) status = writer.Begin(entry);
    if (status.ok() && entry.size_bytes() > 0) status = writer.Append("x");
    return status.ok() ? writer.Finish() : status;
  }
  // Counts everything below the directory, except for the place.
  size_t Outside() {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(directory_))
      count += entry.path().filename() == "place" ? 0 : 1;
    return count;
  }

  fs::path directory_;
};

TEST_F(TreeWriterTest, HostileEntriesAreRefusedAndNothingIsWrittenOutside) {
  const v1::FileTreeEntry hostile[] = {
      Entry("../x", v1::FILE_KIND_FILE, 1),
      Entry("a/../../x", v1::FILE_KIND_FILE, 1),
      Entry((directory_ / "x").string(), v1::FILE_KIND_FILE, 1),
      Entry(std::string("a\0b", 3), v1::FILE_KIND_FILE, 1),
      Entry("../d", v1::FILE_KIND_DIRECTORY),
      Entry("device", v1::FILE_KIND_UNSPECIFIED),
      Link("l", "/etc"),
      Link("l", "../../x"),
      Entry("missing/x", v1::FILE_KIND_FILE, 1),
  };
  for (const auto& entry : hostile) {
    EXPECT_FALSE(Write(entry).ok()) << entry.path();
    EXPECT_EQ(Outside(), 0u) << entry.path();
  }
}

TEST_F(TreeWriterTest, ALinkThatIsThereIsNotFollowed) {
  fs::create_directories(directory_ / "place/out");
  std::ofstream(directory_ / "victim") << "mine";
  fs::create_directories(directory_ / "elsewhere");
  fs::create_symlink(directory_ / "victim", directory_ / "place/out/file");
  fs::create_symlink(directory_ / "elsewhere", directory_ / "place/out/dir");
  EXPECT_TRUE(Write(Entry("file", v1::FILE_KIND_FILE, 1)).ok());
  EXPECT_EQ(Content("victim"), "mine");
  EXPECT_EQ(Content("place/out/file"), "x");
  EXPECT_FALSE(Write(Entry("dir/file", v1::FILE_KIND_FILE, 1)).ok());
  EXPECT_TRUE(fs::is_empty(directory_ / "elsewhere"));
}

TEST_F(TreeWriterTest, ALinkOfTheTreeItselfLeadsNoFileOut) {
  TreeWriter writer(directory_ / "place", "out");
  ASSERT_TRUE(writer.Begin(Entry("", v1::FILE_KIND_DIRECTORY)).ok());
  ASSERT_TRUE(writer.Begin(Link("l", ".")).ok());
  EXPECT_FALSE(writer.Begin(Entry("l/x", v1::FILE_KIND_FILE, 1)).ok());
}

TEST_F(TreeWriterTest, AFileIsReplacedWholeOrNotAtAll) {
  std::ofstream(directory_ / "place/out") << "old";
  {
    TreeWriter writer(directory_ / "place", "out");
    ASSERT_TRUE(writer.Begin(Entry("", v1::FILE_KIND_FILE, 2)).ok());
    ASSERT_TRUE(writer.Append("n").ok());
    EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "place"), {}), 1)
        << "a process that is killed now leaves nothing";
  }
  EXPECT_EQ(Content("place/out"), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "place"), {}), 1);
  TreeWriter writer((directory_ / "place/out").string(), "other");
  ASSERT_TRUE(writer.Begin(Entry("", v1::FILE_KIND_FILE, 2)).ok());
  ASSERT_TRUE(writer.Append("ne").ok());
  EXPECT_THAT(std::string(writer.Append("w").message()), HasSubstr("more bytes"));
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_EQ(Content("place/out"), "ne");
  EXPECT_FALSE(writer.Append("x").ok());
}

TEST_F(TreeWriterTest, ASecondFileAfterALoneOneIsRefused) {
  TreeWriter writer(directory_ / "place", "out");
  ASSERT_TRUE(writer.Begin(Entry("", v1::FILE_KIND_FILE)).ok());
  EXPECT_FALSE(writer.Begin(Entry("x", v1::FILE_KIND_FILE)).ok());
}

TEST_F(TreeWriterTest, APlaceThatIsNotThereIsNamed) {
  TreeWriter writer(directory_ / "no/such", "out");
  EXPECT_THAT(std::string(writer.Begin(Entry("", v1::FILE_KIND_FILE)).message()),
              HasSubstr("no\""));
}

}  // namespace
}  // namespace muster::cli
