// Tests which words of a script no quotes protect.
#include "clients/cpp/unquoted.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace muster::client {
namespace {

TEST(UnquotedTest, QuotedTextBecomesOneCharacter) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"ls {a,b}", "ls {a,b}"},
                                                       {"a 'b {c' \"d ' e\" f", "a _ _ f"},
                                                       {"a\"b\"'c'\\d", "a___"},
                                                       {"\"a \\\" {b\" c", "_ c"},
                                                       {"a \\\n b", "a  b"},
                                                       {"'never ends {a,b}", "_"},
                                                       {"\"never ends {a,b}", "_"},
                                                       {"ends with \\", "ends with _"},
                                                       {"\"ends with \\", "_"}};
  for (const auto& [script, words] : cases) EXPECT_EQ(Unquoted(script), words) << script;
}

TEST(UnquotedTest, ACommandInQuotesIsNotQuoted) {
  EXPECT_EQ(Unquoted("x \"a $(ls {b,c} \"d (\") e\" f"), "x _(ls {b,c} _) f");
  EXPECT_EQ(Unquoted("$(a 'b') (c) d)"), "$(a _) (c) d)");
}

TEST(UnquotedTest, CommentsAreLeftOut) {
  EXPECT_EQ(Unquoted("a # it's\n# b\nc#d ${#e} $# (#f"), "a \n\nc#d ${#e} $# (");
}

TEST(UnquotedTest, HereDocumentsAreLeftOut) {
  const std::pair<const char*, const char*> cases[] = {
      {"cat <<A\nit's\nA\nb", "cat <<\nb"},
      {"cat <<'A B' x\ny\nA B\nb", "cat << x\nb"},
      {"cat <<-\"A\"; b\nx\n\tA\nc", "cat <<; b\nc"},
      {"cat <<A <<B\nx\nA\ny\nB\nc", "cat << <<\nc"},
      {"cat <<<a\nb", "cat <<a\nb"},
      {"$((1<<a))\nb\nc", "$((1<<))\nb\nc"},
      {"cat <<A\nA", "cat <<\n"},
      {"cat <<", "cat <<"}};
  for (const auto& [script, words] : cases) EXPECT_EQ(Unquoted(script), words) << script;
}

TEST(UnquotedTest, AScriptOfManyDocumentsIsReadAtOnce) {
  std::string script;
  for (int i = 0; i < 200'000; ++i) script += "a<<b\n";
  EXPECT_EQ(Unquoted(script).size(), script.size() - 200'000);
}

}  // namespace
}  // namespace muster::client
