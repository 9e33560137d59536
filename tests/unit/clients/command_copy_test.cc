// Files of runs, copied by the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::FetchFilesResponse FileOf(const std::string& path, uint64_t size_bytes) {
  v1::FetchFilesResponse piece;
  piece.mutable_entry()->set_path(path);
  piece.mutable_entry()->set_kind(v1::FILE_KIND_FILE);
  piece.mutable_entry()->set_size_bytes(size_bytes);
  return piece;
}

v1::FetchFilesResponse DirectoryItself() {
  v1::FetchFilesResponse piece;
  piece.mutable_entry()->set_kind(v1::FILE_KIND_DIRECTORY);
  return piece;
}

v1::FetchFilesResponse Chunk(const std::string& bytes) {
  v1::FetchFilesResponse piece;
  piece.set_chunk(bytes);
  return piece;
}

class CopyTest : public CommandTest {
 protected:
  void Send(std::vector<v1::FetchFilesResponse> pieces) {
    broker_.fetch_files = [pieces](const v1::FetchFilesRequest&, const auto& write) {
      for (const v1::FetchFilesResponse& piece : pieces) write(piece);
      return absl::OkStatus();
    };
  }

  std::string Target() const {
    return std::filesystem::path(broker_.address().substr(5)).parent_path() / "copy";
  }

  std::string Read(const std::string& path) const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(CopyTest, WhatIsWholeIsCopiedWithoutARemark) {
  Send({DirectoryItself(), FileOf("a", 4), Chunk("ab"), Chunk("cd"), FileOf("b", 0)});
  const Outcome outcome = Run({"cp", "42:out", Target()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(Read(Target() + "/a"), "abcd");
  EXPECT_TRUE(std::filesystem::exists(Target() + "/b"));
}

TEST_F(CopyTest, AFileThatBecameShorterIsKeptAndToldAndTheNextIsWhole) {
  Send({DirectoryItself(), FileOf("log", 10), Chunk("abcd"), FileOf("next", 2), Chunk("xy")});
  const Outcome outcome = Run({"cp", "42:out", Target()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("left out: log became shorter while it was read: 4 of 10 bytes"
                                     " are here"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("left out: next")));
  EXPECT_EQ(Read(Target() + "/log"), "abcd");
  EXPECT_EQ(Read(Target() + "/next"), "xy");
}

TEST_F(CopyTest, OneFileThatBecameShorterIsToldByTheNameThatWasAskedFor) {
  Send({FileOf("", 10), Chunk("abcd")});
  const Outcome outcome = Run({"cp", "42:out/log", "-"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "abcd");
  EXPECT_THAT(outcome.err, HasSubstr("left out: out/log became shorter while it was read"));
}

}  // namespace
}  // namespace muster::cli
