// ShellQuote, by round trips through the real /bin/sh.
#include "agents/hosts/shell_quote.h"

#include "agents/hosts/local_host.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace muster::hosts {
namespace {

// Returns a shell's reading of the quoted words, each ended by a NUL byte.
std::string ThroughShell(const std::vector<std::string>& words) {
  std::string script = "printf '%s\\0'";
  for (const std::string& word : words) script += " " + *ShellQuote(word);
  LocalHost host;
  const auto result = host.Run({.argv = {"/bin/sh", "-c", script}});
  return result.ok() && result->ok() ? result->stdout_data : "failed";
}

std::string Joined(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += word + '\0';
  return joined;
}

TEST(ShellQuote, KeepsWhatShellsTreatSpecially) {
  const std::vector<std::string> words = {"",
                                          "plain",
                                          "two words",
                                          "'",
                                          "''",
                                          "'\\''",
                                          "\"",
                                          "\\",
                                          "\\\n",
                                          "\n",
                                          "\n\n",
                                          "\t",
                                          "$(id)",
                                          "`id`",
                                          "$HOME",
                                          "${x:-y}",
                                          "*",
                                          "?[a-z]",
                                          "~",
                                          "#",
                                          "!",
                                          "!!",
                                          "-n",
                                          "--",
                                          "a=b",
                                          ";",
                                          "&",
                                          "&&",
                                          "|",
                                          "<x",
                                          ">x",
                                          "{a,b}",
                                          "%s",
                                          "\r",
                                          "\x01",
                                          "\x7f",
                                          "\xff",
                                          "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                                          "'; rm -rf /nowhere; '"};
  EXPECT_EQ(ThroughShell(words), Joined(words));
}

TEST(ShellQuote, RefusesNul) {
  const auto quoted = ShellQuote(std::string("a\0b", 3));
  EXPECT_TRUE(absl::IsInvalidArgument(quoted.status()));
  EXPECT_NE(quoted.status().message().find("offset 1"), absl::string_view::npos);
}

// The words are dense in what breaks quoting, yet cover every byte but NUL.
rc::Gen<std::string> AnyWord() {
  return rc::gen::container<std::string>(rc::gen::weightedOneOf<char>(
      {{2, rc::gen::elementOf(std::string("'\"\\\n$`(){}*?!#~;&|<> \t-="))},
       {1, rc::gen::map(rc::gen::inRange(1, 256),
                        [](int byte) { return static_cast<char>(byte); })}}));
}

RC_GTEST_PROP(ShellQuote, AnyTextComesBackThroughSh, ()) {
  const auto words = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(AnyWord()));
  RC_ASSERT(ThroughShell(words) == Joined(words));
}

}  // namespace
}  // namespace muster::hosts
