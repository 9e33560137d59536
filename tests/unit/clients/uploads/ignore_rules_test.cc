#include "clients/cpp/uploads/ignore_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <algorithm>
#include <optional>
#include <random>

#include "tests/unit/clients/uploads/uploads_fixture.h"

namespace muster::client {
namespace {

struct Case {
  std::string pattern;
  std::string path;
  bool left_out;
};

TEST(IgnorePattern, MatchesWhatGitsDocumentationSays) {
  // A path with '/' at its end is a directory.
  const std::vector<Case> cases = {
      {"hello.*", "hello.txt", true},
      {"hello.*", "a/hello.java", true},
      {"/hello.*", "hello.c", true},
      {"/hello.*", "a/hello.c", false},
      {"foo/", "foo/", true},
      {"foo/", "a/foo/", true},
      {"foo/", "foo", false},
      {"doc/frotz", "doc/frotz", true},
      {"/doc/frotz", "doc/frotz", true},
      {"doc/frotz", "a/doc/frotz", false},
      {"foo/*", "foo/test.json", true},
      {"foo/*", "foo/bar/hello.c", false},
      {"**/foo", "foo", true},
      {"**/foo", "a/b/foo", true},
      {"**/foo/bar", "a/foo/bar", true},
      {"abc/**", "abc/x/y", true},
      {"abc/**", "abc", false},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "a/xb", false},
      {"a**b", "axxb", true},
      {"foo**/bar", "foox/y/bar", false},
      {"?.o", "a.o", true},
      {"?.o", "ab.o", false},
      {"[a-c].o", "b.o", true},
      {"[!a-c].o", "b.o", false},
      {"[^a-c].o", "d.o", true},
      {"[[:digit:]x].o", "7.o", true},
      {"[]-].o", "].o", true},
      {"a[/]b", "a/b", false},
      {"[a.o", "[a.o", false},
      {"\\#x", "#x", true},
      {"#x", "#x", false},
      {"\\!x", "!x", true},
      {"x ", "x", true},
      {"x\\ ", "x ", true},
      {"x\\", "x\\", false},
      {"a.b", "a+b", false},
      {"*.\xff", "a.\xff", true},
      {"", "", false},
      {"/", "a", false},
  };
  for (const Case& c : cases) {
    IgnoreRules rules;
    rules.Add(c.pattern + "\r\n", "");
    const bool is_directory = c.path.ends_with('/');
    EXPECT_EQ(
        rules.LeavesOut(c.path.substr(0, c.path.size() - (is_directory ? 1 : 0)), is_directory),
        c.left_out)
        << c.pattern << " on " << c.path;
  }
}

TEST(IgnoreRules, TheLastPatternThatMatchesWins) {
  IgnoreRules rules;
  rules.Add("\xef\xbb\xbf*.log\n!keep.log\n", "");
  const size_t outer = rules.size();
  rules.Add("keep.log", "a/");
  EXPECT_TRUE(rules.LeavesOut("x.log", false));
  EXPECT_FALSE(rules.LeavesOut("keep.log", false));
  EXPECT_TRUE(rules.LeavesOut("a/keep.log", false));
  rules.Shrink(outer);
  EXPECT_FALSE(rules.LeavesOut("a/keep.log", false));
}

TEST(IgnoreRules, ManyStarsTakeNoLongerThanFewOnes) {
  IgnoreRules rules;
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "*a";
  rules.Add(pattern + "b\n", "");
  EXPECT_FALSE(rules.LeavesOut(std::string(200, 'a'), false));
}

// Returns git's own answer for a directory without tracked files; nullopt if there is no git here.
std::optional<std::vector<std::string>> GitSays(const std::filesystem::path& directory) {
  const std::string command =
      "cd " + directory.string() +
      " && export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 && { [ -e .git ] || git init -q .; } "
      "&& git ls-files --others --exclude-standard -z";
  FILE* const pipe = popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    out.append(buffer, count);
  if (pclose(pipe) != 0) return std::nullopt;
  std::vector<std::string> paths;
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\0', at);
    paths.push_back(out.substr(at, end - at));
    at = end + 1;
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

class AgainstGit : public UploadsTest, public testing::WithParamInterface<int> {
 protected:
  std::string OneOf(const std::vector<std::string>& words) {
    return words[std::uniform_int_distribution<size_t>(0, words.size() - 1)(random_)];
  }
  int UpTo(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  std::string RandomPattern() {
    std::string pattern = OneOf({"", "", "", "!", "/", "!/", "**/"});
    const int parts = UpTo(2);
    for (int i = 0; i <= parts; ++i) {
      pattern += i > 0 ? "/" : "";
      pattern += OneOf({"a", "b", "ab", "*", "**", "a*", "*b", "?", "[ab]", "[!a]", "a**b", "\\a",
                        "[[:alpha:]]", "x.o", "*.o", "[x", "c", "***"});
    }
    return pattern + OneOf({"", "", "", "/", " ", "/**", "/*"}) + "\n";
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
};

TEST_P(AgainstGit, LeavesOutWhatGitLeavesOut) {
  const std::vector<std::string> names = {"a", "b", "c", "ab", "x.o", "b.o", "aXb"};
  for (int i = 0; i < 40; ++i) {
    std::string path;
    const int depth = UpTo(3);
    for (int part = 0; part < depth; ++part) path += OneOf({"a", "b", "ab", "d"}) + "/";
    path += "f-" + OneOf(names);
    if (UpTo(1) == 0) path.replace(path.rfind("f-"), 2, "");
    if (!std::filesystem::is_directory(directory_ / path)) {
      std::error_code error;
      std::filesystem::create_directories((directory_ / path).parent_path(), error);
      if (!error) std::ofstream(directory_ / path) << "x";
    }
  }
  for (const std::string where : {"", "a/", "b/", "a/b/"}) {
    std::string patterns;
    for (int i = UpTo(4); i > 0; --i) patterns += RandomPattern();
    if (std::filesystem::is_directory(directory_ / where))
      std::ofstream(directory_ / where / ".gitignore") << patterns;
  }
  const auto expected = GitSays(directory_);
  ASSERT_TRUE(expected.has_value()) << "git did not answer: deploy/install-deps test installs it";
  const auto local = ReadLocalTree(directory_, kPlenty, RulesAbove::kCount);
  ASSERT_TRUE(local.ok()) << local.status();
  std::vector<std::string> files;
  for (const auto& entry : local->tree.entries()) {
    if (entry.kind() != v1::FILE_KIND_DIRECTORY) files.push_back(entry.path());
  }
  EXPECT_EQ(files, *expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AgainstGit, testing::Range(0, 30));

}  // namespace
}  // namespace muster::client
