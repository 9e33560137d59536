// docs/concepts.md shows and draws the transition table; this keeps page and table the same.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "contract/states.h"
#include "contract/transitions.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

// One row for each state, with what may follow it.
std::string TableAsMarkdown() {
  std::string table = "| from | to |\n|---|---|\n";
  for (int from = v1::RUN_STATE_ASSIGNED; from <= v1::RunState_MAX; ++from) {
    std::string followers;
    for (const RunTransition& transition : kRunTransitions) {
      if (transition.from != from) continue;
      followers += fmt::format("{}{}", followers.empty() ? "" : ", ", Name(transition.to));
    }
    table += fmt::format("| {} | {} |\n", Name(static_cast<v1::RunState>(from)),
                         followers.empty() ? "(terminal)" : followers);
  }
  return table;
}

std::string Page() {
  std::ifstream file(MUSTER_CONCEPTS_PAGE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

v1::RunState StateNamed(const std::string& name) {
  v1::RunState state = v1::RUN_STATE_UNSPECIFIED;
  EXPECT_TRUE(v1::RunState_Parse("RUN_STATE_" + name, &state)) << name << " is no state of a run";
  return state;
}

TEST(ConceptsPage, DrawsEveryStateAndOnlyStepsOfTheTable) {
  const std::string page = Page();
  const size_t begin = page.find("```\n", page.find("## States of a run"));
  ASSERT_NE(begin, std::string::npos);
  const std::string drawing = page.substr(begin + 4, page.find("```", begin + 4) - begin - 4);
  std::set<std::string> drawn;
  const std::regex word("[A-Z_]{2,}");
  for (std::sregex_iterator it(drawing.begin(), drawing.end(), word), end; it != end; ++it) {
    StateNamed(it->str());
    drawn.insert(it->str());
  }
  EXPECT_EQ(drawn.size(), v1::RunState_ARRAYSIZE - 1u);
  const std::regex arrow("([A-Z_]{2,}) -> (?=([A-Z_]{2,}))");
  size_t arrows = 0;
  for (std::sregex_iterator it(drawing.begin(), drawing.end(), arrow), end; it != end; ++it) {
    ++arrows;
    EXPECT_TRUE(IsLegal(StateNamed((*it)[1]), StateNamed((*it)[2]))) << it->str() << (*it)[2];
  }
  EXPECT_GE(arrows, 6u);
}

TEST(ConceptsPage, ListsExactlyTheTransitionsOfTheTable) {
  EXPECT_NE(Page().find(TableAsMarkdown()), std::string::npos)
      << "docs/concepts.md should hold this table:\n"
      << TableAsMarkdown();
}

TEST(ConceptsPage, NamesEveryCodeOfAFailureAndNoOther) {
  const std::string page = Page();
  std::set<std::string> named;
  const size_t begin = page.find("| code | meaning |\n|---|---|\n| | **The command");
  ASSERT_NE(begin, std::string::npos);
  const std::string table = page.substr(begin, page.find("\n\n", begin) - begin);
  const std::regex word("`([A-Z_]+)`");
  for (std::sregex_iterator it(table.begin(), table.end(), word), end; it != end; ++it)
    EXPECT_TRUE(named.insert((*it)[1]).second) << it->str() << " stands there twice";
  std::set<std::string> codes;
  for (int code = 1; code < v1::FailureCode_ARRAYSIZE; ++code) {
    if (v1::FailureCode_IsValid(code))
      codes.insert(v1::FailureCode_Name(code).substr(std::string("FAILURE_CODE_").size()));
  }
  EXPECT_EQ(named, codes);
}

}  // namespace
}  // namespace muster::contract
